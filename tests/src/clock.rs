//! The clocks of the tests, and waits that end.

use core::time::Duration;
use std::thread::sleep;
use std::time::{Instant, SystemTime};

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

/// Returns the clock of the kernel log, in microseconds.
///
/// # Panics
///
/// If the clock is before the boot.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "a test that writes a kernel log needs its clock")]
pub fn since_boot_us() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).expect("it counts up from zero");
    seconds * 1_000_000 + u64::try_from(now.tv_nsec).expect("it is no fraction") / 1_000
}

/// Asks `ask` again and again until it has an answer, for at most `limit`.
pub fn wait_for<T>(limit: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let start = now();
    loop {
        if let Some(answer) = ask() {
            return Some(answer);
        }
        if start.elapsed() > limit {
            return None;
        }
        sleep(PAUSE);
    }
}

/// Between two questions.
const PAUSE: Duration = Duration::from_millis(2);
