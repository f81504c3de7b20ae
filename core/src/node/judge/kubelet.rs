//! Whether the kubelet answers, and whether it still reports its node.

use core::time::Duration;

use super::streak::{self, Answer};
use super::{Judgement, Limits, Memory, note};
use crate::node::reading::Reading;
use crate::time::Instant;

/// Judges `KubeletUnhealthy`: `True` when the repair's threshold is reached.
pub fn health(
    _: Instant,
    reading: &Reading<'_>,
    limits: &Limits,
    memory: &mut Memory,
) -> Judgement {
    match (reading, Answer::of(reading, limits)) {
        (Reading::KubeletHealth(_), Some(answer)) => streak::judge(answer, "", memory),
        _ => Judgement::NotMine,
    }
}

/// Judges `KubeletHeartbeatFailed`: by one line of the last 5 minutes, or since the last look.
pub fn heartbeat(
    now: Instant,
    reading: &Reading<'_>,
    _: &Limits,
    memory: &mut Memory,
) -> Judgement {
    let Reading::KubeletJournal(journal) = reading else {
        return Judgement::NotMine;
    };
    // A look that comes late must not pass over what was said just after the one before.
    let since_look = if let Memory::Since(look) = memory { now.since(*look) } else { WINDOW };
    *memory = Memory::Since(now);
    let window = WINDOW.max(since_look);
    match journal.gave_up_ago_s {
        Some(ago_s) if Duration::from_secs(ago_s) < window => Judgement::Problem(note(
            format_args!("gave up updating the node's status within the last 5 minutes"),
        )),
        Some(_) | None => Judgement::Healthy,
    }
}

/// How long one line counts (decisions, `KubeletHeartbeatFailed`).
const WINDOW: Duration = Duration::from_secs(300);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::reading::{KubeletHealth, KubeletJournal};

    #[test]
    fn r05_one_slow_answer_is_not_yet_a_fault_and_a_refusal_is_one() {
        let mut memory = Memory::None;
        let note = |text: &str| note(format_args!("{text}"));
        let late = |n| {
            let text =
                std::format!("did not answer within 5 s, {n} of 3 in a row that are a fault");
            Judgement::NotYet(note(&text))
        };
        for (answer, want) in [
            (KubeletHealth::Ok, Judgement::Healthy),
            (KubeletHealth::TimedOut, late(1)),
            (KubeletHealth::Ok, Judgement::Healthy),
            (
                KubeletHealth::Refused,
                Judgement::Problem(note("refused the connection or broke it off")),
            ),
            (KubeletHealth::Ok, Judgement::Healthy),
            (
                KubeletHealth::Answered { code: 500 },
                Judgement::Problem(note("answered with HTTP status 500")),
            ),
            (KubeletHealth::Ok, Judgement::Healthy),
            (KubeletHealth::TimedOut, late(1)),
            (KubeletHealth::TimedOut, late(2)),
            (KubeletHealth::TimedOut, Judgement::Problem(note("did not answer within 5 s"))),
        ] {
            let reading = Reading::KubeletHealth(answer);
            let got = health(Instant::default(), &reading, &Limits::default(), &mut memory);
            assert_eq!(got, want, "{answer:?}");
        }
    }

    #[test]
    fn one_line_counts_for_five_minutes_and_none_is_passed_over() {
        let mut memory = Memory::None;
        // when (s), age of the newest line, problem
        for (at_s, gave_up_ago_s, problem) in [
            (1_000, None, false),
            (1_300, Some(299), true),
            (1_601, Some(600), false),
            (1_902, Some(300), true), // said after the look before
            (2_202, Some(600), false),
            (2_300, Some(0), true),
        ] {
            let reading = Reading::KubeletJournal(KubeletJournal { gave_up_ago_s });
            let now = Instant::from_millis(at_s * 1000);
            let got = heartbeat(now, &reading, &Limits::default(), &mut memory);
            assert_eq!(matches!(got, Judgement::Problem(_)), problem, "{at_s}");
        }
    }
}
