//! The mount table, with the kernel's name of each device and its file system's error count.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use fettle_core::wire::proc::Mount;
use rustix::fs::{major, minor};

/// Reads the mount table as the core takes it: `NAME ERRORS MOUNTINFO-LINE`.
///
/// Only mounts of block devices are in it. The table is that of process 1, which is the node's;
/// where that cannot be read, it is the agent's own.
///
/// # Errors
///
/// Returns why neither table can be read.
pub fn read() -> io::Result<Vec<u8>> {
    let table = fs::read("/proc/1/mountinfo").or_else(|_| fs::read("/proc/self/mountinfo"))?;
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
        (0, _) => source_numbers(mount.source)?,
        numbers => numbers,
    };
    let link = fs::read_link(format!("/sys/dev/block/{major}:{minor}")).ok()?;
    Some(link.file_name()?.to_str()?.to_owned())
}

fn source_numbers(source: &[u8]) -> Option<(u32, u32)> {
    if !source.starts_with(b"/dev/") {
        return None;
    }
    let path = PathBuf::from(std::ffi::OsStr::from_bytes(source));
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
    fn every_line_is_one_that_the_core_reads() {
        let table = read().unwrap();
        for line in table.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let mut fields = line.splitn(3, |byte| *byte == b' ');
            let (name, errors) = (fields.next().unwrap(), fields.next().unwrap());
            assert!(!name.is_empty() && !errors.is_empty());
            assert!(Mount::parse(fields.next().unwrap()).is_ok());
        }
    }
}
