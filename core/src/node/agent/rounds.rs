//! What the agent does with its checks: when they start, what they read, how they end.

use super::{Agent, Output, Outputs, push};
use crate::bounds::{OUTPUTS_KEPT, OUTPUTS_MAX};
use crate::catalog::{ConditionType, EventReason, ReadingKind};
use crate::node::checks::Outcome;
use crate::node::fold::Extra;
use crate::node::judge::own;
use crate::node::log::LogState;
use crate::node::reading::Reading;
use crate::node::rules::{Detail, Finding, Object};
use crate::text::Text;
use crate::time::Instant;

impl Agent {
    /// Starts the checks that are due; one that is due while its last run goes on waits for it.
    pub(super) fn start_checks(&mut self, now: Instant, outputs: &mut Outputs) {
        if self.checks_due.is_none_or(|due| due > now) {
            return;
        }
        let room = OUTPUTS_MAX.saturating_sub(OUTPUTS_KEPT);
        while outputs.len() < room
            && let Some(kind) = self.checks.start_due(now, &self.settings.schedule)
        {
            push(outputs, Output::Check { kind });
        }
        self.judge_own(now, outputs);
    }

    pub(super) fn on_reading(
        &mut self,
        now: Instant,
        kind: ReadingKind,
        reading: &Reading<'_>,
        outputs: &mut Outputs,
    ) {
        if let Reading::Layer(layer) = reading
            && layer.corrupted
        {
            self.on_corrupt_layer(now, layer.name, outputs);
        }
        if let Reading::BootError(error) = reading {
            self.boot_errors.note_error(*error);
        }
        if let Reading::MemoryController(controller) = reading
            && let Some(finding) = self.controllers.note_counts(now, controller)
        {
            self.fold.note(now, EventReason::MemoryReadError, finding, Extra::new());
        }
        self.note_for_repair(now, (kind, reading), outputs);
        self.checks.note_reading(now, kind, reading, &self.settings.limits);
    }

    /// The device-mapper's status tells of corruption whose line was lost, too.
    pub(super) fn on_corrupt_layer(&mut self, now: Instant, name: &str, outputs: &mut Outputs) {
        let condition = ConditionType::VerityCorruption;
        let object = Object::from_bytes(name.as_bytes());
        if self.objects(condition).any(|known| *known == object) {
            return;
        }
        let line = Text::from_bytes(b"the device-mapper's status of it is C, corrupted");
        let detail = Detail::VerityStatus;
        self.faults.note(condition, Finding { object, detail, line, timestamp_us: 0 });
        self.judge(now, condition, outputs);
    }

    pub(super) fn on_check_ended(
        &mut self,
        now: Instant,
        kind: ReadingKind,
        outcome: Outcome,
        outputs: &mut Outputs,
    ) {
        if kind == ReadingKind::BootErrors && outcome == Outcome::Complete {
            self.boot_errors.note_end();
            self.tell_boot_errors(now, outputs);
        }
        self.end_for_repair(now, (kind, &outcome), outputs);
        self.checks.end(now, kind, outcome);
        self.judge_all(now, kind, outputs);
        self.judge_own(now, outputs);
    }

    /// Tells what the log does not, once all of it has been read.
    pub(super) fn tell_boot_errors(&mut self, now: Instant, outputs: &mut Outputs) {
        if self.log.state() == LogState::Live {
            for finding in self.boot_errors.take_untold() {
                self.on_finding(now, None, finding, outputs);
            }
        }
    }

    /// Notes that a check may be due sooner than was known.
    pub(super) fn check_sooner(&mut self) {
        let due = [self.checks_due, self.checks.next_wakeup()];
        self.checks_due = due.into_iter().flatten().min();
    }

    /// Judges the agent itself, and notes when its checks are to be looked at again.
    pub(super) fn judge_own(&mut self, now: Instant, outputs: &mut Outputs) {
        let schedule = &self.settings.schedule;
        let stale = self.checks.next_stale(now, schedule);
        self.checks_due = [self.checks.next_wakeup(), stale].into_iter().flatten().min();
        let verdict = own::judge(now, &self.log, (&self.checks, schedule), self.contest.as_ref());
        self.stand(now, ConditionType::AgentDegraded, verdict, outputs);
    }
}
