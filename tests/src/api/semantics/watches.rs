//! Cases of lists and watches.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::Requests;
use super::events::{EVENTS, event};
use super::nodes::{NODES, node};

/// Returns what happened to the object `name`, such as `ADDED`.
fn kinds<'a>(events: &'a [Value], name: &str) -> Vec<&'a str> {
    let of = |event: &&Value| event["object"]["metadata"]["name"] == name;
    events.iter().filter(of).filter_map(|event| event["type"].as_str()).collect()
}

/// Returns the version that an object or a list bears.
fn version(object: &Value) -> Result<&str> {
    object["metadata"]["resourceVersion"].as_str().context("no resourceVersion")
}

async fn label(requests: &Requests, name: &str, value: &str) -> Result<Value> {
    let patch = json!({"metadata": {"labels": {"a": value}}});
    requests.merge(&format!("{NODES}/{name}"), &patch).await?.ok()
}

pub(super) async fn a_watch_goes_on_from_a_version(requests: Requests, name: String) -> Result<()> {
    let created = requests.create(NODES, &node(&name)).await?.ok()?;
    let changed = label(&requests, &name, "1").await?;
    requests.delete(&format!("{NODES}/{name}")).await?.ok()?;
    requests.create(NODES, &node(&name)).await?.ok()?;
    let from = version(&created)?;
    let watch = format!("{NODES}?watch=true&timeoutSeconds=1&resourceVersion={from}");
    let events = requests.watch(&watch).await?;
    ensure!(kinds(&events, &name) == ["MODIFIED", "DELETED", "ADDED"], "{events:?}");
    let last: Vec<_> = events.iter().filter(|e| e["object"]["metadata"]["name"] == name).collect();
    ensure!(last[0]["object"] == changed, "{}", last[0]);
    ensure!(version(&last[1]["object"])? != version(&changed)?, "a deletion has no version");
    Ok(())
}

pub(super) async fn a_watch_without_a_version_begins_with_what_is_there(
    requests: Requests,
    name: String,
) -> Result<()> {
    requests.create(NODES, &node(&name)).await?.ok()?;
    for version in ["", "&resourceVersion=0"] {
        let watch = format!("{NODES}?watch=1&timeoutSeconds=1{version}");
        let events = requests.watch(&watch).await?;
        ensure!(kinds(&events, &name) == ["ADDED"], "{version}: {events:?}");
    }
    Ok(())
}

pub(super) async fn what_is_forgotten_is_410(
    requests: Requests,
    prefix: &str,
    compact: impl AsyncFnOnce(u64) -> Result<()>,
) -> Result<()> {
    let first = requests.create(EVENTS, &event(&format!("{prefix}-0"))).await?.ok()?;
    let old = requests.get(&format!("{EVENTS}?limit=1")).await?.ok()?;
    requests.create(EVENTS, &event(&format!("{prefix}-1"))).await?.ok()?;
    let last = requests.create(EVENTS, &event(&format!("{prefix}-2"))).await?.ok()?;
    compact(version(&last)?.parse()?).await?;
    let from = version(&first)?;
    let watch = format!("{EVENTS}?watch=true&timeoutSeconds=5&resourceVersion={from}");
    let events = requests.watch(&watch).await?;
    ensure!(events.len() == 1, "{events:?}");
    let (kind, status) = (&events[0]["type"], &events[0]["object"]);
    ensure!(kind == "ERROR" && status["kind"] == "Status", "{events:?}");
    ensure!(status["code"] == 410 && status["reason"] == "Expired", "{status}");
    let exact = format!("{EVENTS}?resourceVersion={from}&resourceVersionMatch=Exact");
    requests.get(&exact).await?.refused(410, "Expired")?;
    if let Some(token) = old["metadata"]["continue"].as_str() {
        let page = requests.get(&format!("{EVENTS}?limit=1&continue={token}")).await?;
        page.refused(410, "Expired")?;
    }
    Ok(())
}

pub(super) async fn a_bookmark_comes_before_the_end(
    requests: Requests,
    name: String,
) -> Result<()> {
    let created = requests.create(NODES, &node(&name)).await?.ok()?;
    let from = version(&created)?;
    let watch = format!("{NODES}?watch=true&timeoutSeconds=4&resourceVersion={from}");
    let selector = format!("&fieldSelector=metadata.name={name}");
    let events = requests.watch(&format!("{watch}{selector}&allowWatchBookmarks=true")).await?;
    let last = events.last().context("no event came")?;
    ensure!(last["type"] == "BOOKMARK", "{last}");
    ensure!(last["object"]["kind"] == "Node", "{last}");
    ensure!(last["object"]["metadata"]["name"].is_null(), "{last}");
    ensure!(version(&last["object"])?.parse::<u64>()? >= from.parse()?, "{last}");
    let events = requests.watch(&format!("{watch}{selector}")).await?;
    ensure!(events.is_empty(), "a bookmark came unasked for: {events:?}");
    Ok(())
}

pub(super) async fn a_field_selector_narrows_list_and_watch(
    requests: Requests,
    name: String,
) -> Result<()> {
    let other = format!("{name}-other");
    let before = requests.create(NODES, &node(&other)).await?.ok()?;
    requests.create(NODES, &node(&name)).await?.ok()?;
    let path = format!("{NODES}?fieldSelector=metadata.name%3D{name}");
    let list = requests.get(&path).await?.ok()?;
    ensure!(list["kind"] == "NodeList" && list["apiVersion"] == "v1", "{list}");
    let items = list["items"].as_array().context("no items")?;
    ensure!(items.len() == 1 && items[0]["metadata"]["name"] == name, "{list}");
    ensure!(items[0]["kind"].is_null(), "an item of a list has no kind: {list}");
    label(&requests, &other, "1").await?;
    let watch = format!("{path}&watch=true&timeoutSeconds=1&resourceVersion={}", version(&before)?);
    let events = requests.watch(&watch).await?;
    ensure!(kinds(&events, &name) == ["ADDED"] && events.len() == 1, "{events:?}");
    Ok(())
}

pub(super) async fn an_unknown_field_selector_is_400(
    requests: Requests,
    _name: String,
) -> Result<()> {
    let path = format!("{NODES}?fieldSelector=status.phase%3DGood");
    requests.get(&path).await?.refused(400, "BadRequest")?;
    Ok(())
}

pub(super) async fn a_list_comes_in_pages(requests: Requests, name: String) -> Result<()> {
    for number in 0..3 {
        let mut node = node(&format!("{name}-{number}"));
        node["metadata"]["labels"] = json!({"set": name});
        requests.create(NODES, &node).await?.ok()?;
    }
    let path = format!("{NODES}?labelSelector=set%3D{name}&limit=2");
    let first = requests.get(&path).await?.ok()?;
    ensure!(first["items"].as_array().is_some_and(|items| items.len() == 2), "{first}");
    let token = first["metadata"]["continue"].as_str().context("no continue")?;
    let second = requests.get(&format!("{path}&continue={token}")).await?.ok()?;
    ensure!(second["items"].as_array().is_some_and(|items| items.len() == 1), "{second}");
    ensure!(second["metadata"]["continue"].is_null(), "{second}");
    Ok(())
}

pub(super) async fn initial_events_end_with_a_bookmark(
    requests: Requests,
    name: String,
) -> Result<()> {
    requests.create(NODES, &node(&name)).await?.ok()?;
    let watch = format!("{NODES}?watch=true&timeoutSeconds=1&fieldSelector=metadata.name={name}");
    let more = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let events = requests.watch(&format!("{watch}{more}")).await?;
    ensure!(kinds(&events, &name) == ["ADDED"], "{events:?}");
    let mark = &events[1]["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"];
    ensure!(events[1]["type"] == "BOOKMARK" && mark == "true", "{events:?}");
    Ok(())
}
