//! Reads the state of the kernel's clock.

use fettle_core::catalog::ReadingKind;
use fettle_core::node::checks::Outcome;
use fettle_core::node::reading::{Clock, Reading};

use crate::probe::Probe;
use crate::probe::batch::{Batch, failed};
use crate::sys::timex;

/// The probe of `ClockNotSynchronized`.
#[derive(Debug)]
pub struct KernelClock;

impl Probe for KernelClock {
    fn read(&mut self, batch: &mut Batch) -> Outcome {
        match timex::read() {
            Ok(clock) => {
                batch.push(&Reading::Clock(Clock {
                    unsynchronized: clock.is_unsynchronized(),
                    max_error_us: clock.max_error_us,
                    estimated_error_us: clock.estimated_error_us,
                }));
                Outcome::Complete
            }
            Err(problem) => failed(&format!("the kernel does not say how its clock is: {problem}")),
        }
    }

    fn kind(&self) -> ReadingKind {
        ReadingKind::Clock
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_can_always_be_read() {
        let mut batch = Batch::default();
        assert_eq!(KernelClock.read(&mut batch), Outcome::Complete);
        assert!(matches!(batch.readings().next(), Some(Reading::Clock(_))));
    }
}
