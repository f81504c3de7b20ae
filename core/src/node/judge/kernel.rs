//! The memory behind the kernel conditions: every fault that is open, and the verdict from it.

use core::fmt;

use serde::{Deserialize, Serialize};

use crate::bounds::{OPEN_FAULTS_MAX, OTHERS_SHOWN_MAX};
use crate::catalog::{Clear, ConditionType};
use crate::node::block::Report;
use crate::node::condition::{Message, Reason, Status, Verdict};
use crate::node::fold::Extra;
use crate::node::log::{Log, LogState};
use crate::node::rules::{Finding, Object};
use crate::text::Text;

/// Every open fault of the kernel conditions, by condition and object.
///
/// Full means that the condition with the most faults only counts its oldest; it is then held even
/// where a reading could prove that all the others are over.
///
/// # Invariants
///
/// * `held`: a condition with a fault stays `True` until the fault is proven over, cleared by
///   hand, or the boot ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Faults {
    pub(super) open: heapless::Vec<OpenFault, OPEN_FAULTS_MAX>,
    beyond: [u32; ConditionType::COUNT],
}

/// One fault that is not over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenFault {
    /// The condition that it sets.
    pub condition: ConditionType,
    /// The first line about it.
    pub finding: Finding,
    /// What later lines of the same block said.
    pub extra: Extra,
    /// What a reading has shown since.
    pub evidence: Evidence,
}

/// What readings have shown of an open fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Evidence {
    /// The device was in the mount table after the fault: when it is gone, so is the fault.
    Mounted,
    /// Nothing yet.
    None,
    /// The task was alive and had started at this many clock ticks after boot.
    Task {
        /// The start time: another task may get the same pid.
        start_ticks: u64,
    },
}

impl Faults {
    /// Returns a memory without faults.
    #[must_use]
    pub const fn new() -> Self {
        Self { open: heapless::Vec::new(), beyond: [0; ConditionType::COUNT] }
    }

    /// Notes one more line about a fault of `condition`.
    ///
    /// A further line about the same object changes nothing that is told: a storm of lines is one
    /// fault.
    pub fn note(&mut self, condition: ConditionType, finding: Finding) {
        if let Some(known) = self.fault(condition, &finding.object) {
            // The line may be about another task with the same name and pid.
            known.evidence = Evidence::None;
            return;
        }
        let (extra, evidence) = (Extra::new(), Evidence::None);
        self.open_fault(OpenFault { condition, finding, extra, evidence });
    }

    /// Takes over what later lines of a report added.
    pub fn explain(&mut self, condition: ConditionType, report: &Report) {
        if let Some(fault) = self.fault(condition, &report.finding.object) {
            fault.extra = report.extra.clone();
        }
    }

    /// Gives the fault of a report, so far called `before`, the name that a later line says.
    pub fn name(&mut self, condition: ConditionType, before: &Object, report: &Report) {
        let called = |fault: &OpenFault| fault.is(condition, before);
        if let Some(at) = self.open.iter().position(called) {
            self.open.remove(at);
        }
        self.note(condition, report.finding.clone());
        self.explain(condition, report);
    }

    /// Full means that the condition with the most faults counts its oldest instead of naming it.
    fn open_fault(&mut self, fault: OpenFault) {
        if self.open.is_full()
            && let Some(oldest) = self.oldest_of_many()
        {
            let evicted = self.open.remove(oldest);
            if let Some(beyond) = self.beyond.get_mut(evicted.condition.index()) {
                *beyond = beyond.saturating_add(1);
            }
        }
        let _ = self.open.push(fault);
    }

    /// Returns where the oldest fault of the condition with the most faults stands.
    fn oldest_of_many(&self) -> Option<usize> {
        let most = self.open.iter().max_by_key(|fault| self.of(fault.condition).count())?.condition;
        self.open.iter().position(|fault| fault.condition == most)
    }

    /// Forgets every fault of `condition`: a person says that it is over.
    pub fn clear(&mut self, condition: ConditionType) {
        self.open.retain(|fault| fault.condition != condition);
        if let Some(beyond) = self.beyond.get_mut(condition.index()) {
            *beyond = 0;
        }
    }

    /// Returns the open faults of `condition`, oldest first.
    pub fn of(&self, condition: ConditionType) -> impl Iterator<Item = &OpenFault> + Clone {
        self.open.iter().filter(move |fault| fault.condition == condition)
    }

    fn beyond(&self, condition: ConditionType) -> u32 {
        self.beyond.get(condition.index()).copied().unwrap_or(0)
    }

    fn fault(&mut self, condition: ConditionType, object: &Object) -> Option<&mut OpenFault> {
        self.open.iter_mut().find(|fault| fault.is(condition, object))
    }
}

impl Default for Faults {
    fn default() -> Self {
        Self::new()
    }
}

impl OpenFault {
    fn is(&self, condition: ConditionType, object: &Object) -> bool {
        self.condition == condition && self.finding.object == *object
    }
}

/// Judges one kernel condition; `None` while the log's past is still being read without a fault.
///
/// A fault is a fault whether or not the log can be read; without one, a log that cannot be read
/// is no proof of health.
#[must_use]
pub fn judge(
    condition: ConditionType,
    log: &Log,
    faults: &Faults,
    clear: Clear,
) -> Option<Verdict> {
    if faults.of(condition).next().is_some() || faults.beyond(condition) > 0 {
        let message = Text::display(Problem { condition, faults, clear });
        return Some(Verdict { status: Status::True, reason: Reason::Problem, message });
    }
    match log.state() {
        LogState::CatchingUp => None,
        LogState::Down { errno } => {
            let mut message = Message::new();
            let _ = fmt::write(
                &mut message,
                format_args!("the kernel log cannot be read (errno {errno}), so nobody can tell"),
            );
            Some(Verdict { status: Status::Unknown, reason: Reason::LogUnreadable, message })
        }
        LogState::Live => {
            let message =
                Text::display(Healthy { before_first: log.before_first(), lost: log.lost() > 0 });
            Some(Verdict { status: Status::False, reason: Reason::Healthy, message })
        }
    }
}

/// The sentence for a condition that is `True`.
struct Problem<'a> {
    condition: ConditionType,
    faults: &'a Faults,
    clear: Clear,
}

impl fmt::Display for Problem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faults = self.faults.of(self.condition);
        let count = faults.clone().count();
        if let Some(newest) = faults.clone().last() {
            write!(f, "{}", newest.finding)?;
            if !newest.extra.is_empty() {
                write!(f, " ({})", newest.extra)?;
            }
        }
        let others = count.saturating_sub(1);
        for (n, fault) in faults.take(others.min(OTHERS_SHOWN_MAX)).enumerate() {
            f.write_str(if n == 0 { "; also " } else { ", " })?;
            write!(f, "{}", fault.finding.object)?;
        }
        let unnamed = u64::try_from(others.saturating_sub(OTHERS_SHOWN_MAX)).unwrap_or(u64::MAX);
        match unnamed.saturating_add(u64::from(self.faults.beyond(self.condition))) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }?;
        f.write_str("; ")?;
        f.write_str(how_it_ends(self.condition, self.clear))
    }
}

/// The sentence for a condition that is `False`.
struct Healthy {
    before_first: u64,
    lost: bool,
}

impl fmt::Display for Healthy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the kernel log of this boot reports none")?;
        match self.before_first {
            0 => Ok(()),
            lost => write!(f, "; its first {lost} records were overwritten before Fettle started"),
        }?;
        if self.lost { f.write_str("; some later ones were overwritten unread") } else { Ok(()) }
    }
}

/// Returns what ends a fault of `condition`, for people who wait for it.
const fn how_it_ends(condition: ConditionType, clear: Clear) -> &'static str {
    match (condition, clear) {
        (ConditionType::ReadonlyFilesystem, Clear::Proof) => {
            "ends once the device is mounted read-write without errors, or gone; by hand; or when \
             the node boots"
        }
        (ConditionType::ReadonlyFilesystem, _) => {
            "held until it is cleared by hand or the node boots; it is over once the device is \
             mounted read-write without errors, or gone"
        }
        (ConditionType::KernelDeadlock, Clear::Proof) => {
            "ends once the task is gone or no longer blocked; by hand; or when the node boots"
        }
        (ConditionType::KernelDeadlock, _) => {
            "held until it is cleared by hand or the node boots; it is over once the task is gone \
             or no longer blocked"
        }
        _ => "held until it is cleared by hand or the node boots",
    }
}

/// Runs `over` on each open fault of `condition`, and forgets those that it says are over.
pub(super) fn retain_unproven(
    faults: &mut Faults,
    condition: ConditionType,
    mut over: impl FnMut(&mut OpenFault) -> bool,
) {
    faults.open.retain_mut(|fault| fault.condition != condition || !over(fault));
}
