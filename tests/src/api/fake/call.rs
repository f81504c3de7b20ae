//! What a request asks for: its resource, its name, its selectors.

use std::collections::BTreeMap;

use http::{HeaderMap, Method, Uri, header};
use hyper::body::Bytes;
use serde_json::Value;

use super::failure::Failure;
use super::resource::{Form, Resource};

/// One request to a resource.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) resource: Resource,
    pub(super) namespace: Option<String>,
    pub(super) name: Option<String>,
    pub(super) status: bool,
    pub(super) query: BTreeMap<String, String>,
    pub(super) content_type: String,
    pub(super) user_agent: String,
    pub(super) body: Bytes,
}

impl Call {
    /// Reads a request; fails with 404 where its path names nothing.
    pub(super) fn read(
        resources: &[Resource],
        (method, uri, headers): (Method, &Uri, &HeaderMap),
        body: Bytes,
    ) -> Result<Self, Failure> {
        let nothing =
            || Failure::new(404, "NotFound", "the server could not find the requested resource");
        let steps: Vec<_> = uri.path().split('/').filter(|step| !step.is_empty()).collect();
        let (group, version, rest) = match steps.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return Err(nothing()),
        };
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] if !matches!(rest, [] | ["status"]) => {
                (Some(*namespace), rest)
            }
            rest => (None, rest),
        };
        let [plural, rest @ ..] = rest else { return Err(nothing()) };
        let is = |resource: &&Resource| {
            (resource.group, resource.version, resource.plural) == (group, version, plural)
        };
        let resource = *resources.iter().find(is).ok_or_else(nothing)?;
        let (name, status) = match rest {
            [] => (None, false),
            [name] => (Some(*name), false),
            [name, "status"] if resource.status => (Some(*name), true),
            _ => return Err(nothing()),
        };
        if namespace.is_some() != resource.namespaced && (name.is_some() || namespace.is_some()) {
            return Err(nothing());
        }
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let content_type = text(header::CONTENT_TYPE).unwrap_or("application/json");
        let query = uri.query().unwrap_or_default().as_bytes();
        Ok(Self {
            method,
            resource,
            namespace: namespace.map(str::to_owned),
            name: name.map(str::to_owned),
            status,
            query: form_urlencoded::parse(query).into_owned().collect(),
            content_type: content_type.split(';').next().unwrap_or_default().trim().to_owned(),
            user_agent: text(header::USER_AGENT).unwrap_or_default().to_owned(),
            body,
        })
    }

    /// Returns a parameter of the query, unless it is empty.
    pub(super) fn asks(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Tells whether a parameter of the query says yes.
    pub(super) fn says(&self, name: &str) -> bool {
        matches!(self.asks(name), Some("true" | "1"))
    }

    /// Returns the name of whoever writes.
    pub(super) fn manager(&self) -> String {
        let agent = self.user_agent.split('/').next().filter(|agent| !agent.is_empty());
        self.asks("fieldManager").or(agent).unwrap_or("unknown").to_owned()
    }

    /// Returns the body as a JSON object.
    pub(super) fn json(&self) -> Result<Value, Failure> {
        let value: Value = serde_json::from_slice(&self.body)
            .map_err(|error| Failure::bad_request(error.to_string()))?;
        if !value.is_object() {
            return Err(Failure::bad_request("the body is no JSON object"));
        }
        if !matches!(value["metadata"], Value::Null | Value::Object(_)) {
            return Err(Failure::bad_request("metadata is no JSON object"));
        }
        Ok(value)
    }

    /// Reads the selectors.
    pub(super) fn selector(&self) -> Result<Selector, Failure> {
        let mut terms = Vec::new();
        for term in self.asks("fieldSelector").into_iter().flat_map(|text| text.split(',')) {
            let term = Term::read(term);
            let known = ["metadata.name", "metadata.namespace"].contains(&&*term.name)
                || self.resource.selectable.contains(&&*term.name);
            if !known || term.value.is_none() {
                let said = format!("field label not supported: {}", term.name);
                return Err(Failure::bad_request(said));
            }
            terms.push(Term { place: term.name.split('.').map(str::to_owned).collect(), ..term });
        }
        for term in self.asks("labelSelector").into_iter().flat_map(|text| text.split(',')) {
            if term.contains(['(', ')', '<', '>']) {
                return Err(Failure::bad_request("the fake knows no sets in label selectors"));
            }
            let term = Term::read(term);
            let place = ["metadata", "labels", &term.name].map(str::to_owned).to_vec();
            terms.push(Term { place, ..term });
        }
        let named = self.name.iter().map(|name| Term {
            place: ["metadata", "name"].map(str::to_owned).to_vec(),
            name: String::new(),
            is: true,
            value: Some(name.clone()),
        });
        terms.extend(named);
        let namespace = self.namespace.clone();
        Ok(Selector {
            kept_as: self.resource.kept_as(),
            namespace,
            terms,
            form: self.resource.form,
        })
    }
}

/// Which objects a list or a watch is about.
#[derive(Debug)]
pub(super) struct Selector {
    kept_as: (&'static str, &'static str),
    namespace: Option<String>,
    form: Form,
    terms: Vec<Term>,
}

/// One term of a selector; without a value it asks whether there is one.
#[derive(Debug)]
struct Term {
    place: Vec<String>,
    name: String,
    is: bool,
    value: Option<String>,
}

impl Term {
    fn read(text: &str) -> Self {
        let term = |name: &str, is, value: Option<&str>| Self {
            place: Vec::new(),
            name: name.trim().to_owned(),
            is,
            value: value.map(|value| value.trim().to_owned()),
        };
        if let Some((name, value)) = text.split_once("!=") {
            return term(name, false, Some(value));
        }
        match (text.split_once("==").or_else(|| text.split_once('=')), text.strip_prefix('!')) {
            (Some((name, value)), _) => term(name, true, Some(value)),
            (None, Some(name)) => term(name, false, None),
            (None, None) => term(text, true, None),
        }
    }

    fn holds(&self, object: &Value) -> bool {
        let found = self.place.iter().try_fold(object, |place, step| place.get(step));
        let found =
            found.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        let holds = match (&self.value, &found) {
            (None, found) => found.is_some(),
            (Some(value), Some(found)) => value == found,
            (Some(value), None) => value.is_empty() || value == "false" && self.place[0] == "spec",
        };
        holds == self.is
    }
}

impl Selector {
    /// Tells whether the object that is kept under `key`, shown as `object`, is selected.
    pub(super) fn selects(&self, key: &super::store::Key, object: &Value) -> bool {
        debug_assert!(self.form == Form::Plain || object["kind"] == "Event");
        (key.0, key.1) == self.kept_as
            && self.namespace.as_ref().is_none_or(|namespace| *namespace == key.2)
            && self.terms.iter().all(|term| term.holds(object))
    }
}
