//! Hardware errors of the previous boot that firmware recorded and the kernel log does not show.
//!
//! `bert_print_all` in `drivers/acpi/apei/bert.c`.

use serde::{Deserialize, Serialize};

use crate::node::reading::BootError;
use crate::node::rules::{Detail, Finding, Object};
use crate::text::Text;
use crate::wire::cper::Severity;
use crate::wire::kmsg::Record;

/// What firmware's table BERT says of the previous boot, beside what the kernel log says of it.
///
/// The kernel prints short tables and passes over long ones; either way it clears each block's
/// status. So a cleared block counts only if the log says that this boot found records: memory
/// that firmware never wrote anew looks the same. An error is told by its severity, since nothing
/// says which of several blocks a line of the log was about.
///
/// # Invariants
///
/// * `once_per_boot`: what the table says is told once, whatever is read later.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootErrors {
    /// Whether the kernel said that the table holds records of the previous boot.
    announced: bool,
    /// Whether all of the table has been read.
    complete: bool,
    /// Whether it has been told.
    told: bool,
    severities: [OfSeverity; SEVERITIES.len()],
}

/// What was seen of one severity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct OfSeverity {
    /// A block whose status is cleared.
    cleared: bool,
    /// A block whose status is not.
    current: bool,
    /// A record in the kernel log.
    logged: bool,
}

/// The findings of one table: one for each severity that matters.
pub type Findings = heapless::Vec<Finding, { SEVERITIES.len() }>;

impl BootErrors {
    /// Notes whether a record of the kernel log says that there are errors of the previous boot.
    pub fn note_record(&mut self, record: &Record<'_>) {
        self.announced |= ANNOUNCEMENTS.iter().any(|words| record.text.starts_with(words));
    }

    /// Notes that the kernel log shows an error; records without a number are the table's.
    pub fn note_finding(&mut self, finding: &Finding) {
        if let Detail::Cper { record: None, severity } = finding.detail
            && let Some(of_severity) = self.of(severity)
        {
            of_severity.logged = true;
        }
    }

    /// Notes an error that the table holds.
    pub fn note_error(&mut self, error: BootError) {
        if let Some(of_severity) = self.of(error.severity) {
            of_severity.cleared |= error.cleared;
            of_severity.current |= !error.cleared;
        }
    }

    /// Notes that all of the table has been read.
    pub fn note_end(&mut self) {
        self.complete = true;
    }

    /// Returns, once, what the log does not show; the caller has read all of the log.
    pub fn take_untold(&mut self) -> Findings {
        let mut findings = Findings::new();
        if !self.complete || self.told {
            return findings;
        }
        self.told = true;
        for (severity, of) in SEVERITIES.into_iter().zip(&self.severities) {
            if !of.logged && (of.current || (of.cleared && self.announced)) {
                // There is room for each severity.
                let _ = findings.push(finding(severity));
            }
        }
        findings
    }

    fn of(&mut self, severity: Severity) -> Option<&mut OfSeverity> {
        let at = SEVERITIES.into_iter().position(|known| known == severity)?;
        self.severities.get_mut(at)
    }
}

fn finding(severity: Severity) -> Finding {
    Finding {
        object: Object::from_bytes(b"previous boot"),
        detail: Detail::Cper { record: None, severity },
        line: Text::from_bytes(b"read from firmware's table (BERT), about the previous boot"),
        timestamp_us: 0,
    }
}

/// The severities that mean something, worst first.
const SEVERITIES: [Severity; 3] = [Severity::Fatal, Severity::Recoverable, Severity::Corrected];

/// What the kernel prints of a table that holds records; the last wording is of newer kernels.
const ANNOUNCEMENTS: [&[u8]; 4] = [
    b"BERT: Error records from previous boot",
    b"BERT: Max print length exceeded",
    b"BERT: Skipped ",
    b"BERT: [Hardware Error]: Skipped ",
];

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::node::rules::classify;
    use Severity::{Corrected, Fatal, Info, Recoverable};

    #[test]
    fn the_table_tells_what_the_log_does_not() {
        const HEAD: &str = "BERT: Error records from previous boot:";
        const LOGGED: &str = "[Hardware Error]: event severity: fatal";
        const LIVE: &str = "{1}[Hardware Error]: event severity: fatal";
        const LONG: &str = "BERT: Max print length exceeded, table data is available at:";
        const SKIPPED: &str = "BERT: [Hardware Error]: Skipped 3 error records";
        // lines, blocks (severity, cleared), severities that are told
        for (lines, blocks, want) in [
            (&[HEAD, LONG][..], &[(Fatal, true)][..], &[Fatal][..]),
            (&[HEAD, LOGGED], &[(Fatal, true)], &[]),
            (&[HEAD, LIVE], &[(Fatal, true)], &[Fatal]),
            (&[HEAD, LOGGED, SKIPPED], &[(Fatal, true), (Corrected, true)], &[Corrected]),
            (&[SKIPPED], &[(Recoverable, true), (Recoverable, true)], &[Recoverable]),
            (&["BERT: Boot Error Record Table support is disabled."], &[(Fatal, true)], &[]),
            (&[], &[(Fatal, true)], &[]),
            (&[], &[(Corrected, true), (Fatal, false)], &[Fatal]),
            (&[HEAD], &[(Info, true), (Info, false)], &[]),
            (&[HEAD], &[], &[]),
        ] {
            let mut errors = BootErrors::default();
            for line in lines {
                let record = Record::bare(line.as_bytes());
                errors.note_record(&record);
                classify(&record).iter().for_each(|finding| errors.note_finding(finding));
            }
            for &(severity, cleared) in blocks {
                errors.note_error(BootError { severity, cleared });
            }
            assert_eq!(errors.take_untold(), [], "the table may hold more");
            errors.note_end();
            let untold = errors.take_untold();
            let told: Vec<_> = want.iter().copied().map(finding).collect();
            assert_eq!(untold.as_slice(), told, "{lines:?} {blocks:?}");
            assert_eq!(errors.take_untold(), [], "once_per_boot");
        }
    }
}
