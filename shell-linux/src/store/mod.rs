//! Files that the agent keeps for itself: its state across restarts, and journals.

pub mod clearing;
pub mod journal;
pub mod kept;
pub mod state;

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

/// Replaces a file of the agent's as a whole: a crash leaves the old one or the new one.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    let new = path.with_extension("new");
    match fs::remove_file(&new) {
        Err(problem) if problem.kind() != io::ErrorKind::NotFound => return Err(problem),
        Ok(()) | Err(_) => {}
    }
    create(&new)?.write_all(bytes)?;
    fs::rename(&new, path)
}

/// Reads the first `bytes_max` bytes of a file of the agent's, whatever stands in its place.
pub(crate) fn read(path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX);
    open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Creates a file that is not there yet, for the agent alone.
///
/// The kernel log is not everybody's to read (`dmesg_restrict`), and a link that someone planted is
/// not followed.
fn create(path: &Path) -> io::Result<File> {
    let flags = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or(0);
    File::options().write(true).create_new(true).mode(0o600).custom_flags(flags).open(path)
}

/// Opens a file for reading if it is a regular one; a pipe would block for ever.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or(0);
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
}

/// Returns the id of this boot, or an empty text where the kernel does not say it.
#[must_use]
pub fn boot_id() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}
