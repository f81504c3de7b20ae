//! Faults that take several records: what the lines after, or before, a finding add to it.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::bounds::BLOCK_LINES_MAX;
use crate::node::fold::{Extra, push_extra};
use crate::node::rules::{Detail, Finding, Findings, Object, lock_owner, pci_address};
use crate::time::Instant;
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

#[expect(clippy::large_enum_variant, reason = "there is no heap to put the larger one on")]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Kind {
    /// The driver has begun to say that this GPU fell off the bus.
    Gpu(Object),
    /// A finding to which later lines add.
    Report(Report),
}

/// A finding, and what the lines after it have added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The finding, with the name that later lines gave it.
    pub finding: Finding,
    /// The figures and names that later lines gave.
    pub extra: Extra,
    /// Until when its event waits for further lines; `None` once it was taken.
    due: Option<Instant>,
}

/// What a record added to the finding of its block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Added {
    /// A figure or a name.
    Extra,
    /// The name of what the finding is about; before, it was called this.
    Name {
        /// The former name; empty if it had none.
        before: Object,
    },
}

impl Block {
    /// Completes the findings of `record` with what the records before it said.
    ///
    /// The driver reports a lost GPU in up to three records, of which the first has the address
    /// and the last the fault.
    pub fn complete(&mut self, record: &Record<'_>, findings: &mut Findings) {
        if findings.is_empty()
            && record.text.starts_with(GPU_BLOCK)
            && let Some(address) = pci_address(record.text)
        {
            self.open(record.sequence, Kind::Gpu(Object::from_bytes(address)));
        }
        for finding in findings.iter_mut() {
            if finding.detail == Detail::GpuOffBus
                && finding.object.is_empty()
                && let Some(gpu) = self.gpu(record.sequence)
            {
                finding.object = gpu.clone();
            }
        }
    }

    /// Begins the block of `finding`, to which later records add.
    ///
    /// Its event is due a little later; see [`Block::take_due`].
    pub fn begin(&mut self, now: Instant, sequence: u64, finding: &Finding) {
        let (finding, extra) = (finding.clone(), Extra::new());
        let due = Some(now + LINES_WAIT);
        self.open(sequence, Kind::Report(Report { finding, extra, due }));
    }

    /// Adds what `record` says to the finding of the open block.
    pub fn add(&mut self, record: &Record<'_>) -> Option<(&Report, Added)> {
        let open = self.open.as_mut().filter(|open| record.sequence <= open.last_sequence)?;
        let Kind::Report(report) = &mut open.kind else {
            return None;
        };
        let plain = record.plain_text();
        let added = if let Detail::Cper { record, .. } = report.finding.detail {
            let line = Line::parse(plain.as_bytes()).ok()?;
            (line.record == record).then(|| report.add_cper(line.part)).flatten()
        } else {
            lock_owner(plain.as_bytes()).map(|owner| report.add_pair("waits for", owner))
        };
        added.map(|added| (&*report, added))
    }

    /// Returns the report whose event is due, once.
    pub fn take_due(&mut self, now: Instant) -> Option<Report> {
        if self.next_wakeup()? > now {
            return None;
        }
        self.take()
    }

    /// Returns the report whose event has not been taken, due or not.
    pub fn take(&mut self) -> Option<Report> {
        let Some(Open { kind: Kind::Report(report), .. }) = &mut self.open else {
            return None;
        };
        report.due.take()?;
        Some(report.clone())
    }

    /// Returns when the event of the open block is due.
    #[must_use]
    pub fn next_wakeup(&self) -> Option<Instant> {
        match &self.open {
            Some(Open { kind: Kind::Report(report), .. }) => report.due,
            Some(Open { kind: Kind::Gpu(_), .. }) | None => None,
        }
    }

    fn gpu(&self, sequence: u64) -> Option<&Object> {
        match &self.open {
            Some(Open { kind: Kind::Gpu(gpu), last_sequence }) if sequence <= *last_sequence => {
                Some(gpu)
            }
            Some(_) | None => None,
        }
    }

    fn open(&mut self, sequence: u64, kind: Kind) {
        self.open = Some(Open { kind, last_sequence: sequence.saturating_add(BLOCK_LINES_MAX) });
    }
}

impl Report {
    /// A PCIe section says its device after the firmware's name of the part, and better.
    fn add_cper(&mut self, part: Part<'_>) -> Option<Added> {
        match part {
            Part::DeviceId(id) => Some(self.add_name(id)),
            Part::FruText(text) if self.finding.object.is_empty() && !text.is_empty() => {
                Some(self.add_name(text))
            }
            Part::FruText(text) => Some(self.add_pair("part", text)),
            Part::MemoryError(text) => Some(self.add_pair("error", text)),
            Part::PhysicalAddress(address) => Some(self.add_pair("address", address)),
            Part::SectionType(kind) => Some(self.add_pair("section", kind)),
            Part::ErrorType(_) | Part::Other | Part::Severity(_) => None,
        }
    }

    fn add_name(&mut self, name: &[u8]) -> Added {
        let before = core::mem::replace(&mut self.finding.object, Object::from_bytes(name));
        Added::Name { before }
    }

    fn add_pair(&mut self, name: &str, value: &[u8]) -> Added {
        push_extra(&mut self.extra, name, value);
        Added::Extra
    }
}

const GPU_BLOCK: &[u8] = b"NVRM: The NVIDIA GPU ";

/// How long an event waits for the other lines of its block.
///
/// The kernel prints them in one go; a fifth of a second is short beside the second within which
/// a finding is to be told.
const LINES_WAIT: Duration = Duration::from_millis(200);
