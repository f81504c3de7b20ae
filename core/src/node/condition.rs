//! One NodeCondition: its status, reason and message, and when the status last changed.

use core::fmt;

use serde::{Deserialize, Serialize};

use crate::bounds::MESSAGE_MAX;
use crate::catalog::ConditionType;
use crate::text::Text;
use crate::time::Instant;

/// A message for people.
pub type Message = Text<MESSAGE_MAX>;

/// One condition, as it should stand on the Node.
///
/// Nothing is to be written before the first verdict: until then whatever an earlier run wrote
/// stays (decisions, "start-up").
///
/// # Invariants
///
/// * `transition_is_status`: `since` moves exactly when the status does.
/// * `silent_when_same`: the same verdict twice changes nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    held: Option<Held>,
}

/// What is known of a condition that has had a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// What was last judged.
    pub verdict: Verdict,
    /// When the status last changed.
    pub since: Instant,
}

/// What a judge says of a condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Whether the problem is there.
    pub status: Status,
    /// Why, in one word.
    pub reason: Reason,
    /// Why, in a sentence.
    pub message: Message,
}

/// Whether the problem is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// It is not.
    False,
    /// It is.
    True,
    /// Nobody can tell.
    Unknown,
}

/// Why a condition stands as it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reason {
    /// The check could not read what it looks at.
    CheckFailed,
    /// Somebody else writes a condition of the agent's.
    Contested,
    /// Something that was there is gone: a drive, a file, the GPUs.
    DriveGone,
    /// The catalogue's reason for `False`.
    Healthy,
    /// The kernel log cannot be read.
    LogUnreadable,
    /// The catalogue's reason for `True`.
    Problem,
}

/// How a verdict changed a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// The reason or the message is another one.
    Explanation,
    /// Nothing: a new process says again how it stands.
    Resumed,
    /// The status is another one.
    Transition,
}

impl Condition {
    /// Applies one verdict and returns what it changed.
    #[must_use]
    pub fn step(&mut self, now: Instant, verdict: Verdict) -> Option<Change> {
        let (since, change) = match &self.held {
            Some(held) if held.verdict == verdict => return None,
            Some(held) if held.verdict.status == verdict.status => {
                (held.since, Change::Explanation)
            }
            Some(_) | None => (now, Change::Transition),
        };
        self.held = Some(Held { verdict, since });
        Some(change)
    }

    /// Returns what is known, once there has been a verdict.
    #[must_use]
    pub const fn held(&self) -> Option<&Held> {
        self.held.as_ref()
    }

    /// Returns whether the problem is there.
    #[must_use]
    pub fn is_true(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.verdict.status == Status::True)
    }
}

impl Reason {
    /// Returns the word that stands as the reason of `condition`.
    #[must_use]
    pub fn name(self, condition: ConditionType) -> &'static str {
        match self {
            Self::CheckFailed => "CheckFailed",
            Self::Contested => "ConditionContested",
            Self::DriveGone if condition == ConditionType::DisksFailure => "NvmeDeviceGone",
            Self::DriveGone => condition.row().problem,
            Self::Healthy => condition.row().healthy,
            Self::LogUnreadable => "KernelLogUnreadable",
            Self::Problem => condition.row().problem,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::False => "False",
            Self::True => "True",
            Self::Unknown => "Unknown",
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::vec::Vec;

    use super::*;

    #[test]
    fn the_time_moves_with_the_status_only() {
        let mut condition = Condition::default();
        assert_eq!(condition.held(), None);
        // at (ms), verdict, change, since (ms)
        for (at, verdict, change, since) in [
            (10, verdict(Status::False, "a"), Some(Change::Transition), 10),
            (20, verdict(Status::False, "a"), None, 10),
            (30, verdict(Status::False, "b"), Some(Change::Explanation), 10),
            (40, verdict(Status::True, "b"), Some(Change::Transition), 40),
            (50, verdict(Status::Unknown, "b"), Some(Change::Transition), 50),
        ] {
            assert_eq!(condition.step(Instant::from_millis(at), verdict), change, "{at}");
            assert_eq!(condition.held().unwrap().since.millis(), since, "{at}");
        }
    }

    proptest! {
        #[test]
        fn invariants_hold_for_any_history(
            verdicts in proptest::collection::vec((0..3_u8, "[ab]"), 0..32),
        ) {
            let mut condition = Condition::default();
            let mut last: Option<Held> = None;
            for (at, (status, message)) in (1..).zip(verdicts) {
                let status = [Status::False, Status::True, Status::Unknown][usize::from(status)];
                let verdict = verdict(status, &message);
                let change = condition.step(Instant::from_millis(at), verdict.clone());
                let held = condition.held().unwrap().clone();
                let moved = last.as_ref().map(|last| last.since) != Some(held.since);
                let other = last.as_ref().map(|last| last.verdict.status) != Some(status);
                prop_assert_eq!(moved, other, "transition_is_status");
                prop_assert_eq!(change.is_none(), last.map(|l| l.verdict) == Some(verdict));
                last = Some(held);
            }
        }
    }

    fn verdict(status: Status, message: &str) -> Verdict {
        let reason = if status == Status::False { Reason::Healthy } else { Reason::Problem };
        Verdict { status, reason, message: Message::from_bytes(message.as_bytes()) }
    }

    #[test]
    fn reasons_are_the_catalogues() {
        let names: Vec<_> = [Reason::Problem, Reason::Healthy, Reason::LogUnreadable]
            .map(|reason| reason.name(ConditionType::ReadonlyFilesystem))
            .into();
        assert_eq!(
            names,
            ["FilesystemIsReadOnly", "FilesystemIsNotReadOnly", "KernelLogUnreadable"]
        );
    }
}
