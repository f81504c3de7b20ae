//! Whether a file is renewed as often as it should be.

use super::{Judgement, Limits, Memory, note};
use crate::node::reading::Reading;
use crate::time::Instant;

/// Judges `NodeInfoStale`.
pub fn node_info(_: Instant, reading: &Reading<'_>, _: &Limits, memory: &mut Memory) -> Judgement {
    let Reading::FileAge(file) = reading else {
        return Judgement::NotMine;
    };
    let age_max_s = file.age_max_s;
    if file.age_s.is_some() {
        // From now on its absence is a fault.
        *memory = Memory::Present;
    }
    match file.age_s {
        None => Judgement::Problem(note(format_args!("is not there"))),
        Some(age_s) if age_s > age_max_s => Judgement::Problem(note(format_args!(
            "written {age_s} s ago, which may be {age_max_s} s"
        ))),
        Some(_) => Judgement::Healthy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::reading::FileAge;

    #[test]
    fn a_file_is_stale_when_it_is_older_than_it_may_be_or_gone() {
        for (age_s, stale) in
            [(Some(0), false), (Some(300), false), (Some(301), true), (None, true)]
        {
            let reading = Reading::FileAge(FileAge { path: "nodes.json", age_s, age_max_s: 300 });
            let judgement =
                node_info(Instant::from_millis(0), &reading, &Limits::default(), &mut Memory::None);
            assert_eq!(matches!(judgement, Judgement::Problem(_)), stale, "{age_s:?}");
        }
    }
}
