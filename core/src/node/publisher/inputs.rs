//! What each input means, besides the answers to requests.

use super::levels;
use super::orders::{ClearOrder, RebootStep, Start};
use super::series::{Happening, Topic};
use super::view::NodeView;
use super::{
    EVIDENCE_AFTER, FIRST_REPORT_WITHIN, Fresh, NodeState, Output, Outputs, Publisher, push,
};
use crate::catalog::{CONDITIONS, Clear, ConditionRow, ConditionType, EventReason};
use crate::node::agent::{Agent, Event};
use crate::node::condition::{Change, Status};
use crate::node::rules::Object;
use crate::text::Text;
use crate::time::Instant;

impl Publisher {
    pub(super) fn on_started(
        &mut self,
        now: Instant,
        agent: &Agent,
        start: &Start<'_>,
        outputs: &mut Outputs,
    ) {
        self.node = NodeState::Unread;
        self.version = None;
        self.levels.forget(agent);
        for lane in [&mut self.status, &mut self.annotations, &mut self.events] {
            lane.restarted();
        }
        (self.patching, self.annotating, self.sending) = (None, None, None);
        self.report_due = Some(now + FIRST_REPORT_WITHIN);
        self.adopts = start.adopts;
        self.told = None;
        // What this state holds was read from disk.
        self.is_saving = false;
        self.series.saved();
        self.clears.saved();
        for step in self.reboots.start(now, start) {
            self.on_reboot_step(now, step, outputs);
        }
    }

    pub(super) fn on_changed(
        &mut self,
        now: Instant,
        agent: &Agent,
        (condition, change): (ConditionType, Change),
        outputs: &mut Outputs,
    ) {
        self.levels.changed(condition, change);
        let Some(held) = agent.condition(condition) else {
            return;
        };
        let status = held.verdict.status;
        if change == Change::Transition {
            self.tell_turn(now, agent, condition);
            if status == Status::True {
                self.evidence.due = self.evidence.due.or(Some(now + EVIDENCE_AFTER));
            }
        }
        self.hold(agent, condition, outputs);
    }

    /// A turn to `True`, and one from there to `False`, is told; a first `False` is no news.
    pub(super) fn tell_turn(&mut self, now: Instant, agent: &Agent, condition: ConditionType) {
        let Some(held) = agent.condition(condition) else {
            return;
        };
        let status = held.verdict.status;
        if self.levels.turn(condition, status) {
            let at_us = now.millis().saturating_mul(1000);
            let (topic, object) = (Topic::Condition(condition, status), Object::new());
            let (note, first_us, last_us) = (held.verdict.message.clone(), at_us, at_us);
            self.series.note(now, Happening { topic, object, note, count: 1, first_us, last_us });
        }
    }

    pub(super) fn on_event(&mut self, now: Instant, event: &Event) {
        let happening = match event {
            Event::Cleared { by, condition } => {
                // What stands on the Node is from before.
                self.adopts = false;
                self.forget_held(*condition);
                let at_us = now.millis().saturating_mul(1000);
                let name = condition.row().name;
                Happening {
                    topic: Topic::Event(EventReason::ConditionCleared),
                    object: Object::from_bytes(name.as_bytes()),
                    note: Text::display(format_args!("{name} was cleared by {by}")),
                    count: 1,
                    first_us: at_us,
                    last_us: at_us,
                }
            }
            Event::Findings(write) => Happening {
                topic: Topic::Event(write.reason),
                object: write.newest.object.clone(),
                note: write.message(),
                count: write.count,
                first_us: write.first_us,
                last_us: write.newest.timestamp_us,
            },
        };
        self.series.note(now, happening);
    }

    pub(super) fn on_seen(
        &mut self,
        now: Instant,
        agent: &Agent,
        view: &NodeView<'_>,
        outputs: &mut Outputs,
    ) {
        let uid = Text::from_bytes(view.uid.as_bytes());
        let is_same = matches!(&self.node, NodeState::Present { uid: known } if *known == uid);
        let is_older = self.version.zip(view.version).is_some_and(|(known, seen)| seen < known);
        if is_older && !view.is_listed {
            return;
        }
        if !is_same {
            self.on_other_node(now, agent);
        }
        if self.adopts {
            self.adopt(agent, view, outputs);
        }
        self.node = NodeState::Present { uid };
        self.fresh = Fresh { status: true, annotations: true };
        self.version = view.version;
        self.levels.seen(now, agent, view);
        for order in self.clears.see(now, view.clear) {
            match order {
                ClearOrder::Clear { condition, by } => {
                    self.forget_held(condition);
                    push(outputs, Output::Clear { condition, by });
                }
                ClearOrder::Refused(happening) => self.series.note(now, happening),
            }
        }
        if let Some(step) = self.reboots.see(now, view.reboot) {
            self.on_reboot_step(now, step, outputs);
        }
    }

    /// The Node was read for the first time, or is another one than before.
    pub(super) fn on_other_node(&mut self, now: Instant, agent: &Agent) {
        if self.node != NodeState::Unread {
            self.levels.forget(agent);
            self.report_due = Some(now);
            let is_true = |row: &&ConditionRow| {
                let held = agent.condition(row.condition);
                held.is_some_and(|held| held.verdict.status == Status::True)
            };
            if CONDITIONS.iter().any(|row| is_true(&row)) {
                self.evidence.due = Some(now);
            }
        }
        // Nodes that were started together do not say so together ever after.
        let spread = self.jitter.below(levels::HEARTBEAT_EVERY);
        self.levels.start_heartbeat(now + spread);
    }

    /// Takes over the tamper conditions that an earlier boot left on the Node.
    fn adopt(&mut self, agent: &Agent, view: &NodeView<'_>, outputs: &mut Outputs) {
        self.adopts = false;
        for row in CONDITIONS.iter().filter(|row| row.clear == Clear::ByHand) {
            let is_true = view
                .conditions
                .iter()
                .any(|seen| seen.name == row.name && seen.status == "True" && seen.is_own);
            if let Some(held) = self.held.get_mut(row.condition.index()) {
                *held = is_true;
            }
            self.hold(agent, row.condition, outputs);
        }
    }

    /// Hands what an earlier boot found to the agent, if the agent says that all is well.
    fn hold(&mut self, agent: &Agent, condition: ConditionType, outputs: &mut Outputs) {
        let status = agent.condition(condition).map(|held| held.verdict.status);
        let held = self.held.get(condition.index()).copied().unwrap_or(false);
        if held && status.is_some() {
            self.forget_held(condition);
            if status != Some(Status::True) {
                push(outputs, Output::Hold { condition });
            }
        }
    }

    fn forget_held(&mut self, condition: ConditionType) {
        if let Some(held) = self.held.get_mut(condition.index()) {
            *held = false;
        }
    }

    pub(super) fn on_reboot_step(&mut self, now: Instant, step: RebootStep, outputs: &mut Outputs) {
        match step {
            RebootStep::Record => push(outputs, Output::RecordReboots),
            RebootStep::Tell(happening) => self.series.note(now, happening),
        }
    }

    pub(super) fn tell(&mut self, now: Instant, happening: Option<Happening>) {
        if let Some(happening) = happening {
            self.series.note(now, happening);
        }
    }

    pub(super) fn tell_contest(&mut self, outputs: &mut Outputs) {
        let contest = self.levels.contest();
        if contest != self.told {
            self.told.clone_from(&contest);
            push(outputs, Output::Contested(contest));
        }
    }
}
