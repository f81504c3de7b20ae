//! Answers of one probe in a row: when they are failures enough to act on.

use core::fmt;

use serde::{Deserialize, Serialize};

use super::{Judgement, Limits, Memory, note};
use crate::node::reading::{KubeletHealth, Reading, RuntimeHealth};

/// How the answers of a probe have been, up to the last.
///
/// One failure is enough, but for an answer that is only late: a node under load is slow, and to
/// restart what serves it makes that worse (R05, R06). What cannot be told changes nothing.
///
/// # Invariants
///
/// * `late_thrice`: late answers alone break a streak when there are [`TIMEOUTS_MIN`] in a row.
/// * `one_good_mends`: after a good answer the streak is good.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Streak {
    /// There were failures enough.
    Broken {
        /// How many there were in a row.
        failures: u16,
        /// How the last one was.
        last: Failure,
    },
    /// The last answer was good.
    Good,
    /// The last answers were late, but not often enough.
    Slow {
        /// How many there were in a row.
        timeouts: u16,
    },
    /// There was no answer yet.
    #[default]
    Unproven,
}

/// How one probe ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// It shows a fault.
    Failed(Failure),
    /// All is well.
    Good,
    /// Nobody can tell.
    Unknown,
}

/// What was wrong with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failure {
    /// It was another HTTP status than 200.
    Answered {
        /// The code.
        code: u16,
    },
    /// It was that the runtime is not ready.
    NotReady,
    /// There was none: the connection was refused, or broke off.
    Refused,
    /// There was none in time.
    TimedOut {
        /// The time that there was.
        deadline_ms: u32,
    },
}

impl Streak {
    /// Returns the streak after one more answer.
    #[must_use]
    pub const fn after(self, answer: Answer) -> Self {
        match (self, answer) {
            (_, Answer::Good) => Self::Good,
            (_, Answer::Unknown) => self,
            (Self::Broken { failures, .. }, Answer::Failed(last)) => {
                Self::Broken { failures: failures.saturating_add(1), last }
            }
            (Self::Slow { timeouts }, Answer::Failed(last)) => late_or_broken(timeouts, last),
            (Self::Good | Self::Unproven, Answer::Failed(last)) => late_or_broken(0, last),
        }
    }
}

const fn late_or_broken(before: u16, last: Failure) -> Streak {
    let failures = before.saturating_add(1);
    match last {
        Failure::TimedOut { .. } if failures < TIMEOUTS_MIN => Streak::Slow { timeouts: failures },
        Failure::Answered { .. }
        | Failure::NotReady
        | Failure::Refused
        | Failure::TimedOut { .. } => Streak::Broken { failures, last },
    }
}

impl Answer {
    /// Returns the answer in a reading, if it is one of a probe.
    #[must_use]
    pub fn of(reading: &Reading<'_>, limits: &Limits) -> Option<Self> {
        if let Reading::KubeletHealth(health) = reading {
            return Some(Self::of_kubelet(*health, limits.kubelet_deadline_ms));
        }
        if let Reading::RuntimeHealth(health) = reading {
            return Some(Self::of_runtime(*health, limits.cri_deadline_ms));
        }
        matches!(reading, Reading::Unreadable(_)).then_some(Self::Unknown)
    }

    const fn of_kubelet(health: KubeletHealth, deadline_ms: u32) -> Self {
        match health {
            KubeletHealth::Answered { code } => Self::Failed(Failure::Answered { code }),
            KubeletHealth::Ok => Self::Good,
            KubeletHealth::Refused => Self::Failed(Failure::Refused),
            KubeletHealth::TimedOut => Self::Failed(Failure::TimedOut { deadline_ms }),
        }
    }

    const fn of_runtime(health: RuntimeHealth<'_>, deadline_ms: u32) -> Self {
        match health {
            RuntimeHealth::NotReady { .. } => Self::Failed(Failure::NotReady),
            RuntimeHealth::Ready => Self::Good,
            RuntimeHealth::Refused => Self::Failed(Failure::Refused),
            RuntimeHealth::TimedOut => Self::Failed(Failure::TimedOut { deadline_ms }),
        }
    }
}

/// Judges one more answer of a probe; `why` is what the other side says itself.
pub(super) fn judge(answer: Answer, why: &str, memory: &mut Memory) -> Judgement {
    let before = if let Memory::Answers(streak) = memory { *streak } else { Streak::Unproven };
    let streak = before.after(answer);
    *memory = Memory::Answers(streak);
    match (streak, answer) {
        (Streak::Good, _) => Judgement::Healthy,
        (Streak::Slow { timeouts }, Answer::Failed(failure)) => Judgement::NotYet(note(
            format_args!("{failure}, {timeouts} of {TIMEOUTS_MIN} in a row that are a fault"),
        )),
        (Streak::Broken { last, .. }, _) if why.is_empty() => {
            Judgement::Problem(note(format_args!("{last}")))
        }
        (Streak::Broken { last, .. }, _) => Judgement::Problem(note(format_args!("{last}: {why}"))),
        (Streak::Slow { .. } | Streak::Unproven, _) => {
            Judgement::Unknown(note(format_args!("nobody can tell")))
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answered { code } => write!(f, "answered with HTTP status {code}"),
            Self::NotReady => f.write_str("says that it is not ready"),
            Self::Refused => f.write_str("refused the connection or broke it off"),
            Self::TimedOut { deadline_ms } if deadline_ms.is_multiple_of(1000) => {
                write!(f, "did not answer within {} s", deadline_ms / 1000)
            }
            Self::TimedOut { deadline_ms } => write!(f, "did not answer within {deadline_ms} ms"),
        }
    }
}

/// Late answers in a row that are a fault (decisions, "kubelet probe", "CRI probe").
pub const TIMEOUTS_MIN: u16 = 3;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::vec::Vec;

    use super::*;

    #[test]
    fn late_answers_break_a_streak_at_the_third_and_all_others_at_once() {
        // answers, failures where the streak is broken
        for (answers, want) in [
            (&[GOOD, LATE, GOOD, GOOD][..], None), // R05
            (&[LATE, LATE], None),
            (&[LATE, LATE, LATE], Some(3)),
            (&[LATE, Answer::Unknown, LATE, LATE], Some(3)),
            (&[LATE, LATE, GOOD, LATE], None),
            (&[GOOD, REFUSED], Some(1)),
            (&[LATE, REFUSED, LATE], Some(3)),
            (&[REFUSED, Answer::Unknown], Some(1)),
            (&[REFUSED, GOOD], None),
            (&[GOOD, Answer::Failed(Failure::Answered { code: 500 })], Some(1)),
            (&[GOOD, Answer::Failed(Failure::NotReady)], Some(1)),
        ] {
            let streak = answers.iter().fold(Streak::default(), |so_far, one| so_far.after(*one));
            let got =
                if let Streak::Broken { failures, .. } = streak { Some(failures) } else { None };
            assert_eq!(got, want, "{answers:?}");
        }
    }

    proptest! {
        #[test]
        fn invariants_hold_for_any_answers(answers: Vec<u8>) {
            let (mut streak, mut late, mut other) = (Streak::default(), 0, false);
            for answer in answers {
                let answer = [GOOD, LATE, REFUSED, Answer::Unknown][usize::from(answer % 4)];
                streak = streak.after(answer);
                (late, other) = match answer {
                    Answer::Good => (0, false),
                    LATE => (late + 1, other),
                    Answer::Failed(_) => (late, true),
                    Answer::Unknown => (late, other),
                };
                let broken = matches!(streak, Streak::Broken { .. });
                prop_assert_eq!(broken, other || late >= TIMEOUTS_MIN, "late_thrice");
                prop_assert!(answer != GOOD || streak == Streak::Good, "one_good_mends");
            }
        }
    }

    const GOOD: Answer = Answer::Good;
    const LATE: Answer = Answer::Failed(Failure::TimedOut { deadline_ms: 5000 });
    const REFUSED: Answer = Answer::Failed(Failure::Refused);
}
