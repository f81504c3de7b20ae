//! As much of an API server as a publisher may notice.

use std::collections::BTreeMap;

use fettle_core::catalog::ConditionType;
use fettle_core::node::agent::Agent;
use fettle_core::node::condition::Verdict;
use fettle_core::node::publisher::levels::{StatusPatch, WriteValue};
use fettle_core::node::publisher::series::{EventRequest, EventVerb};
use fettle_core::node::publisher::view::{Mark, NodeView, SeenCondition};
use fettle_core::node::publisher::{AnnotationPatch, Answer};
use fettle_core::time::{Instant, Timestamp};

/// A Node, and the events about it.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    uid: Option<String>,
    version: u64,
    conditions: BTreeMap<String, OnNode>,
    clear: Option<String>,
    reboot: Option<String>,
    events: BTreeMap<(u64, u64), u64>,
}

/// A condition of the Node.
#[derive(Debug, Clone, Default)]
struct OnNode {
    status: String,
    reason: String,
    message: String,
    transition: i64,
    writer: Option<String>,
    written: i64,
    is_own: bool,
}

/// A request under way.
#[derive(Debug, Clone)]
pub(crate) enum Under {
    Annotations(AnnotationPatch),
    Event { seed: u64, request: EventRequest, count: u64 },
    Status { writes: Vec<(&'static str, Option<OnNodeValue>)>, removes: Vec<String> },
}

/// Status, reason, message and time of the last change.
type OnNodeValue = (String, String, String, i64);

impl Under {
    /// Returns the request that a patch is.
    pub(crate) fn status(agent: &Agent, patch: &StatusPatch) -> Self {
        let writes = patch.writes.iter().map(|write| {
            let held = agent.condition(write.condition).expect("it stands somehow");
            let transition = match write.value {
                WriteValue::Heartbeat => None,
                WriteValue::Turned => Some(seconds(held.since)),
                WriteValue::Unturned(at) => Some(at.unix_secs()),
            };
            let Verdict { status, reason, message } = &held.verdict;
            let reason = reason.name(write.condition).to_owned();
            let value =
                transition.map(|at| (status.to_string(), reason, message.as_str().to_owned(), at));
            (write.condition.row().name, value)
        });
        let writes = writes.collect();
        let removes = patch.removes.iter().map(|name| name.as_str().to_owned()).collect();
        Self::Status { writes, removes }
    }
}

impl Default for Server {
    fn default() -> Self {
        let (conditions, events) = (BTreeMap::new(), BTreeMap::new());
        let uid = Some("first".to_owned());
        Self { uid, version: 1, conditions, clear: None, reboot: None, events }
    }
}

impl Server {
    pub(crate) fn delete(&mut self) {
        self.uid = None;
        self.conditions.clear();
        (self.clear, self.reboot) = (None, None);
    }

    pub(crate) fn make(&mut self, uid: &str) {
        self.delete();
        self.version += 1;
        self.uid = Some(uid.to_owned());
    }

    pub(crate) fn set_clear(&mut self, value: &str) {
        self.version += 1;
        self.clear = Some(value.to_owned());
    }

    pub(crate) fn set_reboot(&mut self, value: &str) {
        self.version += 1;
        self.reboot = Some(value.to_owned());
    }

    /// Takes `BY CONDITION STATUS`.
    pub(crate) fn write_by(&mut self, text: &str) {
        let mut words = text.splitn(3, ' ').map(str::to_owned);
        let (by, name) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        self.version += 1;
        let condition = self.conditions.entry(name).or_default();
        condition.status = words.next().unwrap_or_default();
        condition.is_own |= by == MANAGER;
        condition.writer = (by != MANAGER).then_some(by);
        condition.written = condition.written.saturating_add(1);
    }

    /// Lets there be a Node, and nobody who asks anything of the agent.
    pub(crate) fn heal(&mut self) {
        self.version += 1;
        self.uid.get_or_insert_with(|| "healed".to_owned());
        (self.clear, self.reboot) = (None, None);
    }

    /// Hands the Node to `look`, as one of `version` if that is named.
    pub(crate) fn view(&self, version: Option<u64>, look: impl FnOnce(Option<NodeView<'_>>)) {
        let Some(uid) = &self.uid else { return look(None) };
        let conditions = self.conditions.iter().map(|(name, seen)| SeenCondition {
            name,
            status: &seen.status,
            reason: &seen.reason,
            message: &seen.message,
            transition: Some(Timestamp::from_unix_secs(seen.transition)),
            writer: seen.writer.as_deref(),
            written: Some(Timestamp::from_unix_secs(seen.written)),
            is_own: seen.is_own,
        });
        let conditions: Vec<_> = conditions.collect();
        look(Some(NodeView {
            uid,
            version: Some(version.unwrap_or(self.version).min(self.version)),
            is_listed: false,
            conditions: &conditions,
            clear: self.clear.as_deref().map(|value| Mark { value, by: "", age: None }),
            reboot: self.reboot.as_deref().map(|value| Mark { value, by: "x", age: None }),
        }));
    }

    /// Does what a request says.
    pub(crate) fn apply(&mut self, under: &Under) -> Result<(), Answer> {
        let refused = |code| Err(Answer::Failed { code: Some(code), retry_after: None });
        match under {
            Under::Annotations(_) | Under::Status { .. } if self.uid.is_none() => refused(404),
            Under::Annotations(patch) => {
                if let AnnotationPatch::Unmark { version } = *patch {
                    if version != Some(self.version) {
                        return refused(409);
                    }
                    self.clear = None;
                }
                self.version += 1;
                Ok(())
            }
            Under::Event { seed, request, count } => {
                self.tell((*seed, request.number), request.verb, *count)
            }
            Under::Status { writes, removes } => {
                self.version += 1;
                for (name, value) in writes {
                    self.write(name, value.as_ref());
                }
                for name in removes {
                    self.conditions.remove(name);
                }
                Ok(())
            }
        }
    }

    fn tell(&mut self, name: (u64, u64), verb: EventVerb, count: u64) -> Result<(), Answer> {
        let is_there = self.events.contains_key(&name);
        match verb {
            EventVerb::Create if is_there => return Err(Answer::AlreadyExists),
            EventVerb::Count if !is_there => {
                return Err(Answer::Failed { code: Some(404), retry_after: None });
            }
            EventVerb::Count | EventVerb::Create => self.events.insert(name, count),
        };
        Ok(())
    }

    fn write(&mut self, name: &str, value: Option<&OnNodeValue>) {
        let condition = self.conditions.entry(name.to_owned()).or_default();
        if let Some((status, reason, message, transition)) = value {
            condition.status.clone_from(status);
            condition.reason.clone_from(reason);
            condition.message.clone_from(message);
            condition.transition = *transition;
            condition.is_own = true;
            condition.writer = None;
        }
    }

    /// Returns whether a condition of the Node is as `verdict` says.
    pub(crate) fn has(&self, condition: ConditionType, verdict: &Verdict) -> bool {
        self.conditions.get(condition.row().name).is_some_and(|seen| {
            seen.status == verdict.status.to_string()
                && seen.reason == verdict.reason.name(condition)
                && seen.message == verdict.message.as_str()
        })
    }
}

fn seconds(at: Instant) -> i64 {
    i64::try_from(at.millis() / 1000).unwrap_or(i64::MAX)
}

const MANAGER: &str = "fettle-agent";
