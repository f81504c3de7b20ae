//! What the agent does to have a unit restarted that does not serve.

use core::fmt;

use serde::{Deserialize, Serialize};

use super::{Agent, Output, Outputs, push};
use crate::catalog::ReadingKind;
use crate::node::checks::Outcome;
use crate::node::fold::Extra;
use crate::node::judge::Note;
use crate::node::judge::recovery::Mended;
use crate::node::judge::streak::Answer;
use crate::node::reading::Reading;
use crate::node::repair::{self, Ended, Input, Reason, Repairs, Target, UnitName};
use crate::node::rules::{Detail, Finding, Object};
use crate::text::Text;
use crate::time::Instant;

/// How a restart of a unit ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestartResult {
    /// How.
    pub ended: Ended,
    /// Why it did not succeed, in words; empty if it did.
    pub why: Note,
}

impl Agent {
    /// Returns what the agent knows of a unit besides what systemd says: its own restarts, too.
    #[must_use]
    pub fn mended(&self, unit: &str) -> Mended {
        self.repairs.mended(unit, &self.settings.repair)
    }

    /// Returns what is remembered of the repair of units, with the reasons.
    #[must_use]
    pub const fn repairs(&self) -> &Repairs {
        &self.repairs
    }

    pub(super) fn note_for_repair(
        &mut self,
        now: Instant,
        (kind, reading): (ReadingKind, &Reading<'_>),
        outputs: &mut Outputs,
    ) {
        if let Some(target) = Target::probed_by(kind)
            && let Some(answer) = Answer::of(reading, &self.settings.limits)
        {
            self.repair(now, (target, Input::Answer(answer)), outputs);
        }
        if let (ReadingKind::Units, Reading::Unit(unit)) = (kind, reading) {
            self.repairs.note_unit(unit, &self.settings.repair);
            let mended = self.mended(unit.name);
            self.checks.note_unit(now, unit, &mended);
        }
    }

    pub(super) fn end_for_repair(
        &mut self,
        now: Instant,
        (kind, outcome): (ReadingKind, &Outcome),
        outputs: &mut Outputs,
    ) {
        if let Some(target) = Target::probed_by(kind)
            && *outcome != Outcome::Complete
        {
            self.repair(now, (target, Input::Answer(Answer::Unknown)), outputs);
        }
        if kind != ReadingKind::Units {
            return;
        }
        for target in Target::ALL {
            let unit = self.repairs.take_unit(target).filter(|_| *outcome == Outcome::Complete);
            self.repair(now, (target, Input::Unit(unit)), outputs);
        }
    }

    pub(super) fn on_restart_ended(
        &mut self,
        now: Instant,
        (unit, result): (&UnitName, &RestartResult),
        outputs: &mut Outputs,
    ) {
        let Some(target) = self.settings.repair.target(unit.as_str()) else {
            return;
        };
        let input = Input::Ended(result.ended);
        let done = self.repairs.step(now, (target, input), &self.settings.repair);
        match done {
            Some(repair::Output::Restarted(reason)) => {
                self.tell_restart(now, (unit, Detail::UnitRestarted), reason);
            }
            Some(repair::Output::RestartFailed(reason)) => {
                let told = Why { reason, why: &result.why };
                self.tell_restart(now, (unit, Detail::UnitRestartFailed), told);
            }
            _ => return,
        }
        // How the unit is now is news.
        self.ask_for_units(now);
        self.judge_own(now, outputs);
    }

    /// The answers of a probe that is not made any more say nothing.
    pub(super) fn forget_unprobed(&mut self) {
        for target in Target::ALL {
            if self.settings.schedule.interval(target.probe()).is_none() {
                self.repairs.forget_answers(target);
            }
        }
    }

    /// A new process: nobody waits for the end of a restart any more.
    pub(super) fn resume_repairs(&mut self, now: Instant) {
        for target in Target::ALL {
            let _ = self.repairs.step(now, (target, Input::Resumed), &self.settings.repair);
        }
    }

    fn repair(&mut self, now: Instant, (target, input): (Target, Input), outputs: &mut Outputs) {
        let unit = self.settings.repair.unit(target).clone();
        match self.repairs.step(now, (target, input), &self.settings.repair) {
            Some(repair::Output::AskSystemd) => {
                if !self.ask_for_units(now) {
                    self.repair(now, (target, Input::Unit(None)), outputs);
                }
            }
            Some(repair::Output::Restart(reason) | repair::Output::Escalate(reason)) => {
                push(outputs, Output::RestartUnit { unit, reason });
            }
            Some(repair::Output::WouldRestart(reason)) => {
                self.tell_restart(now, (&unit, Detail::UnitRestartSkipped), reason);
            }
            Some(
                repair::Output::Hold(_)
                | repair::Output::RestartFailed(_)
                | repair::Output::Restarted(_)
                | repair::Output::WaitUntil { .. },
            )
            | None => {}
        }
    }

    /// Says whether systemd can be asked; the run is started at the end of the step.
    fn ask_for_units(&mut self, now: Instant) -> bool {
        let is_asked = self.checks.ask(now, ReadingKind::Units, &self.settings.schedule);
        if is_asked {
            self.check_sooner();
        }
        is_asked
    }

    fn tell_restart(
        &mut self,
        now: Instant,
        (unit, detail): (&UnitName, Detail),
        reason: impl fmt::Display,
    ) {
        let finding = Finding {
            object: Object::from_bytes(unit.as_str().as_bytes()),
            detail,
            line: Text::display(reason),
            timestamp_us: now.micros(),
        };
        if let Some(event) = detail.event() {
            self.fold.note(now, event, finding, Extra::new());
        }
    }
}

/// Why a restart did not succeed, and why it was ordered.
struct Why<'a> {
    reason: Reason,
    why: &'a Note,
}

impl fmt::Display for Why<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.why.is_empty() {
            write!(f, "{}; ordered because ", self.why)?;
        }
        write!(f, "{}", self.reason)
    }
}
