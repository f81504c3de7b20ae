//! One run over the protected files: each against the baseline, or into it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read as _};

use fettle_core::node::reading::FileChange;
use rustix::io::Errno;

use super::baseline::{Baseline, Digest, FileState};
use super::walk::{Found, Signature, Visitor, open_file};

/// What one run finds.
#[derive(Debug)]
pub(super) struct Comparison {
    before: Option<Baseline>,
    /// Whether files that the baseline lacks belong in it: no pattern that it covers named them.
    pub(super) adopts: bool,
    adopted: BTreeMap<Vec<u8>, FileState>,
    dropped: BTreeSet<Vec<u8>>,
    seen: BTreeSet<Vec<u8>>,
    path_bytes: usize,
    /// What was read before.
    cached: BTreeMap<Vec<u8>, Cached>,
    /// What was read, before or now, and still counts.
    pub(super) cache: BTreeMap<Vec<u8>, Cached>,
    /// What is not as it was.
    pub(super) changes: BTreeMap<Vec<u8>, FileChange>,
    /// What could not be looked at, and why.
    pub(super) problems: BTreeMap<Vec<u8>, String>,
    /// Files that are more than can be kept or named.
    pub(super) omitted: u64,
    omitted_now: u64,
    /// Files that were not read, as others used up what a run may read.
    pub(super) unread: u64,
    /// How long they are together.
    pub(super) unread_bytes: u64,
    /// What was read from files.
    pub(super) hashed_bytes: u64,
}

/// The hash of a file that was read, and by what a change since then shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cached {
    signature: Signature,
    digest: Digest,
}

impl Comparison {
    pub(super) fn new(before: Option<Baseline>, cached: BTreeMap<Vec<u8>, Cached>) -> Self {
        let known = before.iter().flat_map(|baseline| baseline.files.keys());
        Self {
            path_bytes: known.map(Vec::len).sum(),
            omitted: before.as_ref().map_or(0, |baseline| baseline.omitted),
            before,
            adopts: true,
            adopted: BTreeMap::new(),
            dropped: BTreeSet::new(),
            seen: BTreeSet::new(),
            cached,
            cache: BTreeMap::new(),
            changes: BTreeMap::new(),
            problems: BTreeMap::new(),
            omitted_now: 0,
            unread: 0,
            unread_bytes: 0,
            hashed_bytes: 0,
        }
    }

    /// Returns whether the baseline holds what the pattern `text` named when it was taken.
    pub(super) fn covers(&self, text: &str) -> bool {
        let covers = |baseline: &Baseline| baseline.patterns.iter().any(|known| known == text);
        self.before.as_ref().is_some_and(covers)
    }

    /// Tells what was not found: it is gone, or could not be looked at, or no pattern names it.
    pub(super) fn finish(
        &mut self,
        is_named: impl Fn(&[u8]) -> bool,
        is_gone: impl Fn(&[u8]) -> bool,
    ) {
        let known = self.before.iter().flat_map(|baseline| baseline.files.keys());
        for path in known.filter(|path| !self.seen.contains(*path)) {
            if !is_named(path) {
                self.dropped.insert(path.clone());
            } else if is_gone(path) {
                self.changes.insert(path.clone(), FileChange::Removed);
            } else {
                let why = "it is there, but was not reached".to_owned();
                self.problems.entry(path.clone()).or_insert(why);
            }
        }
    }

    /// Returns the baseline of the next run, if there is anything to compare, and whether it is
    /// another than before.
    pub(super) fn baseline(
        &mut self,
        patterns: Vec<String>,
        taken_at: i64,
    ) -> (Option<Baseline>, bool) {
        let adopted = core::mem::take(&mut self.adopted);
        let Some(mut baseline) = self.before.take() else {
            let is_new = !adopted.is_empty();
            let omitted = self.omitted_now;
            let taken = Baseline { taken_at, patterns, files: adopted, omitted };
            return (is_new.then_some(taken), is_new);
        };
        let is_same = adopted.is_empty()
            && self.dropped.is_empty()
            && self.omitted_now == 0
            && baseline.patterns == patterns;
        baseline.patterns = patterns;
        baseline.files.retain(|path, _| !self.dropped.contains(path));
        baseline.files.extend(adopted);
        baseline.omitted = baseline.omitted.saturating_add(self.omitted_now);
        let is_empty = baseline.files.is_empty() && baseline.patterns.is_empty();
        ((!is_empty).then_some(baseline), !is_same)
    }

    fn known(&self, path: &[u8]) -> Option<FileState> {
        self.before.as_ref()?.files.get(path).cloned()
    }

    /// Compares a file that the baseline has.
    fn compare(&mut self, found: &Found<'_>, known: &FileState) {
        if known.facts != found.facts {
            self.changes.insert(found.path.to_vec(), FileChange::Changed);
            return;
        }
        let Some(digest) = self.digest(found) else {
            return;
        };
        match known.digest {
            None => {
                // It could not be read when the baseline was taken, and was unknown until now.
                let state = FileState { digest: Some(digest), ..known.clone() };
                self.adopted.insert(found.path.to_vec(), state);
            }
            Some(was) if was == digest => {}
            Some(_) => {
                self.changes.insert(found.path.to_vec(), FileChange::Changed);
            }
        }
    }

    /// Takes a file into the baseline, if there is room.
    fn adopt(&mut self, found: &Found<'_>) -> bool {
        let known = self.before.as_ref().map_or(0, |baseline| baseline.files.len());
        let path_bytes = self.path_bytes.saturating_add(found.path.len());
        if known.saturating_add(self.adopted.len()) >= FILES_MAX || path_bytes > PATH_BYTES_MAX {
            self.omitted_now = self.omitted_now.saturating_add(1);
            self.omitted = self.omitted.saturating_add(1);
            return false;
        }
        self.path_bytes = path_bytes;
        let state = FileState { facts: found.facts.clone(), digest: self.digest(found) };
        self.adopted.insert(found.path.to_vec(), state);
        true
    }

    /// Tells of a file that the baseline does not have, if it can be told from those that were
    /// there but had no room in it.
    fn add(&mut self, found: &Found<'_>) -> bool {
        let full = self.before.as_ref().is_some_and(|baseline| baseline.omitted > 0);
        if full {
            return false;
        }
        if self.changes.len() >= FILES_MAX {
            self.omitted = self.omitted.saturating_add(1);
            return false;
        }
        self.changes.insert(found.path.to_vec(), FileChange::Added);
        true
    }

    /// Returns the hash of a regular file, if it can be had within what a run may read.
    fn digest(&mut self, found: &Found<'_>) -> Option<Digest> {
        if !found.facts.is_file() {
            return None;
        }
        let cached = self.cached.get(found.path).copied();
        let cached = cached.filter(|cached| cached.signature == found.signature);
        if let Some(cached) = cached.filter(|_| !found.may_have_changed) {
            self.cache.insert(found.path.to_vec(), cached);
            return Some(cached.digest);
        }
        let left = HASHED_BYTES_MAX.saturating_sub(self.hashed_bytes);
        if found.facts.bytes > left {
            self.unread = self.unread.saturating_add(1);
            self.unread_bytes = self.unread_bytes.saturating_add(found.facts.bytes);
            return None;
        }
        match read(found, left) {
            Ok((cached, bytes)) => {
                self.hashed_bytes = self.hashed_bytes.saturating_add(bytes);
                self.cache.insert(found.path.to_vec(), cached);
                Some(cached.digest)
            }
            Err(problem) => {
                self.problem(found.path, format!("cannot read it: {problem}"));
                None
            }
        }
    }
}

impl Visitor for Comparison {
    fn found(&mut self, found: Found<'_>) -> bool {
        if self.seen.contains(found.path) {
            return true;
        }
        let counts = if let Some(known) = self.known(found.path) {
            self.compare(&found, &known);
            true
        } else if self.adopts {
            self.adopt(&found)
        } else {
            self.add(&found)
        };
        if counts {
            self.seen.insert(found.path.to_vec());
        }
        counts
    }

    fn problem(&mut self, path: &[u8], why: String) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.insert(path.to_vec(), why);
        }
    }
}

/// Hashes a file of at most `bytes_max` bytes; returns how many it has, too.
fn read(found: &Found<'_>, bytes_max: u64) -> io::Result<(Cached, u64)> {
    let (file, stat) = open_file(found.folder, found.name).map_err(|problem| match problem {
        Errno::LOOP => io::Error::other("a link took its place"),
        problem => problem.into(),
    })?;
    // Whoever writes meanwhile changes the signature, so that the next run reads it again.
    let signature = Signature::new(&stat);
    let mut file = File::from(file).take(bytes_max.saturating_add(1));
    let mut hasher = blake3::Hasher::new();
    let mut buffer = [0; BUFFER_BYTES];
    let mut bytes = 0_u64;
    loop {
        let count = match file.read(&mut buffer) {
            Err(problem) if problem.kind() == io::ErrorKind::Interrupted => continue,
            result => result?,
        };
        let Some(chunk) = buffer.get(..count).filter(|chunk| !chunk.is_empty()) else {
            break;
        };
        hasher.update(chunk);
        bytes = bytes.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
    }
    if bytes > bytes_max {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok((Cached { signature, digest: *hasher.finalize().as_bytes() }, bytes))
}

/// Files that are compared: manifests and settings of a node are a few dozen.
pub(super) const FILES_MAX: usize = 4096;

/// What one run reads: a second's work for a slow disk.
pub(super) const HASHED_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// All paths together: 256 bytes for each file.
const PATH_BYTES_MAX: usize = 1024 * 1024;

/// More cannot be told apart by whoever reads them; the first already make the check unknown.
const PROBLEMS_MAX: usize = 256;

/// Small beside the stack of a probe's thread, large beside the cost of a call.
const BUFFER_BYTES: usize = 16 * 1024;
