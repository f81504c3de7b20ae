//! The agent's program against a real API server, with no more rights than it is given.

use fettle_tests::api::server::{ApiServer, Identity, Options, shared};
use serde_json::{Value, json};

use crate::rig::Rig;

const READONLY: &str = "ReadonlyFilesystem";

fn kubelet(name: &str) -> impl FnOnce(&ApiServer) -> Identity {
    move |server| server.kubelet(name).unwrap()
}

#[test]
#[ignore = "needs a Kubernetes API server"]
fn a_fault_reaches_the_node_with_a_kubelets_identity() {
    let mut rig = Rig::new(shared(), "agent-kubelet", kubelet("agent-kubelet"));
    rig.write_by("kubelet", "Ready", "True");
    let agent = rig.start();
    agent.wait_following();
    rig.wait_condition(READONLY, "False");
    rig.say("EXT4-fs (sda1): Remounting filesystem read-only");
    let condition = rig.wait_condition(READONLY, "True");
    assert_eq!(condition["reason"], "FilesystemIsReadOnly");
    assert!(condition["message"].as_str().unwrap().contains("sda1"), "{condition}");
    let [event] = &*rig.wait_events("FilesystemIsReadOnly", 1) else { panic!("one event") };
    assert_eq!((&event["type"], &event["regarding"]["kind"]), (&json!("Warning"), &json!("Node")));
    for _ in 0..40 {
        rig.say("Buffer I/O error on dev sda1, logical block 7, async page read");
    }
    rig.wait_events("IOError", 1);
    let node = rig.wait_node("a report", |node| {
        node["metadata"]["annotations"]["autopilot.syself.com/storage"].is_string()
    });
    for document in ["storage", "disks", "certs", "tamper", "services"] {
        let text =
            node["metadata"]["annotations"][format!("autopilot.syself.com/{document}")].as_str();
        let document: Value = serde_json::from_str(text.unwrap()).unwrap();
        assert_eq!(document["role"], "worker");
    }
    let node = rig.wait_node("evidence of the fault", |node| {
        let evidence = node["metadata"]["annotations"]["fettle.dev/evidence"].as_str();
        evidence.is_some_and(|text| text.contains("EXT4-fs (sda1): Remounting"))
    });
    let evidence = node["metadata"]["annotations"]["fettle.dev/evidence"].as_str().unwrap();
    let evidence: Value = serde_json::from_str(evidence).unwrap();
    let conditions = evidence["conditions"].as_array().unwrap();
    assert!(conditions.iter().any(|one| one["type"] == READONLY && one["status"] == "True"));
    assert_eq!(rig.condition("Ready")["reason"], "Theirs");
    rig.end_until_told(agent, "IOError", 40);
}

#[test]
#[ignore = "needs a Kubernetes API server"]
fn an_agent_that_was_killed_goes_on_where_it_was() {
    let mut rig = Rig::new(shared(), "agent-killed", kubelet("agent-killed"));
    let agent = rig.start();
    agent.wait_following();
    rig.say("EXT4-fs (sda1): Remounting filesystem read-only");
    rig.say("nvme nvme0: I/O 131 QID 1 timeout, aborting");
    let before = rig.wait_condition(READONLY, "True");
    rig.wait_events("FilesystemIsReadOnly", 1);
    rig.wait_events("NvmeError", 1);
    agent.kill();
    // Meanwhile a person undoes it by hand.
    rig.write_by("somebody", READONLY, "False");
    rig.say("nvme nvme0: I/O 132 QID 1 timeout, aborting");
    let agent = rig.start();
    agent.wait_following();
    rig.wait_condition(READONLY, "True");
    assert_eq!(rig.condition(READONLY)["message"], before["message"]);
    rig.end_until_told(agent, "NvmeError", 2);
    rig.wait_events("FilesystemIsReadOnly", 1);
    assert_eq!(rig.events("FilesystemIsReadOnly").len(), 1);
}

#[test]
#[ignore = "needs a Kubernetes API server"]
fn a_restart_moves_no_transition_time_and_takes_back_nothing() {
    let mut rig = Rig::new(shared(), "agent-restart", kubelet("agent-restart"));
    let agent = rig.start();
    agent.wait_following();
    rig.say("EXT4-fs (sda1): Remounting filesystem read-only");
    let before = rig.wait_condition(READONLY, "True");
    agent.terminate().assert_no_crash();
    // As after a boot: nothing is remembered, and the fault is in the log once more.
    std::fs::remove_dir_all(rig.state_dir()).unwrap();
    std::thread::sleep(core::time::Duration::from_millis(1_100));
    let agent = rig.start();
    agent.wait_following();
    rig.say("EXT4-fs (sdb1): Remounting filesystem read-only");
    let seen = rig.wait_node("the second device", |node| {
        node["status"]["conditions"].to_string().contains("sdb1")
    });
    let conditions = seen["status"]["conditions"].as_array().unwrap();
    let after = conditions.iter().find(|one| one["type"] == READONLY).unwrap();
    assert_eq!(after["lastTransitionTime"], before["lastTransitionTime"]);
    agent.terminate().assert_no_crash();
}

#[test]
#[ignore = "needs a Kubernetes API server"]
fn a_node_that_is_deleted_and_made_again_gets_everything() {
    let mut rig = Rig::new(shared(), "agent-again", kubelet("agent-again"));
    let agent = rig.start();
    agent.wait_following();
    rig.say("EXT4-fs (sda1): Remounting filesystem read-only");
    rig.wait_condition(READONLY, "True");
    let admin = rig.server.admin().unwrap();
    let deleted = rig.server.kubectl(&admin, &["delete", "node", "agent-again"], "").unwrap();
    assert!(deleted.status.success(), "{deleted:?}");
    agent.wait_log("there is no Node agent-again");
    rig.server.create_node("agent-again").unwrap();
    rig.wait_condition(READONLY, "True");
    rig.wait_node("a report", |node| {
        node["metadata"]["annotations"]["autopilot.syself.com/storage"].is_string()
    });
    agent.terminate().assert_no_crash();
}

#[test]
#[ignore = "needs a Kubernetes API server"]
fn what_is_turned_off_is_removed_from_the_node() {
    let mut rig = Rig::new(shared(), "agent-off", kubelet("agent-off"));
    let agent = rig.start();
    agent.wait_following();
    rig.wait_condition("KernelDeadlock", "False");
    agent.terminate().assert_no_crash();
    rig.write_by("other", "OtherCondition", "True");
    rig.write_by("fettle-agent", "OfAnEarlierVersion", "True");
    let config = rig.configure("conditions: {KernelDeadlock: {enabled: false}}");
    let agent = rig.start_with(&["--config", config.to_str().unwrap()]);
    rig.wait_node("neither of them", |node| {
        let conditions = node["status"]["conditions"].to_string();
        !conditions.contains("KernelDeadlock") && !conditions.contains("OfAnEarlierVersion")
    });
    rig.wait_condition("OtherCondition", "True");
    agent.terminate().assert_no_crash();
}

#[test]
#[ignore = "needs a Kubernetes API server"]
fn a_second_writer_is_named_and_not_fought() {
    let mut rig = Rig::new(shared(), "agent-npd", kubelet("agent-npd"));
    let agent = rig.start();
    agent.wait_following();
    for _ in 0..3 {
        rig.wait_condition("KernelDeadlock", "False");
        rig.write_by("node-problem-detector", "KernelDeadlock", "True");
    }
    let degraded = rig.wait_condition("AgentDegraded", "True");
    assert_eq!(degraded["reason"], "ConditionContested");
    let message = degraded["message"].as_str().unwrap();
    assert!(message.starts_with("node-problem-detector writes the condition KernelDeadlock"));
    // The other one goes on, and nobody answers.
    rig.write_by("node-problem-detector", "KernelDeadlock", "Unknown");
    std::thread::sleep(core::time::Duration::from_secs(3));
    assert_eq!(rig.condition("KernelDeadlock")["status"], "Unknown");
    agent.terminate().assert_no_crash();
}

#[test]
#[ignore = "needs a Kubernetes API server"]
fn a_certificate_that_is_rotated_is_taken_up() {
    let lifetime = core::time::Duration::from_secs(6);
    let name = "agent-rotated";
    let identity = |server: &ApiServer, lifetime| {
        server.client_cert(&format!("system:node:{name}"), Some("system:nodes"), lifetime).unwrap()
    };
    let mut rig = Rig::new(shared(), name, |server| identity(server, lifetime));
    let agent = rig.start();
    agent.wait_following();
    rig.wait_condition(READONLY, "False");
    std::thread::sleep(lifetime);
    rig.say("EXT4-fs (sda1): Remounting filesystem read-only");
    agent.wait_log("cannot write conditions of the Node");
    identity(rig.server, core::time::Duration::from_secs(3600))
        .write_to(rig.folder.path())
        .unwrap();
    rig.wait_condition(READONLY, "True");
    agent.terminate().assert_no_crash();
}

#[test]
#[ignore = "needs a Kubernetes API server"]
fn an_api_server_that_was_away_gets_what_happened_meanwhile() {
    // Lives as long as the test program, as the shared one does.
    let server = Box::leak(Box::new(ApiServer::start(&Options::default()).unwrap()));
    let mut rig = Rig::new(server, "agent-away", kubelet("agent-away"));
    let agent = rig.start();
    agent.wait_following();
    rig.wait_condition(READONLY, "False");
    rig.server.kill();
    rig.say("EXT4-fs (sda1): Remounting filesystem read-only");
    rig.say("nvme nvme0: I/O 131 QID 1 timeout, aborting");
    agent.wait_log("cannot write conditions of the Node");
    rig.server.restart().unwrap();
    rig.wait_condition(READONLY, "True");
    rig.wait_events("NvmeError", 1);
    rig.wait_events("FilesystemIsReadOnly", 1);
    agent.terminate().assert_no_crash();
    rig.server.kill();
    rig.server.kill_etcd();
}
