//! Whether the API server still knows who asks it.

use super::{Judgement, Limits, Memory, note};
use crate::node::reading::Reading;
use crate::time::Instant;

/// Judges `APIServerSourceIPUnavailable`.
pub fn source_address(
    _: Instant,
    reading: &Reading<'_>,
    _: &Limits,
    memory: &mut Memory,
) -> Judgement {
    let Reading::Audit(audit) = reading else {
        return Judgement::NotMine;
    };
    *memory = Memory::Present;
    match (audit.records, audit.with_client) {
        (0, _) => Judgement::Unknown(note(format_args!("has no record of the last minute"))),
        (_, 0) => Judgement::Problem(note(format_args!(
            "no record of the last minute has a source outside of this node and its proxies"
        ))),
        (_, _) => Judgement::Healthy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::reading::Audit;

    #[test]
    fn records_without_a_client_are_a_fault_and_no_records_are_unknown() {
        for (records, with_client, want) in [(0, 0, '?'), (5, 0, '-'), (5, 1, '+'), (5, 5, '+')] {
            let reading = Reading::Audit(Audit { records, with_client });
            let limits = Limits::default();
            let got = match source_address(Instant::default(), &reading, &limits, &mut Memory::None)
            {
                Judgement::Healthy => '+',
                Judgement::Problem(_) => '-',
                Judgement::Unknown(_) => '?',
                Judgement::NotMine | Judgement::NotYet(_) => ' ',
            };
            assert_eq!(got, want, "{records} {with_client}");
        }
    }
}
