//! Runs probes on threads, and gives up on those that do not come back in time.

use core::time::Duration;
use std::collections::BTreeMap;
use std::thread;

use fettle_core::catalog::ReadingKind;
use fettle_core::node::checks::Outcome;
use fettle_core::time::Instant;
use log::warn;
use tokio::sync::mpsc;

use crate::clock;
use crate::probe::Probe;
use crate::probe::batch::{Batch, failed};
use crate::probe::rows::Rows;

/// Every probe, at rest or on its thread.
///
/// A run that passes its deadline is given up: its thread cannot be ended, so the probe is not
/// started again before that thread has come back. No kind has more than one thread.
pub struct Runner {
    slots: BTreeMap<usize, Slot>,
    sender: mpsc::Sender<Returned>,
    receiver: mpsc::Receiver<Returned>,
}

/// The end of a run.
#[derive(Debug)]
pub struct Finished {
    /// What was read.
    pub kind: ReadingKind,
    /// The readings.
    pub batch: Batch,
    /// How the run ended.
    pub outcome: Outcome,
    /// What it says in the documents.
    pub rows: Rows,
    /// How long it took.
    pub took: Duration,
}

struct Slot {
    kind: ReadingKind,
    state: State,
    /// Whether the probe is to forget what it compares with when it comes back.
    forgets: bool,
}

enum State {
    /// The deadline has passed; the thread has not come back.
    GivenUp {
        since: Instant,
    },
    Resting(Box<dyn Probe>),
    Running {
        since: Instant,
        deadline: Instant,
    },
}

struct Returned {
    probe: Box<dyn Probe>,
    batch: Batch,
    outcome: Outcome,
    rows: Rows,
}

impl Runner {
    /// Holds `probes` ready.
    #[must_use]
    pub fn new(probes: Vec<Box<dyn Probe>>) -> Self {
        let (sender, receiver) = mpsc::channel(ReadingKind::COUNT);
        let slots = probes.into_iter().map(|probe| {
            let kind = probe.kind();
            (kind.index(), Slot { kind, state: State::Resting(probe), forgets: false })
        });
        Self { slots: slots.collect(), sender, receiver }
    }

    /// Returns which kinds can be read.
    #[must_use]
    pub fn offers(&self) -> [bool; ReadingKind::COUNT] {
        ReadingKind::ALL.map(|kind| self.slots.contains_key(&kind.index()))
    }

    /// Starts the probe of `kind`, or says at once why it cannot be started.
    pub fn start(&mut self, now: Instant, kind: ReadingKind) -> Option<Finished> {
        let finished = |why: &str| Some(Finished::failed(kind, why, Duration::ZERO));
        let Some(slot) = self.slots.get_mut(&kind.index()) else {
            return finished("this agent cannot make such a reading");
        };
        if let State::Running { .. } = slot.state {
            // The core asks for one run at a time; the run that goes on will answer.
            return None;
        }
        if let State::GivenUp { since } = slot.state {
            let hung_s = now.since(since).as_secs();
            return finished(&format!("an earlier run still hangs, given up {hung_s} s ago"));
        }
        let State::Resting(probe) =
            core::mem::replace(&mut slot.state, State::GivenUp { since: now })
        else {
            return finished("the probe is missing");
        };
        slot.state = State::Running { since: now, deadline: now + probe.deadline() };
        match spawn(self.sender.clone(), probe) {
            Ok(()) => None,
            Err(problem) => {
                self.slots.remove(&kind.index());
                finished(&format!("cannot start a thread: {problem}"))
            }
        }
    }

    /// Lets the probe of `kind` forget what it compares with, now or when it comes back.
    pub fn forget(&mut self, kind: ReadingKind) {
        let Some(slot) = self.slots.get_mut(&kind.index()) else {
            return;
        };
        match &mut slot.state {
            State::Resting(probe) => probe.forget(),
            State::GivenUp { .. } | State::Running { .. } => slot.forgets = true,
        }
    }

    /// Waits for the next run that ends.
    pub async fn next(&mut self) -> Option<Finished> {
        let returned = self.receiver.recv().await?;
        self.take_back(returned)
    }

    /// Returns the next run that has ended already.
    pub fn try_next(&mut self) -> Option<Finished> {
        loop {
            let returned = self.receiver.try_recv().ok()?;
            if let Some(finished) = self.take_back(returned) {
                return Some(finished);
            }
        }
    }

    fn take_back(&mut self, mut returned: Returned) -> Option<Finished> {
        let kind = returned.probe.kind();
        let slot = self.slots.get_mut(&kind.index())?;
        if core::mem::take(&mut slot.forgets) {
            // What it found was compared with what is to be forgotten.
            returned.probe.forget();
            returned.batch = Batch::default();
            returned.outcome = failed("what it compares with was cleared meanwhile");
        }
        let was = core::mem::replace(&mut slot.state, State::Resting(returned.probe));
        // The run of a probe that was given up was reported then.
        let State::Running { since, .. } = was else {
            return None;
        };
        let took = clock::stamp().at.since(since);
        let Returned { batch, outcome, rows, .. } = returned;
        Some(Finished { kind, batch, outcome, rows, took })
    }

    /// Waits for the next run that ends or passes its deadline; call it only while some go on.
    pub async fn next_in_time(&mut self) -> Option<Finished> {
        let now = clock::stamp().at;
        let wait = self.next_deadline().map_or(Duration::ZERO, |at| at.since(now));
        tokio::select! {
            finished = self.next() => finished,
            () = tokio::time::sleep(wait) => self.give_up(clock::stamp().at),
        }
    }

    /// Returns when the next run that goes on passes its deadline.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        self.slots.values().filter_map(Slot::deadline).min()
    }

    /// Gives up one run that has passed its deadline.
    pub fn give_up(&mut self, now: Instant) -> Option<Finished> {
        let late = |slot: &&mut Slot| slot.deadline().is_some_and(|deadline| deadline <= now);
        let slot = self.slots.values_mut().find(late)?;
        let took = if let State::Running { since, .. } = slot.state {
            now.since(since)
        } else {
            Duration::ZERO
        };
        slot.state = State::GivenUp { since: now };
        let kind = slot.kind;
        warn!("the check of {kind:?} does not come back; it is given up until it does");
        Some(Finished::failed(kind, "the check did not come back in time", took))
    }
}

impl Finished {
    fn failed(kind: ReadingKind, why: &str, took: Duration) -> Self {
        let rows = Rows::failed(kind, why);
        Self { kind, batch: Batch::default(), outcome: failed(why), rows, took }
    }
}

impl core::fmt::Debug for Runner {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Runner").field("kinds", &self.slots.len()).finish_non_exhaustive()
    }
}

impl Slot {
    fn deadline(&self) -> Option<Instant> {
        if let State::Running { deadline, .. } = self.state { Some(deadline) } else { None }
    }
}

fn spawn(sender: mpsc::Sender<Returned>, mut probe: Box<dyn Probe>) -> std::io::Result<()> {
    let name = format!("{:?}", probe.kind());
    let run = move || {
        let mut batch = Batch::default();
        let outcome = probe.read(&mut batch);
        let rows = Rows::of(&*probe, &outcome);
        // Nobody waits any more when the agent ends.
        let _ = sender.blocking_send(Returned { probe, batch, outcome, rows });
    };
    thread::Builder::new().name(name).stack_size(STACK_BYTES).spawn(run).map(|_| ())
}

/// Probes parse certificates and JSON, which goes deeper than reading records.
const STACK_BYTES: usize = 512 * 1024;

#[cfg(test)]
mod tests {
    use std::sync::mpsc as std_mpsc;

    use super::*;

    #[tokio::test]
    async fn a_run_that_hangs_is_given_up_and_not_started_again_until_it_is_back() {
        let (release, hang) = std_mpsc::channel();
        let mut runner = Runner::new(vec![Box::new(Hanging { hang })]);
        let (kind, s) = (ReadingKind::Clock, |s: u64| Instant::from_millis(s * 1000));
        assert!(runner.start(s(0), kind).is_none());
        assert_eq!(runner.next_deadline(), Some(s(20)));
        assert!(runner.give_up(s(19)).is_none());
        let finished = runner.give_up(s(20)).unwrap();
        assert!(matches!(finished.outcome, Outcome::Failed { .. }));
        for at in 21..121 {
            let finished = runner.start(s(at), kind).unwrap();
            assert!(matches!(finished.outcome, Outcome::Failed { .. }), "no second thread");
        }
        release.send(()).unwrap();
        assert!(runner.next().await.is_none(), "the late result was reported as given up");
        assert!(runner.start(s(200), kind).is_none());
        release.send(()).unwrap();
        let finished = runner.next().await.unwrap();
        assert_eq!(finished.outcome, Outcome::Complete);
    }

    struct Hanging {
        hang: std_mpsc::Receiver<()>,
    }

    impl Probe for Hanging {
        fn read(&mut self, _: &mut Batch) -> Outcome {
            self.hang.recv().unwrap();
            Outcome::Complete
        }

        fn kind(&self) -> ReadingKind {
            ReadingKind::Clock
        }
    }
}
