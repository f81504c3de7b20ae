//! Reads the clocks, for the whole agent.
#![expect(clippy::disallowed_methods, reason = "this is the file that may read clocks")]

use core::time::Duration;

use fettle_core::journal::Stamp;
use fettle_core::time::{Instant, Timestamp};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Reads every clock once.
#[must_use]
pub fn stamp() -> Stamp {
    let since_boot = duration(clock_gettime(ClockId::Boottime));
    let log = duration(clock_gettime(ClockId::Monotonic));
    let wall = clock_gettime(ClockId::Realtime);
    let wall_ms = wall.tv_sec.saturating_mul(1000).saturating_add(wall.tv_nsec / 1_000_000);
    Stamp {
        at: Instant::from_millis(saturated(since_boot.as_millis())),
        log_us: saturated(log.as_micros()),
        wall_ms,
    }
}

/// Reads the wall clock.
#[must_use]
pub fn wall() -> Timestamp {
    Timestamp::from_unix_secs(clock_gettime(ClockId::Realtime).tv_sec)
}

/// Returns the wall time, in milliseconds, of a moment of the kernel log's clock.
#[must_use]
pub fn wall_of_log(stamp: Stamp, log_us: u64) -> i64 {
    let ago_us = i64::try_from(stamp.log_us.saturating_sub(log_us)).unwrap_or(i64::MAX);
    stamp.wall_ms.saturating_sub(ago_us / 1000)
}

/// Returns the wall time, in milliseconds, of a moment since boot.
#[must_use]
pub fn wall_of(stamp: Stamp, at: Instant) -> i64 {
    let ago_ms = i64::try_from(stamp.at.since(at).as_millis()).unwrap_or(i64::MAX);
    stamp.wall_ms.saturating_sub(ago_ms)
}

/// Returns the second in which a wall time, in milliseconds, is.
#[must_use]
pub const fn second(wall_ms: i64) -> Timestamp {
    Timestamp::from_unix_secs(wall_ms.div_euclid(1000))
}

fn duration(time: Timespec) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn saturated(count: u128) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_told_by_how_long_ago_they_were() {
        let stamp = Stamp { at: Instant::from_millis(9_000), log_us: 8_000_000, wall_ms: 100_000 };
        assert_eq!(wall_of_log(stamp, 7_500_000), 99_500);
        assert_eq!(wall_of(stamp, Instant::from_millis(4_000)), 95_000);
        assert_eq!(wall_of_log(stamp, 9_000_000), 100_000);
    }

    #[test]
    fn clocks_run() {
        let (before, after) = (stamp(), stamp());
        assert!(after.at >= before.at && after.log_us >= before.log_us);
        assert!(before.wall_ms > 0);
    }
}
