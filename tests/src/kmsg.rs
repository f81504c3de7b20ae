//! The kernel log without Fettle: a witness that reads it, a voice that writes it, and a copy of
//! it that needs no kernel.

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, PipeReader, PipeWriter, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::clock::now;
use crate::program::{Agent, event_of};

/// An independent reader of `/dev/kmsg`.
#[derive(Debug)]
pub struct Witness {
    file: File,
}

/// One record, as the witness read it.
#[derive(Debug, Clone)]
pub struct Record {
    /// When the witness read it.
    pub at: Instant,
    /// Its number.
    pub sequence: u64,
    /// Its first line, without the prefix.
    pub text: String,
}

impl Witness {
    /// Reads from the oldest record on.
    ///
    /// # Panics
    ///
    /// If the log cannot be read.
    #[must_use]
    pub fn from_oldest() -> Self {
        let nonblocking = i32::try_from(OFlags::NONBLOCK.bits()).expect("it is a small flag");
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(nonblocking)
            .open(PATH)
            .unwrap_or_else(|error| panic!("cannot read {PATH}: {error}; run as root"));
        Self { file }
    }

    /// Reads only what is not written yet.
    ///
    /// # Panics
    ///
    /// If the log cannot be read.
    #[must_use]
    pub fn from_now() -> Self {
        let mut witness = Self::from_oldest();
        witness.file.seek(SeekFrom::End(0)).expect("the log has an end");
        witness
    }

    /// Returns all records up to the newest.
    pub fn rest(&mut self) -> Vec<Record> {
        self.collect()
    }

    /// Waits for a record whose text contains `words`.
    ///
    /// # Panics
    ///
    /// If none comes within `limit`.
    pub fn wait(&mut self, words: &str, limit: Duration) -> Record {
        let start = now();
        while start.elapsed() < limit {
            match self.next() {
                Some(record) if record.text.contains(words) => return record,
                Some(_) => {}
                None => self.wait_readable(),
            }
        }
        panic!("the kernel did not say {words:?} within {limit:?}: the fault was not provoked");
    }

    fn wait_readable(&self) {
        let limit = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        let mut fds = [PollFd::new(&self.file, PollFlags::IN)];
        poll(&mut fds, Some(&limit)).expect("the log can be waited for");
    }
}

impl Iterator for Witness {
    type Item = Record;

    /// Returns the next record, or `None` while there is no further one.
    fn next(&mut self) -> Option<Record> {
        let mut buffer = [0; 8192];
        loop {
            match self.file.read(&mut buffer) {
                Ok(length) => return Some(parse(buffer.get(..length)?)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                // Records were overwritten; the next read gives the oldest there is.
                Err(error) if error.raw_os_error() == Some(Errno::PIPE.raw_os_error()) => {}
                Err(error) => panic!("cannot go on reading {PATH}: {error}"),
            }
        }
    }
}

/// A writer to `/dev/kmsg`: what it says is marked as user space's.
#[derive(Debug)]
pub struct Voice {
    file: File,
}

impl Voice {
    /// Opens the log for writing.
    ///
    /// # Panics
    ///
    /// If it cannot be written to.
    #[must_use]
    pub fn new() -> Self {
        let file = OpenOptions::new()
            .write(true)
            .open(PATH)
            .unwrap_or_else(|error| panic!("cannot write to {PATH}: {error}; run as root"));
        Self { file }
    }

    /// Writes one record of level debug, which no console shows.
    ///
    /// # Panics
    ///
    /// If the kernel refuses it.
    pub fn say(&mut self, text: &str) {
        self.say_as(15, text);
    }

    /// Writes one record with a priority of its own; the kernel adds whose it is.
    ///
    /// # Panics
    ///
    /// If the kernel refuses it.
    pub fn say_as(&mut self, priority: u8, text: &str) {
        // Without the line's end the record stays hidden until the next one.
        let record = format!("<{priority}>{text}\n");
        let written = self.file.write(record.as_bytes());
        assert_eq!(written.ok(), Some(record.len()), "the kernel did not take {record:?}");
    }

    /// Writes records until the log holds none that is older than this call.
    ///
    /// # Panics
    ///
    /// If the log is so large that this does not help.
    pub fn flush(&mut self) {
        let filler = "-".repeat(800);
        let newest = Witness::from_oldest().rest().last().map_or(0, |record| record.sequence);
        for _ in 0..FLUSHES {
            for _ in 0..200 {
                self.say(&filler);
            }
            let oldest = Witness::from_oldest().next().expect("the log was just written to");
            if oldest.sequence > newest {
                return;
            }
        }
        panic!("the kernel's log buffer is too large to be filled; see log_buf_len=");
    }
}

impl Default for Voice {
    fn default() -> Self {
        Self::new()
    }
}

/// A kernel log that the test writes: one read gives one record, as with `/dev/kmsg`.
#[derive(Debug)]
pub struct FakeLog {
    writer: PipeWriter,
    /// Keeps the pipe open while no agent reads it.
    reader: PipeReader,
}

impl FakeLog {
    /// Makes an empty log.
    ///
    /// # Panics
    ///
    /// If there are no pipes to be had.
    #[must_use]
    pub fn new() -> Self {
        let (reader, writer) = std::io::pipe().expect("pipes are to be had");
        // In this mode a pipe keeps the bounds of what is written.
        rustix::fs::fcntl_setfl(&writer, OFlags::DIRECT).expect("pipes have a packet mode");
        Self { writer, reader }
    }

    /// Returns where an agent can open it.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        Path::new("/proc").join(format!("{}/fd/{}", std::process::id(), self.reader.as_raw_fd()))
    }

    /// Writes one record, prefix and all; waits while the log is full.
    ///
    /// # Panics
    ///
    /// If it cannot be written.
    pub fn write(&mut self, record: &str) {
        self.writer.write_all(format!("{record}\n").as_bytes()).expect("the pipe is open");
    }

    /// Writes `records`, waits until `agent` has told what a last one of its own says, and returns.
    ///
    /// `run` counts the agents that have read these records before with the same state.
    pub fn play(&mut self, agent: &Agent, run: u64, records: &[&str]) {
        for record in records {
            self.write(record);
        }
        let newest = records.iter().filter_map(|record| sequence(record)).max().unwrap_or(0);
        let name = format!("fettle{run}");
        let sequence = newest + 1 + run;
        let text =
            format!("unregister_netdevice: waiting for {name} to become free. Usage count = 1");
        self.write(&format!("3,{sequence},1,-;{text}"));
        agent.wait_line("the last record", event_of("UnregisterNetDevice", &name));
    }
}

impl Default for FakeLog {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns a name that no record before has: at most 10 letters and digits.
#[must_use]
pub fn unique_name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("f{:x}n{next}", std::process::id())
}

fn parse(bytes: &[u8]) -> Record {
    let text = String::from_utf8_lossy(bytes);
    let (prefix, text) = text.split_once(';').expect("a record has a prefix");
    let sequence = sequence(prefix).expect("a record has a number");
    let text = text.lines().next().unwrap_or_default().to_owned();
    Record { at: now(), sequence, text }
}

fn sequence(record: &str) -> Option<u64> {
    record.split(',').nth(1)?.parse().ok()
}

/// Where the kernel's log is.
pub const PATH: &str = "/dev/kmsg";

/// Times 200 long records: more than the largest buffer that distributions set, 16 MiB.
const FLUSHES: usize = 200;
