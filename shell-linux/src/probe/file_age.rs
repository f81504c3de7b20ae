//! The age of a file that something should renew, such as `nodes.json`.

use core::time::Duration;
use std::path::PathBuf;

use fettle_core::catalog::ReadingKind;
use fettle_core::node::checks::Outcome;
use fettle_core::node::reading::{FileAge, Reading};
use fettle_core::time::Timestamp;

use crate::probe::Probe;
use crate::probe::batch::{Batch, failed};
use crate::sys::root::{Kind, Root, is_absent};

/// Reads how long ago a file was written.
///
/// A file that was never there and need not be is none of this node's. Once it was there, its
/// absence is a fault.
#[derive(Debug)]
pub struct RenewedFile {
    root: Root,
    path: PathBuf,
    age_max: Duration,
    expected: bool,
    wall: fn() -> Timestamp,
}

impl RenewedFile {
    /// Reads the age of `path` below `root`; `expected` if its absence is a fault from the start.
    #[must_use]
    pub const fn new(
        root: PathBuf,
        path: PathBuf,
        age_max: Duration,
        expected: bool,
        wall: fn() -> Timestamp,
    ) -> Self {
        Self { root: Root::new(root), path, age_max, expected, wall }
    }

    fn push(&self, batch: &mut Batch, age_s: Option<u64>) {
        let path = &*self.path.to_string_lossy();
        batch.push(&Reading::FileAge(FileAge { path, age_s, age_max_s: self.age_max.as_secs() }));
    }

    fn push_unreadable(&self, batch: &mut Batch, why: &str) {
        batch.push_unreadable(&self.path.to_string_lossy(), why);
    }
}

impl Probe for RenewedFile {
    fn read(&mut self, batch: &mut Batch) -> Outcome {
        match self.root.kind(&self.path) {
            Ok(Kind::File { bytes: 0, .. }) => self.push_unreadable(batch, "is empty"),
            Ok(Kind::File { modified, .. }) => {
                // A file of the future is as new as can be: the clock was set back.
                self.push(batch, Some((self.wall)().since(modified).as_secs()));
            }
            Ok(Kind::Folder | Kind::Other) => self.push_unreadable(batch, "is no regular file"),
            Err(problem) if is_absent(&problem) && !self.expected => return Outcome::NotApplicable,
            Err(problem) if is_absent(&problem) => self.push(batch, None),
            Err(problem) => return failed(&format!("{}: {problem}", self.path.display())),
        }
        self.expected = true;
        Outcome::Complete
    }

    fn kind(&self) -> ReadingKind {
        ReadingKind::FileAges
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::symlink;
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn the_age_is_told_by_when_the_file_was_written() {
        let node = Node::new();
        let mut probe = node.probe(false);
        for (written_s, want) in [(NOW, 0), (NOW - 301, 301), (NOW + 9999, 0), (-5, NOW + 5)] {
            node.write(written_s);
            assert_eq!(
                read(&mut probe),
                Ok(Some(Some(u64::try_from(want).unwrap()))),
                "{written_s}"
            );
        }
    }

    #[test]
    fn a_link_is_followed_below_the_root() {
        let node = Node::new();
        node.write(NOW - 7);
        fs::rename(node.file(), node.folder.path().join("real")).unwrap();
        symlink("/real", node.file()).unwrap();
        assert_eq!(read(&mut node.probe(false)), Ok(Some(Some(7))));
        fs::remove_file(node.folder.path().join("real")).unwrap();
        assert_eq!(read(&mut node.probe(true)), Ok(Some(None)));
    }

    #[test]
    fn absence_is_a_fault_once_the_file_was_there_or_is_expected() {
        let node = Node::new();
        let mut probe = node.probe(false);
        assert_eq!(read(&mut probe), Ok(None));
        assert_eq!(read(&mut node.probe(true)), Ok(Some(None)));
        node.write(NOW);
        assert_eq!(read(&mut probe), Ok(Some(Some(0))));
        fs::remove_file(node.file()).unwrap();
        assert_eq!(read(&mut probe), Ok(Some(None)));
    }

    #[test]
    fn what_is_no_file_with_content_is_unknown() {
        let node = Node::new();
        fs::write(node.file(), "").unwrap();
        assert_eq!(read(&mut node.probe(false)), Err("is empty".to_owned()));
        fs::remove_file(node.file()).unwrap();
        fs::create_dir(node.file()).unwrap();
        assert_eq!(read(&mut node.probe(false)), Err("is no regular file".to_owned()));
        fs::remove_dir(node.file()).unwrap();
        symlink("nodes.json", node.file()).unwrap();
        let outcome = node.probe(false).read(&mut Batch::default());
        let Outcome::Failed { why } = outcome else { panic!("{outcome:?}") };
        assert!(why.as_str().contains("symbolic links"), "{why}");
    }

    /// Returns the age that was read, if the file is of this node, or why none could be read.
    fn read(probe: &mut RenewedFile) -> Result<Option<Option<u64>>, String> {
        let mut batch = Batch::default();
        let outcome = probe.read(&mut batch);
        let readings: Vec<_> = batch.readings().collect();
        match (outcome, readings.as_slice()) {
            (Outcome::NotApplicable, []) => Ok(None),
            (Outcome::Complete, [Reading::FileAge(file)]) => {
                assert_eq!((file.path, file.age_max_s), ("/nodes.json", 300));
                Ok(Some(file.age_s))
            }
            (Outcome::Complete, [Reading::Unreadable(file)]) => Err(file.why.to_owned()),
            other => panic!("{other:?}"),
        }
    }

    struct Node {
        folder: tempfile::TempDir,
    }

    impl Node {
        fn new() -> Self {
            Self { folder: tempfile::tempdir().unwrap() }
        }

        fn probe(&self, expected: bool) -> RenewedFile {
            let (root, path) = (self.folder.path().to_owned(), PathBuf::from("/nodes.json"));
            let wall = || Timestamp::from_unix_secs(NOW);
            RenewedFile::new(root, path, Duration::from_secs(300), expected, wall)
        }

        fn write(&self, at_s: i64) {
            fs::write(self.file(), "{}").unwrap();
            let ago = Duration::from_secs(at_s.unsigned_abs());
            let epoch = SystemTime::UNIX_EPOCH;
            let at = if at_s < 0 { epoch - ago } else { epoch + ago };
            File::options().write(true).open(self.file()).unwrap().set_modified(at).unwrap();
        }

        fn file(&self) -> PathBuf {
            self.folder.path().join("nodes.json")
        }
    }

    const NOW: i64 = 1_800_000_000;
}
