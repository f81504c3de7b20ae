//! Events on their way to the API server: each written once, and counted up while it goes on.
//!
//! An event is a series: an Event object made when the first of a topic and object happens, whose
//! count grows (`series` of `events.k8s.io/v1`). Its name is fixed before it is sent, and its count
//! is a level, so that a request whose answer was lost can be sent again and changes nothing.

#[cfg(test)]
pub(super) mod tests;

use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::lane::{Bucket, Rate};
use crate::bounds::SERIES_MAX;
use crate::catalog::{ConditionType, EventReason};
use crate::node::condition::{Message, Status};
use crate::node::pace::Pace;
use crate::node::rules::Object;
use crate::time::Instant;

/// Every series that is on its way, or may still go on.
///
/// Full means that the oldest series that is wholly written makes room; where none is, the oldest
/// is merged with another of its topic, and where there is no other, dropped and counted.
///
/// # Invariants
///
/// * `written_once`: no two names are given to one event, and no count is written that did not
///   happen; so a series whose request is under way makes room for nothing.
/// * `all_counted`: written, waiting and dropped add up to what happened.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesTable {
    entries: heapless::Vec<Series, SERIES_MAX>,
    next_number: u64,
    /// Series below this number are on disk: a new process would go on with them.
    saved_below: u64,
    dropped: u64,
    merged: u64,
    written: u64,
    requests: Bucket,
}

/// Events of one topic about one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// What they tell.
    pub topic: Topic,
    /// What they are about; empty if nothing, or several.
    pub object: Object,
    /// The first of them, in a sentence; the newest while none is written.
    pub note: Message,
    /// Distinguishes it from every other of this state.
    pub number: u64,
    /// How many they are.
    pub count: u64,
    /// When the first happened, in microseconds on the clock of the kernel log.
    pub first_us: u64,
    /// When the last happened, in microseconds on the clock of the kernel log.
    pub last_us: u64,
    /// How many of them the API server has.
    written: u64,
    /// How many it has once it takes the request that is under way.
    sent: u64,
    pace: Pace,
    /// When it was last written.
    written_at: Instant,
}

/// What an event tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Topic {
    /// A condition's status has turned.
    Condition(ConditionType, Status),
    /// Something of the catalogue's events.
    Event(EventReason),
}

/// One thing that happened, to be told by an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Happening {
    /// What it tells.
    pub topic: Topic,
    /// What it is about; empty if nothing.
    pub object: Object,
    /// The newest of it, in a sentence.
    pub note: Message,
    /// How often it happened.
    pub count: u64,
    /// When it first did, in microseconds on the clock of the kernel log.
    pub first_us: u64,
    /// When it last did, in microseconds on the clock of the kernel log.
    pub last_us: u64,
}

/// A request for one series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventRequest {
    /// The number of the series.
    pub number: u64,
    /// What to do.
    pub verb: EventVerb,
}

/// What a request does with an Event object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventVerb {
    /// Make it.
    Create,
    /// Set its count.
    Count,
}

/// How a request for an event was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventAnswer {
    /// It stands as the request said.
    Accepted,
    /// An object of that name is there: an earlier request was taken, and its answer lost.
    AlreadyExists,
    /// The object is not there any more: the API server keeps events for an hour.
    Gone,
    /// It will never be taken.
    Invalid,
    /// Nobody knows: to be sent again.
    Failed,
}

/// How many events there were, in counts of what happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SeriesCounts {
    /// The API server has them.
    pub written: u64,
    /// They are still to be written.
    pub waiting: u64,
    /// They were merged with others of their topic, for lack of room.
    pub merged: u64,
    /// They were dropped for lack of room, or refused.
    pub dropped: u64,
}

impl Happening {
    /// Returns what happened once, at `now`.
    #[must_use]
    pub(super) const fn once(now: Instant, topic: Topic, object: Object, note: Message) -> Self {
        Self { topic, object, note, count: 1, first_us: now.micros(), last_us: now.micros() }
    }
}

impl SeriesTable {
    /// Notes what happened.
    pub(super) fn note(&mut self, now: Instant, happening: Happening) {
        let goes_on = |series: &&mut Series| {
            series.topic == happening.topic
                && series.object == happening.object
                && (!series.exists() || now.since(series.written_at) < KEPT_FOR)
        };
        if let Some(series) = self.entries.iter_mut().find(goes_on) {
            series.add(&happening);
            return;
        }
        self.make_room();
        let Happening { topic, object, note, count, first_us, last_us } = happening;
        let (number, pace, written_at) = (self.next_number, Pace::default(), now);
        self.next_number = self.next_number.saturating_add(1);
        let (written, sent) = (0, 0);
        let series = Series {
            topic,
            object,
            note,
            number,
            count,
            first_us,
            last_us,
            written,
            sent,
            pace,
            written_at,
        };
        // There is room: one made it.
        let _ = self.entries.push(series);
    }

    /// Notes that every series is on disk, as far as it can be.
    pub(super) const fn saved(&mut self) {
        self.saved_below = self.next_number;
    }

    /// Lets what waits for its time be written now.
    pub(super) fn hurry(&mut self) {
        for series in self.entries.iter_mut().filter(|series| series.waits()) {
            series.pace = Pace::default();
        }
    }

    /// Returns whether a series waits only for being saved.
    #[must_use]
    pub(super) fn waits_for_disk(&self) -> bool {
        self.entries.iter().any(|series| series.waits() && !series.is_ready(self.saved_below))
    }

    /// Returns when a request is due.
    #[must_use]
    pub(super) fn due_at(&self) -> Option<Instant> {
        let ready = self.entries.iter().filter(|series| series.is_ready(self.saved_below));
        let due = ready.map(|series| series.pace.due()).min()?;
        Some(due.max(self.requests.room_at(REQUESTS)))
    }

    /// Returns the request that is due, and takes it for sent.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<EventRequest> {
        if self.requests.room_at(REQUESTS) > now {
            return None;
        }
        let saved_below = self.saved_below;
        let is_due = |s: &&mut Series| s.is_ready(saved_below) && s.pace.due() <= now;
        // What nobody has heard of goes first.
        let due = self.entries.iter_mut().filter(is_due).min_by_key(|s| (s.exists(), s.number))?;
        due.sent = due.count;
        let verb = if due.exists() { EventVerb::Count } else { EventVerb::Create };
        let request = EventRequest { number: due.number, verb };
        self.requests.take(now, REQUESTS);
        Some(request)
    }

    /// Notes how a request was answered.
    pub(super) fn answered(&mut self, now: Instant, request: EventRequest, answer: EventAnswer) {
        let next_number = self.next_number;
        let Some(series) = self.entries.iter_mut().find(|s| s.number == request.number) else {
            return;
        };
        match answer {
            EventAnswer::Accepted => {
                let sent = series.sent;
                self.written = self.written.saturating_add(series.wrote(now, sent));
            }
            // It was made with one at least; what it counts is set next.
            EventAnswer::AlreadyExists => {
                let known = series.written.max(1);
                self.written = self.written.saturating_add(series.wrote(now, known));
                series.pace = Pace::default();
            }
            EventAnswer::Gone => {
                series.begin_anew(next_number);
                self.next_number = next_number.saturating_add(1);
            }
            EventAnswer::Invalid => {
                self.dropped = self.dropped.saturating_add(series.waiting());
                let number = series.number;
                self.entries.retain(|series| series.number != number);
            }
            EventAnswer::Failed => {}
        }
    }

    /// Returns the series with a number.
    #[must_use]
    pub fn get(&self, number: u64) -> Option<&Series> {
        self.entries.iter().find(|series| series.number == number)
    }

    /// Returns whether nothing waits to be written.
    #[must_use]
    pub(super) fn is_settled(&self) -> bool {
        !self.entries.iter().any(Series::waits)
    }

    /// Returns how many events there were.
    #[must_use]
    pub fn counts(&self) -> SeriesCounts {
        let waiting = self.entries.iter().map(Series::waiting);
        SeriesCounts {
            written: self.written,
            waiting: waiting.fold(0, u64::saturating_add),
            merged: self.merged,
            dropped: self.dropped,
        }
    }

    fn make_room(&mut self) {
        if !self.entries.is_full() {
            return;
        }
        let settled = self.entries.iter().filter(|series| !series.waits());
        if let Some(oldest) = settled.min_by_key(|series| series.written_at).map(|s| s.number) {
            self.entries.retain(|series| series.number != oldest);
            return;
        }
        // The oldest that names its object and is not alone, else the oldest; never what is on its
        // way, since nobody knows what becomes of it.
        let rests = || self.entries.iter().filter(|series| !series.is_under_way());
        let merges = |s: &&Series| !s.object.is_empty() && self.partner(s).is_some();
        let found = rests().filter(merges).min_by_key(|series| series.number);
        let oldest = found.or_else(|| rests().min_by_key(|series| series.number));
        let Some(oldest) = oldest.cloned() else {
            return;
        };
        let partner = self.partner(&oldest);
        self.entries.retain(|series| series.number != oldest.number);
        let waiting = oldest.waiting();
        if let Some(into) =
            partner.and_then(|number| self.entries.iter_mut().find(|s| s.number == number))
        {
            into.object = Object::new();
            into.count = into.count.saturating_add(waiting);
            into.first_us = into.first_us.min(oldest.first_us);
            self.merged = self.merged.saturating_add(waiting);
        } else {
            self.dropped = self.dropped.saturating_add(waiting);
        }
    }

    /// Returns another series of the same topic: one of several objects, or one nobody has heard of.
    fn partner(&self, series: &Series) -> Option<u64> {
        let others = || {
            let is_other = |o: &&Series| o.topic == series.topic && o.number != series.number;
            self.entries.iter().filter(is_other)
        };
        let of_several = others().find(|other| other.object.is_empty());
        of_several.or_else(|| others().find(|other| other.sent == 0)).map(|other| other.number)
    }
}

impl Series {
    /// Returns whether the API server has an object for it.
    #[must_use]
    pub(super) const fn exists(&self) -> bool {
        self.written > 0
    }

    const fn waiting(&self) -> u64 {
        self.count.saturating_sub(self.written)
    }

    const fn waits(&self) -> bool {
        self.waiting() > 0
    }

    /// Returns whether it waits and is on disk, as those below a number are.
    const fn is_ready(&self, saved_below: u64) -> bool {
        self.waits() && self.number < saved_below
    }

    const fn is_under_way(&self) -> bool {
        self.sent > self.written
    }

    fn add(&mut self, happening: &Happening) {
        self.count = self.count.saturating_add(happening.count);
        self.last_us = self.last_us.max(happening.last_us);
        // What was sent may be there already, and cannot be changed.
        if self.sent == 0 {
            self.note = happening.note.clone();
        }
    }

    /// Notes that the API server has `count`, and returns how many more that are.
    fn wrote(&mut self, now: Instant, count: u64) -> u64 {
        let more = count.saturating_sub(self.written);
        self.written = self.written.max(count);
        self.pace.note(now);
        self.written_at = now;
        more
    }

    /// Goes on under another name with what was not written.
    fn begin_anew(&mut self, number: u64) {
        self.number = number;
        self.count = self.waiting();
        self.written = 0;
        self.sent = 0;
        self.first_us = self.last_us;
        self.pace = Pace::default();
    }
}

/// Requests for events: what happens at once, then one a second.
const REQUESTS: Rate = Rate { burst: 20, every: Duration::from_secs(1) };

/// How long after its last write a series goes on in the same object: less than the hour for which
/// an API server keeps an event (`--event-ttl`).
const KEPT_FOR: Duration = Duration::from_secs(50 * 60);
