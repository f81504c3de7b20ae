//! The units that are repaired, and the probes that they are repaired by.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Input, Output, Policy, Reason, Repair, UnitState};
use crate::bounds::UNIT_NAME_MAX;
use crate::catalog::ReadingKind;
use crate::node::judge::recovery::Mended;
use crate::node::reading::Unit;
use crate::text::Text;
use crate::time::Instant;

/// The name of a unit that may be restarted.
pub type UnitName = Text<UNIT_NAME_MAX>;

/// What is repaired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    /// The kubelet.
    Kubelet,
    /// The container runtime.
    Runtime,
}

/// Whether restarts are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// They are.
    Act,
    /// They are only told.
    DryRun,
    /// They are not even told.
    Off,
}

/// What a person may set of the repair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairSettings {
    /// Whether restarts are ordered.
    pub mode: Mode,
    /// The unit of each target, in the order of [`Target::ALL`].
    pub units: [UnitName; Target::COUNT],
}

/// The repair of every target.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repairs {
    kubelet: OfTarget,
    runtime: OfTarget,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct OfTarget {
    /// Why it was last restarted or left alone, until it is well.
    reason: Option<Reason>,
    repair: Repair,
    /// What the run of units that goes on has read of it.
    unit: Option<UnitState>,
}

impl Target {
    /// Every target, in the order of the enum.
    pub const ALL: [Self; Self::COUNT] = [Self::Kubelet, Self::Runtime];

    /// How many there are.
    pub const COUNT: usize = 2;

    /// Returns the probe that shows whether it serves.
    #[must_use]
    pub const fn probe(self) -> ReadingKind {
        match self {
            Self::Kubelet => ReadingKind::KubeletHealthz,
            Self::Runtime => ReadingKind::Cri,
        }
    }

    /// Returns the target that `kind` is the probe of.
    #[must_use]
    pub fn probed_by(kind: ReadingKind) -> Option<Self> {
        Self::ALL.into_iter().find(|target| target.probe() == kind)
    }

    /// Returns how long after its last start it is left alone (seed, "In-place repair").
    #[must_use]
    pub const fn cooldown(self) -> Duration {
        match self {
            Self::Kubelet => Duration::from_secs(60),
            Self::Runtime => Duration::from_secs(120),
        }
    }
}

impl RepairSettings {
    /// Returns the unit of a target.
    #[must_use]
    pub const fn unit(&self, target: Target) -> &UnitName {
        let [kubelet, runtime] = &self.units;
        match target {
            Target::Kubelet => kubelet,
            Target::Runtime => runtime,
        }
    }

    /// Returns the target whose unit has this name.
    #[must_use]
    pub fn target(&self, unit: &str) -> Option<Target> {
        Target::ALL.into_iter().find(|target| self.unit(*target).as_str() == unit)
    }

    fn policy(&self, target: Target) -> Policy {
        Policy { cooldown: target.cooldown(), mode: self.mode }
    }
}

impl Default for RepairSettings {
    fn default() -> Self {
        let units = [&b"kubelet.service"[..], b"containerd.service"].map(Text::from_bytes);
        Self { mode: Mode::Act, units }
    }
}

impl Repairs {
    /// Applies one input to the repair of `target`; see [`Repair::step`].
    pub fn step(
        &mut self,
        now: Instant,
        (target, input): (Target, Input),
        settings: &RepairSettings,
    ) -> Option<Output> {
        let of_target = self.of_mut(target);
        let output = of_target.repair.step(now, input, &settings.policy(target));
        let told = output.as_ref().and_then(Output::reason);
        let before = of_target.reason.filter(|_| !of_target.repair.is_well());
        of_target.reason = told.or(before);
        output
    }

    /// Returns why a target that is not well was last restarted, or left alone.
    #[must_use]
    pub const fn reason(&self, target: Target) -> Option<&Reason> {
        match target {
            Target::Kubelet => self.kubelet.reason.as_ref(),
            Target::Runtime => self.runtime.reason.as_ref(),
        }
    }

    /// Notes what systemd says of a unit, if it is one that is repaired.
    pub fn note_unit(&mut self, unit: &Unit<'_>, settings: &RepairSettings) {
        if let Some(target) = settings.target(unit.name) {
            self.of_mut(target).unit = Some(UnitState::of(unit));
        }
    }

    /// Takes what was noted of the unit of `target` in the run that has ended.
    pub fn take_unit(&mut self, target: Target) -> Option<UnitState> {
        self.of_mut(target).unit.take()
    }

    /// Forgets the answers of a probe that is not made any more.
    pub fn forget_answers(&mut self, target: Target) {
        self.of_mut(target).repair.forget_answers();
    }

    /// Returns what is known of a unit besides what systemd says.
    #[must_use]
    pub fn mended(&self, unit: &str, settings: &RepairSettings) -> Mended {
        match settings.target(unit) {
            Some(Target::Kubelet) => self.kubelet.repair.mended(),
            Some(Target::Runtime) => self.runtime.repair.mended(),
            None => Mended::default(),
        }
    }

    const fn of_mut(&mut self, target: Target) -> &mut OfTarget {
        match target {
            Target::Kubelet => &mut self.kubelet,
            Target::Runtime => &mut self.runtime,
        }
    }
}
