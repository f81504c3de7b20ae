//! What is installed, tried out: the image, the systemd unit and the alert rules.
//!
//! `cargo ci test`, stage `deploy`, builds the image and names it in `FETTLE_IMAGE`.

mod alerts;
mod container;
mod image;
mod unit;

use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns a file or folder of what is installed.
fn deployed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../shell-linux/deploy").join(name)
}

/// Runs `command` and returns whether it succeeded, and what it said.
fn run(command: &mut Command) -> (bool, String) {
    let output = command.output().unwrap_or_else(|problem| panic!("{command:?}: {problem}"));
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}
