//! Whether the agent itself can do its work.

use serde::{Deserialize, Serialize};

use crate::bounds::WRITER_MAX;
use crate::catalog::ConditionType;
use crate::node::checks::{Checks, Schedule};
use crate::node::condition::{Message, Reason, Status, Verdict};
use crate::node::log::{Log, LogState};
use crate::text::Text;
use crate::time::Instant;

/// Somebody else who writes a condition of the agent's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contest {
    /// Which one.
    pub condition: ConditionType,
    /// The field manager.
    pub writer: Text<WRITER_MAX>,
}

/// Judges `AgentDegraded`; `None` while it has not looked at anything.
///
/// Lost records are a metric only: a flood is not the agent's fault.
#[must_use]
pub fn judge(
    now: Instant,
    log: &Log,
    (checks, schedule): (&Checks, &Schedule),
    contest: Option<&Contest>,
) -> Option<Verdict> {
    if let LogState::Down { errno } = log.state() {
        let why = format_args!("the kernel log cannot be read (errno {errno})");
        return Some(degraded(Reason::LogUnreadable, Text::display(why)));
    }
    if let Some(kind) = checks.stale(now, schedule) {
        let why = format_args!("the check of {kind:?} has had no success for 5 intervals");
        return Some(degraded(Reason::CheckFailed, Text::display(why)));
    }
    if let Some(Contest { condition, writer }) = contest {
        let why = format_args!(
            "{writer} writes the condition {} of this node too and has changed it 3 times in 10 \
             minutes; the agent leaves its value alone until nobody else has written it for 30 \
             minutes",
            condition.row().name
        );
        return Some(degraded(Reason::Contested, Text::display(why)));
    }
    if log.state() == LogState::CatchingUp {
        return None;
    }
    let message = Message::from_bytes(b"the kernel log is read and every check succeeds");
    Some(Verdict { status: Status::False, reason: Reason::Healthy, message })
}

const fn degraded(reason: Reason, message: Message) -> Verdict {
    Verdict { status: Status::True, reason, message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::ReadingKind;
    use crate::node::checks::Outcome;

    #[test]
    fn a_check_without_success_for_five_intervals_degrades_the_agent() {
        let mut schedule = Schedule::default();
        schedule.probes[ReadingKind::Clock.index()] = true; // every minute
        let (mut log, mut checks) = (Log::new(), Checks::new());
        let s = |seconds: u64| Instant::from_millis(seconds * 1000);
        checks.schedule(s(0), &schedule);
        assert_eq!(checks.start_due(s(0), &schedule), Some(ReadingKind::Clock));
        let status = |now, log: &Log, checks: &Checks| {
            judge(now, log, (checks, &schedule), None).map(|verdict| verdict.status)
        };
        assert_eq!(status(s(1), &log, &checks), None);
        log.caught_up();
        assert_eq!(status(s(299), &log, &checks), Some(Status::False));
        assert_eq!(checks.next_stale(s(299), &schedule), Some(s(300)));
        assert_eq!(status(s(300), &log, &checks), Some(Status::True));
        checks.end(s(301), ReadingKind::Clock, Outcome::Complete);
        assert_eq!(status(s(301), &log, &checks), Some(Status::False));
        log.down(5);
        assert_eq!(status(s(301), &log, &checks), Some(Status::True));
    }

    #[test]
    fn somebody_else_who_writes_a_condition_is_named() {
        let (mut log, checks, schedule) = (Log::new(), Checks::new(), Schedule::default());
        log.caught_up();
        let writer = Text::from_bytes(b"node-problem-detector");
        let contest = Contest { condition: ConditionType::KernelDeadlock, writer };
        let verdict = judge(Instant::from_millis(0), &log, (&checks, &schedule), Some(&contest));
        let verdict = verdict.unwrap();
        assert_eq!(verdict.reason.name(ConditionType::AgentDegraded), "ConditionContested");
        assert!(verdict.message.as_str().starts_with(
            "node-problem-detector writes the condition KernelDeadlock of this node too"
        ));
    }
}
