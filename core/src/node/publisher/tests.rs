//! The publisher against an API server that loses, refuses, forgets and has other writers.

mod faults;
mod world;

use core::time::Duration;
use std::format;
use std::string::ToString;
use std::vec::Vec;

use proptest::prelude::*;

use self::world::{Fate, World};
use super::*;
use crate::catalog::CONDITIONS;
use crate::node::agent::Input as AgentInput;

const READONLY: &str = "ReadonlyFilesystem";
const DEADLOCK: &str = "KernelDeadlock";

/// Field case N06.
#[test]
fn an_idle_hour_has_42_writes() {
    let mut world = World::new(1);
    world.run_for(Duration::from_secs(600));
    let before = world.writes.clone();
    world.run_for(Duration::from_secs(3600));
    let of = |kind: &str| {
        let count = |writes: &[&'static str]| writes.iter().filter(|w| **w == kind).count();
        count(&world.writes) - count(&before)
    };
    assert_eq!((of("annotations"), of("status"), of("event")), (30, 12, 0));
}

#[test]
fn a_turn_is_written_at_once_and_told_by_one_event() {
    let mut world = World::new(1);
    world.run_for(Duration::from_secs(30));
    world.kernel_says("EXT4-fs (sda1): Remounting filesystem read-only");
    let condition = &world.server.conditions[READONLY];
    assert_eq!((condition.status.as_str(), condition.transition), ("True", world.wall()));
    world.run_for(Duration::from_secs(5));
    assert_eq!(world.event_counts("FilesystemIsReadOnly"), [1]);
    world.clear(READONLY);
    assert_eq!(world.server.conditions[READONLY].status, "False");
    world.run_for(Duration::from_secs(5));
    assert_eq!(world.event_counts("FilesystemIsNotReadOnly"), [1]);
    assert_eq!(world.event_counts("ConditionCleared"), [1]);
}

#[test]
fn nothing_is_written_before_the_node_was_read() {
    let mut world = World::unread(1);
    world.kernel_says("EXT4-fs (sda1): Remounting filesystem read-only");
    world.run_for(Duration::from_secs(100));
    assert!(!world.writes.iter().any(|kind| *kind != "event"), "{:?}", world.writes);
    world.server.conditions.insert(READONLY.to_string(), world::on_node("True", 7));
    world.look();
    let condition = &world.server.conditions[READONLY];
    assert_eq!((condition.status.as_str(), condition.transition), ("True", 7));
    assert_eq!(condition.reason, "FilesystemIsReadOnly");
}

/// Field case N03.
#[test]
fn what_stood_before_stays_until_there_is_a_result() {
    let mut world = World::unread(18);
    let name = "DisksFailure";
    world.server.conditions.insert(name.to_string(), world::on_node("True", 7));
    world.agent_catches_up();
    world.look();
    world.run_for(Duration::from_secs(40));
    let condition = &world.server.conditions[name];
    assert_eq!((condition.status.as_str(), condition.transition), ("True", 7));
    assert!(!world.named.iter().any(|named| named == name));
    assert!(!world.server.conditions.contains_key("DiskUsageHigh"));
    world.checked(crate::catalog::ReadingKind::Disks);
    world.run_for(Duration::from_secs(1));
    assert_eq!(world.server.conditions[name].status, "False");
}

/// Field case A01.
#[test]
fn what_xfs_says_is_on_the_node_before_it_hangs() {
    let mut world = World::new(19);
    world.run_for(Duration::from_secs(30));
    world.kernel_says("XFS (nvme0n1p6): Filesystem has been shut down due to log error (0x2).");
    let condition = &world.server.conditions[READONLY];
    assert_eq!(condition.status, "True");
    assert!(has(&condition.message, "nvme0n1p6") && has(&condition.message, "log error (0x2)"));
    world.run_for(Duration::from_secs(2));
    assert_eq!(world.evidence, 1);
}

/// Field case N07.
#[test]
fn a_fault_during_an_outage_is_written_after_it_with_its_own_time() {
    let mut world = World::new(3);
    world.run_for(Duration::from_secs(30));
    world.fate = Fate::LostBefore;
    world.run_for(Duration::from_secs(100));
    world.kernel_says("EXT4-fs (sda1): Remounting filesystem read-only");
    let turned = world.wall();
    world.run_for(Duration::from_secs(500));
    assert_eq!(world.server.conditions[READONLY].status, "False");
    world.fate = Fate::Taken;
    world.run_for(lane::RETRY_LONGEST);
    let condition = &world.server.conditions[READONLY];
    assert_eq!((condition.status.as_str(), condition.transition), ("True", turned));
}

/// Field case N04.
#[test]
fn the_time_of_a_transition_moves_with_the_status_only() {
    let mut world = World::new(4);
    world.run_for(Duration::from_secs(30));
    world.kernel_says("EXT4-fs (sda1): Remounting filesystem read-only");
    let turned = world.wall();
    for device in ["sdb1", "sdc1", "sdd1"] {
        world.run_for(Duration::from_secs(30));
        world.kernel_says(&format!("EXT4-fs ({device}): Remounting filesystem read-only"));
        let condition = &world.server.conditions[READONLY];
        assert_eq!(condition.transition, turned);
        assert!(has(&condition.message, device), "{}", condition.message);
    }
    world.restart(false);
    world.run_for(Duration::from_secs(400));
    assert_eq!(world.server.conditions[READONLY].transition, turned);
}

/// Field case N09.
#[test]
fn what_others_write_is_left_alone() {
    let mut world = World::new(5);
    for at in 0..30 {
        world.server.write_by("kubelet", "Ready", if at % 2 == 0 { "True" } else { "False" });
        world.look();
        world.run_for(Duration::from_secs(10));
    }
    assert!(world.named.iter().all(|name| name != "Ready"));
    assert_eq!(world.server.conditions["Ready"].status, "False");
}

#[test]
fn a_second_writer_is_named_and_not_fought() {
    let mut world = World::new(6);
    world.run_for(Duration::from_secs(30));
    for _ in 0..3 {
        world.run_for(Duration::from_secs(300));
        world.server.write_by("node-problem-detector", DEADLOCK, "True");
        world.look();
    }
    assert_eq!(world.server.conditions[DEADLOCK].status, "True");
    assert_eq!(world.server.conditions["AgentDegraded"].reason, "ConditionContested");
    assert!(world.server.conditions["AgentDegraded"].message.starts_with("node-problem-detector "));
    // As long as that one goes on, its value is left alone, and the heartbeat goes on.
    for _ in 0..12 {
        world.run_for(Duration::from_secs(300));
        assert_eq!(world.server.conditions[DEADLOCK].status, "True");
        let age = world.wall() - world.server.conditions[DEADLOCK].heartbeat;
        assert!(age <= 600, "{age}");
        world.server.write_by("node-problem-detector", DEADLOCK, "True");
        world.look();
    }
    world.run_for(levels::CONTEST_ENDS_AFTER + Duration::from_secs(2));
    assert_eq!(world.server.conditions[DEADLOCK].status, "False");
    assert_eq!(world.server.conditions["AgentDegraded"].reason, "AgentWorks");
}

#[test]
fn what_the_agent_does_not_know_any_more_is_removed_once() {
    let mut world = World::unread(7);
    world.server.write_by(world::MANAGER, "OldCondition", "True");
    world.server.write_by("other", "OtherCondition", "True");
    world.look();
    world.run_for(Duration::from_secs(5));
    assert!(!world.server.conditions.contains_key("OldCondition"));
    assert!(world.server.conditions.contains_key("OtherCondition"));
    world.server.write_by(world::MANAGER, "OldCondition", "True");
    world.look();
    world.run_for(Duration::from_secs(700));
    assert!(world.server.conditions.contains_key("OldCondition"));
}

#[test]
fn a_name_that_does_not_fit_is_left_alone() {
    let mut world = World::unread(18);
    let cut = format!("{}…", "x".repeat(61));
    for name in ["x".repeat(65), "Zero\u{200b}Width".to_string()] {
        world.server.write_by(world::MANAGER, &name, "True");
    }
    for name in [&cut, "Zero\u{fffd}Width"] {
        world.server.write_by("other", name, "True");
    }
    world.look();
    world.run_for(Duration::from_secs(5));
    assert!(world.server.conditions.contains_key(&cut), "{:?}", world.server.conditions);
    assert!(world.server.conditions.contains_key("Zero\u{fffd}Width"));
}

#[test]
fn a_node_that_is_made_again_gets_everything_at_once() {
    let mut world = World::new(8);
    world.run_for(Duration::from_secs(30));
    world.kernel_says("EXT4-fs (sda1): Remounting filesystem read-only");
    world.server.delete_node();
    world.look();
    let writes = world.writes.len();
    world.run_for(Duration::from_secs(600));
    assert_eq!(world.writes.iter().skip(writes).filter(|kind| **kind != "event").count(), 0);
    world.server.make_node("another");
    world.look();
    world.run_for(Duration::from_secs(1));
    assert_eq!(world.server.conditions[READONLY].status, "True");
    assert_eq!(*world.writes.last().unwrap(), "annotations");
}

/// Field case E01.
#[test]
fn the_first_event_of_a_kind_is_never_dropped() {
    let mut world = World::new(9);
    world.run_for(Duration::from_secs(30));
    for _ in 0..60 {
        world.kernel_says("Buffer I/O error on dev sda1, logical block 7, async page read");
    }
    world.kernel_says("nvme nvme0: I/O 131 QID 1 timeout, aborting");
    world.run_for(Duration::from_secs(3600));
    assert_eq!(world.event_counts("IOError"), [60]);
    assert_eq!(world.event_counts("NvmeError"), [1]);
}

/// Field case K08, with the API server away.
#[test]
fn a_storm_during_an_outage_is_counted_and_told_after_it() {
    let mut world = World::new(10);
    world.run_for(Duration::from_secs(30));
    world.fate = Fate::LostBefore;
    for number in 0..400 {
        world.kernel_says(&format!("Buffer I/O error on dev sd{number}, logical block 7, x"));
        world.kernel_says("NVRM: Xid (PCI:0000:dc:00): 45, pid=1, name=python3, Ch 00000001");
        world.run_for(Duration::from_secs(9));
    }
    world.fate = Fate::Taken;
    let writes = world.writes.len();
    world.run_for(Duration::from_secs(60));
    assert!(world.writes.len() - writes < 40, "no storm on return");
    world.run_for(Duration::from_secs(7200));
    let counts = world.publisher.series().counts();
    let written: u64 = world.server.events.values().map(|event| event.count).sum();
    assert_eq!((written, counts.waiting, counts.dropped), (world.happened, 0, 0));
    assert_eq!(world.event_counts("NvidiaXidError"), [400]);
}

#[test]
fn a_disk_that_takes_its_time_is_asked_once_and_waited_for() {
    let mut world = World::new(17);
    world.run_for(Duration::from_secs(30));
    world.kernel_says("nvme nvme0: I/O 131 QID 1 timeout, aborting");
    world.fate = Fate::LostBefore;
    world.kernel_says("nvme nvme0: I/O 132 QID 1 timeout, aborting");
    world.run_for(Duration::from_secs(65));
    world.disk_is_slow = true;
    let (saves, ticks) = (world.saves, world.ticks);
    world.kernel_says("Buffer I/O error on dev sda1, logical block 7, async page read");
    world.run_for(Duration::from_secs(40));
    assert_eq!(world.saves - saves, 1);
    assert!(world.ticks - ticks < 20, "{} ticks", world.ticks - ticks);
    world.fate = Fate::Taken;
    world.disk_answers();
    world.run_for(Duration::from_secs(70));
    assert_eq!(
        (world.event_counts("IOError"), world.event_counts("NvmeError")),
        ([1].into(), [2].into())
    );
}

#[test]
fn an_order_to_clear_is_done_once_and_its_mark_taken_away() {
    let mut world = World::new(11);
    world.run_for(Duration::from_secs(30));
    world.kernel_says("EXT4-fs (sda1): Remounting filesystem read-only");
    world.server.mark("fettle.dev/clear-condition", "ReadonlyFilesystem, Nonsense");
    world.look();
    world.run_for(Duration::from_secs(5));
    assert_eq!(world.server.conditions[READONLY].status, "False");
    assert!(world.server.annotations.is_empty(), "{:?}", world.server.annotations);
    assert_eq!(world.event_counts("ConditionCleared"), [1]);
    assert_eq!(world.event_counts("ClearRefused"), [1]);
    // The mark cannot be taken away, and does not clear what comes later.
    world.fate = Fate::LostBefore;
    world.server.mark("fettle.dev/clear-condition", "KernelDeadlock");
    world.look();
    world.kernel_says("EXT4-fs (sdb1): Remounting filesystem read-only");
    world.kernel_says("INFO: task kubelet:227 blocked for more than 120 seconds.");
    world.look();
    world.fate = Fate::Taken;
    world.run_for(Duration::from_secs(60));
    assert_eq!(world.server.conditions[DEADLOCK].status, "True");
    assert!(world.server.annotations.is_empty());
}

#[test]
fn a_mark_is_taken_away_only_when_what_it_asked_for_is_on_disk() {
    let mut world = World::new(20);
    world.run_for(Duration::from_secs(30));
    world.kernel_says("EXT4-fs (sda1): Remounting filesystem read-only");
    world.run_for(Duration::from_secs(5));
    world.disk_is_slow = true;
    world.server.mark("fettle.dev/clear-condition", READONLY);
    world.look();
    world.run_for(Duration::from_secs(5));
    assert_eq!(world.server.conditions[READONLY].status, "False");
    assert!(!world.server.annotations.is_empty());
    // The process that cleared it is gone, and the next one finds the mark again.
    world.disk_is_slow = false;
    world.restart(false);
    world.run_for(Duration::from_secs(5));
    assert_eq!(world.server.conditions[READONLY].status, "False");
    assert!(world.server.annotations.is_empty());
}

#[test]
fn a_tamper_condition_of_an_earlier_boot_stays_until_it_is_cleared() {
    let mut world = World::unread(12);
    world.server.write_by(world::MANAGER, "NodeTampered", "True");
    world.look();
    world.checked(crate::catalog::ReadingKind::ProtectedFiles);
    let condition = &world.server.conditions["NodeTampered"];
    assert_eq!(condition.status, "True");
    assert!(has(&condition.message, "stood True on the Node before this boot"));
    world.clear("NodeTampered");
    world.restart(false);
    world.checked(crate::catalog::ReadingKind::ProtectedFiles);
    world.run_for(Duration::from_secs(400));
    assert_eq!(world.server.conditions["NodeTampered"].status, "False");
}

#[test]
fn a_reboot_is_done_once_per_id_and_only_where_it_is_enabled() {
    let mut world = World::new(13);
    world.server.mark("fettle.dev/reboot", "op-1");
    world.look();
    world.run_for(Duration::from_secs(20));
    assert_eq!((world.reboots.len(), world.event_counts("RebootRefused")), (0, [1].into()));
    world.enable_reboots();
    world.server.mark("fettle.dev/reboot", "op-2");
    world.look();
    world.run_for(Duration::from_secs(20));
    assert_eq!(
        (&*world.reboots, world.event_counts("RebootOrdered")),
        (&["op-2".into()][..], [1].into())
    );
    world.restart(true);
    world.run_for(Duration::from_secs(20));
    assert_eq!((world.reboots.len(), world.event_counts("RebootDone")), (1, [1].into()));
    world.restart(false);
    world.run_for(Duration::from_secs(600));
    assert_eq!((world.reboots.len(), world.event_counts("RebootDone")), (1, [1].into()));
    for wrong in ["", "a b", "x\u{e9}", &"x".repeat(65)] {
        world.server.mark("fettle.dev/reboot", wrong);
        world.look();
    }
    world.run_for(Duration::from_secs(20));
    assert_eq!(world.reboots.len(), 1);
}

#[test]
fn a_reboot_that_cannot_be_recorded_is_not_done() {
    let mut world = World::new(14);
    world.enable_reboots();
    world.disk_is_full = true;
    world.server.mark("fettle.dev/reboot", "op-1");
    world.look();
    world.run_for(Duration::from_secs(20));
    assert_eq!((world.reboots.len(), world.event_counts("RebootRefused")), (0, [1].into()));
}

#[test]
fn evidence_that_is_refused_does_not_hold_up_the_report() {
    let mut world = World::new(15);
    world.run_for(Duration::from_secs(30));
    world.fate = Fate::Refused(422);
    world.kernel_says("EXT4-fs (sda1): Remounting filesystem read-only");
    world.run_for(Duration::from_secs(1));
    world.fate = Fate::Taken;
    world.run_for(Duration::from_secs(200));
    assert_eq!(world.evidence, 1);
    assert_eq!(world.server.conditions[READONLY].status, "True");
}

#[test]
fn an_old_view_that_comes_late_is_nobodys_change() {
    let mut world = World::new(16);
    world.run_for(Duration::from_secs(30));
    let old = world.server.clone();
    for _ in 0..5 {
        world.kernel_says("EXT4-fs (sda1): Remounting filesystem read-only");
        world.look_at(&old);
        world.clear(READONLY);
        world.look_at(&old);
        world.run_for(Duration::from_secs(10));
    }
    assert_eq!(world.publisher.levels().contest(), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn levels_are_right_in_the_end_and_events_are_written_once(
        seed: u64,
        steps in proptest::collection::vec((0..12_u8, 0..8_u64, 0..4_u8), 1..120),
    ) {
        let mut world = World::new(seed);
        for (step, wait, object) in steps {
            world.act(step, object);
            world.run_for(Duration::from_millis(wait * 700));
        }
        world.heal();
        for row in &CONDITIONS {
            let Some(held) = world.agent.condition(row.condition) else { continue };
            let on_node = &world.server.conditions[row.name];
            prop_assert_eq!(&on_node.status, &held.verdict.status.to_string(), "{}", row.name);
            prop_assert_eq!(&on_node.message, held.verdict.message.as_str());
        }
        prop_assert!(world.publisher.is_settled(), "until_read_back");
        prop_assert_eq!(&world.server.conditions["Ready"].status, "True", "own_only");
        prop_assert_eq!(world.moved_without_turn, 0, "transition_is_status");
        prop_assert_eq!(world.unread_writes, 0, "reads_first");
        prop_assert_eq!(world.unsaved_sends, 0, "saved_first");
        prop_assert_eq!(world.early_wakeups, 0, "wakeup_is_later");
        let counts = world.publisher.series().counts();
        prop_assert_eq!(counts.waiting, 0);
        let told: u64 = world.server.events.values().map(|event| event.count).sum();
        prop_assert!(told + counts.dropped <= world.happened, "{} > {}", told, world.happened);
        if world.crashes == 0 {
            prop_assert_eq!(told + counts.dropped, world.happened, "all_counted");
        }
        let names: Vec<_> = world.server.events.keys().collect();
        prop_assert!(names.len() <= usize::try_from(world.happened).unwrap());
    }
}

fn clearing(condition: ConditionType) -> AgentInput<'static> {
    AgentInput::ClearByHand { by: Text::from_bytes(b"alice"), condition }
}

fn has(text: &str, part: &str) -> bool {
    crate::wire::scan::has(text.as_bytes(), part.as_bytes())
}
