//! How often something that goes on happening is written: soon at first, later hourly.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::Instant;

/// How often something was written, and when it may be written again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pace {
    writes: u32,
    due: Instant,
}

impl Pace {
    /// Notes a write: the first follow-ups come soon, later ones hourly.
    pub(super) fn note(&mut self, now: Instant) {
        let gap = GAPS.get(usize::try_from(self.writes).unwrap_or(usize::MAX));
        self.writes = self.writes.saturating_add(1);
        self.due = now + gap.copied().unwrap_or(HOUR);
    }

    /// Returns when it may be written again.
    #[must_use]
    pub(super) const fn due(&self) -> Instant {
        self.due
    }
}

/// How long after its first, second and third write something is written again.
const GAPS: [Duration; 3] =
    [Duration::from_secs(60), Duration::from_secs(300), Duration::from_secs(900)];

/// How long after every later one.
pub(super) const HOUR: Duration = Duration::from_secs(3600);
