//! A file system whose server never answers, on a block device, so that it counts as local.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::Path;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::machine::{LoopDevice, MountPoint};

/// A FUSE file system of type `fuseblk` that does not even answer its first message.
///
/// Whoever asks it anything waits until this is dropped.
#[derive(Debug)]
pub struct HangingDisk {
    server: Option<File>,
    place: MountPoint,
    _device: LoopDevice,
}

impl HangingDisk {
    /// Mounts one in a directory of its own.
    ///
    /// # Panics
    ///
    /// If this kernel has no FUSE.
    #[must_use]
    pub fn new() -> Self {
        let server = OpenOptions::new().read(true).write(true).open("/dev/fuse");
        let server = server.unwrap_or_else(|error| panic!("cannot open /dev/fuse: {error}"));
        let (device, place) = (LoopDevice::empty(), MountPoint::scratch());
        let fd = server.as_raw_fd();
        let options = format!("fd={fd},rootmode=40000,user_id=0,group_id=0");
        let options = CString::new(options).expect("options hold no zero");
        mount(&*device.path, &place.path, "fuseblk", MountFlags::empty(), &*options)
            .unwrap_or_else(|error| panic!("cannot mount {} as fuseblk: {error}", device.path));
        Self { server: Some(server), place, _device: device }
    }

    /// Returns where it is mounted.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.place.path
    }

    /// Ends the server: whoever waits gets an error.
    pub fn abort(&mut self) {
        self.server = None;
    }
}

impl Default for HangingDisk {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for HangingDisk {
    fn drop(&mut self) {
        // The kernel tells the server of the end, and would wait for its answer.
        self.abort();
        if let Err(error) = unmount(&self.place.path, UnmountFlags::DETACH) {
            eprintln!("{} stays mounted: {error}", self.place.path.display());
        }
    }
}
