//! What people and the controller order by annotations of the Node.

use core::time::Duration;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use fettle_tests::api::server::shared;
use fettle_tests::clock::wait_for;

use crate::rig::{LIMIT, Rig};

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

/// Returns a command that runs the rig's agent below a process 1 that calls itself systemd, and
/// notes in `noted` that it was asked to reboot.
fn below_systemd(rig: &Rig, config: &Path, noted: &Path) -> Command {
    let init = rig.folder.path().join("systemd");
    std::fs::copy("/bin/sh", &init).unwrap();
    let agent = rig.command();
    let quoted = |text: &OsStr| format!("'{}'", text.to_str().unwrap());
    // The test's own log stands in a /proc that the agent does not see.
    let log = agent.get_args().skip_while(|argument| *argument != "--kmsg").nth(1).unwrap();
    let real = |argument| if argument == log { OsStr::new("/dev/kmsg") } else { argument };
    let arguments: Vec<_> = agent.get_args().map(real).map(quoted).collect();
    let script = format!(
        "trap 'echo asked >> {}' INT; {} {} --config {} & while :; do wait; done",
        noted.display(),
        quoted(agent.get_program()),
        arguments.join(" "),
        config.display()
    );
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--mount-proc", "--kill-child"]);
    command.arg(init).args(["-c", &script]);
    command
}

#[test]
#[ignore = "needs a Kubernetes API server"]
fn a_reboot_is_done_once_for_its_id_and_proven_by_the_boot_id() {
    let name = "orders-reboot";
    let mut rig = Rig::new(shared(), name, |server| server.kubelet(name).unwrap());
    let config = rig.configure("reboot: {enabled: true}");
    let noted = rig.folder.path().join("noted");
    let count = || std::fs::read_to_string(&noted).unwrap_or_default().lines().count();
    let agent = rig.start_as(|rig| below_systemd(rig, &config, &noted));
    agent.wait_following();
    rig.annotate("fettle.dev/reboot=op-1");
    wait_for(LIMIT, || (count() == 1).then_some(())).expect("process 1 is asked to reboot");
    rig.wait_events("RebootOrdered", 1);
    let _ = agent.kill();
    // The same boot goes on: it was not rebooted, and is not tried again.
    let agent = rig.start_as(|rig| below_systemd(rig, &config, &noted));
    let [event] = &*rig.wait_events("RebootRefused", 1) else { panic!("one event") };
    assert!(event["note"].as_str().unwrap().contains("did not happen"), "{event}");
    let _ = agent.kill();
    // Another boot: as it would stand if this one were the next.
    let kept = rig.state_dir().join("kept.json");
    let text = std::fs::read_to_string(&kept).unwrap();
    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
    value["reboots"][0]["bootId"] = "an-earlier-boot".into();
    value["reboots"][0]["told"] = false.into();
    std::fs::remove_dir_all(rig.state_dir()).unwrap();
    std::fs::create_dir(rig.state_dir()).unwrap();
    std::fs::write(&kept, value.to_string()).unwrap();
    let agent = rig.start_as(|rig| below_systemd(rig, &config, &noted));
    let [event] = &*rig.wait_events("RebootDone", 1) else { panic!("one event") };
    let note = event["note"].as_str().unwrap();
    assert!(note.contains("boot id an-earlier-boot before"), "{note}");
    std::thread::sleep(Duration::from_secs(6));
    assert_eq!((count(), rig.events("RebootOrdered").len()), (1, 1));
    let _ = agent.kill();
}
