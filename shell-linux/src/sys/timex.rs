//! How well the kernel thinks that its clock is kept.
//!
//! `adjtimex(2)`; `include/uapi/linux/timex.h`.

#![expect(unsafe_code, reason = "the C library takes a pointer to the structure that it fills")]

use core::mem::MaybeUninit;
use std::io;

/// The state of the kernel's clock discipline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    /// What the call returned: `TIME_OK` up to `TIME_ERROR`.
    pub state: i32,
    /// The `STA_` bits.
    pub status: i32,
    /// Maximum error in microseconds, which grows by itself until something sets it anew.
    pub max_error_us: i64,
    /// Estimated error in microseconds, as whoever keeps the clock gave it.
    pub estimated_error_us: i64,
}

impl Clock {
    /// Returns whether the kernel says that nothing keeps its clock.
    #[must_use]
    pub const fn is_unsynchronized(&self) -> bool {
        self.state == libc::TIME_ERROR || self.status & libc::STA_UNSYNC != 0
    }
}

/// Reads the state of the clock and changes nothing.
///
/// # Errors
///
/// Returns what the operating system says; some sandboxes forbid the call.
pub fn read() -> io::Result<Clock> {
    // Zeros: `modes` 0 asks to change nothing.
    let mut timex = MaybeUninit::<libc::timex>::zeroed();
    // SAFETY: the pointer is to a whole `timex` that may be written.
    let state = unsafe { libc::adjtimex(timex.as_mut_ptr()) };
    if state < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a `timex` is made of integers, and all of its bytes were set above.
    let timex = unsafe { timex.assume_init() };
    Ok(Clock {
        state,
        status: timex.status,
        max_error_us: timex.maxerror,
        estimated_error_us: timex.esterror,
    })
}

/// `struct timex` of the kernel on 64-bit machines.
const _: () = assert!(size_of::<libc::timex>() == 208);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_this_machine_can_be_read() {
        let clock = read().unwrap();
        assert!((0..=libc::TIME_ERROR).contains(&clock.state), "{clock:?}");
        assert!(clock.max_error_us >= 0 && clock.estimated_error_us >= 0, "{clock:?}");
    }

    #[test]
    fn either_sign_says_that_nothing_keeps_the_clock() {
        // state, status, unsynchronized
        for (state, status, want) in [
            (0, 0x2001, false),
            (libc::TIME_ERROR, 0x2001, true),
            (0, 0x0040, true),
            (libc::TIME_ERROR, 0x0040, true),
            (1, 0x2011, false),
        ] {
            let clock = Clock { state, status, max_error_us: 0, estimated_error_us: 0 };
            assert_eq!(clock.is_unsynchronized(), want, "{clock:?}");
        }
    }
}
