//! Sets of an object's fields, as `fieldsV1` writes them.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::resource::Resource;

/// The way to a field: `f:name`, `k:{"type":"A"}` or `v:"item"` each.
pub(super) type Path = Vec<String>;

/// Fields of one object.
pub(super) type Set = BTreeSet<Path>;

/// Writes a set as the tree of `fieldsV1`.
pub(super) fn to_tree(set: &Set) -> Value {
    let mut tree = json!({});
    for path in set {
        let mut place = &mut tree;
        for step in path {
            place = &mut place[step];
            if !place.is_object() {
                *place = json!({});
            }
        }
    }
    for path in set {
        let place = path.iter().fold(&mut tree, |place, step| &mut place[step]);
        if place.as_object().is_some_and(|place| !place.is_empty()) {
            place["."] = json!({});
        }
    }
    tree
}

/// Reads a set from the tree of `fieldsV1`.
pub(super) fn from_tree(tree: &Value) -> Set {
    fn walk(tree: &Value, path: &mut Path, set: &mut Set) {
        let Some(tree) = tree.as_object() else { return };
        if tree.is_empty() || tree.contains_key(".") {
            set.insert(path.clone());
        }
        for (step, below) in tree.iter().filter(|(step, _)| *step != ".") {
            path.push(step.clone());
            walk(below, path, set);
            path.pop();
        }
    }
    let mut set = Set::new();
    walk(tree, &mut Path::new(), &mut set);
    set.remove(&Path::new());
    set
}

/// Returns what is at `path` in `object`.
pub(super) fn at<'a>(object: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(object, |place, step| match step.split_at_checked(2)? {
        ("f:", name) => place.get(name),
        (_, item) => place.get(position(place, step, item)?),
    })
}

/// Removes what is at `path` in `object`, but never what tells a list's items apart.
pub(super) fn remove(object: &mut Value, path: &[String]) {
    let Some((step, above)) = path.split_last() else { return };
    let tells_apart =
        |item: &String| item.contains(&format!("{:?}:", step.trim_start_matches("f:")));
    if above.last().is_some_and(tells_apart) {
        return;
    }
    let parent = above.iter().try_fold(object, |place, step| match step.split_at_checked(2)? {
        ("f:", name) => place.get_mut(name),
        (_, item) => {
            let index = position(place, step, item)?;
            place.get_mut(index)
        }
    });
    let Some(parent) = parent else { return };
    let place = step.split_at_checked(2).and_then(|(_, item)| position(parent, step, item));
    match (parent, place) {
        (Value::Object(fields), _) => drop(fields.remove(step.trim_start_matches("f:"))),
        (Value::Array(items), Some(place)) => drop(items.remove(place)),
        _ => {}
    }
}

fn position(list: &Value, step: &str, item: &str) -> Option<usize> {
    let item: Value = serde_json::from_str(item).ok()?;
    let is = |one: &Value| match (step.starts_with("k:"), &item) {
        (true, Value::Object(keys)) => keys.iter().all(|(key, id)| one.get(key) == Some(id)),
        _ => *one == item,
    };
    list.as_array()?.iter().position(is)
}

/// Writes a path as error messages do.
pub(super) fn shown(path: &[String]) -> String {
    let step = |step: &String| match step.split_at_checked(2) {
        Some(("k:", keys)) => {
            let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
            let keys: Vec<_> = keys.iter().map(|(key, id)| format!("{key}={id}")).collect();
            format!("[{}]", keys.join(","))
        }
        Some(("f:", name)) => format!(".{name}"),
        _ => format!("[={step}]"),
    };
    path.iter().map(step).collect()
}

/// What differs between two objects.
#[derive(Debug, Default)]
pub(super) struct Difference {
    /// Fields that are new or have another value.
    pub(super) changed: Set,
    /// Fields that are gone.
    pub(super) removed: Set,
}

/// Compares two objects of `resource`, without what no manager owns.
pub(super) fn compare(resource: &Resource, old: &Value, new: &Value) -> Difference {
    let mut found = Difference::default();
    let mut place = Place { resource, names: Vec::new(), path: Path::new() };
    place.compare(Some(old), Some(new), &mut found);
    found
}

/// Returns the fields that a part of an object names, to be applied.
pub(super) fn named(resource: &Resource, part: &Value) -> Set {
    let all = compare(resource, &json!({}), part).changed;
    let has_below =
        |path: &Path| all.iter().any(|other| other.len() > path.len() && other.starts_with(path));
    let is_item = |path: &Path| path.last().is_some_and(|step| !step.starts_with("f:"));
    all.iter().filter(|path| is_item(path) || !has_below(path)).cloned().collect()
}

struct Place<'a> {
    resource: &'a Resource,
    names: Vec<String>,
    path: Path,
}

impl Place<'_> {
    fn compare(&mut self, old: Option<&Value>, new: Option<&Value>, found: &mut Difference) {
        if old == new || self.is_nobodys() {
            return;
        }
        let (before, after) = (self.parts(old), self.parts(new));
        match (&before, &after) {
            (Some(_), Some(_)) => {}
            _ if old.is_some_and(Value::is_object)
                && new.is_some_and(Value::is_object)
                && !self.is_atomic() => {}
            (None, _) if new.is_some_and(Value::is_object) && self.is_always_there() => {}
            (_, _) if new.is_some() => drop(found.changed.insert(self.path.clone())),
            _ => {}
        }
        if new.is_none() {
            found.removed.insert(self.path.clone());
        }
        let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
        for (step, value) in &after {
            let old = before.iter().find(|(other, _)| other == step).map(|(_, value)| *value);
            self.step(step, |place| place.compare(old, Some(value), found));
        }
        for (step, value) in before.iter().filter(|(step, _)| !after.iter().any(|(s, _)| s == step))
        {
            self.step(step, |place| place.compare(Some(value), None, found));
        }
    }

    fn step(&mut self, step: &str, visit: impl FnOnce(&mut Self)) {
        let name = step.strip_prefix("f:").map(str::to_owned);
        let named = name.is_some();
        self.names.extend(name);
        self.path.push(step.to_owned());
        visit(self);
        self.path.pop();
        if named {
            self.names.pop();
        }
    }

    /// Returns the parts that are owned one by one; none where the whole is one field.
    fn parts<'v>(&self, value: Option<&'v Value>) -> Option<Vec<(String, &'v Value)>> {
        let names: Vec<_> = self.names.iter().map(String::as_str).collect();
        match value? {
            _ if self.is_atomic() => None,
            Value::Object(fields) if !fields.is_empty() => {
                Some(fields.iter().map(|(name, value)| (format!("f:{name}"), value)).collect())
            }
            Value::Array(items) if names == ["metadata", "finalizers"] => {
                Some(items.iter().map(|item| (format!("v:{item}"), item)).collect())
            }
            Value::Array(items) => {
                let key = self.resource.key_of(&names)?;
                let id = |item: &Value| json!({key: item.get(key)}).to_string();
                Some(items.iter().map(|item| (format!("k:{}", id(item)), item)).collect())
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Object(_) => None,
        }
    }

    /// Tells whether no manager ever owns this field.
    fn is_nobodys(&self) -> bool {
        match self.path.as_slice() {
            [top] => top == "f:apiVersion" || top == "f:kind",
            [top, field] => top == "f:metadata" && NOBODYS.contains(&field.as_str()),
            _ => false,
        }
    }

    /// Tells whether this is owned as a whole.
    fn is_atomic(&self) -> bool {
        matches!(self.path.as_slice(), [top] if top == "f:regarding" || top == "f:related")
    }

    /// Tells whether this is a struct that is never absent in the server's own form.
    fn is_always_there(&self) -> bool {
        let names: Vec<_> = self.names.iter().map(String::as_str).collect();
        self.path.len() == names.len() && (names.is_empty() || ALWAYS_THERE.contains(&&*names))
    }
}

const ALWAYS_THERE: &[&[&str]] = &[
    &["metadata"],
    &["spec"],
    &["status"],
    &["status", "daemonEndpoints"],
    &["status", "daemonEndpoints", "kubeletEndpoint"],
    &["status", "nodeInfo"],
    &["deprecatedSource"],
];

const NOBODYS: &[&str] = &[
    "f:creationTimestamp",
    "f:generation",
    "f:managedFields",
    "f:name",
    "f:namespace",
    "f:resourceVersion",
    "f:selfLink",
    "f:uid",
];
