//! Cases of Events: two groups that show one object, and what may change in it.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::Requests;

pub(super) const CORE: &str = "/api/v1/namespaces/default/events";
pub(super) const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";

pub(super) fn event(name: &str) -> Value {
    json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": name},
        "eventTime": "2026-01-02T03:04:05.123456Z", "reportingController": "example.org/test",
        "reportingInstance": "test-1", "action": "Test", "reason": "Tested", "type": "Warning",
        "note": "a note", "regarding": {"apiVersion": "v1", "kind": "Node", "name": name},
    })
}

pub(super) async fn an_event_is_read_in_both_groups(
    requests: Requests,
    name: String,
) -> Result<()> {
    requests.create(EVENTS, &event(&name)).await?.ok()?;
    let read = requests.get(&format!("{CORE}/{name}")).await?.ok()?;
    ensure!(read["apiVersion"] == "v1" && read["kind"] == "Event", "{read}");
    ensure!(read["message"] == "a note" && read["note"].is_null(), "{read}");
    ensure!(read["involvedObject"]["name"] == name, "{read}");
    ensure!(read["reportingComponent"] == "example.org/test", "{read}");
    ensure!(read["reportingInstance"] == "test-1", "{read}");
    ensure!(read["eventTime"] == "2026-01-02T03:04:05.123456Z", "{read}");
    let path = format!("{CORE}?fieldSelector=involvedObject.name={name}");
    let list = requests.get(&path).await?.ok()?;
    ensure!(list["items"].as_array().is_some_and(|items| items.len() == 1), "{list}");
    Ok(())
}

pub(super) async fn a_core_event_is_read_in_both_groups(
    requests: Requests,
    name: String,
) -> Result<()> {
    requests.create(CORE, &core_event(&name)).await?.ok()?;
    let read = requests.get(&format!("{EVENTS}/{name}")).await?.ok()?;
    ensure!(read["apiVersion"] == "events.k8s.io/v1", "{read}");
    ensure!(read["note"] == "a message" && read["deprecatedCount"] == 3, "{read}");
    ensure!(read["deprecatedSource"]["component"] == "test", "{read}");
    ensure!(read["deprecatedFirstTimestamp"] == "2026-01-02T03:04:05Z", "{read}");
    ensure!(read["regarding"]["kind"] == "Node" && read["eventTime"].is_null(), "{read}");
    Ok(())
}

fn core_event(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": name},
        "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": name},
        "reason": "Tested", "message": "a message", "type": "Normal", "count": 3,
        "source": {"component": "test"},
        "firstTimestamp": "2026-01-02T03:04:05Z", "lastTimestamp": "2026-01-02T03:04:06Z",
    })
}

fn series(count: i32) -> Value {
    json!({"series": {"count": count, "lastObservedTime": "2026-01-02T03:05:05.000001Z"}})
}

pub(super) async fn a_series_is_patched_in(requests: Requests, name: String) -> Result<()> {
    requests.create(EVENTS, &event(&name)).await?.ok()?;
    let path = format!("{EVENTS}/{name}");
    for count in [2, 3] {
        let new = requests.merge(&path, &series(count)).await?.ok()?;
        ensure!(new["series"] == series(count)["series"], "{new}");
    }
    let new = requests.strategic(&path, &series(4)).await?.ok()?;
    ensure!(new["series"]["count"] == 4, "{new}");
    Ok(())
}

pub(super) async fn a_series_counts_from_two(requests: Requests, name: String) -> Result<()> {
    let mut first = event(&name);
    first["series"] = series(1)["series"].clone();
    requests.create(EVENTS, &first).await?.refused(422, "Invalid")?;
    requests.create(EVENTS, &event(&name)).await?.ok()?;
    let path = format!("{EVENTS}/{name}");
    let status = requests.merge(&path, &series(1)).await?.refused(422, "Invalid")?;
    ensure!(status["details"]["causes"][0]["field"] == "series.count", "{status}");
    let untimed = json!({"series": {"count": 2}});
    requests.merge(&path, &untimed).await?.refused(422, "Invalid")?;
    Ok(())
}

pub(super) async fn an_event_needs_its_fields(requests: Requests, name: String) -> Result<()> {
    for field in
        ["eventTime", "reportingController", "reportingInstance", "action", "reason", "type"]
    {
        let mut lacking = event(&name);
        lacking[field] = Value::Null;
        let status = requests.create(EVENTS, &lacking).await?.refused(422, "Invalid")?;
        ensure!(status["details"]["causes"][0]["field"] == field, "{field}: {status}");
    }
    let mut odd = event(&name);
    odd["type"] = json!("Error");
    requests.create(EVENTS, &odd).await?.refused(422, "Invalid")?;
    let mut counted = event(&name);
    counted["deprecatedCount"] = json!(1);
    requests.create(EVENTS, &counted).await?.refused(422, "Invalid")?;
    Ok(())
}

pub(super) async fn an_event_time_has_six_decimals(requests: Requests, name: String) -> Result<()> {
    for time in
        ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.123Z", "2026-01-02T03:04:05.123456789Z"]
    {
        let mut odd = event(&name);
        odd["eventTime"] = json!(time);
        requests.create(EVENTS, &odd).await?.refused(400, "BadRequest")?;
    }
    requests.create(EVENTS, &event(&name)).await?.ok()?;
    let odd = json!({"series": {"count": 2, "lastObservedTime": "2026-01-02T03:05:05Z"}});
    let answer = requests.merge(&format!("{EVENTS}/{name}"), &odd).await?;
    answer.refused(422, "Invalid")?;
    Ok(())
}

pub(super) async fn an_event_needs_its_namespace(requests: Requests, name: String) -> Result<()> {
    let mut lost = event(&name);
    lost["regarding"]["namespace"] = json!("absent");
    let path = EVENTS.replace("default", "absent");
    requests.create(&path, &lost).await?.refused(404, "NotFound")?;
    Ok(())
}

pub(super) async fn a_note_has_at_most_1024_bytes(requests: Requests, name: String) -> Result<()> {
    let mut long = event(&name);
    long["note"] = json!("\u{e9}".repeat(512) + "x");
    let status = requests.create(EVENTS, &long).await?.refused(422, "Invalid")?;
    ensure!(status["details"]["causes"][0]["field"] == "message", "{status}");
    long["note"] = json!("\u{e9}".repeat(512));
    requests.create(EVENTS, &long).await?.ok()?;
    Ok(())
}

pub(super) async fn only_the_series_of_an_event_changes(
    requests: Requests,
    name: String,
) -> Result<()> {
    requests.create(EVENTS, &event(&name)).await?.ok()?;
    let path = format!("{EVENTS}/{name}");
    for (field, shown) in [
        ("note", "message"),
        ("reason", "reason"),
        ("action", "action"),
        ("type", "type"),
        ("reportingInstance", "reportingInstance"),
        ("eventTime", "eventTime"),
    ] {
        let value = match field {
            "type" => "Normal",
            "eventTime" => "2026-01-02T03:04:05.123457Z",
            _ => "another",
        };
        let status = requests.merge(&path, &json!({ field: value })).await?;
        let status = status.refused(422, "Invalid")?;
        ensure!(status["details"]["causes"][0]["field"] == shown, "{field}: {status}");
    }
    let labelled = json!({"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}});
    requests.merge(&path, &labelled).await?.ok()?;
    Ok(())
}

pub(super) async fn a_core_event_may_change(requests: Requests, name: String) -> Result<()> {
    requests.create(CORE, &core_event(&name)).await?.ok()?;
    let patch = json!({"message": "another", "count": 4, "lastTimestamp": "2026-01-02T03:04:07Z"});
    let new = requests.merge(&format!("{CORE}/{name}"), &patch).await?.ok()?;
    ensure!(new["message"] == "another" && new["count"] == 4, "{new}");
    Ok(())
}

pub(super) async fn an_event_of_the_same_name_is_409(
    requests: Requests,
    name: String,
) -> Result<()> {
    requests.create(EVENTS, &event(&name)).await?.ok()?;
    requests.create(EVENTS, &event(&name)).await?.refused(409, "AlreadyExists")?;
    requests.create(CORE, &core_event(&name)).await?.refused(409, "AlreadyExists")?;
    Ok(())
}
