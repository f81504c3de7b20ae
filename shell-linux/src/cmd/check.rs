//! `check`: runs every check or one, once, and says how each condition stands.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::PathBuf;

use fettle_core::catalog::{CONDITIONS, ConditionRow, ConditionType, ReadingKind};
use fettle_core::journal::Stamp;
use fettle_core::node::agent::{Agent, Input, Output, Settings};
use fettle_core::node::checks::Schedule;
use fettle_core::node::condition::Status;
use serde::Serialize;

use crate::clock;
use crate::config::Config;
use crate::probe;
use crate::probe::place::{Place, PlaceArgs};
use crate::probe::runner::{Finished, Runner};
use crate::publish::stdout::Format;
use crate::store::boot_id;
use crate::store::state::StateFile;
use crate::sys::kmsg::{Device, Reading};
use crate::sys::mounts;
use crate::table;

/// What to check.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Condition to check; without it, every one
    #[arg(value_name = "NAME", value_parser = condition)]
    pub name: Option<ConditionType>,
    /// The configuration; by default /etc/fettle/agent.yaml if there is one
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The kernel log device
    #[arg(long, default_value = "/dev/kmsg", value_name = "PATH")]
    pub kmsg: PathBuf,
    /// Where the node and the agent's own files are.
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// What `check` found, from the gravest to the mildest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Finding {
    /// A condition is `True`.
    Problem,
    /// None is, but nobody can tell of some.
    Unknown,
    /// All that applies is well.
    Healthy,
}

/// Runs the checks and prints what they found.
///
/// # Errors
///
/// Returns why `out` cannot be written to.
pub async fn run(
    args: &Args,
    config: &Config,
    out: &mut impl Write,
    format: Format,
) -> io::Result<Finding> {
    let wanted = |row: &&ConditionRow| args.name.is_none_or(|name| name == row.condition);
    let kinds: Vec<ReadingKind> = CONDITIONS.iter().filter(wanted).map(|row| row.reading).collect();
    let place = args.place.place(true);
    let mut probes = probe::all(&place, config);
    probes.retain(|probe| kinds.contains(&probe.kind()));
    let mut once = Once::new(place, config, Runner::new(probes));
    // I/O errors of disks stand there too.
    let of_log = [ReadingKind::Disks, ReadingKind::KernelLog, ReadingKind::Own];
    if of_log.iter().any(|kind| kinds.contains(kind)) {
        once.read_log(args);
    }
    once.run_probes().await;
    let rows = CONDITIONS.iter().filter(wanted).map(|row| once.row(row)).collect::<Vec<_>>();
    match format {
        Format::Json => write_json(out, &rows)?,
        Format::Table => write_table(out, &rows)?,
    }
    Ok(gravest(&rows, args.name.is_some()))
}

/// A core that is asked once.
struct Once {
    agent: Box<Agent>,
    settings: Settings,
    runner: Runner,
    outstanding: BTreeSet<usize>,
    place: Place,
}

impl Once {
    /// Goes on from what the running agent remembers, if there is one; it writes nothing.
    fn new(place: Place, config: &Config, runner: Runner) -> Self {
        let mut settings = place.settings(config);
        settings.schedule.probes = runner.offers();
        let known = StateFile::new(&place.state_dir, boot_id()).load().unwrap_or_default();
        let known = known.map(|(agent, _)| agent);
        let agent = known.unwrap_or_else(|| Box::new(Agent::new(settings.clone())));
        let mut once = Self { agent, settings, runner, outstanding: BTreeSet::new(), place };
        // The checks start once the log has been read.
        let settings = Settings { schedule: Schedule::default(), ..once.settings.clone() };
        once.apply(Input::Started(settings));
        once
    }

    /// Reads the kernel log as far as it goes.
    fn read_log(&mut self, args: &Args) {
        let mut device = match Device::open(&args.kmsg) {
            Ok(device) => device,
            Err(problem) => {
                let errno = problem.raw_os_error().unwrap_or(0);
                return self.apply(Input::LogDown { errno });
            }
        };
        loop {
            match device.read() {
                Reading::Record(record) => self.apply(Input::Record(record)),
                Reading::Overrun => self.apply(Input::LogOverrun),
                Reading::Failed { errno } => return self.apply(Input::LogDown { errno }),
                Reading::Empty => return self.apply(Input::LogCaughtUp),
            }
        }
    }

    async fn run_probes(&mut self) {
        let settings = self.settings.clone();
        self.apply(Input::Configured(settings));
        while !self.outstanding.is_empty() {
            if let Some(finished) = self.runner.next_in_time().await {
                self.on_finished(&finished);
            }
        }
    }

    fn on_finished(&mut self, finished: &Finished) {
        let kind = finished.kind;
        self.outstanding.remove(&kind.index());
        for reading in finished.batch.readings() {
            self.apply(Input::Reading { kind, reading });
        }
        self.apply(Input::CheckEnded { kind, outcome: finished.outcome.clone() });
    }

    fn apply(&mut self, input: Input<'_>) {
        let Stamp { at, .. } = clock::stamp();
        for output in self.agent.step(at, input) {
            match output {
                Output::Check { kind } => {
                    self.outstanding.insert(kind.index());
                    if let Some(finished) = self.runner.start(at, kind) {
                        self.on_finished(&finished);
                    }
                }
                Output::ReadMounts => match mounts::read(&self.place.root) {
                    Ok(table) => self.apply(Input::Mounts(&table)),
                    Err(_) => self.apply(Input::MountsUnreadable),
                },
                Output::Condition { .. }
                | Output::Event(_)
                | Output::Lost { .. }
                | Output::ReadTask { .. }
                // A check changes nothing on the node.
                | Output::RestartUnit { .. } => {}
            }
        }
    }

    fn row(&self, row: &ConditionRow) -> Row<'_> {
        let name = row.name;
        if let Some(held) = self.agent.condition(row.condition) {
            return Row {
                name,
                status: held.verdict.status.into(),
                reason: held.verdict.reason.name(row.condition),
                message: held.verdict.message.as_str(),
            };
        }
        if self.agent.checks().is_not_applicable(row.reading) {
            return Row {
                name,
                status: RowStatus::NotApplicable,
                reason: "NotApplicable",
                message: "",
            };
        }
        Row { name, status: RowStatus::NotRead, reason: "NotRead", message: "" }
    }
}

/// How one condition stands.
#[derive(Debug, Serialize)]
struct Row<'a> {
    name: &'static str,
    status: RowStatus,
    reason: &'static str,
    message: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
enum RowStatus {
    False,
    NotApplicable,
    /// This version has no probe for it.
    NotRead,
    True,
    Unknown,
}

impl From<Status> for RowStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::False => Self::False,
            Status::True => Self::True,
            Status::Unknown => Self::Unknown,
        }
    }
}

/// What cannot be read is no fault of a node, unless it is what was asked for.
fn gravest(rows: &[Row<'_>], named: bool) -> Finding {
    let any = |status| rows.iter().any(|row| row.status == status);
    if any(RowStatus::True) {
        Finding::Problem
    } else if any(RowStatus::Unknown) || (named && any(RowStatus::NotRead)) {
        Finding::Unknown
    } else {
        Finding::Healthy
    }
}

fn write_json(out: &mut impl Write, rows: &[Row<'_>]) -> io::Result<()> {
    for row in rows {
        serde_json::to_writer(&mut *out, row)?;
        writeln!(out)?;
    }
    Ok(())
}

/// Problems stand first, what does not apply stands apart.
fn write_table(out: &mut impl Write, rows: &[Row<'_>]) -> io::Result<()> {
    let mut table = table::new(&["CONDITION", "STATUS", "REASON", "MESSAGE"]);
    for status in [RowStatus::True, RowStatus::Unknown, RowStatus::False] {
        for row in rows.iter().filter(|row| row.status == status) {
            table.add_row([row.name, &format!("{status:?}"), row.reason, row.message]);
        }
    }
    if table.row_count() > 0 {
        writeln!(out, "{}", table::render(&table))?;
    }
    write_names(out, rows, RowStatus::NotApplicable, "Not applicable here")?;
    write_names(out, rows, RowStatus::NotRead, "Not read by this version")
}

fn write_names(
    out: &mut impl Write,
    rows: &[Row<'_>],
    status: RowStatus,
    head: &str,
) -> io::Result<()> {
    let names: Vec<_> =
        rows.iter().filter(|row| row.status == status).map(|row| row.name).collect();
    if names.is_empty() {
        return Ok(());
    }
    writeln!(out, "{head}: {}", names.join(", "))
}

fn condition(name: &str) -> Result<ConditionType, String> {
    ConditionType::by_name(name)
        .ok_or_else(|| format!("there is no condition {name}; `catalog` lists them"))
}
