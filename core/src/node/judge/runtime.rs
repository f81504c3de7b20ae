//! Whether the container runtime answers, and is ready.

use super::streak::{self, Answer};
use super::{Judgement, Limits, Memory};
use crate::node::reading::{Reading, RuntimeHealth};
use crate::time::Instant;

/// Judges `ContainerRuntimeUnhealthy`: `True` when the repair's threshold is reached.
pub fn health(
    _: Instant,
    reading: &Reading<'_>,
    limits: &Limits,
    memory: &mut Memory,
) -> Judgement {
    let (Reading::RuntimeHealth(health), Some(answer)) = (reading, Answer::of(reading, limits))
    else {
        return Judgement::NotMine;
    };
    let why = if let RuntimeHealth::NotReady { why } = health { *why } else { "" };
    streak::judge(answer, why, memory)
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    #[test]
    fn r06_a_slow_runtime_is_a_fault_at_the_third_late_answer_in_a_row() {
        let limits = Limits { cri_deadline_ms: 15_000, ..Limits::default() };
        let mut memory = Memory::None;
        let ready = RuntimeHealth::Ready;
        let not_ready = RuntimeHealth::NotReady { why: "state.db is corrupt" };
        for (answer, problem) in [
            (ready, None),
            (RuntimeHealth::TimedOut, None),
            (ready, None),
            (RuntimeHealth::TimedOut, None),
            (RuntimeHealth::TimedOut, None),
            (RuntimeHealth::TimedOut, Some("did not answer within 15 s")),
            (ready, None),
            (not_ready, Some("says that it is not ready: state.db is corrupt")),
            (RuntimeHealth::Refused, Some("refused the connection or broke it off")),
        ] {
            let reading = Reading::RuntimeHealth(answer);
            let got = health(Instant::default(), &reading, &limits, &mut memory);
            let got =
                if let Judgement::Problem(note) = got { Some(note.to_string()) } else { None };
            assert_eq!(got.as_deref(), problem, "{answer:?}");
        }
    }
}
