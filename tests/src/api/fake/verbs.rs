//! Create, read, replace, patch and delete.

use core::fmt::Write as _;

use http::Method;
use serde_json::{Value, json};

use super::call::Call;
use super::failure::Failure;
use super::owners::{self, Writer};
use super::store::{Key, key};
use super::{Server, check, patch};

/// A status code and an object.
pub(super) type Done = Result<(u16, Value), Failure>;

impl Server {
    /// Does what is asked, unless it is a watch.
    pub(super) fn answer(&mut self, call: &Call) -> Done {
        match (&call.method, &call.name) {
            (&Method::GET, None) => self.list(call),
            (&Method::GET, Some(name)) => {
                let kept = self.kept(call, name)?;
                Ok((200, check::shown(&call.resource, kept)))
            }
            (&Method::POST, None) => self.create(call),
            (&Method::PUT, Some(name)) => self.replace(call, name),
            (&Method::PATCH, Some(name)) => self.patch(call, name),
            (&Method::DELETE, Some(name)) => self.delete(call, name),
            _ => {
                Err(Failure::new(405, "MethodNotAllowed", "the server does not allow this method"))
            }
        }
    }

    fn key(call: &Call, name: &str) -> Key {
        key(&call.resource, call.namespace.as_deref().unwrap_or_default(), name)
    }

    fn kept(&self, call: &Call, name: &str) -> Result<&Value, Failure> {
        let kept = self.store.get(&Self::key(call, name));
        kept.ok_or_else(|| Failure::not_found(&call.resource, name))
    }

    fn create(&mut self, call: &Call) -> Done {
        let mut object = check::kept(&call.resource, sent(call)?);
        self.check_namespace(call)?;
        if object["metadata"]["resourceVersion"].as_str().is_some_and(|version| !version.is_empty())
        {
            let said = "resourceVersion should not be set on objects to be created";
            return Err(Failure::new(500, "", said));
        }
        let metadata = &mut object["metadata"];
        if let (None, Some(base)) = (metadata["name"].as_str(), metadata["generateName"].as_str()) {
            self.names += 1;
            metadata["name"] = json!(format!("{base}{:05x}", self.names));
        }
        let name = metadata["name"].as_str().unwrap_or_default().to_owned();
        if self.store.get(&Self::key(call, &name)).is_some() {
            return Err(Failure::already_exists(&call.resource, &name));
        }
        self.begin(call, &mut object);
        check::check(&call.resource, None, &object)?;
        owners::updated(&call.resource, None, &mut object, &writer(call));
        self.keep(call, &name, object).map(|(_, object)| (201, object))
    }

    /// Checks that there is the namespace that an object is to be in.
    fn check_namespace(&self, call: &Call) -> Result<(), Failure> {
        let of = |resource: &&super::Resource| {
            resource.group.is_empty() && resource.plural == "namespaces"
        };
        match (&call.namespace, self.resources.iter().find(of)) {
            (Some(name), Some(namespaces)) => {
                let found = self.store.get(&key(namespaces, "", name));
                found.map(|_| ()).ok_or_else(|| Failure::not_found(namespaces, name))
            }
            _ => Ok(()),
        }
    }

    /// Gives a new object what only the server gives.
    fn begin(&mut self, call: &Call, object: &mut Value) {
        self.names += 1;
        let metadata = &mut object["metadata"];
        metadata["uid"] = json!(format!("00000000-0000-4000-8000-{:012x}", self.names));
        metadata["creationTimestamp"] = json!(now());
        if let Some(namespace) = &call.namespace {
            metadata["namespace"] = json!(namespace);
        }
        if call.resource.generation {
            metadata["generation"] = json!(1);
        }
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.remove("managedFields");
            metadata.remove("deletionTimestamp");
        }
    }

    fn replace(&mut self, call: &Call, name: &str) -> Done {
        let object = sent(call)?;
        if object["metadata"]["name"] != name {
            return Err(Failure::bad_request("the name of the object is not that of the URL"));
        }
        if self.store.get(&Self::key(call, name)).is_none() && call.resource.kind == "Event" {
            return self.create(call);
        }
        let old = self.kept(call, name)?.clone();
        self.change(call, old, check::kept(&call.resource, object))
    }

    fn patch(&mut self, call: &Call, name: &str) -> Done {
        let resource = &call.resource;
        if call.content_type == "application/apply-patch+yaml" {
            return self.apply(call, name);
        }
        let kept = self.kept(call, name)?.clone();
        let mut new = check::shown(resource, &kept);
        match call.content_type.as_str() {
            "application/merge-patch+json" => patch::merge(&mut new, &call.json()?),
            "application/strategic-merge-patch+json" => {
                patch::strategic(resource, &mut new, &call.json()?)?;
            }
            other => return Err(unsupported(other)),
        }
        let new = check::kept(resource, new);
        self.change(call, kept, new)
    }

    fn apply(&mut self, call: &Call, name: &str) -> Done {
        let resource = &call.resource;
        if call.asks("fieldManager").is_none() {
            let message = "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value";
            return Err(Failure::new(422, "Invalid", message));
        }
        let mut part = call.json()?;
        if part["metadata"]["name"].is_null() {
            part["metadata"]["name"] = json!(name);
        }
        if let Some(metadata) = part["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        let with = (&writer(call), call.says("force"));
        if call.status {
            self.kept(call, name)?;
        }
        let Some(old) = self.store.get(&Self::key(call, name)).cloned() else {
            let part = check::kept(resource, part);
            let mut object = owners::applied(resource, None, &part, with)?;
            let entries = object["metadata"]["managedFields"].take();
            object["metadata"]["name"] = json!(name);
            self.begin(call, &mut object);
            check::check(resource, None, &object)?;
            object["metadata"]["managedFields"] = entries;
            return self.keep(call, name, object).map(|(_, object)| (201, object));
        };
        let new = owners::applied(resource, Some(&check::shown(resource, &old)), &part, with)?;
        let entries = new["metadata"]["managedFields"].clone();
        let mut new = self.settled(call, &old, check::kept(resource, new))?;
        new["metadata"]["managedFields"] = entries;
        if new == old {
            Ok((200, check::shown(resource, &old)))
        } else {
            self.keep(call, name, new)
        }
    }

    /// Keeps `new` in the place of `old`, if the rules allow it.
    fn change(&mut self, call: &Call, old: Value, new: Value) -> Done {
        let mut new = self.settled(call, &old, new)?;
        owners::updated(&call.resource, Some(&old), &mut new, &writer(call));
        if new == old {
            return Ok((200, check::shown(&call.resource, &old)));
        }
        let name = old["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        self.keep(call, &name, new)
    }

    /// Returns `new` with what this request cannot change as it was.
    fn settled(&self, call: &Call, old: &Value, mut new: Value) -> Result<Value, Failure> {
        let name = old["metadata"]["name"].as_str().unwrap_or_default();
        let version = &old["metadata"]["resourceVersion"];
        let given = &new["metadata"]["resourceVersion"];
        if given != version && given.as_str().is_some_and(|given| !given.is_empty()) {
            return Err(Failure::conflict(&call.resource, name, MODIFIED));
        }
        if new["metadata"]["name"] != name {
            return Err(Failure::bad_request("the name of the object is not that of the URL"));
        }
        for field in SERVERS {
            put_back(&old["metadata"], &mut new["metadata"], field);
        }
        if new["metadata"]["uid"].is_null() {
            new["metadata"]["uid"] = old["metadata"]["uid"].clone();
        }
        if call.resource.status {
            put_back(old, &mut new, if call.status { "spec" } else { "status" });
        }
        if call.resource.generation && old["spec"] != new["spec"] {
            let generation = old["metadata"]["generation"].as_u64().unwrap_or_default();
            new["metadata"]["generation"] = json!(generation + 1);
        }
        check::check(&call.resource, Some(old), &new)?;
        Ok(new)
    }

    fn keep(&mut self, call: &Call, name: &str, object: Value) -> Done {
        let key = Self::key(call, name);
        let metadata = &object["metadata"];
        let ends = !metadata["deletionTimestamp"].is_null() && metadata["finalizers"].is_null();
        if call.asks("dryRun").is_some() {
            return Ok((200, check::shown(&call.resource, &object)));
        }
        if ends {
            self.store.remove(&key);
            return Ok((200, check::shown(&call.resource, &object)));
        }
        let object = self.store.put(key, object);
        Ok((200, check::shown(&call.resource, &object)))
    }

    fn delete(&mut self, call: &Call, name: &str) -> Done {
        let mut object = self.kept(call, name)?.clone();
        let options = if call.body.is_empty() { Value::Null } else { call.json()? };
        for field in ["uid", "resourceVersion"] {
            let wanted = &options["preconditions"][field];
            if !wanted.is_null() && *wanted != object["metadata"][field] {
                return Err(Failure::conflict(&call.resource, name, "Precondition failed"));
            }
        }
        if call.asks("dryRun").is_none() && !object["metadata"]["finalizers"].is_null() {
            object["metadata"]["deletionTimestamp"] = json!(now());
            object["metadata"]["deletionGracePeriodSeconds"] = json!(0);
            return self.keep(call, name, object);
        }
        if call.asks("dryRun").is_none() {
            self.store.remove(&Self::key(call, name));
        }
        let mut details = json!({
            "name": name, "kind": call.resource.plural, "uid": object["metadata"]["uid"],
        });
        if !call.resource.group.is_empty() {
            details["group"] = json!(call.resource.group);
        }
        Ok((
            200,
            json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                "details": details,
            }),
        ))
    }

    fn list(&self, call: &Call) -> Done {
        let resource = &call.resource;
        let selector = call.selector()?;
        let (version, start) = self.page(call)?;
        let all = self.store.all(resource, call.namespace.as_deref());
        let shown = all.map(|(key, object)| (key, check::shown(resource, object)));
        let mut items: Vec<_> = shown
            .filter(|(key, object)| selector.selects(key, object))
            .skip(start)
            .map(|(_, mut object)| {
                if let Some(fields) = object.as_object_mut() {
                    fields.remove("apiVersion");
                    fields.remove("kind");
                }
                object
            })
            .collect();
        let mut metadata = json!({"resourceVersion": version.to_string()});
        let limit = call.asks("limit").and_then(|limit| limit.parse().ok()).filter(|&max| max > 0);
        if let Some(limit) = limit.filter(|&limit: &usize| limit < items.len()) {
            metadata["remainingItemCount"] = json!(items.len() - limit);
            let mut token = String::new();
            let _ = write!(token, "{version}-{}", start + limit);
            metadata["continue"] = json!(token);
            items.truncate(limit);
        }
        let kind = format!("{}List", resource.kind);
        let api_version = resource.api_version();
        Ok((
            200,
            json!({
                "kind": kind, "apiVersion": api_version, "metadata": metadata, "items": items,
            }),
        ))
    }

    /// Returns the version to list at, and how many objects came on earlier pages.
    ///
    /// The fake lists what there is now, whatever the version.
    fn page(&self, call: &Call) -> Result<(u64, usize), Failure> {
        let now = self.store.revision();
        let number = |text: &str| {
            text.parse().map_err(|_| Failure::bad_request(format!("no version: {text:?}")))
        };
        if let Some(token) = call.asks("continue") {
            let (version, start) = token.split_once('-').unwrap_or((token, "0"));
            let version = number(version)?;
            if version < self.store.forgotten() {
                let said =
                    "The provided continue parameter is too old to display a consistent list";
                return Err(Failure::expired(said));
            }
            return Ok((version, start.parse().unwrap_or_default()));
        }
        let version = call.asks("resourceVersion").map_or(Ok(0), number)?;
        if version > now {
            return Err(super::watch::too_large(version, now));
        }
        if call.asks("resourceVersionMatch") == Some("Exact") && version < self.store.forgotten() {
            return Err(Failure::expired(format!("The resourceVersion {version} is too old")));
        }
        Ok((now, 0))
    }
}

/// Returns the object that a request brings.
fn sent(call: &Call) -> Result<Value, Failure> {
    if call.content_type != "application/json" {
        return Err(unsupported(&call.content_type));
    }
    let mut object = call.json()?;
    let resource = &call.resource;
    let is = |name: &str, want: &str| object[name].as_str().is_none_or(|given| given == want);
    if !is("kind", resource.kind) || !is("apiVersion", &resource.api_version()) {
        let said =
            format!("no {} of {}: {}", resource.kind, resource.api_version(), object["kind"]);
        return Err(Failure::bad_request(said));
    }
    let named = object["metadata"]["namespace"].as_str();
    if named.is_some() && named != call.namespace.as_deref() {
        return Err(Failure::bad_request("the namespace of the object is not that of the URL"));
    }
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    Ok(object)
}

fn unsupported(kind: &str) -> Failure {
    let said = format!("the body of the request was in an unknown format: {kind}");
    Failure::new(415, "UnsupportedMediaType", said)
}

fn writer(call: &Call) -> Writer {
    Writer {
        manager: call.manager(),
        api_version: call.resource.api_version(),
        status: call.status,
        time: now(),
    }
}

/// Puts `field` of `new` back to what it is in `old`.
fn put_back(old: &Value, new: &mut Value, field: &str) {
    let Some(new) = new.as_object_mut() else { return };
    match old.get(field) {
        Some(value) => drop(new.insert(field.to_owned(), value.clone())),
        None => drop(new.remove(field)),
    }
}

/// Returns the wall clock's time as objects show it.
pub(super) fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Fields of `metadata` that a writer cannot change.
const SERVERS: &[&str] = &[
    "creationTimestamp",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "name",
    "namespace",
    "resourceVersion",
];

const MODIFIED: &str = "the object has been modified; please apply your changes to the latest \
                        version and try again";
