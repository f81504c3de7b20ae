//! Confirms faults that hardware reports: firmware records, memory controllers, GPUs.

use heapless::Vec;

use super::Meaning;
use super::finding::Detail;
use crate::bounds::RECORD_TEXT_MAX;
use crate::wire::cper::{Line, Part, Severity};
use crate::wire::scan::{Scan, has};

/// Confirms the severity line of a firmware error record; a section's own severity is none.
pub(super) fn cper_severity(text: &[u8]) -> Option<Meaning<'_>> {
    let line = Line::parse(text).ok()?;
    match line.part {
        Part::Severity(Severity::Info) => None,
        Part::Severity(severity) => Some((b"", Detail::Cper { record: line.record, severity })),
        Part::DeviceId(_)
        | Part::ErrorType(_)
        | Part::FruText(_)
        | Part::MemoryError(_)
        | Part::Other
        | Part::PhysicalAddress(_)
        | Part::SectionType(_) => None,
    }
}

/// Confirms `EDAC MC0: N CE memory read error on LABEL`, as Intel's drivers print it.
///
/// `drivers/edac/edac_mc.c` (`edac_ce_error`, `edac_ue_error`).
pub(super) fn edac_read(text: &[u8]) -> Option<Meaning<'_>> {
    let mut scan = Scan::new(text);
    scan.literal(b"EDAC MC")?;
    let controller = scan.number()?;
    scan.literal(b": ")?;
    let count = scan.number()?;
    let uncorrected = scan.one_of(&[b" CE", b" UE"])? == 1;
    scan.literal(b" memory read error on ")?;
    let rest = scan.rest();
    let label = scan.until(b" (").unwrap_or(rest);
    Some((label.trim_ascii(), Detail::Edac { controller, count, uncorrected }))
}

/// Confirms each of the driver's wordings for a GPU that fell off the bus.
///
/// One of them is a single record of three lines, each with its own `NVRM: `; the words may break
/// anywhere.
pub(super) fn gpu_off_bus(text: &[u8]) -> Option<Meaning<'_>> {
    let said = text.strip_prefix(b"NVRM: ")?;
    let joined = joined_lines(text);
    let fallen = if let Some((_, Detail::Xid { number })) = xid(text) {
        number == XID_OFF_BUS && has(&joined, OFF_BUS)
    } else {
        // A client chooses what other lines of the driver quote, and a task its own name: the head
        // and the end must be the driver's.
        GPU_HEADS.iter().any(|head| said.starts_with(head)) && ends_off_bus(&joined)
    };
    fallen.then_some((pci_address(text).unwrap_or(b""), Detail::GpuOffBus))
}

fn ends_off_bus(joined: &[u8]) -> bool {
    let joined = joined.trim_ascii_end();
    let joined = joined.strip_suffix(b".").unwrap_or(joined);
    joined.strip_suffix(b" and is not responding to commands").unwrap_or(joined).ends_with(OFF_BUS)
}

const OFF_BUS: &[u8] = b"fallen off the bus";

/// "GPU has fallen off the bus" (NVIDIA GPU Deployment and Management, "Xid Errors").
const XID_OFF_BUS: u64 = 79;

/// How the driver begins what it says of a lost GPU, in one record or in several.
const GPU_HEADS: [&[u8]; 5] =
    [b"GPU ", b"The NVIDIA GPU ", b"system has ", b"fallen off ", b"has fallen off "];

/// Returns `text` with each line break, and the `NVRM: ` after it, as one space.
fn joined_lines(text: &[u8]) -> Vec<u8, RECORD_TEXT_MAX> {
    let mut joined = Vec::new();
    for line in text.split(|byte| *byte == b'\n') {
        let line = line.strip_prefix(b"NVRM: ").unwrap_or(line).trim_ascii();
        // No longer than `text`, which fits.
        let _ = joined.extend_from_slice(line).and_then(|()| joined.extend_from_slice(b" "));
    }
    joined
}

/// Confirms `NVRM: Xid (PCI:DDDD:BB:DD): N`; NVSwitch's `SXid` is none.
pub(super) fn xid(text: &[u8]) -> Option<Meaning<'_>> {
    let mut scan = Scan::new(text);
    scan.literal(b"NVRM: Xid (")?;
    let _ = scan.literal(b"PCI:");
    // With multi-instance GPUs ` GPU-I:NN` follows the address.
    let mut inside = Scan::new(scan.until(b"): ")?);
    let address = inside.word()?;
    if !address.iter().all(|byte| byte.is_ascii_hexdigit() || b":.".contains(byte)) {
        return None;
    }
    let number = scan.number()?;
    Some((without_function(address), Detail::Xid { number }))
}

/// Returns the first PCI address in `text`, without its function.
#[must_use]
pub fn pci_address(text: &[u8]) -> Option<&[u8]> {
    let is_part = |byte: &u8| byte.is_ascii_hexdigit() || *byte == b':';
    text.split(|byte| !is_part(byte)).find_map(|word| {
        // `PCI:0000:02:00: ` leaves a colon at both ends.
        let word = word.strip_prefix(b":").unwrap_or(word);
        let word = word.strip_suffix(b":").unwrap_or(word);
        is_pci_address(word).then_some(word)
    })
}

fn is_pci_address(word: &[u8]) -> bool {
    let mut fields = word.split(|byte| *byte == b':').map(<[u8]>::len);
    let widths = (fields.next(), fields.next(), fields.next(), fields.next());
    matches!(widths, (Some(4..=8), Some(2), Some(2), None))
}

/// `0000:3b:00.0` and `0000:3b:00` are one GPU.
fn without_function(address: &[u8]) -> &[u8] {
    address.split(|byte| *byte == b'.').next().unwrap_or(address)
}
