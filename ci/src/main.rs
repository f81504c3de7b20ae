//! Every task of development and CI: `cargo ci <task>`.
//!
//! Does not decide what is right: it runs what does, and says what failed,
//! with which command, and what to do.

#![forbid(unsafe_code)]

mod apiserver;
mod bare;
mod bench;
mod command;
mod demo;
mod fuzz;
mod image;
mod stage;
mod test;
mod tidy;
mod tools;
mod workspace;
mod zig;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Runs one task of development or CI.
#[derive(Debug, Parser)]
#[command(name = "cargo ci", bin_name = "cargo ci")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Builds the Kubernetes API server of the tests, and prints its folder as the last line.
    Apiserver,
    /// Shows that the core builds without std and cannot panic.
    Bare,
    /// Measures the agent: benchmarks, then the shipped binary's size, memory and time.
    Bench,
    /// Builds the agent and runs it on this machine until Ctrl-C.
    Demo(demo::Arguments),
    /// Searches for inputs that break a parser or a machine.
    Fuzz(fuzz::Arguments),
    /// Builds the agent for amd64 and arm64, and packs it as one OCI image.
    Image,
    /// Runs clippy on every crate; a warning is a failure.
    Lint,
    /// Runs every check and every test.
    Test(test::Arguments),
    /// Checks the rules that no compiler knows, and lists what is large.
    Tidy,
}

fn main() -> ExitCode {
    run(Arguments::parse().task).unwrap_or_else(|error| {
        eprintln!("cargo ci: {error:#}");
        ExitCode::FAILURE
    })
}

fn run(task: Task) -> Result<ExitCode> {
    workspace::enter()?;
    match task {
        Task::Apiserver => apiserver::run(),
        Task::Bare => stage::run(bare::stages()),
        Task::Bench => stage::run(bench::stages()?),
        Task::Demo(arguments) => demo::run(&arguments),
        Task::Fuzz(arguments) => stage::run(fuzz::stages(&arguments)?),
        Task::Image => stage::run(vec![image::stage()]),
        Task::Lint => stage::run(vec![test::lint()]),
        Task::Test(arguments) => test::run(&arguments),
        Task::Tidy => stage::run(vec![tidy::stage()]),
    }
}
