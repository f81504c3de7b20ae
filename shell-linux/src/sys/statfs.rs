//! Space and inodes of a mounted file system.
//!
//! `statfs(2)`.

use std::path::Path;

use rustix::fs::{Mode, OFlags, Stat, StatVfs, fstat, fstatvfs, major, minor, open};
use rustix::io::Errno;

/// What a file system says of its space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Major and minor number of the device that what stands at the path is on.
    pub device: (u32, u32),
    /// Its size in bytes.
    pub size_bytes: u64,
    /// What is free, in bytes.
    pub free_bytes: u64,
    /// What is free for users without privilege, in bytes.
    pub available_bytes: u64,
    /// How many inodes there are; 0 where the file system makes them as it needs them.
    pub inodes: u64,
    /// How many of them are free.
    pub inodes_free: u64,
}

/// Reads the space of the file system at `path`.
///
/// Blocks for ever where the file system does not answer: call it from a thread that may hang.
///
/// # Errors
///
/// Returns the operating system's error number.
pub fn read(path: &Path) -> Result<Space, Errno> {
    // Both questions are about one object, whatever is mounted over it meanwhile.
    let there = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    Ok(space(&fstatvfs(&there)?, &fstat(&there)?))
}

fn space(stat: &StatVfs, object: &Stat) -> Space {
    Space {
        device: (major(object.st_dev), minor(object.st_dev)),
        size_bytes: stat.f_blocks.saturating_mul(stat.f_frsize),
        free_bytes: stat.f_bfree.saturating_mul(stat.f_frsize),
        available_bytes: stat.f_bavail.saturating_mul(stat.f_frsize),
        inodes: stat.f_files,
        inodes_free: stat.f_ffree,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_has_space_and_says_less_than_it_has() {
        let space = read(Path::new("/")).unwrap();
        assert!(space.size_bytes > 0);
        assert!(space.available_bytes <= space.free_bytes && space.free_bytes <= space.size_bytes);
        assert!(space.inodes_free <= space.inodes);
    }

    #[test]
    fn the_size_of_a_fragment_counts() {
        let mut stat = rustix::fs::statvfs("/").unwrap();
        (stat.f_blocks, stat.f_bfree, stat.f_bavail) = (10, 4, u64::MAX);
        (stat.f_bsize, stat.f_frsize) = (4096, 1024);
        let space = space(&stat, &rustix::fs::stat("/").unwrap());
        assert_eq!((space.size_bytes, space.free_bytes), (10_240, 4096));
        assert_eq!(space.available_bytes, u64::MAX);
    }

    #[test]
    fn what_is_not_there_is_an_error_with_its_number() {
        assert_eq!(read(Path::new("/proc/absent")), Err(Errno::NOENT));
    }
}
