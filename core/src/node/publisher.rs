//! What is written to the API server and when: conditions, events, annotations, and never too much.
//!
//! Conditions are levels: what the Node has is compared with how the [`Agent`] says that they
//! stand, and a difference is due until it is read back. Events are edges that were made levels: a
//! named series and its count. Documents are written at their time. Each of the three has a
//! [`Lane`] of its own, so that one that is refused holds up no other.
//!
//! An idle hour has 42 writes: 30 of annotations and 12 heartbeats (decisions, "write budget").

mod inputs;
pub mod lane;
pub mod levels;
pub mod orders;
mod requests;
pub mod series;
#[cfg(test)]
mod tests;
pub mod view;

use core::time::Duration;

use serde::{Deserialize, Serialize};

use self::lane::{Bucket, Jitter, Lane, Rate};
use self::levels::{Levels, StatusPatch};
use self::orders::{ClearOrders, OperationId, Reboot, RebootOrders};
use self::series::{EventRequest, SeriesTable};
use self::view::NodeView;
use crate::bounds::{CLEARED_BY_MAX, PUBLISHED_MAX, UID_MAX};
use crate::catalog::ConditionType;
use crate::node::agent::{Agent, Event};
use crate::node::condition::Change;
use crate::node::judge::own::Contest;
use crate::text::Text;
use crate::time::Instant;

/// Everything that is remembered of what was written.
///
/// # Invariants
///
/// * `reads_first`: nothing of the Node is written before it was read.
/// * `saved_first`: no event is sent before the state that names it was saved.
/// * `wakeup_is_later`: after a step, the next wakeup is after that step, unless an output is for the
///   agent: then what is due is written by the next step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Publisher {
    seed: u64,
    jitter: Jitter,
    node: NodeState,
    /// The resource version of the newest view.
    version: Option<u64>,
    levels: Levels,
    status: Lane,
    /// The patch that is under way.
    patching: Option<StatusPatch>,
    fresh: Fresh,
    annotations: Lane,
    annotating: Option<AnnotationPatch>,
    /// Whether the mark could not be taken away the last time.
    unmark_fails: bool,
    report_due: Option<Instant>,
    evidence: Evidence,
    events: Lane,
    sending: Option<EventRequest>,
    series: SeriesTable,
    /// Whether the state is being saved for a series.
    is_saving: bool,
    clears: ClearOrders,
    reboots: RebootOrders,
    /// The tamper conditions that stood `True` on the Node before this state began.
    held: [bool; ConditionType::COUNT],
    /// Whether what stands on the Node is from before this state began.
    adopts: bool,
    /// The contest that was told last.
    told: Option<Contest>,
}

const _: () = assert!(size_of::<Publisher>() <= 128 * 1024);

/// What is known of the Node itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum NodeState {
    /// There is none of that name.
    Missing,
    /// It is there.
    Present {
        /// Its uid.
        uid: Text<UID_MAX>,
    },
    /// It has not been read by this process.
    Unread,
}

/// Whether the Node was read since the last request of each kind was sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Fresh {
    status: bool,
    annotations: bool,
}

/// What is to be said of a fault besides its condition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Evidence {
    due: Option<Instant>,
    writes: Bucket,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input<'a> {
    /// The agent says otherwise of a condition.
    Changed {
        /// Which one.
        condition: ConditionType,
        /// What of it changed.
        change: Change,
    },
    /// The same process goes on under other settings.
    Configured {
        /// Whether ordered reboots are done.
        reboots: bool,
    },
    /// Something happened that an event is to tell.
    Happened(&'a Event),
    /// There is no Node of the agent's name.
    NodeMissing,
    /// The Node was read.
    NodeSeen(NodeView<'a>),
    /// A patch of the status was answered; its view came before, if it could be read.
    StatusAnswered(Answer),
    /// A patch of the annotations was answered; its view came before, if it could be read.
    AnnotationsAnswered(Answer),
    /// A request for an event was answered.
    EventAnswered(Answer),
    /// The documents have something to say of everything that they are about.
    ReportComplete,
    /// The state was saved, or cannot be.
    Saved,
    /// The orders that [`Output::RecordReboots`] asked for are on disk, or cannot be.
    RebootRecorded {
        /// Whether they are.
        is_recorded: bool,
    },
    /// The reboot that was asked for has not begun.
    RebootFailed {
        /// Why, in words.
        why: &'a str,
    },
    /// A new process goes on with this state.
    Started(Start<'a>),
    /// The agent is about to end: what was held back is to be written.
    Stopping,
    /// Time passed; nothing else did.
    Tick,
}

/// What a new process says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start<'a> {
    /// The id of this boot.
    pub boot: &'a [u8],
    /// Whether ordered reboots are done.
    pub reboots: bool,
    /// The orders that are on disk, oldest first.
    pub ordered: &'a [Reboot],
    /// Whether nothing on disk says which tamper conditions held before this boot, so that the Node
    /// has to.
    pub adopts: bool,
}

/// How the API server answered a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// It did what was asked.
    Accepted,
    /// It did not make an object, as there is one of that name (reason `AlreadyExists`).
    AlreadyExists,
    /// It did not, or nobody knows.
    Failed {
        /// Its HTTP status code; `None` where there was no answer.
        code: Option<u16>,
        /// How long it wants to be left alone.
        retry_after: Option<Duration>,
    },
}

/// Something for the shell to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Write annotations of the Node and answer with [`Input::AnnotationsAnswered`].
    Annotate(AnnotationPatch),
    /// Hand [`agent::Input::ClearByHand`](crate::node::agent::Input::ClearByHand) to the agent.
    Clear {
        /// Which condition.
        condition: ConditionType,
        /// Who says so.
        by: Text<CLEARED_BY_MAX>,
    },
    /// Hand [`agent::Input::Contested`](crate::node::agent::Input::Contested) to the agent.
    Contested(Option<Contest>),
    /// Hand [`agent::Input::HeldOnNode`](crate::node::agent::Input::HeldOnNode) to the agent.
    Hold {
        /// Which condition.
        condition: ConditionType,
    },
    /// Write what [`Publisher::patch`] says and answer with [`Input::StatusAnswered`].
    PatchStatus,
    /// Reboot the node.
    Reboot {
        /// The id of the order.
        id: OperationId,
    },
    /// Keep [`Publisher::reboots`] on disk and answer with [`Input::RebootRecorded`].
    RecordReboots,
    /// Save the state at once and answer with [`Input::Saved`].
    Save,
    /// Write an event and answer with [`Input::EventAnswered`].
    WriteEvent(EventRequest),
}

/// A patch of the Node's annotations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum AnnotationPatch {
    /// Takes away the mark that asked to clear.
    Unmark {
        /// The resource version that the Node still has to have, where that is known.
        version: Option<u64>,
    },
    /// Writes what the agent has to say: one of these at least.
    Write {
        /// The five documents.
        report: bool,
        /// The evidence.
        evidence: bool,
    },
}

/// The outputs of one step.
pub type Outputs = heapless::Vec<Output, PUBLISHED_MAX>;

impl Publisher {
    /// Returns a publisher that has written nothing; no two of a cluster should have one `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            jitter: Jitter::new(seed),
            node: NodeState::Unread,
            version: None,
            levels: Levels::default(),
            status: Lane::default(),
            patching: None,
            fresh: Fresh::default(),
            annotations: Lane::default(),
            annotating: None,
            unmark_fails: false,
            report_due: None,
            evidence: Evidence::default(),
            events: Lane::default(),
            sending: None,
            series: SeriesTable::default(),
            is_saving: false,
            clears: ClearOrders::default(),
            reboots: RebootOrders::default(),
            held: [false; ConditionType::COUNT],
            adopts: false,
            told: None,
        }
    }

    /// Applies one input and returns what is to be done; `agent` has taken its own input before.
    #[must_use]
    pub fn step(&mut self, now: Instant, agent: &Agent, input: Input<'_>) -> Outputs {
        let mut outputs = Outputs::new();
        match input {
            Input::Changed { condition, change } => {
                self.on_changed(now, agent, (condition, change), &mut outputs);
            }
            Input::Configured { reboots } => self.reboots.enable(reboots),
            Input::Happened(event) => self.on_event(now, event),
            Input::NodeMissing => self.node = NodeState::Missing,
            Input::NodeSeen(view) => self.on_seen(now, agent, &view, &mut outputs),
            Input::StatusAnswered(answer) => self.on_status(now, answer),
            Input::AnnotationsAnswered(answer) => self.on_annotations(now, answer),
            Input::EventAnswered(answer) => self.on_event_answer(now, answer),
            Input::ReportComplete => self.report_due = self.report_due.map(|due| due.min(now)),
            Input::Saved => {
                self.is_saving = false;
                self.series.saved();
                self.clears.saved();
            }
            Input::RebootRecorded { is_recorded } => {
                let told = self.reboots.recorded(now, is_recorded);
                self.tell(now, told);
            }
            Input::RebootFailed { why } => {
                let told = self.reboots.failed(now, why);
                self.tell(now, told);
                push(&mut outputs, Output::RecordReboots);
            }
            Input::Started(start) => self.on_started(now, agent, &start, &mut outputs),
            Input::Stopping => self.series.hurry(),
            Input::Tick => {}
        }
        if let Some(happening) = self.reboots.take_overdue(now) {
            self.series.note(now, happening);
            push(&mut outputs, Output::RecordReboots);
        }
        self.levels.end_contests(now);
        self.tell_contest(&mut outputs);
        self.save(&mut outputs);
        // What the agent is handed may change what is to be written.
        if !outputs.iter().any(is_for_agent) {
            self.write(now, agent, &mut outputs);
        }
        outputs
    }

    /// Returns when to send [`Input::Tick`] if nothing else happens first.
    #[must_use]
    pub fn next_wakeup(&self) -> Option<Instant> {
        let is_present = matches!(self.node, NodeState::Present { .. });
        let of_node = |due: Option<Instant>, lane: &Lane| {
            let (due, free) = (due?, lane.free_at()?);
            is_present.then_some(due.max(free))
        };
        [
            of_node(self.levels.due_at(), &self.status),
            of_node(self.annotations_due(), &self.annotations),
            self.events_due(),
            self.reboots.due_at(),
            self.levels.contest_ends_at(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Returns what distinguishes the names of this state's events from every other's.
    #[must_use]
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns what is known of the Node.
    #[must_use]
    pub const fn node(&self) -> &NodeState {
        &self.node
    }

    /// Returns the patch of the status that is under way.
    #[must_use]
    pub const fn patch(&self) -> Option<&StatusPatch> {
        self.patching.as_ref()
    }

    /// Returns the events that are on their way.
    #[must_use]
    pub const fn series(&self) -> &SeriesTable {
        &self.series
    }

    /// Returns the conditions on the Node.
    #[must_use]
    pub const fn levels(&self) -> &Levels {
        &self.levels
    }

    /// Returns the reboots that were ordered.
    #[must_use]
    pub const fn reboots(&self) -> &RebootOrders {
        &self.reboots
    }

    /// Returns the three kinds of requests, with their names.
    #[must_use]
    pub const fn lanes(&self) -> [(&'static str, &Lane); 3] {
        [("status", &self.status), ("annotations", &self.annotations), ("events", &self.events)]
    }

    /// Returns whether everything that is to be written was written, but for what comes at its time.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.levels.unsettled() == 0 && self.series.is_settled()
    }
}

fn is_for_agent(output: &Output) -> bool {
    matches!(output, Output::Clear { .. } | Output::Contested(_) | Output::Hold { .. })
}

fn push(outputs: &mut Outputs, output: Output) {
    // Never full: see `PUBLISHED_MAX`.
    let _ = outputs.push(output);
}

/// How long after a fault its evidence is written, so that what the kernel says next is in it.
const EVIDENCE_AFTER: Duration = Duration::from_millis(200);

/// Evidence of a fault: what happens at once, then one each half minute.
const EVIDENCE: Rate = Rate { burst: 5, every: Duration::from_secs(30) };

/// How often the documents are written (seed, "refreshed every 2 minutes").
pub const REPORT_EVERY: Duration = Duration::from_secs(120);

/// How long after the start the documents are written at the latest, complete or not.
const FIRST_REPORT_WITHIN: Duration = Duration::from_secs(10);
