//! The catalogue: every condition and every event, one row each.
//!
//! Names, triggers and intervals are the seed's ("Condition catalog", "Events only"). To add a
//! condition, add its row here, its judge, its probe, its default configuration and its test.

use core::time::Duration;

use serde::{Deserialize, Serialize};

/// A condition that Fettle may write; also the index of its row in [`CONDITIONS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ConditionType {
    /// The kubelet's /healthz does not answer 200.
    KubeletUnhealthy,
    /// The container runtime's CRI socket does not answer, or says that it is not ready.
    ContainerRuntimeUnhealthy,
    /// A critical unit is failed, or was restarted 3 times since the last check.
    ServiceNotRecovering,
    /// The kubelet logged that it gave up updating its node's status.
    KubeletHeartbeatFailed,
    /// An NVMe drive sets a critical warning other than temperature, or one disk had 5 I/O errors within 10 minutes.
    DisksFailure,
    /// An NVMe drive has used 90 % of its rated endurance, or its spare is below the threshold.
    DiskWearHigh,
    /// An NVMe drive is past its own temperature threshold.
    DiskTemperatureHigh,
    /// A local file system uses 85 % of its space or 90 % of its inodes, or a thin pool is as full.
    DiskUsageHigh,
    /// A unit that operates the platform is not active.
    NodeServiceDown,
    /// Nodes.json is older than 5 minutes.
    NodeInfoStale,
    /// A certificate of the node is about to expire and has not been renewed.
    CertRenewalFailing,
    /// The local proxy's ready gauge is 0 or missing, or its metrics do not answer.
    ProxyNotServing,
    /// The kernel's clock is not synchronized, or its estimated error is above 5 s.
    ClockNotSynchronized,
    /// The local CNI agent's health is not Ok, or its socket does not answer.
    CNIUnhealthy,
    /// The tunnel counts 0 connections.
    TunnelDisconnected,
    /// An NVIDIA GPU is present without an activation marker or a CDI spec.
    GpuActivationFailed,
    /// The API server's audit records carry no client address any more.
    APIServerSourceIPUnavailable,
    /// The kernel made a file system of the node read-only: ext4, XFS or btrfs.
    ReadonlyFilesystem,
    /// The kubelet, containerd, runc, crun or a Kata machine was blocked longer than the kernel's hung task limit.
    KernelDeadlock,
    /// Dm-verity found a corrupt block.
    VerityCorruption,
    /// Firmware reported a hardware error of severity fatal.
    CperHardwareErrorFatal,
    /// The NVIDIA driver reported that a GPU has fallen off the bus.
    GpuFallenOffBus,
    /// A sealed layer's root hash is not the one that was recorded when the node was provisioned.
    SealedOSTampered,
    /// A protected file was added, removed or changed since the baseline of this boot.
    NodeTampered,
    /// The agent itself cannot do its work.
    AgentDegraded,
}

/// A reason for a one-shot event; also the index of its row in [`EVENTS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum EventReason {
    /// An ATA port or drive reported an exception, a failed command or an error.
    AtaError,
    /// The block layer failed a request.
    BlockIOError,
    /// Firmware corrected a hardware error.
    CperHardwareErrorCorrected,
    /// Firmware reported a hardware error that software can recover from.
    CperHardwareErrorRecoverable,
    /// Ext4 found its data structures or its device in error.
    Ext4Error,
    /// Ext4 warned about its data structures or its device.
    Ext4Warning,
    /// A buffered read or write failed.
    IOError,
    /// A memory controller reported a read error.
    MemoryReadError,
    /// The NVIDIA driver reported an Xid.
    NvidiaXidError,
    /// An NVMe controller or command failed or timed out.
    NvmeError,
    /// A task was blocked longer than the kernel's hung task limit.
    TaskHung,
    /// A network device cannot be removed because something still uses it.
    UnregisterNetDevice,
    /// A file system that only workloads use became read-only.
    VolumeFilesystemReadOnly,
    /// A person cleared a held condition.
    ConditionCleared,
    /// A person asked to clear what is no condition.
    ClearRefused,
    /// A reboot was ordered, and begins.
    RebootOrdered,
    /// A reboot that was ordered has happened.
    RebootDone,
    /// A reboot that was ordered is not done.
    RebootRefused,
    /// The agent restarted a unit that did not serve.
    UnitRestarted,
    /// The agent could not restart a unit that does not serve.
    UnitRestartFailed,
    /// The agent would have restarted a unit, were it not for a dry run.
    UnitRestartSkipped,
}

/// What is known of one condition before anything happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConditionRow {
    /// Which condition this is.
    pub condition: ConditionType,
    /// The NodeCondition's type.
    pub name: &'static str,
    /// Where it comes from.
    pub source: Source,
    /// How often it is checked; `None` where something else says when.
    pub interval: Option<Duration>,
    /// Who is meant to act on it.
    pub disposition: Disposition,
    /// On which nodes it exists.
    pub scope: Scope,
    /// The kind of reading that it is judged by.
    pub reading: ReadingKind,
    /// The reason while it is `True`.
    pub problem: &'static str,
    /// The reason while it is `False`.
    pub healthy: &'static str,
    /// How it becomes `False` again.
    pub clear: Clear,
    /// What sets it.
    pub trigger: &'static str,
    /// How that can happen.
    pub cause: &'static str,
    /// What a person should do.
    pub advice: &'static str,
}

/// What is known of one event before anything happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventRow {
    /// Which event this is.
    pub reason: EventReason,
    /// The event's reason as Kubernetes shows it.
    pub name: &'static str,
    /// What happened.
    pub meaning: &'static str,
}

/// Where a condition comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Source {
    /// A check that runs at an interval.
    Check,
    /// Lines of the kernel log.
    Kernel,
    /// The agent's watch over itself.
    Own,
    /// A comparison of what is there with what was recorded.
    Tamper,
}

/// Who is meant to act on a condition (seed, "Dispositions").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Disposition {
    /// A person, soon.
    Alert,
    /// A person, some day: the node itself is well.
    Operability,
    /// The agent, by restarting a unit.
    Repair,
    /// A person who investigates.
    Security,
}

/// On which nodes a condition exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Scope {
    /// Nodes of the control plane.
    ControlPlaneOnly,
    /// Every node.
    EveryNode,
    /// Nodes with an NVIDIA GPU.
    GpuNodes,
    /// Nodes outside the control plane.
    WorkerOnly,
}

/// A kind of reading; a shell has one probe for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReadingKind {
    /// Records of the API server's audit log.
    AuditLog,
    /// What firmware recorded of the boot before; no condition is judged by it alone.
    BootErrors,
    /// Certificates in PEM files.
    Certificates,
    /// The kernel's clock state.
    Clock,
    /// The local CNI agent's health.
    Cni,
    /// The container runtime's answer to a CRI status request.
    Cri,
    /// Health pages and inventory of NVMe drives, and counted I/O errors.
    Disks,
    /// Ages of files.
    FileAges,
    /// Space and inodes of file systems, volume groups and thin pools.
    FileSystems,
    /// Markers and specs of activated GPUs.
    GpuFiles,
    /// Records of the kernel log.
    KernelLog,
    /// The kubelet's answer on `/healthz`.
    KubeletHealthz,
    /// The kubelet's journal.
    KubeletJournal,
    /// Error counts of memory controllers; no condition is judged by them.
    MemoryErrors,
    /// The agent's own reader and checks.
    Own,
    /// Hashes of protected files.
    ProtectedFiles,
    /// The local proxy's metrics.
    Proxy,
    /// Root hashes of the sealed layers.
    SealedLayers,
    /// The tunnel's metrics.
    Tunnel,
    /// States of systemd units.
    Units,
}

/// How a condition that is `True` becomes `False` again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Clear {
    /// Only a person clears it; not even a boot does.
    ByHand,
    /// A person or the next boot clears it.
    Held,
    /// The next good run of its check clears it.
    NextGoodRun,
    /// As held, and cleared too once a reading proves that the fault is gone.
    Proof,
}

impl ReadingKind {
    /// Every kind, in the order of the enum.
    pub const ALL: [Self; Self::COUNT] = [
        Self::AuditLog,
        Self::BootErrors,
        Self::Certificates,
        Self::Clock,
        Self::Cni,
        Self::Cri,
        Self::Disks,
        Self::FileAges,
        Self::FileSystems,
        Self::GpuFiles,
        Self::KernelLog,
        Self::KubeletHealthz,
        Self::KubeletJournal,
        Self::MemoryErrors,
        Self::Own,
        Self::ProtectedFiles,
        Self::Proxy,
        Self::SealedLayers,
        Self::Tunnel,
        Self::Units,
    ];

    /// How many kinds there are.
    pub const COUNT: usize = 20;

    /// Returns the index of the kind in [`ReadingKind::ALL`].
    #[must_use]
    #[expect(clippy::as_conversions, reason = "an enum without data is its discriminant")]
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl ConditionType {
    /// How many conditions there are.
    pub const COUNT: usize = 25;

    /// Returns the condition's row.
    #[must_use]
    pub fn row(self) -> &'static ConditionRow {
        // Every condition has a row, as a test asserts; the first one stands in for none.
        CONDITIONS.get(self.index()).unwrap_or(FIRST_CONDITION)
    }

    /// Returns the index of the condition's row.
    #[must_use]
    #[expect(clippy::as_conversions, reason = "an enum without data is its discriminant")]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Returns how a person may have it cleared besides by hand; none where there is no choice.
    #[must_use]
    pub fn clear_choices(self) -> &'static [Clear] {
        if matches!(self, Self::KernelDeadlock | Self::ReadonlyFilesystem) {
            &[Clear::Held, Clear::Proof]
        } else if self.row().clear == Clear::Held {
            &[Clear::Held]
        } else {
            &[]
        }
    }

    /// Returns the condition whose type is `name`.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        CONDITIONS.iter().find(|row| row.name == name).map(|row| row.condition)
    }
}

impl EventReason {
    /// How many reasons there are.
    pub const COUNT: usize = 21;

    /// Returns the reason's row.
    #[must_use]
    pub fn row(self) -> &'static EventRow {
        EVENTS.get(self.index()).unwrap_or(FIRST_EVENT)
    }

    /// Returns the index of the reason's row.
    #[must_use]
    #[expect(clippy::as_conversions, reason = "an enum without data is its discriminant")]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// A task name that makes a hung task a deadlock of the node.
///
/// Compared with the kernel's `comm`, which is cut at 15 bytes: `qemu-system-x86_64` is printed
/// as `qemu-system-x86`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskName {
    /// The whole name.
    Is(&'static str),
    /// How the name begins.
    Begins(&'static str),
}

impl TaskName {
    /// Returns whether `comm` is such a task.
    #[must_use]
    pub fn matches(self, comm: &[u8]) -> bool {
        match self {
            Self::Is(name) => comm == name.as_bytes(),
            Self::Begins(name) => comm.starts_with(name.as_bytes()),
        }
    }
}

/// The tasks without which a node runs no pods (seed, `KernelDeadlock`; decisions, "which process").
pub static CRITICAL_TASKS: [TaskName; 9] = [
    TaskName::Is("kubelet"),
    TaskName::Is("containerd"),
    TaskName::Begins("containerd-shim"),
    TaskName::Is("runc"),
    TaskName::Begins("runc:["),
    TaskName::Is("crun"),
    TaskName::Is("qemu"),
    TaskName::Begins("qemu-system-"),
    TaskName::Is("virtiofsd"),
];

/// Every condition, in the order of [`ConditionType`].
pub static CONDITIONS: [ConditionRow; ConditionType::COUNT] = [
    ConditionRow {
        condition: ConditionType::KubeletUnhealthy,
        name: "KubeletUnhealthy",
        source: Source::Check,
        interval: Some(Duration::from_secs(10)),
        disposition: Disposition::Repair,
        scope: Scope::EveryNode,
        reading: ReadingKind::KubeletHealthz,
        problem: "KubeletProbeFailed",
        healthy: "KubeletIsHealthy",
        clear: Clear::NextGoodRun,
        trigger: "the kubelet's /healthz does not answer 200",
        cause: "the kubelet hangs, has no file descriptors left, or cannot use its configuration or certificates",
        advice: "read the kubelet's journal; Fettle restarts kubelet.service",
    },
    ConditionRow {
        condition: ConditionType::ContainerRuntimeUnhealthy,
        name: "ContainerRuntimeUnhealthy",
        source: Source::Check,
        interval: Some(Duration::from_secs(10)),
        disposition: Disposition::Repair,
        scope: Scope::EveryNode,
        reading: ReadingKind::Cri,
        problem: "RuntimeProbeFailed",
        healthy: "RuntimeIsHealthy",
        clear: Clear::NextGoodRun,
        trigger: "the container runtime's CRI socket does not answer, or says that it is not ready",
        cause: "the runtime is deadlocked, its disk is full, or its state is corrupt",
        advice: "read the runtime's journal; Fettle restarts containerd.service",
    },
    ConditionRow {
        condition: ConditionType::ServiceNotRecovering,
        name: "ServiceNotRecovering",
        source: Source::Check,
        interval: Some(minutes(1)),
        disposition: Disposition::Alert,
        scope: Scope::EveryNode,
        reading: ReadingKind::Units,
        problem: "UnitNotRecovering",
        healthy: "UnitsRecover",
        clear: Clear::NextGoodRun,
        trigger: "a critical unit is failed, or was restarted 3 times since the last check",
        cause: "restarting the unit does not mend what is wrong with it",
        advice: "look for the cause in the unit's journal: configuration, disk, certificates",
    },
    ConditionRow {
        condition: ConditionType::KubeletHeartbeatFailed,
        name: "KubeletHeartbeatFailed",
        source: Source::Check,
        interval: Some(minutes(5)),
        disposition: Disposition::Alert,
        scope: Scope::EveryNode,
        reading: ReadingKind::KubeletJournal,
        problem: "KubeletGaveUpHeartbeat",
        healthy: "KubeletHeartbeats",
        clear: Clear::NextGoodRun,
        trigger: "the kubelet logged that it gave up updating its node's status",
        cause: "the kubelet lost its connection to the API server",
        advice: "check the way from this node to the API server, and the kubelet's client certificate",
    },
    ConditionRow {
        condition: ConditionType::DisksFailure,
        name: "DisksFailure",
        source: Source::Check,
        interval: Some(minutes(5)),
        disposition: Disposition::Alert,
        scope: Scope::EveryNode,
        reading: ReadingKind::Disks,
        problem: "DiskIsFailing",
        healthy: "DisksAreHealthy",
        clear: Clear::NextGoodRun,
        trigger: "an NVMe drive sets a critical warning other than temperature, or one disk had 5 I/O errors within 10 minutes",
        cause: "a physical disk wears out or fails",
        advice: "replace the disk that the message names",
    },
    ConditionRow {
        condition: ConditionType::DiskWearHigh,
        name: "DiskWearHigh",
        source: Source::Check,
        interval: Some(minutes(30)),
        disposition: Disposition::Operability,
        scope: Scope::EveryNode,
        reading: ReadingKind::Disks,
        problem: "DiskWearIsHigh",
        healthy: "DiskWearIsLow",
        clear: Clear::NextGoodRun,
        trigger: "an NVMe drive has used 90 % of its rated endurance, or its spare is below the threshold",
        cause: "the drive comes to the end of its life",
        advice: "plan to replace the drive that the message names",
    },
    ConditionRow {
        condition: ConditionType::DiskTemperatureHigh,
        name: "DiskTemperatureHigh",
        source: Source::Check,
        interval: Some(minutes(5)),
        disposition: Disposition::Operability,
        scope: Scope::EveryNode,
        reading: ReadingKind::Disks,
        problem: "DiskIsTooHot",
        healthy: "DisksAreCool",
        clear: Clear::NextGoodRun,
        trigger: "an NVMe drive is past its own temperature threshold",
        cause: "cooling or airflow is bad",
        advice: "check fans, airflow and room temperature",
    },
    ConditionRow {
        condition: ConditionType::DiskUsageHigh,
        name: "DiskUsageHigh",
        source: Source::Check,
        interval: Some(minutes(2)),
        disposition: Disposition::Operability,
        scope: Scope::EveryNode,
        reading: ReadingKind::FileSystems,
        problem: "DiskIsFull",
        healthy: "DiskHasSpace",
        clear: Clear::NextGoodRun,
        trigger: "a local file system uses 85 % of its space or 90 % of its inodes, or a thin pool is as full",
        cause: "logs, images or data have filled a file system",
        advice: "free space on the mount point that the message names, or grow it",
    },
    ConditionRow {
        condition: ConditionType::NodeServiceDown,
        name: "NodeServiceDown",
        source: Source::Check,
        interval: Some(Duration::from_secs(30)),
        disposition: Disposition::Operability,
        scope: Scope::EveryNode,
        reading: ReadingKind::Units,
        problem: "UnitNotActive",
        healthy: "UnitsAreActive",
        clear: Clear::NextGoodRun,
        trigger: "a unit that operates the platform is not active",
        cause: "the tunnel agent, its server or the source address helper ended and did not come back",
        advice: "read the journal of the unit that the message names",
    },
    ConditionRow {
        condition: ConditionType::NodeInfoStale,
        name: "NodeInfoStale",
        source: Source::Check,
        interval: Some(minutes(1)),
        disposition: Disposition::Alert,
        scope: Scope::EveryNode,
        reading: ReadingKind::FileAges,
        problem: "NodeInfoIsStale",
        healthy: "NodeInfoIsFresh",
        clear: Clear::NextGoodRun,
        trigger: "nodes.json is older than 5 minutes",
        cause: "the loop that syncs node information is stuck, often behind the CNI",
        advice: "check the CNI on this node, then the process that writes the file",
    },
    ConditionRow {
        condition: ConditionType::CertRenewalFailing,
        name: "CertRenewalFailing",
        source: Source::Check,
        interval: Some(minutes(60)),
        disposition: Disposition::Alert,
        scope: Scope::EveryNode,
        reading: ReadingKind::Certificates,
        problem: "CertificateNotRenewed",
        healthy: "CertificatesAreValid",
        clear: Clear::NextGoodRun,
        trigger: "a certificate of the node is about to expire and has not been renewed",
        cause: "the automatic renewal of the kubelet or of the tunnel is broken",
        advice: "renew the certificate that the message names, then mend what should have",
    },
    ConditionRow {
        condition: ConditionType::ProxyNotServing,
        name: "ProxyNotServing",
        source: Source::Check,
        interval: Some(Duration::from_secs(30)),
        disposition: Disposition::Operability,
        scope: Scope::WorkerOnly,
        reading: ReadingKind::Proxy,
        problem: "ProxyNotReady",
        healthy: "ProxyIsServing",
        clear: Clear::NextGoodRun,
        trigger: "the local proxy's ready gauge is 0 or missing, or its metrics do not answer",
        cause: "the proxy is down or has no valid target",
        advice: "read the proxy's journal; check that the API servers are reachable",
    },
    ConditionRow {
        condition: ConditionType::ClockNotSynchronized,
        name: "ClockNotSynchronized",
        source: Source::Check,
        interval: Some(minutes(1)),
        disposition: Disposition::Alert,
        scope: Scope::EveryNode,
        reading: ReadingKind::Clock,
        problem: "ClockIsNotSynchronized",
        healthy: "ClockIsSynchronized",
        clear: Clear::NextGoodRun,
        trigger: "the kernel's clock is not synchronized, or its estimated error is above 5 s",
        cause: "time synchronization is broken and the clock drifts",
        advice: "check the time daemon and its servers",
    },
    ConditionRow {
        condition: ConditionType::CNIUnhealthy,
        name: "CNIUnhealthy",
        source: Source::Check,
        interval: Some(Duration::from_secs(30)),
        disposition: Disposition::Alert,
        scope: Scope::EveryNode,
        reading: ReadingKind::Cni,
        problem: "CniNotOk",
        healthy: "CniIsOk",
        clear: Clear::NextGoodRun,
        trigger: "the local CNI agent's health is not Ok, or its socket does not answer",
        cause: "the CNI agent ended or is degraded",
        advice: "read the log of the CNI agent's pod on this node",
    },
    ConditionRow {
        condition: ConditionType::TunnelDisconnected,
        name: "TunnelDisconnected",
        source: Source::Check,
        interval: Some(Duration::from_secs(30)),
        disposition: Disposition::Operability,
        scope: Scope::EveryNode,
        reading: ReadingKind::Tunnel,
        problem: "TunnelHasNoConnection",
        healthy: "TunnelIsConnected",
        clear: Clear::NextGoodRun,
        trigger: "the tunnel counts 0 connections",
        cause: "the reverse tunnel to the control plane broke off",
        advice: "check the tunnel's journal and the way to the control plane",
    },
    ConditionRow {
        condition: ConditionType::GpuActivationFailed,
        name: "GpuActivationFailed",
        source: Source::Check,
        interval: Some(minutes(1)),
        disposition: Disposition::Operability,
        scope: Scope::GpuNodes,
        reading: ReadingKind::GpuFiles,
        problem: "GpuNotActivated",
        healthy: "GpusAreActivated",
        clear: Clear::NextGoodRun,
        trigger: "an NVIDIA GPU is present without an activation marker or a CDI spec",
        cause: "the activation of the GPU did not finish, so containers cannot use it",
        advice: "run the activation again and read what it prints",
    },
    ConditionRow {
        condition: ConditionType::APIServerSourceIPUnavailable,
        name: "APIServerSourceIPUnavailable",
        source: Source::Check,
        interval: Some(minutes(1)),
        disposition: Disposition::Alert,
        scope: Scope::ControlPlaneOnly,
        reading: ReadingKind::AuditLog,
        problem: "SourceIPMissing",
        healthy: "SourceIPsArePresent",
        clear: Clear::NextGoodRun,
        trigger: "the API server's audit records carry no client address any more",
        cause: "the path that attributes source addresses is broken",
        advice: "check the proxy before the API server",
    },
    ConditionRow {
        condition: ConditionType::ReadonlyFilesystem,
        name: "ReadonlyFilesystem",
        source: Source::Kernel,
        interval: None,
        disposition: Disposition::Alert,
        scope: Scope::EveryNode,
        reading: ReadingKind::KernelLog,
        problem: "FilesystemIsReadOnly",
        healthy: "FilesystemIsNotReadOnly",
        clear: Clear::Held,
        trigger: "the kernel made a file system of the node read-only: ext4, XFS or btrfs",
        cause: "the kernel met an I/O or file system error and protects the data; writes fail",
        advice: "check the disk below, run fsck, and mount it again",
    },
    ConditionRow {
        condition: ConditionType::KernelDeadlock,
        name: "KernelDeadlock",
        source: Source::Kernel,
        interval: None,
        disposition: Disposition::Alert,
        scope: Scope::EveryNode,
        reading: ReadingKind::KernelLog,
        problem: "CriticalTaskHung",
        healthy: "KernelHasNoDeadlock",
        clear: Clear::Held,
        trigger: "the kubelet, containerd, runc, crun or a Kata machine was blocked longer than the kernel's hung task limit",
        cause: "the process waits for stuck I/O, or the kernel is deadlocked",
        advice: "look at the task's stack in the kernel log; a reboot is the usual way out",
    },
    ConditionRow {
        condition: ConditionType::VerityCorruption,
        name: "VerityCorruption",
        source: Source::Kernel,
        interval: None,
        disposition: Disposition::Security,
        scope: Scope::EveryNode,
        reading: ReadingKind::KernelLog,
        problem: "VerityBlockIsCorrupt",
        healthy: "VerityHasNoCorruption",
        clear: Clear::Held,
        trigger: "dm-verity found a corrupt block",
        cause: "a block of the sealed system was damaged or changed",
        advice: "treat the disk as broken or the node as tampered with; provision it anew",
    },
    ConditionRow {
        condition: ConditionType::CperHardwareErrorFatal,
        name: "CperHardwareErrorFatal",
        source: Source::Kernel,
        interval: None,
        disposition: Disposition::Alert,
        scope: Scope::EveryNode,
        reading: ReadingKind::KernelLog,
        problem: "CperHardwareErrorFatal",
        healthy: "CperHardwareHasNoFatalError",
        clear: Clear::Held,
        trigger: "firmware reported a hardware error of severity fatal",
        cause: "a fatal fault of processor, memory or PCIe",
        advice: "read the event log of the machine's management controller",
    },
    ConditionRow {
        condition: ConditionType::GpuFallenOffBus,
        name: "GpuFallenOffBus",
        source: Source::Kernel,
        interval: None,
        disposition: Disposition::Alert,
        scope: Scope::GpuNodes,
        reading: ReadingKind::KernelLog,
        problem: "GpuHasFallenOffBus",
        healthy: "GpusAreOnBus",
        clear: Clear::Held,
        trigger: "the NVIDIA driver reported that a GPU has fallen off the bus",
        cause: "power, heat or a fault took the GPU off the PCI bus",
        advice: "drain the node and power-cycle the machine; then check seating, power and cooling",
    },
    ConditionRow {
        condition: ConditionType::SealedOSTampered,
        name: "SealedOSTampered",
        source: Source::Tamper,
        interval: Some(minutes(5)),
        disposition: Disposition::Security,
        scope: Scope::EveryNode,
        reading: ReadingKind::SealedLayers,
        problem: "SealedLayerChanged",
        healthy: "SealedLayersMatch",
        clear: Clear::ByHand,
        trigger: "a sealed layer's root hash is not the one that was recorded when the node was provisioned",
        cause: "the layer was swapped for another image, or the record was changed",
        advice: "isolate the node and compare the layer with the release",
    },
    ConditionRow {
        condition: ConditionType::NodeTampered,
        name: "NodeTampered",
        source: Source::Tamper,
        interval: Some(minutes(5)),
        disposition: Disposition::Security,
        scope: Scope::EveryNode,
        reading: ReadingKind::ProtectedFiles,
        problem: "ProtectedFileChanged",
        healthy: "ProtectedFilesUnchanged",
        clear: Clear::ByHand,
        trigger: "a protected file was added, removed or changed since the baseline of this boot",
        cause: "a rogue pod, a bad roll-out, an edit by hand, or a rootkit",
        advice: "find out who changed the file that the message names",
    },
    ConditionRow {
        condition: ConditionType::AgentDegraded,
        name: "AgentDegraded",
        source: Source::Own,
        interval: None,
        disposition: Disposition::Operability,
        scope: Scope::EveryNode,
        reading: ReadingKind::Own,
        problem: "AgentIsDegraded",
        healthy: "AgentWorks",
        clear: Clear::NextGoodRun,
        trigger: "the kernel log cannot be read, or a check has had no success for 5 intervals",
        cause: "the agent lacks rights or devices, or something that it reads hangs",
        advice: "read the agent's own log; give it what it says that it lacks",
    },
];

/// Every event, in the order of [`EventReason`].
pub static EVENTS: [EventRow; EventReason::COUNT] = [
    EventRow {
        reason: EventReason::AtaError,
        name: "AtaError",
        meaning: "an ATA port or drive reported an exception, a failed command or an error",
    },
    EventRow {
        reason: EventReason::BlockIOError,
        name: "BlockIOError",
        meaning: "the block layer failed a request",
    },
    EventRow {
        reason: EventReason::CperHardwareErrorCorrected,
        name: "CperHardwareErrorCorrected",
        meaning: "firmware corrected a hardware error",
    },
    EventRow {
        reason: EventReason::CperHardwareErrorRecoverable,
        name: "CperHardwareErrorRecoverable",
        meaning: "firmware reported a hardware error that software can recover from",
    },
    EventRow {
        reason: EventReason::Ext4Error,
        name: "Ext4Error",
        meaning: "ext4 found its data structures or its device in error",
    },
    EventRow {
        reason: EventReason::Ext4Warning,
        name: "Ext4Warning",
        meaning: "ext4 warned about its data structures or its device",
    },
    EventRow {
        reason: EventReason::IOError,
        name: "IOError",
        meaning: "a buffered read or write failed",
    },
    EventRow {
        reason: EventReason::MemoryReadError,
        name: "MemoryReadError",
        meaning: "a memory controller reported a read error",
    },
    EventRow {
        reason: EventReason::NvidiaXidError,
        name: "NvidiaXidError",
        meaning: "the NVIDIA driver reported an Xid",
    },
    EventRow {
        reason: EventReason::NvmeError,
        name: "NvmeError",
        meaning: "an NVMe controller or command failed or timed out",
    },
    EventRow {
        reason: EventReason::TaskHung,
        name: "TaskHung",
        meaning: "a task was blocked longer than the kernel's hung task limit",
    },
    EventRow {
        reason: EventReason::UnregisterNetDevice,
        name: "UnregisterNetDevice",
        meaning: "a network device cannot be removed because something still uses it",
    },
    EventRow {
        reason: EventReason::VolumeFilesystemReadOnly,
        name: "VolumeFilesystemReadOnly",
        meaning: "a file system that only workloads use became read-only",
    },
    EventRow {
        reason: EventReason::ConditionCleared,
        name: "ConditionCleared",
        meaning: "a person cleared a held condition",
    },
    EventRow {
        reason: EventReason::ClearRefused,
        name: "ClearRefused",
        meaning: "a person asked to clear what is no condition",
    },
    EventRow {
        reason: EventReason::RebootOrdered,
        name: "RebootOrdered",
        meaning: "a reboot was ordered by annotation, and begins",
    },
    EventRow {
        reason: EventReason::RebootDone,
        name: "RebootDone",
        meaning: "a reboot that was ordered has happened: the boot id is another one",
    },
    EventRow {
        reason: EventReason::RebootRefused,
        name: "RebootRefused",
        meaning: "a reboot that was ordered is not done",
    },
    EventRow {
        reason: EventReason::UnitRestarted,
        name: "UnitRestarted",
        meaning: "the agent restarted a unit that did not serve",
    },
    EventRow {
        reason: EventReason::UnitRestartFailed,
        name: "UnitRestartFailed",
        meaning: "the agent could not restart a unit that does not serve",
    },
    EventRow {
        reason: EventReason::UnitRestartSkipped,
        name: "UnitRestartSkipped",
        meaning: "the agent would have restarted a unit, were it not for repair.dryRun",
    },
];

static FIRST_CONDITION: &ConditionRow = {
    let [first, ..] = &CONDITIONS;
    first
};

static FIRST_EVENT: &EventRow = {
    let [first, ..] = &EVENTS;
    first
};

const fn minutes(count: u64) -> Duration {
    Duration::from_secs(count.saturating_mul(60))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn rows_stand_in_the_order_of_their_enums() {
        for (index, row) in CONDITIONS.iter().enumerate() {
            assert_eq!(row.condition.index(), index, "{}", row.name);
            assert_eq!(std::format!("{:?}", row.condition), row.name);
            assert_eq!(ConditionType::by_name(row.name), Some(row.condition));
        }
        for (index, row) in EVENTS.iter().enumerate() {
            assert_eq!(row.reason.index(), index, "{}", row.name);
            assert_eq!(std::format!("{:?}", row.reason), row.name);
        }
    }

    #[test]
    fn kinds_stand_in_the_order_of_their_enum() {
        for (index, kind) in ReadingKind::ALL.into_iter().enumerate() {
            assert_eq!(kind.index(), index, "{kind:?}");
        }
        for row in &CONDITIONS {
            assert!(ReadingKind::ALL.contains(&row.reading), "{:?} is in no list", row.reading);
        }
    }

    #[test]
    fn only_what_a_reading_can_prove_is_cleared_by_proof() {
        for row in &CONDITIONS {
            let want: &[Clear] = match (row.clear, row.name) {
                (Clear::Held, "KernelDeadlock" | "ReadonlyFilesystem") => {
                    &[Clear::Held, Clear::Proof]
                }
                (Clear::Held, _) => &[Clear::Held],
                (Clear::ByHand | Clear::NextGoodRun | Clear::Proof, _) => &[],
            };
            assert_eq!(row.condition.clear_choices(), want, "{}", row.name);
        }
    }

    #[test]
    fn counts_are_the_seeds() {
        let of = |source| CONDITIONS.iter().filter(|row| row.source == source).count();
        assert_eq!((of(Source::Check), of(Source::Kernel), of(Source::Tamper)), (17, 5, 2));
        assert_eq!(of(Source::Own), 1);
        let own = [
            EventReason::VolumeFilesystemReadOnly,
            EventReason::ConditionCleared,
            EventReason::ClearRefused,
            EventReason::RebootOrdered,
            EventReason::RebootDone,
            EventReason::RebootRefused,
            EventReason::UnitRestarted,
            EventReason::UnitRestartFailed,
            EventReason::UnitRestartSkipped,
        ];
        assert_eq!(EVENTS.iter().filter(|row| !own.contains(&row.reason)).count(), 12);
    }

    #[test]
    fn dispositions_are_the_seeds() {
        let of = |disposition| CONDITIONS.iter().filter(|r| r.disposition == disposition).count();
        assert_eq!(of(Disposition::Repair), 2);
        assert_eq!(of(Disposition::Alert), 12);
        assert_eq!(of(Disposition::Operability), 8); // the seed's seven, and the agent's own
        assert_eq!(of(Disposition::Security), 3);
    }

    #[test]
    fn reasons_are_words_of_their_own() {
        let reasons: BTreeSet<_> = CONDITIONS.iter().flat_map(|r| [r.problem, r.healthy]).collect();
        assert_eq!(reasons.len(), 2 * CONDITIONS.len());
        for reason in reasons {
            assert!(reason.chars().all(|c| c.is_ascii_alphanumeric()), "{reason}");
        }
    }

    #[test]
    fn critical_tasks_are_told_from_their_neighbours() {
        for (comm, critical) in [
            ("kubelet", true),
            ("kubelet-foo", false),
            ("containerd", true),
            ("containerd-shim", true),
            ("containerd-stre", false),
            ("runc", true),
            ("runc:[2:INIT]", true),
            ("runcible", false),
            ("crun", true),
            ("qemu-system-aar", true),
            ("qemu-ga", false),
            ("qemu-nbd", false),
            ("virtiofsd", true),
            ("dockerd", false),
        ] {
            let got = CRITICAL_TASKS.iter().any(|name| name.matches(comm.as_bytes()));
            assert_eq!(got, critical, "{comm}");
        }
    }
}
