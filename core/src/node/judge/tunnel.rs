//! Whether the tunnel is connected.

use super::{Judgement, Limits, Memory, note};
use crate::node::reading::{GaugeAnswer, Reading};
use crate::time::Instant;

/// Judges `TunnelDisconnected`.
///
/// Who does not count connections may have some: a tunnel that does not answer is unknown here,
/// and its unit tells whether it runs.
pub fn connected(_: Instant, reading: &Reading<'_>, _: &Limits, memory: &mut Memory) -> Judgement {
    let Reading::TunnelConnections(answer) = reading else {
        return Judgement::NotMine;
    };
    *memory = Memory::Present;
    match answer {
        GaugeAnswer::Value { sum_milli, .. } if *sum_milli > 0 => Judgement::Healthy,
        GaugeAnswer::Value { .. } => Judgement::Problem(note(format_args!("counts 0 connections"))),
        GaugeAnswer::Missing => {
            Judgement::Unknown(note(format_args!("does not count its connections")))
        }
        GaugeAnswer::Unreachable { why } => {
            Judgement::Unknown(note(format_args!("does not answer: {why}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_connection_is_a_fault_and_no_count_is_unknown() {
        let value = |sum_milli| GaugeAnswer::Value { min_milli: 0, sum_milli };
        for (answer, want) in [
            (value(2000), '+'),
            (value(0), '-'),
            (GaugeAnswer::Missing, '?'),
            (GaugeAnswer::Unreachable { why: "connection refused" }, '?'),
        ] {
            let reading = Reading::TunnelConnections(answer);
            let got = match connected(
                Instant::default(),
                &reading,
                &Limits::default(),
                &mut Memory::None,
            ) {
                Judgement::Healthy => '+',
                Judgement::Problem(_) => '-',
                Judgement::Unknown(_) => '?',
                Judgement::NotMine | Judgement::NotYet(_) => ' ',
            };
            assert_eq!(got, want, "{answer:?}");
        }
    }
}
