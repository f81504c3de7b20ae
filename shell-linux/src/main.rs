//! The node agent's binary: arguments in, exit code out.

use std::io::{self, BufWriter, Write as _};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use fettle_agent::cmd::{catalog, classify, replay};
use fettle_agent::publish::logger;
use fettle_agent::publish::stdout::Format;
use fettle_agent::{run, table};

/// Finds what is wrong with this node, and says so.
#[derive(Debug, Parser)]
#[command(name = "fettle-agent", version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// How to print; tables on a terminal and JSON elsewhere, except that `catalog` prints tables
    /// and `run` and `replay` print JSON unless told otherwise
    #[arg(short, long, global = true, value_enum)]
    output: Option<Format>,
    /// How much the agent says about itself on standard error
    #[arg(long, global = true, default_value = "info", value_name = "LEVEL")]
    log_level: log::LevelFilter,
}

/// What to do.
#[derive(Debug, Subcommand)]
enum Command {
    /// Follow the kernel log and print each change
    Run(run::Args),
    /// Print what each kernel line of a file would raise
    Classify(classify::Args),
    /// Print every condition and event
    Catalog,
    /// Do again what a journal says that an agent did
    Replay(replay::Args),
}

/// What to say instead of running against a cluster.
const NO_CLUSTER: &str = "this version knows no cluster: say `run --standalone`";

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    logger::init(arguments.log_level);
    match perform(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read the output has seen enough.
        Err(problem) if is_broken_pipe(&problem) => ExitCode::SUCCESS,
        Err(problem) => {
            let _ = writeln!(io::stderr(), "fettle-agent: {problem:#}");
            ExitCode::FAILURE
        }
    }
}

fn perform(arguments: Arguments) -> anyhow::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    let output = arguments.output;
    match arguments.command {
        None => anyhow::bail!(NO_CLUSTER),
        Some(Command::Run(args)) if !args.standalone => {
            anyhow::bail!(NO_CLUSTER)
        }
        Some(Command::Run(args)) => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.context("cannot start the event loop")?;
            let run = run::run(args, &mut out, output.unwrap_or(Format::Json));
            runtime.block_on(run)?;
        }
        Some(Command::Classify(args)) => {
            classify::run(&args, &mut out, output.unwrap_or_else(for_reader))?;
        }
        Some(Command::Catalog) => catalog::run(&mut out, output.unwrap_or(Format::Table))?,
        Some(Command::Replay(args)) => {
            replay::run(&args, &mut out, output.unwrap_or(Format::Json))?
        }
    }
    out.flush().context("cannot write to standard output")
}

/// A terminal is read by a person, anything else by a machine.
fn for_reader() -> Format {
    if table::is_terminal() { Format::Table } else { Format::Json }
}

fn is_broken_pipe(problem: &anyhow::Error) -> bool {
    problem.chain().any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
            || cause
                .downcast_ref::<serde_json::Error>()
                .is_some_and(|error| error.io_error_kind() == Some(io::ErrorKind::BrokenPipe))
    })
}
