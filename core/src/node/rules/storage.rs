//! Confirms faults of disks: block layer, NVMe, ATA, dm-verity.

use super::Meaning;
use super::finding::{BlockError, Detail};
use crate::bounds::BLOCK_ERROR_NAME_MAX;
use crate::wire::scan::{Scan, has};

/// Confirms `I/O error, dev DEV, sector N`, in the wordings since 3.x.
///
/// `block/blk-core.c` (`blk_status_to_str`), `block/blk-mq.c` (`blk_print_req_error`); one of three
/// functions' names stood in front up to 5.15.
pub(super) fn block_request(text: &[u8]) -> Option<Meaning<'_>> {
    let mut scan = Scan::new(text);
    let _ = scan.one_of(&[b"blk_update_request: ", b"print_req_error: ", b"end_request: "]);
    let name = scan.until(b" error, dev ")?;
    let is_name = |byte: &u8| byte.is_ascii_alphabetic() || b" /-".contains(byte);
    if name.is_empty() || name.len() > BLOCK_ERROR_NAME_MAX || !name.iter().all(is_name) {
        return None;
    }
    let device = scan.until(b", sector ")?;
    let sector = scan.number()?;
    Some((device, Detail::BlockRequest { error: block_error(name), sector }))
}

fn block_error(name: &[u8]) -> BlockError {
    match name {
        b"critical medium" => BlockError::CriticalMedium,
        b"I/O" => BlockError::Io,
        b"protection" => BlockError::Protection,
        b"timeout" => BlockError::Timeout,
        _ => BlockError::Other,
    }
}

/// Confirms `Buffer I/O error on dev DEV, logical block N`.
///
/// `fs/buffer.c` (`buffer_io_error`), `fs/ext4/page-io.c` (`on device`).
pub(super) fn buffer_io(text: &[u8]) -> Option<Meaning<'_>> {
    let mut scan = Scan::new(text);
    scan.literal(b"Buffer I/O error on dev")?;
    scan.one_of(&[b" ", b"ice "])?;
    let device = scan.until(b", logical block ")?;
    let block = scan.number()?;
    Some((device, Detail::BufferIo { block }))
}

/// Confirms a line of the NVMe driver that reports a failure.
///
/// `drivers/nvme/host/{pci,core,tcp,multipath}.c`. A time-out whose completion was only late, and
/// a refused admin command, are none.
pub(super) fn nvme(text: &[u8]) -> Option<Meaning<'_>> {
    let device = controller_fault(text).or_else(|| command_fault(text)).or_else(|| no_path(text));
    Some((device?, Detail::Nvme))
}

/// Reads `nvme nvme0: WHAT HAPPENED`; 4.x kernels print a PCI address for the controller's name.
fn controller_fault(text: &[u8]) -> Option<&[u8]> {
    let mut scan = Scan::new(text);
    scan.literal(b"nvme ")?;
    let device = scan.until(b": ")?;
    if device.iter().any(u8::is_ascii_whitespace) {
        return None;
    }
    let said = scan.rest();
    let failed = CONTROLLER_FAULTS.iter().any(|fault| said.starts_with(fault));
    (failed || is_timeout(said)).then_some(device)
}

/// Local controllers name the I/O, older fabrics the queue.
fn is_timeout(said: &[u8]) -> bool {
    let of_io = said.starts_with(b"I/O ") && has(said, b" QID ") && has(said, b" timeout");
    let of_queue = said.starts_with(b"queue ") && has(said, b": timeout ");
    (of_io || of_queue) && !has(said, b"completion polled")
}

/// Reads `nvme0n1: COMMAND @ LBA N, M blocks, ERROR (sct 0xN / sc 0xN)`.
fn command_fault(text: &[u8]) -> Option<&[u8]> {
    let mut scan = Scan::new(text);
    let device = scan.until(b": ")?;
    namespace(device)?;
    scan.until(b" @ LBA ")?;
    scan.number()?;
    scan.literal(b", ")?;
    scan.number()?;
    scan.literal(b" blocks, ")?;
    scan.until(b" (sct 0x")?;
    Some(device)
}

/// Reads `block nvme0n1: no available path - failing I/O`.
fn no_path(text: &[u8]) -> Option<&[u8]> {
    let mut scan = Scan::new(text);
    scan.literal(b"block ")?;
    let device = scan.until(b": no available path - failing I/O")?;
    namespace(device)?;
    Some(device)
}

/// Accepts `nvme0n1`, and `nvme0c0n1` for one path of several.
fn namespace(name: &[u8]) -> Option<()> {
    let mut scan = Scan::new(name);
    scan.literal(b"nvme")?;
    scan.number()?;
    if scan.literal(b"c").is_some() {
        scan.number()?;
    }
    scan.literal(b"n")?;
    scan.number()?;
    scan.at_end().then_some(())
}

/// Confirms `ata1.00: exception Emask ...`, `failed command: ...` and `error: { ... }`.
///
/// `drivers/ata/libata-eh.c` (`ata_eh_link_report`). Resets and link states are only context.
pub(super) fn ata(text: &[u8]) -> Option<Meaning<'_>> {
    let mut scan = Scan::new(text);
    let device = scan.until(b": ")?;
    let mut name = Scan::new(device);
    name.literal(b"ata")?;
    name.number()?;
    if name.literal(b".").is_some() {
        name.number()?;
    }
    if !name.at_end() {
        return None;
    }
    scan.one_of(&[b"exception Emask ", b"failed command: ", b"error: { "])?;
    Some((device, Detail::Ata))
}

/// Confirms `device-mapper: verity: MAJOR:MINOR: data block N is corrupted`.
///
/// `drivers/md/dm-verity-target.c` (`verity_handle_err`). The numbers are those of the device
/// below, not of the dm device; old kernels print none.
pub(super) fn verity_block(text: &[u8]) -> Option<Meaning<'_>> {
    let mut scan = Scan::new(text);
    scan.literal(b"device-mapper: verity: ")?;
    let device = device_numbers(&mut scan).unwrap_or(b"");
    let rest = scan.rest();
    scan.until(b" block ")?;
    let block = scan.number()?;
    has(rest, b"corrupt").then_some((device, Detail::Verity { block }))
}

/// Takes `MAJOR:MINOR: ` and returns it without the end.
fn device_numbers<'a>(scan: &mut Scan<'a>) -> Option<&'a [u8]> {
    let mut ahead = *scan;
    let numbers = ahead.run(|byte| byte.is_ascii_digit() || *byte == b':')?;
    ahead.literal(b" ")?;
    let numbers = numbers.strip_suffix(b":")?;
    *scan = ahead;
    Some(numbers)
}

/// How the controller lines begin that report a failure.
const CONTROLLER_FAULTS: [&[u8]; 7] = [
    b"controller is down; ",
    b"Removing after probe failure",
    b"Disabling device after reset failure",
    b"frozen state error detected",
    b"failure state error detected",
    b"Device not ready; aborting ",
    b"Failed status: ",
];
