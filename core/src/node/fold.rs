//! Folds events: the first of its kind at once, then counts, within a budget for each reason.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::bounds::{EVENT_WRITES_MAX, FOLDED_MAX};
use crate::catalog::EventReason;
use crate::node::rules::{Finding, Object};
use crate::text::Text;
use crate::time::Instant;
use crate::window::Window;

/// Every (reason, object) that has happened lately, and what of it has not been written.
///
/// Full means that the pair seen longest ago makes room; what of it was not written yet is added
/// to its reason's `others`, so that no count is lost.
///
/// # Invariants
///
/// * `all_counted`: the counts of all writes and of what is still unwritten add up to all events.
/// * `budget`: no reason is written more than [`EVENT_WRITES_MAX`] times an hour.
/// * `first_at_once`: the first event of a reason is written in the step that notes it, unless it
///   waits for the rest of its block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fold {
    entries: heapless::Vec<Entry, FOLDED_MAX>,
    budgets: [Budget; EventReason::COUNT],
}

/// One pair of reason and object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    reason: EventReason,
    /// The newest finding; its object is the key.
    newest: Finding,
    /// What later lines of the same block added.
    extra: Extra,
    /// When the kernel said the first one that is not written.
    first_us: u64,
    last: Instant,
    unwritten: u64,
    writes: u32,
    due: Instant,
}

/// What one reason may still write, and what was folded into it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Budget {
    written: Window<EVENT_WRITES_MAX>,
    /// Events of pairs that had to make room.
    others: u64,
    total: u64,
}

/// What later lines of a finding's block said, as `name: value` pairs.
pub type Extra = Text<96>;

/// One event to write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventWrite {
    /// Its reason.
    pub reason: EventReason,
    /// The newest of the findings that it stands for.
    pub newest: Finding,
    /// What later lines of the newest finding's block said.
    pub extra: Extra,
    /// How many findings it stands for.
    pub count: u64,
    /// When the kernel said the first of them, in microseconds since boot without suspend; the
    /// newest finding says when it said the last.
    pub first_us: u64,
}

impl Fold {
    /// Returns a fold in which nothing has happened.
    #[must_use]
    pub fn new() -> Self {
        Self { entries: heapless::Vec::new(), budgets: Default::default() }
    }

    /// Notes one event, to be written no sooner than `delay` from now.
    pub fn note(&mut self, now: Instant, reason: EventReason, finding: Finding, delay: Duration) {
        if let Some(budget) = self.budgets.get_mut(reason.index()) {
            budget.total = budget.total.saturating_add(1);
        }
        match self.entry(reason, &finding.object) {
            Some(entry) => {
                if entry.unwritten == 0 {
                    entry.first_us = finding.timestamp_us;
                }
                entry.newest = finding;
                entry.extra = Extra::new();
                entry.last = now;
                entry.unwritten = entry.unwritten.saturating_add(1);
            }
            None => self.insert(Entry {
                reason,
                first_us: finding.timestamp_us,
                newest: finding,
                extra: Extra::new(),
                last: now,
                unwritten: 1,
                writes: 0,
                due: now + delay,
            }),
        }
    }

    /// Adds what a later line of the newest finding's block said about (`reason`, `object`).
    pub fn enrich(&mut self, reason: EventReason, object: &Object, name: &str, value: &[u8]) {
        if let Some(entry) = self.entry(reason, object) {
            push_extra(&mut entry.extra, name, value);
        }
    }

    /// Gives the object of (`reason`, no object) a name, once a later line says it.
    pub fn name(&mut self, reason: EventReason, object: &Object) {
        let known = self.entry(reason, object).map(|known| (known.writes, known.due));
        let Some(unnamed) = self.entry(reason, &Object::new()) else {
            return;
        };
        unnamed.newest.object = object.clone();
        let Some((writes, due)) = known else {
            return;
        };
        // The pair exists: what it had not written goes on in the newer of the two.
        unnamed.writes = writes;
        unnamed.due = due.max(unnamed.due);
        let newest = self.entries.iter().rposition(|entry| entry.is(reason, object));
        let older = self.entries.iter().position(|entry| entry.is(reason, object));
        if let (Some(newest), Some(older)) = (newest, older)
            && newest != older
        {
            self.merge(older, newest);
        }
    }

    fn merge(&mut self, older: usize, newest: usize) {
        let Some(merged) = self.entries.get(older).cloned() else {
            return;
        };
        if let Some(entry) = self.entries.get_mut(newest) {
            entry.unwritten = entry.unwritten.saturating_add(merged.unwritten);
            entry.first_us = entry.first_us.min(merged.first_us);
        }
        let _ = (older < self.entries.len()).then(|| self.entries.remove(older));
    }

    /// Returns the next event that is due, and counts it as written.
    pub fn pop_due(&mut self, now: Instant) -> Option<EventWrite> {
        let budgets = &self.budgets;
        let at = self
            .entries
            .iter()
            .position(|entry| entry.due_at(budgets).is_some_and(|at| at <= now))?;
        let entry = self.entries.get_mut(at)?;
        let write = entry.write(now);
        if let Some(budget) = self.budgets.get_mut(write.reason.index()) {
            budget.written.note(now);
            let others = core::mem::take(&mut budget.others);
            return Some(EventWrite { count: write.count.saturating_add(others), ..write });
        }
        Some(write)
    }

    /// Returns everything that is still unwritten, due or not, one event at a time.
    pub fn pop_any(&mut self, now: Instant) -> Option<EventWrite> {
        let entry = self.entries.iter_mut().find(|entry| entry.unwritten > 0)?;
        let write = entry.write(now);
        let others = self
            .budgets
            .get_mut(write.reason.index())
            .map_or(0, |budget| core::mem::take(&mut budget.others));
        Some(EventWrite { count: write.count.saturating_add(others), ..write })
    }

    /// Returns when the next event is due.
    #[must_use]
    pub fn next_wakeup(&self) -> Option<Instant> {
        self.entries.iter().filter_map(|entry| entry.due_at(&self.budgets)).min()
    }

    /// Returns how many events of `reason` there have been.
    #[must_use]
    pub fn total(&self, reason: EventReason) -> u64 {
        self.budgets.get(reason.index()).map_or(0, |budget| budget.total)
    }

    fn entry(&mut self, reason: EventReason, object: &Object) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.is(reason, object))
    }

    fn insert(&mut self, entry: Entry) {
        if self.entries.is_full() {
            self.evict();
        }
        // There is room: either it was not full, or one made room.
        let _ = self.entries.push(entry);
    }

    fn evict(&mut self) {
        let oldest = (0_usize..).zip(&self.entries).min_by_key(|(_, entry)| entry.last);
        let Some((at, _)) = oldest else {
            return;
        };
        let entry = self.entries.swap_remove(at);
        if let Some(budget) = self.budgets.get_mut(entry.reason.index()) {
            budget.others = budget.others.saturating_add(entry.unwritten);
        }
    }
}

impl Default for Fold {
    fn default() -> Self {
        Self::new()
    }
}

impl Entry {
    fn is(&self, reason: EventReason, object: &Object) -> bool {
        self.reason == reason && self.newest.object == *object
    }

    /// Returns when it is due: never while all is written.
    fn due_at(&self, budgets: &[Budget; EventReason::COUNT]) -> Option<Instant> {
        if self.unwritten == 0 {
            return None;
        }
        let budget = budgets.get(self.reason.index())?;
        Some(self.due.max(budget.written.room_at(self.due, HOUR)))
    }

    fn write(&mut self, now: Instant) -> EventWrite {
        let gap = GAPS.get(usize::try_from(self.writes).unwrap_or(usize::MAX));
        self.writes = self.writes.saturating_add(1);
        self.due = now + gap.copied().unwrap_or(HOUR);
        EventWrite {
            reason: self.reason,
            newest: self.newest.clone(),
            extra: self.extra.clone(),
            count: core::mem::take(&mut self.unwritten),
            first_us: self.first_us,
        }
    }
}

/// Appends `name: value`, unless it stands there already.
pub fn push_extra(extra: &mut Extra, name: &str, value: &[u8]) {
    let mut pair = Extra::new();
    pair.push_str(name);
    pair.push_str(": ");
    pair.push_bytes(value);
    if crate::wire::scan::has(extra.as_str().as_bytes(), pair.as_str().as_bytes()) {
        return;
    }
    if !extra.is_empty() {
        extra.push_str(", ");
    }
    extra.push_str(pair.as_str());
}

/// How long after its first, second and third write a pair is written again.
const GAPS: [Duration; 3] =
    [Duration::from_secs(60), Duration::from_secs(300), Duration::from_secs(900)];
const HOUR: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::format;
    use std::vec::Vec;

    use super::*;
    use crate::bounds::LINE_MAX;
    use crate::node::rules::Detail;

    #[test]
    fn a_storm_is_a_handful_of_writes_that_count_every_line() {
        let mut fold = Fold::new();
        let mut writes = Vec::new();
        for n in 0..11_760_u64 {
            let now = Instant::from_millis(n * 600_000 / 11_760);
            fold.note(now, EventReason::NvidiaXidError, finding("0000:dc:00"), Duration::ZERO);
            writes.extend(core::iter::from_fn(|| fold.pop_due(now)));
        }
        assert_eq!(writes.len(), 3); // at 0 s, 60 s and 360 s
        assert_eq!(fold.total(EventReason::NvidiaXidError), 11_760);
        writes.extend(core::iter::from_fn(|| fold.pop_any(Instant::from_millis(600_000))));
        assert_eq!(writes.iter().map(|write| write.count).sum::<u64>(), 11_760);
        assert_eq!(writes.len(), 4);
    }

    #[test]
    fn one_reason_does_not_use_up_the_budget_of_another() {
        let mut fold = Fold::new();
        let now = Instant::from_millis(0);
        for n in 0..60 {
            fold.note(now, EventReason::IOError, finding(&format!("sd{n}")), Duration::ZERO);
        }
        fold.note(now, EventReason::NvmeError, finding("nvme0"), Duration::ZERO);
        let writes: Vec<_> = core::iter::from_fn(|| fold.pop_due(now)).collect();
        let of = |reason| writes.iter().filter(|write| write.reason == reason).count();
        assert_eq!((of(EventReason::IOError), of(EventReason::NvmeError)), (EVENT_WRITES_MAX, 1));
        assert_eq!(fold.next_wakeup(), Some(now + HOUR));
    }

    #[test]
    fn a_block_names_its_object_before_it_is_written() {
        let mut fold = Fold::new();
        let (at, delay) = (Instant::from_millis(0), Duration::from_millis(200));
        let reason = EventReason::CperHardwareErrorCorrected;
        let gpu = Object::from_bytes(b"0000:01:00");
        for round in 0..2_u64 {
            fold.note(at, reason, finding(""), delay);
            fold.name(reason, &gpu);
            fold.enrich(reason, &gpu, "section_type", b"PCIe error");
            fold.enrich(reason, &gpu, "section_type", b"PCIe error");
            assert_eq!(fold.entries.len(), 1, "{round}");
        }
        assert_eq!(fold.pop_due(at), None);
        let write = fold.pop_due(at + delay).unwrap();
        assert_eq!((write.count, write.newest.object), (2, gpu));
        assert_eq!(write.extra.as_str(), "section_type: PCIe error");
    }

    proptest! {
        #[test]
        fn invariants_hold_for_any_history(
            steps in proptest::collection::vec((0_u64..2_000_000, 0..3_u8, 0..200_u8), 0..400),
        ) {
            let reasons =
                [EventReason::IOError, EventReason::NvmeError, EventReason::TaskHung];
            let mut fold = Fold::new();
            let (mut now_ms, mut noted, mut written) = (0, 0_u64, 0_u64);
            let mut times: BTreeMap<EventReason, Vec<u64>> = BTreeMap::new();
            for (gap_ms, reason, object) in steps {
                now_ms += gap_ms / 100;
                let (now, reason) = (Instant::from_millis(now_ms), reasons[usize::from(reason)]);
                let first = fold.total(reason) == 0;
                fold.note(now, reason, finding(&format!("o{object}")), Duration::ZERO);
                noted += 1;
                let before = written;
                while let Some(write) = fold.pop_due(now) {
                    written += write.count;
                    times.entry(write.reason).or_default().push(now_ms);
                }
                prop_assert!(!first || written > before, "first_at_once");
                prop_assert!(fold.next_wakeup().is_none_or(|at| at > now));
            }
            for times in times.values() {
                for pair in times.windows(EVENT_WRITES_MAX + 1) {
                    prop_assert!(pair[EVENT_WRITES_MAX] - pair[0] >= 3_600_000, "budget");
                }
            }
            while let Some(write) = fold.pop_any(Instant::from_millis(now_ms)) {
                written += write.count;
            }
            let others: u64 = fold.budgets.iter().map(|budget| budget.others).sum();
            prop_assert_eq!(written + others, noted, "all_counted");
        }
    }

    fn finding(object: &str) -> Finding {
        Finding {
            object: Object::from_bytes(object.as_bytes()),
            detail: Detail::Nvme,
            line: Text::<LINE_MAX>::from_bytes(b"a line"),
            timestamp_us: 0,
        }
    }
}
