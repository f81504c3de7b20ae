//! Whether the local CNI agent is well.

use core::time::Duration;

use super::{Judgement, Limits, Memory, note};
use crate::node::reading::{CniHealth, Reading};
use crate::time::Instant;

/// Judges `CNIUnhealthy`: by the local agent only, whatever other nodes are like (H18).
///
/// An agent that was just started may take its time (H19). Where nobody knows when it was started,
/// the time runs from when it was first seen unwell; and no start within a stretch of that renews
/// it, so that an agent that starts again and again does not hide.
pub fn health(now: Instant, reading: &Reading<'_>, _: &Limits, memory: &mut Memory) -> Judgement {
    let Reading::Cni(cni) = reading else {
        return Judgement::NotMine;
    };
    let problem = match cni.health {
        CniHealth::Ok => {
            *memory = Memory::Present;
            return Judgement::Healthy;
        }
        CniHealth::Other { state, why: "" } => note(format_args!("says {state}")),
        CniHealth::Other { state, why } => note(format_args!("says {state}: {why}")),
        CniHealth::Unreachable { why } => note(format_args!("does not answer: {why}")),
    };
    let since = match (&*memory, cni.last_start) {
        (Memory::Since(since), _) => *since,
        (_, Some(start)) => start.min(now),
        (_, None) => now,
    };
    *memory = Memory::Since(since);
    if now.since(since) < GRACE { Judgement::NotYet(problem) } else { Judgement::Problem(problem) }
}

/// How long the agent may take after its pod restarts (decisions, `CNIUnhealthy`).
const GRACE: Duration = Duration::from_secs(300);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::reading::Cni;

    #[test]
    fn h18_other_nodes_do_not_count() {
        // `cilium status` says "Cluster health: 0/3 reachable"; the reading has no place for it.
        let judgement = judge((7_000, CniHealth::Ok, None), &mut Memory::None);
        assert_eq!(judgement, Judgement::Healthy);
    }

    #[test]
    fn h19_an_agent_that_restarts_has_five_minutes() {
        let gone = CniHealth::Unreachable { why: "no such socket" };
        let failure = CniHealth::Other { state: "Failure", why: "" };
        // when (s), health, last start (s), standing
        for (series, wants) in [
            (&[(0, CniHealth::Ok, None), (30, gone, None), (60, CniHealth::Ok, None)][..], "+?+"),
            (&[(0, CniHealth::Ok, None), (30, gone, None), (329, gone, None)], "+??"),
            (&[(0, CniHealth::Ok, None), (30, gone, None), (330, gone, None)], "+?-"),
            (&[(0, CniHealth::Ok, Some(0)), (310, failure, Some(0))], "+-"),
            (&[(900, CniHealth::Ok, Some(0)), (930, failure, Some(920))], "+?"),
            // One that starts anew every two minutes.
            (&[(900, failure, Some(880)), (1020, gone, None), (1180, failure, Some(1170))], "??-"),
            (&[(900, gone, Some(0)), (930, gone, None), (960, CniHealth::Ok, Some(950))], "--+"),
        ] {
            let mut memory = Memory::None;
            for (one, want) in series.iter().zip(wants.chars()) {
                let got = match judge(*one, &mut memory) {
                    Judgement::Healthy => '+',
                    Judgement::NotYet(_) => '?',
                    Judgement::Problem(_) => '-',
                    Judgement::NotMine | Judgement::Unknown(_) => ' ',
                };
                assert_eq!(got, want, "{one:?}");
            }
        }
    }

    fn judge(
        (at_s, answer, last_start_s): (u64, CniHealth<'_>, Option<u64>),
        memory: &mut Memory,
    ) -> Judgement {
        let last_start = last_start_s.map(|s| Instant::from_millis(s * 1000));
        let reading = Reading::Cni(Cni { health: answer, last_start });
        health(Instant::from_millis(at_s * 1000), &reading, &Limits::default(), memory)
    }
}
