//! The checks, by what their readings lead to.

#![allow(clippy::disallowed_methods, reason = "tests may panic")]

use std::string::{String, ToString};
use std::vec::Vec;

use super::*;
use crate::node::reading::{
    Clock, Drive, FileChange, FileSystem, Layer, ProtectedFile, Unreadable,
};

#[test]
fn a_condition_has_no_verdict_before_its_first_result() {
    let node = Node::new(ReadingKind::FileSystems);
    assert_eq!(node.checks.judge(ConditionType::DiskUsageHigh, false), None);
}

#[test]
fn the_fullest_objects_are_named_and_the_rest_is_counted() {
    let mut node = Node::new(ReadingKind::FileSystems);
    let names: Vec<String> = (0..8).map(|n| std::format!("/m{n}")).collect();
    let full: Vec<_> = names.iter().map(|name| file_system(name, 90)).collect();
    let verdict = node.run(&full, Outcome::Complete).unwrap();
    assert_eq!((verdict.status, verdict.reason), (Status::True, Reason::Problem));
    let message = verdict.message.to_string();
    assert!(message.starts_with("/m0: 90 % of its space is used"), "{message}");
    assert!(message.ends_with("and 2 more"), "{message}");

    let verdict = node.run(&[file_system("/m0", 83)], Outcome::Complete).unwrap();
    assert_eq!(verdict.status, Status::True, "the others are gone, this one is not low enough");
    let verdict = node.run(&[file_system("/m0", 81)], Outcome::Complete).unwrap();
    assert_eq!((verdict.status, verdict.reason), (Status::False, Reason::Healthy));
    assert_eq!(node.checks.subjects.len(), 0);
}

#[test]
fn more_objects_than_fit_are_still_a_problem() {
    let mut node = Node::new(ReadingKind::FileSystems);
    let names: Vec<String> = (0..SUBJECTS_MAX + 50).map(|n| std::format!("/m{n}")).collect();
    let full: Vec<_> = names.iter().map(|name| file_system(name, 90)).collect();
    let verdict = node.run(&full, Outcome::Complete).unwrap();
    let want = std::format!("and {} more", SUBJECTS_MAX + 50 - SUBJECTS_SHOWN_MAX);
    assert!(verdict.message.as_str().ends_with(&want), "{}", verdict.message);
    let verdict = node.run(&[], Outcome::Complete).unwrap();
    assert_eq!(verdict.status, Status::False);
}

#[test]
fn what_cannot_be_read_is_unknown_and_never_healthy() {
    let mut node = Node::new(ReadingKind::FileSystems);
    let hung = Reading::Unreadable(Unreadable { object: "/mnt", why: "did not answer in 5 s" });
    let verdict = node.run(&[file_system("/", 10), hung], Outcome::Complete).unwrap();
    assert_eq!((verdict.status, verdict.reason), (Status::Unknown, Reason::CheckFailed));
    assert_eq!(verdict.message.as_str(), "/mnt: did not answer in 5 s");
    assert_eq!(node.checks.objects(ConditionType::DiskUsageHigh).count(), 0);
    let verdict = node.run(&[file_system("/", 95), hung], Outcome::Complete).unwrap();
    assert_eq!(verdict.status, Status::True, "one that is full outweighs one that is unknown");
    let objects: Vec<_> = node.checks.objects(ConditionType::DiskUsageHigh).collect();
    assert_eq!(objects, ["/"], "the one that is unknown is in no trouble");
    let why = Text::from_bytes(b"cannot read the mount table");
    let verdict = node.run(&[], Outcome::Failed { why }).unwrap();
    assert_eq!(verdict.status, Status::True, "a failed run clears nothing");
}

#[test]
fn a_failed_first_run_is_unknown_and_nothing_there_is_not_applicable() {
    let mut node = Node::new(ReadingKind::Clock);
    let why = Text::from_bytes(b"not permitted");
    let verdict = node.run(&[], Outcome::Failed { why }).unwrap();
    assert_eq!((verdict.status, verdict.reason), (Status::Unknown, Reason::CheckFailed));
    assert_eq!(node.run(&[], Outcome::NotApplicable), None);
    assert!(node.checks.is_not_applicable(ReadingKind::Clock));
}

#[test]
fn a_drive_that_vanishes_is_a_failure_until_it_is_back() {
    let mut node = Node::new(ReadingKind::Disks);
    let drive = Reading::Drive(GOOD);
    assert_eq!(node.run(&[drive], Outcome::Complete).unwrap().status, Status::False);
    let verdict = node.run(&[], Outcome::Complete).unwrap();
    assert_eq!((verdict.status, verdict.reason), (Status::True, Reason::DriveGone));
    assert_eq!(verdict.message.as_str(), "nvme0: was there and is gone");
    assert_eq!(node.run(&[], Outcome::Complete).unwrap().status, Status::True);
    assert_eq!(node.run(&[drive], Outcome::Complete).unwrap().status, Status::False);
}

#[test]
fn only_a_person_clears_a_tampered_node() {
    let mut node = Node::new(ReadingKind::ProtectedFiles);
    let change = FileChange::Changed;
    let changed = Reading::ProtectedFile(ProtectedFile { path: "/var/lib/x", change });
    assert_eq!(node.run(&[changed], Outcome::Complete).unwrap().status, Status::True);
    assert_eq!(node.run(&[], Outcome::Complete).unwrap().status, Status::True);
    node.checks.clear(ConditionType::NodeTampered);
    assert_eq!(node.run(&[], Outcome::Complete).unwrap().status, Status::False);
}

#[test]
fn a_sealed_layer_that_was_swapped_stays_tampered_after_it_is_swapped_back() {
    let mut node = Node::new(ReadingKind::SealedLayers);
    let layer = |enforced| {
        Reading::Layer(Layer { name: "root", enforced, recorded: Some("aa"), corrupted: false })
    };
    assert_eq!(node.run(&[layer("bb")], Outcome::Complete).unwrap().status, Status::True);
    assert_eq!(node.run(&[layer("aa")], Outcome::Complete).unwrap().status, Status::True);
}

#[test]
fn a_check_that_hangs_is_not_started_again() {
    let mut node = Node::new(ReadingKind::Clock);
    assert_eq!(node.start(), Some(ReadingKind::Clock));
    node.now = node.now + Duration::from_secs(600);
    assert_eq!(node.start(), None);
    assert_eq!(node.checks.next_wakeup(), None);
    node.checks.end(node.now, ReadingKind::Clock, Outcome::Complete);
    assert_eq!(node.start(), Some(ReadingKind::Clock));
}

#[test]
fn a_condition_that_is_turned_off_schedules_nothing() {
    let mut schedule = Schedule { probes: [true; ReadingKind::COUNT], ..Schedule::default() };
    assert_eq!(schedule.interval(ReadingKind::Disks), Some(Duration::from_secs(300)));
    assert_eq!(schedule.interval(ReadingKind::KernelLog), None);
    for condition in [ConditionType::DisksFailure, ConditionType::DiskTemperatureHigh] {
        schedule.enabled[condition.index()] = false;
    }
    assert_eq!(schedule.interval(ReadingKind::Disks), Some(Duration::from_secs(1800)));
    schedule.enabled[ConditionType::DiskWearHigh.index()] = false;
    assert_eq!(schedule.interval(ReadingKind::Disks), None);
}

#[test]
fn a_storm_of_one_condition_makes_no_other_one_blind() {
    let (now, limits) = (Instant::from_millis(0), Limits::default());
    let mut checks = Checks::new();
    let names: Vec<String> = (0..400).map(|n| std::format!("/var/f{n}")).collect();
    for path in &names {
        let file = ProtectedFile { path, change: FileChange::Added };
        checks.note_reading(
            now,
            ReadingKind::ProtectedFiles,
            &Reading::ProtectedFile(file),
            &limits,
        );
    }
    let hung = Reading::Unreadable(Unreadable { object: "/mnt", why: "no answer" });
    checks.note_reading(now, ReadingKind::FileSystems, &hung, &limits);
    checks.end(now, ReadingKind::ProtectedFiles, Outcome::Complete);
    checks.end(now, ReadingKind::FileSystems, Outcome::Complete);
    let status = |condition| checks.judge(condition, false).map(|verdict| verdict.status);
    assert_eq!(status(ConditionType::NodeTampered), Some(Status::True));
    assert_eq!(status(ConditionType::DiskUsageHigh), Some(Status::Unknown));
    let verdict = checks.judge(ConditionType::NodeTampered, false).unwrap();
    let more = 400 - SUBJECTS_SHOWN_MAX;
    assert!(verdict.message.as_str().ends_with(&std::format!("and {more} more")));
}

#[test]
fn more_unknown_objects_than_fit_are_unknown_and_not_well() {
    let mut node = Node::new(ReadingKind::FileSystems);
    let names: Vec<String> = (0..100).map(|n| std::format!("/m{n}")).collect();
    let hung: Vec<_> = names
        .iter()
        .map(|object| Reading::Unreadable(Unreadable { object, why: "no answer" }))
        .collect();
    let verdict = node.run(&hung, Outcome::Complete).unwrap();
    assert_eq!(verdict.status, Status::Unknown);
    let want = std::format!("and {} more", 100 - SUBJECTS_SHOWN_MAX);
    assert!(verdict.message.as_str().ends_with(&want), "{}", verdict.message);
}

#[test]
fn a_file_that_is_gone_after_a_restart_is_missed() {
    use crate::node::reading::FileAge;
    let mut node = Node::new(ReadingKind::FileAges);
    let file = FileAge { path: "nodes.json", age_s: Some(1), age_max_s: 300 };
    let verdict = node.run(&[Reading::FileAge(file)], Outcome::Complete).unwrap();
    assert_eq!(verdict.status, Status::False);
    // The probe of a new process has not seen it.
    let verdict = node.run(&[], Outcome::NotApplicable).unwrap();
    assert_eq!(verdict.status, Status::True);
    assert_eq!(verdict.message.as_str(), "nodes.json: was there and is gone");
    let verdict = node.run(&[Reading::FileAge(file)], Outcome::Complete).unwrap();
    assert_eq!(verdict.status, Status::False);
}

#[test]
fn what_passed_while_no_agent_ran_makes_no_check_stale() {
    let mut node = Node::new(ReadingKind::Clock);
    let clock = Clock { unsynchronized: false, max_error_us: 0, estimated_error_us: 0 };
    let _ = node.run(&[Reading::Clock(clock)], Outcome::Complete);
    node.checks.schedule(node.now, &node.schedule);
    assert_eq!(node.checks.stale(node.now, &node.schedule), None);
    let later = node.now + Duration::from_secs(300);
    assert_eq!(node.checks.stale(later, &node.schedule), Some(ReadingKind::Clock));
}

#[test]
fn a_clock_is_judged_without_a_name() {
    let mut node = Node::new(ReadingKind::Clock);
    let clock =
        Clock { unsynchronized: true, max_error_us: 16_000_000, estimated_error_us: 16_000_000 };
    let verdict = node.run(&[Reading::Clock(clock)], Outcome::Complete).unwrap();
    let message = verdict.message.to_string();
    assert!(message.contains("nothing has corrected the clock for about 8.9 h"), "{message}");
}

const GOOD: Drive<'static> = Drive {
    name: "nvme0",
    serial: "S1",
    critical_warning: 0,
    temperature_celsius: 40,
    temperature_limit_celsius: Some(80),
    percentage_used: 3,
    spare_pct: 98,
    spare_threshold_pct: 10,
};

fn file_system(mount_point: &str, used_bytes: u64) -> Reading<'_> {
    let system =
        FileSystem { mount_point, used_bytes, usable_bytes: 100, inodes_used: 0, inodes: 0 };
    Reading::FileSystem(system)
}

/// Checks of one kind, and what their first condition is.
struct Node {
    checks: Checks,
    schedule: Schedule,
    kind: ReadingKind,
    now: Instant,
}

impl Node {
    fn new(kind: ReadingKind) -> Self {
        let mut schedule = Schedule::default();
        schedule.probes[kind.index()] = true;
        let now = Instant::from_millis(0);
        let mut checks = Checks::new();
        checks.schedule(now, &schedule);
        Self { checks, schedule, kind, now }
    }

    fn start(&mut self) -> Option<ReadingKind> {
        self.checks.start_due(self.now, &self.schedule)
    }

    fn run(&mut self, readings: &[Reading<'_>], outcome: Outcome) -> Option<Verdict> {
        assert_eq!(self.start(), Some(self.kind));
        for reading in readings {
            self.checks.note_reading(self.now, self.kind, reading, &Limits::default());
        }
        self.checks.end(self.now, self.kind, outcome);
        self.now = self.now + Duration::from_secs(86_400);
        self.checks.judge(rows(self.kind).next().unwrap().condition, false)
    }
}
