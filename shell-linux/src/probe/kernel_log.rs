//! Follows the kernel log on a thread of its own, so that nothing else can make it late.

use core::time::Duration;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;

use rustix::process::setpriority_process;
use tokio::sync::mpsc;

use crate::sys::kmsg::{Device, Reading};

/// What happened to the log, in the order in which it happened.
///
/// Records stand one after the other in one buffer: a flood costs one allocation for some hundred
/// records, not one for each.
#[derive(Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    events: Vec<Event>,
}

/// One thing that happened to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// There is no further record at the moment.
    CaughtUp,
    /// It cannot be read.
    Down {
        /// The operating system's error number.
        errno: i32,
    },
    /// Records were overwritten before they were read.
    Overrun,
    /// The next record, of this many bytes.
    Record {
        /// Bytes of the record.
        length: usize,
    },
}

impl Batch {
    /// Returns each event, with the bytes of the record if it is one.
    pub fn iter(&self) -> impl Iterator<Item = (Event, &[u8])> {
        let mut rest = self.bytes.as_slice();
        self.events.iter().map(move |event| match event {
            Event::Record { length } => {
                let (record, after) = rest.split_at_checked(*length).unwrap_or((rest, &[]));
                rest = after;
                (*event, record)
            }
            Event::CaughtUp | Event::Down { .. } | Event::Overrun => (*event, &[][..]),
        })
    }

    fn push_record(&mut self, record: &[u8]) {
        self.bytes.extend_from_slice(record);
        self.events.push(Event::Record { length: record.len() });
    }

    fn is_full(&self) -> bool {
        self.bytes.len() >= BATCH_BYTES_MAX
    }
}

/// Starts to follow the log at `path` and returns where its batches arrive.
///
/// The thread ends when the receiver is dropped, at the latest with the process: it may be waiting
/// for the kernel.
///
/// # Errors
///
/// Returns why the thread cannot be started.
pub fn follow(path: PathBuf) -> io::Result<mpsc::Receiver<Batch>> {
    let (sender, receiver) = mpsc::channel(BATCHES_MAX);
    let follower = Follower { sender, down: None };
    thread::Builder::new()
        .name("kmsg".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || follower.run(&path))?;
    Ok(receiver)
}

struct Follower {
    sender: mpsc::Sender<Batch>,
    /// The outage that was told last, so that each is told once.
    down: Option<i32>,
}

/// The receiver is gone: nobody wants to know.
struct Unwanted;

impl Follower {
    fn run(mut self, path: &Path) {
        // A flood on a busy node is over before an ordinary thread has its turn. Without the right
        // to ask for more the thread is an ordinary one.
        let _ = setpriority_process(Some(rustix::thread::gettid()), NICE);
        let mut wait = BACKOFF_MIN;
        loop {
            let outcome = match Device::open(path) {
                Ok(mut device) => self.read(&mut device, &mut wait),
                Err(error) => self.tell_down(error.raw_os_error().unwrap_or(0)),
            };
            if outcome.is_err() {
                return;
            }
            thread::sleep(wait);
            wait = wait.saturating_mul(2).min(BACKOFF_MAX);
        }
    }

    /// Reads until the device fails.
    fn read(&mut self, device: &mut Device, wait: &mut Duration) -> Result<(), Unwanted> {
        let mut batch = Batch::default();
        loop {
            match device.read() {
                Reading::Record(record) => batch.push_record(record),
                Reading::Overrun => batch.events.push(Event::Overrun),
                Reading::Empty => {
                    // Only a device that was read to its end is well again.
                    self.down = None;
                    *wait = BACKOFF_MIN;
                    batch.events.push(Event::CaughtUp);
                    self.send(core::mem::take(&mut batch))?;
                    device.wait(WAIT_MAX);
                }
                Reading::Failed { errno } => {
                    self.send(batch)?;
                    return self.tell_down(errno);
                }
            }
            if batch.is_full() {
                self.send(core::mem::take(&mut batch))?;
            }
        }
    }

    fn tell_down(&mut self, errno: i32) -> Result<(), Unwanted> {
        if self.down.replace(errno) == Some(errno) {
            // Told already; only look whether anybody is still there.
            return if self.sender.is_closed() { Err(Unwanted) } else { Ok(()) };
        }
        self.send(Batch { bytes: Vec::new(), events: vec![Event::Down { errno }] })
    }

    fn send(&self, batch: Batch) -> Result<(), Unwanted> {
        if batch.events.is_empty() {
            return Ok(());
        }
        self.sender.blocking_send(batch).map_err(|_| Unwanted)
    }
}

/// Most bytes that a batch collects before it is sent: half of the kernel's smallest usual ring.
const BATCH_BYTES_MAX: usize = 64 * 1024;

/// Most batches that wait: with them, some 300 KiB of records are between kernel and core.
const BATCHES_MAX: usize = 4;

/// The thread reads into a buffer on the heap and calls nothing deep.
const STACK_BYTES: usize = 128 * 1024;

/// Above what an ordinary process may ask for, below what the kernel's own threads have.
const NICE: i32 = -10;

/// How long the thread waits for a record before it looks whether it is still wanted.
const WAIT_MAX: Duration = Duration::from_secs(3600);

/// How long to wait before a device that failed is opened again, at first and at most.
const BACKOFF_MIN: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(30);
