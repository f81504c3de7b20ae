//! What a front does to requests, and what it saw of them.

use core::fmt;
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use http::Method;
use serde_json::Value;

use crate::clock::now;

/// What happens to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// It is never answered, and the connection stays.
    BlackHole,
    /// It is forwarded later.
    Delay(Duration),
    /// It is forwarded, and the connection closed before the reply.
    LoseReply,
    /// The connection is closed before it is forwarded.
    LoseRequest,
    /// It is answered by the front with a `Status`, and not forwarded.
    Refuse {
        /// The status code.
        code: u16,
        /// The seconds of `Retry-After`.
        retry_after_s: Option<u32>,
    },
    /// It is forwarded, and its answer broken after so many lines; a watch has a line per event.
    Break {
        /// Lines that pass unbroken.
        lines: u32,
        /// How it goes on.
        end: End,
    },
}

impl Fault {
    /// Refuses with `code`, and says nothing of when to come back.
    #[must_use]
    pub const fn refuse(code: u16) -> Self {
        Self::Refuse { code, retry_after_s: None }
    }
}

/// How a broken answer goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The body ends as if that were all.
    Close,
    /// The connection is closed within the body.
    Cut,
    /// A watch is told 410, and ends.
    Expired,
    /// A line that is not JSON, then the rest.
    Garbage,
    /// Half of an event, then the end.
    HalfLine,
    /// No byte and no end, for ever.
    Stall,
}

/// When a hook at a write is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The server has not seen the write.
    BeforeForward,
    /// The server has done the write, and the agent does not know.
    AfterForwardBeforeReply,
}

/// A request as the front got it.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Which request this is, from 1.
    pub number: u64,
    /// Which write this is, from 1; none for a read.
    pub write: Option<u64>,
    /// How long after the front's start it came.
    pub after: Duration,
    /// Its method.
    pub method: Method,
    /// Its path and query.
    pub path: String,
    /// Its content type; empty where it says none.
    pub content_type: String,
    /// Its body; `Null` where it is not JSON.
    pub body: Value,
}

impl Asked {
    /// Tells whether it is a watch.
    #[must_use]
    pub fn is_watch(&self) -> bool {
        let query = self.path.split_once('?').map(|(_, query)| query).unwrap_or_default();
        query.split('&').any(|term| term == "watch=true" || term == "watch=1")
    }

    /// Returns what it is counted as: its method, or `WATCH`.
    #[must_use]
    pub fn kind(&self) -> &str {
        if self.is_watch() { "WATCH" } else { self.method.as_str() }
    }
}

/// One request of the log.
#[derive(Debug, Clone)]
pub struct Entry {
    /// What was asked.
    pub asked: Asked,
    /// The code that it was answered with; none where there was no answer, or is none yet.
    pub code: Option<u16>,
    /// What the front did to it.
    pub fault: Option<Fault>,
}

/// Which requests a rule is about.
type Which = Box<dyn FnMut(&Asked) -> bool + Send>;

/// What is called at a write.
pub(super) type Hook = Box<dyn FnOnce(&Asked) + Send>;

struct Rule {
    which: Which,
    fault: Fault,
    left: u64,
}

impl Rule {
    /// Returns what happens to a request that the rule picks, as long as it is not used up.
    fn take(&mut self, asked: &Asked) -> Option<Fault> {
        let picks = self.left > 0 && (self.which)(asked);
        self.left -= u64::from(picks);
        picks.then(|| self.fault.clone())
    }
}

/// The rules of a front, and its log.
pub(super) struct Faults {
    start: Instant,
    requests: u64,
    writes: u64,
    counts: BTreeMap<String, u64>,
    rules: Vec<Rule>,
    hooks: Vec<(u64, Phase, Hook)>,
    log: VecDeque<Entry>,
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rules, hooks) = (self.rules.len(), self.hooks.len());
        f.debug_struct("Faults")
            .field("requests", &self.requests)
            .field("writes", &self.writes)
            .field("rules", &rules)
            .field("hooks", &hooks)
            .finish_non_exhaustive()
    }
}

impl Faults {
    pub(super) fn new() -> Self {
        Self {
            start: now(),
            requests: 0,
            writes: 0,
            counts: BTreeMap::new(),
            rules: Vec::new(),
            hooks: Vec::new(),
            log: VecDeque::new(),
        }
    }

    /// Numbers a request, keeps it in the log, and finds what happens to it.
    pub(super) fn ask(
        &mut self,
        (method, path): (Method, String),
        content_type: String,
        body: Value,
    ) -> (Asked, Option<Fault>) {
        let reads = method == Method::GET || method == Method::HEAD || method == Method::OPTIONS;
        self.requests += 1;
        self.writes += u64::from(!reads);
        let write = (!reads).then_some(self.writes);
        let (number, after) = (self.requests, self.start.elapsed());
        let asked = Asked { number, write, after, method, path, content_type, body };
        *self.counts.entry(asked.kind().to_owned()).or_default() += 1;
        let fault = self.rules.iter_mut().find_map(|rule| rule.take(&asked));
        self.log.push_back(Entry { asked: asked.clone(), code: None, fault: fault.clone() });
        if self.log.len() > LOG_MAX {
            self.log.pop_front();
        }
        (asked, fault)
    }

    /// Notes the code that a request was answered with.
    pub(super) fn answered(&mut self, number: u64, code: u16) {
        if let Some(entry) = self.log.iter_mut().rev().find(|entry| entry.asked.number == number) {
            entry.code = Some(code);
        }
    }

    pub(super) fn add(&mut self, which: Which, fault: Fault, times: Option<u64>) {
        self.rules.push(Rule { which, fault, left: times.unwrap_or(u64::MAX) });
    }

    pub(super) fn heal(&mut self) {
        self.rules.clear();
        self.hooks.clear();
    }

    pub(super) fn hook(&mut self, write: u64, phase: Phase, hook: Hook) {
        self.hooks.push((write, phase, hook));
    }

    /// Takes the hook that is to be called at this write.
    pub(super) fn take_hook(&mut self, asked: &Asked, phase: Phase) -> Option<Hook> {
        let is = |(write, at, _): &(u64, Phase, Hook)| Some(*write) == asked.write && *at == phase;
        let place = self.hooks.iter().position(is)?;
        Some(self.hooks.swap_remove(place).2)
    }

    pub(super) fn log(&self) -> Vec<Entry> {
        self.log.iter().cloned().collect()
    }

    pub(super) fn counts(&self) -> BTreeMap<String, u64> {
        self.counts.clone()
    }

    pub(super) fn writes(&self) -> u64 {
        self.writes
    }
}

/// More than any test makes requests; what is older is forgotten.
const LOG_MAX: usize = 20_000;
