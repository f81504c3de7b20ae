//! The agent's program against an API server that is not there, not itself, or full of nonsense.

use core::time::Duration;
use std::fs;
use std::thread::sleep;

use fettle_tests::api::faults::{Asked, End, Fault};
use fettle_tests::clock::{now, wait_for};
use fettle_tests::pages::{address, get};
use http::Method;
use serde_json::{Value, json};

use crate::rig::{LIMIT, NAME, Rig};

const READONLY: &str = "ReadonlyFilesystem";
const REMOUNT: &str = "EXT4-fs (sda1): Remounting filesystem read-only";

#[test]
fn a_token_that_expires_and_is_rotated_is_used_and_never_shown() {
    let mut rig = Rig::with_node();
    let token = rig.path().join("token");
    let mut kubeconfig: Value = serde_json::from_str(&rig.front.kubeconfig(None)).unwrap();
    kubeconfig["users"][0]["user"]["tokenFile"] = json!(token);
    fs::write(rig.kubeconfig(), kubeconfig.to_string()).unwrap();
    fs::write(&token, "first-secret").unwrap();
    rig.fake.set_tokens(Some(["first-secret"]));
    let agent = rig.start();
    rig.wait_condition(&agent, READONLY, "False");
    rig.fake.set_tokens(Some(["second-secret"]));
    rig.say(REMOUNT);
    agent.wait_log("401 Unauthorized");
    fs::write(&token, "second-secret").unwrap();
    let rotated = now();
    rig.wait_condition(&agent, READONLY, "True");
    assert!(rotated.elapsed() < Duration::from_secs(10), "{:?}", rotated.elapsed());
    let ended = agent.terminate();
    ended.assert_no_crash();
    assert!(!ended.log.contains("-secret"), "{}", ended.log);
    assert!(!ended.printed().contains("-secret"));
    assert_eq!(ended.log.matches("cannot write conditions of the Node").count(), 1);
}

#[test]
fn a_kubeconfig_that_cannot_be_used_is_told_once_and_read_again() {
    let certificate = "/nonexistent/client.crt";
    let missing = |rig: &Rig| {
        let mut kubeconfig: Value = serde_json::from_str(&rig.front.kubeconfig(None)).unwrap();
        let user = json!({"client-certificate": certificate, "client-key": certificate});
        kubeconfig["users"][0]["user"] = user;
        fs::write(rig.kubeconfig(), kubeconfig.to_string()).unwrap();
        certificate.to_owned()
    };
    let garbage = |rig: &Rig| {
        fs::write(rig.kubeconfig(), b"clusters: [\xff").unwrap();
        rig.kubeconfig().display().to_string()
    };
    let none = |rig: &Rig| rig.kubeconfig().display().to_string();
    let cases: [&dyn Fn(&Rig) -> String; 3] = [&missing, &garbage, &none];
    let rigs = cases.map(|make| {
        let rig = Rig::new();
        rig.make_node(&json!({}));
        let (named, agent) = (make(&rig), rig.start());
        (rig, named, agent)
    });
    // Longer than until the second try.
    sleep(Duration::from_secs(6));
    for (rig, named, agent) in rigs {
        let log = agent.log();
        let is_access = |line: &&str| line.contains("warning: ") && !line.contains("write events");
        let told: Vec<_> = log.lines().filter(is_access).collect();
        assert_eq!(told.len(), 1, "{log}");
        assert_eq!(told[0].matches("(os error").count().max(1), 1, "{log}");
        assert!(told[0].contains(&named), "{named}: {log}");
        assert_eq!(get(&address(&agent), "/healthz"), (200, "ok\n".to_owned()));
        rig.give_access();
        rig.wait_condition(&agent, READONLY, "False");
        agent.terminate().assert_no_crash();
    }
}

#[test]
fn a_node_that_comes_late_is_told_of_once_and_then_written() {
    let rig = Rig::new();
    rig.give_access();
    let agent = rig.start();
    agent.wait_log(&format!("cannot find the Node: there is no Node {NAME}"));
    let log = rig.front.log();
    let is_of_node = |asked: &Asked| asked.write.is_some() && asked.path.contains("/nodes/");
    assert!(!log.iter().any(|entry| is_of_node(&entry.asked)), "{log:?}");
    rig.make_node(&json!({}));
    rig.wait_condition(&agent, READONLY, "False");
    rig.wait_annotation(&agent, "autopilot.syself.com/storage");
    let ended = agent.terminate();
    ended.assert_no_crash();
    assert_eq!(ended.log.matches("there is no Node").count(), 1, "{}", ended.log);
}

#[test]
fn hostile_text_arrives_as_text() {
    let mut rig = Rig::with_node();
    let agent = rig.start();
    rig.wait_condition(&agent, READONLY, "False");
    let hostile = r#""}],"x":"\x5c\x5cu0000\x1b[2J\x0a\xe2\x80\xae\xff"#;
    rig.say(&format!("Buffer I/O error on dev {hostile}, logical block 7, async page read"));
    rig.say(&format!(
        "XFS (dm-1): Corruption of in-memory data (0x8) detected at {hostile}{} (fs/xfs/x.c:1).  \
         Shutting down filesystem.",
        "y".repeat(1500)
    ));
    let shown = r#""}],"x":"\\u0000"#;
    let condition = rig.wait_condition(&agent, READONLY, "True");
    let event = rig.wait_event(&agent, "IOError");
    let turn = rig.wait_event(&agent, "FilesystemIsReadOnly");
    let evidence = rig.wait_annotation(&agent, "fettle.dev/evidence");
    let evidence: Value = serde_json::from_str(&evidence).unwrap();
    for text in [&condition["message"], &event["note"], &turn["note"]] {
        let text = text.as_str().unwrap();
        assert!(text.contains(shown), "{text:?}");
        assert!(text.len() <= 1024, "{} bytes", text.len());
        assert!(is_harmless(text), "{text:?}");
    }
    assert!(evidence["conditions"].as_array().is_some_and(|all| !all.is_empty()), "{evidence}");
    assert!(evidence.to_string().contains("Shutting down"), "{evidence}");
    every_text(&evidence, &|text| assert!(is_harmless(text), "{text:?}"));
    let ended = agent.terminate();
    ended.assert_no_crash();
    assert!(!ended.log.contains(['\u{1b}', '\u{202e}']), "{:?}", ended.log);
}

#[test]
fn answers_that_are_none_are_survived() {
    let mut rig = Rig::with_node();
    let agent = rig.start();
    rig.wait_condition(&agent, READONLY, "False");
    let ends = [End::Garbage, End::HalfLine, End::Cut, End::Close];
    for (number, end) in ends.into_iter().enumerate() {
        rig.front.inject(Some(1), Asked::is_watch, Fault::Break { lines: 0, end });
        rig.front.inject(Some(3), |asked| asked.write.is_some(), Fault::Break { lines: 0, end });
        rig.say(&format!("EXT4-fs (sdb{number}): Remounting filesystem read-only"));
        let has = || rig.node().to_string().contains(&format!("sdb{number}")).then_some(());
        assert!(wait_for(LIMIT, has).is_some(), "{end:?}: {}", agent.log());
        rig.front.heal();
    }
    rig.wait_event(&agent, "FilesystemIsReadOnly");
    agent.terminate().assert_no_crash();
}

#[test]
fn a_node_of_any_size_is_read_and_written() {
    let mut rig = Rig::new();
    rig.give_access();
    let condition = |number: u32| json!({"type": format!("Other{number}"), "status": "False", "reason": "R", "message": "m"});
    let conditions: Vec<_> = (0..10_000).map(condition).collect();
    rig.make_node(&json!({ "conditions": conditions }));
    let large = "x".repeat(1 << 20);
    let annotations = json!({"a": large, "b": large, "c": large, "d": large, "e": large});
    rig.patch("", &json!({"metadata": {"annotations": annotations}}));
    let agent = rig.start();
    rig.wait_condition(&agent, READONLY, "False");
    for device in ["sda1", "sdb1", "sdc1"] {
        rig.say(&format!("EXT4-fs ({device}): Remounting filesystem read-only"));
        let has = || rig.condition(READONLY).to_string().contains(device).then_some(());
        assert!(wait_for(LIMIT, has).is_some(), "{}", agent.log());
    }
    let peak_kib = agent.peak_kib();
    println!("at most {peak_kib} KiB");
    assert!(peak_kib < PEAK_KIB_MAX, "{peak_kib} KiB");
    agent.terminate().assert_no_crash();
}

/// Field case N06, for as long as a test may take.
#[test]
fn an_agent_with_nothing_to_say_writes_nothing() {
    let rig = Rig::with_node();
    let agent = rig.start();
    rig.wait_condition(&agent, READONLY, "False");
    rig.wait_annotation(&agent, "autopilot.syself.com/storage");
    let quiet = || {
        let writes = rig.front.writes();
        sleep(Duration::from_secs(2));
        (rig.front.writes() == writes).then_some(writes)
    };
    let writes = wait_for(LIMIT, quiet).expect("it writes on and on");
    let known = values(&rig.node());
    sleep(Duration::from_secs(20));
    let log = rig.front.log();
    let later = log.iter().filter(|entry| entry.asked.write > Some(writes));
    let later: Vec<_> = later.map(|entry| &entry.asked).collect();
    // The heartbeat may come at any time, and says nothing new.
    assert!(later.len() <= 1, "{later:?}");
    assert!(later.iter().all(|asked| asked.path.contains("/status")), "{later:?}");
    assert_eq!(values(&rig.node()), known);
    assert!(log.iter().all(|entry| entry.asked.method != Method::PUT));
    agent.terminate().assert_no_crash();
}

/// Returns all that conditions say but for the time of the heartbeat.
fn values(node: &Value) -> Vec<[Value; 5]> {
    let conditions = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let fields = ["type", "status", "reason", "message", "lastTransitionTime"];
    conditions.iter().map(|one| fields.map(|field| one[field].clone())).collect()
}

/// Tells whether a text can be shown on a terminal.
fn is_harmless(text: &str) -> bool {
    !text.chars().any(|c| c.is_control() || c == '\u{202e}')
}

/// Calls `check` with every text of a JSON value.
fn every_text(value: &Value, check: &impl Fn(&str)) {
    match value {
        Value::String(text) => check(text),
        Value::Array(values) => values.iter().for_each(|value| every_text(value, check)),
        Value::Object(fields) => fields.values().for_each(|value| every_text(value, check)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// What is read of a large Node is held a few times over, and not for long.
const PEAK_KIB_MAX: u64 = 96 * 1024;
