//! `metadata.managedFields`: which manager wrote which field last.

use serde_json::{Map, Value, json};

use super::check;
use super::failure::Failure;
use super::fields::{self, Path, Set};
use super::resource::Resource;

/// Who writes, by what, and when.
#[derive(Debug, Clone)]
pub(super) struct Writer {
    /// The manager's name.
    pub(super) manager: String,
    /// The `apiVersion` that it wrote in.
    pub(super) api_version: String,
    /// Whether it wrote to the sub-resource `status`.
    pub(super) status: bool,
    /// The time, as `managedFields` shows it.
    pub(super) time: String,
}

impl Writer {
    fn entry(&self, operation: &'static str, set: Set) -> Entry {
        Entry { writer: self.clone(), operation: operation.to_owned(), set }
    }

    /// Tells whether a write of this sort leaves `path` as it was.
    fn leaves(&self, resource: &Resource, path: &Path) -> bool {
        let left = if self.status { "f:spec" } else { "f:status" };
        resource.status && path.first().is_some_and(|top| top == left)
    }
}

/// One entry of `managedFields`.
#[derive(Debug)]
struct Entry {
    writer: Writer,
    operation: String,
    set: Set,
}

impl Entry {
    fn read(entry: &Value) -> Self {
        let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        let writer = Writer {
            manager: text("manager"),
            api_version: text("apiVersion"),
            status: entry["subresource"] == "status",
            time: text("time"),
        };
        Self { writer, operation: text("operation"), set: fields::from_tree(&entry["fieldsV1"]) }
    }

    fn write(&self) -> Value {
        let mut entry = json!({
            "manager": self.writer.manager, "operation": self.operation,
            "apiVersion": self.writer.api_version, "fieldsType": "FieldsV1", "fieldsV1": fields::to_tree(&self.set),
        });
        if !self.writer.time.is_empty() {
            entry["time"] = json!(self.writer.time);
        }
        if self.writer.status {
            entry["subresource"] = json!("status");
        }
        entry
    }

    /// Returns how a conflict names it.
    fn shown(&self) -> String {
        let Writer { manager, api_version, .. } = &self.writer;
        let within = if self.writer.status { " with subresource \"status\"" } else { "" };
        match self.operation.as_str() {
            "Update" => format!("{manager:?}{within} using {api_version}"),
            _ => format!("{manager:?}{within}"),
        }
    }

    fn is(&self, writer: &Writer, operation: &str) -> bool {
        self.operation == operation
            && self.writer.manager == writer.manager
            && self.writer.status == writer.status
    }
}

fn read(object: &Value) -> Vec<Entry> {
    let entries = object["metadata"]["managedFields"].as_array();
    entries.map(|entries| entries.iter().map(Entry::read).collect()).unwrap_or_default()
}

fn write(object: &mut Value, mut entries: Vec<Entry>) {
    entries.retain(|entry| !entry.set.is_empty());
    entries.sort_by(|a, b| {
        let order = |entry: &Entry| (entry.operation.clone(), entry.writer.time.clone());
        order(a).cmp(&order(b))
    });
    let Some(metadata) = object["metadata"].as_object_mut() else { return };
    if entries.is_empty() {
        metadata.remove("managedFields");
    } else {
        metadata.insert("managedFields".into(), entries.iter().map(Entry::write).collect());
    }
}

/// Records in `new` who wrote what differs from `old`.
///
/// An object that nobody was recorded for at its creation stays so until an apply.
pub(super) fn updated(resource: &Resource, old: Option<&Value>, new: &mut Value, writer: &Writer) {
    let entries = old.map(read).unwrap_or_default();
    if old.is_some() && entries.is_empty() {
        return write(new, entries);
    }
    let entries = after_update(resource, old, new, (entries, writer));
    write(new, entries);
}

fn after_update(
    resource: &Resource,
    old: Option<&Value>,
    new: &Value,
    (mut entries, writer): (Vec<Entry>, &Writer),
) -> Vec<Entry> {
    let nothing = check::kept(resource, json!({"metadata": {}}));
    let mut found = fields::compare(resource, old.unwrap_or(&nothing), new);
    found.changed.retain(|path| !writer.leaves(resource, path));
    // Nobody converts fields between the two groups of Events, nor does a real server.
    entries.retain(|entry| entry.writer.api_version == writer.api_version);
    for entry in &mut entries {
        entry.set.retain(|path| !found.changed.contains(path) && !found.removed.contains(path));
    }
    if found.changed.is_empty() {
        return entries;
    }
    match entries.iter_mut().find(|entry| entry.is(writer, "Update")) {
        Some(entry) => {
            entry.set.append(&mut found.changed);
            entry.writer = writer.clone();
        }
        None => entries.push(writer.entry("Update", found.changed)),
    }
    entries
}

/// Returns `old` with `part` applied by `writer`.
///
/// # Errors
///
/// If another manager owns what `part` changes, and `force` is not said.
pub(super) fn applied(
    resource: &Resource,
    old: Option<&Value>,
    part: &Value,
    (writer, force): (&Writer, bool),
) -> Result<Value, Failure> {
    let mut new = old.cloned().unwrap_or_else(|| json!({"metadata": {}}));
    let mut entries = entries_before_apply(resource, old, writer);
    let mut named = fields::named(resource, part);
    let is_empty =
        |path: &Path| fields::at(part, path).and_then(Value::as_array).is_some_and(Vec::is_empty);
    named.retain(|path| !writer.leaves(resource, path) && !is_empty(path));
    let conflicts = conflicts(&entries, &named, (&new, part), writer);
    if !force && !conflicts.is_empty() {
        return Err(refusal(&conflicts));
    }
    for entry in entries.iter_mut().filter(|entry| !entry.is(writer, "Apply")) {
        entry.set.retain(|path| !conflicts.iter().any(|(_, lost)| lost == path));
    }
    merge(resource, &mut Vec::new(), &mut new, part);
    let place = entries.iter().position(|entry| entry.is(writer, "Apply"));
    let mine = place.map(|place| entries.remove(place));
    let gone: Vec<_> = mine.iter().flat_map(|mine| mine.set.difference(&named)).collect();
    let kept = |path: &Path| {
        let below = |set: &Set| set.iter().any(|other| other.starts_with(path));
        below(&named) || entries.iter().any(|entry| below(&entry.set))
    };
    for path in gone.iter().filter(|path| !kept(path)) {
        fields::remove(&mut new, path);
    }
    // An apply that changes nothing has no time of its own.
    let same = old == Some(&new);
    let time = if same {
        mine.map(|mine| mine.writer.time).unwrap_or_default()
    } else {
        writer.time.clone()
    };
    entries.push(Writer { time, ..writer.clone() }.entry("Apply", named));
    write(&mut new, entries);
    Ok(new)
}

/// Returns the entries, with one for all that was there before the first apply.
fn entries_before_apply(resource: &Resource, old: Option<&Value>, writer: &Writer) -> Vec<Entry> {
    let (Some(old), entries) = (old, old.map(read).unwrap_or_default()) else {
        return Vec::new();
    };
    if !entries.is_empty() {
        return entries;
    }
    let before = Writer { manager: "before-first-apply".to_owned(), ..writer.clone() };
    after_update(resource, None, old, (entries, &before))
}

/// Returns who else owns what the part changes.
fn conflicts(
    entries: &[Entry],
    named: &Set,
    (old, part): (&Value, &Value),
    writer: &Writer,
) -> Vec<(String, Path)> {
    let differs = |path: &Path| match (fields::at(old, path), fields::at(part, path)) {
        (Some(Value::Object(_)), Some(Value::Object(_))) => false,
        (old, part) => old != part,
    };
    let others = entries.iter().filter(|entry| !entry.is(writer, "Apply"));
    let lost = |entry: &Entry| {
        let both = entry.set.intersection(named).filter(|path| differs(path)).cloned();
        both.map(|path| (entry.shown(), path)).collect::<Vec<_>>()
    };
    others.flat_map(lost).collect()
}

fn refusal(conflicts: &[(String, Path)]) -> Failure {
    let said = |(manager, path): &(String, Path)| {
        format!("conflict with {manager}: {}", fields::shown(path))
    };
    let said: Vec<_> = conflicts.iter().map(said).collect();
    let message = format!("Apply failed with {} conflict(s): {}", said.len(), said.join(", "));
    let mut failure = Failure::new(409, "Conflict", message);
    let cause = |(manager, path): &(String, Path)| {
        json!({
            "reason": "FieldManagerConflict", "message": format!("conflict with {manager}"),
            "field": fields::shown(path),
        })
    };
    let causes: Vec<_> = conflicts.iter().map(cause).collect();
    failure.0["details"] = json!({ "causes": causes });
    failure
}

/// Merges a part into an object, keyed lists item by item.
fn merge<'a>(resource: &Resource, path: &mut Vec<&'a str>, target: &mut Value, part: &'a Value) {
    match part {
        Value::Object(part) => {
            if !target.is_object() {
                *target = Value::Object(Map::new());
            }
            for (name, value) in part {
                path.push(name);
                merge(resource, path, &mut target[name], value);
                path.pop();
            }
        }
        Value::Array(items) => match (resource.key_of(path), target.as_array_mut()) {
            (Some(key), Some(list)) => {
                for item in items {
                    match list.iter_mut().find(|old| old.get(key) == item.get(key)) {
                        Some(old) => merge(resource, path, old, item),
                        None => list.push(item.clone()),
                    }
                }
            }
            _ => *target = part.clone(),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            *target = part.clone();
        }
    }
}
