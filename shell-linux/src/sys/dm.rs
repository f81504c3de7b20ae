//! The device mapper: its devices, their tables and their status.
//!
//! `include/uapi/linux/dm-ioctl.h`.

#![expect(unsafe_code, reason = "the request's size stands in the request itself")]

use core::ffi::c_void;
use std::fs::File;
use std::io;
use std::path::Path;

use fettle_core::wire::dm::{Reply, ReplyError};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl, opcode};

use super::file::shown;

/// The control node of the device mapper.
#[derive(Debug)]
pub struct Control {
    file: File,
}

/// One device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    encoded: u64,
    /// Major and minor number.
    pub numbers: (u32, u32),
    /// Its name, safe to show.
    pub name: String,
}

/// One target of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// First sector.
    pub start: u64,
    /// Number of sectors.
    pub length: u64,
    /// The kind, such as `verity`.
    pub kind: String,
    /// The status or the table line, as the kernel printed it.
    pub parameters: Vec<u8>,
}

/// Why the device mapper did not answer.
#[derive(Debug, thiserror::Error)]
pub enum DmError {
    /// The kernel refused the call.
    #[error("request to the device mapper failed")]
    Call(#[source] io::Error),
    /// The device's number belongs to another one by now.
    #[error("device {name} is another one by now")]
    Changed {
        /// The device that was asked for.
        name: String,
    },
    /// The answer makes no sense.
    #[error("reply of the device mapper makes no sense ({0:?})")]
    Reply(ReplyError),
    /// The answer is longer than any that is expected.
    #[error("reply of the device mapper has more than {BUFFER_MAX} bytes")]
    TooLong,
}

impl Control {
    /// Opens the control node below `root`; `None` if the kernel has no device mapper.
    ///
    /// # Errors
    ///
    /// Returns what the operating system says.
    pub fn open(root: &Path) -> io::Result<Option<Self>> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        match open(root.join("dev/mapper/control"), flags, Mode::empty()) {
            Ok(file) => Ok(Some(Self { file: file.into() })),
            // The node may be there without a driver behind it.
            Err(Errno::NOENT | Errno::NODEV | Errno::NXIO) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Returns all devices.
    ///
    /// # Errors
    ///
    /// See [`DmError`].
    pub fn devices(&self) -> Result<Vec<Device>, DmError> {
        devices(&self.ask(LIST_DEVICES, 0, 0)?)
    }

    /// Returns the status of each target of `device`.
    ///
    /// # Errors
    ///
    /// See [`DmError`].
    pub fn status(&self, device: &Device) -> Result<Vec<Target>, DmError> {
        targets(&self.ask(TABLE_STATUS, NO_FLUSH, device.encoded)?, device, |_| true)
    }

    /// Returns the table lines of the targets of `device` that are of `kind`.
    ///
    /// Others stay behind: the line of a `crypt` target can hold a key. Ask only for devices whose
    /// status shows a target of `kind`.
    ///
    /// # Errors
    ///
    /// See [`DmError`].
    pub fn table(&self, device: &Device, kind: &str) -> Result<Vec<Target>, DmError> {
        let reply = self.ask(TABLE_STATUS, NO_FLUSH | STATUS_TABLE, device.encoded)?;
        targets(&reply, device, |found| found == kind.as_bytes())
    }

    /// Makes a request, with a larger buffer each time until the answer fits.
    fn ask(&self, number: u8, flags: u32, device: u64) -> Result<Vec<u8>, DmError> {
        let mut bytes = BUFFER_START;
        while bytes <= BUFFER_MAX {
            let mut buffer = vec![0; bytes];
            let request = Request::new(number, flags, device, &mut buffer);
            // SAFETY: `Request` upholds the contract of `Ioctl`, as its implementation says.
            let done = unsafe { ioctl(&self.file, request) };
            done.map_err(|errno| DmError::Call(errno.into()))?;
            if !Reply::parse(&buffer).map_err(DmError::Reply)?.is_full() {
                return Ok(buffer);
            }
            bytes *= 4;
        }
        Err(DmError::TooLong)
    }
}

fn devices(reply: &[u8]) -> Result<Vec<Device>, DmError> {
    let reply = Reply::parse(reply).map_err(DmError::Reply)?;
    let devices = reply.devices().map(|device| {
        let device = device.map_err(DmError::Reply)?;
        let (encoded, numbers) = (device.encoded, device.numbers());
        Ok(Device { encoded, numbers, name: shown(device.name) })
    });
    devices.collect()
}

fn targets(
    reply: &[u8],
    device: &Device,
    wanted: impl Fn(&[u8]) -> bool,
) -> Result<Vec<Target>, DmError> {
    let reply = Reply::parse(reply).map_err(DmError::Reply)?;
    if shown(reply.name) != device.name {
        return Err(DmError::Changed { name: device.name.clone() });
    }
    let mut targets = Vec::new();
    for target in reply.targets() {
        let target = target.map_err(DmError::Reply)?;
        if wanted(target.kind) {
            targets.push(Target {
                start: target.start,
                length: target.length,
                kind: shown(target.kind),
                parameters: target.parameters.to_vec(),
            });
        }
    }
    Ok(targets)
}

/// One request; the answer takes its place in the buffer.
struct Request<'buffer> {
    opcode: Opcode,
    buffer: &'buffer mut [u8],
}

impl<'buffer> Request<'buffer> {
    /// Writes `struct dm_ioctl` to the front of `buffer`.
    ///
    /// Devices are named by number: a name can be of any bytes.
    fn new(number: u8, flags: u32, device: u64, buffer: &'buffer mut [u8]) -> Self {
        assert!(buffer.len() >= HEADER_BYTES, "a buffer begins with the header");
        let size = u32::try_from(buffer.len()).expect("a buffer has at most 1 MiB");
        let data_start = u32::try_from(HEADER_BYTES).expect("312 fits");
        buffer[0..4].copy_from_slice(&VERSION_MAJOR.to_ne_bytes());
        buffer[12..16].copy_from_slice(&size.to_ne_bytes());
        buffer[16..20].copy_from_slice(&data_start.to_ne_bytes());
        buffer[28..32].copy_from_slice(&flags.to_ne_bytes());
        buffer[40..48].copy_from_slice(&device.to_ne_bytes());
        Self { opcode: opcode::read_write::<[u8; HEADER_BYTES]>(GROUP, number), buffer }
    }
}

// SAFETY: the kernel reads and writes `struct dm_ioctl` and what follows it, in all as many bytes
// as the request says: the length of the buffer, which is no shorter than the structure and stays
// borrowed for writing. `output_from_ptr` reads nothing through the pointer.
unsafe impl Ioctl for Request<'_> {
    type Output = ();

    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        self.opcode
    }

    fn as_ptr(&mut self) -> *mut c_void {
        self.buffer.as_mut_ptr().cast()
    }

    unsafe fn output_from_ptr(_: IoctlOutput, _: *mut c_void) -> rustix::io::Result<()> {
        Ok(())
    }
}

/// A table of a few targets and a list of a hundred devices fit.
const BUFFER_START: usize = 16 * 1024;

/// A list of five thousand devices fits.
const BUFFER_MAX: usize = 1024 * 1024;

/// `DM_IOCTL`
const GROUP: u8 = 0xfd;

/// Size of `struct dm_ioctl`.
const HEADER_BYTES: usize = 312;

/// `DM_LIST_DEVICES_CMD`
const LIST_DEVICES: u8 = 2;

/// `DM_NOFLUSH_FLAG`: a thin pool must not write because somebody looks.
const NO_FLUSH: u32 = 1 << 11;

/// `DM_STATUS_TABLE_FLAG`
const STATUS_TABLE: u32 = 1 << 4;

/// `DM_TABLE_STATUS_CMD`
const TABLE_STATUS: u8 = 12;

/// Version 4.0.0 of the interface has all that is used.
const VERSION_MAJOR: u32 = 4;

#[cfg(test)]
mod tests {
    use fettle_core::wire::dm::{VerityStatus, VerityTable};

    use super::*;

    #[test]
    fn requests_are_the_ones_of_the_header() {
        let mut buffer = vec![0; BUFFER_START];
        let opcode = |number| opcode::read_write::<[u8; HEADER_BYTES]>(GROUP, number);
        assert_eq!((opcode(LIST_DEVICES), opcode(TABLE_STATUS)), (0xc138_fd02, 0xc138_fd0c));
        let flags = NO_FLUSH | STATUS_TABLE;
        let mut request = Request::new(TABLE_STATUS, flags, 0xfd00, &mut buffer);
        assert_eq!(request.opcode(), 0xc138_fd0c);
        assert_eq!(request.as_ptr(), request.buffer.as_mut_ptr().cast());
        assert_eq!(buffer[0..20], [&[4][..], &[0; 12], &[0x40, 0, 0, 0x38, 1, 0, 0]].concat());
        assert_eq!(
            (&buffer[28..32], &buffer[40..44]),
            (&[0x10, 8, 0, 0][..], &[0, 0xfd, 0, 0][..])
        );
    }

    #[test]
    fn a_recorded_list_and_a_recorded_table_are_read() {
        let list = reply("", 0, &[&0xfd03_u64.to_ne_bytes()[..], &[0; 4], b"root\x1b\0"].concat());
        let [device] = devices(&list).unwrap().try_into().unwrap();
        assert_eq!((device.numbers, device.name.as_str()), ((0xfd, 3), "root\u{fffd}"));

        let line = b"1 8:1 8:2 4096 4096 2 1 sha256 43ab -";
        let table = [target(b"verity", 0, line), target(b"crypt", 0, b"secret")].concat();
        let next = u32::try_from(target(b"verity", 0, line).len()).unwrap();
        let mut table = reply("root\x1b", 2, &table);
        table[HEADER_BYTES + 20..HEADER_BYTES + 24].copy_from_slice(&next.to_ne_bytes());
        let [found] =
            targets(&table, &device, |kind| kind == b"verity").unwrap().try_into().unwrap();
        assert_eq!(VerityTable::parse(&found.parameters).unwrap().root_digest, b"43ab");
        assert_eq!((found.start, found.length, found.kind.as_str()), (0, 8, "verity"));
    }

    #[test]
    fn the_status_of_another_device_is_not_taken_for_this_one() {
        let status = reply("root", 1, &target(b"verity", 0, b"V"));
        let mut device = Device { encoded: 0, numbers: (0, 0), name: "root".into() };
        let [found] = targets(&status, &device, |_| true).unwrap().try_into().unwrap();
        assert!(VerityStatus::parse(&found.parameters).unwrap().good);
        device.name = "usr".into();
        assert!(matches!(targets(&status, &device, |_| true), Err(DmError::Changed { .. })));
        assert!(matches!(targets(&status[..100], &device, |_| true), Err(DmError::Reply(_))));
    }

    #[test]
    fn without_a_control_node_there_is_no_device_mapper() {
        let root = tempfile::tempdir().unwrap();
        assert!(Control::open(root.path()).unwrap().is_none());
        std::fs::create_dir_all(root.path().join("dev/mapper/control")).unwrap();
        assert!(Control::open(root.path()).is_err());
    }

    #[test]
    fn what_is_no_control_node_fails_the_call() {
        let control = Control { file: File::options().read(true).open("/dev/null").unwrap() };
        let Err(DmError::Call(source)) = control.devices() else { panic!("no call") };
        assert_eq!(source.raw_os_error(), Some(Errno::NOTTY.raw_os_error()));
    }

    /// Builds a reply about the device `name`.
    fn reply(name: &str, target_count: u32, data: &[u8]) -> Vec<u8> {
        let mut buffer = vec![0; HEADER_BYTES];
        let end = u32::try_from(HEADER_BYTES + data.len()).unwrap();
        buffer[12..16].copy_from_slice(&end.to_ne_bytes());
        buffer[16..20].copy_from_slice(&312_u32.to_ne_bytes());
        buffer[20..24].copy_from_slice(&target_count.to_ne_bytes());
        buffer[48..48 + name.len()].copy_from_slice(name.as_bytes());
        buffer.extend_from_slice(data);
        buffer
    }

    /// Builds `struct dm_target_spec` of 8 sectors.
    fn target(kind: &[u8], start: u64, parameters: &[u8]) -> Vec<u8> {
        let mut entry = [&start.to_ne_bytes()[..], &8_u64.to_ne_bytes(), &[0; 8], kind].concat();
        entry.resize(40, 0);
        entry.extend_from_slice(parameters);
        entry.resize((entry.len() + 1).next_multiple_of(8), 0);
        entry
    }
}
