//! The clocks of the tests, and waits that end.

use core::time::Duration;
use std::thread::sleep;
use std::time::{Instant, SystemTime};

use rustix::time::{ClockId, Timespec, clock_gettime, clock_settime};

/// Returns the monotonic time.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "a test measures; what it tests reads no clock here")]
pub fn now() -> Instant {
    Instant::now()
}

/// Returns the time of day.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "a certificate that a test makes has to be valid")]
pub fn wall() -> SystemTime {
    SystemTime::now()
}

/// Returns the clock of the kernel log, in microseconds since boot.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "a test writes a kernel log of its own")]
pub fn since_boot_us() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let duration = Duration::try_from(now).unwrap_or_default();
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// The wall clock, moved forward; dropping it moves it back.
#[derive(Debug)]
pub struct MovedClock {
    by_s: i64,
}

impl MovedClock {
    /// Moves the wall clock forward.
    ///
    /// # Panics
    ///
    /// If that is not allowed: it needs root with `CAP_SYS_TIME`.
    #[must_use]
    pub fn forward(by_s: i64) -> Self {
        move_clock(by_s);
        Self { by_s }
    }
}

impl Drop for MovedClock {
    fn drop(&mut self) {
        move_clock(-self.by_s);
    }
}

#[expect(clippy::disallowed_methods, reason = "a test moves the clock by what it shows")]
fn move_clock(by_s: i64) {
    let now = clock_gettime(ClockId::Realtime);
    let moved = Timespec { tv_sec: now.tv_sec + by_s, ..now };
    clock_settime(ClockId::Realtime, moved).expect("root with CAP_SYS_TIME may set the clock");
}

/// Asks `ask` again and again until it has an answer, for at most `limit`.
pub fn wait_for<T>(limit: Duration, ask: impl FnMut() -> Option<T>) -> Option<T> {
    wait_every(PAUSE, limit, ask)
}

/// Asks `ask` again after each `pause` until it has an answer, for at most `limit`.
pub fn wait_every<T>(
    pause: Duration,
    limit: Duration,
    mut ask: impl FnMut() -> Option<T>,
) -> Option<T> {
    let start = now();
    loop {
        if let Some(answer) = ask() {
            return Some(answer);
        }
        if start.elapsed() > limit {
            return None;
        }
        sleep(pause);
    }
}

/// Between two questions.
const PAUSE: Duration = Duration::from_millis(2);
