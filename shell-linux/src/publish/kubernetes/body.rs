//! The bodies of requests: conditions, annotations and events as the API server takes them.

use fettle_core::catalog::EventReason;
use fettle_core::journal::Stamp;
use fettle_core::node::agent::Agent;
use fettle_core::node::condition::{Held, Status};
use fettle_core::node::publisher::levels::{StatusPatch, WriteValue};
use fettle_core::node::publisher::series::{EventRequest, EventVerb, Series, Topic};
use fettle_core::time::Timestamp;
use serde_json::{Map, Value, json};

use super::node::{CLEAR_MARK, MANAGER};
use super::requests::{Lane, Request};
use crate::clock;

/// Who writes, and about what.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The Node's name.
    pub name: String,
    /// The Node's uid; empty while it is not known.
    pub uid: String,
}

impl Subject {
    /// Returns the request that patches the Node's status.
    ///
    /// The API server merges conditions by type (`core/v1`, `NodeStatus.conditions`, patch strategy
    /// merge), so what is not named stays as it is.
    #[must_use]
    pub fn status(&self, stamp: Stamp, agent: &Agent, patch: &StatusPatch) -> Request {
        let now = rfc3339(stamp.wall_ms);
        let mut conditions = Vec::new();
        for write in &patch.writes {
            let name = write.condition.row().name;
            let mut condition = Map::new();
            condition.insert("type".to_owned(), name.into());
            condition.insert("lastHeartbeatTime".to_owned(), now.clone().into());
            if let Some(held) = agent.condition(write.condition)
                && let Some(since) = since(stamp, held, write.value)
            {
                let verdict = &held.verdict;
                condition.insert("status".to_owned(), verdict.status.to_string().into());
                condition.insert("reason".to_owned(), verdict.reason.name(write.condition).into());
                condition.insert("message".to_owned(), verdict.message.as_str().into());
                condition.insert("lastTransitionTime".to_owned(), since.into());
            }
            conditions.push(Value::Object(condition));
        }
        let removes = patch.removes.iter().map(|name| name.as_str());
        conditions.extend(removes.map(|name| json!({"$patch": "delete", "type": name})));
        Request {
            lane: Lane::Status,
            method: http::Method::PATCH,
            path: format!("/api/v1/nodes/{}/status?fieldManager={MANAGER}", self.name),
            content_type: "application/strategic-merge-patch+json",
            body: bytes(&json!({"status": {"conditions": conditions}})),
        }
    }

    /// Returns the request that writes annotations of the Node.
    #[must_use]
    pub fn annotations(&self, annotations: Map<String, Value>) -> Request {
        self.patch_metadata(&json!({"metadata": {"annotations": annotations}}))
    }

    /// Returns the request that takes away the mark that asked to clear, where the Node is still of
    /// `version`.
    #[must_use]
    pub fn unmark(&self, version: Option<u64>) -> Request {
        let mut metadata = json!({"annotations": {CLEAR_MARK: null}});
        if let Some(version) = version {
            metadata["resourceVersion"] = version.to_string().into();
        }
        self.patch_metadata(&json!({"metadata": metadata}))
    }

    fn patch_metadata(&self, body: &Value) -> Request {
        Request {
            lane: Lane::Annotations,
            method: http::Method::PATCH,
            path: format!("/api/v1/nodes/{}?fieldManager={MANAGER}", self.name),
            content_type: "application/merge-patch+json",
            body: bytes(body),
        }
    }

    /// Returns the request that makes an event, or sets its count.
    ///
    /// An Event about a cluster-scoped object stands in the namespace `default`; any other but
    /// `kube-system` is refused (`ValidateEventCreate`).
    #[must_use]
    pub fn event(
        &self,
        stamp: Stamp,
        seed: u64,
        request: EventRequest,
        series: &Series,
    ) -> Request {
        let name = self.event_name(seed, request.number);
        let count = json!({
            "count": i32::try_from(series.count).unwrap_or(i32::MAX),
            "lastObservedTime": micros(clock::wall_of_log(stamp, series.last_us)),
        });
        let (method, path, content_type, body) = match request.verb {
            EventVerb::Create => {
                let mut event = self.new_event(stamp, &name, series);
                if series.count > 1 {
                    event["series"] = count;
                }
                (http::Method::POST, String::new(), "application/json", event)
            }
            EventVerb::Count => {
                let kind = "application/merge-patch+json";
                (http::Method::PATCH, format!("/{name}"), kind, json!({"series": count}))
            }
        };
        let path = format!("{EVENTS}{path}?fieldManager={MANAGER}");
        Request { lane: Lane::Events, method, path, content_type, body: bytes(&body) }
    }

    fn new_event(&self, stamp: Stamp, name: &str, series: &Series) -> Value {
        let mut regarding = json!({"apiVersion": "v1", "kind": "Node", "name": self.name});
        // `kubectl describe node` looks for the uid, and for the name in its place.
        let uid = if self.uid.is_empty() { &self.name } else { &self.uid };
        regarding["uid"] = uid.as_str().into();
        json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": "default"},
            "eventTime": micros(clock::wall_of_log(stamp, series.first_us)),
            "reportingController": "fettle.dev/agent",
            "reportingInstance": cut(&self.name, INSTANCE_BYTES_MAX),
            "action": "Observe",
            "reason": reason(series.topic),
            "type": if is_warning(series.topic) { "Warning" } else { "Normal" },
            "note": cut(&note(series), NOTE_BYTES_MAX),
            "regarding": regarding,
        })
    }

    fn event_name(&self, seed: u64, number: u64) -> String {
        let node = cut(&self.name, NODE_BYTES_IN_NAME).trim_end_matches(['.', '-']);
        format!("{node}.{seed:016x}.{number:x}")
    }
}

fn since(stamp: Stamp, held: &Held, value: WriteValue) -> Option<String> {
    match value {
        WriteValue::Heartbeat => None,
        WriteValue::Turned => Some(rfc3339(clock::wall_of(stamp, held.since))),
        WriteValue::Unturned(at) => Some(seconds(at)),
    }
}

/// Returns an event's reason: the catalogue's.
fn reason(topic: Topic) -> &'static str {
    match topic {
        Topic::Condition(condition, Status::True) => condition.row().problem,
        Topic::Condition(condition, Status::False | Status::Unknown) => condition.row().healthy,
        Topic::Event(reason) => reason.row().name,
    }
}

fn is_warning(topic: Topic) -> bool {
    match topic {
        Topic::Condition(_, status) => status == Status::True,
        Topic::Event(reason) => !matches!(
            reason,
            EventReason::ConditionCleared | EventReason::RebootDone | EventReason::RebootOrdered
        ),
    }
}

fn note(series: &Series) -> String {
    match series.topic {
        Topic::Condition(condition, status) => {
            format!("{} is {status}: {}", condition.row().name, series.note)
        }
        Topic::Event(_) if series.object.is_empty() && series.count > 1 => {
            format!("several objects, the last: {}", series.note)
        }
        Topic::Event(_) => series.note.to_string(),
    }
}

/// Returns as much of `text` as fits in `bytes_max`, cut on a character boundary.
fn cut(text: &str, bytes_max: usize) -> &str {
    text.split_at(text.floor_char_boundary(bytes_max)).0
}

fn bytes(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

fn rfc3339(wall_ms: i64) -> String {
    seconds(clock::second(wall_ms))
}

/// Returns a moment as the API has it; beyond the year 9999, where nothing has one, 1970.
fn seconds(at: Timestamp) -> String {
    let shown = at.rfc3339().or_else(|| Timestamp::default().rfc3339());
    shown.map(|time| time.to_string()).unwrap_or_default()
}

/// Returns a moment as `MicroTime` (`meta/v1`).
fn micros(wall_ms: i64) -> String {
    let time = jiff::Timestamp::from_millisecond(wall_ms).unwrap_or_default();
    format!("{time:.6}")
}

const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";

/// Limits of `events.k8s.io/v1` (`pkg/apis/core/validation/events.go`).
const NOTE_BYTES_MAX: usize = 1024;
const INSTANCE_BYTES_MAX: usize = 128;

/// A name has 253 bytes; this leaves room for two numbers.
const NODE_BYTES_IN_NAME: usize = 200;

#[cfg(test)]
mod tests {
    use fettle_core::catalog::ConditionType;
    use fettle_core::node::agent::{Input, Settings};
    use fettle_core::node::publisher::levels::ConditionWrite;
    use fettle_core::time::Instant;

    use super::*;

    const STAMP: Stamp =
        Stamp { at: Instant::from_millis(9_000), log_us: 8_000_000, wall_ms: 1_796_068_800_123 };

    fn subject() -> Subject {
        Subject { name: "n1".to_owned(), uid: "u1".to_owned() }
    }

    #[test]
    fn a_patch_names_what_it_writes_and_nothing_else() {
        let mut agent = Agent::new(Settings::default());
        let record = b"3,1,1,-;NVRM: GPU at PCI:0000:3b:00: GPU has fallen off the bus.";
        let _ = agent.step(Instant::from_millis(4_000), Input::Record(record));
        let condition = ConditionType::GpuFallenOffBus;
        let write = |value| ConditionWrite { condition, value };
        let old = Timestamp::from_unix_secs(7);
        for (value, since) in [
            (WriteValue::Turned, Some("2026-11-30T19:59:55Z")),
            (WriteValue::Unturned(old), Some("1970-01-01T00:00:07Z")),
            (WriteValue::Heartbeat, None),
        ] {
            let mut patch = StatusPatch { writes: Default::default(), removes: Default::default() };
            patch.writes.push(write(value)).unwrap();
            let request = subject().status(STAMP, &agent, &patch);
            assert_eq!(request.path, "/api/v1/nodes/n1/status?fieldManager=fettle-agent");
            let body: Value = serde_json::from_slice(&request.body).unwrap();
            let [written] = &**body["status"]["conditions"].as_array().unwrap() else {
                panic!("one")
            };
            assert_eq!(written["lastTransitionTime"].as_str(), since);
            assert_eq!(written["lastHeartbeatTime"], "2026-11-30T20:00:00Z");
            assert_eq!(written["status"].as_str(), since.map(|_| "True"));
        }
    }

    #[test]
    fn a_long_name_gives_a_name_that_an_event_may_have() {
        let name = format!("{}.x", "a".repeat(250));
        let subject = Subject { name, uid: String::new() };
        let name = subject.event_name(u64::MAX, u64::MAX);
        assert!(name.len() <= 253 && name.ends_with(".ffffffffffffffff.ffffffffffffffff"));
        let name = Subject { name: "n.".repeat(150), uid: String::new() }.event_name(1, 2);
        assert!(name.ends_with("n.0000000000000001.2"), "{name}");
    }

    #[test]
    fn times_are_the_apis() {
        assert_eq!(micros(1_796_068_800_123), "2026-11-30T20:00:00.123000Z");
        assert_eq!(micros(i64::MAX), "1970-01-01T00:00:00.000000Z");
        assert_eq!(rfc3339(-1), "1969-12-31T23:59:59Z");
        assert_eq!(rfc3339(i64::MAX), "1970-01-01T00:00:00Z");
    }

    #[test]
    fn text_is_cut_between_characters() {
        for (text, limit, want) in [("abc", 2, "ab"), ("äb", 1, ""), ("äb", 2, "ä"), ("a", 9, "a")]
        {
            assert_eq!(cut(text, limit), want);
        }
    }
}
