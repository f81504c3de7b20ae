//! The rule table: which fragments make a kernel record worth a closer look.
//!
//! `build.rs` reads this file too, so it depends on nothing.

/// A kind of fault that the kernel reports in its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// An exception, failed command or error of an ATA port or drive.
    Ata,
    /// A failed request of the block layer.
    BlockRequest,
    /// btrfs forced a file system read-only.
    BtrfsForcedReadonly,
    /// A failed buffered read or write.
    BufferIo,
    /// The severity line of a firmware error record.
    CperSeverity,
    /// A read error that a memory controller reported.
    EdacRead,
    /// ext4 found an error.
    Ext4Error,
    /// ext4 warned.
    Ext4Warning,
    /// A GPU fell off the bus.
    GpuOffBus,
    /// A task was blocked for too long.
    HungTask,
    /// A network device that cannot be removed.
    NetDeviceInUse,
    /// An NVMe controller or command that failed or timed out.
    Nvme,
    /// A file system was remounted read-only.
    ReadonlyRemount,
    /// A block that failed its dm-verity check.
    VerityBlock,
    /// XFS shut a file system down.
    XfsShutdown,
    /// An Xid of the NVIDIA driver.
    Xid,
}

/// One wording of a fault.
#[derive(Debug)]
pub struct Rule {
    /// What a match may mean; the fault's own parser confirms it.
    pub fault: Fault,
    /// Literals that must all stand in the record, in any order.
    pub fragments: &'static [&'static str],
    /// A line as a kernel prints it.
    pub example: &'static str,
}

/// Every wording.
pub const RULES: &[Rule] = &[
    Rule {
        fault: Fault::Ata,
        fragments: &["ata", ": exception Emask "],
        example: "ata7.00: exception Emask 0x0 SAct 0x3 SErr 0x0 action 0x6 frozen",
    },
    Rule {
        fault: Fault::Ata,
        fragments: &["ata", ": failed command: "],
        example: "ata7.00: failed command: WRITE DMA EXT",
    },
    Rule {
        fault: Fault::Ata,
        fragments: &["ata", ": error: { "],
        example: "ata7.00: error: { ICRC ABRT }",
    },
    Rule {
        fault: Fault::BlockRequest,
        fragments: &[" error, dev ", ", sector "],
        example: "I/O error, dev sdq, sector 88 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2",
    },
    Rule {
        fault: Fault::BtrfsForcedReadonly,
        fragments: &["forced readonly"],
        example: "BTRFS info (device sdq1 state EA): forced readonly",
    },
    Rule {
        fault: Fault::BufferIo,
        fragments: &["Buffer I/O error on dev", "logical block "],
        example: "Buffer I/O error on dev sdq1, logical block 11, async page read",
    },
    Rule {
        fault: Fault::CperSeverity,
        fragments: &["event severity: "],
        example: "{9}[Hardware Error]: event severity: fatal",
    },
    Rule {
        fault: Fault::EdacRead,
        fragments: &["EDAC MC", " memory read error on "],
        example: "EDAC MC2: 3 CE memory read error on CPU_SrcID#1_MC#0_Chan#1_DIMM#0 (channel:1)",
    },
    Rule {
        fault: Fault::Ext4Error,
        fragments: &["EXT4-fs error (device "],
        example: "EXT4-fs error (device sdq1): ext4_lookup:1855: inode #2: comm ls: bad inode",
    },
    Rule {
        fault: Fault::Ext4Warning,
        fragments: &["EXT4-fs warning (device "],
        example: "EXT4-fs warning (device sdq1): ext4_end_bio:343: I/O error 10 writing to inode 13",
    },
    Rule {
        fault: Fault::GpuOffBus,
        fragments: &["NVRM: ", "fallen"],
        example: "NVRM: GPU 0000:0a:00.0: GPU has fallen off the bus.",
    },
    Rule {
        fault: Fault::HungTask,
        fragments: &["task ", " blocked", " for more than "],
        example: "INFO: task kubelet:4242 blocked for more than 120 seconds.",
    },
    Rule {
        fault: Fault::NetDeviceInUse,
        fragments: &["unregister_netdevice: waiting for "],
        example: "unregister_netdevice: waiting for eth7 to become free. Usage count = 3",
    },
    Rule {
        fault: Fault::Nvme,
        fragments: &["nvme", ": controller is down"],
        example: "nvme nvme7: controller is down; will reset: CSTS=0x3, PCI_STATUS=0x10",
    },
    Rule {
        fault: Fault::Nvme,
        fragments: &["nvme", "after probe failure"],
        example: "nvme nvme7: Removing after probe failure status: -5",
    },
    Rule {
        fault: Fault::Nvme,
        fragments: &["nvme", "after reset failure"],
        example: "nvme nvme7: Disabling device after reset failure: -5",
    },
    Rule {
        fault: Fault::Nvme,
        fragments: &["nvme", " state error detected"],
        example: "nvme nvme7: frozen state error detected, reset controller",
    },
    Rule {
        fault: Fault::Nvme,
        fragments: &["nvme", " QID ", " timeout"],
        example: "nvme nvme7: I/O tag 3 (0003) opcode 0x1 (I/O Cmd) QID 2 timeout, aborting",
    },
    Rule {
        fault: Fault::Nvme,
        fragments: &["nvme", ": queue ", ": timeout "],
        example: "nvme nvme7: queue 3: timeout request 0x1f type 4",
    },
    Rule {
        fault: Fault::Nvme,
        fragments: &["nvme", "Device not ready; aborting "],
        example: "nvme nvme7: Device not ready; aborting initialisation, CSTS=0x0",
    },
    Rule {
        fault: Fault::Nvme,
        fragments: &["nvme", " @ LBA ", "(sct 0x"],
        example: "nvme7n1: I/O Cmd(0x2) @ LBA 88, 8 blocks, I/O Error (sct 0x3 / sc 0x71) ",
    },
    Rule {
        fault: Fault::Nvme,
        fragments: &["nvme", "no available path - failing I/O"],
        example: "block nvme7n1: no available path - failing I/O",
    },
    Rule {
        fault: Fault::Nvme,
        fragments: &["nvme", ": Failed status: "],
        example: "nvme 0000:07:00.0: Failed status: 0xffffffff, reset controller.",
    },
    Rule {
        fault: Fault::ReadonlyRemount,
        fragments: &["Remounting filesystem read-only"],
        example: "EXT4-fs (sdq1): Remounting filesystem read-only",
    },
    Rule {
        fault: Fault::VerityBlock,
        fragments: &["device-mapper: verity: ", "corrupt"],
        example: "device-mapper: verity: 259:7: data block 77 is corrupted",
    },
    Rule {
        fault: Fault::XfsShutdown,
        fragments: &["Shutting down filesystem"],
        example: "XFS (sdq1): Corruption of in-memory data detected.  Shutting down filesystem",
    },
    Rule {
        fault: Fault::XfsShutdown,
        fragments: &["XFS (", "ilesystem has been shut down due to "],
        example: "XFS (sdq1): Filesystem has been shut down due to log error (0x2).",
    },
    Rule {
        fault: Fault::Xid,
        fragments: &["NVRM: ", "Xid ("],
        example: "NVRM: Xid (PCI:0000:0a:00): 48, pid=4242, name=job, An uncorrectable double bit error",
    },
];
