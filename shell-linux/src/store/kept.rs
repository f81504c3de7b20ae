//! What outlives a boot: reboots that were ordered, and tamper conditions that hold.
//!
//! One small JSON file below `/var`, replaced as a whole. People may read it; nobody need write it.

use core::time::Duration;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use fettle_core::bounds::REBOOTS_MAX;
use fettle_core::catalog::ConditionType;
use fettle_core::node::publisher::orders::Reboot;
use fettle_core::text::Text;
use rustix::fs::{CWD, Mode, OFlags};
use serde::{Deserialize, Serialize};

use crate::store;

/// The file that outlives a boot.
#[derive(Debug)]
pub struct KeptFile {
    path: PathBuf,
    kept: Kept,
    /// Whether it was there when it was opened.
    is_from_before: bool,
    /// The thread that was given up, if one was.
    writer: Option<JoinHandle<()>>,
}

/// What the file holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Kept {
    /// Types of the tamper conditions that nobody has cleared.
    #[serde(default)]
    held: Vec<String>,
    /// Ordered reboots, oldest first.
    #[serde(default)]
    reboots: Vec<Ordered>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Ordered {
    /// The id of the order.
    id: String,
    /// The boot in which it was ordered.
    boot_id: String,
    /// Whether its end was told.
    told: bool,
}

/// Why nothing is kept.
#[derive(Debug, thiserror::Error)]
pub enum KeptError {
    /// The file holds something else.
    #[error(
        "{} does not hold what this agent keeps there, so no reboot is done and nothing is held \
             from before; look at it, and take it away",
        path.display()
    )]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: serde_json::Error,
    },
    /// The file cannot be read.
    #[error("cannot read what was kept in {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        #[source]
        source: io::Error,
    },
    /// The file cannot be written.
    #[error("cannot keep anything in {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        #[source]
        source: io::Error,
    },
}

impl KeptFile {
    /// Reads the file in `directory`; none is as good as an empty one.
    ///
    /// # Errors
    ///
    /// Says why the file is there but cannot be used.
    pub fn open(directory: &Path) -> Result<Self, KeptError> {
        let path = directory.join("kept.json");
        let bytes = match store::read(&path, KEPT_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self {
                    path,
                    kept: Kept::default(),
                    is_from_before: false,
                    writer: None,
                });
            }
            Err(source) => return Err(KeptError::Read { path, source }),
        };
        match serde_json::from_slice(&bytes) {
            Ok(kept) => Ok(Self { path, kept, is_from_before: true, writer: None }),
            Err(source) => Err(KeptError::Content { path, source }),
        }
    }

    /// Returns whether an earlier process has kept anything here.
    #[must_use]
    pub const fn is_from_before(&self) -> bool {
        self.is_from_before
    }

    /// Returns the reboots that were ordered, oldest first.
    #[must_use]
    pub fn reboots(&self) -> Vec<Reboot> {
        let reboots = self.kept.reboots.iter().rev().take(REBOOTS_MAX).rev();
        let reboots = reboots.map(|ordered| Reboot {
            id: Text::from_bytes(ordered.id.as_bytes()),
            boot: Text::from_bytes(ordered.boot_id.as_bytes()),
            told: ordered.told,
        });
        reboots.collect()
    }

    /// Keeps `reboots` in place of those that were kept.
    ///
    /// # Errors
    ///
    /// Says why they are not on disk; then those before may be.
    pub fn keep_reboots(&mut self, reboots: &[Reboot]) -> Result<(), KeptError> {
        let ordered = reboots.iter().map(|reboot| Ordered {
            id: reboot.id.as_str().to_owned(),
            boot_id: reboot.boot.as_str().to_owned(),
            told: reboot.told,
        });
        let reboots = ordered.collect();
        self.replace(Kept { reboots, ..self.kept.clone() })
    }

    /// Returns the tamper conditions that held before.
    pub fn held(&self) -> impl Iterator<Item = ConditionType> {
        self.kept.held.iter().filter_map(|name| ConditionType::by_name(name))
    }

    /// Keeps whether a tamper condition holds.
    ///
    /// # Errors
    ///
    /// Says why that is not on disk.
    pub fn keep_held(&mut self, condition: ConditionType, holds: bool) -> Result<(), KeptError> {
        let name = condition.row().name;
        if self.kept.held.iter().any(|held| held == name) == holds {
            return Ok(());
        }
        let mut kept = self.kept.clone();
        kept.held.retain(|held| held != name);
        if holds {
            kept.held.push(name.to_owned());
        }
        self.replace(kept)
    }

    /// Keeps `kept` if it can be written: what could not be is not known to be kept.
    fn replace(&mut self, kept: Kept) -> Result<(), KeptError> {
        let bytes = serde_json::to_vec_pretty(&kept).map_err(io::Error::from);
        let written = bytes.and_then(|bytes| self.write_in_time(bytes));
        written.map_err(|source| KeptError::Write { path: self.path.clone(), source })?;
        self.kept = kept;
        Ok(())
    }

    /// Writes on a thread of its own: a disk that hangs, which may be why a reboot is ordered, holds
    /// up nobody for longer than [`WRITE_WITHIN`].
    fn write_in_time(&mut self, bytes: Vec<u8>) -> io::Result<()> {
        if self.writer.as_ref().is_some_and(|writer| !writer.is_finished()) {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "an earlier write still hangs"));
        }
        let (path, (sender, written)) = (self.path.clone(), mpsc::sync_channel(1));
        // The waiting end may be gone.
        let write = move || _ = sender.send(write(&path, &bytes));
        let writer = thread::Builder::new().name("kept".to_owned()).stack_size(STACK_BYTES);
        let writer = writer.spawn(write)?;
        written.recv_timeout(WRITE_WITHIN).unwrap_or_else(|_| {
            self.writer = Some(writer);
            Err(io::Error::new(io::ErrorKind::TimedOut, "the disk does not answer within 3 s"))
        })
    }
}

/// Replaces the file, and hands it and its name to the disk: what comes next may be a reboot.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    store::replace(path, bytes)?;
    for path in [Some(path), path.parent()].into_iter().flatten() {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        rustix::fs::fsync(rustix::fs::openat(CWD, path, flags, Mode::empty())?)?;
    }
    Ok(())
}

/// How long the one loop waits for the disk at most.
const WRITE_WITHIN: Duration = Duration::from_secs(3);

const STACK_BYTES: usize = 128 * 1024;

/// Two names and some dozen reboots have less.
const KEPT_BYTES_MAX: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn at(path: PathBuf) -> KeptFile {
        KeptFile { path, kept: Kept::default(), is_from_before: false, writer: None }
    }

    #[test]
    fn what_was_kept_is_there_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new");
        let mut file = KeptFile::open(&path).unwrap();
        assert_eq!((file.reboots(), file.held().count()), (Vec::new(), 0));
        let (id, boot) = (Text::from_bytes(b"op-1"), Text::from_bytes(b"b1"));
        let reboot = Reboot { id, boot, told: false };
        file.keep_reboots(core::slice::from_ref(&reboot)).unwrap();
        file.keep_held(ConditionType::NodeTampered, true).unwrap();
        let mut again = KeptFile::open(&path).unwrap();
        assert_eq!(again.reboots(), [reboot]);
        assert_eq!(again.held().collect::<Vec<_>>(), [ConditionType::NodeTampered]);
        again.keep_held(ConditionType::NodeTampered, false).unwrap();
        assert_eq!(KeptFile::open(&path).unwrap().held().count(), 0);
    }

    #[test]
    fn garbage_is_refused_and_left_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kept.json");
        for garbage in ["", "null", "{\"reboots\":7}", "{\"x\":[]}", "{\"held\":[]"] {
            fs::write(&path, garbage).unwrap();
            assert!(matches!(KeptFile::open(directory.path()), Err(KeptError::Content { .. })));
            assert_eq!(fs::read_to_string(&path).unwrap(), garbage);
        }
    }

    #[test]
    fn where_nothing_can_be_written_it_says_so() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("file"), "").unwrap();
        let mut file = at(directory.path().join("file/kept.json"));
        let kept = file.keep_held(ConditionType::NodeTampered, true);
        assert!(matches!(kept, Err(KeptError::Write { .. })));
    }

    #[test]
    fn what_could_not_be_kept_is_tried_again() {
        let directory = tempfile::tempdir().unwrap();
        let blocker = directory.path().join("d");
        fs::write(&blocker, "").unwrap();
        let mut file = at(blocker.join("kept.json"));
        assert!(file.keep_held(ConditionType::NodeTampered, true).is_err());
        fs::remove_file(&blocker).unwrap(); // there is room again
        file.keep_held(ConditionType::NodeTampered, true).unwrap();
        assert_eq!(KeptFile::open(&blocker).unwrap().held().count(), 1);
    }

    #[test]
    fn an_order_that_was_not_recorded_is_not_recorded_later() {
        let directory = tempfile::tempdir().unwrap();
        let blocker = directory.path().join("d");
        fs::write(&blocker, "").unwrap();
        let mut file = at(blocker.join("kept.json"));
        let (id, boot) = (Text::from_bytes(b"op-1"), Text::from_bytes(b"b1"));
        assert!(file.keep_reboots(&[Reboot { id, boot, told: false }]).is_err());
        fs::remove_file(&blocker).unwrap();
        file.keep_held(ConditionType::NodeTampered, true).unwrap();
        assert_eq!(KeptFile::open(&blocker).unwrap().reboots(), []);
    }
}
