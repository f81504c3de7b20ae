//! Builds for musl on every architecture with one C compiler: `cargo zigbuild`.
//!
//! ring is C and assembly, so each target needs a compiler of its own; zig is one for all of them,
//! and comes as two Python packages.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command};

use anyhow::{Context as _, Result};

use crate::command;
use crate::stage::say;
use crate::tools;

/// The packages, as pip knows them; the versions are part of what a digest depends on.
const PACKAGES: [&str; 2] = ["cargo-zigbuild==0.24.1", "ziglang==0.17.1"];

/// Returns `cargo zigbuild <arguments>`.
///
/// What is built names neither the builder's home nor the crates' folder, so that the same sources
/// give the same bytes elsewhere.
///
/// # Errors
///
/// No folder holds the tools, or cargo's own cannot be found.
pub(crate) fn build(arguments: &str) -> Result<Command> {
    let folder = folder()?;
    let mut build = Command::new(program(&folder));
    build.arg("zigbuild").args(arguments.split_whitespace());
    build.env("CARGO_ZIGBUILD_ZIG_PATH", folder.join("ziglang/zig"));
    build.env("ZIG_GLOBAL_CACHE_DIR", folder.join("cache"));
    build.env("RUSTFLAGS", format!("--remap-path-prefix={}=/cargo", cargo_home()?.display()));
    Ok(build)
}

/// Sees to it that both packages are in the cache.
///
/// # Errors
///
/// pip cannot install them.
pub(crate) fn provide() -> Result<()> {
    let folder = folder()?;
    if program(&folder).is_file() {
        return Ok(());
    }
    say(&format!("installing {} into {}: once", PACKAGES.join(" and "), folder.display()));
    // What was interrupted is not taken for what is complete.
    let partial = folder.with_extension(process::id().to_string());
    let mut pip = command::parse("python3 -m pip install -q --no-warn-script-location --target");
    command::run(pip.arg(&partial).args(PACKAGES))?;
    fs::rename(&partial, &folder).with_context(|| format!("cannot make {}", folder.display()))
}

fn program(folder: &Path) -> PathBuf {
    folder.join("bin/cargo-zigbuild")
}

/// Named after the versions, so that a new one is installed beside the old.
fn folder() -> Result<PathBuf> {
    Ok(tools::tools_folder()?.join(PACKAGES.join("-").replace("==", "-").replace('.', "_")))
}

fn cargo_home() -> Result<PathBuf> {
    env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")))
        .context("neither CARGO_HOME nor HOME is set: nobody knows where the crates are")
}
