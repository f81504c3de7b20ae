//! Faults that take several records: what the lines after, or before, a finding add to it.

use serde::{Deserialize, Serialize};

use crate::bounds::BLOCK_LINES_MAX;
use crate::node::rules::{Detail, Finding, Findings, Object, lock_owner, pci_address};
use crate::wire::cper::{Line, Part};
use crate::wire::kmsg::Record;

/// The block of records that is being read, if there is one.
///
/// A block ends after [`BLOCK_LINES_MAX`] records, or when another begins. Records of other parts
/// of the kernel may come in between.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    open: Option<Open>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Open {
    kind: Kind,
    last_sequence: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Kind {
    /// The lines of the firmware error record with this number.
    Cper { finding: Finding, record: Option<u64> },
    /// The lines after the report of a hung task.
    HungTask { finding: Finding },
    /// The driver has begun to say that this GPU fell off the bus.
    Nvrm { gpu: Object },
}

/// What a record adds to the finding of its block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addition<'a> {
    /// The name of what the finding is about.
    Name(&'a [u8]),
    /// A figure or a name, with what it is.
    Pair(&'static str, &'a [u8]),
}

impl Block {
    /// Begins a block if `finding` is one that later records add to.
    fn begin(&mut self, sequence: u64, finding: &Finding) {
        let finding = finding.clone();
        let kind = match finding.detail {
            Detail::Cper { record, .. } => Kind::Cper { finding, record },
            Detail::HungTask { .. } => Kind::HungTask { finding },
            Detail::Ata
            | Detail::BlockRequest { .. }
            | Detail::BufferIo { .. }
            | Detail::Edac { .. }
            | Detail::Ext4Error
            | Detail::Ext4Warning
            | Detail::GpuOffBus
            | Detail::NetDeviceInUse { .. }
            | Detail::Nvme
            | Detail::Readonly { .. }
            | Detail::Verity { .. }
            | Detail::VerityStatus
            | Detail::Xid { .. } => return,
        };
        self.open(sequence, kind);
    }

    /// Completes the findings of `record` with what the records before it said.
    ///
    /// The driver reports a lost GPU in up to three records, of which the first has the address
    /// and the last the fault.
    pub fn complete(&mut self, record: &Record<'_>, findings: &mut Findings) {
        let gpu = self.gpu(record.sequence).cloned();
        for finding in findings.iter_mut() {
            if finding.detail == Detail::GpuOffBus && finding.object.is_empty() {
                finding.object = gpu.clone().unwrap_or_default();
            }
            self.begin(record.sequence, finding);
        }
        if findings.is_empty()
            && record.text.starts_with(GPU_BLOCK)
            && let Some(address) = pci_address(record.text)
        {
            self.open(record.sequence, Kind::Nvrm { gpu: Object::from_bytes(address) });
        }
    }

    fn gpu(&self, sequence: u64) -> Option<&Object> {
        let open = self.open.as_ref().filter(|open| open.reaches(sequence))?;
        if let Kind::Nvrm { gpu } = &open.kind { Some(gpu) } else { None }
    }

    /// Returns the finding whose block is open, as it was last named.
    #[must_use]
    pub fn finding(&self, sequence: u64) -> Option<&Finding> {
        let open = self.open.as_ref().filter(|open| open.reaches(sequence))?;
        match &open.kind {
            Kind::Cper { finding, .. } | Kind::HungTask { finding } => Some(finding),
            Kind::Nvrm { .. } => None,
        }
    }

    /// Returns what `text`, the plain text of a record, adds to the open block's finding.
    #[must_use]
    pub fn addition<'a>(&self, text: &'a [u8]) -> Option<Addition<'a>> {
        match &self.open.as_ref()?.kind {
            Kind::Cper { finding, record } => {
                let line = Line::parse(text).ok().filter(|line| line.record == *record)?;
                cper_addition(line.part, finding.object.is_empty())
            }
            Kind::HungTask { .. } => {
                lock_owner(text).map(|owner| Addition::Pair("waits for", owner))
            }
            Kind::Nvrm { .. } => None,
        }
    }

    /// Gives the open block's finding its name.
    pub fn name(&mut self, object: &Object) {
        if let Some(Open { kind: Kind::Cper { finding, .. }, .. }) = &mut self.open {
            finding.object = object.clone();
        }
    }

    fn open(&mut self, sequence: u64, kind: Kind) {
        self.open = Some(Open { kind, last_sequence: sequence.saturating_add(BLOCK_LINES_MAX) });
    }
}

impl Open {
    fn reaches(&self, sequence: u64) -> bool {
        sequence <= self.last_sequence
    }
}

fn cper_addition(part: Part<'_>, unnamed: bool) -> Option<Addition<'_>> {
    match part {
        Part::DeviceId(id) if unnamed => pci_address(id).map(Addition::Name),
        Part::FruText(text) if unnamed && !text.is_empty() => Some(Addition::Name(text)),
        Part::DeviceId(id) => Some(Addition::Pair("device", id)),
        Part::FruText(text) => Some(Addition::Pair("part", text)),
        Part::MemoryError(text) => Some(Addition::Pair("error", text)),
        Part::PhysicalAddress(address) => Some(Addition::Pair("address", address)),
        Part::SectionType(kind) => Some(Addition::Pair("section", kind)),
        Part::ErrorType(_) | Part::Other | Part::Severity(_) => None,
    }
}

const GPU_BLOCK: &[u8] = b"NVRM: The NVIDIA GPU ";
