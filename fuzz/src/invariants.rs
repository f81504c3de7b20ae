//! The invariants that `Agent` promises, each under the name that its documentation gives.

use fettle_core::bounds::{OUTPUTS_KEPT, OUTPUTS_MAX};
use fettle_core::catalog::{CONDITIONS, ConditionType};
use fettle_core::node::agent::{Agent, Event, Input, Output, Outputs};
use fettle_core::node::rules::Finding;
use fettle_core::time::Instant;
use fettle_core::wire::kmsg::{Origin, Record};

/// A step, and what it did.
pub(crate) struct Done<'a> {
    /// When it was.
    pub(crate) now: Instant,
    /// What came out.
    pub(crate) outputs: &'a Outputs,
    /// The agent after it.
    pub(crate) after: &'a Agent,
}

impl Done<'_> {
    /// Asserts what holds after every step.
    pub(crate) fn check(&self) {
        self.wakeup_is_later();
        for output in self.outputs {
            if let Output::Event(Event::Findings(write)) = output {
                assert!(write.count > 0, "an event stands for at least one finding");
                shows_one_line(&write.newest);
            }
        }
    }

    /// The next wake-up is after the step, unless there is no room for more outputs.
    fn wakeup_is_later(&self) {
        let later = self.after.next_wakeup().is_none_or(|at| at > self.now);
        assert!(later || self.outputs.len() >= OUTPUTS_MAX - OUTPUTS_KEPT, "wakeup_is_later");
    }

    /// A record of user space, and one that was read before, do no more than time does, but to show
    /// that the log can be read.
    ///
    /// `idle` is the agent before the step.
    pub(crate) fn does_nothing(&self, mut idle: Box<Agent>, name: &str) {
        let want = idle.step(self.now, Input::Tick);
        assert_eq!(not_of_log(self.outputs), not_of_log(&want), "{name}");
        for row in CONDITIONS.iter().filter(|row| row.condition != ConditionType::AgentDegraded) {
            let (got, want) = (self.after.condition(row.condition), idle.condition(row.condition));
            assert_eq!(got, want, "{name}");
        }
    }
}

/// Returns the name of the invariant that forbids `input` to change anything, if there is one.
///
/// `is_again` says that the record was read before.
pub(crate) fn that_forbids(
    agent: &Agent,
    input: &Input<'_>,
    is_again: bool,
) -> Option<&'static str> {
    let Input::Record(bytes) = input else {
        return None;
    };
    let is_userspace = Record::parse(bytes).is_ok_and(|record| record.origin == Origin::Userspace);
    if is_again {
        Some("once")
    } else if is_userspace && !agent.settings().trust_userspace {
        Some("userspace_raises_nothing")
    } else {
        None
    }
}

/// Returns the outputs that say more than how well the log can be read.
fn not_of_log(outputs: &Outputs) -> Vec<&Output> {
    let is_of_log = |output: &&Output| {
        let degraded = ConditionType::AgentDegraded;
        matches!(output, Output::Lost { .. })
            || matches!(output, Output::Condition { condition, .. } if *condition == degraded)
    };
    outputs.iter().filter(|output| !is_of_log(output)).collect()
}

/// What a person sees of a finding is one line that holds no control character.
pub(crate) fn shows_one_line(finding: &Finding) {
    let shown = finding.to_string();
    assert!(!shown.chars().any(char::is_control), "{shown:?}");
}
