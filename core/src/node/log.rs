//! Follows the kernel log by sequence number: what is new, what is lost, whether it can be read.

use serde::{Deserialize, Serialize};

/// Where the agent stands in the kernel log of this boot.
///
/// # Invariants
///
/// * `once`: no sequence number is accepted twice.
/// * `all_counted`: accepted plus lost records are all numbers from the first to the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Log {
    first: Option<u64>,
    last: Option<u64>,
    lost: u64,
    state: LogState,
}

/// Whether the kernel log can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LogState {
    /// Records of the past are still being read.
    CatchingUp,
    /// It cannot be read.
    Down {
        /// The operating system's error number.
        errno: i32,
    },
    /// Everything up to now has been read.
    Live,
}

/// What a sequence number says of its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// It is new; `lost` records before it were overwritten unread.
    New {
        /// How many.
        lost: u64,
    },
    /// It was read before.
    Seen,
}

impl Log {
    /// Returns a log of which nothing has been read.
    #[must_use]
    pub const fn new() -> Self {
        Self { first: None, last: None, lost: 0, state: LogState::CatchingUp }
    }

    /// Accepts the record numbered `sequence`, unless it was read before.
    pub fn accept(&mut self, sequence: u64) -> Place {
        let expected = self.last.map(|last| last.saturating_add(1));
        if expected.is_some_and(|expected| sequence < expected) {
            return Place::Seen;
        }
        if matches!(self.state, LogState::Down { .. }) {
            self.state = LogState::CatchingUp;
        }
        let lost = expected.map_or(0, |expected| sequence.saturating_sub(expected));
        self.first = self.first.or(Some(sequence));
        self.last = Some(sequence);
        self.lost = self.lost.saturating_add(lost);
        Place::New { lost }
    }

    /// Notes that everything up to now has been read.
    pub fn caught_up(&mut self) {
        self.state = LogState::Live;
    }

    /// Notes that the log cannot be read.
    pub fn down(&mut self, errno: i32) {
        self.state = LogState::Down { errno };
    }

    /// Notes that a new process has to read what came meanwhile.
    pub fn restarted(&mut self) {
        self.state = LogState::CatchingUp;
    }

    /// Returns whether the log can be read.
    #[must_use]
    pub const fn state(&self) -> LogState {
        self.state
    }

    /// Returns how many records were overwritten before they were read.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns the number of the last record that was read.
    #[must_use]
    pub const fn last(&self) -> Option<u64> {
        self.last
    }

    /// Returns how many records of this boot were overwritten before the first one was read.
    #[must_use]
    pub fn before_first(&self) -> u64 {
        self.first.unwrap_or(0)
    }

    /// Returns how many records were read.
    #[must_use]
    pub fn records(&self) -> u64 {
        match (self.first, self.last) {
            (Some(first), Some(last)) => {
                last.saturating_sub(first).saturating_add(1).saturating_sub(self.lost)
            }
            (None, _) | (_, None) => 0,
        }
    }
}

impl Default for Log {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    use super::*;

    #[test]
    fn counts_the_gap_and_skips_what_it_knows() {
        let mut log = Log::new();
        // sequence, place
        for (sequence, place) in [
            (100, Place::New { lost: 0 }),
            (5100, Place::New { lost: 4999 }),
            (100, Place::Seen),
            (5100, Place::Seen),
            (5101, Place::New { lost: 0 }),
        ] {
            assert_eq!(log.accept(sequence), place, "{sequence}");
        }
        assert_eq!((log.before_first(), log.lost(), log.records()), (100, 4999, 3));
    }

    #[test]
    fn a_record_ends_an_outage_but_is_not_yet_all_of_them() {
        let mut log = Log::new();
        log.down(9);
        assert_eq!(log.state(), LogState::Down { errno: 9 });
        let _ = log.accept(1);
        assert_eq!(log.state(), LogState::CatchingUp);
        log.caught_up();
        let _ = log.accept(2);
        assert_eq!(log.state(), LogState::Live);
    }

    proptest! {
        #[test]
        fn invariants_hold_for_any_numbers(sequences: Vec<u64>) {
            let mut log = Log::new();
            let mut accepted = BTreeSet::new();
            for sequence in sequences {
                if let Place::New { .. } = log.accept(sequence) {
                    prop_assert!(accepted.insert(sequence), "once");
                }
            }
            if let (Some(first), Some(last)) = (accepted.first(), accepted.last()) {
                let count = u64::try_from(accepted.len()).unwrap();
                prop_assert_eq!(count - 1 + log.lost(), last - first, "all_counted");
            }
        }
    }
}
