//! Compares protected files with what they were at the first run of this boot.

mod baseline;
mod comparison;
mod walk;
mod watches;

use core::time::Duration;
use std::collections::BTreeMap;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;

use fettle_core::catalog::ReadingKind;
use fettle_core::node::checks::Outcome;
use fettle_core::node::reading::{FileChange, ProtectedFile, Reading};
use fettle_core::time::Timestamp;
use log::warn;
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

use self::baseline::{Baseline, Store, StoreError};
use self::comparison::{Cached, Comparison, FILES_MAX, HASHED_BYTES_MAX};
use self::walk::{NAMES_MAX, Protected, Visitor as _, Walk};
use self::watches::Watches;
use crate::clock;
use crate::errors::chain;
use crate::probe::Probe;
use crate::probe::batch::{Batch, failed};
use crate::probe::rows::Rows;
use crate::store;
use crate::sys::file::shown;

/// The probe of `NodeTampered`.
///
/// The baseline is taken by the first run of a boot that finds a protected file, and kept for the
/// rest of the boot. Each run lists the folders and looks at every file's dates; it reads a file
/// only where those, or what inotify said, leave room for a change. So it sees also what inotify
/// does not tell: a mount over a file, and writes through a mapping.
///
/// No link is followed: a protected link is compared by where it leads.
#[derive(Debug)]
pub struct ProtectedFiles {
    root: PathBuf,
    patterns: Vec<Protected>,
    /// Patterns that are none, and why.
    refused: Vec<(String, String)>,
    store: Store,
    /// Whether the store has been asked, and holds nothing that is not in `baseline`.
    loaded: bool,
    saved: bool,
    /// Whether the baseline is another process's.
    is_guest: bool,
    baseline: Option<Baseline>,
    watches: Watches,
    cache: BTreeMap<Vec<u8>, Cached>,
    report: ProtectedReport,
}

/// How the protected files stand, for the report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProtectedReport {
    /// When the baseline was taken.
    pub baseline_at: Option<Timestamp>,
    /// How many files it holds.
    pub files: u64,
    /// The files that are not as they were then.
    pub changes: Vec<(String, FileChange)>,
    /// Why something could not be compared.
    pub error: Option<String>,
}

impl ProtectedFiles {
    /// Compares the files of the node below `root` that match `globs`; `state` keeps the baseline.
    ///
    /// `*` stands for any part of one name, also of a hidden one, and `/**` at the end for
    /// everything below a folder.
    #[must_use]
    pub fn new(root: PathBuf, globs: Vec<String>, state: PathBuf) -> Self {
        Self::in_boot(root, globs, Store::new(state, store::boot_id()))
    }

    /// Compares with the baseline that another process keeps, and changes nothing of it.
    #[must_use]
    pub fn as_guest(mut self) -> Self {
        self.is_guest = true;
        self
    }

    fn in_boot(root: PathBuf, globs: Vec<String>, store: Store) -> Self {
        let (mut patterns, mut refused) = (Vec::new(), Vec::new());
        for glob in globs {
            match Protected::new(&glob) {
                Ok(pattern) => patterns.push(pattern),
                Err(why) => refused.push((glob, format!("it is no pattern: {why}"))),
            }
        }
        Self {
            root,
            patterns,
            refused,
            store,
            loaded: false,
            saved: true,
            is_guest: false,
            baseline: None,
            watches: Watches::default(),
            cache: BTreeMap::new(),
            report: ProtectedReport::default(),
        }
    }

    /// Forgets what the files were: the next run takes a new baseline.
    pub fn forget_baseline(&mut self) {
        self.baseline = None;
        self.cache.clear();
        // What cannot be removed shall not come back either.
        self.loaded = true;
        if let Err(problem) = self.store.forget() {
            warn!("{}", chain(&problem));
        }
    }

    /// Returns what the last run found.
    #[must_use]
    pub const fn report(&self) -> &ProtectedReport {
        &self.report
    }

    fn load(&mut self) -> Result<(), StoreError> {
        if !self.loaded {
            self.baseline = self.store.load()?;
            self.loaded = true;
        }
        Ok(())
    }

    /// Looks at every file that a pattern names.
    fn compare(&mut self, root: &OwnedFd) -> Comparison {
        let cache = core::mem::take(&mut self.cache);
        let mut comparison = Comparison::new(self.baseline.take(), cache);
        for (pattern, why) in &self.refused {
            comparison.problem(pattern.as_bytes(), why.clone());
        }
        // Those that the baseline covers come first: what they name was there, or is new.
        let covered = |pattern: &&Protected| comparison.covers(pattern.text());
        let (covered, uncovered): (Vec<_>, Vec<_>) = self.patterns.iter().partition(covered);
        self.watches.begin();
        let watches = &mut self.watches;
        let visitor = &mut comparison;
        let mut walk = Walk { watches, visitor, names_left: NAMES_MAX };
        for (is_covered, patterns) in [(true, covered), (false, uncovered)] {
            walk.visitor.adopts = !is_covered;
            for pattern in patterns {
                walk.walk(root.as_fd(), pattern);
            }
        }
        self.watches.end();
        let is_named = |path: &[u8]| self.patterns.iter().any(|pattern| pattern.names(path));
        comparison.finish(is_named, |path| is_gone(root, path));
        comparison
    }

    /// Keeps what a run has found, on disk too if it is new.
    fn keep(&mut self, comparison: &mut Comparison) {
        let texts = self.patterns.iter().map(|pattern| pattern.text().to_owned()).collect();
        let taken_at = clock::stamp().wall_ms / 1000;
        self.cache = core::mem::take(&mut comparison.cache);
        let (baseline, is_new) = comparison.baseline(texts, taken_at);
        self.saved &= !is_new;
        let unsaved = !self.saved && !self.is_guest;
        if let Some(baseline) = baseline.as_ref().filter(|_| unsaved) {
            match self.store.save(baseline) {
                Ok(()) => self.saved = true,
                Err(problem) => warn!("{}", chain(&problem)),
            }
        }
        self.baseline = baseline;
    }
}

impl Probe for ProtectedFiles {
    fn read(&mut self, batch: &mut Batch) -> Outcome {
        self.report = ProtectedReport::default();
        if let Err(problem) = self.load() {
            return failed(&chain(&problem));
        }
        let root = match walk::open_root(&self.root) {
            Ok(root) => root,
            Err(problem) => return failed(&format!("cannot open the node's root: {problem}")),
        };
        let mut comparison = self.compare(&root);
        self.keep(&mut comparison);
        self.report = push(batch, &comparison);
        let Some(baseline) = &self.baseline else {
            return if batch.is_empty() { Outcome::NotApplicable } else { Outcome::Complete };
        };
        self.report.baseline_at = Some(Timestamp::from_unix_secs(baseline.taken_at));
        self.report.files = u64::try_from(baseline.files.len()).unwrap_or(u64::MAX);
        Outcome::Complete
    }

    fn document(&self, rows: &mut Rows) {
        rows.protected = Some(self.report.clone());
    }

    fn forget(&mut self) {
        self.forget_baseline();
    }

    fn kind(&self) -> ReadingKind {
        ReadingKind::ProtectedFiles
    }

    fn deadline(&self) -> Duration {
        DEADLINE
    }
}

/// Appends the readings of a run.
fn push(batch: &mut Batch, comparison: &Comparison) -> ProtectedReport {
    let mut report = ProtectedReport::default();
    for (path, change) in &comparison.changes {
        let path = shown(path);
        batch.push(&Reading::ProtectedFile(ProtectedFile { path: &path, change: *change }));
        report.changes.push((path, *change));
    }
    let beyond = beyond(comparison).map(|why| ("protected files".to_owned(), why));
    let problems = comparison.problems.iter().map(|(path, why)| (shown(path), why.clone()));
    for (object, why) in beyond.into_iter().chain(problems) {
        batch.push_unreadable(&object, &why);
        report.error.get_or_insert_with(|| format!("{object}: {why}"));
    }
    report
}

/// Says what is more than a run can take, with the numbers.
fn beyond(comparison: &Comparison) -> Option<String> {
    let mut parts = Vec::new();
    if comparison.omitted > 0 {
        let count = comparison.omitted;
        parts.push(format!("{count} files more than the {FILES_MAX} that can be compared"));
    }
    if comparison.unread > 0 {
        let (count, bytes) = (comparison.unread, comparison.unread_bytes);
        let limit_mib = HASHED_BYTES_MAX >> 20;
        parts.push(format!(
            "{count} files of {bytes} bytes were not read, as a run reads {limit_mib} MiB"
        ));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Returns whether nothing is at `path` any more, as far as that can be told without links.
fn is_gone(root: &OwnedFd, path: &[u8]) -> bool {
    let path = path.strip_prefix(b"/").unwrap_or(path);
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS;
    match openat2(root, path, flags, Mode::empty(), resolve) {
        // The last two leave it to the walk, which has not found it.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG | Errno::NOSYS) => true,
        Ok(_) | Err(_) => false,
    }
}

/// Long enough to read 64 MiB from a slow disk; short beside five minutes.
const DEADLINE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests;
