//! What `run` is told: flags, and the configuration under them.

use core::net::SocketAddr;
use core::time::Duration;
use std::path::{Path, PathBuf};

use fettle_core::catalog::{Clear, ConditionType};
use fettle_core::node::agent::Settings;
use log::warn;

use crate::config::{self, Config};
use crate::probe::place::{Place, PlaceArgs, STATE_DIR};
use crate::publish::kubernetes::access::Source;

/// What to run.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Need no cluster: print each change as one line
    #[arg(long, conflicts_with_all = ["kubeconfig", "node_name"])]
    pub standalone: bool,
    /// Who the agent is at the API server; by default its pod's service account, or else the
    /// kubelet's own kubeconfig
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The Node's name; by default $NODE_NAME, or else the host's name
    #[arg(long, value_name = "NAME")]
    pub node_name: Option<String>,
    /// Where the agent keeps what outlives a boot, ordered reboots and tamper conditions; by default
    /// /var/lib/fettle, or the state directory if another one is named than the usual
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// The configuration, read again at SIGHUP; by default /etc/fettle/agent.yaml if there is one
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Do the reboots that the Node's annotation orders, whatever the configuration says
    #[arg(long, conflicts_with = "standalone")]
    pub enable_reboots: bool,
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

/// Which Node is the agent's, and who it is there.
#[derive(Debug)]
pub(super) struct ClusterAccess {
    pub(super) source: Source,
    pub(super) node: String,
}

impl Args {
    /// Returns where what outlives a boot is kept.
    pub(super) fn data_dir(&self) -> &Path {
        let state = &*self.place.state_dir;
        // An agent that is tried beside the node's own is another one in this too.
        let usual =
            if state == Path::new(STATE_DIR) { Path::new("/var/lib/fettle") } else { state };
        self.data_dir.as_deref().unwrap_or(usual)
    }

    /// Returns whether ordered reboots are done.
    pub(super) const fn reboots(&self, config: &Config) -> bool {
        self.enable_reboots || config.reboot
    }

    /// Returns whose cluster the agent belongs to; none where it needs none.
    ///
    /// # Errors
    ///
    /// Says where there is nothing to be found, and what to name.
    pub(super) fn cluster(&self) -> Result<Option<ClusterAccess>, String> {
        if self.standalone {
            return Ok(None);
        }
        let source = Source::find(self.kubeconfig.clone())?;
        let named = self.node_name.clone();
        let named = named.or_else(|| std::env::var("NODE_NAME").ok().filter(|n| !n.is_empty()));
        let node = named.unwrap_or_else(host_name);
        let is_label = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || ".-".contains(c);
        if node.is_empty() || node.len() > NODE_NAME_MAX || !node.chars().all(is_label) {
            return Err(format!(
                "{node:?} is no Node's name: it has up to {NODE_NAME_MAX} of a-z, 0-9, '-' and '.'; \
                 name the Node with --node-name or NODE_NAME"
            ));
        }
        Ok(Some(ClusterAccess { source, node }))
    }
}

/// Returns the host's name as kubelets make a Node's of it: in lower case.
fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().trim().to_lowercase()
}

/// Most bytes of an object's name (RFC 1123, as `IsDNS1123Subdomain` has it).
const NODE_NAME_MAX: usize = 253;

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
            kubeconfig: None,
            node_name: None,
            data_dir: None,
            config: Some(config),
            enable_reboots: false,
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
    fn a_node_is_named_as_nodes_are() {
        let mut args = args(PathBuf::new(), PathBuf::new());
        args.standalone = false;
        args.kubeconfig = Some(PathBuf::from("/x"));
        for (name, is_right) in
            [("n1", true), ("a.b-c", true), ("N1", false), ("n/1", false), ("", false)]
        {
            args.node_name = Some(name.to_owned());
            assert_eq!(args.cluster().is_ok(), is_right, "{name}");
        }
        args.standalone = true;
        assert!(args.cluster().unwrap().is_none());
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
