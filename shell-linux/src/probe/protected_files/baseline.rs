//! What the protected files were at the baseline, and the file that keeps it within one boot.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;

use rustix::fs::Stat;
use serde::{Deserialize, Serialize};

use crate::store;

/// The protected files at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Baseline {
    /// When it was taken, in Unix seconds.
    pub(super) taken_at: i64,
    /// The patterns that it covers; what only another one finds was not there to be seen.
    pub(super) patterns: Vec<String>,
    /// Each file, by its path.
    pub(super) files: BTreeMap<Vec<u8>, FileState>,
    /// How many more files there were than can be kept.
    pub(super) omitted: u64,
}

/// What one file was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileState {
    /// What the folder says of it.
    pub(super) facts: Facts,
    /// The hash of its content; `None` where it has none, or it has not been read yet.
    pub(super) digest: Option<Digest>,
}

/// What the folder says of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Facts {
    /// Type and permissions.
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// The length of a regular file.
    pub(super) bytes: u64,
    /// Which device a device file stands for.
    pub(super) rdev: u64,
    /// Where a link leads.
    pub(super) target: Option<Vec<u8>>,
}

/// BLAKE3 of a file's content.
pub(super) type Digest = [u8; blake3::OUT_LEN];

/// The file that keeps the baseline.
#[derive(Debug)]
pub(super) struct Store {
    path: PathBuf,
    boot_id: String,
}

/// Why the file is there, but not used.
#[derive(Debug, thiserror::Error)]
pub(super) enum StoreError {
    #[error(
        "{} is damaged, so nothing can be compared; clear NodeTampered to take a new baseline",
        path.display()
    )]
    Damaged { path: PathBuf },
    #[error("cannot read the baseline in {}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(
        "cannot write the baseline to {}; a restarted agent would take a new one",
        path.display()
    )]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

#[derive(Serialize, Deserialize)]
struct Header {
    version: u32,
    boot_id: String,
}

impl Store {
    pub(super) fn new(path: PathBuf, boot_id: String) -> Self {
        Self { path, boot_id }
    }

    /// Reads the baseline of this boot; `None` if there is none.
    ///
    /// One of another boot, or of another version of the agent, is none.
    pub(super) fn load(&self) -> Result<Option<Baseline>, StoreError> {
        let bytes = match store::read(&self.path, FILE_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(problem) if problem.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(StoreError::Read { path: self.path.clone(), source }),
        };
        let damaged = || StoreError::Damaged { path: self.path.clone() };
        let (digest, content) = bytes.split_first_chunk().ok_or_else(damaged)?;
        if blake3::hash(content).as_bytes() != digest {
            return Err(damaged());
        }
        let (header, rest) = postcard::take_from_bytes::<Header>(content).map_err(|_| damaged())?;
        // A boot without an id cannot be told from another.
        if header.version != VERSION || self.boot_id.is_empty() || header.boot_id != self.boot_id {
            return Ok(None);
        }
        postcard::from_bytes(rest).map(Some).map_err(|_| damaged())
    }

    /// Replaces the baseline, for the agent alone.
    pub(super) fn save(&self, baseline: &Baseline) -> Result<(), StoreError> {
        store::replace(&self.path, &self.encode(baseline))
            .map_err(|source| StoreError::Write { path: self.path.clone(), source })
    }

    /// Removes the baseline.
    pub(super) fn forget(&self) -> Result<(), StoreError> {
        match fs::remove_file(&self.path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(StoreError::Write { path: self.path.clone(), source })
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn encode(&self, baseline: &Baseline) -> Vec<u8> {
        let header = Header { version: VERSION, boot_id: self.boot_id.clone() };
        let mut bytes = vec![0; blake3::OUT_LEN];
        encode_onto(&mut bytes, &(header, baseline));
        if let Some((digest, content)) = bytes.split_first_chunk_mut() {
            *digest = *blake3::hash(content).as_bytes();
        }
        bytes
    }
}

impl Facts {
    pub(super) fn new(stat: &Stat, target: Option<Vec<u8>>) -> Self {
        let regular = rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file();
        let bytes = if regular { u64::try_from(stat.st_size).unwrap_or(0) } else { 0 };
        Self {
            mode: stat.st_mode,
            uid: stat.st_uid,
            gid: stat.st_gid,
            bytes,
            rdev: stat.st_rdev,
            target,
        }
    }

    pub(super) fn is_file(&self) -> bool {
        rustix::fs::FileType::from_raw_mode(self.mode).is_file()
    }

    pub(super) fn is_folder(&self) -> bool {
        rustix::fs::FileType::from_raw_mode(self.mode).is_dir()
    }
}

/// Appends the encoding of `value`.
fn encode_onto(bytes: &mut Vec<u8>, value: &impl Serialize) {
    let start = bytes.len();
    let mut room = 4096_usize;
    loop {
        bytes.resize(start.saturating_add(room), 0);
        let free = bytes.get_mut(start..).unwrap_or_default();
        // A buffer that is too small is the only way in which encoding can fail.
        if let Ok(length) = postcard::to_slice(value, free).map(|encoded| encoded.len()) {
            return bytes.truncate(start.saturating_add(length));
        }
        room = room.saturating_mul(2);
    }
}

/// Counts up with each change of what is kept.
const VERSION: u32 = 1;

/// 4,096 files with paths of 1 MiB together, their facts and hashes.
const FILE_BYTES_MAX: usize = 4 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_baseline_is_loaded_in_its_boot_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run/baseline");
        let store = |boot: &str| Store::new(path.clone(), boot.to_owned());
        assert!(store("b1").load().unwrap().is_none());
        store("b1").save(&baseline()).unwrap();
        assert_eq!(store("b1").load().unwrap(), Some(baseline()));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(store("b2").load().unwrap().is_none());
        store("").save(&baseline()).unwrap();
        assert!(store("").load().unwrap().is_none(), "an unknown boot may be another");
        store("b1").forget().unwrap();
        store("b1").forget().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn damage_is_an_error_and_no_fresh_start() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("baseline");
        let store = Store::new(path.clone(), "b1".to_owned());
        store.save(&baseline()).unwrap();
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            fs::write(&path, &whole[..at]).unwrap();
            assert!(matches!(store.load(), Err(StoreError::Damaged { .. })), "cut at {at}");
            let mut other = whole.clone();
            other[at] ^= 1;
            fs::write(&path, other).unwrap();
            assert!(matches!(store.load(), Err(StoreError::Damaged { .. })), "changed at {at}");
        }
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("elsewhere", &path).unwrap();
        assert!(matches!(store.load(), Err(StoreError::Read { .. })));
    }

    fn baseline() -> Baseline {
        let facts =
            Facts { mode: 0o100_600, uid: 1, gid: 2, bytes: 3, rdev: 0, target: Some(vec![0xff]) };
        let state = FileState { facts, digest: Some([7; 32]) };
        let files = [(b"/a\n\xff".to_vec(), state)].into();
        Baseline { taken_at: 9, patterns: vec!["/a*".to_owned()], files, omitted: 1 }
    }
}
