//! The error counts of memory controllers, beside what the kernel log says of them.

use serde::{Deserialize, Serialize};

use crate::bounds::MEMORY_CONTROLLERS_MAX;
use crate::node::reading::MemoryController;
use crate::node::rules::{Detail, Finding, Object};
use crate::text::Text;
use crate::time::Instant;
use crate::wire::scan::decimal;

/// What every memory controller has counted, and how much of it the kernel log has told.
///
/// A line and the count that it tells of come to the agent on two ways. So a line explains the
/// rise that the reading before it, after it or next found, and a rise is told when the reading
/// after it finds it still unexplained. Full means that a further controller is not followed.
///
/// # Invariants
///
/// * `told_once`: of each error that a counter counts after its first reading, a line or one
///   finding tells, never two findings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Controllers {
    known: heapless::Vec<Controller, MEMORY_CONTROLLERS_MAX>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Controller {
    number: u64,
    corrected: Counter,
    uncorrected: Counter,
}

/// One count of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Counter {
    /// What the last reading said.
    last: u64,
    /// Errors of which lines told since the last reading.
    told: u64,
    /// Errors of which lines told before it, and that no rise has used up.
    told_before: u64,
    /// Errors of the last rise that no line has explained yet.
    unexplained: u64,
}

impl Controllers {
    /// Returns controllers of which nothing has been read.
    #[must_use]
    pub const fn new() -> Self {
        Self { known: heapless::Vec::new() }
    }

    /// Notes a line of the kernel log, if it tells of memory errors.
    ///
    /// What was told before a controller's first reading is in that reading.
    pub fn note_line(&mut self, finding: &Finding) {
        if let Detail::Edac { controller, count, uncorrected } = finding.detail
            && let Some(known) = self.known(controller)
        {
            let counter = if uncorrected { &mut known.uncorrected } else { &mut known.corrected };
            counter.told = counter.told.saturating_add(count);
        }
    }

    /// Notes a reading, and returns what the one before it found and no line has explained.
    pub fn note_counts(&mut self, now: Instant, reading: &MemoryController<'_>) -> Option<Finding> {
        let number = decimal(reading.name.as_bytes().strip_prefix(b"mc")?)?;
        let Some(known) = self.known(number) else {
            let corrected = Counter::starting_at(reading.corrected);
            let uncorrected = Counter::starting_at(reading.uncorrected);
            let _ = self.known.push(Controller { number, corrected, uncorrected });
            return None;
        };
        let corrected = known.corrected.note(reading.corrected);
        let uncorrected = known.uncorrected.note(reading.uncorrected);
        if (corrected, uncorrected) == (0, 0) {
            return None;
        }
        Some(Finding {
            object: Object::from_bytes(reading.name.as_bytes()),
            detail: Detail::EdacCount { corrected, uncorrected },
            line: Text::display(format_args!(
                "its counters stand at {} corrected and {} uncorrected",
                reading.corrected, reading.uncorrected
            )),
            // The log's clock stands still while the node sleeps, which nodes do not.
            timestamp_us: now.micros(),
        })
    }

    fn known(&mut self, number: u64) -> Option<&mut Controller> {
        self.known.iter_mut().find(|known| known.number == number)
    }
}

impl Counter {
    const fn starting_at(count: u64) -> Self {
        Self { last: count, told: 0, told_before: 0, unexplained: 0 }
    }

    /// Notes what a reading says, and returns the errors of the rise before that stay unexplained.
    ///
    /// A count that fell is that of a driver that was loaded anew: where it stands now, it starts.
    fn note(&mut self, count: u64) -> u64 {
        let mut rise = count.saturating_sub(self.last);
        self.last = count;
        let mut told = core::mem::take(&mut self.told);
        explain(&mut self.unexplained, &mut told);
        explain(&mut rise, &mut self.told_before);
        explain(&mut rise, &mut told);
        self.told_before = told;
        core::mem::replace(&mut self.unexplained, rise)
    }
}

/// Takes from `errors` those of which lines `told`, and uses these up.
fn explain(errors: &mut u64, told: &mut u64) {
    let both = (*errors).min(*told);
    *errors = errors.saturating_sub(both);
    *told = told.saturating_sub(both);
}

#[cfg(test)]
mod tests {
    use std::format;
    use std::string::ToString;

    use super::*;
    use crate::node::rules::classify;
    use crate::wire::kmsg::Record;

    #[test]
    fn only_a_rise_that_no_line_explains_is_told() {
        // what the case shows: for each reading the lines before it, its count, what is told
        for (case, readings) in [
            ("the first reading is the baseline", &[(0, 7, 0), (0, 7, 0), (0, 7, 0)][..]),
            ("lines before it are in the baseline", &[(3, 7, 0), (0, 10, 0), (0, 10, 3)]),
            ("unexplained", &[(0, 0, 0), (0, 2, 0), (0, 2, 2), (0, 2, 0)]),
            ("explained", &[(0, 0, 0), (2, 2, 0), (0, 2, 0), (0, 2, 0)]),
            ("explained by a line that comes late", &[(0, 0, 0), (0, 2, 0), (2, 2, 0), (0, 2, 0)]),
            ("explained by a line that comes early", &[(0, 0, 0), (2, 0, 0), (0, 2, 0), (0, 2, 0)]),
            ("partly explained", &[(0, 0, 0), (2, 5, 0), (0, 5, 3), (0, 5, 0)]),
            ("one line explains one rise", &[(0, 0, 0), (2, 2, 0), (0, 4, 0), (0, 4, 2)]),
            (
                "an old line explains nothing",
                &[(0, 0, 0), (2, 0, 0), (0, 0, 0), (0, 2, 0), (0, 2, 2)],
            ),
            ("a rise in each minute", &[(0, 0, 0), (0, 1, 0), (0, 3, 1), (0, 6, 2), (0, 6, 3)]),
            ("reset", &[(0, 9, 0), (0, 0, 0), (0, 0, 0), (0, 1, 0), (0, 1, 1)]),
            ("reset to more than nothing", &[(0, 9, 0), (0, 3, 0), (0, 3, 0)]),
            ("a rise before a reset", &[(0, 8, 0), (0, 9, 0), (0, 0, 1), (0, 0, 0)]),
        ] {
            for uncorrected in [false, true] {
                let mut controllers = Controllers::new();
                for &(told, count, want) in readings {
                    controllers.note_line(&line(1, told, uncorrected));
                    let reading = reading("mc1", count, uncorrected);
                    let found = controllers.note_counts(Instant::from_millis(1), &reading);
                    assert_eq!(found.map_or(0, |found| errors(&found)), want, "{case} at {count}");
                }
            }
        }
    }

    #[test]
    fn a_controller_is_explained_by_its_own_lines_of_the_same_kind() {
        let mut controllers = Controllers::new();
        let now = Instant::from_millis(0);
        for count in [0, 2, 2] {
            controllers.note_line(&line(2, count, false));
            controllers.note_line(&line(1, count, true));
            let found = controllers.note_counts(now, &reading("mc1", count, false));
            let other = controllers.note_counts(now, &reading("mc2", count, false));
            assert_eq!(other, None);
            if let Some(found) = found {
                assert_eq!(
                    found.to_string(),
                    "mc1 counted 2 corrected and 0 uncorrected memory errors of which the kernel \
                     log does not tell: its counters stand at 2 corrected and 0 uncorrected"
                );
                return;
            }
        }
        panic!("never told");
    }

    #[test]
    fn a_controller_too_many_or_of_another_name_is_not_followed() {
        let mut controllers = Controllers::new();
        let now = Instant::from_millis(0);
        for count in [0, 2, 2] {
            for number in (0..20).rev() {
                let name = format!("mc{number}");
                let found = controllers.note_counts(now, &reading(&name, count, false));
                assert!(found.is_none() || number >= 4, "{name}");
            }
            assert_eq!(controllers.note_counts(now, &reading("mcx", count, false)), None);
        }
        assert_eq!(controllers.known.len(), MEMORY_CONTROLLERS_MAX);
    }

    fn line(controller: u64, count: u64, uncorrected: bool) -> Finding {
        let kind = if uncorrected { "UE" } else { "CE" };
        let line = format!("EDAC MC{controller}: {count} {kind} memory read error on D1 (x)");
        classify(&Record::bare(line.as_bytes())).into_iter().next().unwrap()
    }

    fn reading(name: &str, count: u64, uncorrected: bool) -> MemoryController<'_> {
        let (corrected, uncorrected) = if uncorrected { (0, count) } else { (count, 0) };
        MemoryController { name, corrected, uncorrected }
    }

    fn errors(finding: &Finding) -> u64 {
        let Detail::EdacCount { corrected, uncorrected } = finding.detail else {
            return 0;
        };
        corrected + uncorrected
    }
}
