//! `clear`: says to the running agent that the fault behind a held condition is over.

use std::env;
use std::io;
use std::path::PathBuf;

use fettle_core::catalog::{Clear, ConditionType};

use crate::store::clearing::{self, Clearing};

/// What to clear.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The condition
    #[arg(value_name = "CONDITION", value_parser = held_condition)]
    pub condition: ConditionType,
    /// Where the running agent keeps its state
    #[arg(long, default_value = "/run/fettle", value_name = "DIR")]
    pub state_dir: PathBuf,
}

/// Why the request cannot be left.
#[derive(Debug, thiserror::Error)]
#[error("cannot leave the request in {directory}; run this as root, on the node")]
pub struct ClearError {
    directory: PathBuf,
    #[source]
    source: io::Error,
}

/// Leaves the request; the agent takes it, clears the condition and says who asked.
///
/// # Errors
///
/// Says where the request cannot be left.
pub fn run(args: &Args) -> Result<(), ClearError> {
    let clearing = Clearing { condition: args.condition, by: caller() };
    clearing::leave(&args.state_dir, &clearing)
        .map_err(|source| ClearError { directory: args.state_dir.clone(), source })
}

/// Who asks: the person behind `sudo` rather than root.
fn caller() -> String {
    let name = ["SUDO_USER", "LOGNAME", "USER"].iter().find_map(|name| env::var(name).ok());
    let uid = rustix::process::getuid().as_raw();
    match name {
        Some(name) => format!("{name} (uid {uid})"),
        None => format!("uid {uid}"),
    }
}

fn held_condition(name: &str) -> Result<ConditionType, String> {
    let condition = ConditionType::by_name(name)
        .ok_or_else(|| format!("there is no condition {name}; `catalog` lists them"))?;
    match condition.row().clear {
        Clear::ByHand | Clear::Held | Clear::Proof => Ok(condition),
        // A drive that was taken out on purpose never comes back for a good run.
        Clear::NextGoodRun if condition == ConditionType::DisksFailure => Ok(condition),
        Clear::NextGoodRun => {
            Err(format!("{name} is not held: it clears at the next good run of its check"))
        }
    }
}
