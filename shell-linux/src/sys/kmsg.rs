//! The kernel log device, one record a read.
//!
//! `Documentation/ABI/testing/dev-kmsg`.

use core::time::Duration;
use std::fs::File;
use std::io;
use std::path::Path;

use fettle_core::bounds::RECORD_MAX;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;

/// An open kernel log, positioned at the first record of the ring.
#[derive(Debug)]
pub struct Device {
    file: File,
    buffer: Vec<u8>,
}

/// How one read ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Reading<'a> {
    /// There is no further record at the moment.
    Empty,
    /// It failed; the device must be opened again.
    Failed {
        /// The operating system's error number.
        errno: i32,
    },
    /// Records were overwritten before they were read; the next read gives the oldest one left.
    Overrun,
    /// One record.
    Record(&'a [u8]),
}

impl Device {
    /// Opens the kernel log at `path`.
    ///
    /// # Errors
    ///
    /// Returns what the operating system says.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(open(path, flags, Mode::empty())?);
        Ok(Self { file, buffer: vec![0; RECORD_MAX] })
    }

    /// Reads one record without waiting.
    pub fn read(&mut self) -> Reading<'_> {
        loop {
            match rustix::io::read(&self.file, self.buffer.as_mut_slice()) {
                // A log has no end: what has one is another kind of file.
                Ok(0) => return Reading::Failed { errno: Errno::NODATA.raw_os_error() },
                Ok(length) => {
                    return Reading::Record(self.buffer.get(..length).unwrap_or_default());
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Reading::Empty,
                Err(Errno::PIPE) => return Reading::Overrun,
                Err(errno) => return Reading::Failed { errno: errno.raw_os_error() },
            }
        }
    }

    /// Waits until there is something to read, or for `timeout`.
    pub fn wait(&self, timeout: Duration) {
        let mut fds = [PollFd::new(&self.file, PollFlags::IN)];
        let timeout = rustix::event::Timespec::try_from(timeout).ok();
        // An error, such as a signal, only means that the next read finds nothing.
        let _ = poll(&mut fds, timeout.as_ref());
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_file_that_ends_is_no_log() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"6,1,2,-;x\n").unwrap();
        let mut device = Device::open(file.path()).unwrap();
        assert_eq!(device.read(), Reading::Record(b"6,1,2,-;x\n"));
        assert_eq!(device.read(), Reading::Failed { errno: Errno::NODATA.raw_os_error() });
    }

    #[test]
    fn a_directory_opens_but_does_not_read() {
        let mut device = Device::open(Path::new("/")).unwrap();
        assert_eq!(device.read(), Reading::Failed { errno: Errno::ISDIR.raw_os_error() });
    }

    #[test]
    fn an_empty_log_is_waited_on() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        let mut device = Device::open(&path).unwrap();
        let mut writer = File::options().write(true).open(&path).unwrap();
        assert_eq!(device.read(), Reading::Empty);
        writer.write_all(b"6,1,2,-;x").unwrap();
        device.wait(Duration::from_secs(5));
        assert_eq!(device.read(), Reading::Record(b"6,1,2,-;x"));
    }
}
