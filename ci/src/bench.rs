//! Measures the core by benchmarks, and the agent by the binary that is shipped.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::command;
use crate::stage::{Session, Stage};
use crate::tools::Need;
use crate::workspace::Workspace;

/// The target of the shipped binary: static, without glibc.
const TARGET: &str = "x86_64-unknown-linux-musl";

/// Tells the benchmarks where the shipped binary is.
const BINARY_VARIABLE: &str = "FETTLE_DIST_BINARY";

/// Makes the stages `dist`, `bench` and `agent-bench`.
pub(crate) fn stages() -> Result<Vec<Stage>> {
    let binary = Workspace::load()?.target.join(TARGET).join("dist/fettle-agent");
    Ok(vec![
        dist(binary.clone()),
        measure("bench", "bench -p fettle-tests --locked", binary.clone()),
        measure("agent-bench", "run --release -p fettle-tests --locked --bin agent-bench", binary)
            .needs(&[Need::Program("valgrind")]),
    ])
}

fn dist(binary: PathBuf) -> Stage {
    let build = format!("build --profile dist -p fettle-agent --target {TARGET} --locked");
    Stage::function("dist", &format!("cargo {build}"), move |session| {
        command::run(&mut command::cargo(&build))?;
        note_size(session, &binary)
    })
    .needs(&[Need::Target(TARGET)])
    .advice("Mend the build; what is shipped must link statically, without a C compiler.")
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
    .advice("Read the figure that passed its limit; measure again on an idle machine.")
}
