//! The one clock of the measurements.

use core::time::Duration;
use std::time::Instant;

/// Time since it was started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "measures; nothing is decided by it")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }

    /// Returns what is left of `limit`.
    pub(crate) fn left(self, limit: Duration) -> Duration {
        limit.saturating_sub(self.elapsed())
    }
}
