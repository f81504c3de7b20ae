//! The invariants that `Publisher` promises, each under the name that its documentation gives.

use core::time::Duration;

use fettle_core::bounds::PUBLISHED_MAX;
use fettle_core::catalog::{Clear, ConditionType};
use fettle_core::node::agent::{Agent, Event};
use fettle_core::node::publisher::lane::{ASKED_LONGEST, RETRY_SHORTEST};
use fettle_core::node::publisher::levels::WriteValue;
use fettle_core::node::publisher::view::NodeView;
use fettle_core::node::publisher::{
    AnnotationPatch, Answer, Input, NodeState, Output, Outputs, Publisher,
};
use fettle_core::time::{Instant, Timestamp};

/// What a publisher was told and what it asked for, as far as its promises are about that.
#[derive(Debug, Default)]
pub(crate) struct Promises {
    /// The Node's conditions, once they were read by this process.
    conditions: Option<Vec<Seen>>,
    /// The mark that asks to clear.
    clear: Option<String>,
    version: Option<u64>,
    status: Asked,
    annotations: Asked,
    events: Asked,
    /// What is on disk; `None` while nothing is, or nothing can be.
    saved: Option<Box<Publisher>>,
    /// Whether the disk takes nothing, so that events go unsaved.
    disk_is_broken: bool,
}

/// A condition of the Node.
#[derive(Debug)]
struct Seen {
    name: String,
    status: String,
    transition: Option<Timestamp>,
    is_own: bool,
}

/// One kind of request.
#[derive(Debug, Default)]
struct Asked {
    is_under_way: bool,
    not_before: Instant,
}

impl Asked {
    fn send(&mut self, now: Instant) {
        assert!(!self.is_under_way, "one_at_a_time");
        assert!(self.not_before <= now, "backs_off");
        self.is_under_way = true;
    }

    /// Notes an answer, if one was due; `is_final` says that a refusal asks for no wait.
    fn answer(&mut self, now: Instant, answer: Answer, is_final: bool) -> bool {
        let was_under_way = core::mem::take(&mut self.is_under_way);
        let wait = match answer {
            Answer::Failed { retry_after, .. } => {
                retry_after.unwrap_or_default().min(ASKED_LONGEST).max(RETRY_SHORTEST)
            }
            Answer::Accepted | Answer::AlreadyExists => Duration::ZERO,
        };
        if was_under_way && !is_final {
            self.not_before = now + wait;
        }
        was_under_way
    }
}

impl Promises {
    /// Steps `publisher` and checks what it says.
    pub(crate) fn step(
        &mut self,
        publisher: &mut Publisher,
        (now, agent): (Instant, &Agent),
        input: Input<'_>,
    ) -> Outputs {
        let (before, growth) = (sum(publisher), growth(&input));
        self.note(publisher, now, &input);
        let outputs = publisher.step(now, agent, input);
        assert!(outputs.len() < PUBLISHED_MAX, "the outputs are full");
        let grown = sum(publisher).checked_sub(before).expect("all_counted");
        assert!(growth.is_none_or(|growth| growth == grown), "all_counted");
        for output in &outputs {
            self.check(publisher, (now, agent), output);
        }
        let is_later = publisher.next_wakeup().is_none_or(|at| at > now);
        assert!(is_later || outputs.iter().any(is_for_agent), "wakeup_is_later");
        outputs
    }

    /// Notes that the state is on disk.
    pub(crate) fn saved(&mut self, publisher: &Publisher) {
        self.saved = Some(Box::new(publisher.clone()));
        self.disk_is_broken = false;
    }

    /// Notes that the disk takes nothing.
    pub(crate) const fn unsaved(&mut self) {
        self.disk_is_broken = true;
    }

    fn note(&mut self, publisher: &Publisher, now: Instant, input: &Input<'_>) {
        match *input {
            Input::NodeSeen(ref view) => self.look(publisher, view),
            Input::NodeMissing => self.conditions = None,
            Input::StatusAnswered(answer) => {
                let was_asked = self.status.answer(now, answer, false);
                self.note_missing(was_asked, answer);
            }
            Input::AnnotationsAnswered(answer) => {
                let was_asked = self.annotations.answer(now, answer, false);
                self.note_missing(was_asked, answer);
            }
            Input::EventAnswered(answer) => {
                let is_final =
                    matches!(answer, Answer::Failed { code: Some(400 | 404 | 413 | 422), .. });
                self.events.answer(now, answer, is_final);
            }
            Input::Started(_) => {
                let saved = self.saved.take();
                *self = Self { saved, disk_is_broken: self.disk_is_broken, ..Self::default() };
            }
            Input::Changed { .. }
            | Input::Configured { .. }
            | Input::Happened(_)
            | Input::ReportComplete
            | Input::Saved
            | Input::RebootRecorded { .. }
            | Input::RebootFailed { .. }
            | Input::Stopping
            | Input::Tick => {}
        }
    }

    fn note_missing(&mut self, was_asked: bool, answer: Answer) {
        if was_asked && matches!(answer, Answer::Failed { code: Some(404), .. }) {
            self.conditions = None;
        }
    }

    fn look(&mut self, publisher: &Publisher, view: &NodeView<'_>) {
        let is_same =
            matches!(publisher.node(), NodeState::Present { uid } if uid.as_str() == view.uid);
        let is_older = self.version.zip(view.version).is_some_and(|(known, seen)| seen < known);
        if is_same && is_older {
            return;
        }
        self.version = view.version;
        self.clear = view.clear.map(|mark| mark.value.to_owned());
        let seen = view.conditions.iter().map(|seen| Seen {
            name: seen.name.to_owned(),
            status: seen.status.to_owned(),
            transition: seen.transition,
            is_own: seen.is_own,
        });
        self.conditions = Some(seen.collect());
    }

    fn check(&mut self, publisher: &Publisher, (now, agent): (Instant, &Agent), output: &Output) {
        match output {
            Output::Annotate(patch) => self.annotates(now, patch),
            Output::PatchStatus => self.patches(publisher, now, agent),
            Output::WriteEvent(request) => {
                self.events.send(now);
                assert!(publisher.series().get(request.number).is_some(), "it tells of nothing");
                let saved = self.saved.as_ref();
                let is_saved = saved.is_some_and(|s| s.series().get(request.number).is_some());
                assert!(is_saved || self.disk_is_broken, "saved_first");
            }
            Output::Clear { condition, .. } => {
                let named = self.clear.as_deref().unwrap_or_default().split(',');
                let is_named = named.map(str::trim_ascii).any(|name| name == condition.row().name);
                assert!(is_named, "nobody asks to clear it");
            }
            Output::Hold { condition } => {
                assert_eq!(condition.row().clear, Clear::ByHand, "it holds by itself");
            }
            Output::Contested(contest) => assert_eq!(*contest, publisher.levels().contest()),
            Output::Reboot { id } => {
                let is_known = publisher.reboots().known().iter().any(|known| known.id == *id);
                assert!(is_known, "once_per_id");
            }
            Output::RecordReboots | Output::Save => {}
        }
    }

    fn annotates(&mut self, now: Instant, patch: &AnnotationPatch) {
        self.annotations.send(now);
        assert!(self.conditions.is_some(), "reads_first");
        match *patch {
            AnnotationPatch::Unmark { version } => {
                assert!(self.clear.is_some(), "there is no mark");
                assert_eq!(version, self.version);
            }
            AnnotationPatch::Write { report, evidence } => {
                assert!(report || evidence, "it says nothing");
            }
        }
    }

    fn patches(&mut self, publisher: &Publisher, now: Instant, agent: &Agent) {
        self.status.send(now);
        let on_node = self.conditions.as_deref().expect("reads_first");
        let patch = publisher.patch().expect("it is under way");
        let of = |name: &str| on_node.iter().find(|seen| seen.name == name);
        for name in &patch.removes {
            assert!(of(name.as_str()).is_some_and(|seen| seen.is_own), "own_only: {name:?}");
            let known = ConditionType::by_name(name.as_str());
            let is_wanted = known.is_some_and(|known| agent.settings().schedule.wants(known));
            assert!(!is_wanted, "own_only: {name:?}");
        }
        for write in &patch.writes {
            let held = agent.condition(write.condition).expect("it stands somehow");
            let status = held.verdict.status.to_string();
            let same = of(write.condition.row().name).filter(|seen| seen.status == status);
            let transition = same.and_then(|seen| seen.transition);
            match write.value {
                WriteValue::Heartbeat => assert!(publisher.levels().contest().is_some(), "no_war"),
                WriteValue::Turned => assert_eq!(transition, None, "transition_is_status"),
                WriteValue::Unturned(at) => {
                    assert_eq!(transition, Some(at), "transition_is_status");
                }
            }
        }
    }
}

pub(crate) fn is_for_agent(output: &Output) -> bool {
    matches!(output, Output::Clear { .. } | Output::Contested(_) | Output::Hold { .. })
}

/// Returns how many events there were, by the publisher's own count.
pub(crate) fn sum(publisher: &Publisher) -> u64 {
    let counts = publisher.series().counts();
    counts.written + counts.waiting + counts.dropped
}

/// Returns how many events `input` is; `None` where the publisher may have something to tell.
const fn growth(input: &Input<'_>) -> Option<u64> {
    match input {
        Input::Happened(Event::Cleared { .. }) => Some(1),
        Input::Happened(Event::Findings(write)) => Some(write.count),
        Input::Changed { .. }
        | Input::NodeSeen(_)
        | Input::RebootFailed { .. }
        | Input::RebootRecorded { .. }
        | Input::Started(_) => None,
        Input::AnnotationsAnswered(_)
        | Input::Configured { .. }
        | Input::EventAnswered(_)
        | Input::NodeMissing
        | Input::ReportComplete
        | Input::Saved
        | Input::StatusAnswered(_)
        | Input::Stopping
        | Input::Tick => Some(0),
    }
}
