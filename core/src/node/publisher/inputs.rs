//! What each input means, besides the answers to requests.

use super::levels;
use super::orders::{ClearOrder, RebootStep};
use super::series::{Happening, Topic};
use super::view::NodeView;
use super::{
    EVIDENCE_AFTER, FIRST_REPORT_WITHIN, Fresh, NodeState, Output, Outputs, Publisher, Start, push,
};
use crate::catalog::{CONDITIONS, Clear, ConditionType};
use crate::node::agent::{Agent, Event};
use crate::node::condition::{Change, Status, Verdict};
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
        if change == Change::Transition {
            self.tell_turn(now, condition, &held.verdict);
            if held.verdict.status == Status::True {
                self.evidence.due = self.evidence.due.or(Some(now + EVIDENCE_AFTER));
            }
        }
        self.hold(agent, condition, outputs);
    }

    /// A turn to `True`, and one from there to `False`, is told; a first `False` is no news.
    fn tell_turn(&mut self, now: Instant, condition: ConditionType, verdict: &Verdict) {
        if self.levels.turn(condition, verdict.status) {
            let topic = Topic::Condition(condition, verdict.status);
            let note = verdict.message.clone();
            self.series.note(now, Happening::once(now, topic, Object::new(), note));
        }
    }

    pub(super) fn on_event(&mut self, now: Instant, event: &Event) {
        let (topic, note) = (Topic::Event(event.reason()), event.message());
        let happening = match event {
            Event::Cleared { condition, .. } => {
                // What stands on the Node is from before.
                self.adopts = false;
                self.forget_held(*condition);
                let object = Object::from_bytes(condition.row().name.as_bytes());
                Happening::once(now, topic, object, note)
            }
            Event::Findings(write) => Happening {
                topic,
                object: write.newest.object.clone(),
                note,
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
            let mut held = CONDITIONS.iter().filter_map(|row| agent.condition(row.condition));
            if held.any(|held| held.verdict.status == Status::True) {
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
