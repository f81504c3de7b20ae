//! What people and the controller order by annotations of the Node.

use core::time::Duration;

use fettle_tests::api::server::shared;

use crate::rig::Rig;

const READONLY: &str = "ReadonlyFilesystem";
const CLEAR: &str = "fettle.dev/clear-condition";

fn mark<'n>(node: &'n serde_json::Value, name: &str) -> &'n serde_json::Value {
    &node["metadata"]["annotations"][name]
}

#[test]
#[ignore = "needs a Kubernetes API server"]
fn a_condition_is_cleared_by_its_mark_and_the_mark_taken_away() {
    let name = "orders-clear";
    let mut rig = Rig::new(shared(), name, |server| server.kubelet(name).unwrap());
    let agent = rig.start();
    agent.wait_following();
    rig.say("EXT4-fs (sda1): Remounting filesystem read-only");
    rig.wait_condition(READONLY, "True");
    rig.annotate(&format!("{CLEAR}={READONLY},Nonsense"));
    rig.wait_condition(READONLY, "False");
    rig.wait_node("no mark", |node| mark(node, CLEAR).is_null());
    let [event] = &*rig.wait_events("ConditionCleared", 1) else { panic!("one event") };
    let note = event["note"].as_str().unwrap();
    assert_eq!(note, "ReadonlyFilesystem was cleared by an annotation of kubectl-annotate");
    let [event] = &*rig.wait_events("ClearRefused", 1) else { panic!("one event") };
    assert!(event["note"].as_str().unwrap().contains("Nonsense"), "{event}");
    agent.terminate().assert_no_crash();
}

#[test]
#[ignore = "needs a Kubernetes API server"]
fn no_reboot_is_done_that_is_not_enabled() {
    let name = "orders-off";
    let mut rig = Rig::new(shared(), name, |server| server.kubelet(name).unwrap());
    let agent = rig.start();
    agent.wait_following();
    rig.annotate("fettle.dev/reboot=op-1");
    let [event] = &*rig.wait_events("RebootRefused", 1) else { panic!("one event") };
    assert!(event["note"].as_str().unwrap().contains("reboot.enabled is false"), "{event}");
    rig.annotate("fettle.dev/reboot=op-1");
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(rig.events("RebootRefused").len(), 1);
    agent.terminate().assert_no_crash();
}

#[test]
#[ignore = "needs a Kubernetes API server"]
fn a_flag_enables_what_the_configuration_does_not() {
    let name = "orders-flag";
    let mut rig = Rig::new(shared(), name, |server| server.kubelet(name).unwrap());
    // What cannot be written down is not done: else this would reboot the machine of the test.
    std::fs::create_dir(rig.state_dir()).unwrap();
    std::fs::write(rig.state_dir().join("kept.json"), "garbage").unwrap();
    let agent = rig.start_with(&["--enable-reboots"]);
    agent.wait_following();
    rig.annotate("fettle.dev/reboot=op-1");
    let [event] = &*rig.wait_events("RebootRefused", 1) else { panic!("one event") };
    assert!(event["note"].as_str().unwrap().contains("cannot be written to disk"), "{event}");
    agent.terminate().assert_no_crash();
}
