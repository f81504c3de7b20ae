//! Cases of Nodes: patches, sub-resources and refusals.

use anyhow::{Result, ensure};
use http::Method;
use serde_json::{Value, json};

use super::Requests;

pub(super) const NODES: &str = "/api/v1/nodes";

pub(super) fn node(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
}

pub(super) fn condition(kind: &str, reason: &str) -> Value {
    json!({
        "type": kind, "status": "True", "reason": reason, "message": "as a test says",
        "lastHeartbeatTime": "2026-01-02T03:04:05Z", "lastTransitionTime": "2026-01-02T03:04:05Z",
    })
}

pub(super) fn conditions(conditions: &[Value]) -> Value {
    json!({"status": {"conditions": conditions}})
}

/// Returns `type=reason` of each condition, in order.
pub(super) fn reasons(node: &Value) -> Vec<String> {
    let conditions = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    conditions.iter().map(|one| text(&one["type"]) + "=" + &text(&one["reason"])).collect()
}

/// Creates a Node with the conditions `A` and `B`, and returns its path.
pub(super) async fn with_two_conditions(requests: &Requests, name: &str) -> Result<String> {
    requests.create(NODES, &node(name)).await?.ok()?;
    let path = format!("{NODES}/{name}");
    let both = conditions(&[condition("A", "First"), condition("B", "First")]);
    requests.strategic(&format!("{path}/status"), &both).await?.ok()?;
    Ok(path)
}

pub(super) async fn a_patch_of_one_condition_keeps_the_others(
    requests: Requests,
    name: String,
) -> Result<()> {
    let path = with_two_conditions(&requests, &name).await?;
    let patch = conditions(&[json!({"type": "B", "reason": "Second"}), condition("C", "New")]);
    let node = requests.strategic(&format!("{path}/status"), &patch).await?.ok()?;
    ensure!(reasons(&node) == ["A=First", "B=Second", "C=New"], "{node}");
    ensure!(node["status"]["conditions"][1]["message"] == "as a test says", "{node}");
    Ok(())
}

pub(super) async fn new_conditions_come_first(requests: Requests, name: String) -> Result<()> {
    let path = with_two_conditions(&requests, &name).await?;
    let patch = conditions(&[condition("D", "New"), condition("C", "New")]);
    let node = requests.strategic(&format!("{path}/status"), &patch).await?.ok()?;
    ensure!(reasons(&node) == ["D=New", "C=New", "A=First", "B=First"], "{node}");
    Ok(())
}

pub(super) async fn the_order_of_conditions_may_be_set(
    requests: Requests,
    name: String,
) -> Result<()> {
    let path = with_two_conditions(&requests, &name).await?;
    let mut patch = conditions(&[condition("C", "New")]);
    patch["status"]["$setElementOrder/conditions"] =
        json!([{"type": "B"}, {"type": "C"}, {"type": "A"}]);
    let node = requests.strategic(&format!("{path}/status"), &patch).await?.ok()?;
    ensure!(reasons(&node) == ["B=First", "C=New", "A=First"], "{node}");
    Ok(())
}

pub(super) async fn a_merge_patch_replaces_all_conditions(
    requests: Requests,
    name: String,
) -> Result<()> {
    let path = with_two_conditions(&requests, &name).await?;
    let patch = conditions(&[condition("C", "Only")]);
    let node = requests.merge(&format!("{path}/status"), &patch).await?.ok()?;
    ensure!(reasons(&node) == ["C=Only"], "{node}");
    Ok(())
}

pub(super) async fn a_condition_is_deleted_by_its_type(
    requests: Requests,
    name: String,
) -> Result<()> {
    let path = format!("{}/status", with_two_conditions(&requests, &name).await?);
    let mut patch = conditions(&[json!({"$patch": "delete", "type": "A"})]);
    patch["status"]["$setElementOrder/conditions"] = json!([{"type": "B"}]);
    let node = requests.strategic(&path, &patch).await?.ok()?;
    ensure!(reasons(&node) == ["B=First"], "{node}");
    let absent = conditions(&[json!({"$patch": "delete", "type": "Absent"})]);
    ensure!(reasons(&requests.strategic(&path, &absent).await?.ok()?) == ["B=First"]);
    Ok(())
}

pub(super) async fn a_condition_without_its_type_is_refused(
    requests: Requests,
    name: String,
) -> Result<()> {
    let path = with_two_conditions(&requests, &name).await?;
    let patch = conditions(&[json!({"reason": "Whose"})]);
    requests.strategic(&format!("{path}/status"), &patch).await?.refused(500, "")?;
    Ok(())
}

pub(super) async fn null_deletes_one_annotation(requests: Requests, name: String) -> Result<()> {
    let mut new = node(&name);
    new["metadata"]["annotations"] = json!({"a.example/x": "1", "b": "2", "c": "3"});
    requests.create(NODES, &new).await?.ok()?;
    let path = format!("{NODES}/{name}");
    let patch = json!({"metadata": {"annotations": {"a.example/x": null, "d": "4"}}});
    let node = requests.merge(&path, &patch).await?.ok()?;
    ensure!(node["metadata"]["annotations"] == json!({"b": "2", "c": "3", "d": "4"}), "{node}");
    let patch = json!({"metadata": {"annotations": {"b": null, "absent": null}}});
    let node = requests.strategic(&path, &patch).await?.ok()?;
    ensure!(node["metadata"]["annotations"] == json!({"c": "3", "d": "4"}), "{node}");
    Ok(())
}

pub(super) async fn a_stale_resource_version_is_a_conflict(
    requests: Requests,
    name: String,
) -> Result<()> {
    let mut old = requests.create(NODES, &node(&name)).await?.ok()?;
    let path = format!("{NODES}/{name}");
    let version = &old["metadata"]["resourceVersion"];
    let mut patch = json!({"metadata": {"resourceVersion": version, "labels": {"a": "b"}}});
    let new = requests.merge(&path, &patch).await?.ok()?;
    ensure!(new["metadata"]["resourceVersion"] != *version, "the version stayed: {new}");
    patch["metadata"]["labels"] = json!({"a": "c"});
    requests.merge(&path, &patch).await?.refused(409, "Conflict")?;
    let status = requests.strategic(&format!("{path}/status"), &patch).await?;
    status.refused(409, "Conflict")?;
    old["metadata"]["labels"] = json!({"a": "d"});
    requests.replace(&path, &old).await?.refused(409, "Conflict")?;
    Ok(())
}

pub(super) async fn a_foreign_uid_is_422(requests: Requests, name: String) -> Result<()> {
    requests.create(NODES, &node(&name)).await?.ok()?;
    let uid = "00000000-1111-2222-3333-444444444444";
    let patch = json!({"metadata": {"uid": uid, "labels": {"a": "b"}}});
    let path = format!("{NODES}/{name}");
    requests.merge(&path, &patch).await?.refused(422, "Invalid")?;
    Ok(())
}

pub(super) async fn a_patch_that_changes_nothing_keeps_the_version(
    requests: Requests,
    name: String,
) -> Result<()> {
    let path = with_two_conditions(&requests, &name).await?;
    let before = requests.get(&path).await?.ok()?;
    let same = conditions(&[json!({"type": "A", "reason": "First"})]);
    let path = format!("{path}/status?fieldManager=another");
    let after = requests.strategic(&path, &same).await?.ok()?;
    ensure!(before == after, "{before} became {after}");
    Ok(())
}

pub(super) async fn the_status_sub_resource_ignores_spec(
    requests: Requests,
    name: String,
) -> Result<()> {
    let path = with_two_conditions(&requests, &name).await?;
    let patch = json!({
        "metadata": {"annotations": {"a": "b"}, "labels": {"c": "d"}},
        "spec": {"unschedulable": true},
        "status": {"conditions": [{"type": "A", "reason": "Second"}]},
    });
    let node = requests.strategic(&format!("{path}/status"), &patch).await?.ok()?;
    ensure!(node["spec"]["unschedulable"].is_null(), "{node}");
    ensure!(node["metadata"]["annotations"]["a"] == "b", "{node}");
    ensure!(node["metadata"]["labels"]["c"] == "d", "{node}");
    ensure!(reasons(&node) == ["A=Second", "B=First"], "{node}");
    Ok(())
}

pub(super) async fn the_main_resource_ignores_status(
    requests: Requests,
    name: String,
) -> Result<()> {
    let path = with_two_conditions(&requests, &name).await?;
    let mut patch = conditions(&[condition("A", "Second")]);
    patch["spec"] = json!({"unschedulable": true});
    let node = requests.strategic(&path, &patch).await?.ok()?;
    ensure!(node["spec"]["unschedulable"] == true, "{node}");
    ensure!(reasons(&node) == ["A=First", "B=First"], "{node}");
    Ok(())
}

pub(super) async fn what_is_missing_is_404(requests: Requests, name: String) -> Result<()> {
    let path = format!("{NODES}/{name}");
    let status = requests.get(&path).await?.refused(404, "NotFound")?;
    ensure!(status["message"] == format!("nodes \"{name}\" not found"), "{status}");
    ensure!(status["details"] == json!({"name": name, "kind": "nodes"}), "{status}");
    let patch = conditions(&[condition("A", "First")]);
    requests.strategic(&format!("{path}/status"), &patch).await?.refused(404, "NotFound")?;
    requests.delete(&path).await?.refused(404, "NotFound")?;
    Ok(())
}

pub(super) async fn a_second_create_is_409(requests: Requests, name: String) -> Result<()> {
    requests.create(NODES, &node(&name)).await?.ok()?;
    requests.create(NODES, &node(&name)).await?.refused(409, "AlreadyExists")?;
    Ok(())
}

pub(super) async fn a_bad_name_is_422(requests: Requests, name: String) -> Result<()> {
    let name = format!("{name}_Bad");
    requests.create(NODES, &node(&name)).await?.refused(422, "Invalid")?;
    Ok(())
}

pub(super) async fn an_unknown_content_type_is_415(requests: Requests, name: String) -> Result<()> {
    let path = with_two_conditions(&requests, &name).await?;
    for kind in ["application/json", "text/plain"] {
        let answer = requests.send(Method::PATCH, &path, kind, "{}").await?;
        answer.refused(415, "UnsupportedMediaType")?;
    }
    let answer = requests.send(Method::POST, NODES, "text/plain", "{}").await?;
    answer.refused(415, "UnsupportedMediaType")?;
    Ok(())
}

pub(super) async fn a_body_that_is_not_json_is_400(requests: Requests, name: String) -> Result<()> {
    let path = with_two_conditions(&requests, &name).await?;
    for kind in ["application/merge-patch+json", "application/strategic-merge-patch+json"] {
        let answer = requests.send(Method::PATCH, &path, kind, "{\"metadata\":").await?;
        answer.refused(400, "BadRequest")?;
    }
    Ok(())
}

pub(super) async fn a_deleted_node_is_gone(requests: Requests, name: String) -> Result<()> {
    requests.create(NODES, &node(&name)).await?.ok()?;
    let path = format!("{NODES}/{name}");
    let status = requests.delete(&path).await?.ok()?;
    ensure!(status["kind"] == "Status" && status["status"] == "Success", "{status}");
    requests.get(&path).await?.refused(404, "NotFound")?;
    Ok(())
}
