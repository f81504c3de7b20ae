//! Standard output for machines: one JSON object a line.

use std::collections::BTreeMap;

use fettle_core::catalog::{CONDITIONS, ConditionType, EVENTS};
use fettle_core::journal::Stamp;
use fettle_core::node::agent::{Agent, Event, Output};
use fettle_core::node::condition::Change;
use fettle_core::node::fold::EventWrite;
use serde::Serialize;

use crate::clock;

/// One line that `run` and `replay` write.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Line<'a> {
    /// How a condition stands.
    Condition {
        /// When it was judged.
        time: String,
        /// Its type.
        name: &'a str,
        /// `True`, `False` or `Unknown`.
        status: String,
        /// Why, in one word.
        reason: &'a str,
        /// Why, in a sentence.
        message: &'a str,
        /// What the open faults are about.
        objects: Vec<&'a str>,
        /// When the status last changed.
        since: String,
        /// Whether this is such a change.
        transition: bool,
    },
    /// Findings of one reason and object.
    Event {
        /// When the kernel said the last of them.
        time: String,
        /// The reason again, under the name that conditions have.
        name: &'a str,
        /// Why.
        reason: &'a str,
        /// What they are about.
        object: Option<&'a str>,
        /// How many they are.
        count: u64,
        /// When the kernel said the first of them.
        first: String,
        /// When the kernel said the last of them.
        last: String,
        /// The last of them, in a sentence.
        message: String,
    },
    /// Records were overwritten before they were read.
    Lost {
        /// When that was noticed.
        time: String,
        /// How many.
        records: u64,
        /// How many in all.
        total: u64,
    },
    /// What the agent has seen, when it ends.
    Summary {
        /// When it ended.
        time: String,
        /// Records that were read.
        records: u64,
        /// Records that were overwritten before they were read.
        lost: u64,
        /// Records that user space wrote.
        userspace: u64,
        /// Records that do not parse.
        malformed: u64,
        /// Times that the kernel said that records were overwritten.
        overruns: u64,
        /// Findings by condition and event.
        findings: BTreeMap<&'a str, u64>,
    },
}

/// Returns the line for one output, if it is one that is shown.
#[must_use]
pub fn line<'a>(stamp: Stamp, agent: &'a Agent, output: &'a Output) -> Option<Line<'a>> {
    match output {
        Output::Condition { change, condition } => {
            condition_line(stamp, agent, *condition, *change)
        }
        Output::Event(Event::Findings(write)) => Some(event_line(stamp, write)),
        Output::Event(event @ Event::Cleared { condition, .. }) => {
            Some(cleared_line(stamp, event, *condition))
        }
        Output::Lost { records, total } => {
            Some(Line::Lost { time: time(stamp.wall_ms), records: *records, total: *total })
        }
        Output::Check { .. }
        | Output::ReadMounts
        | Output::ReadTask { .. }
        | Output::RestartUnit { .. } => None,
    }
}

/// Returns the line with which a run ends.
#[must_use]
pub fn summary<'a>(stamp: Stamp, agent: &Agent) -> Line<'a> {
    let counts = agent.counts();
    let conditions = CONDITIONS.iter().zip(&counts.conditions).map(|(row, n)| (row.name, *n));
    let events = EVENTS.iter().map(|row| (row.name, agent.event_total(row.reason)));
    Line::Summary {
        time: time(stamp.wall_ms),
        records: agent.log().records(),
        lost: agent.log().lost(),
        userspace: counts.userspace,
        malformed: counts.malformed,
        overruns: counts.overruns,
        findings: conditions.chain(events).filter(|(_, count)| *count > 0).collect(),
    }
}

fn condition_line(
    stamp: Stamp,
    agent: &Agent,
    condition: ConditionType,
    change: Change,
) -> Option<Line<'_>> {
    let held = agent.condition(condition)?;
    let of_log = agent.objects(condition).map(|object| object.as_str());
    Some(Line::Condition {
        time: time(stamp.wall_ms),
        name: condition.row().name,
        status: held.verdict.status.to_string(),
        reason: held.verdict.reason.name(condition),
        message: held.verdict.message.as_str(),
        objects: of_log.chain(agent.checks().objects(condition)).collect(),
        since: time(clock::wall_of(stamp, held.since)),
        transition: change == Change::Transition,
    })
}

fn event_line(stamp: Stamp, write: &EventWrite) -> Line<'_> {
    let last = time(clock::wall_of_log(stamp, write.newest.timestamp_us));
    let object = write.newest.object.as_str();
    Line::Event {
        time: last.clone(),
        name: write.reason.row().name,
        reason: write.reason.row().name,
        object: (!object.is_empty()).then_some(object),
        count: write.count,
        first: time(clock::wall_of_log(stamp, write.first_us)),
        last,
        message: write.message().to_string(),
    }
}

fn cleared_line(stamp: Stamp, event: &Event, condition: ConditionType) -> Line<'static> {
    let reason = event.reason().row().name;
    let at = time(stamp.wall_ms);
    Line::Event {
        time: at.clone(),
        name: reason,
        reason,
        object: Some(condition.row().name),
        count: 1,
        first: at.clone(),
        last: at,
        message: event.message().to_string(),
    }
}

/// Returns a wall time as RFC 3339, in UTC, with milliseconds.
#[must_use]
pub fn time(wall_ms: i64) -> String {
    match jiff::Timestamp::from_millisecond(wall_ms) {
        Ok(timestamp) => format!("{timestamp:.3}"),
        // Beyond the year 9999: a clock that says so is shown as it is.
        Err(_) => format!("{wall_ms} ms after 1970"),
    }
}

#[cfg(test)]
mod tests {
    use fettle_core::catalog::ReadingKind;
    use fettle_core::node::agent::{Input, Settings};
    use fettle_core::node::checks::Outcome;
    use fettle_core::node::reading::{FileSystem, Reading};
    use fettle_core::time::Instant;

    use super::*;

    #[test]
    fn a_condition_of_a_check_names_its_objects() {
        let stamp = Stamp { at: Instant::from_millis(0), log_us: 0, wall_ms: 0 };
        let mut agent = Agent::new(Settings::default());
        let (kind, mount_point) = (ReadingKind::FileSystems, "/var");
        let (used_bytes, usable_bytes, inodes_used, inodes) = (95, 100, 0, 0);
        let full = FileSystem { mount_point, used_bytes, usable_bytes, inodes_used, inodes };
        let reading = Input::Reading { kind, reading: Reading::FileSystem(full) };
        assert!(agent.step(stamp.at, reading).is_empty());
        let end = Input::CheckEnded { kind, outcome: Outcome::Complete };
        let outputs = agent.step(stamp.at, end);
        let mut lines = outputs.iter().filter_map(|output| line(stamp, &agent, output));
        let got = lines.find_map(|line| match line {
            Line::Condition { name, objects, .. } => Some((name, objects)),
            Line::Event { .. } | Line::Lost { .. } | Line::Summary { .. } => None,
        });
        assert_eq!(got, Some(("DiskUsageHigh", vec!["/var"])));
    }

    #[test]
    fn times_are_rfc_3339_whatever_the_clock_says() {
        assert_eq!(time(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(time(1_796_068_800_123), "2026-11-30T20:00:00.123Z");
        assert_eq!(time(i64::MAX), "9223372036854775807 ms after 1970");
    }
}
