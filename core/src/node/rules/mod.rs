//! The kernel rule table: from a record of the kernel log to what it means.
//!
//! An automaton finds which fragments stand in a record; a small parser confirms each fault that
//! they may mean, from the first byte on and, where the line sets a condition, to the last. What
//! someone chose must not pose as a fault: a task's name of 15 bytes may stand at the front of a
//! line (`COMM[PID]: segfault ... in FILE[...]`), a name of any length in the middle.

mod automaton;
mod filesystem;
mod finding;
mod hardware;
mod storage;
mod system;
mod table;

use crate::bounds::{FINDINGS_MAX, LINE_MAX};
use crate::text::Text;
use crate::wire::kmsg::Record;

pub use automaton::{Candidates, TABLE_BYTES, candidates, fragments, scan};
pub use finding::{BlockError, Detail, Finding, Object, ReadonlyHow};
pub use hardware::pci_address;
pub use system::lock_owner;
pub use table::{Fault, RULES, Rule};

/// The findings of one record.
pub type Findings = heapless::Vec<Finding, FINDINGS_MAX>;

/// What a parser read from a line: the object's name and the detail.
type Meaning<'a> = (&'a [u8], Detail);

/// Returns what `record` means, whoever wrote it.
///
/// The caller asks [`Record::origin`] first: only the kernel's records prove anything.
#[must_use]
pub fn classify(record: &Record<'_>) -> Findings {
    let candidates = candidates(record.text);
    if candidates.is_empty() { Findings::new() } else { confirm_all(candidates, record) }
}

/// Kept out of [`classify`], whose usual path needs none of these buffers.
#[inline(never)]
fn confirm_all(candidates: Candidates, record: &Record<'_>) -> Findings {
    let mut findings = Findings::new();
    let plain = record.plain_text();
    let text = plain.as_bytes();
    for (fault, parse) in PARSERS {
        if !candidates.contains(fault) {
            continue;
        }
        if let Some((object, detail)) = parse(text) {
            let object = Object::from_bytes(object);
            let line = Text::<LINE_MAX>::from_bytes(text.trim_ascii());
            // Full is impossible while at most FINDINGS_MAX parsers accept one line.
            let timestamp_us = record.timestamp_us;
            let _ = findings.push(Finding { object, detail, line, timestamp_us });
        }
    }
    findings
}

/// Reads one line, its escapes undone, and returns what it means if it is such a fault.
type Parse = for<'a> fn(&'a [u8]) -> Option<Meaning<'a>>;

/// One parser for each fault; conditions stand first, so that they are told first.
const PARSERS: [(Fault, Parse); 16] = [
    (Fault::ReadonlyRemount, filesystem::readonly_remount),
    (Fault::XfsShutdown, filesystem::xfs_shutdown),
    (Fault::BtrfsForcedReadonly, filesystem::btrfs_forced_readonly),
    (Fault::VerityBlock, storage::verity_block),
    (Fault::CperSeverity, hardware::cper_severity),
    (Fault::GpuOffBus, hardware::gpu_off_bus),
    (Fault::HungTask, system::hung_task),
    (Fault::Xid, hardware::xid),
    (Fault::Ext4Error, filesystem::ext4_error),
    (Fault::Ext4Warning, filesystem::ext4_warning),
    (Fault::BlockRequest, storage::block_request),
    (Fault::BufferIo, storage::buffer_io),
    (Fault::Nvme, storage::nvme),
    (Fault::Ata, storage::ata),
    (Fault::EdacRead, hardware::edac_read),
    (Fault::NetDeviceInUse, system::net_device_in_use),
];

#[cfg(test)]
mod tests;
