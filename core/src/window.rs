//! Counts what happened lately: the last `N` instants of one kind.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::Instant;

/// The last `N` instants at which something happened.
///
/// Full means that the oldest instant makes room: the count within any span is then a lower
/// bound that is exact up to `N`.
#[derive(Debug, Clone, Default, Eq, Serialize, Deserialize)]
pub struct Window<const N: usize> {
    instants: heapless::Deque<Instant, N>,
}

impl<const N: usize> Window<N> {
    /// Returns a window in which nothing has happened.
    #[must_use]
    pub const fn new() -> Self {
        Self { instants: heapless::Deque::new() }
    }

    /// Notes that it happened at `now`.
    pub fn note(&mut self, now: Instant) {
        if self.instants.is_full() {
            let _ = self.instants.pop_front();
        }
        let _ = self.instants.push_back(now);
    }

    /// Returns how often it happened in the `span` that ends at `now`.
    #[must_use]
    pub fn count(&self, now: Instant, span: Duration) -> usize {
        self.instants.iter().filter(|at| now.since(**at) < span).count()
    }

    /// Returns when fewer than `N` of the noted instants lie within `span`.
    ///
    /// That is `now` unless the window is full of instants younger than `span`.
    #[must_use]
    pub fn room_at(&self, now: Instant, span: Duration) -> Instant {
        match self.instants.front() {
            Some(oldest) if self.instants.is_full() => now.max(*oldest + span),
            Some(_) | None => now,
        }
    }
}

/// Not derived: the queue's own comparison leaves a panic in the no-panic link.
impl<const N: usize> PartialEq for Window<N> {
    fn eq(&self, other: &Self) -> bool {
        self.instants.iter().eq(other.instants.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_within_the_span_and_says_when_there_is_room() {
        let mut window = Window::<3>::new();
        let s = |seconds: u64| Instant::from_millis(seconds * 1000);
        let span = Duration::from_secs(10);
        assert_eq!(window.room_at(s(0), span), s(0));
        // now, count, room at
        for (now, count, room) in [(0, 1, 0), (4, 2, 4), (8, 3, 10), (9, 3, 14), (30, 1, 30)] {
            window.note(s(now));
            assert_eq!(window.count(s(now), span), count, "{now}");
            assert_eq!(window.room_at(s(now), span), s(room), "{now}");
        }
    }
}
