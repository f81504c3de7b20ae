//! The rules, by the corpus and by wordings that are not in it.

#![allow(clippy::disallowed_methods, reason = "tests may panic")]

use std::collections::BTreeSet;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

use super::*;

#[test]
fn every_row_of_the_corpus_means_what_it_says() {
    let mut wrong = Vec::new();
    for (row, (want, line)) in corpus().enumerate() {
        let got = names(&line);
        if got != want {
            wrong.push(format!("row {}: {line}\n  want {want:?}\n  got  {got:?}", row + 2));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(corpus().count(), 306);
}

#[test]
fn no_rule_is_a_copy_of_a_row() {
    for rule in RULES {
        for (_, line) in corpus() {
            assert_ne!(rule.example, line);
            let copied = rule.fragments.iter().any(|f| f.len() == line.len() && line.len() > 40);
            assert!(!copied, "{line}");
        }
    }
}

#[test]
fn every_example_is_its_own_fault_and_every_fault_has_one() {
    let mut faults = BTreeSet::new();
    for rule in RULES {
        assert!(candidates(rule.example.as_bytes()).contains(rule.fault), "{}", rule.example);
        assert_eq!(classify(&Record::bare(rule.example.as_bytes())).len(), 1, "{}", rule.example);
        faults.insert(rule.fault);
    }
    assert_eq!(faults.len(), PARSERS.len());
}

#[test]
fn wordings_outside_the_corpus_are_read_and_look_alikes_are_not() {
    for row in include_str!("../../../../tests/data/kmsg-wordings.tsv").lines().skip(1) {
        let mut fields = row.splitn(3, '\t');
        let mut field = || fields.next().unwrap();
        let (want, object, line) = (field(), field(), field());
        let found = classify(&Record::bare(line.as_bytes()));
        let got = names(line).join(",");
        assert_eq!(if got.is_empty() { "NONE" } else { &got }, want, "{line}");
        let object = if object == "-" { "" } else { object };
        assert!(found.iter().all(|finding| finding.object.as_str() == object), "{found:?}");
    }
}

#[test]
fn figures_of_a_line_are_kept() {
    use crate::wire::cper::Severity;
    for (line, detail) in [
        (
            "I/O error, dev sda, sector 42 op",
            Detail::BlockRequest { error: BlockError::Io, sector: 42 },
        ),
        (
            "critical target error, dev sda, sector 1",
            Detail::BlockRequest { error: BlockError::Other, sector: 1 },
        ),
        (
            "INFO: task runc:8 blocked for more than 5 seconds.",
            Detail::HungTask { critical: true, pid: 8, seconds: 5 },
        ),
        (
            "{4}[Hardware Error]: event severity: recoverable",
            Detail::Cper { record: Some(4), severity: Severity::Recoverable },
        ),
        ("NVRM: Xid (PCI:0000:dc:00): 45, Ch 1", Detail::Xid { number: 45 }),
        ("device-mapper: verity: 202:3: data block 9 is corrupted", Detail::Verity { block: 9 }),
        (
            "EDAC MC3: 2 UE memory read error on D1",
            Detail::Edac { controller: 3, count: 2, uncorrected: true },
        ),
    ] {
        let found = classify(&Record::bare(line.as_bytes()));
        assert_eq!(found.first().map(|finding| finding.detail), Some(detail), "{line}");
    }
}

#[test]
fn a_finding_is_a_sentence_with_the_line_in_it() {
    let found = classify(&Record::bare(b"EXT4-fs (sda1): Remounting filesystem read-only"));
    assert_eq!(
        found[0].to_string(),
        "the file system on sda1 was remounted read-only: EXT4-fs (sda1): Remounting filesystem read-only"
    );
}

#[test]
fn raw_records_are_read() {
    let samples = include_str!("../../../../tests/data/kmsg-raw-samples.txt");
    let records: Vec<_> = samples
        .split("%%\n")
        .map(|record| record.lines().filter(|l| !l.starts_with('#')).collect::<Vec<_>>().join("\n"))
        .filter(|record| !record.is_empty())
        .collect();
    assert_eq!(records.len(), 30);
    for record in &records {
        assert!(Record::parse(record.as_bytes()).is_ok(), "{record}");
    }
}

proptest::proptest! {
    #[test]
    fn classify_never_panics(bytes: Vec<u8>) {
        for finding in classify(&Record::bare(&bytes)) {
            let _ = finding.to_string();
        }
    }

    #[test]
    fn a_line_with_anything_in_front_is_no_fault(front in "[a-z]{1,6}[0-9]{0,2}: ", row in 0..306_usize) {
        let (_, line) = corpus().nth(row).unwrap();
        // What another driver says about itself stays its own, whatever it quotes.
        let conditions = |line: &str| {
            classify(&Record::bare(line.as_bytes())).iter().filter_map(|f| f.detail.condition()).count()
        };
        proptest::prop_assert_eq!(conditions(&format!("{front}{line}")), 0);
    }
}

/// The condition and event names of a line, sorted.
fn names(line: &str) -> Vec<String> {
    let mut names: Vec<String> = classify(&Record::bare(line.as_bytes()))
        .iter()
        .flat_map(|finding| {
            let condition = finding.detail.condition().map(|condition| condition.row().name);
            condition.into_iter().chain(finding.detail.event().map(|event| event.row().name))
        })
        .map(ToString::to_string)
        .collect();
    names.sort();
    names
}

/// Expected names, sorted, and line of each row.
fn corpus() -> impl Iterator<Item = (Vec<String>, String)> {
    include_str!("../../../../tests/data/kmsg-corpus.tsv").lines().skip(1).map(|row| {
        let mut fields = row.split('\t');
        let expected = fields.next().unwrap();
        let mut want: Vec<String> =
            expected.split(',').filter(|name| *name != "NONE").map(ToString::to_string).collect();
        want.sort();
        (want, fields.next().unwrap().to_string())
    })
}
