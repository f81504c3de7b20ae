//! The objects, their versions, and as much of the past as is kept.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};
use tokio::sync::watch;

use super::resource::Resource;

/// What an object is kept under: the group and name of its resource, its namespace, its name.
pub(super) type Key = (&'static str, &'static str, String, String);

/// Returns the key of an object.
pub(super) fn key(resource: &Resource, namespace: &str, name: &str) -> Key {
    let (group, plural) = resource.kept_as();
    (group, plural, namespace.to_owned(), name.to_owned())
}

/// All objects of a fake.
#[derive(Debug)]
pub(super) struct Store {
    objects: BTreeMap<Key, Value>,
    history: VecDeque<Change>,
    history_max: usize,
    revision: u64,
    forgotten: u64,
    changed: watch::Sender<u64>,
}

/// One change of one object.
#[derive(Debug, Clone)]
pub(super) struct Change {
    /// When it happened.
    pub(super) revision: u64,
    /// To what.
    pub(super) key: Key,
    /// The object before it; none at its creation.
    pub(super) before: Option<Value>,
    /// The object after it; none at its deletion.
    pub(super) after: Option<Value>,
}

impl Store {
    /// Begins without objects, at a version that leaves room for older ones.
    pub(super) fn new(history_max: usize) -> Self {
        let changed = watch::Sender::new(FIRST);
        let (objects, history) = (BTreeMap::new(), VecDeque::new());
        Self { objects, history, history_max, revision: FIRST, forgotten: FIRST, changed }
    }

    /// Returns the version of the last change.
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns the last version that a watch cannot go on from.
    pub(super) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Returns what tells of each new version.
    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Returns one object.
    pub(super) fn get(&self, key: &Key) -> Option<&Value> {
        self.objects.get(key)
    }

    /// Returns the objects of a resource, of one namespace where it says one.
    pub(super) fn all<'a>(
        &'a self,
        resource: &Resource,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a Key, &'a Value)> {
        let kept = resource.kept_as();
        self.objects.iter().filter(move |((group, plural, within, _), _)| {
            (*group, *plural) == kept && namespace.is_none_or(|namespace| namespace == within)
        })
    }

    /// Returns the changes after `revision` that are kept.
    pub(super) fn since(&self, revision: u64) -> impl Iterator<Item = &Change> {
        self.history.iter().filter(move |change| change.revision > revision)
    }

    /// Keeps `object` under a new version, which it returns it with.
    pub(super) fn put(&mut self, key: Key, mut object: Value) -> Value {
        self.revision += 1;
        object["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        let before = self.objects.insert(key.clone(), object.clone());
        self.remember(Change { revision: self.revision, key, before, after: Some(object.clone()) });
        object
    }

    /// Deletes an object.
    pub(super) fn remove(&mut self, key: &Key) -> Option<Value> {
        let before = self.objects.remove(key)?;
        self.revision += 1;
        let change = Change {
            revision: self.revision,
            key: key.clone(),
            before: Some(before.clone()),
            after: None,
        };
        self.remember(change);
        Some(before)
    }

    /// Forgets all changes so far: a watch from before gets 410.
    pub(super) fn compact(&mut self) {
        self.history.clear();
        self.forgotten = self.revision;
        self.changed.send_replace(self.revision);
    }

    fn remember(&mut self, change: Change) {
        self.history.push_back(change);
        while self.history.len() > self.history_max {
            if let Some(oldest) = self.history.pop_front() {
                self.forgotten = oldest.revision;
            }
        }
        self.changed.send_replace(self.revision);
    }
}

/// The version that the fake begins with.
const FIRST: u64 = 100;
