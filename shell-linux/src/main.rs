//! The node agent's binary: arguments in, exit code out.

use std::io::{self, BufWriter, Write as _};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser, Subcommand, ValueEnum};
use fettle_agent::cmd::{catalog, check, classify, clear, config, replay, report};
use fettle_agent::config::ConfigFile;
use fettle_agent::publish::logger;
use fettle_agent::publish::stdout::Format;
use fettle_agent::{run, table};
use fettle_core::catalog::{CONDITIONS, EVENTS};
use tokio::runtime::Runtime;

/// Finds what is wrong with this node, and says so.
#[derive(Debug, Parser)]
#[command(name = "fettle-agent", version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// How to print; `classify` and `report` print tables on a terminal and JSON elsewhere,
    /// `catalog`, `check` and `config` print text, `run` and `replay` print JSON unless told
    /// otherwise
    #[arg(short, long, global = true, value_enum)]
    output: Option<Output>,
    /// How much the agent says about itself on standard error
    #[arg(long, global = true, default_value = "info", value_name = "LEVEL")]
    log_level: log::LevelFilter,
}

/// How a command prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// JSON, for machines
    Json,
    /// A runbook; of `catalog` alone
    Markdown,
    /// Aligned text, for people
    Table,
}

impl Arguments {
    /// Fills in the default command.
    fn or_run(mut self) -> Self {
        let run = || DefaultRun::parse_from(["fettle-agent"]).args;
        self.command.get_or_insert_with(|| Command::Run(run()));
        self
    }
}

/// `run` without a flag.
#[derive(Debug, Parser)]
struct DefaultRun {
    #[command(flatten)]
    args: run::Args,
}

impl Output {
    /// Returns the format that every command has; Markdown is none.
    const fn format(self) -> Option<Format> {
        match self {
            Self::Json => Some(Format::Json),
            Self::Markdown => None,
            Self::Table => Some(Format::Table),
        }
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
enum Command {
    /// Follow the kernel log, run the checks, and write to the Node (the default)
    Run(run::Args),
    /// Run every check or one, once: exit code 1 is a problem, 2 that nobody can tell
    Check(check::Args),
    /// Print the documents of the health report
    Report(report::Args),
    /// Print what each kernel line of a file would raise
    Classify(classify::Args),
    /// Print every condition and event
    Catalog,
    /// Look at a configuration file
    Config(config::Args),
    /// Say to the running agent that the fault behind a held condition is over
    Clear(clear::Args),
    /// Do again what a journal says that an agent did
    Replay(replay::Args),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse().or_run();
    logger::init(arguments.log_level);
    let watches = matches!(arguments.command, Some(Command::Run(_)));
    match perform(arguments) {
        Ok(code) => code,
        // Whoever read the output has seen enough; but a watch that ends is not a success.
        Err(problem) if !watches && is_broken_pipe(&problem) => ExitCode::SUCCESS,
        Err(problem) => {
            let _ = writeln!(io::stderr(), "fettle-agent: {problem:#}");
            ExitCode::FAILURE
        }
    }
}

fn perform(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let mut out = BufWriter::new(io::stdout().lock());
    let is_markdown = arguments.output == Some(Output::Markdown);
    if is_markdown && !matches!(arguments.command, Some(Command::Catalog)) {
        no_markdown();
    }
    let output = arguments.output.and_then(Output::format);
    match arguments.command {
        None => {}
        Some(Command::Run(args)) => {
            let runtime = runtime()?;
            let ran = runtime.block_on(run::run(args, &mut out, output.unwrap_or(Format::Json)));
            // A look-up of the API server's name that hangs holds up nothing.
            runtime.shutdown_background();
            ran?;
        }
        Some(Command::Check(args)) => {
            let format = output.unwrap_or(Format::Table);
            let config = ConfigFile::new(args.config.clone()).load()?;
            let found = runtime()?.block_on(check::run(&args, &config, &mut out, format))?;
            out.flush()?;
            return Ok(exit_code(found));
        }
        Some(Command::Report(args)) => {
            let config = ConfigFile::new(args.config.clone()).load()?;
            let format = output.unwrap_or_else(for_reader);
            runtime()?.block_on(report::run(&args, &config, &mut out, format))?;
        }
        Some(Command::Classify(args)) => {
            classify::run(&args, &mut out, output.unwrap_or_else(for_reader))?;
        }
        Some(Command::Clear(args)) => clear::run(&args)?,
        Some(Command::Catalog) if is_markdown => {
            catalog::markdown::write(&mut out, &CONDITIONS, &EVENTS)?;
        }
        Some(Command::Catalog) => catalog::run(&mut out, output.unwrap_or(Format::Table))?,
        Some(Command::Config(args)) => {
            let format = output.unwrap_or(Format::Table);
            let is_ok = config::run(args, &mut out, &mut io::stderr(), format)?;
            out.flush()?;
            return Ok(if is_ok { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        Some(Command::Replay(args)) => {
            replay::run(&args, &mut out, output.unwrap_or(Format::Json))?
        }
    }
    out.flush().context("cannot write to standard output")?;
    Ok(ExitCode::SUCCESS)
}

/// Ends as for any wrong argument.
fn no_markdown() -> ! {
    let problem = "only `catalog` prints Markdown";
    Arguments::command().error(ErrorKind::ValueValidation, problem).exit()
}

fn runtime() -> anyhow::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the event loop")
}

fn exit_code(found: check::Finding) -> ExitCode {
    match found {
        check::Finding::Problem => ExitCode::from(1),
        check::Finding::Unknown => ExitCode::from(2),
        check::Finding::Healthy => ExitCode::SUCCESS,
    }
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
