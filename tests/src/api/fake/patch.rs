//! Patches: RFC 7386, and the strategic merge that finds list items by their keys.

use serde_json::{Map, Value, json};

use super::failure::Failure;
use super::resource::Resource;

/// Applies a patch of RFC 7386.
pub(super) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let Value::Object(target) = target else { return };
    for (name, value) in patch {
        if value.is_null() {
            target.remove(name);
        } else {
            merge(target.entry(name).or_insert(Value::Null), value);
        }
    }
}

/// Applies a strategic merge patch to an object of `resource`.
pub(super) fn strategic(
    resource: &Resource,
    target: &mut Value,
    patch: &Value,
) -> Result<(), Failure> {
    Strategic { resource, path: Vec::new() }.object(target, patch)
}

struct Strategic<'a> {
    resource: &'a Resource,
    path: Vec<&'a str>,
}

impl<'a> Strategic<'a> {
    fn object(&mut self, target: &mut Value, patch: &'a Value) -> Result<(), Failure> {
        if !target.is_object() || matches!(directive(patch), Some("replace" | "delete")) {
            *target = json!({});
        }
        let (Value::Object(target), Value::Object(patch)) = (target, patch) else {
            return Err(Failure::bad_request("a patch is an object"));
        };
        for (name, value) in patch {
            match name.strip_prefix('$') {
                Some(directive) => delete_from(target, directive, value),
                None if value.is_null() => drop(target.remove(name)),
                None => {
                    self.path.push(name);
                    let order = patch.get(&format!("$setElementOrder/{name}"));
                    self.field(target.entry(name).or_insert(Value::Null), value, order)?;
                    self.path.pop();
                }
            }
        }
        Ok(())
    }

    fn field(
        &mut self,
        target: &mut Value,
        value: &'a Value,
        order: Option<&Value>,
    ) -> Result<(), Failure> {
        match value {
            Value::Object(_) => self.object(target, value),
            Value::Array(items) => self.list(target, items, order.and_then(Value::as_array)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                *target = value.clone();
                Ok(())
            }
        }
    }

    fn list(
        &mut self,
        target: &mut Value,
        patch: &'a [Value],
        order: Option<&Vec<Value>>,
    ) -> Result<(), Failure> {
        let key = self.resource.key_of(&self.path);
        if !target.is_array() || patch.iter().any(|item| is_bare_replace(item, key)) {
            *target = json!([]);
        }
        let Value::Array(target) = target else { return Ok(()) };
        match key {
            Some(key) => {
                let before = target.clone();
                self.keyed(target, patch, key)?;
                let order = order.map_or(patch, Vec::as_slice);
                *target = ordered(core::mem::take(target), (&before, order), key);
                Ok(())
            }
            None if self.path == ["metadata", "finalizers"] => {
                let new = patch.iter().filter(|item| !target.contains(item));
                let new: Vec<_> = new.cloned().collect();
                target.extend(new);
                Ok(())
            }
            None => {
                *target = patch.to_vec();
                Ok(())
            }
        }
    }

    fn keyed(
        &mut self,
        target: &mut Vec<Value>,
        patch: &'a [Value],
        key: &str,
    ) -> Result<(), Failure> {
        for item in patch.iter().filter(|item| !is_bare_replace(item, Some(key))) {
            let Some(id) = item.get(key).filter(|id| !id.is_null()) else {
                let said = format!("map: {item} does not contain declared merge key: {key}");
                return Err(Failure::new(500, "", said));
            };
            let place = target.iter().position(|old| old.get(key) == Some(id));
            match (directive(item), place) {
                (Some("delete"), Some(place)) => drop(target.remove(place)),
                (Some("delete"), None) => {}
                (_, Some(place)) => self.object(&mut target[place], item)?,
                (_, None) => {
                    let mut new = json!({});
                    self.object(&mut new, item)?;
                    target.push(new);
                }
            }
        }
        Ok(())
    }
}

/// Puts the items of a list in the order of the patch, and the others where they were.
///
/// A new item comes before the next that the patch does not name, so mostly first.
fn ordered(list: Vec<Value>, (before, order): (&[Value], &[Value]), key: &str) -> Vec<Value> {
    let place = |list: &[Value], item: &Value| {
        list.iter().position(|other| other.get(key) == item.get(key))
    };
    let (mut named, others): (Vec<_>, Vec<_>) =
        list.into_iter().partition(|item| place(order, item).is_some());
    named.sort_by_key(|item| place(order, item));
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    let mut merged = Vec::new();
    while let (Some(one), Some(other)) = (named.peek(), others.peek()) {
        let is_first = match (place(before, other), place(before, one)) {
            (Some(other), Some(one)) => other < one,
            _ => false,
        };
        merged.extend(if is_first { others.next() } else { named.next() });
    }
    merged.extend(named.chain(others));
    merged
}

fn directive(patch: &Value) -> Option<&str> {
    patch.get("$patch")?.as_str()
}

/// Tells whether an item says that the list is replaced rather than merged.
fn is_bare_replace(item: &Value, key: Option<&str>) -> bool {
    directive(item) == Some("replace") && key.is_none_or(|key| item.get(key).is_none())
}

/// Does what a `$` field of a patch says, where it says what to delete.
fn delete_from(target: &mut Map<String, Value>, directive: &str, values: &Value) {
    let Some(name) = directive.strip_prefix("deleteFromPrimitiveList/") else { return };
    let (Some(Value::Array(list)), Value::Array(values)) = (target.get_mut(name), values) else {
        return;
    };
    list.retain(|item| !values.contains(item));
}
