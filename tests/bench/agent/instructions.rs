//! Instructions for one record, counted by callgrind: the same on a busy machine as on an idle one.

use core::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs};

use anyhow::{Context as _, Result, ensure};
use clap::ValueEnum;
use fettle_core::node::agent::{Agent, Input, Settings};
use fettle_core::node::rules::{classify, scan};
use fettle_core::time::Instant;
use fettle_core::wire::kmsg::Record;
use fettle_tests::lines;

use crate::report::{Figure, Report, Unit};

/// What is done with records, and with which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Way {
    /// The automaton alone, over quiet records.
    ScanQuiet,
    /// Parse and classify quiet records.
    ClassifyQuiet,
    /// Parse and classify records that report a fault.
    ClassifyFaults,
    /// Step the agent with quiet records.
    StepQuiet,
    /// Step the agent with records that report a fault.
    StepFaults,
}

/// Counts the instructions of every way and adds them to `report`.
pub(crate) fn measure(report: &mut Report) -> Result<()> {
    eprintln!("instructions for one record, by callgrind (the core as this program is built):");
    for way in Way::value_variants() {
        let setup = count(*way, 0)?;
        let all = count(*way, way.records())?;
        let records = u64::try_from(way.records())?;
        let each = all.saturating_sub(setup) / records;
        report.add(Figure::new(way.name(), Unit::Count, vec![each]));
    }
    Ok(())
}

impl Way {
    /// Takes `records` records; the work before the first one does not depend on how many.
    pub(crate) fn take(self, records: usize) -> Result<()> {
        ensure!(records <= RECORDS_MAX, "at most {RECORDS_MAX} records");
        let all: Vec<String> = self.lines().zip(0..).map(|(l, at)| lines::record(at, l)).collect();
        let mut agent = Agent::new(Settings::default());
        for record in &all[..records] {
            let bytes = black_box(record.as_bytes());
            match self {
                Self::ScanQuiet => {
                    black_box(scan(bytes));
                }
                Self::ClassifyFaults | Self::ClassifyQuiet => {
                    black_box(Record::parse(bytes).map(|record| classify(&record)).is_ok());
                }
                Self::StepFaults | Self::StepQuiet => {
                    black_box(&agent.step(Instant::default(), Input::Record(bytes)));
                }
            }
        }
        Ok(())
    }

    fn lines(self) -> impl Iterator<Item = &'static str> {
        let matching_pct = if self.is_quiet() { 0 } else { 100 };
        lines::mixed(RECORDS_MAX, matching_pct)
    }

    fn records(self) -> usize {
        if self.is_quiet() { RECORDS_MAX } else { RECORDS_MAX / 10 }
    }

    fn is_quiet(self) -> bool {
        matches!(self, Self::ClassifyQuiet | Self::ScanQuiet | Self::StepQuiet)
    }

    fn name(self) -> &'static str {
        match self {
            Self::ClassifyFaults => "instructions: parse and classify, matching",
            Self::ClassifyQuiet => "instructions: parse and classify, no match",
            Self::ScanQuiet => "instructions: automaton, no match",
            Self::StepFaults => "instructions: step, matching",
            Self::StepQuiet => "instructions: step, no match",
        }
    }
}

/// Runs this program under callgrind and returns how many instructions it took.
fn count(way: Way, records: usize) -> Result<u64> {
    let folder = tempfile::tempdir()?;
    let profile = folder.path().join("profile");
    let way = way.to_possible_value().context("every way has a name")?;
    let run = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet"])
        .arg(format!("--callgrind-out-file={}", profile.display()))
        .arg(env::current_exe()?)
        .args(["take", way.get_name(), &records.to_string()])
        .stdin(Stdio::null())
        .output()
        .context("cannot run valgrind")?;
    let said = String::from_utf8_lossy(&run.stderr);
    ensure!(run.status.success(), "valgrind ended with {}: {said}", run.status);
    total(&profile)
}

fn total(profile: &Path) -> Result<u64> {
    let text = fs::read_to_string(profile).context("cannot read callgrind's profile")?;
    let total = text.lines().find_map(|line| line.strip_prefix("summary: "));
    Ok(total.context("callgrind's profile has no summary")?.trim().parse()?)
}

/// Most records that are taken in one run.
const RECORDS_MAX: usize = 10_000;
