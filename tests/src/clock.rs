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
