//! The newest kernel records that mean something, for the evidence of a fault.

use std::collections::VecDeque;

use fettle_core::bounds::{EVIDENCE_MAX, EVIDENCE_RECORDS_MAX};
use fettle_core::catalog::CONDITIONS;
use fettle_core::journal::Stamp;
use fettle_core::node::agent::Agent;
use fettle_core::node::report::{ConditionRow, Header, RecordRow, write_evidence};
use fettle_core::wire::kmsg::Record;

use crate::clock;

/// The newest records; the oldest makes room.
#[derive(Debug, Default)]
pub(super) struct EvidenceRing {
    records: VecDeque<Matched>,
}

#[derive(Debug)]
struct Matched {
    sequence: u64,
    log_us: u64,
    text: String,
}

impl EvidenceRing {
    /// Keeps a record as `/dev/kmsg` gave it.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let Ok(record) = Record::parse(bytes) else {
            return;
        };
        if self.records.len() >= EVIDENCE_RECORDS_MAX {
            self.records.pop_front();
        }
        self.records.push_back(Matched {
            sequence: record.sequence,
            log_us: record.timestamp_us,
            text: String::from_utf8_lossy(record.text).into_owned(),
        });
    }

    /// Writes the evidence as JSON.
    pub(super) fn write(&self, stamp: Stamp, agent: &Agent, header: &Header) -> String {
        let standing =
            CONDITIONS.iter().filter_map(|row| Some((row, agent.condition(row.condition)?)));
        let standing: Vec<_> =
            standing.map(|(row, held)| (row, held, held.verdict.status.to_string())).collect();
        // What is wrong goes first: that is what the evidence is for.
        let (wrong, well): (Vec<_>, Vec<_>) =
            standing.iter().partition(|(_, _, status)| status == "True");
        let conditions = wrong.into_iter().chain(well).map(|(row, held, status)| ConditionRow {
            name: row.name,
            status,
            reason: held.verdict.reason.name(row.condition),
            message: held.verdict.message.as_str(),
            since: Some(clock::second(clock::wall_of(stamp, held.since))),
        });
        let records = self.records.iter().rev().map(|record| RecordRow {
            at: Some(clock::second(clock::wall_of_log(stamp, record.log_us))),
            sequence: record.sequence,
            text: &record.text,
        });
        let mut out = vec![0; EVIDENCE_MAX];
        let written = write_evidence(&mut out, header, conditions, records);
        out.truncate(written.bytes);
        String::from_utf8(out).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use fettle_core::node::agent::{Input, Settings};
    use fettle_core::node::report::Role;

    use fettle_core::time::Timestamp;

    use super::*;

    #[test]
    fn the_newest_records_stand_first_beside_what_is_wrong() {
        let mut agent = Agent::new(Settings::default());
        let stamp = Stamp::default();
        let _ = agent.step(stamp.at, Input::LogCaughtUp);
        let mut ring = EvidenceRing::default();
        for sequence in 0..300 {
            let record = format!(
                "3,{sequence},7,-;device-mapper: verity: 8:1: data block {sequence} is corrupted\n"
            );
            let _ = agent.step(stamp.at, Input::Record(record.as_bytes()));
            ring.push(record.as_bytes());
        }
        ring.push(b"no record");
        let header = Header { updated_at: Timestamp::from_unix_secs(7), role: Role::Worker };
        let text = ring.write(stamp, &agent, &header);
        assert!(text.len() <= EVIDENCE_MAX);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["conditions"][0]["type"], "VerityCorruption");
        assert_eq!(value["records"][0]["sequence"], 299);
        let shown = value["records"].as_array().unwrap().len();
        assert_eq!(shown + usize::try_from(value["omitted"].as_u64().unwrap()).unwrap(), 200);
    }
}
