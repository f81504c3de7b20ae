//! Cases of `managedFields`: who wrote which condition.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::Requests;
use super::events::{CORE, EVENTS, event};
use super::nodes::{NODES, condition, conditions, node as bare, reasons};

/// Returns the entry of `manager` and `operation`.
fn entry<'a>(node: &'a Value, manager: &str, operation: &str) -> Result<&'a Value> {
    let entries = node["metadata"]["managedFields"].as_array().context("no managedFields")?;
    let is = |entry: &&Value| entry["manager"] == manager && entry["operation"] == operation;
    entries.iter().find(is).with_context(|| format!("nothing of {manager}: {node}"))
}

/// Returns what an entry owns of the conditions.
fn owned(entry: &Value) -> &Value {
    &entry["fieldsV1"]["f:status"]["f:conditions"]
}

/// Returns a Node with a label, so that its owners are recorded from the beginning.
fn node(name: &str) -> Value {
    let mut node = bare(name);
    node["metadata"]["labels"] = json!({"a": "b"});
    node
}

fn part(name: &str, conditions: &[Value]) -> Value {
    let mut part = bare(name);
    part["status"] = json!({"conditions": conditions});
    part
}

pub(super) async fn a_bare_node_has_no_owners_before_an_apply(
    requests: Requests,
    name: String,
) -> Result<()> {
    requests.create(NODES, &bare(&name)).await?.ok()?;
    let path = format!("{NODES}/{name}/status?fieldManager=one");
    let patch = conditions(&[condition("A", "First")]);
    let node = requests.strategic(&path, &patch).await?.ok()?;
    ensure!(node["metadata"]["managedFields"].is_null(), "{node}");
    let path = format!("{NODES}/{name}/status?fieldManager=two");
    let node = requests.apply(&path, &part(&name, &[condition("B", "First")])).await?.ok()?;
    let before = entry(&node, "before-first-apply", "Update")?;
    ensure!(owned(before)[r#"k:{"type":"A"}"#]["f:reason"].is_object(), "{before}");
    entry(&node, "two", "Apply")?;
    Ok(())
}

pub(super) async fn each_manager_owns_its_conditions(
    requests: Requests,
    name: String,
) -> Result<()> {
    requests.create(NODES, &node(&name)).await?.ok()?;
    let path = format!("{NODES}/{name}/status");
    for (manager, kind) in [("one", "A"), ("two", "B")] {
        let path = format!("{path}?fieldManager={manager}");
        requests.strategic(&path, &conditions(&[condition(kind, "First")])).await?.ok()?;
    }
    let node = requests.get(&format!("{NODES}/{name}")).await?.ok()?;
    let fields = json!({
        ".": {}, "f:lastHeartbeatTime": {}, "f:lastTransitionTime": {}, "f:message": {},
        "f:reason": {}, "f:status": {}, "f:type": {},
    });
    let (one, two) = (entry(&node, "one", "Update")?, entry(&node, "two", "Update")?);
    ensure!(*owned(one) == json!({".": {}, r#"k:{"type":"A"}"#: fields}), "{one}");
    ensure!(*owned(two) == json!({r#"k:{"type":"B"}"#: fields}), "{two}");
    ensure!(one["subresource"] == "status" && one["fieldsType"] == "FieldsV1", "{one}");
    ensure!(one["apiVersion"] == "v1" && one["time"].is_string(), "{one}");
    Ok(())
}

pub(super) async fn an_event_written_in_both_groups_keeps_the_last_owners(
    requests: Requests,
    name: String,
) -> Result<()> {
    requests.create(&format!("{EVENTS}?fieldManager=one"), &event(&name)).await?.ok()?;
    let path = format!("{CORE}/{name}?fieldManager=two");
    let event = requests.merge(&path, &json!({"message": "another"})).await?.ok()?;
    entry(&event, "two", "Update")?;
    ensure!(entry(&event, "one", "Update").is_err(), "{event}");
    Ok(())
}

pub(super) async fn who_writes_a_field_takes_it(requests: Requests, name: String) -> Result<()> {
    requests.create(NODES, &node(&name)).await?.ok()?;
    let path = format!("{NODES}/{name}/status");
    let one = format!("{path}?fieldManager=one");
    requests.strategic(&one, &conditions(&[condition("A", "First")])).await?.ok()?;
    let two = format!("{path}?fieldManager=two");
    let patch = conditions(&[json!({"type": "A", "status": "True", "reason": "Second"})]);
    let node = requests.strategic(&two, &patch).await?.ok()?;
    let (one, two) = (entry(&node, "one", "Update")?, entry(&node, "two", "Update")?);
    let key = r#"k:{"type":"A"}"#;
    ensure!(*owned(two) == json!({key: {"f:reason": {}}}), "{two}");
    ensure!(owned(one)[key]["f:reason"].is_null(), "{one}");
    ensure!(owned(one)[key]["f:status"].is_object(), "{one}");
    Ok(())
}

pub(super) async fn a_manager_is_named_by_its_user_agent(
    requests: Requests,
    name: String,
) -> Result<()> {
    requests.create(NODES, &node(&name)).await?.ok()?;
    let path = format!("{NODES}/{name}/status");
    let patch = conditions(&[condition("A", "First")]);
    let node = requests.strategic(&path, &patch).await?.ok()?;
    entry(&node, "semantics", "Update")?;
    Ok(())
}

pub(super) async fn an_apply_owns_what_it_names(requests: Requests, name: String) -> Result<()> {
    requests.create(NODES, &node(&name)).await?.ok()?;
    let path = format!("{NODES}/{name}/status?fieldManager=one");
    let node = requests.apply(&path, &part(&name, &[condition("A", "First")])).await?.ok()?;
    ensure!(reasons(&node) == ["A=First"], "{node}");
    let one = entry(&node, "one", "Apply")?;
    let fields = json!({
        ".": {}, "f:lastHeartbeatTime": {}, "f:lastTransitionTime": {}, "f:message": {},
        "f:reason": {}, "f:status": {}, "f:type": {},
    });
    ensure!(*owned(one) == json!({r#"k:{"type":"A"}"#: fields}), "{one}");
    let without = format!("{NODES}/{name}/status");
    let answer = requests.apply(&without, &part(&name, &[condition("A", "First")])).await?;
    answer.refused(422, "Invalid")?;
    Ok(())
}

pub(super) async fn an_apply_that_changes_nothing_has_no_time(
    requests: Requests,
    name: String,
) -> Result<()> {
    requests.create(NODES, &node(&name)).await?.ok()?;
    let path = format!("{NODES}/{name}/status?fieldManager=");
    let part = part(&name, &[condition("A", "First")]);
    let before = requests.apply(&format!("{path}one"), &part).await?.ok()?;
    let after = requests.apply(&format!("{path}two"), &part).await?.ok()?;
    ensure!(entry(&after, "two", "Apply")?["time"].is_null(), "{after}");
    ensure!(owned(entry(&after, "one", "Apply")?) == owned(entry(&after, "two", "Apply")?));
    ensure!(before["metadata"]["resourceVersion"] != after["metadata"]["resourceVersion"]);
    let again = requests.apply(&format!("{path}two"), &part).await?.ok()?;
    ensure!(again == after, "{after} became {again}");
    Ok(())
}

pub(super) async fn an_apply_to_the_status_of_nothing_is_404(
    requests: Requests,
    name: String,
) -> Result<()> {
    let path = format!("{NODES}/{name}/status?fieldManager=one");
    let answer = requests.apply(&path, &part(&name, &[condition("A", "First")])).await?;
    answer.refused(404, "NotFound")?;
    Ok(())
}

pub(super) async fn an_apply_conflicts_with_other_owners(
    requests: Requests,
    name: String,
) -> Result<()> {
    requests.create(NODES, &node(&name)).await?.ok()?;
    let path = format!("{NODES}/{name}/status?fieldManager=");
    let first = part(&name, &[condition("A", "First")]);
    requests.apply(&format!("{path}one"), &first).await?.ok()?;
    let second = part(&name, &[condition("A", "Second")]);
    let status = requests.apply(&format!("{path}two"), &second).await?.refused(409, "Conflict")?;
    let cause = &status["details"]["causes"][0];
    ensure!(cause["reason"] == "FieldManagerConflict", "{status}");
    ensure!(cause["field"] == r#".status.conditions[type="A"].reason"#, "{status}");
    let node = requests.apply(&format!("{path}two&force=true"), &second).await?.ok()?;
    ensure!(reasons(&node) == ["A=Second"], "{node}");
    let key = r#"k:{"type":"A"}"#;
    let (one, two) = (entry(&node, "one", "Apply")?, entry(&node, "two", "Apply")?);
    ensure!(owned(one)[key]["f:reason"].is_null(), "{one}");
    ensure!(owned(one)[key]["f:status"].is_object(), "{one}");
    ensure!(owned(two)[key]["f:status"].is_object(), "{two}");
    Ok(())
}

pub(super) async fn an_apply_removes_what_it_leaves_out(
    requests: Requests,
    name: String,
) -> Result<()> {
    requests.create(NODES, &node(&name)).await?.ok()?;
    let path = format!("{NODES}/{name}/status?fieldManager=");
    let both = part(&name, &[condition("A", "First"), condition("B", "First")]);
    requests.apply(&format!("{path}one"), &both).await?.ok()?;
    let other = conditions(&[condition("C", "Other")]);
    requests.strategic(&format!("{path}two"), &other).await?.ok()?;
    let fewer = part(&name, &[condition("B", "Second")]);
    let node = requests.apply(&format!("{path}one"), &fewer).await?.ok()?;
    let mut left = reasons(&node);
    left.sort();
    ensure!(left == ["B=Second", "C=Other"], "{node}");
    Ok(())
}
