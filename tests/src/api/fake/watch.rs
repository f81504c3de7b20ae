//! Watches: what was there, what changes, bookmarks, and the end.

use core::convert::Infallible;
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use futures_util::stream;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Bytes, Frame};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::call::{Call, Selector};
use super::failure::Failure;
use super::store::Change;
use super::{Server, check, locked};
use crate::api::listen::Body;

/// A watch that goes on.
struct Watch {
    server: Arc<Mutex<Server>>,
    call: Call,
    selector: Selector,
    seen: u64,
    changed: watch::Receiver<u64>,
    waiting: VecDeque<Value>,
    bookmark: Option<Instant>,
    end: Instant,
    ended: bool,
}

/// Begins a watch and returns the body that it comes in.
pub(super) fn begin(server: &Arc<Mutex<Server>>, call: Call) -> Result<Body, Failure> {
    let watch = Watch::new(Arc::clone(server), call)?;
    let lines = stream::unfold(watch, async |mut watch| {
        let event = watch.next().await?;
        let line = Frame::data(Bytes::from(format!("{event}\n")));
        Some((Ok::<_, Infallible>(line), watch))
    });
    Ok(StreamBody::new(lines).map_err(|never| match never {}).boxed_unsync())
}

impl Watch {
    fn new(shared: Arc<Mutex<Server>>, call: Call) -> Result<Self, Failure> {
        let selector = call.selector()?;
        let server = locked(&shared);
        let asked = call.asks("timeoutSeconds").and_then(|seconds| seconds.parse().ok());
        let limit = asked.map_or(WATCH_MAX, Duration::from_secs);
        let end = Instant::now() + limit;
        let wants = call.says("allowWatchBookmarks");
        let mut watch = Self {
            changed: server.store.subscribe(),
            seen: server.store.revision(),
            bookmark: wants.then(|| next_bookmark(server.bookmark_every, end)),
            server: Arc::clone(&shared),
            waiting: VecDeque::new(),
            ended: false,
            selector,
            call,
            end,
        };
        watch.start(&server)?;
        drop(server);
        Ok(watch)
    }

    /// Finds out where to go on from, and what there is to begin with.
    fn start(&mut self, server: &Server) -> Result<(), Failure> {
        let version = self.call.asks("resourceVersion").unwrap_or("0");
        let version: u64 = version
            .parse()
            .map_err(|_| Failure::bad_request(format!("no version: {version:?}")))?;
        let streams = self.call.asks("sendInitialEvents").is_some();
        if streams && !server.streaming_lists {
            let said = "ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: \
                        sendInitialEvents is forbidden for watch unless the WatchList feature \
                        gate is enabled";
            return Err(Failure::new(422, "Invalid", said));
        }
        if version == 0 || self.call.says("sendInitialEvents") {
            self.begin_with_all(server);
        } else if version < server.store.forgotten() {
            self.expire(version, server.store.forgotten());
        } else {
            self.seen = version;
        }
        Ok(())
    }

    fn begin_with_all(&mut self, server: &Server) {
        let all = server.store.all(&self.call.resource, self.call.namespace.as_deref());
        for (key, object) in all {
            let object = check::shown(&self.call.resource, object);
            if self.selector.selects(key, &object) {
                self.waiting.push_back(json!({"type": "ADDED", "object": object}));
            }
        }
        if self.call.says("sendInitialEvents") && self.bookmark.is_some() {
            let mut bookmark = self.bookmark_event();
            bookmark["object"]["metadata"]["annotations"] =
                json!({"k8s.io/initial-events-end": "true"});
            self.waiting.push_back(bookmark);
        }
    }

    fn expire(&mut self, version: u64, oldest: u64) {
        let failure = Failure::expired(format!("too old resource version: {version} ({oldest})"));
        self.waiting.push_back(json!({"type": "ERROR", "object": failure.0}));
        self.ended = true;
    }

    fn bookmark_event(&self) -> Value {
        let resource = &self.call.resource;
        json!({"type": "BOOKMARK", "object": {
            "kind": resource.kind, "apiVersion": resource.api_version(),
            "metadata": {"resourceVersion": self.seen.to_string()},
        }})
    }

    /// Waits for the next event; none is the end.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if !self.ended {
                self.read();
            }
            if let Some(event) = self.waiting.pop_front() {
                return Some(event);
            }
            if self.ended {
                return None;
            }
            let bookmark = self.bookmark.unwrap_or(self.end).min(self.end);
            tokio::select! {
                changed = self.changed.changed() => changed.ok()?,
                () = sleep_until(bookmark) => {
                    if Instant::now() >= self.end {
                        return None;
                    }
                    self.bookmark = self.bookmark.map(|_| self.after_bookmark());
                    return Some(self.bookmark_event());
                }
            }
        }
    }

    fn after_bookmark(&self) -> Instant {
        let next = next_bookmark(locked(&self.server).bookmark_every, self.end);
        if next <= Instant::now() { self.end } else { next }
    }

    /// Reads what has changed since.
    fn read(&mut self) {
        let shared = Arc::clone(&self.server);
        let server = locked(&shared);
        if self.seen < server.store.forgotten() {
            return self.expire(self.seen, server.store.forgotten());
        }
        for change in server.store.since(self.seen) {
            self.waiting.extend(self.event(change));
        }
        self.seen = self.seen.max(server.store.revision());
    }

    /// Returns what a change is to this watch: an object that is no longer selected is deleted.
    fn event(&self, change: &Change) -> Option<Value> {
        let shown = |object: &Option<Value>| {
            let object = check::shown(&self.call.resource, object.as_ref()?);
            self.selector.selects(&change.key, &object).then_some(object)
        };
        let (kind, mut object) = match (shown(&change.before), shown(&change.after)) {
            (None, None) => return None,
            (None, Some(object)) => ("ADDED", object),
            (Some(_), Some(object)) => ("MODIFIED", object),
            (Some(object), None) => ("DELETED", object),
        };
        object["metadata"]["resourceVersion"] = json!(change.revision.to_string());
        Some(json!({"type": kind, "object": object}))
    }
}

/// Returns the time of the next bookmark: a real server sends one before the end, too.
fn next_bookmark(every: Duration, end: Instant) -> Instant {
    let last = end.checked_sub(BEFORE_END).unwrap_or(end);
    (Instant::now() + every).min(last)
}

/// Refuses to list at a version that is yet to come.
pub(super) fn too_large(version: u64, now: u64) -> Failure {
    let said = format!("Timeout: Too large resource version: {version}, current: {now}");
    let mut failure = Failure::new(504, "Timeout", said);
    failure.0["details"] = json!({"retryAfterSeconds": 1, "causes": [
        {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"},
    ]});
    failure
}

/// How long before its end a watch gets its last bookmark.
const BEFORE_END: Duration = Duration::from_secs(2);

/// How long a watch lasts that does not say: of a real server half an hour and more.
const WATCH_MAX: Duration = Duration::from_secs(1800);
