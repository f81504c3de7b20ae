//! What a kubelet's identity may do, and so an agent that uses it.

use fettle_tests::api::server::{Identity, shared};
use http::Request;
use kube::Error;
use serde_json::{Value, json};

/// One request, and whether the server lets a kubelet make it.
struct Row {
    verb: &'static str,
    path: String,
    body: Value,
    want: u16,
}

/// A request without a body.
fn read(path: &str, want: u16) -> Row {
    Row { verb: "GET", path: path.to_owned(), body: Value::Null, want }
}

fn merge(path: &str, body: Value, want: u16) -> Row {
    Row { verb: "application/merge-patch+json", path: path.to_owned(), body, want }
}

fn strategic(path: &str, body: Value, want: u16) -> Row {
    Row { verb: "application/strategic-merge-patch+json", path: path.to_owned(), body, want }
}

fn apply(path: &str, body: Value, want: u16) -> Row {
    let path = format!("{path}?fieldManager=fettle&force=true");
    Row { verb: "application/apply-patch+yaml", path, body, want }
}

fn create(path: &str, body: Value, want: u16) -> Row {
    Row { verb: "POST", path: path.to_owned(), body, want }
}

#[test]
#[ignore = "needs a Kubernetes API server"]
fn a_kubelet_writes_the_status_of_its_own_node_alone() {
    let (own, other) = ("/api/v1/nodes/status-own", "/api/v1/nodes/status-other");
    let status = json!({"status": {"conditions": [condition()]}});
    let applied = json!({"apiVersion": "v1", "kind": "Node", "status": status["status"]});
    let named = |value: &str| json!({"metadata": {"annotations": {"fettle.dev/a": value}}});
    check(
        "status",
        &[
            strategic(&format!("{own}/status"), status.clone(), 200),
            strategic(&format!("{other}/status"), status.clone(), 403),
            apply(&format!("{own}/status"), applied.clone(), 200),
            apply(&format!("{other}/status"), applied, 403),
            // Metadata may be written by the same request.
            merge(&format!("{own}/status"), named("status"), 200),
            read(&format!("{own}/status"), 403),
        ],
    );
    let node = shared().node("status-own").unwrap();
    let conditions = node.status.and_then(|status| status.conditions).unwrap();
    assert_eq!(conditions.iter().filter(|one| one.type_ == "FettleTest").count(), 1);
    assert_eq!(node.metadata.annotations.unwrap()["fettle.dev/a"], "status");
}

#[test]
#[ignore = "needs a Kubernetes API server"]
fn a_kubelet_writes_annotations_and_labels_but_those_that_are_kept_from_it() {
    let (own, other) = ("/api/v1/nodes/labels-own", "/api/v1/nodes/labels-other");
    let annotated = |key: &str| json!({"metadata": {"annotations": {key: "a"}}});
    let labelled = |key: &str| json!({"metadata": {"labels": {key: "a"}}});
    check(
        "labels",
        &[
            merge(own, annotated("fettle.dev/a"), 200),
            merge(own, annotated("node-restriction.kubernetes.io/a"), 200),
            merge(own, annotated("a.kubernetes.io/a"), 200),
            merge(other, annotated("fettle.dev/a"), 403),
            merge(own, labelled("fettle.dev/a"), 200),
            merge(own, labelled("node.kubernetes.io/a"), 200),
            merge(own, labelled("kubelet.kubernetes.io/a"), 200),
            merge(own, labelled("topology.kubernetes.io/zone"), 200),
            merge(own, labelled("a.kubernetes.io/a"), 403),
            merge(own, labelled("a.k8s.io/a"), 403),
            merge(own, labelled("node-role.kubernetes.io/a"), 403),
            merge(own, labelled("node-restriction.kubernetes.io/a"), 403),
            merge(&format!("{own}/status"), labelled("node-restriction.kubernetes.io/b"), 403),
            merge(&format!("{own}/status"), labelled("fettle.dev/b"), 200),
            merge(other, labelled("fettle.dev/a"), 403),
        ],
    );
}

#[test]
#[ignore = "needs a Kubernetes API server"]
fn a_kubelet_cordons_its_own_node_but_neither_taints_nor_deletes_it() {
    let own = "/api/v1/nodes/spec-own";
    let taint = json!({"spec": {"taints": [{"key": "fettle.dev/a", "effect": "NoSchedule"}]}});
    let delete = Row { verb: "DELETE", path: own.to_owned(), body: Value::Null, want: 403 };
    check(
        "spec",
        &[
            merge(own, taint, 403),
            merge(own, json!({"spec": {"unschedulable": true}}), 200),
            delete,
        ],
    );
}

#[test]
#[ignore = "needs a Kubernetes API server"]
fn a_kubelet_reads_and_watches_its_own_node_alone() {
    let one = |name: &str| format!("/api/v1/nodes?fieldSelector=metadata.name%3D{name}");
    let watch = |path: &str| format!("{path}&watch=true&timeoutSeconds=1");
    check(
        "read",
        &[
            read("/api/v1/nodes/read-own", 200),
            read("/api/v1/nodes/read-other", 403),
            read(&one("read-own"), 200),
            read(&watch(&one("read-own")), 200),
            read(&one("read-other"), 403),
            read(&watch(&one("read-other")), 403),
            read("/api/v1/nodes", 403),
            read(&watch("/api/v1/nodes?"), 403),
            read("/api/v1/pods?fieldSelector=spec.nodeName%3Dread-own", 200),
            read("/api/v1/pods", 403),
            read("/api/v1/namespaces/default/configmaps/any", 403),
        ],
    );
}

#[test]
#[ignore = "needs a Kubernetes API server"]
fn a_kubelet_writes_events_of_any_node_but_does_not_read_them() {
    let events = |namespace: &str| format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
    let (here, system) = (events("default"), events("kube-system"));
    let series = json!({"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:00.000000Z"}});
    check(
        "event",
        &[
            create(&here, event("own", "default", "event-own"), 200),
            create(&here, event("other", "default", "event-other"), 200),
            create(&system, event("own", "kube-system", "event-own"), 200),
            // An event of what has no namespace stands in one of these two.
            create(&events("kube-public"), event("own", "kube-public", "event-own"), 422),
            merge(&format!("{here}/own"), series.clone(), 200),
            strategic(&format!("{here}/own"), series, 200),
            read(&format!("{here}/own"), 403),
            read(&here, 403),
            create("/api/v1/namespaces/default/events", core_event("core", "event-own"), 200),
        ],
    );
}

/// Makes each request as the kubelet of the node `PREFIX-own`; there is `PREFIX-other` too.
fn check(prefix: &str, rows: &[Row]) {
    let server = shared();
    let own = format!("{prefix}-own");
    server.create_node(&own).expect("it is new");
    server.create_node(&format!("{prefix}-other")).expect("it is new");
    let kubelet = server.kubelet(&own).expect("a name can be certified");
    let wrong: Vec<String> = rows.iter().filter_map(|row| complaint(&kubelet, row)).collect();
    assert!(wrong.is_empty(), "as the kubelet of {own}:\n{}", wrong.join("\n"));
}

fn complaint(kubelet: &Identity, row: &Row) -> Option<String> {
    let (code, text) = answer(kubelet, row);
    let Row { verb, path, body, want } = row;
    (code != *want).then(|| format!("{verb} {path} {body}: {code}, not {want}: {text}"))
}

/// Returns the code of the answer, 200 for every success, and what it says.
fn answer(kubelet: &Identity, row: &Row) -> (u16, String) {
    let (method, kind) = match row.verb {
        "DELETE" | "GET" | "POST" => (row.verb, "application/json"),
        patch => ("PATCH", patch),
    };
    let body = if row.body.is_null() { Vec::new() } else { row.body.to_string().into_bytes() };
    let request = Request::builder().method(method).uri(&row.path).header("Content-Type", kind);
    let request = request.body(body).expect("a path is a URI");
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let answer = runtime
        .block_on(async { kubelet.client().await.expect("a client").request_text(request).await });
    match answer {
        Ok(text) => (200, text),
        Err(Error::Api(status)) => (status.code, status.message),
        Err(error) => panic!("no answer to {method} {}: {error}", row.path),
    }
}

fn condition() -> Value {
    json!({
        "type": "FettleTest", "status": "True", "reason": "Test", "message": "a test",
        "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z",
    })
}

fn event(name: &str, namespace: &str, node: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": namespace},
        "action": "Test", "eventTime": "2026-01-01T00:00:00.000000Z", "note": "a test",
        "reason": "Test", "regarding": {"kind": "Node", "name": node, "uid": node},
        "reportingController": "fettle.dev/agent", "reportingInstance": node, "type": "Warning",
    })
}

fn core_event(name: &str, node: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "default"}, "reason": "Test", "message": "a test",
        "involvedObject": {"kind": "Node", "name": node, "uid": node}, "type": "Warning",
    })
}
