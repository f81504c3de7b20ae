//! What a crash left behind in memory that outlives it.
//!
//! `Documentation/ABI/testing/pstore`.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use fettle_core::time::Timestamp;

use super::file;

/// The records of earlier crashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// Whether the store is mounted: if not, it is empty whatever happened.
    pub mounted: bool,
    /// The records in the order of their names.
    pub records: Vec<Record>,
    /// How many more there are.
    pub omitted: u64,
}

/// One record; what it says is never read, for a kernel log holds what its programs wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its file's name, such as `dmesg-erst-1`, safe to show.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// When it was made.
    pub modified: Timestamp,
}

/// Lists the records below `root`; `None` if the kernel has no such store.
///
/// Where systemd runs, `systemd-pstore.service` moves them to `/var/lib/systemd/pstore` at boot.
///
/// # Errors
///
/// Returns what the operating system says.
pub fn list(root: &Path) -> io::Result<Option<Listing>> {
    let folder = root.join("sys/fs/pstore");
    let Some((names, omitted)) = file::names(&folder)? else {
        return Ok(None);
    };
    let records = names.iter().filter_map(|name| record(&folder, name)).collect();
    let mounted = is_store(rustix::fs::statfs(&folder)?.f_type);
    Ok(Some(Listing { mounted, records, omitted }))
}

/// Returns one record; `None` if it was taken away since, or is no file.
fn record(folder: &Path, name: &OsString) -> Option<Record> {
    let metadata = folder.join(name).symlink_metadata().ok().filter(|found| found.is_file())?;
    Some(Record {
        name: file::shown(name.as_bytes()),
        bytes: metadata.len(),
        modified: Timestamp::from_unix_secs(metadata.mtime()),
    })
}

/// Returns whether a type of file system is `PSTOREFS_MAGIC`.
fn is_store(kind: rustix::fs::FsWord) -> bool {
    kind == 0x6165_676c
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn records_are_named_and_measured_but_not_read() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(list(root.path()).unwrap(), None);
        let folder = root.path().join("sys/fs/pstore");
        fs::create_dir_all(folder.join("folder")).unwrap();
        fs::write(folder.join("dmesg-erst-2\u{1b}"), "Panic").unwrap();
        fs::write(folder.join("console-0"), "").unwrap();
        symlink("/dev/zero", folder.join("link")).unwrap();
        let listing = list(root.path()).unwrap().unwrap();
        assert_eq!((listing.mounted, listing.omitted), (false, 0));
        let names: Vec<_> = listing.records.iter().map(|r| (r.name.as_str(), r.bytes)).collect();
        assert_eq!(names, [("console-0", 0), ("dmesg-erst-2\u{fffd}", 5)]);
        assert!(listing.records[0].modified.unix_secs() > 0);
    }

    #[test]
    fn only_the_store_itself_is_the_store() {
        assert!(is_store(0x6165_676c));
        assert!(!is_store(rustix::fs::statfs("/proc").unwrap().f_type));
    }
}
