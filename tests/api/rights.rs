//! What whoever holds an agent's token can do, and what not.

use fettle_tests::clock::wait_for;
use serde_json::{Value, json};

use crate::installed::{ACCOUNT, NAMESPACE, agent_on, ask, installed};
use crate::rig::{LIMIT, Rig};

#[test]
#[ignore = "needs a Kubernetes API server"]
fn an_agents_token_can_do_nothing_else() {
    let server = installed();
    let own = "deploy-own";
    let identity = agent_on(server, own);
    let rig = Rig::new(server, own, |_| identity.clone());
    rig.write_by("kubelet", "Ready", "True");
    rig.write_by("fettle-agent", "OfAnEarlierVersion", "True");
    rig.annotate("other.example/a=1");
    server.create_node("deploy-other").unwrap();
    let before = rig.node();
    for (method, path, body, code, words) in refused_changes().into_iter().chain(refused_rest()) {
        let (got, why) = ask(&identity, method, path, &body);
        println!("{got} {method} {path} {body}: {why}");
        assert_eq!(got, code, "{method} {path} {body}: {why}");
        assert!(why.contains(words), "{method} {path} {body}: {why}");
    }
    assert_eq!(rig.node(), before);
    for (method, path, body) in granted() {
        let is_done = || (ask(&identity, method, path, &body).0 < 300).then_some(());
        let done = wait_for(LIMIT, is_done);
        assert!(done.is_some(), "{:?}", ask(&identity, method, path, &body));
    }
    assert!(rig.condition("OfAnEarlierVersion").is_null());
}

#[test]
#[ignore = "needs a Kubernetes API server"]
fn a_token_that_names_no_node_may_change_none() {
    let server = installed();
    server.create_node("deploy-unclaimed").unwrap();
    let identity = server.service_account(NAMESPACE, ACCOUNT, 3600).unwrap();
    let body = condition("KernelDeadlock");
    let (code, why) = ask(&identity, "PATCH", "/api/v1/nodes/deploy-unclaimed/status", &body);
    println!("{why}");
    assert_eq!(code, 403, "{why}");
    assert!(why.contains("this token names no Node: it must be that of a pod"), "{why}");
}

/// A request, and the code and some words of its refusal.
type Row = (&'static str, &'static str, Value, u16, &'static str);

/// Returns changes of Nodes that an agent on `deploy-own` may not make.
fn refused_changes() -> Vec<Row> {
    let other = "only the Node that its token names, which is \"deploy-own\"";
    let foreign = "only annotations under its own prefixes";
    let meta = "neither labels, finalizers, owners nor the spec";
    let types = "only conditions of its own types";
    let status = "nothing of a Node's status but its conditions";
    let claims = "may claim only conditions of its own types";
    let removed = json!([{"$patch": "delete", "type": "Ready"}]);
    let owner = json!([{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]);
    let taint = json!([{"key": "a", "effect": "NoSchedule"}]);
    let mut applied = node("deploy-own");
    applied["status"] = condition("Ready")["status"].clone();
    let rows = [
        (OTHER, annotated("fettle.dev/x", "1"), other),
        (OTHER_STATUS, condition("KernelDeadlock"), other),
        (STATUS, condition("Ready"), types),
        (STATUS, condition("Unheard"), types),
        (STATUS, json!({"status": {"conditions": removed}}), types),
        (STATUS, json!({"status": {"conditions": null}}), types),
        (APPLY_STATUS, applied, types),
        (STATUS, json!({"status": {"capacity": {"cpu": "64"}}}), status),
        (STATUS, json!({"status": {"nodeInfo": {"kubeletVersion": "v9"}}}), status),
        (OWN, forged(), claims),
        (OWN, annotated("other.example/a", "2"), foreign),
        (OWN, annotated("other.example/b", "1"), foreign),
        (OWN, annotated("fettle.development/a", "1"), foreign),
        (OWN, json!({"metadata": {"annotations": {"other.example/a": null}}}), foreign),
        (OWN, json!({"metadata": {"labels": {"a": "1"}}}), meta),
        (OWN, json!({"metadata": {"finalizers": ["example.com/a"]}}), meta),
        (OWN, json!({"metadata": {"ownerReferences": owner}}), meta),
        (OWN, json!({"spec": {"taints": taint}}), meta),
        (OWN, json!({"spec": {"unschedulable": true}}), meta),
        (APPLY_NEW, node("deploy-new"), "cannot create resource \"nodes\""),
    ];
    rows.map(|(path, body, words)| ("PATCH", path, body, 403, words)).into()
}

/// Returns what else an agent may not do.
fn refused_rest() -> Vec<Row> {
    const TOKEN: &str = "/api/v1/namespaces/fettle-system/serviceaccounts/fettle-agent/token";
    const ELSEWHERE: &str = "/apis/events.k8s.io/v1/namespaces/kube-system/events";
    vec![
        ("PUT", OWN, node("deploy-own"), 403, "cannot update"),
        ("POST", "/api/v1/nodes", node("deploy-new"), 403, "cannot create"),
        ("DELETE", OWN, Value::Null, 403, "cannot delete"),
        ("DELETE", OTHER, Value::Null, 403, "cannot delete"),
        ("DELETE", "/api/v1/nodes", Value::Null, 403, "cannot deletecollection"),
        ("GET", "/api/v1/nodes/deploy-own/proxy/pods", Value::Null, 403, "nodes/proxy"),
        ("GET", "/api/v1/secrets", Value::Null, 403, "cannot list"),
        ("GET", "/api/v1/namespaces/fettle-system/secrets/a", Value::Null, 403, "cannot get"),
        ("GET", "/api/v1/pods", Value::Null, 403, "cannot list"),
        ("POST", TOKEN, json!({}), 403, "cannot create"),
        ("POST", ELSEWHERE, event("kube-system"), 403, "cannot create"),
        ("POST", "/api/v1/namespaces/default/events", json!({}), 403, "cannot create"),
        ("GET", EVENTS, Value::Null, 403, "cannot list"),
    ]
}

/// Returns requests that the same agent may make.
fn granted() -> Vec<(&'static str, &'static str, Value)> {
    let retired = json!({"$patch": "delete", "type": "OfAnEarlierVersion"});
    vec![
        ("PATCH", OWN, annotated("fettle.dev/x", "1")),
        ("PATCH", STATUS, condition("KernelDeadlock")),
        ("PATCH", STATUS, json!({"status": {"conditions": [retired]}})),
        ("POST", EVENTS, event("default")),
        ("GET", "/api/v1/nodes?fieldSelector=metadata.name=deploy-own", Value::Null),
    ]
}

/// Returns a patch that says that the agent wrote what it did not, so as to remove it later.
fn forged() -> Value {
    let fields = json!({"f:status": {"f:conditions": {"k:{\"type\":\"Ready\"}": {".": {}}}}});
    json!({"metadata": {"managedFields": [{
        "manager": "fettle-agent", "operation": "Update", "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields,
        "subresource": "status",
    }]}})
}

fn node(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
}

fn annotated(name: &str, value: &str) -> Value {
    json!({"metadata": {"annotations": {name: value}}})
}

fn condition(name: &str) -> Value {
    let condition = json!({
        "type": name, "status": "True", "reason": "A", "message": "a",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "lastHeartbeatTime": "2026-01-01T00:00:00Z",
    });
    json!({"status": {"conditions": [condition]}})
}

fn event(namespace: &str) -> Value {
    json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": {"name": "deploy-own.1", "namespace": namespace},
        "eventTime": "2026-01-01T00:00:00.000000Z", "action": "Reported", "reason": "A",
        "reportingController": "fettle-agent", "reportingInstance": "deploy-own",
        "type": "Normal", "note": "a",
        "regarding": {"apiVersion": "v1", "kind": "Node", "name": "deploy-own"},
    })
}

const OWN: &str = "/api/v1/nodes/deploy-own";
const STATUS: &str = "/api/v1/nodes/deploy-own/status";
const OTHER: &str = "/api/v1/nodes/deploy-other";
const OTHER_STATUS: &str = "/api/v1/nodes/deploy-other/status";
const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";

/// With a field manager a patch is an apply.
const APPLY_NEW: &str = "/api/v1/nodes/deploy-new?fieldManager=fettle-agent";
const APPLY_STATUS: &str = "/api/v1/nodes/deploy-own/status?fieldManager=fettle-agent&force=true";
