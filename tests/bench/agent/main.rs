//! Measures the shipped agent on the machine's own kernel log, beside node-problem-detector.
//!
//! Needs root, and writes tens of thousands of records to `/dev/kmsg`, marked as a user's. Ends
//! with an error if a median passes its limit: then measure again on an idle machine first.

mod cluster;
mod instructions;
mod kmsg;
mod process;
mod report;
mod running;
mod stopwatch;

use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::{Parser, Subcommand, ValueEnum};

use report::Report;

/// Measures the agent that is shipped.
#[derive(Debug, Parser)]
struct Arguments {
    /// How the figures are written.
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
    /// What is measured.
    #[arg(long, value_enum, default_value_t = Part::All)]
    part: Part,
    /// How often the agent is started to time its first finding.
    #[arg(long, default_value_t = 20)]
    starts: usize,
    /// How many faults are timed until the API server has them.
    #[arg(long, default_value_t = 200)]
    faults: usize,
    /// How often each mix of records is written.
    #[arg(long, default_value_t = 5)]
    repeats: usize,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Takes records in one way and ends: what runs while instructions are counted.
    #[command(hide = true)]
    Take {
        /// Which way.
        #[arg(value_enum)]
        way: instructions::Way,
        /// How many records.
        records: usize,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// Rows of JSON, one for each figure.
    Json,
    /// For people.
    Table,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The running agent: CPU, memory, start, idling, size.
    Agent,
    /// Everything.
    All,
    /// The running agent with an API server: from a fault to its condition, and at rest.
    Cluster,
    /// Instructions for one record in the core.
    Instructions,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("agent-bench: {problem:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let arguments = Arguments::parse();
    if let Some(Command::Take { way, records }) = arguments.command {
        return way.take(records);
    }
    let mut report = Report::default();
    let wants = |part| arguments.part == part || arguments.part == Part::All;
    if wants(Part::Instructions) {
        instructions::measure(&mut report)?;
    }
    if wants(Part::Agent) {
        running::measure(&mut report, arguments.repeats, arguments.starts)?;
    }
    if wants(Part::Cluster) {
        cluster::measure(&mut report, &running::binary()?, arguments.faults)?;
    }
    match arguments.output {
        Output::Json => println!("{}", report.json()),
        Output::Table => print!("{report}"),
    }
    let passed = report.limits_passed();
    ensure!(passed.is_empty(), "above the limit: {}", passed.join(", "));
    Ok(())
}
