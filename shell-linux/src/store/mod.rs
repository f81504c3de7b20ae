//! Files that the agent keeps for itself: its state across restarts, and journals.

pub mod clearing;
pub mod journal;
pub mod state;

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

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
