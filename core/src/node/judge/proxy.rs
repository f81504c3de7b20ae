//! Whether the local proxy serves.

use super::{Judgement, Limits, Memory, note};
use crate::node::reading::{GaugeAnswer, Reading};
use crate::time::Instant;

/// Judges `ProxyNotServing`.
pub fn ready(_: Instant, reading: &Reading<'_>, _: &Limits, memory: &mut Memory) -> Judgement {
    let Reading::ProxyReady(answer) = reading else {
        return Judgement::NotMine;
    };
    *memory = Memory::Present;
    match answer {
        GaugeAnswer::Value { min_milli, .. } if *min_milli > 0 => Judgement::Healthy,
        GaugeAnswer::Value { .. } => {
            Judgement::Problem(note(format_args!("says that it is not ready")))
        }
        GaugeAnswer::Missing => {
            Judgement::Problem(note(format_args!("does not say whether it is ready")))
        }
        GaugeAnswer::Unreachable { why } => {
            Judgement::Problem(note(format_args!("does not answer: {why}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gauge_of_0_none_and_no_answer_are_the_same_fault() {
        for (answer, problem) in [
            (GaugeAnswer::Value { min_milli: 1000, sum_milli: 1000 }, false),
            (GaugeAnswer::Value { min_milli: 0, sum_milli: 0 }, true),
            (GaugeAnswer::Value { min_milli: 0, sum_milli: 1000 }, true),
            (GaugeAnswer::Missing, true),
            (GaugeAnswer::Unreachable { why: "connection refused" }, true),
        ] {
            let reading = Reading::ProxyReady(answer);
            let got = ready(Instant::default(), &reading, &Limits::default(), &mut Memory::None);
            assert_eq!(matches!(got, Judgement::Problem(_)), problem, "{answer:?}");
        }
    }
}
