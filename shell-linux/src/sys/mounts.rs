//! The mount table, with the kernel's name of each device and its file system's error count.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use fettle_core::wire::proc::Mount;
use rustix::fs::{major, minor};

/// Reads the mount table as the core takes it: `NAME ERRORS MOUNTINFO-LINE`.
///
/// `root` is where the node's file systems are mounted. Only mounts of block devices are in it. The table is that of process 1, which is the node's;
/// where that cannot be read, it is the agent's own.
///
/// # Errors
///
/// Returns why neither table can be read.
pub fn read(root: &Path) -> io::Result<Vec<u8>> {
    let table = fs::read(root.join("proc/1/mountinfo"))
        .or_else(|_| fs::read(root.join("proc/self/mountinfo")))?;
    let mut named = Vec::new();
    for line in table.split(|byte| *byte == b'\n') {
        if let Some(name) = Mount::parse(line).ok().and_then(|mount| device_name(&mount)) {
            let errors = error_count(&name).unwrap_or_else(|| "-".to_owned());
            named.extend_from_slice(format!("{name} {errors} ").as_bytes());
            named.extend_from_slice(line);
            named.push(b'\n');
        }
    }
    Ok(named)
}

/// Returns the kernel's name of the block device behind a mount.
///
/// btrfs shows a number of its own instead of the device's; then the source's number counts.
fn device_name(mount: &Mount<'_>) -> Option<String> {
    let (major, minor) = match mount.device {
        (0, _) => match source_numbers(mount.source) {
            Some(numbers) => numbers,
            None => return source_name(mount.source),
        },
        numbers => numbers,
    };
    let link = fs::read_link(format!("/sys/dev/block/{major}:{minor}")).ok();
    let name = link.as_deref().and_then(Path::file_name).and_then(OsStr::to_str);
    // A disk that was taken away has no entry any more, but is still mounted.
    name.map(str::to_owned).or_else(|| source_name(mount.source))
}

/// Returns the kernel's name of a device by its path, through a link such as `/dev/mapper/NAME`.
fn source_name(source: &[u8]) -> Option<String> {
    let path = source.starts_with(b"/dev/").then(|| Path::new(OsStr::from_bytes(source)))?;
    let target = fs::read_link(path).unwrap_or_else(|_| path.to_owned());
    Some(target.file_name()?.to_str()?.to_owned())
}

fn source_numbers(source: &[u8]) -> Option<(u32, u32)> {
    if !source.starts_with(b"/dev/") {
        return None;
    }
    let path = PathBuf::from(OsStr::from_bytes(source));
    let device = fs::metadata(path).ok()?.rdev();
    (device != 0).then(|| (major(device), minor(device)))
}

/// Returns the number of errors that an ext4 file system keeps in its superblock.
fn error_count(name: &str) -> Option<String> {
    let path = Path::new("/sys/fs/ext4").join(name).join("errors_count");
    let count = fs::read_to_string(path).ok()?;
    let count = count.trim();
    (!count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit())).then(|| count.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_is_gone_still_has_the_name_of_its_path() {
        let mount = Mount::parse(b"1 2 4095:77 / /mnt rw - ext4 /dev/sdzz9 rw").unwrap();
        assert_eq!(device_name(&mount).as_deref(), Some("sdzz9"));
        let mount = Mount::parse(b"1 2 0:77 / /mnt rw - btrfs /dev/sdzz9 rw").unwrap();
        assert_eq!(device_name(&mount).as_deref(), Some("sdzz9"));
        let mount = Mount::parse(b"1 2 0:77 / /mnt rw - tmpfs tmpfs rw").unwrap();
        assert_eq!(device_name(&mount), None);
    }

    #[test]
    fn every_line_is_one_that_the_core_reads() {
        let table = read(Path::new("/")).unwrap();
        for line in table.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let mut fields = line.splitn(3, |byte| *byte == b' ');
            let (name, errors) = (fields.next().unwrap(), fields.next().unwrap());
            assert!(!name.is_empty() && !errors.is_empty());
            assert!(Mount::parse(fields.next().unwrap()).is_ok());
        }
    }
}
