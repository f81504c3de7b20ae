//! Asks file systems for their space, on threads that may be left waiting for an answer.

use core::time::Duration;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread;

use fettle_core::time::Instant;
use log::{info, warn};
use rustix::io::Errno;

use super::table::Place;
use crate::clock;
use crate::sys::statfs::Space;

/// Asks for the space at a path, and may never come back.
pub(super) type Ask = Arc<dyn Fn(&Path) -> Result<Space, Errno> + Send + Sync>;

/// Asks one mount after the other, each with a deadline.
///
/// A thread that waits in the kernel cannot be ended. It is given up with its mount, and another
/// goes on with the rest. Once [`HUNG_MAX`] are given up, only those mounts are still asked that
/// answered in a run in which the others hung already: what else was well before may be next.
///
/// # Invariants
///
/// * `one_waits`: no mount is asked while an earlier question to it has no answer.
/// * `few_wait`: never more than [`HUNG_MAX`] threads are given up, and one more if one of those
///   few mounts hangs later; then nothing is asked until one is back.
pub(super) struct Asker {
    ask: Ask,
    patience: Duration,
    worker: Option<Worker>,
    hung: BTreeMap<u64, Hung>,
    /// Whether no more could be given up when the run began.
    began_full: bool,
}

/// What came of a question.
#[derive(Debug)]
pub(super) enum Answer {
    /// The file system answered.
    Answered(Result<Space, Errno>),
    /// It has not answered for so long.
    Hanging(Duration),
    /// It was not asked, because so many others do not answer.
    NotAsked(usize),
    /// There is no thread to ask with.
    NoThread(io::Error),
}

/// A thread that asks.
struct Worker {
    questions: Sender<PathBuf>,
    answers: Receiver<Result<Space, Errno>>,
}

/// A thread that was given up.
struct Hung {
    since: Instant,
    worker: Worker,
}

impl Asker {
    pub(super) fn new(ask: Ask, patience: Duration) -> Self {
        Self { ask, patience, worker: None, hung: BTreeMap::new(), began_full: false }
    }

    /// Begins a run.
    pub(super) fn begin(&mut self) {
        self.collect();
        self.began_full = self.hung.len() >= HUNG_MAX;
    }

    /// Asks the mount `place` at `path`; `trusted` if it answered at once in the last run.
    pub(super) fn ask(&mut self, place: &Place, path: PathBuf, trusted: bool) -> Answer {
        self.collect();
        let now = clock::stamp().at;
        if let Some(hung) = self.hung.get(&place.id) {
            return Answer::Hanging(now.since(hung.since));
        }
        let hung = self.hung.len();
        if hung > HUNG_MAX || (hung == HUNG_MAX && !(trusted && self.began_full)) {
            return Answer::NotAsked(hung);
        }
        let worker = match self.worker.take().map_or_else(|| Worker::start(&self.ask), Ok) {
            Ok(worker) => worker,
            Err(problem) => return Answer::NoThread(problem),
        };
        // A worker that has ended is told from one that hangs by its answer.
        let _ = worker.questions.send(path);
        match worker.answers.recv_timeout(self.patience) {
            Ok(answer) => {
                self.worker = Some(worker);
                Answer::Answered(answer)
            }
            Err(RecvTimeoutError::Timeout) => {
                warn!("{:?} does not answer; it is not asked again until it does", place.path);
                self.hung.insert(place.id, Hung { since: now, worker });
                Answer::Hanging(clock::stamp().at.since(now))
            }
            Err(RecvTimeoutError::Disconnected) => Answer::Answered(Err(Errno::IO)),
        }
    }

    /// Ends the thread that is not waiting for an answer.
    pub(super) fn rest(&mut self) {
        self.worker = None;
    }

    /// Forgets the threads that have come back: without questions, they end.
    fn collect(&mut self) {
        self.hung.retain(|id, hung| {
            let waits = matches!(hung.worker.answers.try_recv(), Err(TryRecvError::Empty));
            if !waits {
                info!("mount {id} has answered after all");
            }
            waits
        });
    }
}

impl core::fmt::Debug for Asker {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Asker").field("hung", &self.hung.keys()).finish_non_exhaustive()
    }
}

impl Worker {
    fn start(ask: &Ask) -> io::Result<Self> {
        let (questions, asked) = channel::<PathBuf>();
        let (answer, answers) = channel();
        let ask = Arc::clone(ask);
        let run = move || {
            while let Ok(path) = asked.recv() {
                if answer.send(ask(&path)).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().name("statfs".to_owned()).stack_size(STACK_BYTES).spawn(run)?;
        Ok(Self { questions, answers })
    }
}

/// Nodes have a handful of disks; when so many do not answer, more threads would not help.
pub(super) const HUNG_MAX: usize = 4;

/// For two system calls and a path.
const STACK_BYTES: usize = 64 * 1024;
