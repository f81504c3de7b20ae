//! Commands to an NVMe controller that read what it knows of itself.
//!
//! `include/uapi/linux/nvme_ioctl.h`; NVM Express Base Specification, "Get Log Page command" and
//! "Identify command".

#![expect(unsafe_code, reason = "the command holds the address of the buffer that it fills")]

use core::ffi::c_void;
use core::marker::PhantomData;
use std::io;
use std::os::fd::AsFd;

use fettle_core::wire::smart::{HEALTH_BYTES, IDENTITY_BYTES};
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl, opcode};

/// Why a controller did not answer.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// The kernel refused the call, or the command did not come back.
    #[error("NVMe command failed")]
    Call(#[source] io::Error),
    /// The controller refused the command.
    #[error("refused by the controller (sct {:#x} / sc {:#04x})", kind(*status), code(*status))]
    Refused {
        /// The status field of the completion, without the phase bit.
        status: u16,
    },
}

/// Reads the SMART / Health Information log page, for the core to parse.
///
/// Blocks for as long as the kernel waits, a minute by default: call it from a thread that may
/// hang. The command asks for no shorter time, for the kernel resets a controller that lets an
/// admin command run out (`nvme_timeout` in `drivers/nvme/host/pci.c`), and a check must not do
/// that to a disk that is only busy.
///
/// # Errors
///
/// See [`AdminError`]. A refusal is an error although the call succeeds: the kernel then returns
/// the controller's status, and the page stays as it was.
pub fn health(device: impl AsFd) -> Result<[u8; HEALTH_BYTES], AdminError> {
    let mut page = [0; HEALTH_BYTES];
    run(device, &HEALTH, &mut page)?;
    Ok(page)
}

/// Reads the Identify Controller data, for the core to parse.
///
/// Blocks as [`health`] does.
///
/// # Errors
///
/// See [`AdminError`].
pub fn identity(device: impl AsFd) -> Result<[u8; IDENTITY_BYTES], AdminError> {
    let mut page = [0; IDENTITY_BYTES];
    run(device, &IDENTITY, &mut page)?;
    Ok(page)
}

fn run(device: impl AsFd, command: &Command, page: &mut [u8]) -> Result<(), AdminError> {
    let exchange = Exchange::new(command, page);
    // SAFETY: `Exchange` upholds the contract of `Ioctl`, as its implementation says.
    let status = unsafe { ioctl(device, exchange) };
    judge(status.map_err(|errno| AdminError::Call(errno.into()))?)
}

/// Turns what the call returned into success or the controller's refusal.
fn judge(status: IoctlOutput) -> Result<(), AdminError> {
    match u16::try_from(status) {
        Ok(0) => Ok(()),
        Ok(status) => Err(AdminError::Refused { status }),
        Err(_) => Err(AdminError::Call(io::ErrorKind::InvalidData.into())),
    }
}

/// Returns the status code type, which says what the code means.
const fn kind(status: u16) -> u16 {
    status >> 8 & 7
}

const fn code(status: u16) -> u16 {
    status & 0xff
}

/// One command and the buffer that it fills.
struct Exchange<'page> {
    command: Command,
    page: PhantomData<&'page mut [u8]>,
}

/// `struct nvme_passthru_cmd`
#[repr(C)]
#[derive(Clone, Copy)]
struct Command {
    opcode: u8,
    flags: u8,
    reserved: u16,
    namespace: u32,
    cdw2: u32,
    cdw3: u32,
    metadata: u64,
    data: u64,
    metadata_bytes: u32,
    data_bytes: u32,
    cdw10: u32,
    cdw11: u32,
    cdw12: u32,
    cdw13: u32,
    cdw14: u32,
    cdw15: u32,
    timeout_ms: u32,
    result: u32,
}

const _: () = assert!(size_of::<Command>() == 72);

impl Command {
    const fn new(opcode: u8, namespace: u32, cdw10: u32) -> Self {
        Self {
            opcode,
            flags: 0,
            reserved: 0,
            namespace,
            cdw2: 0,
            cdw3: 0,
            metadata: 0,
            data: 0,
            metadata_bytes: 0,
            data_bytes: 0,
            cdw10,
            cdw11: 0,
            cdw12: 0,
            cdw13: 0,
            cdw14: 0,
            cdw15: 0,
            // As long as the kernel waits for commands of its own: see `health`.
            timeout_ms: 0,
            result: 0,
        }
    }
}

impl<'page> Exchange<'page> {
    fn new(command: &Command, page: &'page mut [u8]) -> Self {
        let data_bytes = u32::try_from(page.len()).expect("a page has a few KiB");
        let data = address(page);
        Self { command: Command { data, data_bytes, ..*command }, page: PhantomData }
    }
}

// SAFETY: the kernel reads and writes one `Command`, whose size is asserted above, and writes at
// most `data_bytes` bytes at `data`: the buffer, which stays borrowed for writing until the
// exchange is dropped. `output_from_ptr` reads nothing through the pointer.
unsafe impl Ioctl for Exchange<'_> {
    type Output = IoctlOutput;

    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        opcode::read_write::<Command>(b'N', 0x41)
    }

    fn as_ptr(&mut self) -> *mut c_void {
        (&raw mut self.command).cast()
    }

    unsafe fn output_from_ptr(
        status: IoctlOutput,
        _: *mut c_void,
    ) -> rustix::io::Result<IoctlOutput> {
        Ok(status)
    }
}

#[expect(clippy::as_conversions, reason = "the kernel takes the address as a number of 64 bits")]
fn address(page: &mut [u8]) -> u64 {
    page.as_mut_ptr().expose_provenance() as u64
}

/// Get Log Page, page 2, of the whole controller: 128 double words, counted from 0.
const HEALTH: Command = Command::new(0x02, 0xffff_ffff, 0x007f_0002);

/// Identify, of the controller.
const IDENTITY: Command = Command::new(0x06, 0, 1);

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn the_request_is_the_one_of_the_header() {
        let mut page = [0; HEALTH_BYTES];
        let here = address(&mut page);
        let mut exchange = Exchange::new(&HEALTH, &mut page);
        // NVME_IOCTL_ADMIN_CMD = _IOWR('N', 0x41, struct nvme_admin_cmd)
        assert_eq!(exchange.opcode(), 0xc048_4e41);
        assert_eq!(exchange.as_ptr(), (&raw mut exchange.command).cast());
        let command = exchange.command;
        assert_eq!((command.data, command.data_bytes, command.timeout_ms), (here, 512, 0));
    }

    #[test]
    fn the_fields_stand_where_the_header_has_them() {
        let offsets = [
            core::mem::offset_of!(Command, namespace),
            core::mem::offset_of!(Command, data),
            core::mem::offset_of!(Command, data_bytes),
            core::mem::offset_of!(Command, cdw10),
            core::mem::offset_of!(Command, timeout_ms),
            core::mem::offset_of!(Command, result),
        ];
        assert_eq!(offsets, [4, 24, 36, 40, 64, 68]);
    }

    #[test]
    fn health_asks_for_all_double_words_less_one() {
        let double_words = u32::try_from(HEALTH_BYTES / 4).unwrap();
        assert_eq!(HEALTH.cdw10, 2 | (double_words - 1) << 16);
    }

    #[test]
    fn a_positive_return_is_a_refusal_with_its_status() {
        assert!(judge(0).is_ok());
        // "Invalid Log Page" of a virtual disk, "do not retry" set.
        let refused = judge(0x4109).unwrap_err();
        assert!(matches!(refused, AdminError::Refused { status: 0x4109 }));
        assert_eq!(refused.to_string(), "refused by the controller (sct 0x1 / sc 0x09)");
        assert!(matches!(judge(-1), Err(AdminError::Call(_))));
        assert!(matches!(judge(0x1_0000), Err(AdminError::Call(_))));
    }

    #[test]
    fn what_is_no_controller_fails_the_call() {
        let null = File::open("/dev/null").unwrap();
        for error in [health(&null).unwrap_err(), identity(&null).unwrap_err()] {
            let AdminError::Call(source) = error else { panic!("{error}") };
            let not_a_tty = rustix::io::Errno::NOTTY.raw_os_error();
            assert_eq!(source.raw_os_error(), Some(not_a_tty));
        }
    }
}
