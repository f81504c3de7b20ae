//! Measures the core by benchmarks, and the agent by the binary that is shipped.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::stage::{Session, Stage};
use crate::tools::{Need, Tools};
use crate::workspace::Workspace;
use crate::{apiserver, command, image};

const MEASURE_AGAIN: &str =
    "Read the figure that passed its limit; measure again on an idle machine.";

/// Tells the benchmarks where the shipped binary is.
const BINARY_VARIABLE: &str = "FETTLE_DIST_BINARY";

/// Makes the stages `dist`, `bench` and `agent-bench`.
pub(crate) fn stages() -> Result<Vec<Stage>> {
    let binary = image::binary(&Workspace::load()?.target, image::AMD64);
    Ok(vec![
        dist(binary.clone()),
        measure("bench", "bench -p fettle-tests --locked", binary.clone()),
        agent_bench(binary),
    ])
}

fn dist(binary: PathBuf) -> Stage {
    let about = format!("the shipped binary for {}", image::AMD64);
    Stage::function("dist", &about, move |session| {
        command::run(&mut image::build(&[image::AMD64])?)?;
        note_size(session, &binary)
    })
    .needs(&image::needs())
    .advice("Mend the build; what is shipped must link statically.")
}

/// Measures the shipped binary, also with a real API server.
fn agent_bench(binary: PathBuf) -> Stage {
    const ARGUMENTS: &str = "run --release -p fettle-tests --locked --bin agent-bench";
    Stage::function("agent-bench", &format!("{BINARY_VARIABLE}=... cargo {ARGUMENTS}"), move |_| {
        let mut command = command::cargo(ARGUMENTS);
        command.env(BINARY_VARIABLE, &binary);
        apiserver::provide(&mut Tools::default())?.name_to(&mut command);
        command::run(&mut command)
    })
    .needs(&[Need::Program("valgrind"), Need::Program("setpriv"), Need::ApiServer])
    .advice(MEASURE_AGAIN)
}

fn note_size(session: &mut Session, binary: &Path) -> Result<()> {
    let file = fs::metadata(binary).with_context(|| format!("cannot see {}", binary.display()))?;
    let kib = file.len().div_ceil(1024);
    session.notes.push(format!("shipped binary: {kib} KiB, {}", binary.display()));
    Ok(())
}

fn measure(name: &str, arguments: &'static str, binary: PathBuf) -> Stage {
    Stage::function(name, &format!("{BINARY_VARIABLE}=... cargo {arguments}"), move |_| {
        command::run(command::cargo(arguments).env(BINARY_VARIABLE, &binary))
    })
    .advice(MEASURE_AGAIN)
}
