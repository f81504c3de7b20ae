//! Reads space and inodes of the node's local file systems.

mod asking;
mod table;

use core::time::Duration;
use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use fettle_core::bounds::SUBJECT_MAX;
use fettle_core::catalog::ReadingKind;
use fettle_core::node::checks::Outcome;
use fettle_core::node::reading::{FileSystem, Reading};
use fettle_core::text::Text;
use fettle_core::time::Instant;
use rustix::io::Errno;

use self::asking::{Answer, Ask, Asker};
use self::table::{Local, Place};
use crate::clock;
use crate::probe::Probe;
use crate::probe::batch::{Batch, failed};
use crate::sys::file::{below, shown};
use crate::sys::statfs::{self, Space};

/// The probe of `DiskUsageHigh`.
#[derive(Debug)]
pub struct FileSystems {
    root: PathBuf,
    kubelet_dir: PathBuf,
    asker: Asker,
    /// Mounts that answered at once when they were asked last.
    prompt: BTreeSet<u64>,
    rows: Vec<FileSystemRow>,
}

/// A file system, for the report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileSystemRow {
    /// Where it is mounted: the shortest path.
    pub mount_point: String,
    /// What is mounted.
    pub device: String,
    /// Its type, such as `ext4`.
    pub fs_type: String,
    /// All of its space.
    pub size_bytes: Option<u64>,
    /// Space that is used.
    pub used_bytes: Option<u64>,
    /// Space that is used, of what is used or free for ordinary users.
    pub used_pct_hundredths: Option<u32>,
    /// All inodes; 0 where the file system makes them as it needs them.
    pub inodes: Option<u64>,
    /// Inodes that are used.
    pub inodes_used: Option<u64>,
    /// Inodes that are used, of all.
    pub inodes_used_pct_hundredths: Option<u32>,
    /// Whether the kernel has stopped writes to it.
    pub read_only: bool,
    /// Why it could not be read.
    pub error: Option<String>,
}

/// What is used of a file system, and of how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Use {
    used_bytes: u64,
    usable_bytes: u64,
    inodes_used: u64,
    inodes: u64,
}

impl FileSystemRow {
    /// Returns the row that says why file systems could not be read; it has no type.
    #[must_use]
    pub fn unread(why: String) -> Self {
        Self { mount_point: "file systems".to_owned(), error: Some(why), ..Self::default() }
    }
}

impl FileSystems {
    /// Reads the file systems of the node below `root`, without the volumes below `kubelet_dir`.
    #[must_use]
    pub fn new(root: PathBuf, kubelet_dir: PathBuf) -> Self {
        Self::asking(root, kubelet_dir, Arc::new(statfs::read), PATIENCE)
    }

    fn asking(root: PathBuf, kubelet_dir: PathBuf, ask: Ask, patience: Duration) -> Self {
        let asker = Asker::new(ask, patience);
        Self { root, kubelet_dir, asker, prompt: BTreeSet::new(), rows: Vec::new() }
    }

    /// Returns what the last run read.
    #[must_use]
    pub fn rows(&self) -> &[FileSystemRow] {
        &self.rows
    }

    /// Reads one file system, by the first of its paths that leads to it.
    fn read_one(
        &mut self,
        start: Instant,
        device: (u32, u32),
        local: &Local,
    ) -> Result<Space, String> {
        let mut why = String::from("it is mounted nowhere");
        for place in &local.places {
            let space = self.ask(start, place)?;
            match space {
                // A file system with a number of its own shows another one to `stat`.
                Ok(space) if device.0 == 0 || space.device == device => return Ok(space),
                Ok(_) | Err(Errno::NOENT | Errno::NOTDIR) => {
                    why = String::from("another mount hides it");
                }
                Err(problem) => return Err(format!("statfs failed: {problem}")),
            }
        }
        Err(why)
    }

    /// Asks one mount, unless there is no point or no time.
    fn ask(&mut self, start: Instant, place: &Place) -> Result<Result<Space, Errno>, String> {
        let before = clock::stamp().at;
        if before.since(start) >= RUN_MAX {
            let limit_s = RUN_MAX.as_secs();
            return Err(format!("not reached within {limit_s} s: others were slow to answer"));
        }
        let trusted = self.prompt.remove(&place.id);
        let path = below(&self.root, &place.path);
        match self.asker.ask(place, path, trusted) {
            Answer::Answered(answer) => {
                if clock::stamp().at.since(before) < PROMPT {
                    self.prompt.insert(place.id);
                }
                Ok(answer)
            }
            Answer::Hanging(since) => {
                Err(format!("statfs has not answered for {} s", since.as_secs()))
            }
            Answer::NotAsked(hung) => {
                Err(format!("not asked, because {hung} mounts do not answer and it might hang too"))
            }
            Answer::NoThread(problem) => Err(format!("cannot start a thread: {problem}")),
        }
    }

    fn is_prompt(&self, local: &Local) -> bool {
        local.places.first().is_some_and(|place| self.prompt.contains(&place.id))
    }
}

impl Probe for FileSystems {
    fn read(&mut self, batch: &mut Batch) -> Outcome {
        self.rows.clear();
        let table = match table::read(&self.root, &self.kubelet_dir) {
            Ok(table) => table,
            Err(problem) => {
                let why = format!("cannot read the mount table: {problem}");
                self.rows.push(FileSystemRow::unread(why.clone()));
                return failed(&why);
            }
        };
        if table.locals.is_empty() {
            return Outcome::NotApplicable;
        }
        let mut locals: Vec<_> = table.locals.iter().collect();
        // Those that answer at once come first, so that nothing makes them late; then the shortest
        // paths, which the node needs most.
        locals.sort_by_key(|(_, local)| {
            (!self.is_prompt(local), first_path(local).len(), first_path(local))
        });
        let ids = locals.iter().flat_map(|(_, local)| local.places.iter().map(|place| place.id));
        let present: BTreeSet<u64> = ids.collect();
        self.prompt.retain(|id| present.contains(id));
        let start = clock::stamp().at;
        self.asker.begin();
        for (device, local) in locals {
            let space = self.read_one(start, *device, local);
            let row = push(batch, *device, local, space);
            self.rows.push(row);
        }
        self.asker.rest();
        if table.omitted > 0 {
            let why = format!("{} more than this agent looks at", table.omitted);
            batch.push_unreadable("file systems", &why);
            self.rows.push(FileSystemRow::unread(why));
        }
        self.rows.sort_by(|a, b| a.mount_point.cmp(&b.mount_point));
        Outcome::Complete
    }

    fn kind(&self) -> ReadingKind {
        ReadingKind::FileSystems
    }

    fn deadline(&self) -> Duration {
        DEADLINE
    }
}

/// Appends the reading of one file system, and returns its row.
fn push(
    batch: &mut Batch,
    device: (u32, u32),
    local: &Local,
    space: Result<Space, String>,
) -> FileSystemRow {
    let path = first_path(local);
    let name = object(path, device);
    let mut row = FileSystemRow {
        mount_point: shown(path),
        device: local.source.clone(),
        fs_type: local.fs_type.clone(),
        // Not as `statvfs(3)` has it: a confined agent's own mounts are all read-only.
        read_only: local.stopped,
        ..FileSystemRow::default()
    };
    match space.and_then(|space| Ok((space, usage(&space, &local.fs_type)?))) {
        Ok((space, usage)) => {
            let Use { used_bytes, usable_bytes, inodes_used, inodes } = usage;
            let mount_point = &name;
            batch.push(&Reading::FileSystem(FileSystem {
                mount_point,
                used_bytes,
                usable_bytes,
                inodes_used,
                inodes,
            }));
            row.size_bytes = Some(space.size_bytes);
            row.used_bytes = Some(used_bytes);
            row.used_pct_hundredths = hundredths(used_bytes, usable_bytes);
            row.inodes = Some(inodes);
            row.inodes_used = Some(inodes_used);
            row.inodes_used_pct_hundredths = hundredths(inodes_used, inodes);
        }
        Err(why) => {
            batch.push_unreadable(&name, &why);
            row.error = Some(why);
        }
    }
    row
}

/// Returns what is used; or why what the file system says cannot be.
fn usage(space: &Space, fs_type: &str) -> Result<Use, String> {
    let Space { size_bytes, free_bytes, available_bytes, .. } = *space;
    let free_max = free_bytes.max(available_bytes);
    if size_bytes == 0 || free_max > size_bytes {
        return Err(format!("it says that {free_max} of its {size_bytes} bytes are free"));
    }
    let used_bytes = size_bytes.saturating_sub(free_bytes);
    let usable_bytes = used_bytes.saturating_add(available_bytes);
    let as_needed = space.inodes == 0 || INODES_AS_NEEDED.contains(&fs_type);
    let (inodes, free) = if as_needed { (0, 0) } else { (space.inodes, space.inodes_free) };
    let inodes_used = inodes
        .checked_sub(free)
        .ok_or_else(|| format!("it says that {free} of its {inodes} inodes are free"))?;
    Ok(Use { used_bytes, usable_bytes, inodes_used, inodes })
}

/// Returns the name of a mount point as the core keeps it, and no other has.
///
/// The core cuts long names; what is the same after that would be one object to it, and the one
/// that is well would hide the one that is not.
fn object(path: &[u8], device: (u32, u32)) -> String {
    let whole = Text::<SUBJECT_MAX>::from_bytes(path);
    if whole.as_str().as_bytes() == path {
        return whole.as_str().to_owned();
    }
    let front = Text::<FRONT_MAX>::from_bytes(path);
    format!("{front} ({}:{})", device.0, device.1)
}

fn first_path(local: &Local) -> &[u8] {
    local.places.first().map_or(b"", |place| place.path.as_os_str().as_bytes())
}

fn hundredths(part: u64, whole: u64) -> Option<u32> {
    let scaled = u128::from(part).saturating_mul(10_000);
    u32::try_from(scaled.checked_div(u128::from(whole))?).ok()
}

/// These count free space as inodes that are free, or count none at all.
const INODES_AS_NEEDED: [&str; 3] = ["bcachefs", "btrfs", "zfs"];

/// How long a file system may take to answer; a disk that wakes up takes a few seconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// Who answers within this time is asked first the next time.
const PROMPT: Duration = Duration::from_secs(1);

/// How long a run goes on asking.
const RUN_MAX: Duration = Duration::from_secs(40);

/// A run, the last mount that hangs in it, and a machine that is busy.
const DEADLINE: Duration = Duration::from_secs(60);

/// Of a name, what leaves room for two numbers of a device.
const FRONT_MAX: usize = SUBJECT_MAX - 24;

#[cfg(test)]
mod tests;
