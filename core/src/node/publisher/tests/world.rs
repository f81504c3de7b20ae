//! An agent, its publisher, and an API server that does to their requests what a test says.

use std::boxed::Box;
use std::collections::BTreeMap;
use std::format;
use std::string::{String, ToString as _};
use std::vec::Vec;

use super::super::levels::WriteValue;
use super::super::series::Topic;
use super::super::series::{EventVerb, SeriesCounts};
use super::super::view::{Mark, SeenCondition};
use super::super::*;
use super::clearing;
use crate::catalog::ReadingKind;
use crate::node::agent::{Input as AgentInput, Output as AgentOutput, Settings};
use crate::node::checks::Outcome;
use crate::node::condition::Status;
use crate::time::Timestamp;

pub(super) const MANAGER: &str = "fettle-agent";

/// Stands for code 409 with reason `AlreadyExists`.
const EXISTS: u16 = 0;

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Taken,
    /// It was taken, and the answer does not show the Node.
    TakenUnseen,
    LostBefore,
    /// It was taken, and nobody hears of it.
    LostAfter,
    Refused(u16),
}

#[derive(Debug, Clone, Default)]
pub(super) struct OnNode {
    pub(super) status: String,
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) transition: i64,
    pub(super) heartbeat: i64,
    writer: String,
    written: i64,
    owners: Vec<String>,
}

#[derive(Debug, Clone)]
pub(super) struct OnServer {
    pub(super) reason: String,
    pub(super) count: u64,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Server {
    uid: Option<String>,
    pub(super) version: u64,
    now: i64,
    pub(super) conditions: BTreeMap<String, OnNode>,
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) events: BTreeMap<String, OnServer>,
}

pub(super) struct World {
    pub(super) agent: Box<Agent>,
    pub(super) publisher: Box<Publisher>,
    pub(super) server: Server,
    pub(super) fate: Fate,
    pub(super) disk_is_full: bool,
    /// Whether nothing on disk says which tamper conditions held.
    pub(super) adopts: bool,
    /// Whether the disk saves nothing until it [answers](Self::disk_answers).
    pub(super) disk_is_slow: bool,
    pub(super) saves: u32,
    pub(super) ticks: u32,
    saved: Option<(Box<Agent>, Box<Publisher>)>,
    disk: Vec<Reboot>,
    boot: u8,
    reboots_enabled: bool,
    pub(super) now: Instant,
    sequence: u64,
    /// How many events there were to tell, by the agent's and the publisher's own count.
    pub(super) happened: u64,
    pub(super) writes: Vec<&'static str>,
    pub(super) named: Vec<String>,
    pub(super) reboots: Vec<String>,
    pub(super) evidence: usize,
    pub(super) crashes: u32,
    pub(super) moved_without_turn: u32,
    pub(super) unread_writes: u32,
    pub(super) unsaved_sends: u32,
    pub(super) early_wakeups: u32,
    was_read: bool,
    /// Whether something was taken of which nobody has heard.
    is_blind: bool,
}

pub(super) fn on_node(status: &str, transition: i64) -> OnNode {
    OnNode {
        status: status.into(),
        transition,
        owners: [MANAGER.into()].into(),
        ..OnNode::default()
    }
}

impl Server {
    pub(super) fn make_node(&mut self, uid: &str) {
        self.version += 1;
        self.uid = Some(uid.into());
        self.conditions.insert("Ready".into(), on_node("True", 1));
        self.conditions.get_mut("Ready").unwrap().owners = ["kubelet".into()].into();
    }

    pub(super) fn delete_node(&mut self) {
        self.uid = None;
        self.conditions.clear();
        self.annotations.clear();
    }

    pub(super) fn write_by(&mut self, writer: &str, name: &str, status: &str) {
        self.version += 1;
        let now = self.now;
        let condition = self.conditions.entry(name.into()).or_default();
        condition.status = status.into();
        condition.reason = "Theirs".into();
        condition.message = "theirs".into();
        condition.writer = writer.into();
        condition.written = now;
        if !condition.owners.contains(&writer.into()) {
            condition.owners.push(writer.into());
        }
    }

    pub(super) fn mark(&mut self, name: &str, value: &str) {
        self.version += 1;
        self.annotations.insert(name.into(), value.into());
    }
}

impl World {
    /// Returns a world whose agent has read the log and the Node.
    pub(super) fn new(seed: u64) -> Self {
        let mut world = Self::unread(seed);
        world.agent_catches_up();
        world.look();
        world
    }

    pub(super) fn agent_catches_up(&mut self) {
        self.agent_takes(AgentInput::LogCaughtUp);
    }

    pub(super) fn unread(seed: u64) -> Self {
        let mut server = Server::default();
        server.make_node("first");
        let mut world = Self {
            agent: Box::new(Agent::new(Settings::default())),
            publisher: Box::new(Publisher::new(seed)),
            server,
            fate: Fate::Taken,
            disk_is_full: false,
            adopts: true,
            disk_is_slow: false,
            saves: 0,
            ticks: 0,
            saved: None,
            disk: Vec::new(),
            boot: 1,
            reboots_enabled: false,
            now: Instant::from_millis(1_000_000),
            sequence: 0,
            happened: 0,
            writes: Vec::new(),
            named: Vec::new(),
            reboots: Vec::new(),
            evidence: 0,
            crashes: 0,
            moved_without_turn: 0,
            unread_writes: 0,
            unsaved_sends: 0,
            early_wakeups: 0,
            was_read: false,
            is_blind: false,
        };
        world.start();
        world
    }

    pub(super) fn wall(&self) -> i64 {
        i64::try_from(self.now.millis() / 1000).unwrap()
    }

    pub(super) fn event_counts(&self, reason: &str) -> Vec<u64> {
        let events = self.server.events.values().filter(|event| event.reason == reason);
        events.map(|event| event.count).collect()
    }

    pub(super) fn kernel_says(&mut self, text: &str) {
        self.sequence += 1;
        let record = format!("3,{},{},-;{text}", self.sequence, self.now.millis() * 1000);
        self.agent_takes(AgentInput::Record(record.as_bytes()));
        self.agent_takes(AgentInput::LogCaughtUp);
    }

    pub(super) fn clear(&mut self, name: &str) {
        self.agent_takes(clearing(ConditionType::by_name(name).unwrap()));
    }

    pub(super) fn checked(&mut self, kind: ReadingKind) {
        self.agent_takes(AgentInput::CheckEnded { kind, outcome: Outcome::Complete });
    }

    pub(super) fn enable_reboots(&mut self) {
        self.reboots_enabled = true;
        self.publisher_takes(Input::Configured { reboots: true });
    }

    /// The state is on disk.
    pub(super) fn disk_answers(&mut self) {
        self.disk_is_slow = false;
        self.saved = Some((self.agent.clone(), self.publisher.clone()));
        self.publisher_takes(Input::Saved);
    }

    /// Shows the publisher the Node as it is.
    pub(super) fn look(&mut self) {
        let server = self.server.clone();
        self.look_at(&server);
    }

    pub(super) fn look_at(&mut self, server: &Server) {
        let Some(uid) = &server.uid else {
            self.publisher_takes(Input::NodeMissing);
            return;
        };
        (self.was_read, self.is_blind) = (true, false);
        let conditions = server.conditions.iter().map(|(name, seen)| SeenCondition {
            name,
            status: &seen.status,
            reason: &seen.reason,
            message: &seen.message,
            transition: Some(Timestamp::from_unix_secs(seen.transition)),
            writer: (!seen.writer.is_empty() && seen.writer != MANAGER).then_some(&seen.writer),
            written: Some(Timestamp::from_unix_secs(seen.written)),
            is_own: seen.owners.iter().any(|owner| owner == MANAGER),
        });
        let conditions: Vec<_> = conditions.collect();
        let mark = |name| {
            server.annotations.get(name).map(|value| Mark {
                value: value.as_str(),
                by: "kubectl",
                age: None,
            })
        };
        let view = NodeView {
            uid,
            version: Some(server.version),
            is_listed: false,
            conditions: &conditions,
            clear: mark("fettle.dev/clear-condition"),
            reboot: mark("fettle.dev/reboot"),
        };
        self.publisher_takes(Input::NodeSeen(view));
    }

    pub(super) fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            let wakeups = [self.agent.next_wakeup(), self.publisher.next_wakeup()];
            let next = wakeups.into_iter().flatten().min().filter(|at| *at <= end);
            let Some(next) = next else { break };
            self.now = self.now.max(next) + Duration::from_millis(1);
            self.ticks += 1;
            self.agent_takes(AgentInput::Tick);
            self.publisher_takes(Input::Tick);
            let is_later = self.publisher.next_wakeup().is_none_or(|at| at > self.now);
            self.early_wakeups += u32::from(!is_later);
        }
        self.now = self.now.max(end);
        self.server.now = self.wall();
    }

    /// The process ends, and another goes on with what was saved, in this boot or the next.
    pub(super) fn restart(&mut self, is_boot: bool) {
        self.crashes += 1;
        if is_boot {
            self.saved = None;
        }
        let was = self.agent.settings().clone();
        let (agent, publisher) = self.saved.clone().unwrap_or_else(|| {
            (Box::new(Agent::new(was)), Box::new(Publisher::new(self.publisher.seed() + 1)))
        });
        self.boot += u8::from(is_boot);
        (self.agent, self.publisher) = (agent, publisher);
        self.was_read = false;
        self.start();
        self.agent_takes(AgentInput::LogCaughtUp);
        self.look();
    }

    pub(super) fn act(&mut self, step: u8, object: u8) {
        match step {
            0 => {
                self.kernel_says(&format!("EXT4-fs (sd{object}): Remounting filesystem read-only"))
            }
            1 => self.kernel_says("INFO: task kubelet:227 blocked for more than 120 seconds."),
            2 => self.kernel_says(&format!("nvme nvme{object}: I/O 131 QID 1 timeout, aborting")),
            3 => self.clear("ReadonlyFilesystem"),
            4 => self.fate = Fate::Taken,
            5 => self.fate = Fate::LostBefore,
            6 => self.fate = Fate::LostAfter,
            7 => self.fate = Fate::Refused([429, 500, 409, 503][usize::from(object)]),
            8 => self.look(),
            9 => self.restart(false),
            10 => {
                self.server.delete_node();
                self.look();
                self.server.make_node(&format!("node{object}{}", self.now.millis()));
                self.look();
            }
            _ => self.server.mark("fettle.dev/clear-condition", "KernelDeadlock"),
        }
    }

    pub(super) fn heal(&mut self) {
        self.fate = Fate::Taken;
        self.look();
        self.run_for(Duration::from_secs(2 * 3600));
        self.look();
        self.run_for(Duration::from_secs(2 * 3600));
    }

    fn start(&mut self) {
        let (disk, boot) = (self.disk.clone(), [b'0' + self.boot; 4]);
        let reboots = self.reboots_enabled;
        self.publisher_takes(Input::Started(Start {
            boot: &boot,
            reboots,
            ordered: &disk,
            adopts: self.adopts,
        }));
        let settings = self.agent.settings().clone();
        self.agent_takes(AgentInput::Started(settings));
    }

    pub(super) fn agent_takes(&mut self, input: AgentInput<'_>) {
        for output in self.agent.step(self.now, input) {
            match output {
                AgentOutput::Condition { change, condition } => {
                    self.publisher_takes(Input::Changed { condition, change });
                }
                AgentOutput::Event(event) => {
                    self.happened += match &event {
                        Event::Cleared { .. } => 1,
                        Event::Findings(write) => write.count,
                    };
                    self.publisher_takes(Input::Happened(&event));
                }
                AgentOutput::ReadMounts => self.agent_takes(AgentInput::MountsUnreadable),
                AgentOutput::Check { .. }
                | AgentOutput::Lost { .. }
                | AgentOutput::ReadTask { .. }
                | AgentOutput::RestartUnit { .. } => {}
            }
        }
    }

    pub(super) fn publisher_takes(&mut self, input: Input<'_>) {
        let before = self.publisher.series().counts();
        let own = matches!(input, Input::Changed { .. } | Input::NodeSeen(_) | Input::Started(_));
        let outputs = self.publisher.step(self.now, &self.agent, input);
        if own {
            let after = self.publisher.series().counts();
            let sum = |counts: SeriesCounts| counts.written + counts.waiting + counts.dropped;
            self.happened += sum(after).saturating_sub(sum(before));
        }
        for output in outputs {
            self.perform(output);
        }
    }

    fn perform(&mut self, output: Output) {
        match output {
            Output::Annotate(patch) => {
                self.unread_writes += u32::from(!self.was_read);
                self.writes.push("annotations");
                let has_evidence = matches!(patch, AnnotationPatch::Write { evidence: true, .. });
                self.evidence += usize::from(has_evidence);
                let unmarks = matches!(patch, AnnotationPatch::Unmark { .. });
                let version = Some(self.server.version);
                let is_current = patch == AnnotationPatch::Unmark { version };
                let answer = self.request(|server| {
                    if unmarks && !is_current {
                        return Some(409);
                    }
                    server.uid.as_ref().map_or(Some(404), |_| {
                        server.version += 1;
                        if unmarks {
                            server.annotations.remove("fettle.dev/clear-condition");
                        }
                        None
                    })
                });
                self.look_if_taken(answer);
                self.publisher_takes(Input::AnnotationsAnswered(answer));
            }
            Output::PatchStatus => self.patch(),
            Output::WriteEvent(request) => self.write_event(request),
            Output::Save => {
                self.saves += 1;
                if !self.disk_is_slow {
                    self.disk_answers();
                }
            }
            Output::Clear { condition, by } => {
                self.agent_takes(AgentInput::ClearByHand { by, condition });
            }
            Output::Contested(contest) => self.agent_takes(AgentInput::Contested(contest)),
            Output::Hold { condition } => self.agent_takes(AgentInput::HeldOnNode { condition }),
            Output::Reboot { id } => self.reboots.push(id.to_string()),
            Output::RecordReboots => {
                let is_recorded = !self.disk_is_full;
                if is_recorded {
                    self.disk = self.publisher.reboots().known().to_vec();
                }
                self.publisher_takes(Input::RebootRecorded { is_recorded });
            }
        }
    }

    /// Lets `apply` happen, and its answer be heard, as the fate says.
    fn request(&mut self, apply: impl FnOnce(&mut Server) -> Option<u16>) -> Answer {
        let failed = |code| Answer::Failed { code, retry_after: None };
        match self.fate {
            Fate::LostBefore => failed(None),
            Fate::Refused(code) => failed(Some(code)),
            Fate::LostAfter => {
                self.is_blind = true;
                let _ = apply(&mut self.server);
                failed(None)
            }
            Fate::Taken | Fate::TakenUnseen => {
                let code = apply(&mut self.server);
                match code {
                    None => Answer::Accepted,
                    Some(EXISTS) => Answer::AlreadyExists,
                    Some(code) => failed(Some(code)),
                }
            }
        }
    }

    /// The answer to a patch is the Node.
    fn look_if_taken(&mut self, answer: Answer) {
        if answer == Answer::Accepted && self.fate == Fate::Taken {
            self.look();
        }
    }

    fn patch(&mut self) {
        self.unread_writes += u32::from(!self.was_read);
        self.writes.push("status");
        let patch = self.publisher.patch().cloned().unwrap();
        let wall = self.wall();
        let (mut moved, was_blind) = (0, self.is_blind);
        let rows = patch.writes.iter().map(|write| {
            (
                write.condition.row().name,
                write.value,
                self.agent.condition(write.condition).cloned(),
            )
        });
        let rows: Vec<_> = rows.collect();
        self.named.extend(rows.iter().map(|(name, ..)| name.to_string()));
        let answer = self.request(|server| {
            if server.uid.is_none() {
                return Some(404);
            }
            server.version += 1;
            for (name, value, held) in rows {
                let held = held.unwrap();
                let condition = server.conditions.entry(name.into()).or_default();
                condition.heartbeat = wall;
                if value == WriteValue::Heartbeat {
                    continue;
                }
                let status = held.verdict.status.to_string();
                let transition = match value {
                    WriteValue::Unturned(at) => at.unix_secs(),
                    WriteValue::Heartbeat | WriteValue::Turned => {
                        i64::try_from(held.since.millis() / 1000).unwrap()
                    }
                };
                moved +=
                    u32::from(status == condition.status && transition != condition.transition);
                condition.reason =
                    held.verdict.reason.name(ConditionType::by_name(name).unwrap()).into();
                condition.message = held.verdict.message.as_str().into();
                condition.writer = MANAGER.into();
                (condition.status, condition.transition) = (status, transition);
                condition.owners.push(MANAGER.into());
            }
            for name in &patch.removes {
                server.conditions.remove(name.as_str());
            }
            None
        });
        // A turn there and back may have been taken in between.
        self.moved_without_turn += if was_blind { 0 } else { moved };
        self.look_if_taken(answer);
        self.publisher_takes(Input::StatusAnswered(answer));
    }

    fn write_event(&mut self, request: EventRequest) {
        self.writes.push("event");
        let seed = self.publisher.seed();
        let name = format!("{seed}.{}", request.number);
        let is_saved = self
            .saved
            .as_ref()
            .is_some_and(|(_, publisher)| publisher.series().get(request.number).is_some());
        self.unsaved_sends += u32::from(!is_saved && request.verb == EventVerb::Create);
        let series = self.publisher.series().get(request.number).cloned().unwrap();
        let reason = match series.topic {
            Topic::Event(reason) => reason.row().name,
            Topic::Condition(condition, Status::True) => condition.row().problem,
            Topic::Condition(condition, _) => condition.row().healthy,
        };
        let answer = self.request(|server| match request.verb {
            EventVerb::Create if server.events.contains_key(&name) => Some(EXISTS),
            EventVerb::Create => {
                server.events.insert(name, OnServer { reason: reason.into(), count: series.count });
                None
            }
            EventVerb::Count => match server.events.get_mut(&name) {
                Some(event) => {
                    event.count = series.count;
                    None
                }
                None => Some(404),
            },
        });
        self.publisher_takes(Input::EventAnswered(answer));
    }
}
