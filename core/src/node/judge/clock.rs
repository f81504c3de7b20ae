//! Whether something keeps the node's clock right.

use super::{Judgement, Limits, Memory, note};
use crate::node::reading::Reading;
use crate::time::Instant;

/// Judges `ClockNotSynchronized`.
///
/// chrony without `rtcsync` leaves the kernel's flag set for ever, so the flag counts only when the
/// maximum error shows that nothing has corrected the clock for hours (decisions, H04, H05).
pub fn synchronized(_: Instant, reading: &Reading<'_>, _: &Limits, _: &mut Memory) -> Judgement {
    let Reading::Clock(clock) = reading else {
        return Judgement::NotMine;
    };
    let (estimated_ms, max_ms) = (clock.estimated_error_us / 1000, clock.max_error_us / 1000);
    if clock.unsynchronized && clock.max_error_us >= MAX_ERROR_US {
        return Judgement::Problem(note(format_args!(
            "nothing has corrected the clock for about {HOURS_TENTHS_WHOLE}.{HOURS_TENTHS} h or \
             more: unsynchronized, maximum error {max_ms} ms, estimated error {estimated_ms} ms"
        )));
    }
    if clock.estimated_error_us > ESTIMATED_ERROR_US {
        return Judgement::Problem(note(format_args!(
            "the estimated error of the clock is {estimated_ms} ms, more than 5000 ms"
        )));
    }
    Judgement::Healthy
}

/// The kernel stops counting the maximum error here (`NTP_PHASE_LIMIT`, `kernel/time/ntp.c`).
const MAX_ERROR_US: i64 = 16_000_000;

/// The seed's limit.
const ESTIMATED_ERROR_US: i64 = 5_000_000;

/// The maximum error grows by 500 ppm: 16 s take 32,000 s, which is 8.9 h.
const HOURS_TENTHS_WHOLE: u32 = 8;
const HOURS_TENTHS: u32 = 9;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::reading::Clock;

    #[test]
    fn a_flag_alone_is_no_fault_and_a_large_error_always_is() {
        // unsynchronized, maximum error, estimated error, problem
        for (unsynchronized, max_error_us, estimated_error_us, problem) in [
            (true, 9_776, 210, false),            // H04: chrony without rtcsync
            (true, 16_000_000, 16_000_000, true), // H05: free-running
            (true, 15_999_999, 5_000_000, false),
            (false, 16_000_000, 0, false),
            (false, 0, 5_000_001, true),
        ] {
            let clock = Clock { unsynchronized, max_error_us, estimated_error_us };
            let reading = Reading::Clock(clock);
            let judgement = synchronized(
                Instant::from_millis(0),
                &reading,
                &Limits::default(),
                &mut Memory::None,
            );
            assert_eq!(matches!(judgement, Judgement::Problem(_)), problem, "{clock:?}");
        }
    }
}
