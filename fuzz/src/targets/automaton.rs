//! The literal automaton finds what a regex engine finds.

use std::sync::LazyLock;

use fettle_core::node::rules::{fragments, scan};
use regex_automata::meta::Regex;
use regex_automata::{Input, MatchKind, PatternID, PatternSet};

/// Takes `data` as the text of a record.
pub fn target(data: &[u8]) {
    assert_eq!(scan(data), oracle(data));
}

fn oracle(text: &[u8]) -> u64 {
    let mut found = PatternSet::new(REGEX.pattern_len());
    REGEX.which_overlapping_matches(&Input::new(text), &mut found);
    found.iter().fold(0, |found, id: PatternID| found | 1 << id.as_usize())
}

static REGEX: LazyLock<Regex> = LazyLock::new(|| {
    let literals: Vec<String> = fragments().iter().map(|fragment| escape(fragment)).collect();
    Regex::builder()
        .configure(Regex::config().match_kind(MatchKind::All))
        .build_many(&literals)
        .expect("an escaped literal is a regex")
});

fn escape(literal: &str) -> String {
    literal.bytes().map(|byte| format!("\\x{byte:02x}")).collect()
}
