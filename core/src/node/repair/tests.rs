//! Repair, by its transitions, by the field cases, and by its invariants.

#![allow(clippy::disallowed_methods, reason = "tests may panic")]

use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

use proptest::prelude::*;

use super::*;

#[test]
fn every_state_takes_every_input() {
    let mut table = String::new();
    for (name, before) in states() {
        for (input_name, input) in inputs() {
            let mut repair = before.clone();
            let output = repair.step(s(1000), input, &ACT);
            let own = repair.own_restarts - before.own_restarts;
            let counted = if own > 0 { " +1" } else { "" };
            let (state, said) = (word(&format!("{:?}", repair.state)), short(output));
            let row = format!("{name:<10} {input_name:<9} {state:<10} {said}{counted}");
            table += &format!("{}\n", row.trim_end());
        }
    }
    assert_eq!(table, TRANSITIONS, "\n{table}");
}

#[test]
fn r03_a_unit_that_needs_long_to_start_is_not_killed_at_every_probe() {
    let mut unit = Rig::new(Target::Kubelet);
    unit.state =
        UnitState { active: ActiveState::Activating, has_job: true, last_start: Some(s(0)) };
    assert_eq!(unit.probe(10, REFUSED), "hold Moving");
    assert_eq!(unit.probe(20, REFUSED), "hold Moving");
    unit.state = UnitState { active: ActiveState::Active, has_job: false, last_start: Some(s(0)) };
    assert_eq!(unit.probe(30, REFUSED), "wait until 60 s");
    assert_eq!(unit.probe(35, Answer::Good), "");
    assert_eq!(unit.probe(59, REFUSED), "wait until 60 s");
    assert_eq!(unit.probe(60, REFUSED), "restart");
    assert_eq!(unit.repair.own_restarts, 1);
}

#[test]
fn r05_one_slow_answer_does_not_restart_the_kubelet_and_the_third_in_a_row_does() {
    let mut unit = Rig::new(Target::Kubelet);
    for (at_s, answer) in [(100, Answer::Good), (110, LATE), (120, Answer::Good), (130, LATE)] {
        assert_eq!(unit.probe(at_s, answer), "");
    }
    assert_eq!(unit.probe(140, LATE), "");
    assert_eq!(unit.probe(150, LATE), "restart");
    assert_eq!(
        unit.reason(),
        "it did not answer within 5 s, failure 3 in a row; restart 1 in a row, 150 s after its \
         last start (cooldown 60 s)"
    );
    assert_eq!(unit.probe(500, REFUSED), "restart", "a refusal counts at once");
    let said = "it refused the connection or broke it off, failure 4 in a row; restart 2 in a row";
    assert!(unit.reason().starts_with(said), "{}", unit.reason());
}

#[test]
fn r06_a_slow_runtime_is_restarted_at_most_once_in_its_cooldown() {
    let mut unit = Rig::new(Target::Runtime);
    let late = Answer::Failed(Failure::TimedOut { deadline_ms: 15_000 });
    for (at_s, answer) in [(200, Answer::Good), (215, late), (230, Answer::Good), (245, late)] {
        assert_eq!(unit.probe(at_s, answer), "");
    }
    assert_eq!(unit.probe(260, late), "");
    assert_eq!(unit.probe(275, late), "restart");
    assert!(unit.reason().starts_with("it did not answer within 15 s"), "{}", unit.reason());
    assert_eq!(unit.probe(290, late), "wait until 395 s");
    assert_eq!(unit.probe(394, late), "wait until 395 s");
    assert_eq!(unit.probe(395, late), "restart");
}

#[test]
fn r01_own_restarts_are_counted_and_the_third_in_a_row_escalates() {
    let mut unit = Rig::new(Target::Kubelet);
    unit.state.last_start = None;
    let mut said = Vec::new();
    for at_s in (10..=150).step_by(10) {
        let answer = if [10, 80, 150].contains(&at_s) { REFUSED } else { Answer::Good };
        said.push(unit.probe(at_s, answer));
    }
    said.retain(|said| !said.is_empty());
    assert_eq!(said, ["restart", "restart", "escalate"]);
    let mended = unit.repair.mended();
    assert_eq!((mended.own_restarts, mended.in_row), (3, 3));
    // 60 s of good answers: it helped after all.
    for at_s in (160..=220).step_by(10) {
        assert_eq!(unit.probe(at_s, Answer::Good), "");
    }
    let mended = unit.repair.mended();
    assert_eq!((mended.own_restarts, mended.in_row, mended.serves), (3, 0, Some(true)));
}

#[test]
fn a_start_by_somebody_else_begins_the_cooldown_and_is_not_counted() {
    let mut unit = Rig::new(Target::Kubelet);
    unit.state.last_start = Some(s(490));
    assert_eq!(unit.probe(500, REFUSED), "wait until 550 s");
    unit.state.last_start = Some(s(540));
    assert_eq!(unit.probe(549, REFUSED), "wait until 550 s");
    assert_eq!(unit.probe(550, REFUSED), "wait until 600 s");
    unit.state.last_start = Some(s(9_999));
    assert_eq!(unit.probe(600, REFUSED), "wait until 660 s", "a start to come counts as one now");
    assert_eq!(unit.repair.own_restarts, 0);
}

#[test]
fn a_dry_run_says_what_it_would_do_as_often_as_it_would() {
    let mut unit = Rig::new(Target::Kubelet);
    unit.policy.mode = Mode::DryRun;
    let told = [500, 510, 559, 560].map(|at_s| unit.probe(at_s, REFUSED));
    assert_eq!(told, ["would", "wait until 560 s", "wait until 560 s", "would"]);
    assert_eq!((unit.repair.own_restarts, unit.repair.in_row), (0, 0));
    unit.policy.mode = Mode::Off;
    assert_eq!(unit.probe(570, REFUSED), "hold Disabled");
}

#[test]
fn a_restart_that_did_not_help_or_was_refused_waits_for_the_cooldown() {
    let mut unit = Rig::new(Target::Kubelet);
    for (ended, own) in [(Ended::Failed, 1), (Ended::Refused, 1)] {
        unit.ended = Some(ended);
        let at_s = unit.at_s.max(500) + 100;
        assert_eq!(unit.probe(at_s, REFUSED), "failed");
        let until = format!("wait until {} s", at_s + 60);
        assert_eq!(unit.probe(at_s + 10, REFUSED), until);
        assert_eq!(unit.repair.own_restarts, own);
    }
}

#[test]
fn a_restart_whose_end_is_lost_counts_as_done() {
    let mut unit = Rig::new(Target::Kubelet);
    unit.ended = None;
    assert_eq!(unit.probe(500, REFUSED), "restart");
    assert_eq!(unit.probe(799, REFUSED), "");
    assert_eq!(unit.repair.own_restarts, 0);
    assert_eq!(unit.probe(800, REFUSED), "restart");
    assert_eq!(unit.repair.own_restarts, 1);
    assert_eq!(unit.repair.step(s(801), Input::Resumed, &unit.policy), None);
    assert_eq!(unit.repair.own_restarts, 2);
    let late = Input::Ended(Ended::Done);
    assert_eq!(unit.repair.step(s(802), late, &unit.policy), None);
    assert_eq!(unit.repair.own_restarts, 2, "told once");
}

#[test]
fn nothing_is_done_when_nobody_can_tell() {
    let mut repair = Repair::default();
    let step = |repair: &mut Repair, input| short(repair.step(s(500), input, &ACT));
    assert_eq!(step(&mut repair, Input::Answer(Answer::Unknown)), "");
    assert_eq!(step(&mut repair, Input::Answer(REFUSED)), "ask");
    assert_eq!(step(&mut repair, Input::Unit(None)), "hold SystemdSilent");
    assert_eq!(step(&mut repair, Input::Answer(REFUSED)), "ask");
    assert_eq!(step(&mut repair, Input::Answer(Answer::Unknown)), "");
    assert_eq!(step(&mut repair, Input::Unit(Some(SETTLED))), "", "the last answer is unknown");
    assert_eq!(repair.mended().serves, Some(false));
    repair.forget_answers();
    assert_eq!(repair.mended().serves, None);
}

#[test]
fn reasons_are_sentences_with_their_figures() {
    let told = |rule| Reason { failures: 2, last: Failure::Refused, rule }.to_string();
    let active = ActiveState::Deactivating;
    for (rule, want) in [
        (Rule::Cooldown { cooldown_s: 60, left_s: 7 }, "left alone for 7 s more: 60 s from its"),
        (Rule::Disabled, "no restart: repair.enabled is false"),
        (Rule::Moving { active, has_job: false }, "no restart while the unit is deactivating"),
        (Rule::Moving { active, has_job: true }, "a job for the unit, which is deactivating"),
        (
            Rule::Restart { cooldown_s: 120, in_row: 2, since_start_s: None },
            "restart 2 in a row, no start of it is known (cooldown 120 s)",
        ),
        (Rule::SystemdSilent, "systemd does not say how the unit is"),
    ] {
        assert!(told(rule).contains(want), "{}", told(rule));
        assert!(told(rule).starts_with("it refused the connection or broke it off, failure 2"));
    }
}

proptest! {
    #[test]
    fn invariants_hold_for_any_history(steps: Vec<(u8, u8)>, mode in 0..8_u8) {
        let policy = Policy { mode: [Mode::Off, Mode::DryRun].get(usize::from(mode)).copied()
            .unwrap_or(Mode::Act), ..ACT };
        let mut world = World::default();
        for (gap, what) in steps {
            world.at_s += u64::from(gap % 32);
            world.step(what, &policy)?;
        }
    }
}

/// What the invariants are about, followed apart from the machine.
#[derive(Default)]
struct World {
    repair: Repair,
    at_s: u64,
    /// Whether the last answer failed.
    failed: bool,
    orders: Vec<u64>,
    /// When the order was that has not ended.
    running: Option<u64>,
}

impl World {
    fn step(&mut self, what: u8, policy: &Policy) -> Result<(), TestCaseError> {
        let unit = unit(what, self.at_s);
        let input = match what % 8 {
            0..=2 => Input::Answer(REFUSED),
            3 => Input::Answer(
                [Answer::Good, LATE, Answer::Unknown, REFUSED][usize::from(what / 64)],
            ),
            4 | 5 => Input::Unit(unit),
            6 => Input::Ended(
                [Ended::Done, Ended::Failed, Ended::Refused][usize::from(what / 8 % 3)],
            ),
            _ => Input::Resumed,
        };
        if let Input::Answer(answer) = input {
            self.failed = matches!(answer, Answer::Failed(_));
        }
        if matches!(input, Input::Ended(_) | Input::Resumed) {
            self.running = None;
        }
        let output = self.repair.step(s(self.at_s), input, policy);
        if let Some(Output::Restart(_) | Output::Escalate(_)) = output {
            self.on_restart(input, policy)?;
        }
        Ok(())
    }

    fn on_restart(&mut self, input: Input, policy: &Policy) -> Result<(), TestCaseError> {
        let (now, cooldown) = (self.at_s, policy.cooldown.as_secs());
        prop_assert_eq!(policy.mode, Mode::Act, "off_is_off");
        prop_assert!(self.failed, "known");
        let Input::Unit(Some(unit)) = input else { panic!("known: {input:?}") };
        prop_assert!(unit.active.is_settled() && !unit.has_job, "settled");
        let started = unit.last_start.map(|start| start.millis() / 1000);
        for start in started.iter().chain(&self.orders) {
            prop_assert!(now - start >= cooldown, "cooldown");
        }
        let since = |order: &u64| now - order < ENDED_WITHIN.as_secs();
        prop_assert!(!self.running.as_ref().is_some_and(since), "one_at_a_time");
        self.orders.push(now);
        self.running = Some(now);
        let last_hour = self.orders.iter().filter(|order| now - **order < 3600).count();
        prop_assert!(u64::try_from(last_hour).unwrap() <= 3600 / cooldown, "hourly_max");
        Ok(())
    }
}

fn unit(what: u8, at_s: u64) -> Option<UnitState> {
    let active = match what / 8 % 8 {
        0 => return None,
        1 => ActiveState::Activating,
        2 => ActiveState::Reloading,
        3 => ActiveState::Failed,
        _ => ActiveState::Active,
    };
    let ago = u64::from(what / 64) * 50;
    Some(UnitState {
        active,
        has_job: what % 8 == 5,
        last_start: Some(s(at_s.saturating_sub(ago))),
    })
}

/// A probe, systemd and the agent's loop around one repair.
struct Rig {
    repair: Repair,
    policy: Policy,
    state: UnitState,
    /// How restarts end; `None` where nobody says.
    ended: Option<Ended>,
    at_s: u64,
    reason: Option<Reason>,
}

impl Rig {
    fn new(target: Target) -> Self {
        let policy = Policy { cooldown: target.cooldown(), mode: Mode::Act };
        let (repair, ended) = (Repair::default(), Some(Ended::Done));
        Self { repair, policy, state: SETTLED, ended, at_s: 0, reason: None }
    }

    /// Hands over an answer, and does what is asked for.
    fn probe(&mut self, at_s: u64, answer: Answer) -> String {
        self.at_s = at_s;
        let mut output = self.repair.step(s(at_s), Input::Answer(answer), &self.policy);
        if output == Some(Output::AskSystemd) {
            output = self.repair.step(s(at_s), Input::Unit(Some(self.state)), &self.policy);
        }
        let said = short(output);
        if let Some(Output::Restart(reason) | Output::Escalate(reason)) = output {
            self.reason = Some(reason);
            if let Some(ended) = self.ended {
                let told = self.repair.step(s(at_s), Input::Ended(ended), &self.policy);
                if ended == Ended::Done {
                    self.state.last_start = Some(s(at_s));
                    return said;
                }
                return short(told);
            }
        }
        said
    }

    fn reason(&self) -> String {
        self.reason.unwrap().to_string()
    }
}

fn short(output: Option<Output>) -> String {
    match output {
        None => String::new(),
        Some(Output::AskSystemd) => "ask".to_string(),
        Some(Output::Escalate(_)) => "escalate".to_string(),
        Some(Output::Hold(reason)) => format!("hold {}", word(&format!("{:?}", reason.rule))),
        Some(Output::Restart(_)) => "restart".to_string(),
        Some(Output::RestartFailed(_)) => "failed".to_string(),
        Some(Output::Restarted(_)) => "restarted".to_string(),
        Some(Output::WaitUntil { until, .. }) => format!("wait until {} s", until.millis() / 1000),
        Some(Output::WouldRestart(_)) => "would".to_string(),
    }
}

fn word(text: &str) -> String {
    text.split(' ').next().unwrap_or_default().to_string()
}

fn states() -> [(&'static str, Repair); 5] {
    let slow = Repair { streak: Streak::Slow { timeouts: 1 }, ..Repair::default() };
    let streak = Streak::Broken { failures: 1, last: Failure::Refused };
    let broken = Repair { streak, ..Repair::default() };
    let rule = Rule::Restart { cooldown_s: 60, in_row: 1, since_start_s: None };
    let reason = Reason { failures: 1, last: Failure::Refused, rule };
    let restarting = |at_s| State::Restarting { since: s(at_s), reason };
    [
        ("Watching", Repair::default()),
        ("..slow", slow),
        ("Asking", Repair { state: State::Asking, ..broken.clone() }),
        ("Restarting", Repair { state: restarting(999), ..broken.clone() }),
        ("..lost", Repair { state: restarting(700), ..broken }),
    ]
}

fn inputs() -> [(&'static str, Input); 10] {
    let job = UnitState { has_job: true, ..SETTLED };
    [
        ("good", Input::Answer(Answer::Good)),
        ("late", Input::Answer(LATE)),
        ("refused", Input::Answer(REFUSED)),
        ("unknown", Input::Answer(Answer::Unknown)),
        ("settled", Input::Unit(Some(SETTLED))),
        ("job", Input::Unit(Some(job))),
        ("silent", Input::Unit(None)),
        ("done", Input::Ended(Ended::Done)),
        ("no order", Input::Ended(Ended::Refused)),
        ("resumed", Input::Resumed),
    ]
}

const fn s(seconds: u64) -> Instant {
    Instant::from_millis(seconds * 1000)
}

const REFUSED: Answer = Answer::Failed(Failure::Refused);
const LATE: Answer = Answer::Failed(Failure::TimedOut { deadline_ms: 5_000 });
const ACT: Policy = Policy { cooldown: Target::Kubelet.cooldown(), mode: Mode::Act };
const SETTLED: UnitState =
    UnitState { active: ActiveState::Active, has_job: false, last_start: Some(s(0)) };

/// State, input, the state after it, what is to be done, and whether a restart was counted.
const TRANSITIONS: &str = include_str!("transitions.txt");
