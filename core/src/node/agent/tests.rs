//! The agent, by the field cases of the kernel log; each test names its case.

#![allow(clippy::disallowed_methods, reason = "tests may panic")]

use core::time::Duration;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

use super::*;
use crate::node::condition::Status;
use crate::node::reading::Unit;

mod repairs;

#[test]
fn k01_a_lost_part_of_the_log_is_counted_and_the_rest_is_read() {
    let mut node = Node::new();
    node.record("6,100,1000000,-;eth0: renamed from veth1");
    node.step(Input::LogOverrun);
    let said = node.record("3,5100,2000000,-;EXT4-fs (sda1): Remounting filesystem read-only");
    assert_eq!(said, ["lost 4999", "ReadonlyFilesystem=True"]);
    assert_eq!((node.agent.log().lost(), node.agent.counts().overruns), (4999, 1));
}

#[test]
fn k02_a_log_that_cannot_be_read_is_never_healthy() {
    let mut node = Node::new();
    node.record("6,10,500000,-;usb 1-1: new device");
    assert_eq!(node.step(Input::LogCaughtUp).len(), KERNEL_CONDITIONS + 1);
    let said = node.step(Input::LogDown { errno: 9 });
    assert!(said.contains(&"AgentDegraded=True".to_string()));
    assert_eq!(said.iter().filter(|said| said.ends_with("=Unknown")).count(), KERNEL_CONDITIONS);
    assert_eq!(node.step(Input::LogDown { errno: 9 }), Vec::<String>::new());
    let said =
        node.record("4,11,900000,-;INFO: task kubelet:812 blocked for more than 122 seconds.");
    assert_eq!(said, ["KernelDeadlock=True"]);
    node.wait(200);
    assert_eq!(node.step(Input::Tick), ["TaskHung kubelet:812 x1"]);
    let said = node.step(Input::LogCaughtUp);
    // All but the deadlock; and the agent works again.
    assert_eq!(said.iter().filter(|said| said.ends_with("=False")).count(), KERNEL_CONDITIONS);
}

#[test]
fn k02_a_fault_stays_while_the_log_cannot_be_read() {
    let mut node = Node::new();
    node.kernel("device-mapper: verity: 202:3: data block 0 is corrupted");
    node.step(Input::LogDown { errno: 5 });
    assert_eq!(node.status(ConditionType::VerityCorruption), Some(Status::True));
    assert_eq!(node.status(ConditionType::KernelDeadlock), Some(Status::Unknown));
}

#[test]
fn k04_only_a_critical_task_is_a_deadlock() {
    let mut node = Node::new();
    for (line, said) in [
        (
            "INFO: task airflow schedul:4711 blocked for more than 120 seconds.",
            &["TaskHung airflow schedul:4711 x1"][..],
        ),
        (
            "INFO: task qemu-system-x86:9012 blocked for more than 241 seconds.",
            &["KernelDeadlock=True", "TaskHung qemu-system-x86:9012 x1"],
        ),
        (
            "INFO: task kworker/u64:3:77 blocked for more than 122 seconds.",
            &["TaskHung kworker/u64:3:77 x1"],
        ),
    ] {
        let mut got = node.kernel(line);
        node.wait(200);
        got.extend(node.step(Input::Tick));
        assert_eq!(got, said);
    }
}

#[test]
fn k05_user_space_raises_nothing_unless_it_is_trusted() {
    let line = "12,900,1000,-;EXT4-fs (sda1): Remounting filesystem read-only";
    let mut node = Node::new();
    assert_eq!(node.record(line), Vec::<String>::new());
    assert_eq!(node.agent.counts().userspace, 1);
    assert_eq!(node.record(&line.replace("12,900", "3,901")), ["ReadonlyFilesystem=True"]);

    let mut trusting = Node::with(Settings { trust_userspace: true, ..Settings::default() });
    assert_eq!(trusting.record(line), ["ReadonlyFilesystem=True"]);
}

#[test]
fn k07_one_lost_gpu_is_one_transition_and_one_xid() {
    let mut node = Node::new();
    let said = node.kernel(
        "NVRM: Xid (PCI:0000:44:00): 79, pid=1234, name=python3, GPU has fallen off the bus.",
    );
    assert_eq!(said, ["GpuFallenOffBus=True", "NvidiaXidError 0000:44:00 x1"]);
    let said = node.kernel("NVRM: GPU 0000:44:00.0: GPU has fallen off the bus.");
    assert_eq!(said, Vec::<String>::new(), "one fault, told once");
    assert_eq!(node.agent.event_total(EventReason::NvidiaXidError), 1);
    assert_eq!(node.agent.objects(ConditionType::GpuFallenOffBus).count(), 1);
}

#[test]
fn k08_a_storm_of_xids_is_counted_and_written_a_handful_of_times() {
    let mut node = Node::new();
    let mut said = 0;
    for _ in 0..11_760 {
        node.wait(51);
        said += node
            .kernel("NVRM: Xid (PCI:0000:dc:00): 45, pid=1818990, name=python3, Ch 00000001")
            .len();
    }
    assert_eq!(said, 3);
    assert_eq!(node.agent.event_total(EventReason::NvidiaXidError), 11_760);
    assert_eq!(node.status(ConditionType::GpuFallenOffBus), None);
}

#[test]
fn k10_a_volume_of_a_workload_is_not_the_node() {
    let mut node = Node::new();
    node.mounts = "sda3 0 1 2 8:3 / /var rw - ext4 /dev/sda3 rw\n\
                   sdi 1 1 2 8:8 / /var/lib/kubelet/plugins/kubernetes.io/csi/driver.longhorn.io/aa/globalmount ro - ext4 /dev/sdi ro\n";
    let said = node.kernel("EXT4-fs (sdi): Remounting filesystem read-only");
    assert_eq!(said, ["VolumeFilesystemReadOnly sdi x1"]);
    assert_eq!(node.status(ConditionType::ReadonlyFilesystem), None);
    let said = node.kernel("EXT4-fs (sda3): Remounting filesystem read-only");
    assert_eq!(said, ["ReadonlyFilesystem=True"]);
    let said = node.kernel("EXT4-fs (sdz): Remounting filesystem read-only");
    assert_eq!(said, ["ReadonlyFilesystem explained"], "an unknown device is the node's");
}

#[test]
fn k10_a_mount_table_that_cannot_be_read_makes_it_the_node() {
    let mut node = Node::new();
    let outputs = node.agent.step(node.now, Input::Record(REMOUNT));
    assert_eq!(outputs.as_slice(), [Output::ReadMounts]);
    assert_eq!(node.step(Input::MountsUnreadable), ["ReadonlyFilesystem=True"]);
}

#[test]
fn k11_a_held_condition_ends_by_hand_and_not_by_a_restart() {
    let mut node = Node::new();
    node.record("3,1,1,-;EXT4-fs (dm-3): Remounting filesystem read-only");
    node.step(Input::LogCaughtUp);
    node.mounts = "dm-3 0 1 2 9:3 / /m rw - ext4 /dev/dm-3 rw\n";
    node.wait(300_000);
    assert_eq!(node.step(Input::Tick), Vec::<String>::new(), "held: no proof is asked for");
    let said = node.step(Input::Started(Settings::default()));
    assert!(said.contains(&"ReadonlyFilesystem resumed".to_string()), "{said:?}");
    let condition = ConditionType::ReadonlyFilesystem;
    assert_eq!(node.status(condition), Some(Status::True));
    node.step(Input::LogCaughtUp);
    let by = Text::from_bytes(b"alice");
    let said = node.step(Input::ClearByHand { by, condition });
    assert_eq!(said, ["ReadonlyFilesystem=False", "ReadonlyFilesystem cleared by alice"]);
}

#[test]
fn a_proof_ends_a_read_only_file_system_where_that_is_allowed() {
    let mut node = Node::with(proof(ConditionType::ReadonlyFilesystem));
    node.mounts = "sda1 1 1 2 8:1 / / rw - ext4 /dev/sda1 rw,emergency_ro\n";
    node.record("3,1,1,-;EXT4-fs (sda1): Remounting filesystem read-only");
    node.step(Input::LogCaughtUp);
    for (mounts, status) in [
        ("sda1 1 1 2 8:1 / / rw - ext4 /dev/sda1 rw\n", Status::True),
        ("sda1 0 1 2 8:1 / / rw - ext4 /dev/sda1 rw\n", Status::False),
    ] {
        node.mounts = mounts;
        node.wait(10_000);
        node.step(Input::Tick);
        assert_eq!(node.status(ConditionType::ReadonlyFilesystem), Some(status), "{mounts}");
    }
    assert_eq!(node.agent.next_wakeup(), None);
}

#[test]
fn a_proof_ends_a_hung_task_where_that_is_allowed() {
    let mut node = Node::with(proof(ConditionType::KernelDeadlock));
    node.record("3,1,1,-;INFO: task kubelet:77 blocked for more than 120 seconds.");
    node.step(Input::LogCaughtUp);
    for (state, status) in [(TaskState::Unknown, Status::True), (TaskState::Gone, Status::False)] {
        node.task = state;
        node.wait(10_000);
        node.step(Input::Tick);
        assert_eq!(node.status(ConditionType::KernelDeadlock), Some(status));
    }
}

#[test]
fn k12_severities_of_firmware_records_are_told_apart() {
    let mut node = Node::new();
    for (line, said) in [
        ("{37}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 162", None),
        ("{37}[Hardware Error]: It has been corrected by h/w and requires no further action", None),
        ("{37}[Hardware Error]: event severity: corrected", None), // waits for the record's rest
        (
            "{3}[Hardware Error]: event severity: recoverable",
            Some("CperHardwareErrorCorrected - x1"), // which another record ends
        ),
    ] {
        assert_eq!(node.kernel(line).first().map(String::as_str), said, "{line}");
    }
    let said = node.kernel("{4}[Hardware Error]: event severity: fatal");
    assert_eq!(said, ["CperHardwareErrorFatal=True", "CperHardwareErrorRecoverable - x1"]);
    node.wait(200);
    assert_eq!(node.step(Input::Tick), Vec::<String>::new(), "a condition does not wait");
}

#[test]
fn k13_the_severity_of_a_section_is_not_that_of_the_event() {
    let mut node = Node::new();
    for line in [
        "{8}[Hardware Error]: event severity: recoverable",
        "{8}[Hardware Error]:  Error 0, type: fatal",
        "{8}[Hardware Error]:   section_type: PCIe error",
        "{8}[Hardware Error]:   device_id: 0000:3b:00.0",
    ] {
        node.kernel(line);
    }
    assert_eq!(node.status(ConditionType::CperHardwareErrorFatal), None);
    node.wait(200);
    assert_eq!(node.step(Input::Tick), ["CperHardwareErrorRecoverable 0000:3b:00.0 x1"]);
}

#[test]
fn the_rest_of_a_fatal_record_names_the_part() {
    let mut node = Node::new();
    for line in [
        "[Hardware Error]: event severity: fatal",
        "[Hardware Error]:  Error 0, type: fatal",
        "usb 1-1: a line of another driver",
        "[Hardware Error]:   section_type: memory error",
        "[Hardware Error]:  fru_text: DIMM A1",
        "[Hardware Error]:   error_type: 3, multi-bit ECC",
    ] {
        node.kernel(line);
    }
    let message = node.message(ConditionType::CperHardwareErrorFatal);
    assert!(message.contains("section: memory error, error: 3, multi-bit ECC"), "{message}");
    let objects: Vec<_> = node.agent.objects(ConditionType::CperHardwareErrorFatal).collect();
    assert_eq!(format!("{objects:?}"), "[\"DIMM A1\"]");
}

#[test]
fn a_gpu_lost_in_three_records_is_one_gpu_with_its_address() {
    let mut node = Node::new();
    node.kernel("NVRM: The NVIDIA GPU 0000:b3:00.0");
    node.kernel("NVRM: (PCI ID: 10de:26b5) installed in this system has");
    let said = node.kernel("NVRM: fallen off the bus and is not responding to commands.");
    assert_eq!(said, ["GpuFallenOffBus=True"]);
    let objects: Vec<_> = node.agent.objects(ConditionType::GpuFallenOffBus).collect();
    assert_eq!(format!("{objects:?}"), "[\"0000:b3:00\"]");
}

#[test]
fn the_owner_of_the_lock_is_part_of_the_message() {
    let mut node = Node::new();
    node.kernel("INFO: task kubelet:2268 blocked for more than 122 seconds.");
    node.kernel("      Not tainted 7.0.0 #1");
    let said = node
        .kernel("INFO: task kubelet:2268 is blocked on a mutex likely owned by task dockerd:2258.");
    assert_eq!(said, ["KernelDeadlock explained"]);
    let message = node.message(ConditionType::KernelDeadlock);
    assert!(message.contains("waits for: dockerd:2258"), "{message}");
}

#[test]
fn k15_and_k16_every_kind_of_corrupt_block_counts() {
    for (kind, device, block) in [("data", "202:3", "0"), ("metadata", "253:0", "1044")] {
        let mut node = Node::new();
        let line = format!("device-mapper: verity: {device}: {kind} block {block} is corrupted");
        assert_eq!(node.kernel(&line), ["VerityCorruption=True"]);
        let message = node.message(ConditionType::VerityCorruption);
        let want = format!("block {block} on {device} is corrupt");
        assert!(message.starts_with(&want), "{message}");
    }
}

#[test]
fn k18_a_record_that_was_read_before_is_not_told_again() {
    let mut node = Node::new();
    let line = "3,500,10,-;EXT4-fs error (device sda1): ext4_lookup";
    assert_eq!(node.record(line), ["Ext4Error sda1 x1"]);
    let _ = node.step(Input::Started(Settings::default()));
    assert_eq!(node.record(line), Vec::<String>::new());
    assert_eq!(node.agent.event_total(EventReason::Ext4Error), 1);
}

#[test]
fn k19_the_first_record_is_told() {
    let mut node = Node::new();
    assert_eq!(node.kernel("EXT4-fs warning (device sda1): test"), ["Ext4Warning sda1 x1"]);
    assert_eq!(node.kernel("EXT4-fs error (device sda1): test"), ["Ext4Error sda1 x1"]);
}

#[test]
fn e01_a_burst_of_one_reason_leaves_room_for_the_others() {
    let mut node = Node::new();
    let mut said = Vec::new();
    for n in 0..60 {
        said.extend(node.kernel(&format!("Buffer I/O error on dev sd{n}, logical block 1")));
    }
    said.extend(node.kernel("nvme nvme0: controller is down; will reset: CSTS=0x3"));
    assert_eq!(said.iter().filter(|said| said.starts_with("IOError")).count(), 20);
    assert_eq!(said.last().map(String::as_str), Some("NvmeError nvme0 x1"));
    assert_eq!(node.drain(), ["IOError - x40"]);
}

#[test]
fn a_broken_record_is_counted_and_changes_nothing() {
    let mut node = Node::new();
    for bytes in [&b""[..], b"\xff\xfe", b"3,x,1,-;EXT4-fs (sda1): Remounting filesystem read-only"]
    {
        assert_eq!(node.step(Input::Record(bytes)), Vec::<String>::new());
    }
    assert_eq!(node.agent.counts().malformed, 3);
    assert_eq!(node.agent.log().last(), None);
}

#[test]
fn more_objects_than_fit_hold_their_condition_even_against_proof() {
    let mut node = Node::with(proof(ConditionType::KernelDeadlock));
    for pid in 0..=crate::bounds::OPEN_FAULTS_MAX {
        node.kernel(&format!("INFO: task kubelet:{pid} blocked for more than 120 seconds."));
    }
    assert!(node.message(ConditionType::KernelDeadlock).contains("more"));
    for pid in 0..=200 {
        node.step(Input::Task { pid, state: TaskState::Gone });
    }
    assert_eq!(node.status(ConditionType::KernelDeadlock), Some(Status::True));
}

const KERNEL_CONDITIONS: usize = 5;
const REMOUNT: &[u8] = b"3,1,1,-;EXT4-fs (sda1): Remounting filesystem read-only";

/// An agent with a shell around it that answers what the core asks for.
struct Node {
    agent: Agent,
    now: Instant,
    sequence: u64,
    mounts: &'static str,
    task: TaskState,
    /// What systemd says of the one unit that fails.
    unit: Unit<'static>,
}

impl Node {
    fn new() -> Self {
        Self::with(Settings::default())
    }

    fn with(settings: Settings) -> Self {
        let agent = Agent::new(settings);
        let (now, task, unit) = (Instant::from_millis(0), TaskState::Gone, repairs::KUBELET);
        Self { agent, now, sequence: 0, mounts: "", task, unit }
    }

    fn wait(&mut self, ms: u64) {
        self.now = self.now + Duration::from_millis(ms);
    }

    /// One record of the kernel's, numbered on.
    fn kernel(&mut self, text: &str) -> Vec<String> {
        self.sequence += 1;
        self.record(&format!("3,{},{},-;{text}", self.sequence, self.sequence * 1000))
    }

    fn record(&mut self, line: &str) -> Vec<String> {
        self.step(Input::Record(line.as_bytes()))
    }

    /// Steps, answers, and returns what was said in short words.
    fn step(&mut self, input: Input<'_>) -> Vec<String> {
        let mut said = Vec::new();
        for output in self.agent.step(self.now, input) {
            match output {
                Output::Check { kind } => said.push(format!("check {kind:?}")),
                Output::ReadMounts => said.extend(self.step(Input::Mounts(self.mounts.as_bytes()))),
                Output::ReadTask { pid } => {
                    said.extend(self.step(Input::Task { pid, state: self.task }));
                }
                Output::Condition { change, condition } => said.push(self.said(change, condition)),
                Output::Event(Event::Findings(write)) => {
                    let object = write.newest.object.to_string();
                    let object = if object.is_empty() { "-" } else { &object };
                    said.push(format!("{:?} {object} x{}", write.reason, write.count));
                }
                Output::Event(Event::Cleared { by, condition }) => {
                    said.push(format!("{condition:?} cleared by {by}"));
                }
                Output::Lost { records, .. } => said.push(format!("lost {records}")),
                Output::RestartUnit { unit, .. } => said.push(format!("restart {unit}")),
            }
        }
        said
    }

    fn said(&self, change: Change, condition: ConditionType) -> String {
        match change {
            Change::Explanation => format!("{condition:?} explained"),
            Change::Resumed => format!("{condition:?} resumed"),
            Change::Transition => format!("{condition:?}={}", self.status(condition).unwrap()),
        }
    }

    fn drain(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        loop {
            let said = self.step(Input::Stopping);
            if said.is_empty() {
                return all;
            }
            all.extend(said);
        }
    }

    fn status(&self, condition: ConditionType) -> Option<Status> {
        self.agent.condition(condition).map(|held| held.verdict.status)
    }

    fn message(&self, condition: ConditionType) -> String {
        self.agent.condition(condition).unwrap().verdict.message.to_string()
    }
}

fn proof(condition: ConditionType) -> Settings {
    let mut settings = Settings::default();
    settings.clear[condition.index()] = Clear::Proof;
    settings
}

#[test]
fn h02_five_errors_of_a_disk_within_ten_minutes_are_a_failing_disk() {
    let lines = [
        "end_request: I/O error, dev sdc, sector 1098288304",
        "blk_update_request: I/O error, dev sdc, sector 1098288312",
        "print_req_error: I/O error, dev sdc, sector 1069354096 flags 0",
        "I/O error, dev sdc, sector 1069356760 op 0x0:(READ) flags 0x80700 phys_seg 1 prio class 2",
        "Buffer I/O error on dev sdc, logical block 137286038, async page read",
    ];
    let mut node = Node::new();
    for (n, line) in lines.into_iter().enumerate() {
        assert_eq!(node.status(ConditionType::DisksFailure), None, "four are not enough");
        node.wait(10_000);
        node.sequence += 1;
        node.record(&format!("3,{},{},-;{line}", node.sequence, (n + 1) * 10_000_000));
    }
    assert_eq!(node.status(ConditionType::DisksFailure), Some(Status::True));
    assert!(node.message(ConditionType::DisksFailure).starts_with("sdc: 5 or more I/O errors"));
}

/// Five faults of `sdb`, ten seconds apart.
fn fail_sdb(node: &mut Node) -> Vec<String> {
    let mut said = Vec::new();
    for _ in 0..5 {
        node.wait(10_000);
        node.sequence += 1;
        let (sequence, at) = (node.sequence, node.now.millis() * 1000);
        let line = format!("3,{sequence},{at},-;I/O error, dev sdb1, sector {at}");
        said.extend(node.record(&line));
    }
    said.retain(|said| !said.starts_with("BlockIOError"));
    said
}

#[test]
fn a_disk_fails_once_a_reading_says_that_it_is_the_nodes_own() {
    use crate::node::reading::{Attachment, Disk};
    let kind = ReadingKind::Disks;
    let mut settings = Settings::default();
    settings.schedule.probes[kind.index()] = true;
    let failed = || Outcome::Failed { why: Text::from_bytes(b"too slow") };
    let no_nvme = || Outcome::NotApplicable;
    // how the run says that it is attached, how the run ends, whether the disk fails
    for (attachment, outcome, fails) in [
        (Some(Attachment::Direct), no_nvme(), true),
        (Some(Attachment::Direct), Outcome::Complete, true),
        (Some(Attachment::Usb), no_nvme(), false),
        (Some(Attachment::Usb), Outcome::Complete, false),
        (None, failed(), true),
        (None, no_nvme(), true),
    ] {
        let shown = format!("{attachment:?} {outcome:?}");
        let mut node = Node::with(settings.clone());
        assert_eq!(node.step(Input::Started(settings.clone())), ["check Disks"]);
        assert_eq!(fail_sdb(&mut node), Vec::<String>::new(), "it waits for the first reading");
        let end = |node: &mut Node| {
            if let Some(attachment) = attachment {
                let reading = Reading::Disk(Disk { name: "sdb", attachment });
                node.step(Input::Reading { kind, reading });
            }
            node.step(Input::CheckEnded { kind, outcome: outcome.clone() })
        };
        let said = end(&mut node);
        assert_eq!(said.contains(&"DisksFailure=True".to_string()), fails, "{shown}: {said:?}");
        assert!(said.contains(&"check Disks".to_string()), "one was asked for meanwhile: {said:?}");
        end(&mut node);
        let later = fail_sdb(&mut node);
        assert_eq!(later, Vec::<String>::new(), "{shown}: it is known");
        node.wait(700_000);
        node.step(Input::Tick);
        let said = end(&mut node);
        let over = if outcome == failed() { "DisksFailure=Unknown" } else { "DisksFailure=False" };
        assert_eq!(said.contains(&over.to_string()), fails, "{shown}: {said:?}");
    }
}

#[test]
fn a_disk_that_nobody_has_read_is_looked_at_before_it_fails() {
    use crate::node::reading::{Attachment, Disk};
    let kind = ReadingKind::Disks;
    let mut settings = Settings::default();
    settings.schedule.probes[kind.index()] = true;
    let mut node = Node::with(settings.clone());
    node.step(Input::Started(settings));
    node.step(Input::CheckEnded { kind, outcome: Outcome::NotApplicable });
    assert_eq!(fail_sdb(&mut node), ["check Disks"]);
    let disk = Disk { name: "sdb", attachment: Attachment::Usb };
    node.step(Input::Reading { kind, reading: Reading::Disk(disk) });
    assert_eq!(
        node.step(Input::CheckEnded { kind, outcome: Outcome::NotApplicable }),
        Vec::<String>::new()
    );
    assert_eq!(fail_sdb(&mut node), Vec::<String>::new());
    assert_eq!(node.status(ConditionType::DisksFailure), None);
}

#[test]
fn old_errors_that_are_read_late_are_old() {
    let mut node = Node::new();
    node.wait(7 * 86_400_000);
    for day in 0..6_u64 {
        node.sequence += 1;
        let at_us = day * 86_400_000_000;
        node.record(&format!("3,{},{at_us},-;I/O error, dev sdc, sector {day}", node.sequence));
    }
    assert_eq!(node.status(ConditionType::DisksFailure), None);
}

#[test]
fn the_watch_over_the_agent_can_be_turned_off_too() {
    let mut settings = Settings::default();
    settings.schedule.enabled[ConditionType::AgentDegraded.index()] = false;
    let mut node = Node::with(settings);
    node.step(Input::LogDown { errno: 5 });
    assert_eq!(node.status(ConditionType::AgentDegraded), None);
}

#[test]
fn what_a_new_process_does_not_want_any_more_it_forgets() {
    let mut node = Node::new();
    node.step(Input::LogCaughtUp);
    assert!(node.status(ConditionType::KernelDeadlock).is_some());
    let mut settings = Settings::default();
    settings.schedule.enabled[ConditionType::KernelDeadlock.index()] = false;
    node.step(Input::Started(settings));
    assert_eq!(node.status(ConditionType::KernelDeadlock), None);
    assert!(node.status(ConditionType::ReadonlyFilesystem).is_some());
}

#[test]
fn h01_errors_of_a_floppy_are_events_and_nothing_more() {
    let mut node = Node::new();
    for _ in 0..12 {
        node.wait(5_000);
        node.kernel("blk_update_request: I/O error, dev fd0, sector 0 op 0x0:(READ) flags 0x0");
    }
    assert_eq!(node.status(ConditionType::DisksFailure), None);
    assert_eq!(node.agent.event_total(EventReason::BlockIOError), 12);
}

#[test]
fn a_condition_that_is_turned_off_is_forgotten_and_told_again_when_it_is_turned_on() {
    let mut node = Node::new();
    node.kernel("device-mapper: verity: 202:3: data block 0 is corrupted");
    let condition = ConditionType::VerityCorruption;
    let mut settings = Settings::default();
    settings.schedule.enabled[condition.index()] = false;
    assert_eq!(node.step(Input::Configured(settings)), Vec::<String>::new());
    assert_eq!(node.status(condition), None);
    let said = node.step(Input::Configured(Settings::default()));
    assert_eq!(said, ["VerityCorruption=True"], "the fault is still open");
}

#[test]
fn memory_errors_that_the_log_does_not_show_are_one_event_even_across_a_restart() {
    use crate::node::reading::MemoryController;
    let mut settings = Settings::default();
    settings.schedule.probes[ReadingKind::MemoryErrors.index()] = true;
    let mut node = Node::with(settings.clone());
    assert_eq!(node.step(Input::Started(settings.clone())), ["check MemoryErrors"]);
    let kind = ReadingKind::MemoryErrors;
    let counts = |corrected, uncorrected| Input::Reading {
        kind,
        reading: Reading::MemoryController(MemoryController {
            name: "mc0",
            corrected,
            uncorrected,
        }),
    };
    let ended = || Input::CheckEnded { kind, outcome: Outcome::Complete };
    assert_eq!(node.step(counts(5, 0)), Vec::<String>::new());
    assert_eq!(node.step(ended()), Vec::<String>::new());
    let said = node.kernel("EDAC MC0: 2 CE memory read error on CPU_SrcID#0 (channel:0 slot:0)");
    assert_eq!(said, ["MemoryReadError CPU_SrcID#0 x1"]);
    node.step(Input::Stopping);
    node.wait(60_000);
    assert_eq!(node.step(Input::Started(settings)), ["check MemoryErrors"]);
    assert_eq!(node.step(counts(9, 1)), Vec::<String>::new(), "a line may be on its way");
    node.step(ended());
    node.wait(60_000);
    assert_eq!(node.step(Input::Tick), ["check MemoryErrors"]);
    assert_eq!(node.step(counts(9, 1)), ["MemoryReadError mc0 x1"]);
    assert_eq!(node.step(counts(9, 1)), Vec::<String>::new());
}

#[test]
fn a_fatal_error_of_the_boot_before_is_told_from_the_table_if_the_log_does_not() {
    use crate::node::reading::BootError;
    use crate::wire::cper::Severity;
    let kind = ReadingKind::BootErrors;
    let mut settings = Settings::default();
    settings.schedule.probes[kind.index()] = true;
    let read = |node: &mut Node| {
        let error = BootError { severity: Severity::Fatal, cleared: true };
        let mut said = node.step(Input::Reading { kind, reading: Reading::BootError(error) });
        said.extend(node.step(Input::CheckEnded { kind, outcome: Outcome::Complete }));
        said
    };
    let told = "CperHardwareErrorFatal=True".to_string();
    let long = "BERT: Max print length exceeded, table data is available at:";
    // whether the table is read before the log, lines of the log, whether the table tells
    for (table_first, lines, tells) in [
        (false, &[long][..], true),
        (true, &[long], true),
        (false, &["BERT: Error records from previous boot:"], true),
        (true, &["usb 1-1: new device"], false),
    ] {
        let mut node = Node::with(settings.clone());
        node.step(Input::Started(settings.clone()));
        let mut said = if table_first { read(&mut node) } else { Vec::new() };
        lines.iter().for_each(|line| said.extend(node.kernel(line)));
        assert_eq!(said, Vec::<String>::new(), "not before the log has been read");
        said.extend(node.step(Input::LogCaughtUp));
        said.extend(if table_first { Vec::new() } else { read(&mut node) });
        assert_eq!(said.contains(&told), tells, "{table_first} {lines:?}");
        node.step(Input::Started(settings.clone()));
        node.step(Input::LogCaughtUp);
        assert_eq!(read(&mut node), Vec::<String>::new(), "once");
        if tells {
            let message = node.message(ConditionType::CperHardwareErrorFatal);
            assert!(message.contains("previous boot") && message.contains("BERT"), "{message}");
        }
    }
}

#[test]
fn a_layer_that_the_device_mapper_calls_corrupt_is_verity_corruption() {
    use crate::node::reading::Layer;
    let mut settings = Settings::default();
    settings.schedule.probes[ReadingKind::SealedLayers.index()] = true;
    let mut node = Node::with(settings.clone());
    let layer = Layer { name: "root", enforced: "aa", recorded: Some("aa"), corrupted: true };
    let kind = ReadingKind::SealedLayers;
    let reading = Input::Reading { kind, reading: Reading::Layer(layer) };
    assert_eq!(node.step(reading.clone()), ["VerityCorruption=True"]);
    assert_eq!(node.step(reading), Vec::<String>::new());
    let said = node.step(Input::CheckEnded { kind, outcome: Outcome::Complete });
    assert_eq!(said, ["SealedOSTampered=False"]);
}
