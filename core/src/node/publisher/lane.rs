//! When the next request of a kind may be sent: one at a time, later after a failure.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::Instant;

/// One kind of request, of which one is under way at most.
///
/// # Invariants
///
/// * `one_at_a_time`: nothing is sent while a request is under way.
/// * `backs_off`: after the nth failure in a row the next request waits at least half of
///   [`RETRY_SHORTEST`] doubled n times, at most [`RETRY_LONGEST`], and never less than was asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lane {
    under_way: bool,
    failures: u32,
    not_before: Instant,
    accepted: Option<Instant>,
    counts: LaneCounts,
}

/// How requests of a kind ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneCounts {
    /// The API server took it.
    pub accepted: u64,
    /// It did not, or its answer was lost.
    pub failed: u64,
}

impl Lane {
    /// Returns when a request may be sent; `None` while one is under way.
    #[must_use]
    pub(super) fn free_at(&self) -> Option<Instant> {
        (!self.under_way).then_some(self.not_before)
    }

    /// Returns whether a request may be sent now.
    #[must_use]
    pub(super) fn is_free(&self, now: Instant) -> bool {
        !self.under_way && self.not_before <= now
    }

    /// Notes that a request is under way.
    pub(super) const fn sent(&mut self) {
        self.under_way = true;
    }

    /// Notes that the request was taken.
    pub(super) const fn accepted(&mut self, now: Instant) {
        self.under_way = false;
        self.failures = 0;
        self.not_before = now;
        self.accepted = Some(now);
        self.counts.accepted = self.counts.accepted.saturating_add(1);
    }

    /// Notes that the request was answered with no that is final: the next may go at once.
    pub(super) const fn refused(&mut self, now: Instant) {
        self.under_way = false;
        self.not_before = now;
        self.counts.failed = self.counts.failed.saturating_add(1);
    }

    /// Notes that the request failed; `asked` is how long the API server wants to be left alone.
    pub(super) fn failed(&mut self, now: Instant, asked: Option<Duration>, jitter: &mut Jitter) {
        self.under_way = false;
        self.failures = self.failures.saturating_add(1);
        self.counts.failed = self.counts.failed.saturating_add(1);
        let doubled = RETRY_SHORTEST.saturating_mul(1_u32 << self.failures.min(DOUBLINGS));
        let pause = doubled.min(RETRY_LONGEST);
        let wait = match asked.map(|asked| asked.min(ASKED_LONGEST)) {
            // All nodes were asked to wait for the same time.
            Some(asked) if asked > pause => asked.saturating_add(jitter.below(half(asked))),
            Some(asked) => asked.max(jittered(pause, jitter)),
            None => jittered(pause, jitter),
        };
        self.not_before = now + wait;
    }

    /// Forgets that a request is under way: the process that sent it is gone.
    pub(super) const fn restarted(&mut self) {
        self.under_way = false;
    }

    /// Returns when a request was last taken.
    #[must_use]
    pub const fn last_accepted(&self) -> Option<Instant> {
        self.accepted
    }

    /// Returns how requests ended.
    #[must_use]
    pub const fn counts(&self) -> LaneCounts {
        self.counts
    }
}

fn jittered(pause: Duration, jitter: &mut Jitter) -> Duration {
    half(pause).saturating_add(jitter.below(half(pause)))
}

fn half(span: Duration) -> Duration {
    span.checked_div(2).unwrap_or(span)
}

/// Spreads what many nodes would do at the same moment.
///
/// Not for secrets: whoever knows the seed knows the sequence (`SplitMix64`, Steele et al. 2014).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Jitter {
    state: u64,
}

impl Jitter {
    /// Returns the sequence of `seed`, which is to differ from node to node.
    #[must_use]
    pub(super) const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Returns a duration below `limit`, in milliseconds; zero if the limit is.
    pub(super) fn below(&mut self, limit: Duration) -> Duration {
        let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        Duration::from_millis(self.next().checked_rem(limit_ms).unwrap_or(0))
    }

    const fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// A budget that refills: so many at once, then one each so often.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    taken: u32,
    refilled: Instant,
}

/// The size of a [`Bucket`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// How many at once.
    pub burst: u32,
    /// How long until one more.
    pub every: Duration,
}

impl Bucket {
    /// Returns when one may be taken.
    #[must_use]
    pub(super) fn room_at(&self, rate: Rate) -> Instant {
        match self.taken.checked_sub(rate.burst) {
            None => Instant::from_millis(0),
            Some(beyond) => self.refilled + rate.every.saturating_mul(beyond.saturating_add(1)),
        }
    }

    /// Takes one.
    pub(super) fn take(&mut self, now: Instant, rate: Rate) {
        let every_ms = rate.every.as_millis();
        let refills = now.since(self.refilled).as_millis().checked_div(every_ms).unwrap_or(0);
        let refills = u32::try_from(refills).unwrap_or(u32::MAX);
        if refills >= self.taken {
            self.taken = 0;
            self.refilled = now;
        } else {
            self.taken = self.taken.saturating_sub(refills);
            self.refilled = self.refilled + rate.every.saturating_mul(refills);
        }
        self.taken = self.taken.saturating_add(1);
    }
}

/// Half of the longest wait after a first failure.
pub const RETRY_SHORTEST: Duration = Duration::from_millis(250);

/// The longest wait between two tries (field case N07: written within one wait of the return).
pub const RETRY_LONGEST: Duration = Duration::from_secs(30);

/// The longest wait that an API server may ask for: one that asks for a day is mistaken.
pub const ASKED_LONGEST: Duration = Duration::from_secs(300);

/// By then a wait is longer than [`RETRY_LONGEST`].
const DOUBLINGS: u32 = 8;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn waits_grow_and_end_with_the_first_success() {
        let (mut lane, mut jitter) = (Lane::default(), Jitter::new(7));
        let mut now = Instant::from_millis(0);
        let mut waits = std::vec::Vec::new();
        for _ in 0..12 {
            assert!(lane.is_free(now));
            lane.sent();
            assert_eq!((lane.is_free(now), lane.free_at()), (false, None));
            lane.failed(now, None, &mut jitter);
            let free = lane.free_at().unwrap();
            waits.push(free.since(now));
            now = free;
        }
        for (wait, (least, most)) in waits.iter().zip([(250, 500), (500, 1_000), (1_000, 2_000)]) {
            assert!(*wait >= Duration::from_millis(least) && *wait < Duration::from_millis(most));
        }
        assert!(waits.iter().all(|wait| *wait <= RETRY_LONGEST));
        assert!(waits.last().unwrap() >= &(RETRY_LONGEST / 2));
        lane.sent();
        lane.accepted(now);
        assert_eq!(lane.free_at(), Some(now));
        assert_eq!(lane.counts(), LaneCounts { accepted: 1, failed: 12 });
    }

    #[test]
    fn a_wait_that_was_asked_for_is_kept_within_reason() {
        // asked (s), least and most (ms)
        for (asked, least, most) in
            [(1, 1_000, 1_500), (60, 60_000, 90_000), (86_400, 300_000, 450_000)]
        {
            for seed in 0..50 {
                let (mut lane, mut jitter) = (Lane::default(), Jitter::new(seed));
                let now = Instant::from_millis(5);
                lane.sent();
                lane.failed(now, Some(Duration::from_secs(asked)), &mut jitter);
                let wait = lane.free_at().unwrap().since(now);
                let range = Duration::from_millis(least)..=Duration::from_millis(most);
                assert!(range.contains(&wait), "{asked} {wait:?}");
            }
        }
    }

    #[test]
    fn nodes_that_failed_together_do_not_come_back_together() {
        let mut tries = [0_u32; 30];
        for node in 0..3_000 {
            let (mut lane, mut jitter) = (Lane::default(), Jitter::new(node));
            for _ in 0..10 {
                lane.sent();
                lane.failed(Instant::from_millis(0), None, &mut jitter);
            }
            let second = lane.free_at().unwrap().millis() / 1000;
            tries[usize::try_from(second).unwrap()] += 1;
        }
        assert!(tries.iter().all(|tries| *tries < 300), "{tries:?}");
    }

    #[test]
    fn a_bucket_gives_its_burst_and_then_one_each_so_often() {
        let rate = Rate { burst: 3, every: Duration::from_secs(10) };
        let mut bucket = Bucket::default();
        let mut at = std::vec::Vec::new();
        let mut now = Instant::from_millis(100_000);
        for _ in 0..6 {
            now = now.max(bucket.room_at(rate));
            bucket.take(now, rate);
            at.push(now.millis() / 1000);
        }
        assert_eq!(at, [100, 100, 100, 110, 120, 130]);
        now = Instant::from_millis(1_000_000);
        bucket.take(now, rate);
        assert!(bucket.room_at(rate) <= now);
    }

    proptest! {
        #[test]
        fn no_span_gives_more_than_its_budget(
            gaps in proptest::collection::vec(0_u64..30_000, 1..200),
            burst in 1_u32..8,
        ) {
            let rate = Rate { burst, every: Duration::from_secs(10) };
            let (mut bucket, mut now) = (Bucket::default(), Instant::from_millis(0));
            let mut taken = std::vec::Vec::new();
            for gap in gaps {
                now = now + Duration::from_millis(gap);
                if bucket.room_at(rate) <= now {
                    bucket.take(now, rate);
                    taken.push(now);
                }
            }
            let burst = usize::try_from(burst).unwrap();
            for pair in taken.windows(burst + 1) {
                let span = pair[burst].since(pair[0]);
                prop_assert!(span.as_millis() > 0 || burst == 0, "{span:?}");
            }
            let hour = taken.iter().filter(|at| at.millis() < 3_600_000).count();
            prop_assert!(hour <= burst + 361);
        }
    }
}
