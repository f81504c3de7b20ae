//! What `run` is told: flags, and the configuration under them.

use core::net::SocketAddr;
use core::time::Duration;
use std::path::PathBuf;

use fettle_core::catalog::{Clear, ConditionType};
use fettle_core::node::agent::Settings;
use log::warn;

use crate::config::{self, Config};
use crate::probe::place::{Place, PlaceArgs};

/// What to run.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Need no cluster: print each change as one line
    #[arg(long)]
    pub standalone: bool,
    /// The configuration, read again at SIGHUP; by default /etc/fettle/agent.yaml if there is one
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Take records that user space wrote for the kernel's (for tests only)
    #[arg(long)]
    pub trust_userspace_kmsg: bool,
    /// The kernel log device
    #[arg(long, default_value = "/dev/kmsg", value_name = "PATH")]
    pub kmsg: PathBuf,
    /// Where the node and the agent's own files are.
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Write everything that the decisions depend on to this file, for `replay`
    #[arg(long, value_name = "FILE")]
    pub journal: Option<PathBuf>,
    /// Most bytes of the journal; at the limit it goes on in a new file and keeps one old one
    #[arg(long, default_value_t = 64 * 1024 * 1024, value_name = "BYTES")]
    pub journal_max: u64,
    /// How a condition is cleared besides by hand and by a boot: `held` not at all, `proof` by proof
    #[arg(long, value_name = "CONDITION=held|proof", value_parser = clear_rule)]
    pub clear: Vec<(ConditionType, Clear)>,
    /// Where to serve /metrics and /healthz; without it where the configuration says
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub metrics_listen: Option<SocketAddr>,
    /// End after this long, such as 10s or 5m
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    pub run_for: Option<Duration>,
}

/// Returns the configuration's settings under the flags, which win.
pub(super) fn settings(args: &Args, place: &Place, config: &Config) -> Settings {
    let mut settings = place.settings(config);
    settings.trust_userspace |= args.trust_userspace_kmsg;
    for (condition, clear) in &args.clear {
        if let Some(rule) = settings.clear.get_mut(condition.index()) {
            *rule = *clear;
        }
    }
    settings
}

pub(super) fn warn_of(settings: &Settings) {
    if settings.trust_userspace {
        warn!("records that user space wrote count as the kernel's; use this for tests only");
    }
}

/// Parses `CONDITION=held|proof`.
fn clear_rule(argument: &str) -> Result<(ConditionType, Clear), String> {
    let (name, rule) = argument.split_once('=').ok_or("expected CONDITION=held or =proof")?;
    let condition = ConditionType::by_name(name)
        .ok_or_else(|| format!("there is no condition {name}; `catalog` lists them"))?;
    Ok((condition, config::clear_rule(condition, rule)?))
}

/// Parses a duration as Go writes it.
fn duration(argument: &str) -> Result<Duration, String> {
    config::duration::parse(argument).map_err(|problem| format!("{argument:?} {problem}"))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_proven_is_cleared_by_proof() {
        let deadlock = ConditionType::KernelDeadlock;
        assert_eq!(clear_rule("KernelDeadlock=proof"), Ok((deadlock, Clear::Proof)));
        assert_eq!(clear_rule("KernelDeadlock=held"), Ok((deadlock, Clear::Held)));
        for wrong in
            ["KernelDeadlock", "Nonsense=held", "VerityCorruption=proof", "KernelDeadlock=x"]
        {
            assert!(clear_rule(wrong).is_err(), "{wrong}");
        }
    }

    pub(in crate::run) fn args(config: PathBuf, state_dir: PathBuf) -> Args {
        Args {
            standalone: true,
            config: Some(config),
            trust_userspace_kmsg: false,
            kmsg: PathBuf::from("/dev/null"),
            place: PlaceArgs {
                host_root: PathBuf::from("/"),
                state_dir,
                kubelet_dir: PathBuf::from("/nonexistent/kubelet/"),
            },
            journal: None,
            journal_max: 0,
            clear: vec![(ConditionType::KernelDeadlock, Clear::Held)],
            metrics_listen: None,
            run_for: None,
        }
    }

    #[test]
    fn flags_win_over_the_file() {
        let args = args(PathBuf::new(), PathBuf::new());
        let text =
            "conditions: {KernelDeadlock: {clear: proof}, ReadonlyFilesystem: {clear: proof}}";
        let settings =
            settings(&args, &args.place.place(false), &Config::parse(text).expect("read"));
        assert_eq!(settings.clear[ConditionType::KernelDeadlock.index()], Clear::Held);
        assert_eq!(settings.clear[ConditionType::ReadonlyFilesystem.index()], Clear::Proof);
        assert_eq!(settings.kubelet_dir.as_str(), "/nonexistent/kubelet");
    }
}
