//! What people and the controller ask of the agent by annotations on its Node.

use core::fmt;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::Start;
use super::series::{Happening, Topic};
use super::view::Mark;
use crate::bounds::{
    BOOT_ID_MAX, CLEAR_VALUE_MAX, CLEARED_BY_MAX, CONDITION_NAME_MAX, MESSAGE_MAX,
    OPERATION_ID_MAX, REBOOT_STEPS_MAX, REBOOTS_MAX,
};
use crate::catalog::{ConditionType, EventReason};
use crate::node::rules::Object;
use crate::text::Text;
use crate::time::Instant;

/// The id of an ordered operation.
pub type OperationId = Text<OPERATION_ID_MAX>;

/// The annotation that asks to clear conditions, from its first sight until it is gone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClearOrders {
    /// The value that was acted upon.
    done: Option<Text<CLEAR_VALUE_MAX>>,
    /// Whether what it asked for is on disk: without the mark, a new process would not know of it.
    is_saved: bool,
}

/// What a mark asks to clear.
#[expect(clippy::large_enum_variant, reason = "there is no heap to put the larger one on")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClearOrder {
    /// A condition.
    Clear {
        /// Which one.
        condition: ConditionType,
        /// Who says so.
        by: Text<CLEARED_BY_MAX>,
    },
    /// There is no condition of that name.
    Refused(Happening),
}

impl ClearOrders {
    /// Reads the mark, and returns what it asks for, once.
    pub(super) fn see(
        &mut self,
        now: Instant,
        mark: Option<Mark<'_>>,
    ) -> heapless::Vec<ClearOrder, { ConditionType::COUNT }> {
        let mut orders = heapless::Vec::new();
        let Some(mark) = mark else {
            self.done = None;
            return orders;
        };
        let value = Text::from_bytes(mark.value.as_bytes());
        if self.done.as_ref() == Some(&value) {
            return orders;
        }
        (self.done, self.is_saved) = (Some(value), false);
        for name in mark.value.as_bytes().split(|byte| *byte == b',') {
            // More names than there are conditions are left.
            let _ = orders.push(order(now, name.trim_ascii(), mark.by));
        }
        orders
    }

    /// Notes that the state was saved, or cannot be.
    pub(super) const fn saved(&mut self) {
        self.is_saved = true;
    }

    /// Returns whether the mark may be taken away as soon as the state was saved.
    #[must_use]
    pub(super) const fn waits_for_disk(&self) -> bool {
        self.done.is_some() && !self.is_saved
    }

    /// Returns whether the mark is to be taken away.
    #[must_use]
    pub(super) const fn is_due(&self) -> bool {
        self.done.is_some() && self.is_saved
    }
}

fn order(now: Instant, name: &[u8], by: &str) -> ClearOrder {
    let known = core::str::from_utf8(name).ok().and_then(ConditionType::by_name);
    if let Some(condition) = known {
        let by = if by.is_empty() { "somebody unknown" } else { by };
        let by = Text::display(format_args!("an annotation of {by}"));
        return ClearOrder::Clear { condition, by };
    }
    let name = Text::<CONDITION_NAME_MAX>::from_bytes(name);
    let note = Text::display(format_args!(
        "cannot clear {name:?}: there is no condition of that name; `fettle-agent catalog` lists \
         them"
    ));
    ClearOrder::Refused(happening(now, EventReason::ClearRefused, note))
}

/// The reboots that were ordered by annotation: each id once, and the boot id proves it.
///
/// # Invariants
///
/// * `once_per_id`: no id is executed twice, and none that is not on disk as ordered.
/// * `no_loop`: an order that is older than this boot is not executed, whatever is on disk.
/// * `off_is_off`: nothing is executed while reboots are not enabled.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RebootOrders {
    enabled: bool,
    boot: Text<BOOT_ID_MAX>,
    /// Oldest first; full means that the oldest is forgotten.
    known: heapless::Vec<Reboot, REBOOTS_MAX>,
    refused: Option<OperationId>,
    pending: Option<Pending>,
}

/// A reboot that was ordered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reboot {
    /// The id of the order.
    pub id: OperationId,
    /// The boot in which it was ordered.
    pub boot: Text<BOOT_ID_MAX>,
    /// Whether its end was told by an event.
    pub told: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Pending {
    /// The order is being written to disk.
    Recording,
    /// It was executed, and has not begun.
    Executed { until: Instant },
    /// The event that tells of it may still be written until then.
    Telling { until: Instant },
}

/// What comes of an order.
#[expect(clippy::large_enum_variant, reason = "there is no heap to put the larger one on")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RebootStep {
    /// Write what is [known](RebootOrders::known) to disk.
    Record,
    /// Tell this.
    Tell(Happening),
}

impl RebootOrders {
    /// Goes on with what an earlier process or boot left on disk.
    pub(super) fn start(
        &mut self,
        now: Instant,
        start: &Start<'_>,
    ) -> heapless::Vec<RebootStep, REBOOT_STEPS_MAX> {
        let mut steps = heapless::Vec::new();
        self.enabled = start.reboots;
        self.boot = Text::from_bytes(start.boot);
        self.pending = None;
        self.known = start.ordered.iter().rev().take(REBOOTS_MAX).rev().cloned().collect();
        for reboot in self.known.iter_mut().filter(|reboot| !reboot.told) {
            reboot.told = true;
            let happening = ended(now, reboot, &self.boot);
            // There is room for each, and for one to record them.
            let _ = steps.push(RebootStep::Tell(happening));
        }
        if !steps.is_empty() {
            let _ = steps.push(RebootStep::Record);
        }
        steps
    }

    /// Takes over whether reboots are enabled.
    pub(super) const fn enable(&mut self, enabled: bool) {
        self.enabled = enabled;
    }

    /// Reads the mark, and returns what is to be done.
    pub(super) fn see(&mut self, now: Instant, mark: Option<Mark<'_>>) -> Option<RebootStep> {
        let mark = mark?;
        let id = OperationId::from_bytes(mark.value.as_bytes());
        let is_known = self.known.iter().any(|reboot| reboot.id == id);
        if is_known || self.refused.as_ref() == Some(&id) || self.pending.is_some() {
            return None;
        }
        if let Err(why) = self.judge(now, mark) {
            let note = Text::display(format_args!("no reboot for {id:?}: {why}"));
            self.refused = Some(id);
            return Some(RebootStep::Tell(happening(now, EventReason::RebootRefused, note)));
        }
        if self.known.is_full() {
            self.known.remove(0);
        }
        let reboot = Reboot { id, boot: self.boot.clone(), told: false };
        let _ = self.known.push(reboot);
        self.pending = Some(Pending::Recording);
        Some(RebootStep::Record)
    }

    /// Notes whether the order is on disk, and returns what to tell.
    pub(super) fn recorded(&mut self, now: Instant, is_recorded: bool) -> Option<Happening> {
        if self.pending != Some(Pending::Recording) {
            return None;
        }
        let id = self.known.last()?.id.clone();
        if is_recorded {
            self.pending = Some(Pending::Telling { until: now + TELL_WITHIN });
            let note = Text::display(format_args!("this node reboots now, as {id:?} orders"));
            return Some(happening(now, EventReason::RebootOrdered, note));
        }
        self.pending = None;
        let _ = self.known.pop();
        let note = Text::display(format_args!(
            "no reboot for {id:?}: the order cannot be written to disk, so it might be done twice"
        ));
        self.refused = Some(id);
        Some(happening(now, EventReason::RebootRefused, note))
    }

    /// Notes that the reboot could not be begun, and returns what to tell.
    pub(super) fn failed(&mut self, now: Instant, why: &str) -> Option<Happening> {
        self.pending = None;
        let reboot = self.known.last_mut()?;
        reboot.told = true;
        let id = reboot.id.clone();
        let note = Text::display(format_args!("the reboot for {id:?} did not begin: {why}"));
        Some(happening(now, EventReason::RebootRefused, note))
    }

    /// Returns the order to execute, once, when its time has come.
    ///
    /// Told means that the event that tells of it is written.
    pub(super) fn take_due(&mut self, now: Instant, is_told: bool) -> Option<OperationId> {
        let Some(Pending::Telling { until }) = self.pending else {
            return None;
        };
        if !is_told && until > now {
            return None;
        }
        self.pending = None;
        let id = self.known.last().filter(|_| self.enabled).map(|reboot| reboot.id.clone())?;
        self.pending = Some(Pending::Executed { until: now + BEGIN_WITHIN });
        Some(id)
    }

    /// Returns what to tell of a reboot that was executed and does not begin.
    pub(super) fn take_overdue(&mut self, now: Instant) -> Option<Happening> {
        match self.pending {
            Some(Pending::Executed { until }) if until <= now => {
                self.failed(now, "process 1 was asked, and this boot goes on after 5 minutes")
            }
            Some(_) | None => None,
        }
    }

    /// Returns when the next order is executed, told or not.
    #[must_use]
    pub(super) const fn due_at(&self) -> Option<Instant> {
        match self.pending {
            Some(Pending::Executed { until } | Pending::Telling { until }) => Some(until),
            Some(Pending::Recording) | None => None,
        }
    }

    /// Returns the orders to keep on disk, oldest first.
    #[must_use]
    pub fn known(&self) -> &[Reboot] {
        &self.known
    }

    fn judge(&self, now: Instant, mark: Mark<'_>) -> Result<(), Refusal> {
        let value = mark.value;
        let uptime = now.since(Instant::from_millis(0));
        let is_id = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_graphic());
        if !self.enabled {
            Err(Refusal::Off)
        } else if !is_id || value.len() > OPERATION_ID_MAX {
            Err(Refusal::NoId)
        } else if self.boot.is_empty() {
            Err(Refusal::NoBoot)
        } else if mark.age.is_some_and(|age| age > uptime) {
            Err(Refusal::OfAnEarlierBoot)
        } else {
            Ok(())
        }
    }
}

/// Why a reboot is not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    NoBoot,
    NoId,
    OfAnEarlierBoot,
    Off,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoBoot => f.write_str("the kernel has no boot id, so it could not be proven"),
            Self::NoId => {
                write!(f, "an operation's id has 1 to {OPERATION_ID_MAX} visible ASCII characters")
            }
            Self::OfAnEarlierBoot => f.write_str(
                "it was ordered before this boot, which nothing on disk knows of: was it this one? \
                 order it again under another id",
            ),
            Self::Off => f.write_str("reboot.enabled is false in the agent's configuration"),
        }
    }
}

/// Tells how an order of an earlier process ended.
fn ended(now: Instant, reboot: &Reboot, boot: &Text<BOOT_ID_MAX>) -> Happening {
    let Reboot { id, boot: before, .. } = reboot;
    if before == boot {
        let note = Text::display(format_args!(
            "the reboot for {id:?} was ordered in this boot ({boot}) and did not happen; it is not \
             tried again: order it under another id"
        ));
        return happening(now, EventReason::RebootRefused, note);
    }
    let note = Text::display(format_args!(
        "this node was rebooted as {id:?} orders: boot id {before} before, {boot} now"
    ));
    happening(now, EventReason::RebootDone, note)
}

fn happening(now: Instant, reason: EventReason, note: Text<MESSAGE_MAX>) -> Happening {
    Happening::once(now, Topic::Event(reason), Object::new(), note)
}

/// How long a reboot waits for the event that tells of it.
const TELL_WITHIN: Duration = Duration::from_secs(5);

/// How long a reboot that was executed may take to begin: units are stopped first.
const BEGIN_WITHIN: Duration = Duration::from_secs(300);
