//! In-place repair: when a unit that does not serve is restarted, and when that does not help.

mod reason;
mod targets;

use core::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::reason::{Reason, Rule};
pub use self::targets::{Mode, RepairSettings, Repairs, Target, UnitName};
use crate::node::judge::recovery::{Mended, RESTARTS_MIN};
use crate::node::judge::streak::{Answer, Failure, Streak};
use crate::node::reading::{ActiveState, Unit};
use crate::time::Instant;

/// The repair of one unit by what a probe says of it.
///
/// ```text
///            failures enough            systemd: settled, cooldown over
/// Watching ------------------> Asking ----------------------------------> Restarting
///    ^ ^       (or a wait)        | any other word of systemd's               | ended,
///    | +--------------------------+                                           | or lost
///    +------------------------------------------------------------------------+
/// ```
///
/// # Invariants
///
/// * `cooldown`: no restart sooner than the cooldown after the last start of the unit, whoever
///   ordered it, nor after the last order.
/// * `settled`: no restart while the unit starts, stops or reloads, or has a job.
/// * `known`: no restart unless the last answer failed, and systemd said after it how the unit is.
/// * `hourly_max`: at most one restart for each cooldown in an hour.
/// * `one_at_a_time`: no restart before the last one has ended, or is [`ENDED_WITHIN`] old.
/// * `off_is_off`: no restart where the mode is not [`Mode::Act`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repair {
    streak: Streak,
    /// Since when every answer has been good.
    good_since: Option<Instant>,
    own_restarts: u32,
    /// Own restarts since the answers were good for as long as the cooldown.
    in_row: u32,
    last_order: Option<Instant>,
    /// Until when it is known that there is to be no restart.
    held_until: Option<Instant>,
    state: State,
}

/// What the repair waits for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
enum State {
    /// What systemd says of the unit, after failures enough.
    Asking,
    /// The end of a restart.
    Restarting { since: Instant, reason: Reason },
    /// Failures enough.
    #[default]
    Watching,
}

/// Something that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// The probe has ended.
    Answer(Answer),
    /// The restart has ended.
    Ended(Ended),
    /// A new process goes on: whoever waited for the end of a restart is gone.
    Resumed,
    /// systemd has said how the unit is; `None` if it could not be asked or does not know it.
    Unit(Option<UnitState>),
}

/// How a restart ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ended {
    /// The unit was restarted.
    Done,
    /// systemd tried and did not succeed.
    Failed,
    /// systemd did not take the order.
    Refused,
}

/// How a unit is, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitState {
    /// Its state.
    pub active: ActiveState,
    /// Whether systemd has a job for it.
    pub has_job: bool,
    /// When it was last started, by whomever.
    pub last_start: Option<Instant>,
}

/// What is to be done, or why nothing is.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Ask systemd how the unit is, and answer with [`Input::Unit`].
    AskSystemd,
    /// Restart the unit, as [`Output::Restart`]; but restarts do not help any more.
    Escalate(Reason),
    /// Nothing is to be done, until something changes.
    Hold(Reason),
    /// Restart the unit, and answer with [`Input::Ended`].
    Restart(Reason),
    /// A restart did not succeed; why it was ordered.
    RestartFailed(Reason),
    /// A restart is done; why it was ordered.
    Restarted(Reason),
    /// Nothing is to be done before `until`.
    WaitUntil {
        /// When a restart may be.
        until: Instant,
        /// Why not now.
        reason: Reason,
    },
    /// There would be a restart, if this were not a dry run.
    WouldRestart(Reason),
}

/// What a person lets the repair do, and how often it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// How long after its last start the unit is left alone.
    pub cooldown: Duration,
    /// Whether restarts are ordered.
    pub mode: Mode,
}

impl Repair {
    /// Applies one input and returns what is to be done, or why nothing is.
    pub fn step(&mut self, now: Instant, input: Input, policy: &Policy) -> Option<Output> {
        if let Input::Answer(answer) = input {
            self.note_answer(now, answer, policy);
        }
        match (self.state, input) {
            (State::Watching | State::Asking, Input::Answer(answer)) => {
                self.on_answer(now, answer, policy)
            }
            (State::Restarting { since, .. }, Input::Answer(answer)) => {
                if now.since(since) < ENDED_WITHIN {
                    return None;
                }
                self.count_restart();
                self.on_answer(now, answer, policy)
            }
            (State::Restarting { reason, .. }, Input::Ended(ended)) => {
                Some(self.on_ended(ended, reason))
            }
            (State::Restarting { .. }, Input::Resumed) => {
                // Nobody knows; what may have been done counts as done.
                self.count_restart();
                None
            }
            (State::Asking, Input::Unit(unit)) => self.on_unit(now, unit, policy),
            (State::Asking, Input::Resumed) => {
                self.state = State::Watching;
                None
            }
            (State::Watching, Input::Ended(_) | Input::Resumed | Input::Unit(_))
            | (State::Asking, Input::Ended(_))
            | (State::Restarting { .. }, Input::Unit(_)) => None,
        }
    }

    /// Returns what the judge of units has to know.
    #[must_use]
    pub const fn mended(&self) -> Mended {
        let serves = match self.streak {
            Streak::Good | Streak::Slow { .. } => Some(true),
            Streak::Broken { .. } => Some(false),
            Streak::Unproven => None,
        };
        Mended { own_restarts: self.own_restarts, in_row: self.in_row, serves }
    }

    /// Returns whether the last answer was good, so that nothing is to be repaired.
    const fn is_well(&self) -> bool {
        matches!(self.streak, Streak::Good)
    }

    /// Forgets the answers: the probe is not made any more.
    pub fn forget_answers(&mut self) {
        self.streak = Streak::Unproven;
        self.good_since = None;
        if self.state == State::Asking {
            self.state = State::Watching;
        }
    }

    fn note_answer(&mut self, now: Instant, answer: Answer, policy: &Policy) {
        self.streak = self.streak.after(answer);
        if answer != Answer::Good {
            self.good_since = None;
            return;
        }
        let since = *self.good_since.get_or_insert(now);
        if now.since(since) >= policy.cooldown {
            self.in_row = 0;
        }
    }

    fn on_answer(&mut self, now: Instant, answer: Answer, policy: &Policy) -> Option<Output> {
        self.state = State::Watching;
        let (Streak::Broken { failures, last }, Answer::Failed(_)) = (self.streak, answer) else {
            return None;
        };
        let reason = |rule| Reason { failures, last, rule };
        if policy.mode == Mode::Off {
            return Some(Output::Hold(reason(Rule::Disabled)));
        }
        if let Some(until) = self.held_until.filter(|until| *until > now) {
            let reason = reason(Rule::cooldown(now, until, policy.cooldown));
            return Some(Output::WaitUntil { until, reason });
        }
        self.state = State::Asking;
        Some(Output::AskSystemd)
    }

    fn on_unit(
        &mut self,
        now: Instant,
        unit: Option<UnitState>,
        policy: &Policy,
    ) -> Option<Output> {
        self.state = State::Watching;
        let Streak::Broken { failures, last } = self.streak else {
            return None;
        };
        let reason = |rule| Reason { failures, last, rule };
        let Some(UnitState { active, has_job, last_start }) = unit else {
            return Some(Output::Hold(reason(Rule::SystemdSilent)));
        };
        if policy.mode == Mode::Off {
            return Some(Output::Hold(reason(Rule::Disabled)));
        }
        if has_job || !active.is_settled() {
            return Some(Output::Hold(reason(Rule::Moving { active, has_job })));
        }
        // A start in the future is a clock's fault, and as good as one now.
        let started = last_start.map(|start| start.min(now));
        let until = started.max(self.last_order).map(|start| start + policy.cooldown);
        if let Some(until) = until.filter(|until| *until > now) {
            self.held_until = Some(until);
            let reason = reason(Rule::cooldown(now, until, policy.cooldown));
            return Some(Output::WaitUntil { until, reason });
        }
        let rule = Rule::Restart {
            cooldown_s: policy.cooldown.as_secs(),
            in_row: self.in_row.saturating_add(1),
            since_start_s: started.map(|start| now.since(start).as_secs()),
        };
        Some(self.restart(now, policy, Reason { failures, last, rule }))
    }

    /// Every check has been passed.
    fn restart(&mut self, now: Instant, policy: &Policy, reason: Reason) -> Output {
        if policy.mode == Mode::DryRun {
            // Told as often as it would be done.
            self.held_until = Some(now + policy.cooldown);
            return Output::WouldRestart(reason);
        }
        self.last_order = Some(now);
        self.state = State::Restarting { since: now, reason };
        if self.in_row.saturating_add(1) < RESTARTS_MIN {
            Output::Restart(reason)
        } else {
            Output::Escalate(reason)
        }
    }

    fn on_ended(&mut self, ended: Ended, reason: Reason) -> Output {
        match ended {
            Ended::Done => {
                self.count_restart();
                Output::Restarted(reason)
            }
            Ended::Failed => {
                self.count_restart();
                Output::RestartFailed(reason)
            }
            Ended::Refused => {
                self.state = State::Watching;
                Output::RestartFailed(reason)
            }
        }
    }

    fn count_restart(&mut self) {
        self.state = State::Watching;
        self.own_restarts = self.own_restarts.saturating_add(1);
        self.in_row = self.in_row.saturating_add(1);
    }
}

impl Output {
    /// Returns why it is so.
    #[must_use]
    pub const fn reason(&self) -> Option<Reason> {
        match self {
            Self::AskSystemd => None,
            Self::Escalate(reason)
            | Self::Hold(reason)
            | Self::Restart(reason)
            | Self::RestartFailed(reason)
            | Self::Restarted(reason)
            | Self::WaitUntil { reason, .. }
            | Self::WouldRestart(reason) => Some(*reason),
        }
    }
}

impl UnitState {
    /// Returns what matters of a reading.
    #[must_use]
    pub const fn of(unit: &Unit<'_>) -> Self {
        Self { active: unit.active, has_job: unit.has_job, last_start: unit.last_start }
    }
}

/// How long the end of a restart may be outstanding before it counts as lost.
///
/// systemd's own limits for a stop and a start are 90 s each; the rest is for a busy machine.
pub const ENDED_WITHIN: Duration = Duration::from_secs(300);

#[cfg(test)]
mod tests;
