//! What breaks between the agent and its API server, and an agent that is killed again and again.

use core::sync::atomic::{AtomicI32, Ordering};
use core::time::Duration;
use std::sync::Arc;
use std::thread;

use fettle_tests::api::faults::{Asked, End, Fault, Phase};
use fettle_tests::api::server::shared;
use fettle_tests::clock::wait_for;
use fettle_tests::program::Agent;
use http::Method;
use rustix::process::{Pid, Signal, kill_process};

use crate::rig::{LIMIT, Rig, happenings};

const READONLY: &str = "ReadonlyFilesystem";

fn is_write(asked: &Asked) -> bool {
    asked.write.is_some()
}

fn is_status(asked: &Asked) -> bool {
    asked.path.contains("/status")
}

/// Lets `fault` happen to writes while a fault of the node is to be told, and then be told.
fn survives(name: &str, times: u64, fault: Fault) -> Vec<Duration> {
    let (mut rig, front) = Rig::behind(shared(), name);
    let agent = rig.start();
    agent.wait_following();
    rig.wait_condition(READONLY, "False");
    front.inject(Some(times), is_write, fault);
    rig.say("EXT4-fs (sda1): Remounting filesystem read-only");
    rig.say("nvme nvme0: I/O 131 QID 1 timeout, aborting");
    rig.wait_condition(READONLY, "True");
    rig.wait_events("NvmeError", 1);
    rig.wait_events("FilesystemIsReadOnly", 1);
    agent.terminate().assert_no_crash();
    let log = front.log();
    let broken = log.iter().filter(|entry| entry.fault.is_some() && is_status(&entry.asked));
    let first = broken.clone().next().map(|entry| entry.asked.after);
    let later = log.iter().filter(|entry| is_status(&entry.asked));
    let later = later.filter(|entry| Some(entry.asked.after) > first);
    later.map(|entry| entry.asked.after.saturating_sub(first.unwrap_or_default())).collect()
}

#[test]
#[ignore = "needs a Kubernetes API server"]
fn an_api_server_that_asks_to_wait_is_left_alone_as_long() {
    let fault = Fault::Refuse { code: 429, retry_after_s: Some(3) };
    let later = survives("chaos-429", 3, fault);
    assert!(later[0] >= Duration::from_secs(3), "{later:?}");
}

#[test]
#[ignore = "needs a Kubernetes API server"]
fn refused_and_lost_requests_are_sent_again() {
    survives("chaos-500", 6, Fault::refuse(500));
    survives("chaos-503", 3, Fault::refuse(503));
    survives("chaos-401", 3, Fault::refuse(401));
    survives("chaos-409", 3, Fault::refuse(409));
    survives("chaos-lost-request", 6, Fault::LoseRequest);
    survives("chaos-lost-reply", 6, Fault::LoseReply);
}

#[test]
#[ignore = "needs a Kubernetes API server"]
fn a_connection_that_swallows_everything_is_given_up() {
    survives("chaos-swallow", 2, Fault::BlackHole);
}

#[test]
#[ignore = "needs a Kubernetes API server"]
fn a_network_that_comes_back_finds_everything_written() {
    let (mut rig, front) = Rig::behind(shared(), "chaos-frozen");
    let agent = rig.start();
    agent.wait_following();
    rig.wait_condition(READONLY, "False");
    front.freeze(true);
    rig.say("EXT4-fs (sda1): Remounting filesystem read-only");
    agent.wait_log("cannot write conditions of the Node");
    front.freeze(false);
    rig.wait_condition(READONLY, "True");
    // A port that is closed, and opens again.
    front.shut();
    rig.annotate("fettle.dev/clear-condition=ReadonlyFilesystem");
    thread::sleep(Duration::from_secs(2));
    front.open();
    rig.wait_condition(READONLY, "False");
    agent.terminate().assert_no_crash();
}

#[test]
#[ignore = "needs a Kubernetes API server"]
fn a_watch_that_breaks_in_any_way_is_begun_again() {
    let (mut rig, front) = Rig::behind(shared(), "chaos-watch");
    // The last one goes on after a line that is none.
    for end in [End::Expired, End::Cut, End::HalfLine, End::Close, End::Garbage] {
        front.inject(Some(1), Asked::is_watch, Fault::Break { lines: 0, end });
    }
    let agent = rig.start();
    agent.wait_following();
    rig.say("EXT4-fs (sda1): Remounting filesystem read-only");
    rig.wait_condition(READONLY, "True");
    rig.annotate("fettle.dev/clear-condition=ReadonlyFilesystem");
    rig.wait_condition(READONLY, "False");
    let broken = || front.log().iter().filter(|entry| entry.fault.is_some()).count();
    wait_for(LIMIT, || (broken() == 5).then_some(())).expect("five watches");
    rig.say("EXT4-fs (sda1): Remounting filesystem read-only");
    rig.wait_condition(READONLY, "True");
    rig.annotate("fettle.dev/clear-condition=ReadonlyFilesystem");
    rig.wait_condition(READONLY, "False");
    agent.terminate().assert_no_crash();
}

/// Numbers that look like chance and are the same in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

#[test]
#[ignore = "needs a Kubernetes API server"]
fn a_hundred_kills_in_a_storm_lose_and_repeat_nothing() {
    let mut rig =
        Rig::new(shared(), "chaos-kills", |server| server.kubelet("chaos-kills").unwrap());
    let mut dice = Dice(7);
    let mut said = 0_u64;
    for kill in 0..100 {
        let agent = rig.start();
        for _ in 0..dice.below(4) {
            rig.say(&format!("nvme nvme{}: I/O 131 QID 1 timeout, aborting", dice.below(3)));
            said += 1;
            thread::sleep(Duration::from_millis(dice.below(60)));
        }
        if kill == 50 {
            rig.say("EXT4-fs (sda1): Remounting filesystem read-only");
        }
        thread::sleep(Duration::from_millis(dice.below(400)));
        agent.kill();
    }
    let agent = rig.start();
    agent.wait_following();
    rig.wait_condition(READONLY, "True");
    rig.end_until_told(agent, "NvmeError", said);
    rig.wait_events("FilesystemIsReadOnly", 1);
    let conditions = rig.node()["status"]["conditions"].clone();
    let types: Vec<_> =
        conditions.as_array().unwrap().iter().map(|one| one["type"].clone()).collect();
    let mut once = types.clone();
    once.dedup();
    assert_eq!(types, once);
}

/// Tells the story whose writes are numbered: two faults, one of them goes on, one is cleared.
fn story(rig: &mut Rig, start: &dyn Fn(&mut Rig) -> Agent) {
    let agent = start(rig);
    rig.say("EXT4-fs (sda1): Remounting filesystem read-only");
    rig.say("nvme nvme0: I/O 131 QID 1 timeout, aborting");
    let agent = outlive(rig, agent, start, |rig| rig.condition(READONLY)["status"] == "True");
    let agent = outlive(rig, agent, start, |rig| told(rig, "NvmeError") == 1);
    rig.say("nvme nvme0: I/O 132 QID 1 timeout, aborting");
    rig.annotate("fettle.dev/clear-condition=ReadonlyFilesystem");
    let agent = outlive(rig, agent, start, |rig| {
        let mark = &rig.node()["metadata"]["annotations"]["fettle.dev/clear-condition"];
        rig.condition(READONLY)["status"] == "False" && mark.is_null()
    });
    let agent = outlive(rig, agent, start, |rig| told(rig, "FilesystemIsNotReadOnly") == 1);
    end(agent);
    // A kill at the very end leaves what was held back to the next agent, and its end tells it.
    for _ in 0..10 {
        if told(rig, "NvmeError") == 2 {
            return;
        }
        let agent = start(rig);
        thread::sleep(Duration::from_millis(700));
        end(agent);
    }
}

/// Ends the agent, if it was not killed meanwhile.
fn end(agent: Agent) {
    let _ = kill_process(agent.pid(), Signal::TERM);
    let _ = agent.wait_end(LIMIT);
}

fn told(rig: &Rig, reason: &str) -> u64 {
    rig.events(reason).iter().map(happenings).sum()
}

/// Waits for `is`, and starts the agent again when it was killed.
fn outlive(
    rig: &mut Rig,
    mut agent: Agent,
    start: &dyn Fn(&mut Rig) -> Agent,
    is: impl Fn(&Rig) -> bool,
) -> Agent {
    for _ in 0..600 {
        if !agent.is_alive() {
            agent = start(rig);
        }
        if is(rig) {
            return agent;
        }
        thread::sleep(Duration::from_millis(50));
    }
    panic!("it never comes; the agent says:\n{}", agent.log());
}

#[test]
#[ignore = "needs a Kubernetes API server"]
fn a_kill_at_any_write_changes_nothing_in_the_end() {
    let writes = run_story("writes", None);
    println!("the story has {writes} writes");
    assert!(writes >= 8, "{writes}");
    for write in 1..=writes {
        for phase in [Phase::BeforeForward, Phase::AfterForwardBeforeReply] {
            run_story(
                &format!("kill-{write}-{}", u8::from(phase == Phase::BeforeForward)),
                Some((write, phase)),
            );
        }
    }
}

/// Runs the story, with a kill at one write, and returns how many writes it had.
fn run_story(name: &str, kill: Option<(u64, Phase)>) -> u64 {
    let (mut rig, front) = Rig::behind(shared(), &format!("story-{name}"));
    let pid = Arc::new(AtomicI32::new(0));
    if let Some((write, phase)) = kill {
        let pid = Arc::clone(&pid);
        front.on_write(write, phase, move |_| {
            let pid = Pid::from_raw(pid.load(Ordering::SeqCst)).expect("an agent runs");
            kill_process(pid, Signal::KILL).expect("it is the test's own");
            // Killed is killed before the connection is dropped.
            thread::sleep(Duration::from_millis(50));
        });
    }
    let start = |rig: &mut Rig| {
        let agent = rig.start();
        pid.store(agent.pid().as_raw_nonzero().get(), Ordering::SeqCst);
        agent
    };
    story(&mut rig, &start);
    for (reason, count) in [
        ("NvmeError", 2),
        ("FilesystemIsReadOnly", 1),
        ("FilesystemIsNotReadOnly", 1),
        ("ConditionCleared", 1),
    ] {
        assert_eq!(told(&rig, reason), count, "{reason} after {kill:?}: {:#?}", rig.events(reason));
    }
    assert_eq!(rig.condition(READONLY)["status"], "False", "{kill:?}");
    let posts = front.log().iter().filter(|entry| entry.asked.method == Method::POST).count();
    assert!(posts <= 12, "{posts} events for one story");
    front.writes()
}
