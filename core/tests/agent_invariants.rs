//! The invariants that `Agent` promises hold for any history.

mod history;

use std::collections::BTreeMap;

use fettle_core::bounds::{OUTPUTS_KEPT, OUTPUTS_MAX};
use fettle_core::catalog::{CONDITIONS, ConditionType};
use fettle_core::node::agent::{Agent, Input, Output, Outputs, Settings};
use fettle_core::node::repair::{Mode, Target};
use fettle_core::time::Instant;
use fettle_core::wire::kmsg::{Origin, Record};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use history::{histories, service_histories};

proptest! {
    #[test]
    fn invariants_hold_for_any_history(history in histories()) {
        let mut agent = Box::new(Agent::new(Settings::default()));
        let mut restarts = BTreeMap::new();
        for happening in &history {
            let (now, before) = (happening.now, agent.clone());
            let outputs = agent.step(now, happening.input());
            wakeup_is_later(&agent, now, &outputs)?;
            mends_seldom(&agent, now, &outputs, &mut restarts)?;
            if let Input::Record(bytes) = happening.input() {
                userspace_raises_nothing(before, &agent, now, (bytes, &outputs))?;
                once([agent.clone(), agent.clone()], now, bytes)?;
            }
        }
    }

    #[test]
    fn invariants_hold_for_any_history_of_services(history in service_histories()) {
        let mut agent = Box::new(Agent::new(Settings::default()));
        let mut restarts = BTreeMap::new();
        for happening in &history {
            let outputs = agent.step(happening.now, happening.input());
            wakeup_is_later(&agent, happening.now, &outputs)?;
            mends_seldom(&agent, happening.now, &outputs, &mut restarts)?;
        }
    }
}

fn wakeup_is_later(after: &Agent, now: Instant, outputs: &Outputs) -> TestCaseResult {
    let later = after.next_wakeup().is_none_or(|at| at > now);
    prop_assert!(later || outputs.len() >= OUTPUTS_MAX - OUTPUTS_KEPT, "wakeup_is_later");
    Ok(())
}

fn mends_seldom(
    agent: &Agent,
    now: Instant,
    outputs: &Outputs,
    restarts: &mut BTreeMap<String, Instant>,
) -> TestCaseResult {
    for output in outputs {
        let Output::RestartUnit { unit, .. } = output else { continue };
        let settings = &agent.settings().repair;
        let target = settings.target(unit.as_str());
        prop_assert_eq!(settings.mode, Mode::Act, "mends_seldom");
        if let Some(last) = restarts.insert(unit.to_string(), now) {
            let cooldown = target.map(Target::cooldown);
            prop_assert!(cooldown.is_some_and(|rest| now.since(last) >= rest), "mends_seldom");
        }
    }
    Ok(())
}

/// A record of user space does no more than time does, but to show that the log can be read.
fn userspace_raises_nothing(
    mut idle: Box<Agent>,
    after: &Agent,
    now: Instant,
    (bytes, outputs): (&[u8], &Outputs),
) -> TestCaseResult {
    let is_userspace = Record::parse(bytes).is_ok_and(|record| record.origin == Origin::Userspace);
    if !is_userspace || idle.settings().trust_userspace {
        return Ok(());
    }
    let want = idle.step(now, Input::Tick);
    prop_assert_eq!(not_of_log(outputs), not_of_log(&want), "userspace_raises_nothing");
    for row in CONDITIONS.iter().filter(|row| row.condition != ConditionType::AgentDegraded) {
        let (got, want) = (after.condition(row.condition), idle.condition(row.condition));
        prop_assert_eq!(got, want, "userspace_raises_nothing");
    }
    Ok(())
}

/// The same record again does no more than time does.
fn once([mut again, mut idle]: [Box<Agent>; 2], now: Instant, bytes: &[u8]) -> TestCaseResult {
    let got = again.step(now, Input::Record(bytes));
    prop_assert_eq!(got, idle.step(now, Input::Tick), "once");
    Ok(())
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
