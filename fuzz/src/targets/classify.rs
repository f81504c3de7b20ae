//! The kernel rule table reads any text, and what it says of it can be shown.

use fettle_core::node::agent::{Agent, Input, Output, Settings};
use fettle_core::node::rules::{Finding, Findings, classify};
use fettle_core::wire::kmsg::Record;

use crate::invariants::shows_one_line;

/// Takes `data` as the text of a record, still escaped.
pub fn target(data: &[u8]) {
    let findings = classify(&Record::bare(data));
    // `FINDINGS_MAX` says that no wording is more than two; there is room for more, so that one
    // that is shows here.
    assert!(findings.len() <= 2, "{findings:?}");
    findings.iter().for_each(check);
    if !findings.is_empty() {
        userspace_raises_nothing(data);
        escapes_change_nothing(data, &findings);
    }
}

fn check(finding: &Finding) {
    shows_one_line(finding);
    let detail = finding.detail;
    assert!(
        detail.condition().is_some() || detail.event().is_some(),
        "{detail:?} leads to nothing"
    );
}

fn userspace_raises_nothing(text: &[u8]) {
    let mut agent = Agent::new(Settings::default());
    let record = [b"12,7,7,-;", text].concat();
    let _ = agent.step(Default::default(), Input::LogCaughtUp);
    let outputs = agent.step(Default::default(), Input::Record(&record));
    let is_loss = |output: &Output| matches!(output, Output::Lost { .. });
    assert!(outputs.iter().all(is_loss), "userspace_raises_nothing");
}

/// Text that is escaped throughout means the same, unless it did not fit.
fn escapes_change_nothing(text: &[u8], findings: &Findings) {
    let plain = Record::bare(text).plain_text();
    if plain.is_cut() {
        return;
    }
    let escaped: String = plain.as_bytes().iter().map(|byte| escape(*byte)).collect();
    let again = Record::bare(escaped.as_bytes()).plain_text();
    assert_eq!(again.as_bytes(), plain.as_bytes());
    let backslash = plain.as_bytes().contains(&b'\\');
    if !backslash {
        assert_eq!(classify(&Record::bare(plain.as_bytes())), *findings);
    }
}

fn escape(byte: u8) -> String {
    format!("\\x{byte:02x}")
}
