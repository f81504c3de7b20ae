//! `replay`: does again what a journal says that an agent did.

use std::io::{self, Write};
use std::path::PathBuf;

use log::warn;

use crate::errors::chain;
use crate::publish::stdout::Format;
use crate::publish::stdout::Printer;
use crate::store::journal::{JournalError, JournalReader};

/// What to replay.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A journal that `run --journal` wrote
    pub file: PathBuf,
}

/// Why a journal cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The journal cannot be read.
    #[error("cannot replay")]
    Journal(#[source] JournalError),
    /// The output cannot be written.
    #[error("cannot write to standard output")]
    Write(#[source] io::Error),
}

/// Feeds every step of the journal to a core and prints what comes out, as `run` did.
///
/// # Errors
///
/// Says what cannot be read or written.
pub fn run(args: &Args, out: &mut impl Write, format: Format) -> Result<(), ReplayError> {
    let (mut reader, mut agent) = JournalReader::open(&args.file).map_err(ReplayError::Journal)?;
    let mut printer = Printer::new(out, format);
    loop {
        let step = match reader.next_step() {
            Ok(Some(step)) => step,
            Ok(None) => break,
            Err(problem) => {
                warn!("{}", chain(&problem));
                break;
            }
        };
        // The journal holds the answers to what the core asks for here.
        let _ = printer.step(&mut agent, step).map_err(ReplayError::Write)?;
    }
    printer.flush().map_err(ReplayError::Write)
}
