//! The invariants that `Agent` promises, each under the name that its documentation gives.

use fettle_core::bounds::OUTPUTS_MAX;
use fettle_core::catalog::CONDITIONS;
use fettle_core::node::agent::{Agent, Event, Input, Output, Outputs};
use fettle_core::node::rules::Finding;
use fettle_core::time::Instant;
use fettle_core::wire::kmsg::{Origin, Record};

/// Asserts what holds after a step that took `before` to `after`.
pub(crate) fn after_step(
    before: &Agent,
    after: &Agent,
    now: Instant,
    (input, outputs): (&Input<'_>, &Outputs),
) {
    wakeup_is_later(after, now, outputs);
    if let Input::Record(bytes) = input {
        userspace_raises_nothing(before, after, now, (bytes, outputs));
        once(after, now, bytes);
    }
    for output in outputs {
        if let Output::Event(Event::Findings(write)) = output {
            assert!(write.count > 0, "an event stands for at least one finding");
            shows_one_line(&write.newest);
        }
    }
}

/// The next wake-up is after the step, unless the outputs are full.
fn wakeup_is_later(after: &Agent, now: Instant, outputs: &Outputs) {
    let later = after.next_wakeup().is_none_or(|at| at > now);
    assert!(later || outputs.len() == OUTPUTS_MAX, "wakeup_is_later");
}

/// A record of user space does no more than time does.
fn userspace_raises_nothing(
    before: &Agent,
    after: &Agent,
    now: Instant,
    (bytes, outputs): (&[u8], &Outputs),
) {
    let is_untrusted = Record::parse(bytes).is_ok_and(|record| record.origin == Origin::Userspace);
    if !is_untrusted || before.settings().trust_userspace {
        return;
    }
    let mut idle = before.clone();
    let mut want = idle.step(now, Input::Tick);
    want.retain(|output| !matches!(output, Output::Lost { .. }));
    let mut got = outputs.clone();
    got.retain(|output| !matches!(output, Output::Lost { .. }));
    assert_eq!(got, want, "userspace_raises_nothing");
    for row in &CONDITIONS {
        let (got, want) = (after.condition(row.condition), idle.condition(row.condition));
        assert_eq!(got, want, "userspace_raises_nothing");
    }
}

/// The same record again does no more than time does.
fn once(after: &Agent, now: Instant, bytes: &[u8]) {
    let (mut again, mut idle) = (after.clone(), after.clone());
    let got = again.step(now, Input::Record(bytes));
    assert_eq!(got, idle.step(now, Input::Tick), "once");
}

/// What a person sees of a finding is one line that holds no control character.
pub(crate) fn shows_one_line(finding: &Finding) {
    let shown = finding.to_string();
    assert!(!shown.chars().any(char::is_control), "{shown:?}");
}
