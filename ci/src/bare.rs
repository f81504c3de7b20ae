//! Shows that the core builds without std and alloc, and that it cannot panic.

use std::process::Stdio;

use anyhow::{Result, bail, ensure};

use crate::command;
use crate::stage::Stage;
use crate::tools::Need;

/// A target that has no std at all.
const TARGET: &str = "thumbv7em-none-eabi";

/// The symbol that only a reachable panic refers to.
const PANIC_SYMBOL: &str = "fettle_core_can_panic";

/// Builds the proof with a panic in it, beside the builds without one.
const SEEDED: &str = "build -p fettle-proof --profile proof --locked \
    --features seeded-panic --target-dir target/proof-seeded";

/// Makes the stages `bare` and `proof`.
pub(crate) fn stages() -> Vec<Stage> {
    vec![bare(), proof()]
}

fn bare() -> Stage {
    Stage::function("bare", &format!("cargo build -p fettle-core --target {TARGET}"), |_| {
        let build = format!("build -p fettle-core --target {TARGET} --locked");
        command::run(&mut command::cargo(&build))?;
        let tree = "tree -p fettle-core -e normal,no-proc-macro,features --locked --prefix none";
        let found = forbidden_features(&command::output(&mut command::cargo(tree))?);
        ensure!(found.is_empty(), "the core's dependencies turn on {}", found.join(", "));
        Ok(())
    })
    .needs(&[Need::Target(TARGET)])
    .advice("Turn off that dependency's default features; the core has no std and no alloc.")
}

/// Returns the lines of `cargo tree` that turn on std or alloc.
fn forbidden_features(tree: &str) -> Vec<String> {
    let mut found: Vec<String> = tree
        .lines()
        .map(|line| line.trim_end_matches(" (*)"))
        .filter(|line| [" feature \"std\"", " feature \"alloc\""].iter().any(|f| line.ends_with(f)))
        .map(str::to_owned)
        .collect();
    found.sort();
    found.dedup();
    found
}

fn proof() -> Stage {
    Stage::function(
        "proof",
        "cargo build -p fettle-proof --profile proof, then with a panic",
        |_| {
            let build = "build -p fettle-proof --profile proof --locked";
            command::run(&mut command::cargo(build))?;
            let mut seeded = command::cargo(SEEDED);
            let output = seeded.env("LC_ALL", "C").stdout(Stdio::null()).output()?;
            judge_seeded(output.status.success(), &String::from_utf8_lossy(&output.stderr))
        },
    )
    .advice("Find the panic: the linker's message names the function that refers to it.")
}

/// Checks that the build with a panic failed, and for no other reason.
fn judge_seeded(linked: bool, stderr: &str) -> Result<()> {
    if linked {
        bail!("`cargo {SEEDED}` linked in spite of its panic: the proof proves nothing");
    }
    let names_symbol = |line: &str| line.contains("undefined") && line.contains(PANIC_SYMBOL);
    if !stderr.lines().any(names_symbol) {
        bail!("`cargo {SEEDED}` failed, but not for want of {PANIC_SYMBOL}:\n{stderr}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn std_and_alloc_are_found_once_each() {
        let tree = "serde v1.0.0\nserde feature \"std\"\nserde feature \"std\" (*)\n\
                    heapless feature \"serde\"\npostcard feature \"alloc\"\n";
        let want = ["postcard feature \"alloc\"", "serde feature \"std\""];
        assert_eq!(forbidden_features(tree), want);
        assert!(forbidden_features("serde feature \"derive\"\n").is_empty());
    }

    #[test]
    fn only_the_missing_symbol_counts_as_proof() {
        let undefined = "rust-lld: error: undefined symbol: fettle_core_can_panic";
        assert!(judge_seeded(false, undefined).is_ok());
        assert!(judge_seeded(true, "").is_err());
        assert!(judge_seeded(false, "error: could not find `x`").is_err());
        assert!(judge_seeded(false, "warning: fettle_core_can_panic is unused").is_err());
    }
}
