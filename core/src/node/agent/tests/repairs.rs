//! The agent and the units: what it asks for, orders and tells.

use super::*;
use crate::node::judge::unit::tests::TUNNEL;
use crate::node::reading::{ActiveState, Cni, CniHealth, KubeletHealth, RuntimeHealth, UnitDuty};
use crate::node::repair::{Ended, Mode, Target};

#[test]
fn r01_the_agents_own_restarts_lead_to_service_not_recovering() {
    let mut node = Node::probing(Mode::Act);
    assert_eq!(node.kubelet(KubeletHealth::Ok), ["KubeletUnhealthy=False"]);
    assert_eq!(node.units(&[KUBELET]), ["ServiceNotRecovering=False", "NodeServiceDown=False"]);
    for nth in 1..=3 {
        node.wait(70_000);
        assert_eq!(node.failing(), ["restart kubelet.service"], "{nth}");
        node.ended(Ended::Done);
        assert_eq!(node.agent.mended("kubelet.service").own_restarts, nth);
        // systemd's counter says 0 all the time.
        let said = node.units(&[KUBELET]);
        let escalates = said.contains(&"ServiceNotRecovering=True".to_string());
        assert_eq!(escalates, nth == 3, "{said:?}");
        node.wait(10_000);
        node.kubelet(KubeletHealth::Ok);
    }
    assert_eq!(node.agent.event_total(EventReason::UnitRestarted), 3);
    let message = node.message(ConditionType::ServiceNotRecovering);
    assert!(message.starts_with("kubelet.service: was restarted 3 times by"), "{message}");
}

#[test]
fn r03_no_restart_while_the_unit_starts() {
    let mut node = Node::probing(Mode::Act);
    node.unit = Unit { active: ActiveState::Activating, sub: "start", ..KUBELET };
    node.wait(70_000);
    assert_eq!(node.failing(), NOTHING);
    node.wait(10_000);
    node.unit = KUBELET;
    assert_eq!(node.failing(), ["restart kubelet.service"]);
}

#[test]
fn r05_one_slow_answer_is_told_and_restarts_nothing() {
    let mut node = Node::probing(Mode::Act);
    node.wait(70_000);
    let said = node.kubelet(KubeletHealth::TimedOut);
    assert_eq!(said, ["KubeletUnhealthy=Unknown"], "N03: not proven well");
    assert_eq!(node.kubelet(KubeletHealth::Ok), ["KubeletUnhealthy=False"]);
    assert_eq!(node.kubelet(KubeletHealth::TimedOut), ["KubeletUnhealthy explained"]);
    assert_eq!(
        node.message(ConditionType::KubeletUnhealthy),
        "nothing counts yet: kubelet: did not answer within 5 s, 1 of 3 in a row that are a fault"
    );
    assert_eq!(node.kubelet(KubeletHealth::TimedOut), ["KubeletUnhealthy explained"]);
    assert_eq!(node.units(&[KUBELET])[..1], ["ServiceNotRecovering=False"]);
    assert_eq!(node.kubelet(KubeletHealth::TimedOut), ["KubeletUnhealthy=True"]);
    assert_eq!(node.units(&[KUBELET]), ["restart kubelet.service"]);
}

#[test]
fn systemd_is_asked_when_the_failures_are_enough() {
    let mut node = Node::probing(Mode::Act);
    let kind = ReadingKind::KubeletHealthz;
    let reading = |health| Input::Reading { kind, reading: Reading::KubeletHealth(health) };
    assert_eq!(node.step(reading(KubeletHealth::TimedOut)), NOTHING);
    assert_eq!(node.step(reading(KubeletHealth::Refused)), ["check Units"]);
    assert_eq!(node.step(reading(KubeletHealth::Refused)), NOTHING, "a run goes on");
}

#[test]
fn the_runtime_is_repaired_by_its_own_probe() {
    let mut node = Node::probing(Mode::Act);
    node.wait(130_000);
    let refused = Reading::RuntimeHealth(RuntimeHealth::Refused);
    let said = node.read(ReadingKind::Cri, &[refused]);
    assert_eq!(said, ["ContainerRuntimeUnhealthy=True"]);
    let unit = Unit { name: "containerd.service", ..KUBELET };
    assert_eq!(node.units(&[unit])[..1], ["restart containerd.service"]);
    assert_eq!(node.agent.mended("containerd.service").serves, Some(false));
    assert_eq!(node.agent.mended("sshd.service"), Default::default());
}

#[test]
fn nothing_is_restarted_when_systemd_cannot_be_asked() {
    for outcome in [Outcome::Failed { why: Text::new() }, Outcome::NotApplicable] {
        let mut node = Node::probing(Mode::Act);
        node.wait(70_000);
        node.kubelet(KubeletHealth::Refused);
        let kind = ReadingKind::Units;
        node.step(Input::Reading { kind, reading: Reading::Unit(KUBELET) });
        let said = node.step(Input::CheckEnded { kind, outcome });
        assert!(!said.iter().any(|said| said.starts_with("restart")), "{said:?}");
    }
    let mut settings = Settings::default();
    settings.schedule.probes[ReadingKind::KubeletHealthz.index()] = true;
    let mut node = Node::with(settings.clone());
    node.step(Input::Started(settings));
    node.wait(70_000);
    assert_eq!(node.kubelet(KubeletHealth::Refused), ["KubeletUnhealthy=True"]);
}

#[test]
fn a_dry_run_and_no_repair_restart_nothing() {
    for (mode, told) in [(Mode::DryRun, 1), (Mode::Off, 0)] {
        let mut node = Node::probing(mode);
        node.wait(70_000);
        for _ in 0..6 {
            let said = node.failing();
            assert!(!said.iter().any(|said| said.starts_with("restart")), "{said:?}");
            node.wait(9_000);
        }
        assert_eq!(node.agent.event_total(EventReason::UnitRestartSkipped), told);
        assert_eq!(node.agent.mended("kubelet.service").own_restarts, 0);
    }
}

#[test]
fn h19_a_cni_agent_that_restarts_is_told_and_raises_nothing() {
    let mut node = Node::probing(Mode::Act);
    let gone = CniHealth::Unreachable { why: "no such socket" };
    for (health, said, message) in [
        (CniHealth::Ok, &["CNIUnhealthy=False"][..], "nothing is wrong"),
        (
            gone,
            &["CNIUnhealthy explained"],
            "nothing counts yet: CNI agent: does not answer: no such socket",
        ),
        (CniHealth::Ok, &["CNIUnhealthy explained"], "nothing is wrong"),
        (CniHealth::Ok, &[], "nothing is wrong"),
    ] {
        let reading = Reading::Cni(Cni { health, last_start: None });
        assert_eq!(node.read(ReadingKind::Cni, &[reading]), said);
        assert_eq!(node.message(ConditionType::CNIUnhealthy), message);
        node.wait(30_000);
    }
    let reading = Reading::Cni(Cni { health: gone, last_start: None });
    node.read(ReadingKind::Cni, &[reading]);
    node.wait(300_000);
    assert_eq!(node.read(ReadingKind::Cni, &[reading]), ["CNIUnhealthy=True"]);
}

#[test]
fn units_are_read_for_repair_even_where_no_condition_of_theirs_is_wanted() {
    let mut node = Node::probing(Mode::Act);
    let mut settings = node.agent.settings().clone();
    for condition in [ConditionType::ServiceNotRecovering, ConditionType::NodeServiceDown] {
        settings.schedule.enabled[condition.index()] = false;
    }
    node.step(Input::Configured(settings));
    node.wait(70_000);
    assert_eq!(node.failing(), ["restart kubelet.service"]);
    assert_eq!(node.status(ConditionType::ServiceNotRecovering), None);
}

#[test]
fn a_restart_that_fails_is_an_event_with_its_reason() {
    let mut node = Node::probing(Mode::Act);
    node.wait(70_000);
    assert_eq!(node.failing(), ["restart kubelet.service"]);
    let outputs = node.agent.step(node.now, refused());
    let events = outputs.iter().filter_map(|output| {
        let Output::Event(Event::Findings(write)) = output else { return None };
        Some(write.message().to_string())
    });
    assert_eq!(
        events.collect::<Vec<_>>(),
        ["kubelet.service could not be restarted: no such unit; ordered because it refused the \
         connection or broke it off, failure 1 in a row; restart 1 in a row, 70 s after its \
         last start (cooldown 60 s)"]
    );
    assert_eq!(node.step(refused()), NOTHING, "nobody waits for it");
}

#[test]
fn own_restarts_outlive_the_process() {
    let mut node = Node::probing(Mode::Act);
    node.wait(70_000);
    assert_eq!(node.failing(), ["restart kubelet.service"]);
    let settings = node.agent.settings().clone();
    node.step(Input::Started(settings));
    assert_eq!(node.agent.mended("kubelet.service").own_restarts, 1, "may have been done");
    node.wait(10_000);
    assert_eq!(node.failing(), NOTHING, "the cooldown goes on");
    let reason = |node: &Node| node.agent.repairs().reason(Target::Kubelet).map(|r| r.to_string());
    assert_eq!(
        reason(&node).unwrap(),
        "it refused the connection or broke it off, failure 2 in a row; left alone for 50 s more: \
         60 s from its last start"
    );
    node.kubelet(KubeletHealth::Ok);
    assert_eq!(reason(&node), None, "all is well");
    node.wait(60_000);
    assert_eq!(node.failing(), ["restart kubelet.service"]);
}

#[test]
fn a_unit_that_is_gone_is_down_if_it_operates_the_platform() {
    let mut node = Node::probing(Mode::Act);
    node.units(&[TUNNEL, KUBELET]);
    assert_eq!(node.units(&[]), ["NodeServiceDown=True"]);
    assert_eq!(node.status(ConditionType::ServiceNotRecovering), Some(Status::False));
}

#[test]
fn a_probe_that_is_not_made_any_more_says_nothing() {
    let mut node = Node::probing(Mode::Act);
    node.kubelet(KubeletHealth::Refused);
    assert_eq!(node.agent.mended("kubelet.service").serves, Some(false));
    let mut settings = node.agent.settings().clone();
    settings.schedule.enabled[ConditionType::KubeletUnhealthy.index()] = false;
    node.step(Input::Configured(settings));
    assert_eq!(node.agent.mended("kubelet.service").serves, None);
}

impl Node {
    /// An agent whose shell has the probes of units, kubelet and runtime; none of them has run.
    fn probing(mode: Mode) -> Self {
        let mut settings = Settings::default();
        settings.repair.mode = mode;
        let kinds = [ReadingKind::Units, ReadingKind::KubeletHealthz, ReadingKind::Cri];
        for kind in kinds {
            settings.schedule.probes[kind.index()] = true;
        }
        let mut node = Self::with(settings.clone());
        node.step(Input::LogCaughtUp);
        node.step(Input::Started(settings));
        for kind in kinds {
            node.step(Input::CheckEnded { kind, outcome: Outcome::NotApplicable });
        }
        node
    }

    /// One run of a check; what other checks lead to is left out.
    fn read(&mut self, kind: ReadingKind, readings: &[Reading<'_>]) -> Vec<String> {
        let mut said = Vec::new();
        for reading in readings {
            said.extend(self.step(Input::Reading { kind, reading: *reading }));
        }
        said.extend(self.step(Input::CheckEnded { kind, outcome: Outcome::Complete }));
        said.retain(|said| !said.starts_with("check") && !said.starts_with("AgentDegraded"));
        said
    }

    fn kubelet(&mut self, health: KubeletHealth) -> Vec<String> {
        self.read(ReadingKind::KubeletHealthz, &[Reading::KubeletHealth(health)])
    }

    fn units(&mut self, units: &[Unit<'static>]) -> Vec<String> {
        let readings: Vec<_> = units.iter().copied().map(Reading::Unit).collect();
        self.read(ReadingKind::Units, &readings)
    }

    /// The kubelet refuses, and systemd is asked; returns what is ordered.
    fn failing(&mut self) -> Vec<String> {
        let unit = self.unit;
        let mut said = self.kubelet(KubeletHealth::Refused);
        said.extend(self.units(&[unit]));
        said.retain(|said| said.starts_with("restart"));
        said
    }

    fn ended(&mut self, ended: Ended) -> Vec<String> {
        let result = RestartResult { ended, why: Text::new() };
        self.step(Input::RestartEnded { result, unit: Text::from_bytes(b"kubelet.service") })
    }
}

fn refused() -> Input<'static> {
    let why = Text::from_bytes(b"no such unit");
    let result = RestartResult { ended: Ended::Refused, why };
    Input::RestartEnded { result, unit: Text::from_bytes(b"kubelet.service") }
}

pub(super) const KUBELET: Unit<'static> = Unit {
    name: "kubelet.service",
    duty: UnitDuty { critical: true, operability: false },
    ..TUNNEL
};

const NOTHING: [&str; 0] = [];
