//! The two clocks: one to measure with, one to print.

use core::ops::Add;
use core::time::Duration;

use serde::{Deserialize, Serialize};

/// A reading of the monotonic clock, in milliseconds since boot.
///
/// Counts time spent suspended (`CLOCK_BOOTTIME`). Compare only readings taken on the same
/// machine since the same boot.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Instant(u64);

impl Instant {
    /// Wraps a millisecond count.
    #[must_use]
    pub const fn from_millis(since_boot_ms: u64) -> Self {
        Self(since_boot_ms)
    }

    /// Returns the count of milliseconds since boot.
    #[must_use]
    pub const fn millis(self) -> u64 {
        self.0
    }

    /// Returns how long before `self` `earlier` was; zero if it was not before.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, rhs: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(rhs.as_millis()).unwrap_or(u64::MAX)))
    }
}

/// A reading of the wall clock, in seconds since the Unix epoch.
///
/// May step, and differs between machines. It is data: what must outlive the process, as the
/// times on API objects do. Everything else is measured with [`Instant`].
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Wraps a count of seconds since the Unix epoch.
    #[must_use]
    pub const fn from_unix_secs(unix_s: i64) -> Self {
        Self(unix_s)
    }

    /// Returns the count of seconds since the Unix epoch.
    #[must_use]
    pub const fn unix_secs(self) -> i64 {
        self.0
    }

    /// Returns how long before `self` `earlier` was; zero if it was not before.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_secs(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, rhs: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(rhs.as_secs()).unwrap_or(i64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_never_runs_backwards_nor_over() {
        let (early, late) = (Instant::from_millis(5), Instant::from_millis(1_005));
        assert_eq!(late.since(early), Duration::from_secs(1));
        assert_eq!(early.since(late), Duration::ZERO);
        assert_eq!((Instant::from_millis(u64::MAX) + Duration::MAX).millis(), u64::MAX);
        let stamp = Timestamp::from_unix_secs(-5);
        assert_eq!((stamp + Duration::from_secs(7)).unix_secs(), 2);
        assert_eq!(stamp.since(stamp + Duration::from_secs(1)), Duration::ZERO);
        assert_eq!((Timestamp::from_unix_secs(i64::MAX) + Duration::MAX).unix_secs(), i64::MAX);
    }
}
