//! What a kernel record means, once its rule's parser has confirmed it.

use core::fmt;

use serde::{Deserialize, Serialize};

use crate::bounds::{LINE_MAX, OBJECT_MAX};
use crate::catalog::{ConditionType, EventReason};
use crate::text::Text;
use crate::wire::cper::Severity;

/// The name of what a finding is about: a device, task, PCI address or port; empty if unknown.
pub type Object = Text<OBJECT_MAX>;

/// One fault that the kernel reported in one record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What it is about.
    pub object: Object,
    /// What happened to it, with the figures of the line.
    pub detail: Detail,
    /// The kernel's own line, as far as it fits.
    pub line: Text<LINE_MAX>,
    /// When the kernel said so, in microseconds since boot without suspend.
    pub timestamp_us: u64,
}

/// What happened, with the figures of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Detail {
    /// An ATA port or drive reported an error.
    Ata,
    /// The block layer failed a request.
    BlockRequest {
        /// The kind of error.
        error: BlockError,
        /// The first sector of the request.
        sector: u64,
    },
    /// A buffered read or write failed.
    BufferIo {
        /// The block, in the device's block size.
        block: u64,
    },
    /// Firmware reported a hardware error.
    Cper {
        /// The number in `{N}` that the lines of one record share.
        record: Option<u64>,
        /// How bad it was.
        severity: Severity,
    },
    /// A memory controller reported read errors.
    Edac {
        /// The number of the controller.
        controller: u64,
        /// How many.
        count: u64,
        /// Whether the data were lost.
        uncorrected: bool,
    },
    /// A memory controller counted errors that no line tells of.
    EdacCount {
        /// How many were corrected.
        corrected: u64,
        /// How many were not.
        uncorrected: u64,
    },
    /// ext4 found an error.
    Ext4Error,
    /// ext4 warned.
    Ext4Warning,
    /// A GPU fell off the bus.
    GpuOffBus,
    /// A task was blocked longer than the kernel's limit.
    HungTask {
        /// Whether the node cannot run pods without it.
        critical: bool,
        /// Its process id.
        pid: u64,
        /// How long it was blocked at least.
        seconds: u64,
    },
    /// A network device cannot be removed.
    NetDeviceInUse {
        /// The use count that the kernel printed.
        usage: i64,
    },
    /// An NVMe controller or command failed.
    Nvme,
    /// A file system can no longer be written to.
    Readonly {
        /// How the kernel stopped it.
        how: ReadonlyHow,
    },
    /// The agent could not restart a unit.
    UnitRestartFailed,
    /// The agent would have restarted a unit, were it not for a dry run.
    UnitRestartSkipped,
    /// The agent restarted a unit.
    UnitRestarted,
    /// A block failed its dm-verity check.
    Verity {
        /// The number of the block.
        block: u64,
    },
    /// The device-mapper says that a block failed its check since the device was set up.
    VerityStatus,
    /// The NVIDIA driver reported an Xid.
    Xid {
        /// The Xid's number.
        number: u64,
    },
}

/// The kind of a block layer error, as `blk_status_to_str` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum BlockError {
    /// `critical medium`
    CriticalMedium,
    /// `I/O`
    Io,
    /// Any other: thin pool full, reservation conflict, discard not supported ...
    Other,
    /// `protection`
    Protection,
    /// `timeout`
    Timeout,
}

/// How the kernel stopped writes to a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReadonlyHow {
    /// btrfs forced it read-only.
    BtrfsForced,
    /// It was remounted read-only.
    Remount,
    /// XFS shut it down.
    XfsShutdown,
}

impl Detail {
    /// Returns the condition that it sets, if any.
    #[must_use]
    pub const fn condition(self) -> Option<ConditionType> {
        match self {
            Self::Cper { severity: Severity::Fatal, .. } => {
                Some(ConditionType::CperHardwareErrorFatal)
            }
            Self::GpuOffBus => Some(ConditionType::GpuFallenOffBus),
            Self::HungTask { critical: true, .. } => Some(ConditionType::KernelDeadlock),
            Self::Readonly { .. } => Some(ConditionType::ReadonlyFilesystem),
            Self::Verity { .. } | Self::VerityStatus => Some(ConditionType::VerityCorruption),
            Self::Ata
            | Self::BlockRequest { .. }
            | Self::BufferIo { .. }
            | Self::Cper { .. }
            | Self::Edac { .. }
            | Self::EdacCount { .. }
            | Self::Ext4Error
            | Self::Ext4Warning
            | Self::HungTask { critical: false, .. }
            | Self::NetDeviceInUse { .. }
            | Self::Nvme
            | Self::UnitRestartFailed
            | Self::UnitRestartSkipped
            | Self::UnitRestarted
            | Self::Xid { .. } => None,
        }
    }

    /// Returns whether the records after it may add to it.
    #[must_use]
    pub const fn takes_lines(self) -> bool {
        matches!(self, Self::Cper { .. } | Self::HungTask { .. })
    }

    /// Returns the event that it is, if any.
    #[must_use]
    pub const fn event(self) -> Option<EventReason> {
        match self {
            Self::Ata => Some(EventReason::AtaError),
            Self::BlockRequest { .. } => Some(EventReason::BlockIOError),
            Self::BufferIo { .. } => Some(EventReason::IOError),
            Self::Cper { severity: Severity::Corrected, .. } => {
                Some(EventReason::CperHardwareErrorCorrected)
            }
            Self::Cper { severity: Severity::Recoverable, .. } => {
                Some(EventReason::CperHardwareErrorRecoverable)
            }
            Self::Edac { .. } | Self::EdacCount { .. } => Some(EventReason::MemoryReadError),
            Self::Ext4Error => Some(EventReason::Ext4Error),
            Self::Ext4Warning => Some(EventReason::Ext4Warning),
            Self::HungTask { .. } => Some(EventReason::TaskHung),
            Self::NetDeviceInUse { .. } => Some(EventReason::UnregisterNetDevice),
            Self::Nvme => Some(EventReason::NvmeError),
            Self::UnitRestartFailed => Some(EventReason::UnitRestartFailed),
            Self::UnitRestartSkipped => Some(EventReason::UnitRestartSkipped),
            Self::UnitRestarted => Some(EventReason::UnitRestarted),
            Self::Xid { .. } => Some(EventReason::NvidiaXidError),
            Self::Cper { severity: Severity::Fatal | Severity::Info, .. }
            | Self::GpuOffBus
            | Self::Readonly { .. }
            | Self::Verity { .. }
            | Self::VerityStatus => None,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let object = Named(&self.object);
        match self.detail {
            Detail::Ata => write!(f, "{object} reported an error"),
            Detail::BlockRequest { error, sector } => {
                write!(f, "{object} failed at sector {sector} with a {error} error")
            }
            Detail::BufferIo { block } => write!(f, "{object} failed at block {block}"),
            Detail::Cper { severity, .. } => {
                write!(f, "firmware reported a hardware error: {}", severity_word(severity))
            }
            Detail::Edac { count, uncorrected, .. } => {
                let kind = if uncorrected { "uncorrected" } else { "corrected" };
                write!(f, "{object} had {count} {kind} read errors")
            }
            Detail::EdacCount { corrected, uncorrected } => write!(
                f,
                "{object} counted {corrected} corrected and {uncorrected} uncorrected memory errors \
                 of which the kernel log does not tell"
            ),
            Detail::Ext4Error => write!(f, "ext4 found an error on {object}"),
            Detail::Ext4Warning => write!(f, "ext4 warned about {object}"),
            Detail::GpuOffBus => write!(f, "GPU {object} has fallen off the bus"),
            Detail::HungTask { seconds, .. } => {
                write!(f, "task {object} was blocked for more than {seconds} s")
            }
            Detail::NetDeviceInUse { usage } => {
                write!(f, "{object} cannot be removed, its use count is {usage}")
            }
            Detail::Nvme => write!(f, "{object} failed or timed out"),
            Detail::Readonly { how } => write!(f, "the file system on {object} was {how}"),
            Detail::UnitRestartFailed => write!(f, "{object} could not be restarted"),
            Detail::UnitRestartSkipped => write!(f, "{object} is left alone by repair.dryRun"),
            Detail::UnitRestarted => write!(f, "{object} was restarted"),
            Detail::Verity { block } => write!(f, "block {block} on {object} is corrupt"),
            Detail::VerityStatus => write!(f, "{object} is corrupt"),
            Detail::Xid { number } => write!(f, "GPU {object} reported Xid {number}"),
        }?;
        write!(f, ": {}", self.line)
    }
}

/// An object, or words for one whose name is not known.
struct Named<'a>(&'a Object);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "of unknown name" } else { self.0.as_str() })
    }
}

impl fmt::Display for BlockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CriticalMedium => "critical medium",
            Self::Io => "I/O",
            Self::Other => "block layer",
            Self::Protection => "protection",
            Self::Timeout => "timeout",
        })
    }
}

impl fmt::Display for ReadonlyHow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BtrfsForced => "forced read-only",
            Self::Remount => "remounted read-only",
            Self::XfsShutdown => "shut down",
        })
    }
}

const fn severity_word(severity: Severity) -> &'static str {
    match severity {
        Severity::Corrected => "corrected",
        Severity::Fatal => "fatal",
        Severity::Info => "informational",
        Severity::Recoverable => "recoverable",
    }
}
