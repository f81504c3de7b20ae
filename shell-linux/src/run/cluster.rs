//! The cluster's side of a run: hands the publisher what happens, and does what it says.

use core::hash::{BuildHasher as _, Hasher as _};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::RandomState;
use std::io::Write;
use std::path::Path;

use fettle_core::catalog::{Clear, ConditionType, ReadingKind};
use fettle_core::node::agent;
use fettle_core::node::condition::Status;
use fettle_core::node::publisher::series::EventRequest;
use fettle_core::node::publisher::{
    AnnotationPatch, Answer, Input, NodeState, Output, Publisher, Start,
};
use fettle_core::node::report::{Header, Role};
use fettle_core::time::Instant;
use log::{error, info, warn};
use serde_json::{Map, Value};

use super::RunError;
use super::evidence::EvidenceRing;
use super::session::Session;
use crate::clock;
use crate::config::Config;
use crate::errors::chain;
use crate::probe::role;
use crate::probe::rows::{Document, Rows};
use crate::publish::kubernetes::access::Source;
use crate::publish::kubernetes::body::Subject;
use crate::publish::kubernetes::node::NodeObject;
use crate::publish::kubernetes::{Api, Asked, Lane, Reply};
use crate::store::boot_id;
use crate::store::kept::KeptFile;
use crate::sys::reboot::reboot;

/// What a run that has a cluster knows of it.
#[derive(Debug)]
pub(super) struct Cluster {
    pub(super) publisher: Box<Publisher>,
    api: Api,
    subject: Subject,
    /// Whether the Node's label makes it one of the control plane.
    is_labelled: bool,
    rows: Rows,
    /// The kinds of reading that the documents have not heard of yet.
    outstanding: BTreeSet<usize>,
    evidence: EvidenceRing,
    /// What was last said of each lane, and of the watch, so that it is said once.
    told: BTreeMap<&'static str, String>,
}

impl Cluster {
    /// Starts to watch the Node; `publisher` is what an earlier process left.
    pub(super) fn start(source: Source, name: String, publisher: Option<Box<Publisher>>) -> Self {
        info!("writing to the Node {name}");
        let api = Api::start(source, &name);
        let publisher = publisher.unwrap_or_else(|| Box::new(Publisher::new(seed())));
        let subject = Subject { name, uid: String::new() };
        Self {
            publisher,
            api,
            subject,
            is_labelled: false,
            rows: Rows::default(),
            outstanding: REPORTED.into_iter().map(ReadingKind::index).collect(),
            evidence: EvidenceRing::default(),
            told: BTreeMap::new(),
        }
    }

    /// Waits for what comes next from the API server; for ever where there is no cluster.
    pub(super) async fn next(cluster: &mut Option<Self>) -> Option<Asked> {
        match cluster {
            Some(cluster) => cluster.api.next().await,
            None => core::future::pending().await,
        }
    }

    /// Says something once, until it is over or is of another `kind`.
    fn warn_once(&mut self, what: &'static str, kind: &str, problem: &str) {
        if self.told.get(what).is_none_or(|told| told != kind) {
            self.told.insert(what, kind.to_owned());
            let problem: String = problem.chars().take(PROBLEM_CHARS_MAX).collect();
            warn!("cannot {what}: {problem}; trying again");
        }
    }

    fn over(&mut self, what: &'static str) {
        if self.told.remove(what).is_some() {
            info!("can {what} again");
        }
    }

    fn header(&self, set: &Config, root: &Path) -> Header {
        let is_labelled = set.role.is_none() && self.is_labelled;
        let role = if is_labelled { Role::ControlPlane } else { role::read(set.role, root) };
        Header { updated_at: clock::wall(), role }
    }
}

/// Returns a number that no other agent has, or had.
fn seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

impl<W: Write> Session<'_, W> {
    /// Tells the publisher that a process has started, before it hears of anything else.
    pub(super) fn start_cluster(&mut self, reboots: bool) -> Result<(), RunError> {
        let ordered = self.kept.as_ref().map(|kept| kept.reboots()).unwrap_or_default();
        let adopts = self.kept.as_ref().is_none_or(|kept| !kept.is_from_before());
        let boot = boot_id();
        let start = Start { boot: boot.as_bytes(), reboots, ordered: &ordered, adopts };
        self.publish(Input::Started(start))
    }

    /// Steps the publisher and does what it says, where there is a cluster.
    pub(super) fn publish(&mut self, input: Input<'_>) -> Result<(), RunError> {
        let Some(cluster) = &mut self.cluster else {
            return Ok(());
        };
        let outputs = cluster.publisher.step(clock::stamp().at, &self.agent, input);
        for output in outputs {
            self.perform(output)?;
        }
        Ok(())
    }

    fn perform(&mut self, output: Output) -> Result<(), RunError> {
        match output {
            Output::Annotate(patch) => self.annotate(patch),
            Output::PatchStatus => self.patch_status(),
            Output::WriteEvent(request) => self.write_event(request)?,
            Output::Save => self.save_soon(),
            Output::Clear { condition, by } => self.clear_by_hand(condition, by)?,
            Output::Contested(contest) => self.apply(agent::Input::Contested(contest))?,
            Output::Hold { condition } => self.apply(agent::Input::HeldOnNode { condition })?,
            Output::Reboot { id } => {
                warn!("rebooting, as {id:?} orders");
                if let Err(problem) = reboot(&self.place.root) {
                    error!("cannot reboot: {problem}");
                    self.publish(Input::RebootFailed { why: &problem.to_string() })?;
                }
            }
            Output::RecordReboots => {
                let is_recorded = self.record_reboots();
                self.publish(Input::RebootRecorded { is_recorded })?;
            }
        }
        Ok(())
    }

    fn record_reboots(&mut self) -> bool {
        let (Some(cluster), Some(kept)) = (&self.cluster, &mut self.kept) else {
            error!(
                "cannot record a reboot: nothing can be kept across boots, as said at the start"
            );
            return false;
        };
        let recorded = kept.keep_reboots(cluster.publisher.reboots().known());
        if let Err(problem) = &recorded {
            error!("{}", chain(problem));
        }
        recorded.is_ok()
    }

    fn patch_status(&self) {
        if let Some(cluster) = &self.cluster
            && let Some(patch) = cluster.publisher.patch()
        {
            cluster.api.send(cluster.subject.status(clock::stamp(), &self.agent, patch));
        }
    }

    fn annotate(&mut self, patch: AnnotationPatch) {
        let stamp = clock::stamp();
        let Some(cluster) = &mut self.cluster else {
            return;
        };
        let (report, evidence) = match patch {
            AnnotationPatch::Unmark { version } => {
                cluster.api.send(cluster.subject.unmark(version));
                return;
            }
            AnnotationPatch::Write { report, evidence } => (report, evidence),
        };
        let header = cluster.header(&self.config, &self.place.root);
        let mut annotations = Map::new();
        if report {
            for document in Document::ALL {
                let text = String::from_utf8(cluster.rows.write(document, &header));
                let key = format!("{}/{}", self.config.annotation_prefix, document.name());
                annotations.insert(key, Value::String(text.unwrap_or_default()));
            }
        }
        if evidence {
            let text = cluster.evidence.write(stamp, &self.agent, &header);
            annotations.insert(EVIDENCE.to_owned(), Value::String(text));
        }
        cluster.api.send(cluster.subject.annotations(annotations));
    }

    fn write_event(&mut self, request: EventRequest) -> Result<(), RunError> {
        let Some(cluster) = &self.cluster else {
            return Ok(());
        };
        let Some(series) = cluster.publisher.series().get(request.number) else {
            let lost = Answer::Failed { code: None, retry_after: None };
            return self.publish(Input::EventAnswered(lost));
        };
        let seed = cluster.publisher.seed();
        cluster.api.send(cluster.subject.event(clock::stamp(), seed, request, series));
        Ok(())
    }

    /// Takes what came from the API server.
    pub(super) fn on_asked(&mut self, asked: Asked) -> Result<(), RunError> {
        match asked {
            Asked::Answered { lane, reply } => self.on_answered(lane, reply),
            Asked::Missing => {
                if let Some(cluster) = &mut self.cluster {
                    let name = cluster.subject.name.clone();
                    cluster.warn_once(FIND, "", &format!("there is no Node {name}"));
                }
                self.publish(Input::NodeMissing)
            }
            Asked::Seen { node, is_listed } => {
                if let Some(cluster) = &mut self.cluster {
                    cluster.over(WATCH);
                    cluster.over(FIND);
                }
                self.on_seen(&node, is_listed)
            }
            Asked::Unwatched(problem) => {
                if let Some(cluster) = &mut self.cluster {
                    cluster.warn_once(WATCH, "", &problem);
                }
                Ok(())
            }
        }
    }

    fn on_seen(&mut self, node: &NodeObject, is_listed: bool) -> Result<(), RunError> {
        let Some(cluster) = &mut self.cluster else {
            return Ok(());
        };
        cluster.is_labelled = node.is_control_plane();
        cluster.subject.uid = node.metadata.uid.clone().unwrap_or_default();
        node.view(clock::wall(), is_listed, |view| self.publish(Input::NodeSeen(view)))
    }

    fn on_answered(&mut self, lane: Lane, reply: Reply) -> Result<(), RunError> {
        let answer = match reply {
            Reply::Accepted(node) => {
                if let Some(cluster) = &mut self.cluster {
                    cluster.over(task(lane));
                }
                if let Some(node) = node {
                    self.on_seen(&node, false)?;
                }
                Answer::Accepted
            }
            Reply::Refused { code: Some(409), reason, .. } if reason == "AlreadyExists" => {
                Answer::AlreadyExists
            }
            Reply::Refused { code, reason, message, retry_after } => {
                if let Some(cluster) = &mut self.cluster {
                    let code = code.map(|code| code.to_string()).unwrap_or_default();
                    let words = [&*code, &reason, &message];
                    let words: Vec<_> = words.into_iter().filter(|w| !w.is_empty()).collect();
                    cluster.warn_once(task(lane), &code, &words.join(" "));
                }
                Answer::Failed { code, retry_after }
            }
        };
        self.publish(match lane {
            Lane::Annotations => Input::AnnotationsAnswered(answer),
            Lane::Events => Input::EventAnswered(answer),
            Lane::Status => Input::StatusAnswered(answer),
        })
    }

    /// Keeps what a check has read for the documents.
    pub(super) fn note_rows(&mut self, kind: ReadingKind, rows: &Rows) -> Result<(), RunError> {
        let Some(cluster) = &mut self.cluster else {
            return Ok(());
        };
        cluster.rows.replace(rows.clone());
        if cluster.outstanding.remove(&kind.index()) && cluster.outstanding.is_empty() {
            return self.publish(Input::ReportComplete);
        }
        Ok(())
    }

    /// Keeps a record that meant something.
    pub(super) fn note_record(&mut self, record: &[u8]) {
        if let Some(cluster) = &mut self.cluster {
            cluster.evidence.push(record);
        }
    }

    /// Keeps across boots that a person has cleared a tamper condition.
    pub(super) fn keep_cleared(&mut self, condition: ConditionType) {
        if let Some(kept) = &mut self.kept
            && condition.row().clear == Clear::ByHand
            && let Err(problem) = kept.keep_held(condition, false)
        {
            let name = condition.row().name;
            error!("{}; {name} comes back at the next start", chain(&problem));
        }
    }

    /// Keeps across boots that a tamper condition holds.
    pub(super) fn keep_held(&mut self, condition: ConditionType) {
        let status = self.agent.condition(condition).map(|held| held.verdict.status);
        let (Some(status), Some(kept)) = (status, &mut self.kept) else {
            return;
        };
        if condition.row().clear == Clear::ByHand
            && status == Status::True
            && let Err(problem) = kept.keep_held(condition, true)
        {
            error!("{}; {} may not hold over a reboot", chain(&problem), condition.row().name);
        }
    }

    /// Hands the agent what it held before this boot.
    pub(super) fn hold_kept(&mut self) -> Result<(), RunError> {
        let held: Vec<_> = self.kept.iter().flat_map(KeptFile::held).collect();
        for condition in held {
            let status = self.agent.condition(condition).map(|held| held.verdict.status);
            if condition.row().clear == Clear::ByHand && status != Some(Status::True) {
                self.apply(agent::Input::HeldOnNode { condition })?;
            }
        }
        Ok(())
    }

    /// Writes what can be written soon, before the process ends.
    pub(super) async fn flush_cluster(&mut self) -> Result<(), RunError> {
        let end = tokio::time::sleep(FLUSH_WITHIN);
        tokio::pin!(end);
        self.publish(Input::Stopping)?;
        self.save_now()?;
        while self.cluster.as_ref().is_some_and(is_waiting) {
            if self.saver.is_awaited() {
                self.save_now()?;
            }
            let wait = self.until_publisher(clock::stamp().at);
            let wait = wait.saturating_add(Duration::from_millis(1));
            let wakeup = tokio::time::sleep(wait);
            let asked = tokio::select! {
                () = &mut end => return Ok(()),
                () = wakeup => None,
                asked = Cluster::next(&mut self.cluster) => asked,
            };
            // What is asked of the agent now is for the next one.
            if let Some(Asked::Answered { lane, reply }) = asked {
                let mut reply = reply;
                if let Reply::Accepted(Some(node)) = &mut reply {
                    node.forget_marks();
                }
                self.on_answered(lane, reply)?;
            } else {
                self.publish(Input::Tick)?;
            }
        }
        Ok(())
    }

    /// Returns how long the publisher may be left alone.
    pub(super) fn until_publisher(&self, now: Instant) -> Duration {
        let next = self.cluster.as_ref().and_then(|cluster| cluster.publisher.next_wakeup());
        next.map_or(super::FOREVER, |at| at.since(now))
    }
}

/// Returns whether something is on its way that an API server which answers would have soon.
fn is_waiting(cluster: &Cluster) -> bool {
    let publisher = &cluster.publisher;
    let is_there = matches!(publisher.node(), NodeState::Present { .. });
    is_there && (publisher.patch().is_some() || publisher.series().counts().waiting > 0)
}

const fn task(lane: Lane) -> &'static str {
    match lane {
        Lane::Annotations => "write annotations of the Node",
        Lane::Events => "write events",
        Lane::Status => "write conditions of the Node",
    }
}

/// What else may fail.
const FIND: &str = "find the Node";
const WATCH: &str = "watch the Node";

/// The kinds of reading that the documents are made of.
const REPORTED: [ReadingKind; 5] = [
    ReadingKind::Certificates,
    ReadingKind::Disks,
    ReadingKind::FileSystems,
    ReadingKind::ProtectedFiles,
    ReadingKind::SealedLayers,
];

/// Most characters of what an API server, or anything in its place, has to say.
const PROBLEM_CHARS_MAX: usize = 300;

/// The annotation that holds the evidence of the newest fault.
const EVIDENCE: &str = "fettle.dev/evidence";

/// How long the end waits for the API server: a service manager that asked is answered within 2 s.
const FLUSH_WITHIN: Duration = Duration::from_millis(800);
