//! Folds events: the first of its kind at once, then counts, within a budget for each reason.

use serde::{Deserialize, Serialize};

use crate::bounds::{EVENT_WRITES_MAX, EXTRA_MAX, FOLDED_MAX};
use crate::catalog::{EVENTS, EventReason};
use crate::node::condition::Message;
use crate::node::pace::{HOUR, Pace};
use crate::node::rules::{Finding, Object};
use crate::text::Text;
use crate::time::Instant;
use crate::window::Window;

/// Every (reason, object) that has happened lately, and what of it has not been written.
///
/// Full means that the pair seen longest ago makes room; what of it was not written yet becomes
/// its reason's own, without an object, so that no count is lost and none is another object's.
///
/// # Invariants
///
/// * `all_counted`: the counts of all writes and of what is still unwritten add up to all events.
/// * `budget`: no reason is written more than [`EVENT_WRITES_MAX`] times an hour, but for one
///   write at the end that sums up what the budget held back.
/// * `first_at_once`: the first event of a reason is written in the step that notes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fold {
    entries: heapless::Vec<Entry, FOLDED_MAX>,
    reasons: [OfReason; EventReason::COUNT],
}

/// One pair of reason and object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    reason: EventReason,
    unwritten: Unwritten,
    pace: Pace,
    last: Instant,
}

/// Findings that were not written yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Unwritten {
    /// The newest; its object is the key.
    newest: Finding,
    /// What later lines of the newest's block said.
    extra: Extra,
    /// When the kernel said the first.
    first_us: u64,
    count: u64,
}

/// What one reason may still write, and what is its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct OfReason {
    written: Window<EVENT_WRITES_MAX>,
    /// Findings of pairs that had to make room.
    others: Option<Unwritten>,
    pace: Pace,
    total: u64,
}

/// What later lines of a finding's block said, as `name: value` pairs.
pub type Extra = Text<EXTRA_MAX>;

/// One event to write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventWrite {
    /// Its reason.
    pub reason: EventReason,
    /// The newest of the findings that it stands for; without an object where they are of many.
    pub newest: Finding,
    /// What later lines of the newest finding's block said.
    pub extra: Extra,
    /// How many findings it stands for.
    pub count: u64,
    /// When the kernel said the first of them, in microseconds since boot without suspend; the
    /// newest finding says when it said the last.
    pub first_us: u64,
}

impl EventWrite {
    /// Returns the newest finding, with what its block added, in a sentence.
    #[must_use]
    pub fn message(&self) -> Message {
        if self.extra.is_empty() {
            return Text::display(&self.newest);
        }
        Text::display(format_args!("{} ({})", self.newest, self.extra))
    }
}

impl Fold {
    /// Returns a fold in which nothing has happened.
    #[must_use]
    pub fn new() -> Self {
        Self { entries: heapless::Vec::new(), reasons: Default::default() }
    }

    /// Notes one event.
    pub fn note(&mut self, now: Instant, reason: EventReason, finding: Finding, extra: Extra) {
        if let Some(of_reason) = self.reasons.get_mut(reason.index()) {
            of_reason.total = of_reason.total.saturating_add(1);
        }
        let one = Unwritten { first_us: finding.timestamp_us, newest: finding, extra, count: 1 };
        let object = &one.newest.object;
        let known = self
            .entries
            .iter_mut()
            .find(|entry| entry.reason == reason && entry.unwritten.newest.object == *object);
        if let Some(known) = known {
            known.unwritten.add(one);
            known.last = now;
            return;
        }
        if self.entries.is_full() {
            self.evict();
        }
        // There is room: either it was not full, or one made room.
        let entry = Entry { reason, unwritten: one, pace: Pace::default(), last: now };
        let _ = self.entries.push(entry);
    }

    /// Returns the next event that is due, and counts it as written.
    pub fn pop_due(&mut self, now: Instant) -> Option<EventWrite> {
        let due = |entry: &Entry| self.entry_due(entry).is_some_and(|due| due <= now);
        if let Some(at) = self.entries.iter().position(due) {
            return self.write_entry(now, at);
        }
        let reasons = &self.reasons;
        let due = |of: &OfReason| of.others_due().is_some_and(|due| due <= now);
        let at = reasons.iter().position(due)?;
        self.write_others(now, at)
    }

    /// Returns what is not written yet, due or not, one event at a time.
    ///
    /// What the budget of a reason holds back comes as one event for all of its objects.
    pub fn pop_any(&mut self, now: Instant) -> Option<EventWrite> {
        let may = |entry: &Entry| entry.unwritten.count > 0 && self.has_room(now, entry.reason);
        if let Some(at) = self.entries.iter().position(may) {
            return self.write_entry(now, at);
        }
        if let Some(entry) = self.entries.iter().find(|entry| entry.unwritten.count > 0) {
            self.gather(entry.reason);
        }
        let at = self.reasons.iter().position(|of_reason| of_reason.others.is_some())?;
        self.write_others(now, at)
    }

    /// Returns when the next event is due.
    #[must_use]
    pub fn next_wakeup(&self) -> Option<Instant> {
        let entries = self.entries.iter().filter_map(|entry| self.entry_due(entry));
        entries.chain(self.reasons.iter().filter_map(OfReason::others_due)).min()
    }

    /// Returns how many events of `reason` there have been.
    #[must_use]
    pub fn total(&self, reason: EventReason) -> u64 {
        self.reasons.get(reason.index()).map_or(0, |of_reason| of_reason.total)
    }

    /// Returns when an entry is due: never while all of it is written.
    fn entry_due(&self, entry: &Entry) -> Option<Instant> {
        if entry.unwritten.count == 0 {
            return None;
        }
        let of_reason = self.reasons.get(entry.reason.index())?;
        Some(of_reason.written.room_at(entry.pace.due(), HOUR))
    }

    fn has_room(&self, now: Instant, reason: EventReason) -> bool {
        let of_reason = self.reasons.get(reason.index());
        of_reason.is_some_and(|of_reason| of_reason.written.room_at(now, HOUR) <= now)
    }

    fn write_entry(&mut self, now: Instant, at: usize) -> Option<EventWrite> {
        let entry = self.entries.get_mut(at)?;
        entry.pace.note(now);
        let reason = entry.reason;
        let write = entry.unwritten.to_write(reason);
        entry.unwritten.count = 0;
        self.reasons.get_mut(reason.index())?.written.note(now);
        Some(write)
    }

    fn write_others(&mut self, now: Instant, at: usize) -> Option<EventWrite> {
        let reason = EVENTS.get(at)?.reason;
        let of_reason = self.reasons.get_mut(at)?;
        let others = of_reason.others.take()?;
        of_reason.pace.note(now);
        of_reason.written.note(now);
        Some(others.to_write(reason))
    }

    /// Gives everything that is unwritten of a reason to the reason itself.
    fn gather(&mut self, reason: EventReason) {
        for entry in self.entries.iter_mut().filter(|entry| entry.reason == reason) {
            if let Some(of_reason) = self.reasons.get_mut(reason.index()) {
                of_reason.take_over(&mut entry.unwritten);
            }
        }
    }

    fn evict(&mut self) {
        let oldest = (0_usize..).zip(&self.entries).min_by_key(|(_, entry)| entry.last);
        // Always true, but the no-panic link has to see it.
        let known = oldest.map(|(at, _)| at).filter(|at| *at < self.entries.len());
        let Some(at) = known else {
            return;
        };
        if at >= self.entries.len() {
            return;
        }
        // In order, so that of pairs of one moment the one noted first makes room.
        let mut entry = self.entries.remove(at);
        if let Some(of_reason) = self.reasons.get_mut(entry.reason.index()) {
            of_reason.take_over(&mut entry.unwritten);
        }
    }
}

impl Default for Fold {
    fn default() -> Self {
        Self::new()
    }
}

impl Unwritten {
    fn add(&mut self, one: Self) {
        let first_us = if self.count == 0 { one.first_us } else { self.first_us };
        let count = self.count.saturating_add(one.count);
        *self = Self { first_us, count, ..one };
    }

    fn to_write(&self, reason: EventReason) -> EventWrite {
        EventWrite {
            reason,
            newest: self.newest.clone(),
            extra: self.extra.clone(),
            count: self.count,
            first_us: self.first_us,
        }
    }
}

impl OfReason {
    fn others_due(&self) -> Option<Instant> {
        self.others.as_ref()?;
        Some(self.written.room_at(self.pace.due(), HOUR))
    }

    /// Takes over what is unwritten of one object, without its name.
    fn take_over(&mut self, unwritten: &mut Unwritten) {
        if unwritten.count == 0 {
            return;
        }
        let mut taken = unwritten.clone();
        unwritten.count = 0;
        taken.newest.object = Object::new();
        match &mut self.others {
            Some(others) => others.add(taken),
            None => self.others = Some(taken),
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
            fold.note(now, EventReason::NvidiaXidError, finding("0000:dc:00"), Extra::new());
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
            fold.note(now, EventReason::IOError, finding(&format!("sd{n}")), Extra::new());
        }
        fold.note(now, EventReason::NvmeError, finding("nvme0"), Extra::new());
        let writes: Vec<_> = core::iter::from_fn(|| fold.pop_due(now)).collect();
        let of = |reason| writes.iter().filter(|write| write.reason == reason).count();
        assert_eq!((of(EventReason::IOError), of(EventReason::NvmeError)), (EVENT_WRITES_MAX, 1));
        assert_eq!(fold.next_wakeup(), Some(now + HOUR));
    }

    #[test]
    fn what_had_to_make_room_is_told_without_an_object() {
        let mut fold = Fold::new();
        let now = Instant::from_millis(0);
        let mut noted = 0;
        for n in 0..60 {
            fold.note(now, EventReason::IOError, finding(&format!("sd{n}")), Extra::new());
            noted += 1;
        }
        let mut written: u64 = core::iter::from_fn(|| fold.pop_due(now)).map(|w| w.count).sum();
        for n in 0..FOLDED_MAX {
            fold.note(now, EventReason::TaskHung, finding(&format!("t{n}")), Extra::new());
        }
        let later = now + HOUR;
        let mut of_many = 0;
        while let Some(write) = fold.pop_due(later) {
            if write.reason == EventReason::IOError {
                written += write.count;
                of_many += u64::from(write.newest.object.is_empty());
            }
        }
        assert_eq!((written, of_many), (noted, 1));
    }

    #[test]
    fn the_end_sums_up_what_the_budget_held_back() {
        let mut fold = Fold::new();
        let now = Instant::from_millis(0);
        for n in 0..100 {
            fold.note(now, EventReason::TaskHung, finding(&format!("t{n}")), Extra::new());
        }
        let written = core::iter::from_fn(|| fold.pop_due(now)).count();
        let rest: Vec<_> = core::iter::from_fn(|| fold.pop_any(now)).collect();
        assert_eq!((written, rest.len()), (EVENT_WRITES_MAX, 1));
        assert_eq!(rest[0].count, 80);
        assert!(rest[0].newest.object.is_empty());
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
                fold.note(now, reason, finding(&format!("o{object}")), Extra::new());
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
            prop_assert_eq!(written, noted, "all_counted");
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
