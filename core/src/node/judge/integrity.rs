//! Whether the sealed layers and the protected files are what they were.

use super::{Judgement, Limits, Memory, note};
use crate::node::reading::{FileChange, Reading};
use crate::time::Instant;

/// Judges `SealedOSTampered`: the hash that is enforced against the one that was recorded.
pub fn sealed_layer(_: Instant, reading: &Reading<'_>, _: &Limits, _: &mut Memory) -> Judgement {
    let Reading::Layer(layer) = reading else {
        return Judgement::NotMine;
    };
    match layer.recorded {
        None => Judgement::Unknown(note(format_args!("no root hash is recorded for it"))),
        Some(recorded) if recorded.eq_ignore_ascii_case(layer.enforced) => Judgement::Healthy,
        Some(recorded) => Judgement::Problem(note(format_args!(
            "the kernel enforces root hash {}, recorded is {recorded}",
            layer.enforced
        ))),
    }
}

/// Judges `NodeTampered`: the probe hands over only files that changed.
pub fn protected_file(_: Instant, reading: &Reading<'_>, _: &Limits, _: &mut Memory) -> Judgement {
    let Reading::ProtectedFile(file) = reading else {
        return Judgement::NotMine;
    };
    Judgement::Problem(note(format_args!(
        "{} since the baseline",
        match file.change {
            FileChange::Added => "added",
            FileChange::Changed => "changed",
            FileChange::Removed => "removed",
        }
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::reading::Layer;

    #[test]
    fn another_hash_is_a_fault_and_no_record_is_unknown() {
        for (recorded, want) in [(Some("AB12"), 0), (Some("ab13"), 1), (None, 2)] {
            let layer = Layer { name: "root", enforced: "ab12", recorded, corrupted: false };
            let reading = Reading::Layer(layer);
            let got = match sealed_layer(
                Instant::from_millis(0),
                &reading,
                &Limits::default(),
                &mut Memory::None,
            ) {
                Judgement::Healthy => 0,
                Judgement::Problem(_) => 1,
                Judgement::Unknown(_) => 2,
                Judgement::NotMine | Judgement::NotYet(_) => 3,
            };
            assert_eq!(got, want, "{recorded:?}");
        }
    }
}
