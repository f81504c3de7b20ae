//! The manifests in the eyes of a real API server, and the agent with no more than they grant.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::installed::{agent_on, apply, deployed, installed, render, said, try_apply};
use crate::rig::Rig;

const READONLY: &str = "ReadonlyFilesystem";
const CLEAR: &str = "fettle.dev/clear-condition";

#[test]
#[ignore = "needs a Kubernetes API server"]
fn the_server_takes_every_overlay_without_a_warning() {
    let server = installed();
    let mut folders = vec![deployed("base")];
    let overlays = fs::read_dir(deployed("overlays")).unwrap();
    folders.extend(overlays.map(|entry| entry.unwrap().path()));
    assert!(folders.len() >= 5, "{folders:?}");
    for folder in folders {
        apply(server, &render(server, &folder));
    }
    // A word that the server does not know would not have passed.
    let wrong = render(server, &deployed("base")).replace("hostNetwork:", "hostNetwrok:");
    let output = try_apply(server, &wrong);
    let why = said(&output);
    assert!(!output.status.success() && why.contains("hostNetwrok"), "{why}");
}

#[test]
#[ignore = "needs a Kubernetes API server"]
fn the_server_takes_every_component_beside_every_overlay() {
    let server = installed();
    // The operator's own definitions are elsewhere: these take anything, but by the right names.
    for (kind, plural) in [("PrometheusRule", "prometheusrules"), ("PodMonitor", "podmonitors")] {
        apply(server, &definition(kind, plural).to_string());
        let name = format!("crd/{plural}.monitoring.coreos.com");
        let arguments = ["wait", "--for=condition=Established", &name, "--timeout=30s"];
        let output = server.kubectl(&server.admin().unwrap(), &arguments, "").unwrap();
        assert!(output.status.success(), "{}", said(&output));
    }
    for overlay in fs::read_dir(deployed("overlays")).unwrap() {
        let folder = tempfile::tempdir().unwrap();
        let from_here = |to: &Path| seen_from(folder.path(), to);
        let component = |name: &str| from_here(&deployed("components").join(name));
        let kustomization = json!({
            "resources": [from_here(&overlay.unwrap().path())],
            "components": [component("prometheus-operator"), component("reboot")],
        });
        fs::write(folder.path().join("kustomization.yaml"), kustomization.to_string()).unwrap();
        let text = render(server, folder.path());
        for words in ["kind: PrometheusRule", "kind: PodMonitor", "hostPID: true"] {
            assert!(text.contains(words), "{words} is not in\n{text}");
        }
        apply(server, &text);
    }
}

#[test]
#[ignore = "needs a Kubernetes API server"]
fn the_pods_rights_are_enough_for_all_that_the_agent_does() {
    let name = "deploy-agent";
    let mut rig = Rig::new(installed(), name, |server| agent_on(server, name));
    rig.write_by("kubelet", "Ready", "True");
    rig.write_by("other", "OtherCondition", "True");
    rig.write_by("fettle-agent", "OfAnEarlierVersion", "True");
    let agent = rig.start();
    agent.wait_following();
    rig.wait_node("no retired condition", |node| {
        !node["status"]["conditions"].to_string().contains("OfAnEarlierVersion")
    });
    rig.wait_condition(READONLY, "False");
    rig.say("EXT4-fs (sda1): Remounting filesystem read-only");
    rig.wait_condition(READONLY, "True");
    rig.wait_events("FilesystemIsReadOnly", 1);
    for _ in 0..40 {
        rig.say("Buffer I/O error on dev sda1, logical block 7, async page read");
    }
    rig.wait_events("IOError", 1);
    rig.wait_node("evidence and reports", |node| {
        let has = |name: &str| annotation(node, name).is_string();
        let reports = ["storage", "disks", "certs", "tamper", "services"];
        let evidence = annotation(node, "fettle.dev/evidence").as_str().unwrap_or_default();
        evidence.contains("Remounting")
            && reports.iter().all(|name| has(&format!("autopilot.syself.com/{name}")))
    });
    rig.annotate(&format!("{CLEAR}={READONLY}"));
    rig.wait_condition(READONLY, "False");
    rig.wait_node("no mark", |node| annotation(node, CLEAR).is_null());
    rig.wait_events("ConditionCleared", 1);
    assert_eq!(rig.condition("Ready")["reason"], "Theirs");
    assert_eq!(rig.condition("OtherCondition")["reason"], "Theirs");
    let ended = agent.terminate();
    ended.assert_no_crash();
    for refusal in ["orbidden", "403"] {
        assert!(!ended.log.contains(refusal), "{}", ended.log);
    }
    let agent = rig.start();
    agent.wait_following();
    rig.end_until_told(agent, "IOError", 40);
}

#[test]
#[ignore = "needs a Kubernetes API server"]
fn the_pods_rights_last_when_its_node_is_made_again() {
    let name = "deploy-again";
    let mut rig = Rig::new(installed(), name, |server| agent_on(server, name));
    let agent = rig.start();
    agent.wait_following();
    rig.say("EXT4-fs (sda1): Remounting filesystem read-only");
    rig.wait_condition(READONLY, "True");
    let admin = rig.server.admin().unwrap();
    let deleted = rig.server.kubectl(&admin, &["delete", "node", name], "").unwrap();
    assert!(deleted.status.success(), "{}", said(&deleted));
    agent.wait_log("there is no Node deploy-again");
    rig.server.create_node(name).unwrap();
    rig.wait_condition(READONLY, "True");
    rig.wait_node("a report", |node| annotation(node, "autopilot.syself.com/disks").is_string());
    agent.terminate().assert_no_crash();
}

/// Returns a definition of a kind of the Prometheus operator that takes anything.
fn definition(kind: &str, plural: &str) -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.monitoring.coreos.com")},
        "spec": {
            "group": "monitoring.coreos.com", "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}

/// Returns the way from a folder to another: a kustomization takes no absolute path.
fn seen_from(folder: &Path, to: &Path) -> PathBuf {
    let (folder, to) = (folder.canonicalize().unwrap(), to.canonicalize().unwrap());
    let up = folder.ancestors().skip(1).map(|_| "..");
    up.map(PathBuf::from).collect::<PathBuf>().join(to.strip_prefix("/").unwrap())
}

fn annotation<'n>(node: &'n Value, name: &str) -> &'n Value {
    &node["metadata"]["annotations"][name]
}
