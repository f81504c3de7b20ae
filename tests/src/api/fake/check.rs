//! What an object must be to be kept, and the two forms of an Event.

use serde_json::{Value, json};

use super::failure::{Cause, Failure};
use super::resource::{Form, Resource};

/// An Event's fields: in `events.k8s.io`, in the core group.
const RENAMED: &[(&str, &str)] = &[
    ("deprecatedCount", "count"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedSource", "source"),
    ("note", "message"),
    ("regarding", "involvedObject"),
    ("reportingController", "reportingComponent"),
];

/// Returns a kept object as `resource` shows it.
pub(super) fn shown(resource: &Resource, object: &Value) -> Value {
    let mut object = object.clone();
    if resource.form == Form::CoreEvent {
        rename(&mut object, RENAMED.iter().map(|(kept, core)| (*kept, *core)));
    }
    object["apiVersion"] = json!(resource.api_version());
    object["kind"] = json!(resource.kind);
    object
}

/// Returns an object of `resource` as it is kept.
pub(super) fn kept(resource: &Resource, mut object: Value) -> Value {
    if resource.form == Form::CoreEvent {
        rename(&mut object, RENAMED.iter().map(|(kept, core)| (*core, *kept)));
    }
    if let Some(fields) = object.as_object_mut() {
        fields.remove("apiVersion");
        fields.remove("kind");
        fields.retain(|_, value| !value.is_null());
    }
    complete(resource, &mut object);
    object
}

fn rename<'a>(object: &mut Value, names: impl Iterator<Item = (&'a str, &'a str)>) {
    let Some(fields) = object.as_object_mut() else { return };
    for (from, to) in names {
        if let Some(value) = fields.remove(from) {
            fields.insert(to.into(), value);
        }
    }
}

/// Adds what a server's own form of an object never lacks, and drops what it omits.
fn complete(resource: &Resource, object: &mut Value) {
    for name in ["labels", "annotations", "finalizers", "ownerReferences"] {
        let value = &object["metadata"][name];
        let is_empty = value.as_object().is_some_and(serde_json::Map::is_empty)
            || value.as_array().is_some_and(Vec::is_empty)
            || value.is_null();
        if let (true, Some(metadata)) = (is_empty, object["metadata"].as_object_mut()) {
            metadata.remove(name);
        }
    }
    if resource.status {
        for part in ["spec", "status"] {
            if !object[part].is_object() {
                object[part] = json!({});
            }
        }
    }
    if matches!(resource.form, Form::CoreEvent | Form::Event) {
        for part in ["deprecatedSource", "regarding"] {
            if object[part].is_null() {
                object[part] = json!({});
            }
        }
    }
    if resource.kind == "Node" {
        let info = &mut object["status"]["nodeInfo"];
        for name in NODE_INFO {
            if info[name].is_null() {
                info[name] = json!("");
            }
        }
        let port = &mut object["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"];
        if port.is_null() {
            *port = json!(0);
        }
    }
}

const NODE_INFO: &[&str] = &[
    "architecture",
    "bootID",
    "containerRuntimeVersion",
    "kernelVersion",
    "kubeProxyVersion",
    "kubeletVersion",
    "machineID",
    "operatingSystem",
    "osImage",
    "systemUUID",
];

/// Checks an object to be kept, by the rules of the resource that it came through.
///
/// # Errors
///
/// If it breaks one.
pub(super) fn check(resource: &Resource, old: Option<&Value>, new: &Value) -> Result<(), Failure> {
    let name = new["metadata"]["name"].as_str().unwrap_or_default();
    let mut causes = Vec::new();
    check_times(resource, old.is_some(), new)?;
    if !is_subdomain(name) {
        let said = format!("{name:?}: a lowercase RFC 1123 subdomain must consist of lower case");
        causes.push(invalid("metadata.name", &said));
    }
    if let Some(old) = old.filter(|old| old["metadata"]["uid"] != new["metadata"]["uid"]) {
        debug_assert!(old["metadata"]["uid"].is_string());
        causes.push(invalid("metadata.uid", "field is immutable"));
    }
    if matches!(resource.form, Form::CoreEvent | Form::Event) {
        any_event(resource, new, &mut causes);
    }
    match (resource.form, old) {
        (Form::Event, None) => new_event(new, &mut causes),
        (Form::Event, Some(old)) => changed_event(old, new, &mut causes),
        (Form::CoreEvent | Form::Plain, _) => {}
    }
    if causes.is_empty() { Ok(()) } else { Err(Failure::invalid(resource, name, &causes)) }
}

/// Checks the times that a real server could not decode; it says so as 422 only of a patch.
fn check_times(resource: &Resource, is_patch: bool, event: &Value) -> Result<(), Failure> {
    let times = [&event["eventTime"], &event["series"]["lastObservedTime"]];
    let mut times = times.into_iter().filter_map(Value::as_str);
    let odd = match resource.form {
        Form::CoreEvent | Form::Event => times.find(|time| !is_micro_time(time)),
        Form::Plain => None,
    };
    let Some(time) = odd else { return Ok(()) };
    let said = format!("parsing time {time:?} as \"2006-01-02T15:04:05.000000Z07:00\"");
    if is_patch {
        return Err(Failure::invalid(resource, "", &[invalid("patch", &said)]));
    }
    Err(Failure::bad_request(said))
}

fn invalid(field: &str, said: &str) -> Cause {
    (field.to_owned(), "FieldValueInvalid", format!("Invalid value: {said}"))
}

fn required(field: &str) -> Cause {
    (field.to_owned(), "FieldValueRequired", "Required value".to_owned())
}

/// Tells whether a time has six decimals, as a `MicroTime` has to.
fn is_micro_time(text: &str) -> bool {
    let decimals = text.split_once('.').map(|(_, after)| after.bytes());
    let count = decimals.map_or(0, |bytes| bytes.take_while(u8::is_ascii_digit).count());
    count == 6 && text.parse::<jiff::Timestamp>().is_ok()
}

/// Tells whether `name` is one like `example.org/name`, or without the part before the slash.
fn is_qualified(name: &str) -> bool {
    let (prefix, name) = name.split_once('/').unwrap_or(("a", name));
    let is_end = |end: Option<char>| end.is_some_and(|end| end.is_ascii_alphanumeric());
    let fits = |one: char| one.is_ascii_alphanumeric() || "-_.".contains(one);
    is_subdomain(prefix)
        && name.len() <= 63
        && name.chars().all(fits)
        && is_end(name.chars().next())
        && is_end(name.chars().next_back())
}

fn is_subdomain(name: &str) -> bool {
    let is_label = |label: &str| {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        !label.is_empty()
            && label.bytes().all(|byte| inner(byte) || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

/// The rules for Events that hold in both groups: kubernetes `ValidateEventCreate`.
fn any_event(resource: &Resource, event: &Value, causes: &mut Vec<Cause>) {
    let text = |name: &str| event[name].as_str().unwrap_or_default();
    let namespace = event["metadata"]["namespace"].as_str().unwrap_or_default();
    let of = event["regarding"]["namespace"].as_str().unwrap_or_default();
    let is_new = !event["eventTime"].is_null();
    let fits = match (is_new, of) {
        (false, "") => namespace == "default",
        (true, "") => namespace == "default" || namespace == "kube-system",
        (false, of) => of == namespace,
        (true, _) => true,
    };
    if !fits {
        causes.push(invalid("involvedObject.namespace", "does not match event.namespace"));
    }
    if !is_new {
        return;
    }
    let is_core = resource.form == Form::CoreEvent;
    let controller = if is_core { "reportingComponent" } else { "reportingController" };
    match text("reportingController") {
        "" => causes.push(required(controller)),
        name if is_qualified(name) => {}
        _ => causes.push(invalid(controller, "name part must consist of alphanumeric characters")),
    }
    for name in ["reportingInstance", "action", "reason"] {
        match text(name).len() {
            0 => causes.push(required(name)),
            129.. => causes.push(invalid(name, "can have at most 128 characters")),
            _ => {}
        }
    }
    if text("note").len() > 1024 {
        causes.push(invalid("message", "can have at most 1024 characters"));
    }
}

/// The rules for Events that are made through `events.k8s.io`.
fn new_event(event: &Value, causes: &mut Vec<Cause>) {
    check_series(event, causes);
    if event["eventTime"].is_null() {
        causes.push(required("eventTime"));
    }
    if event["type"] != "Normal" && event["type"] != "Warning" {
        causes.push(invalid("type", "has invalid value"));
    }
    for (name, shown) in RENAMED.iter().filter(|(name, _)| name.starts_with("deprecated")) {
        if !event[name].is_null() && event[name] != json!({}) {
            causes.push(invalid(shown, "needs to be unset"));
        }
    }
}

/// The rules for Events that are changed through `events.k8s.io`.
fn changed_event(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    if old["series"] != new["series"] {
        check_series(new, causes);
    }
    let same_name = ["reason", "type", "eventTime", "action", "related", "reportingInstance"];
    let renamed = RENAMED.iter().map(|(kept, core)| match *kept {
        "reportingController" => (*kept, *kept),
        _ => (*kept, *core),
    });
    for (kept, shown) in renamed.chain(same_name.map(|name| (name, name))) {
        if old[kept] != new[kept] {
            causes.push(invalid(shown, "field is immutable"));
        }
    }
}

fn check_series(event: &Value, causes: &mut Vec<Cause>) {
    let series = &event["series"];
    if series.is_null() {
        return;
    }
    if series["count"].as_i64().unwrap_or_default() < 2 {
        causes.push(invalid("series.count", "should be at least 2"));
    }
    if series["lastObservedTime"].is_null() {
        causes.push(required("series.lastObservedTime"));
    }
}
