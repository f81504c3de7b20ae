//! What inotify says of folders: in which of them content may have changed.

use core::mem::MaybeUninit;
use std::collections::BTreeSet;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};

use log::warn;
use rustix::fs::inotify::{
    CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init, remove_watch,
};
use rustix::io::Errno;

/// Watches of the folders that hold protected files.
///
/// Where a watch is missing or events were lost, the answer is that all may have changed.
///
/// # Invariants
///
/// * `doubt_is_change`: a folder that was not watched without a gap since it was last asked about
///   has changed.
#[derive(Debug, Default)]
pub(super) struct Watches {
    inotify: Option<OwnedFd>,
    watched: BTreeSet<i32>,
    changed: BTreeSet<i32>,
    seen: BTreeSet<i32>,
    warned: bool,
}

impl Watches {
    /// Begins a run: takes up what has happened since the last one.
    pub(super) fn begin(&mut self) {
        self.changed.clear();
        self.seen.clear();
        if self.take_events().is_err() {
            // Without watches, everything counts as changed.
            self.inotify = None;
        }
        if self.inotify.is_none() {
            self.watched.clear();
            self.inotify = self.or_warn(init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK));
        }
    }

    /// Returns whether content in `folder` may have changed, and watches it from now on.
    pub(super) fn has_changed(&mut self, folder: impl AsFd) -> bool {
        let Some(inotify) = &self.inotify else {
            return true;
        };
        // By its number, so that no link that someone plants meanwhile is followed.
        let path = format!("/proc/self/fd/{}", folder.as_fd().as_raw_fd());
        let watch = add_watch(inotify, path, FLAGS);
        let Some(watch) = self.or_warn(watch) else {
            return true;
        };
        self.seen.insert(watch);
        if self.watched.insert(watch) {
            self.changed.insert(watch);
        }
        self.changed.contains(&watch)
    }

    /// Ends a run: folders that were not asked about are no longer watched.
    pub(super) fn end(&mut self) {
        let Some(inotify) = &self.inotify else {
            return;
        };
        for watch in self.watched.difference(&self.seen) {
            // The folder may be gone, and its watch with it.
            let _ = remove_watch(inotify, *watch);
        }
        self.watched.retain(|watch| self.seen.contains(watch));
    }

    /// Returns an error where events were lost, or come faster than they can be read.
    fn take_events(&mut self) -> Result<(), Errno> {
        let Some(inotify) = &self.inotify else {
            return Ok(());
        };
        let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
        let mut reader = Reader::new(inotify, &mut buffer);
        for _ in 0..EVENTS_MAX {
            match reader.next() {
                Err(Errno::AGAIN) => return Ok(()),
                Err(problem) => return Err(problem),
                Ok(event) if event.events().contains(ReadFlags::QUEUE_OVERFLOW) => {
                    return Err(Errno::OVERFLOW);
                }
                Ok(event) if event.events().contains(ReadFlags::IGNORED) => {
                    self.watched.remove(&event.wd());
                }
                Ok(event) => {
                    self.changed.insert(event.wd());
                }
            }
        }
        Err(Errno::OVERFLOW)
    }

    fn or_warn<T>(&mut self, result: Result<T, Errno>) -> Option<T> {
        if let Err(problem) = &result
            && !self.warned
        {
            warn!("cannot watch folders, so each run reads every protected file: {problem}");
            self.warned = true;
        }
        result.ok()
    }
}

/// Everything that may change a file's content, or put another in its place.
const FLAGS: WatchFlags = WatchFlags::ATTRIB
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::ONLYDIR);

/// Room for many events: each has 16 bytes and a name of at most 255.
const BUFFER_BYTES: usize = 16 * 1024;

/// The kernel's own queue has 16,384 (`max_queued_events` in `inotify(7)`): who has read four times
/// as many and is not at the end is being flooded.
const EVENTS_MAX: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    #[test]
    fn a_folder_has_changed_until_it_is_watched_and_when_something_happens_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut watches = Watches::default();
        let mut ask = || {
            watches.begin();
            let changed = watches.has_changed(File::open(folder.path()).unwrap());
            watches.end();
            changed
        };
        assert!(ask() && !ask());
        fs::write(folder.path().join("a"), "1").unwrap();
        assert!(ask() && !ask());
        fs::read(folder.path().join("a")).unwrap();
        assert!(!ask(), "to read is no change");
    }

    #[test]
    fn a_gap_counts_as_a_change() {
        let folder = tempfile::tempdir().unwrap();
        let open = || File::open(folder.path()).unwrap();
        let mut watches = Watches::default();
        watches.begin();
        assert!(watches.has_changed(open()));
        watches.end();
        watches.begin();
        watches.end();
        watches.begin();
        assert!(watches.has_changed(open()), "it was not watched in between");
    }

    #[test]
    fn an_overflow_counts_as_a_change_everywhere() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
        let limit: usize = limit.trim().parse().unwrap();
        let mut watches = Watches::default();
        let mut ask = || {
            watches.begin();
            let changed = [folder.path(), other.path()]
                .map(|path| watches.has_changed(File::open(path).unwrap()));
            watches.end();
            changed
        };
        assert_eq!((ask(), ask()), ([true; 2], [false; 2]));
        // Two different names in turn, as the kernel folds events that are the same.
        for n in 0..=limit {
            let path = folder.path().join(if n % 2 == 0 { "a" } else { "b" });
            rustix::fs::mknodat(
                rustix::fs::CWD,
                &path,
                rustix::fs::FileType::Fifo,
                rustix::fs::Mode::RUSR,
                0,
            )
            .unwrap();
            fs::remove_file(&path).unwrap();
        }
        assert_eq!((ask(), ask()), ([true; 2], [false; 2]));
    }
}
