use std::collections::BTreeSet;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

use super::*;

#[test]
fn every_row_of_the_corpus_means_what_it_says() {
    let mut wrong = Vec::new();
    for (row, (want, line)) in corpus().enumerate() {
        let got = names(&line);
        if got != want {
            wrong.push(format!("row {}: {line}\n  want {want:?}\n  got  {got:?}", row + 2));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(corpus().count(), 306);
}

#[test]
fn no_rule_is_a_copy_of_a_row() {
    for rule in RULES {
        for (_, line) in corpus() {
            assert_ne!(rule.example, line);
            let copied = rule.fragments.iter().any(|f| f.len() == line.len() && line.len() > 40);
            assert!(!copied, "{line}");
        }
    }
}

#[test]
fn every_example_is_its_own_fault_and_every_fault_has_one() {
    let mut faults = BTreeSet::new();
    for rule in RULES {
        assert!(candidates(rule.example.as_bytes()).contains(rule.fault), "{}", rule.example);
        assert_eq!(classify(&Record::bare(rule.example.as_bytes())).len(), 1, "{}", rule.example);
        faults.insert(rule.fault);
    }
    assert_eq!(faults.len(), PARSERS.len());
}

#[test]
fn wordings_outside_the_corpus_are_read() {
    for (line, want, object) in [
        ("F2FS-fs (dm-5): Remounting filesystem read-only", "ReadonlyFilesystem", "dm-5"),
        ("NILFS (loop3): Remounting filesystem read-only ", "ReadonlyFilesystem", "loop3"),
        (
            "XFS (nvme1n1p2): Filesystem has been shut down due to log error (0x2).",
            "ReadonlyFilesystem",
            "nvme1n1p2",
        ),
        (
            "XFS (dm-3): Corruption of in-memory data (0x8) detected at xfs_defer_finish_noroll+0x3f/0x60 [xfs] (fs/xfs/libxfs/xfs_defer.c:573).  Shutting down filesystem.",
            "ReadonlyFilesystem",
            "dm-3",
        ),
        (
            "Filesystem \"sdb1\": Log I/O Error Detected.  Shutting down filesystem: sdb1",
            "ReadonlyFilesystem",
            "sdb1",
        ),
        ("BTRFS: forced readonly", "ReadonlyFilesystem", ""),
        ("btrfs is forced readonly", "ReadonlyFilesystem", ""),
        ("INFO: task a b:c:5 blocked for more than 1 seconds.", "TaskHung", "a b:c:5"),
        ("INFO: task x:1 blocked in a lock for more than 9 seconds.", "TaskHung", "x:1"),
        (
            "INFO: task blocked for mo:77 blocked for more than 120 seconds.",
            "TaskHung",
            "blocked for mo:77",
        ),
        (
            "task kubelet:12 blocked for more than 300 seconds.",
            "KernelDeadlock,TaskHung",
            "kubelet:12",
        ),
        (
            "INFO: task containerd:9 blocked in I/O wait for more than 122 seconds.",
            "KernelDeadlock,TaskHung",
            "containerd:9",
        ),
        ("device-mapper: verity: 8:3: metadata block 77 is corrupted", "VerityCorruption", "8:3"),
        ("{12}event severity: fatal", "CperHardwareErrorFatal", ""),
        (
            "NVRM: GPU at PCI:0000:3b:00: GPU has fallen off the bus.",
            "GpuFallenOffBus",
            "0000:3b:00",
        ),
        (
            "NVRM: The NVIDIA GPU 0000:5a:00.0\\x0aNVRM: (PCI ID: 10de:2330) installed in this system has fallen\\x0aNVRM: off the bus and is not responding to commands.",
            "GpuFallenOffBus",
            "0000:5a:00",
        ),
        (
            "NVRM: system has fallen off the bus and is not responding to commands.",
            "GpuFallenOffBus",
            "",
        ),
        (
            "NVRM: Xid (PCI:0000:47:00 GPU-I:13): 31, pid=7, name=python3, Ch 00000008",
            "NvidiaXidError",
            "0000:47:00",
        ),
        ("NVRM: Xid (0001:00): 8, Channel 00000002", "NvidiaXidError", "0001:00"),
        (
            "timeout error, dev sdc, sector 8 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2",
            "BlockIOError",
            "sdc",
        ),
        (
            "blk_update_request: recoverable transport error, dev sdd, sector 9",
            "BlockIOError",
            "sdd",
        ),
        ("Buffer I/O error on dev md127p1, logical block 0, async page read", "IOError", "md127p1"),
        (
            "nvme nvme3: I/O tag 9 (9009) opcode 0x1 (I/O Cmd) QID 4 timeout, aborting req_op:WRITE(1) size:8192",
            "NvmeError",
            "nvme3",
        ),
        (
            "nvme nvme3: I/O tag 9 (9009) type 4 opcode 0x2 (Read) QID 4 timeout",
            "NvmeError",
            "nvme3",
        ),
        (
            "nvme0c1n1: Read(0x2) @ LBA 8, 8 blocks, Unrecovered Read Error (sct 0x2 / sc 0x81) DNR ",
            "NvmeError",
            "nvme0c1n1",
        ),
        ("nvme 0000:81:00.0: Failed status: 0x3, reset controller.", "NvmeError", "0000:81:00.0"),
        ("ata15.02: failed command: WRITE FPDMA QUEUED", "AtaError", "ata15.02"),
        ("EXT4-fs error (device dm-0) in ext4_free_blocks:5: Out of memory", "Ext4Error", "dm-0"),
        (
            "EDAC MC0: 32 CE memory read error on CPU_SrcID#0_MC#0_Chan#0_DIMM#0 (channel:0)",
            "MemoryReadError",
            "CPU_SrcID#0_MC#0_Chan#0_DIMM#0",
        ),
        (
            "unregister_netdevice: waiting for veth.1@if2 to become free. Usage count = -3",
            "UnregisterNetDevice",
            "veth.1@if2",
        ),
    ] {
        let found = classify(&Record::bare(line.as_bytes()));
        assert_eq!(names(line).join(","), want, "{line}");
        assert!(found.iter().all(|finding| finding.object.as_str() == object), "{found:?}");
    }
}

#[test]
fn names_and_texts_that_someone_chose_do_not_pose_as_faults() {
    for line in [
        "usb 1-1: Product: EXT4-fs (sda1): Remounting filesystem read-only",
        "usb 1-1: Product: x\\x0aEXT4-fs (sda1): Remounting filesystem read-only",
        "systemd[1]: Remounting filesystem read-only",
        "audit: type=1400 msg=\"XFS (sda1): Shutting down filesystem\"",
        "EXT4-fs (sda1): Remounting filesystem read-only, said nobody",
        "EXT4-fs (sda1): mounted filesystem ro. Remounting filesystem read-only",
        "x: INFO: task kubelet:1 blocked for more than 120 seconds.",
        "INFO: task kubelet:1x blocked for more than 120 seconds.",
        "INFO: task kubelet:1 blocked on a mutex for more than 120 seconds.",
        "INFO: task kubelet:1 blocked for more than many seconds.",
        "device-mapper: verity: 8:3: FEC 0: corrected 8 errors",
        "device-mapper: verity: corruption handling is restart",
        "usb 2-1: device-mapper: verity: 8:3: data block 7 is corrupted",
        "[Hardware Error]: event severity: fatalistic",
        "mce: [Hardware Error]: event severity: fatal",
        "nvidia-nvswitch0: NVRM: Xid (PCI:0000:02:00): 79, GPU has fallen off the bus.",
        "nvme nvme0: I/O 8 QID 0 timeout, completion polled",
        "nvme0: Admin Cmd(0x6) @ LBA 0, 0 blocks, I/O Error (sct 0x0 / sc 0x2)",
        "data1: exception Emask 0x0",
        "hda: I/O (error, dev sda, sector 5",
        "EXT4-fs warning: 3 callbacks suppressed",
    ] {
        assert_eq!(names(line), Vec::<String>::new(), "{line}");
    }
}

#[test]
fn figures_of_a_line_are_kept() {
    use crate::wire::cper::Severity;
    for (line, detail) in [
        (
            "I/O error, dev sda, sector 42 op",
            Detail::BlockRequest { error: BlockError::Io, sector: 42 },
        ),
        (
            "critical target error, dev sda, sector 1",
            Detail::BlockRequest { error: BlockError::Other, sector: 1 },
        ),
        (
            "INFO: task runc:8 blocked for more than 5 seconds.",
            Detail::HungTask { critical: true, pid: 8, seconds: 5 },
        ),
        (
            "{4}[Hardware Error]: event severity: recoverable",
            Detail::Cper { record: Some(4), severity: Severity::Recoverable },
        ),
        ("NVRM: Xid (PCI:0000:dc:00): 45, Ch 1", Detail::Xid { number: 45 }),
        ("device-mapper: verity: 202:3: data block 9 is corrupted", Detail::Verity { block: 9 }),
        ("EDAC MC0: 2 UE memory read error on D1", Detail::Edac { count: 2, uncorrected: true }),
    ] {
        let found = classify(&Record::bare(line.as_bytes()));
        assert_eq!(found.first().map(|finding| finding.detail), Some(detail), "{line}");
    }
}

#[test]
fn a_finding_is_a_sentence_with_the_line_in_it() {
    let found = classify(&Record::bare(b"EXT4-fs (sda1): Remounting filesystem read-only"));
    assert_eq!(
        found[0].to_string(),
        "the file system on sda1 was remounted read-only: EXT4-fs (sda1): Remounting filesystem read-only"
    );
}

#[test]
fn raw_records_are_read() {
    let samples = include_str!("../../../../tests/data/kmsg-raw-samples.txt");
    let records: Vec<_> = samples
        .split("%%\n")
        .map(|record| record.lines().filter(|l| !l.starts_with('#')).collect::<Vec<_>>().join("\n"))
        .filter(|record| !record.is_empty())
        .collect();
    assert_eq!(records.len(), 30);
    for record in &records {
        assert!(Record::parse(record.as_bytes()).is_ok(), "{record}");
    }
}

proptest::proptest! {
    #[test]
    fn classify_never_panics(bytes: Vec<u8>) {
        for finding in classify(&Record::bare(&bytes)) {
            let _ = finding.to_string();
        }
    }

    #[test]
    fn a_line_with_anything_in_front_is_no_fault(front in "[a-z]{1,6}[0-9]{0,2}: ", row in 0..306_usize) {
        let (_, line) = corpus().nth(row).unwrap();
        // What another driver says about itself stays its own, whatever it quotes.
        let conditions = |line: &str| {
            classify(&Record::bare(line.as_bytes())).iter().filter_map(|f| f.detail.condition()).count()
        };
        proptest::prop_assert_eq!(conditions(&format!("{front}{line}")), 0);
    }
}

/// The condition and event names of a line, sorted.
fn names(line: &str) -> Vec<String> {
    let mut names: Vec<String> = classify(&Record::bare(line.as_bytes()))
        .iter()
        .flat_map(|finding| {
            let condition = finding.detail.condition().map(|condition| condition.row().name);
            condition.into_iter().chain(finding.detail.event().map(|event| event.row().name))
        })
        .map(ToString::to_string)
        .collect();
    names.sort();
    names
}

/// Expected names, sorted, and line of each row.
fn corpus() -> impl Iterator<Item = (Vec<String>, String)> {
    include_str!("../../../../tests/data/kmsg-corpus.tsv").lines().skip(1).map(|row| {
        let mut fields = row.split('\t');
        let expected = fields.next().unwrap();
        let mut want: Vec<String> =
            expected.split(',').filter(|name| *name != "NONE").map(ToString::to_string).collect();
        want.sort();
        (want, fields.next().unwrap().to_string())
    })
}
