//! The agent's program against the kernel that runs here: what breaks, breaks for real.

use core::time::Duration;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;

use fettle_core::journal::{read_header, read_step};
use fettle_core::node::agent::Input;
use fettle_core::wire::kmsg::Record;
use fettle_tests::api::fake::Fake;
use fettle_tests::clock::{MovedClock, wait_for};
use fettle_tests::kmsg::{FakeLog, PATH, Voice, Witness, unique_name};
use fettle_tests::machine::{Disk, Machine, Setting};
use fettle_tests::program::{
    Agent, Ended, command, condition, condition_of, event_of, finish, standalone,
};
use http::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

// File systems.

#[test]
#[ignore = "needs root, mounts a file system and breaks it"]
fn a_read_only_file_system_is_named_within_a_second() {
    let _machine = Machine::take();
    let disk = Disk::new();
    let scratch = scratch();
    let agent = follow(scratch.path(), &[]);
    let mut witness = Witness::from_now();
    disk.break_it();
    let words = format!("EXT4-fs ({}): Remounting filesystem read-only", disk.name);
    let said = witness.wait(&words, LIMIT);
    let told =
        agent.wait_line("the condition", condition_of("ReadonlyFilesystem", "True", &disk.name));
    let late = told.at.saturating_duration_since(said.at);
    println!("from the kernel's line to the finding: {late:?}");
    assert!(late < Duration::from_secs(1), "{late:?} after the kernel's line");
    assert_eq!(told.value["transition"], true, "{}", told.text);
    agent.wait_line("the event", event_of("Ext4Error", &disk.name));
    agent.terminate();
}

#[test]
#[ignore = "needs root, mounts a file system and breaks it"]
fn a_fault_before_the_start_is_told_at_the_start() {
    let _machine = Machine::take();
    let disk = Disk::new();
    let mut witness = Witness::from_now();
    disk.break_it();
    let _ = witness.wait("Remounting filesystem read-only", LIMIT);
    let scratch = scratch();
    let agent = follow(scratch.path(), &[]);
    agent.wait_line("it", condition_of("ReadonlyFilesystem", "True", &disk.name));
    for name in ["KernelDeadlock", "VerityCorruption", "GpuFallenOffBus"] {
        agent.wait_line(name, condition(name, "False"));
    }
    agent.terminate();
}

#[test]
#[ignore = "needs root, mounts a file system and breaks it"]
fn a_volume_that_is_read_only_is_an_event_and_no_condition() {
    let _machine = Machine::take();
    let name = unique_name();
    let place = format!("/var/lib/kubelet/pods/{name}/volumes/kubernetes.io~csi/v/mount");
    let disk = Disk::at(Path::new(&place));
    let scratch = scratch();
    let agent = follow(scratch.path(), &[]);
    disk.break_it();
    agent.wait_line("the event", event_of("VolumeFilesystemReadOnly", &disk.name));
    let ended = agent.terminate();
    let is_true = condition("ReadonlyFilesystem", "True");
    assert!(!ended.values().iter().any(|line| is_true(line)), "{}", ended.printed());
}

#[test]
#[ignore = "needs root, mounts a file system and breaks it"]
fn a_file_system_that_was_repaired_or_unmounted_ends_the_condition_with_proof() {
    for repair in [true, false] {
        let _machine = Machine::take();
        let mut disk = Disk::new();
        let (one, other) = (scratch(), scratch());
        let proof = follow(one.path(), &["--clear", "ReadonlyFilesystem=proof"]);
        let held = follow(other.path(), &["--clear", "ReadonlyFilesystem=held"]);
        disk.break_it();
        let name = disk.name.clone();
        let is_true = condition_of("ReadonlyFilesystem", "True", &name);
        let raised = proof.wait_line("the condition", &is_true);
        held.wait_line("the condition", &is_true);
        disk.unmount();
        if repair {
            disk.repair();
            disk.mount();
        }
        let is_false = condition("ReadonlyFilesystem", "False");
        let line = proof.wait_line_after(&raised, "the end", is_false);
        println!("repaired: {repair}: over {:?} after it was set", line.at - raised.at);
        proof.terminate();
        let ended = held.terminate();
        let last = last_of(&ended, "ReadonlyFilesystem");
        assert_eq!(last["status"], "True", "repaired: {repair}: {last}");
    }
}

// Tasks that hang.

#[test]
#[ignore = "needs root, freezes a file system and lowers the hung task limit"]
fn a_blocked_kubelet_is_a_deadlock_until_it_is_proven_over() {
    let _machine = Machine::take();
    let _settings = hung_task_settings();
    let (one, other) = (scratch(), scratch());
    let proof = follow(one.path(), &["--clear", "KernelDeadlock=proof"]);
    let held = follow(other.path(), &["--clear", "KernelDeadlock=held"]);
    let mut witness = Witness::from_now();
    let mut disk = Disk::new().freeze();
    let task = format!("kubelet:{}", disk.block("kubelet"));
    let said = witness.wait(&format!("INFO: task {task} blocked"), HUNG_LIMIT);
    for agent in [&held, &proof] {
        let told = agent.wait_line("it", condition_of("KernelDeadlock", "True", &task));
        println!("from the kernel's line: {:?}", told.at.saturating_duration_since(said.at));
        agent.wait_line("the event", event_of("TaskHung", &task));
    }
    let raised = proof.wait_line("it", condition_of("KernelDeadlock", "True", &task));
    disk.thaw();
    let over = proof.wait_line_after(&raised, "the end", condition("KernelDeadlock", "False"));
    println!("over {:?} after it was set", over.at - raised.at);
    proof.terminate();
    let ended = held.terminate();
    assert_eq!(last_of(&ended, "KernelDeadlock")["status"], "True", "{}", ended.printed());
}

#[test]
#[ignore = "needs root, freezes a file system and lowers the hung task limit"]
fn a_task_whose_name_only_begins_so_is_an_event_and_no_condition() {
    let _machine = Machine::take();
    let _settings = hung_task_settings();
    let scratch = scratch();
    let agent = follow(scratch.path(), &[]);
    let mut disk = Disk::new().freeze();
    let tasks = ["kubelet-foo", "kubelet2", "my kubelet"]
        .map(|name| format!("{name}:{}", disk.block(name)));
    for task in &tasks {
        agent.wait_line(task, event_of("TaskHung", task));
    }
    disk.thaw();
    let ended = agent.terminate();
    let is_true = condition("KernelDeadlock", "True");
    assert!(!ended.values().iter().any(|line| is_true(line)), "{}", ended.printed());
}

// Records.

#[test]
#[ignore = "needs root, writes to the kernel log"]
fn a_record_of_user_space_raises_nothing_unless_trusted() {
    let _machine = Machine::take();
    let name = unique_name();
    let (one, other) = (scratch(), scratch());
    let agent = follow(one.path(), &[]);
    let trusting = follow(other.path(), &["--trust-userspace-kmsg"]);
    let mut voice = Voice::new();
    voice.say(&format!("EXT4-fs ({name}): Remounting filesystem read-only"));
    voice.say_as(3, &format!("EXT4-fs error (device {name}): ext4_lookup"));
    trusting.wait_line("it", condition_of("ReadonlyFilesystem", "True", &name));
    trusting.wait_line("it", event_of("Ext4Error", &name));
    // A record of the kernel's comes after them: what it raises shows that they raised nothing.
    let disk = Disk::new();
    disk.break_it();
    agent.wait_line("the kernel's", condition_of("ReadonlyFilesystem", "True", &disk.name));
    trusting.terminate();
    let ended = agent.terminate();
    assert!(!ended.printed().contains(&name), "{}", ended.printed());
    assert!(ended.summary()["userspace"].as_u64() >= Some(2), "{}", ended.summary());
}

#[test]
#[ignore = "needs root, writes to the kernel log"]
fn the_first_record_after_following_is_seen() {
    for _ in 0..10 {
        let _machine = Machine::take();
        let name = unique_name();
        let scratch = scratch();
        let agent = follow(scratch.path(), &["--trust-userspace-kmsg"]);
        let mut voice = Voice::new();
        voice.say(&format!("EXT4-fs warning (device {name}): test"));
        voice.say(&format!("EXT4-fs error (device {name}): test"));
        agent.wait_line("the warning", event_of("Ext4Warning", &name));
        agent.wait_line("the error", event_of("Ext4Error", &name));
        agent.terminate();
    }
}

#[test]
#[ignore = "needs root, mounts a file system and breaks it"]
fn a_restart_repeats_nothing_however_it_ended() {
    for signal in [Signal::TERM, Signal::KILL] {
        let _machine = Machine::take();
        let disk = Disk::new();
        let scratch = scratch();
        let agent = follow(scratch.path(), &[]);
        disk.break_it();
        agent.wait_line("the event", event_of("Ext4Error", &disk.name));
        agent.wait_line("it", condition_of("ReadonlyFilesystem", "True", &disk.name));
        if signal == Signal::TERM {
            agent.terminate();
        } else {
            sleep(SAVED);
            agent.kill();
        }
        let agent = follow(scratch.path(), &[]);
        let level =
            agent.wait_line("what holds", condition_of("ReadonlyFilesystem", "True", &disk.name));
        assert_eq!(level.value["transition"], false, "{signal:?}: {}", level.text);
        let ended = agent.terminate();
        let repeated = event_of("Ext4Error", &disk.name);
        assert!(!ended.values().iter().any(|line| repeated(line)), "{}", ended.printed());
    }
}

#[test]
#[ignore = "needs root, mounts a file system and breaks it"]
fn what_happens_while_no_agent_runs_is_told_once_by_the_next() {
    let _machine = Machine::take();
    let disk = Disk::new();
    let scratch = scratch();
    follow(scratch.path(), &[]).terminate();
    let mut witness = Witness::from_now();
    disk.break_it();
    let _ = witness.wait("Remounting filesystem read-only", LIMIT);
    for (start, events) in [("first", 1), ("second", 0)] {
        let agent = follow(scratch.path(), &[]);
        agent.wait_line("it", condition_of("ReadonlyFilesystem", "True", &disk.name));
        let ended = agent.terminate();
        let is_event = event_of("Ext4Error", &disk.name);
        let seen = ended.values().iter().filter(|line| is_event(line)).count();
        assert_eq!(seen, events, "{start}: {}", ended.printed());
    }
}

#[test]
#[ignore = "needs root, mounts a file system and breaks it"]
fn a_garbage_state_is_ignored_and_the_ring_is_read_again() {
    let _machine = Machine::take();
    let disk = Disk::new();
    let scratch = scratch();
    let agent = follow(scratch.path(), &[]);
    disk.break_it();
    agent.wait_line("the event", event_of("Ext4Error", &disk.name));
    agent.terminate();
    for entry in fs::read_dir(scratch.path()).expect("the state is a directory") {
        let path = entry.expect("it can be listed").path();
        if path.is_file() {
            fs::write(path, b"\x07garbage\0\xff").expect("the directory is the test's");
        }
    }
    let agent = follow(scratch.path(), &[]);
    agent.wait_line("the event again", event_of("Ext4Error", &disk.name));
    let ended = agent.terminate();
    let directory = scratch.path().display().to_string();
    assert!(ended.log.contains(&directory), "no warning names the state: {}", ended.log);
}

// Floods.

#[test]
#[ignore = "needs root, floods the kernel log"]
fn a_flood_is_seen_as_it_comes() {
    let _machine = Machine::take();
    let (flood, agent) = Flood::start(&[]);
    flood.pour();
    let (ended, peak_kib) = flood.finish(agent);
    let seen = flood.check_counts(&ended);
    let lost = number(ended.summary(), "lost");
    println!("running: {seen} of {MATCHING} seen, {lost} records lost, peak {peak_kib} KiB");
    assert!(MATCHING - seen <= lost, "{seen} seen, but only {lost} records lost");
    assert!(peak_kib < PEAK_KIB, "{peak_kib} KiB");
    flood.check_replay(&ended);
}

#[test]
#[ignore = "needs root, floods the kernel log"]
fn a_flood_while_it_sleeps_costs_only_what_the_kernel_overwrote() {
    let _machine = Machine::take();
    let (flood, agent) = Flood::start(&[]);
    agent.stop();
    flood.pour();
    let before = flood.still_there();
    agent.signal(Signal::CONT);
    let (ended, peak_kib) = flood.finish(agent);
    let after = flood.still_there();
    let seen = flood.check_counts(&ended);
    let lost = number(ended.summary(), "lost");
    println!("stopped: {seen} seen of {before} to {after} left, {lost} lost, peak {peak_kib} KiB");
    // The newest record may show only once another follows it.
    assert!((after..=before + 1).contains(&seen), "{seen} seen, {before} to {after} were left");
    assert!(number(ended.summary(), "overruns") >= 1, "{}", ended.summary());
    assert!(lost > RECORDS / 2, "only {lost} lost: this ring is too large for the test");
    assert!(peak_kib < PEAK_KIB, "{peak_kib} KiB");
    flood.check_replay(&ended);
}

#[test]
#[ignore = "needs root, floods the kernel log"]
fn a_full_journal_stays_bounded() {
    const LIMIT_BYTES: u64 = 256 * 1024;
    let _machine = Machine::take();
    let (flood, agent) = Flood::start(&["--journal-max", &LIMIT_BYTES.to_string()]);
    flood.pour();
    drop(flood.finish(agent));
    let files = fs::read_dir(flood.scratch.path()).expect("the directory is the test's");
    let journals: Vec<u64> = files
        .map(|entry| entry.expect("it can be listed"))
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("journal"))
        .map(|entry| entry.metadata().expect("it is there").len())
        .collect();
    println!("journals of {journals:?} bytes");
    assert!(!journals.is_empty());
    // A file may pass its limit by the frame that it was in: at most a whole agent.
    let most = 2 * (LIMIT_BYTES + 256 * 1024);
    assert!(journals.iter().sum::<u64>() <= most, "{journals:?}");
}

// Input.

#[test]
#[ignore = "takes long: a line of four GiB"]
fn a_line_of_four_gib_is_read_in_bounded_memory() {
    let mut agent = Agent::start(command(&["classify", "-o", "json", "-"]).stdin(Stdio::piped()));
    let mut stdin = agent.take_stdin();
    let chunk = vec![b'x'; 1 << 20];
    for _ in 0..4096 {
        stdin.write_all(&chunk).expect("the agent reads on");
    }
    stdin.write_all(b"\nEXT4-fs (sda1): Remounting filesystem read-only\n").expect("as before");
    let peak_kib = agent.peak_kib();
    drop(stdin);
    let ended = agent.wait_end(LIMIT);
    let omitted = (4_u64 << 30) - 8192;
    assert_eq!(ended.values()[0]["omittedBytes"], omitted, "{}", ended.values()[0]);
    println!("four GiB: peak {peak_kib} KiB");
    assert!(peak_kib < PEAK_KIB, "{peak_kib} KiB");
}

// Helpers.

/// 10,000 records of user space's at once; every tenth is a finding of its own.
struct Flood {
    marker: String,
    scratch: TempDir,
    /// The oldest record there was before the agent started, and after.
    oldest: (u64, u64),
}

impl Flood {
    /// Starts an agent that takes these records for the kernel's and keeps a journal.
    fn start(flags: &[&str]) -> (Self, Agent) {
        let scratch = scratch();
        let mut command = standalone(&scratch.path().join("state"), Path::new(PATH));
        command.arg("--trust-userspace-kmsg").args(flags);
        command.arg("--journal").arg(scratch.path().join("journal"));
        let before = oldest();
        let agent = Agent::start(&mut command);
        agent.wait_following();
        (Self { marker: unique_name(), scratch, oldest: (before, oldest()) }, agent)
    }

    fn pour(&self) {
        let mut voice = Voice::new();
        let marker = &self.marker;
        for n in 0..RECORDS {
            if n % (RECORDS / MATCHING) == 0 {
                voice.say(&format!("{FINDING}{marker}{n} to become free. Usage count = 1"));
            } else {
                voice.say(&format!("{marker}: record {n} of a flood that means nothing at all"));
            }
        }
    }

    /// Returns how many of the findings a reader that comes only now still finds.
    fn still_there(&self) -> u64 {
        let words = format!("{FINDING}{}", self.marker);
        let found = Witness::from_oldest().filter(|record| record.text.starts_with(&words));
        u64::try_from(found.count()).expect("the ring is small")
    }

    /// Waits until the agent has read all, and returns what it said and the most that it used.
    fn finish(&self, agent: Agent) -> (Ended, u64) {
        let last = format!("{}last", self.marker);
        Voice::new().say(&format!("EXT4-fs error (device {last}): ext4_lookup"));
        agent.wait_line("the last record", event_of("Ext4Error", &last));
        let peak_kib = agent.peak_kib();
        (agent.terminate(), peak_kib)
    }

    /// Checks every count by the sequence numbers, and returns how many findings were seen.
    fn check_counts(&self, ended: &Ended) -> u64 {
        let read = self.records_read();
        let numbers: Vec<u64> = read.iter().map(|(number, _)| *number).collect();
        let (first, last) = (numbers[0], numbers[numbers.len() - 1]);
        let summary = ended.summary();
        let (seen, lost) = (number(summary, "records"), number(summary, "lost"));
        println!("records {first} to {last}: {seen} seen + {lost} lost");
        assert_eq!(seen, u64::try_from(read.len()).expect("it is small"), "{summary}");
        assert_eq!(seen + lost, last - first + 1, "{summary}");
        assert!((self.oldest.0..=self.oldest.1).contains(&first), "{first}: {:?}", self.oldest);
        let told =
            ended.values().iter().filter(|line| line["kind"] == "lost").fold(0, |sum, line| {
                assert_eq!(number(line, "total"), sum + number(line, "records"), "{line}");
                number(line, "total")
            });
        assert_eq!(told, lost, "the lines about losses do not add up");
        let words = format!("{FINDING}{}", self.marker);
        let matching = read.iter().filter(|(_, text)| text.starts_with(&words)).count();
        let findings = number(&summary["findings"], "UnregisterNetDevice");
        assert_eq!(u64::try_from(matching).ok(), Some(findings), "{summary}");
        let is_event = |line: &&&Value| line["name"] == "UnregisterNetDevice";
        let written: u64 =
            ended.values().iter().filter(is_event).map(|line| number(line, "count")).sum();
        assert_eq!(written, findings, "the events do not add up");
        findings
    }

    /// Returns number and text of each record that the agent read, as its journal has them.
    fn records_read(&self) -> Vec<(u64, String)> {
        let journal = fs::read(self.journal()).expect("the run wrote a journal");
        let mut frames = journal.split(|byte| *byte == 0).map(<[u8]>::to_vec);
        read_header(&mut frames.next().expect("it has a header")).expect("it is this version's");
        assert!(frames.next().is_some(), "it has no agent");
        let mut records = Vec::new();
        for mut frame in frames.filter(|frame| !frame.is_empty()) {
            let step = read_step(&mut frame).expect("the journal is whole");
            if let Input::Record(bytes) = step.input {
                let record = Record::parse(bytes).expect("the kernel wrote it");
                let text = String::from_utf8_lossy(record.text).into_owned();
                records.push((record.sequence, text));
            }
        }
        records
    }

    /// Checks that a replay gives what the run gave, byte for byte, whole or cut.
    fn check_replay(&self, ended: &Ended) {
        let printed = ended.printed();
        let whole = fs::read(self.journal()).expect("the run wrote a journal");
        assert!(replay(&self.journal()) == printed, "the replay is another");
        let cut = self.scratch.path().join("cut");
        for n in 0..CUTS {
            // An odd number of bytes more each time, so that cuts fall anywhere in a frame.
            let length = (whole.len() / CUTS * n + n).min(whole.len());
            fs::write(&cut, &whole[..length]).expect("the directory is the test's");
            let part = replay(&cut);
            assert!(printed.starts_with(&part), "cut at {length}: it is no part of the run");
        }
    }

    fn journal(&self) -> std::path::PathBuf {
        self.scratch.path().join("journal")
    }
}

fn scratch() -> TempDir {
    TempDir::with_prefix("fettle-test-").expect("there is room for temporary files")
}

/// Starts an agent on the kernel's log, and waits until it has read what is there.
fn follow(state: &Path, flags: &[&str]) -> Agent {
    let agent = Agent::start(standalone(state, Path::new(PATH)).args(flags));
    agent.wait_following();
    agent
}

/// Returns what a replay of `journal` prints; how it ends is the agent's to say.
fn replay(journal: &Path) -> String {
    let ended = finish(&["replay", "-o", "json", journal.to_str().expect("it is ASCII")], b"");
    ended.assert_no_crash();
    ended.printed()
}

/// Makes the kernel report a hung task within seconds, however many it has reported before.
fn hung_task_settings() -> [Setting; 2] {
    [
        Setting::set("/proc/sys/kernel/hung_task_warnings", "1000"),
        Setting::set("/proc/sys/kernel/hung_task_timeout_secs", "4"),
    ]
}

/// Returns the last line about condition `name`.
fn last_of(ended: &Ended, name: &str) -> Value {
    let values = ended.values();
    let last = values.iter().rev().find(|line| line["kind"] == "condition" && line["name"] == name);
    (*last.expect("there was a result")).clone()
}

/// Returns the number of the oldest record in the log.
fn oldest() -> u64 {
    Witness::from_oldest().next().expect("the log is not empty").sequence
}

fn number(line: &Value, key: &str) -> u64 {
    line[key].as_u64().unwrap_or_else(|| panic!("{key} is no number in {line}"))
}

/// What a record of the flood that is a finding begins with.
const FINDING: &str = "unregister_netdevice: waiting for ";

const RECORDS: u64 = 10_000;
const MATCHING: u64 = 1_000;

/// Places at which a journal is cut.
const CUTS: usize = 50;

/// Most memory that an agent may use, in KiB.
const PEAK_KIB: u64 = 16 * 1024;

const LIMIT: Duration = Duration::from_secs(20);

/// The report of a hung task comes within two of its limits.
const HUNG_LIMIT: Duration = Duration::from_secs(30);

/// The state is saved right after what was told; a busy machine may be late.
const SAVED: Duration = Duration::from_millis(500);

// The clock.

#[test]
#[ignore = "needs root, moves the wall clock by an hour and back"]
fn a_clock_that_jumps_moves_no_transition_and_repeats_nothing() {
    let _machine = Machine::take();
    let fake = Fake::start().expect("a port is to be had");
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {
        "name": "n1", "labels": {"kubernetes.io/hostname": "n1"}}});
    let (code, _) = fake.ask(&Method::POST, "/api/v1/nodes", "application/json", &node);
    assert_eq!(code, 201);
    let scratch = scratch();
    let kubeconfig = scratch.path().join("kubeconfig");
    fs::write(&kubeconfig, fake.kubeconfig(None)).expect("the directory is the test's");
    let mut log = FakeLog::new();
    let mut command = command(&["run", "--node-name", "n1", "--metrics-listen", "127.0.0.1:0"]);
    command.arg("--state-dir").arg(scratch.path().join("state"));
    command.arg("--kubeconfig").arg(&kubeconfig).arg("--kmsg").arg(log.path());
    let agent = Agent::start(&mut command);
    let condition = || {
        let (_, node) = fake.ask(&Method::GET, "/api/v1/nodes/n1", "", &Value::Null);
        let conditions = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.into_iter().find(|one| one["type"] == "ReadonlyFilesystem").unwrap_or_default()
    };
    let wait = |words: &str| {
        let has = |condition: &Value| condition["message"].to_string().contains(words);
        wait_for(LIMIT, || Some(condition()).filter(has)).unwrap_or_else(|| panic!("{words}"))
    };
    log.write("3,1,1,-;EXT4-fs (sda1): Remounting filesystem read-only");
    let before = wait("sda1");
    let moved = MovedClock::forward(3600);
    log.write("3,2,1,-;EXT4-fs (sdb1): Remounting filesystem read-only");
    let during = wait("sdb1");
    drop(moved);
    log.write("3,3,1,-;EXT4-fs (sdc1): Remounting filesystem read-only");
    let after = wait("sdc1");
    let transition = |condition: &Value| condition["lastTransitionTime"].clone();
    assert_eq!(transition(&during), transition(&before));
    assert_eq!(transition(&after), transition(&before));
    assert_ne!(during["lastHeartbeatTime"], after["lastHeartbeatTime"]);
    let ended = agent.terminate();
    ended.assert_no_crash();
    let path = "/apis/events.k8s.io/v1/namespaces/default/events";
    let (_, events) = fake.ask(&Method::GET, path, "", &Value::Null);
    let told = events["items"].as_array().expect("a list").iter();
    let told = told.filter(|event| event["reason"] == "FilesystemIsReadOnly").count();
    assert_eq!(told, 1);
}
