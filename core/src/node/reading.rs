//! What probes read: one reading is about one object, at one moment.

mod service;

use serde::{Deserialize, Serialize};

pub use self::service::{
    ActiveState, Audit, Cni, CniHealth, GaugeAnswer, KubeletHealth, KubeletJournal, RuntimeHealth,
    Unit, UnitDuty,
};
use crate::time::Timestamp;
use crate::wire::cper::Severity;

/// One reading of one object.
///
/// A check that looks at many objects hands over one reading for each, and then says that it is
/// done. What could not be read is a reading too: [`Reading::Unreadable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reading<'a> {
    /// The API server's audit records of the last minute.
    Audit(Audit),
    /// A hardware error that firmware recorded before this boot.
    BootError(BootError),
    /// A certificate in a file.
    #[serde(borrow)]
    Certificate(Certificate<'a>),
    /// The kernel's clock.
    Clock(Clock),
    /// The local CNI agent.
    Cni(Cni<'a>),
    /// A disk, and how it is attached.
    Disk(Disk<'a>),
    /// The health of a drive.
    Drive(Drive<'a>),
    /// The age of a file that something should renew.
    FileAge(FileAge<'a>),
    /// Space and inodes of a mounted file system.
    FileSystem(FileSystem<'a>),
    /// The GPUs of the node and what activates them.
    Gpus(Gpus),
    /// The kubelet's answer on `/healthz`.
    KubeletHealth(KubeletHealth),
    /// The kubelet's journal.
    KubeletJournal(KubeletJournal),
    /// A sealed layer of the operating system.
    Layer(Layer<'a>),
    /// The error counts of a memory controller.
    MemoryController(MemoryController<'a>),
    /// A protected file that is not as it was at the baseline.
    ProtectedFile(ProtectedFile<'a>),
    /// The gauge with which the local proxy says that it is ready.
    ProxyReady(GaugeAnswer<'a>),
    /// The container runtime's answer to a CRI status request.
    RuntimeHealth(RuntimeHealth<'a>),
    /// A thin pool of a volume group.
    ThinPool(ThinPool<'a>),
    /// The gauge with which the tunnel counts its connections.
    TunnelConnections(GaugeAnswer<'a>),
    /// A unit of systemd.
    Unit(Unit<'a>),
    /// Something that could not be read.
    Unreadable(Unreadable<'a>),
    /// A volume group.
    VolumeGroup(VolumeGroup<'a>),
}

impl Reading<'_> {
    /// Returns the name of the object.
    #[must_use]
    pub const fn object(&self) -> &str {
        match self {
            Self::Audit(_) => "audit log",
            Self::BootError(_) => "boot errors",
            Self::Certificate(certificate) => certificate.path,
            Self::Clock(_) => "clock",
            Self::Cni(_) => "CNI agent",
            Self::Disk(disk) => disk.name,
            Self::Drive(drive) => drive.name,
            Self::FileAge(file) => file.path,
            Self::FileSystem(system) => system.mount_point,
            Self::Gpus(_) => "GPUs",
            Self::KubeletHealth(_) | Self::KubeletJournal(_) => "kubelet",
            Self::Layer(layer) => layer.name,
            Self::MemoryController(controller) => controller.name,
            Self::ProtectedFile(file) => file.path,
            Self::ProxyReady(_) => "proxy",
            Self::RuntimeHealth(_) => "container runtime",
            Self::ThinPool(pool) => pool.name,
            Self::TunnelConnections(_) => "tunnel",
            Self::Unit(unit) => unit.name,
            Self::Unreadable(unreadable) => unreadable.object,
            Self::VolumeGroup(group) => group.name,
        }
    }
}

/// A hardware error that firmware recorded before this boot, in the table BERT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootError {
    /// How bad it was.
    pub severity: Severity,
    /// Whether its status is cleared; see [`StatusBlock::cleared`].
    ///
    /// [`StatusBlock::cleared`]: crate::wire::cper::StatusBlock::cleared
    pub cleared: bool,
}

/// A certificate in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certificate<'a> {
    /// The file.
    pub path: &'a str,
    /// Whom it is for.
    pub subject: &'a str,
    /// From when it is valid.
    pub not_before: Timestamp,
    /// Until when it is valid.
    pub not_after: Timestamp,
    /// The wall clock at the reading.
    pub now: Timestamp,
}

/// The kernel's clock, as `adjtimex(2)` returns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// Whether the kernel says that nothing synchronizes it: `TIME_ERROR` or `STA_UNSYNC`.
    pub unsynchronized: bool,
    /// The maximum error, in microseconds; grows by 500 ppm without updates.
    pub max_error_us: i64,
    /// The estimated error, in microseconds.
    pub estimated_error_us: i64,
}

/// A disk, and how it is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk<'a> {
    /// Its name in the kernel log, such as `sda`.
    pub name: &'a str,
    /// How it is attached.
    pub attachment: Attachment,
}

/// How a disk is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Attachment {
    /// It is the node's own, as far as its place says.
    Direct,
    /// Its medium is across a network, behind an iSCSI session.
    Iscsi,
    /// It is one path of several to a medium, which the device-mapper joins.
    MultipathChild,
    /// It is plugged into a USB port.
    Usb,
}

/// The health of an NVMe drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drive<'a> {
    /// The controller, such as `nvme0`.
    pub name: &'a str,
    /// The serial number: the drive is the same wherever it is plugged in.
    pub serial: &'a str,
    /// The critical-warning bits of the SMART / Health log page.
    pub critical_warning: u8,
    /// Composite temperature.
    pub temperature_celsius: i16,
    /// The drive's own warning threshold, if it says one (WCTEMP).
    pub temperature_limit_celsius: Option<i16>,
    /// Estimate of the endurance that is used; may pass 100.
    pub percentage_used: u8,
    /// Spare capacity that is left.
    pub spare_pct: u8,
    /// The spare capacity below which the drive warns.
    pub spare_threshold_pct: u8,
}

/// The age of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileAge<'a> {
    /// The file.
    pub path: &'a str,
    /// How long ago it was written; `None` if it is not there, and its absence is a fault.
    pub age_s: Option<u64>,
    /// How old it may become.
    pub age_max_s: u64,
}

/// Space and inodes of a mounted file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSystem<'a> {
    /// Where it is mounted.
    pub mount_point: &'a str,
    /// Space that is used, and space that is used or free for ordinary users; in bytes.
    pub used_bytes: u64,
    /// See `used_bytes`.
    pub usable_bytes: u64,
    /// Inodes that are used.
    pub inodes_used: u64,
    /// All inodes; 0 where the file system makes them as it needs them.
    pub inodes: u64,
}

/// The GPUs of the node and what activates them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpus {
    /// NVIDIA GPUs on the PCI bus; 0 if there is none, and its absence is a fault.
    pub count: u32,
    /// Whether the activation marker is there.
    pub marker: bool,
    /// Device nodes that CDI specs name for NVIDIA devices; `None` without a spec.
    pub cdi_device_nodes: Option<u32>,
}

/// A sealed layer of the operating system: a dm-verity device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer<'a> {
    /// Its name, such as `root`.
    pub name: &'a str,
    /// The root hash that the kernel enforces, in hexadecimal.
    pub enforced: &'a str,
    /// The root hash that was recorded when the node was provisioned, if there is a record of it.
    pub recorded: Option<&'a str>,
    /// Whether a block has failed its check since the device was set up.
    pub corrupted: bool,
}

/// The error counts of a memory controller since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryController<'a> {
    /// Its name, such as `mc0`.
    pub name: &'a str,
    /// Errors that were corrected.
    pub corrected: u64,
    /// Errors that were not.
    pub uncorrected: u64,
}

/// A protected file that is not as it was at the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtectedFile<'a> {
    /// The file.
    pub path: &'a str,
    /// What happened to it.
    pub change: FileChange,
}

/// What happened to a protected file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileChange {
    /// It was not there.
    Added,
    /// Its content, owner or mode is another one.
    Changed,
    /// It is not there any more.
    Removed,
}

/// A thin pool of a volume group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThinPool<'a> {
    /// Volume group and name, as `GROUP/POOL`.
    pub name: &'a str,
    /// Data that is used, in hundredths of a percent.
    pub data_pct_hundredths: u32,
    /// Metadata that is used, in hundredths of a percent.
    pub metadata_pct_hundredths: u32,
}

/// Something that could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unreadable<'a> {
    /// What.
    pub object: &'a str,
    /// Why, in words.
    pub why: &'a str,
}

/// A volume group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeGroup<'a> {
    /// The name.
    pub name: &'a str,
    /// All of its space.
    pub size_bytes: u64,
    /// Space in no volume.
    pub free_bytes: u64,
}
