//! The literal automaton: one pass over a record gives the set of fragments in it.

use super::table::{Fault, RULES};

include!(concat!(env!("OUT_DIR"), "/automaton.rs"));

/// Bytes of the automaton's tables.
pub const TABLE_BYTES: usize = size_of_val(&NEXT) + size_of_val(&FOUND) + size_of_val(&CLASSES);

const _: () = assert!(TABLE_BYTES <= 256 * 1024, "a gap or a long fragment has blown it up");

/// A set of faults that a record may report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Candidates(u32);

impl Candidates {
    /// Returns whether `fault` is in the set.
    #[must_use]
    pub fn contains(self, fault: Fault) -> bool {
        self.0 & bit(fault) != 0
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// Returns the faults of which some rule has all of its fragments in `text`.
#[must_use]
pub fn candidates(text: &[u8]) -> Candidates {
    let found = scan(text);
    if found == 0 {
        return Candidates::default();
    }
    let matching = RULES.iter().zip(&RULE_MASKS).filter(|(_, mask)| found & **mask == **mask);
    Candidates(matching.fold(0, |set, (rule, _)| set | bit(rule.fault)))
}

/// Returns the set of fragments in `text`, as bits in the order of [`fragments`].
#[must_use]
pub fn scan(text: &[u8]) -> u64 {
    let mut found = 0;
    let mut row = 0_u16;
    for byte in text {
        let class = CLASSES.get(usize::from(*byte)).copied().unwrap_or(0);
        let at = row.wrapping_add(u16::from(class));
        let Some(next) = NEXT.get(usize::from(at)) else {
            return found;
        };
        row = *next;
        if row >= FIRST_FOUND {
            found |= ending_at(row);
        }
    }
    found
}

/// Returns the fragments, in the order of the bits that [`scan`] sets.
#[must_use]
pub fn fragments() -> &'static [&'static str] {
    &FRAGMENTS
}

#[cold]
fn ending_at(row: u16) -> u64 {
    let index = row.saturating_sub(FIRST_FOUND).checked_div(CLASS_COUNT).unwrap_or(0);
    FOUND.get(usize::from(index)).copied().unwrap_or(0)
}

#[expect(clippy::as_conversions, reason = "an enum without data is its discriminant")]
const fn bit(fault: Fault) -> u32 {
    1_u32.wrapping_shl(fault as u32)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex_automata::meta::Regex;
    use regex_automata::{Input, PatternID, PatternSet};
    use std::string::String;
    use std::vec::Vec;

    use super::*;

    proptest! {
        #[test]
        fn finds_what_a_regex_engine_finds(text in near_fragments()) {
            prop_assert_eq!(scan(&text), oracle(&text));
        }

        #[test]
        fn finds_what_a_regex_engine_finds_in_any_bytes(text: Vec<u8>) {
            prop_assert_eq!(scan(&text), oracle(&text));
        }
    }

    /// Pieces of fragments and of noise, so that overlaps and near misses are common.
    fn near_fragments() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            (0..FRAGMENTS.len(), any::<proptest::sample::Index>(), any::<bool>()).prop_map(
                |(which, cut, whole)| {
                    let fragment = FRAGMENTS[which].as_bytes();
                    let cut = if whole { fragment.len() } else { cut.index(fragment.len()) };
                    fragment[..cut].to_vec()
                }
            ),
            "[ -~]{0,3}".prop_map(String::into_bytes),
        ];
        proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
    }

    fn oracle(text: &[u8]) -> u64 {
        static REGEX: std::sync::OnceLock<Regex> = std::sync::OnceLock::new();
        let regex = REGEX.get_or_init(|| {
            let escaped: Vec<String> = FRAGMENTS.iter().map(|f| escape(f)).collect();
            Regex::builder()
                .configure(Regex::config().match_kind(regex_automata::MatchKind::All))
                .build_many(&escaped)
                .unwrap()
        });
        let mut set = PatternSet::new(regex.pattern_len());
        regex.which_overlapping_matches(&Input::new(text), &mut set);
        set.iter().fold(0, |found, id: PatternID| found | 1 << id.as_usize())
    }

    fn escape(literal: &str) -> String {
        literal.bytes().map(|byte| std::format!("\\x{byte:02x}")).collect()
    }
}
