//! Where the workspace is, what its members are called, and where builds go.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::command;

/// Makes the workspace's root the current directory, so that every path is relative to it.
pub(crate) fn enter() -> Result<()> {
    let manifest = env::var_os("CARGO_MANIFEST_DIR")
        .context("CARGO_MANIFEST_DIR is not set: start this program by `cargo ci <task>`")?;
    let root = Path::new(&manifest).parent().context("ci/ has no parent folder")?;
    env::set_current_dir(root).with_context(|| format!("cannot enter {}", root.display()))
}

/// What cargo says about the workspace.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Workspace {
    /// The names of all members, in alphabetical order.
    pub(crate) members: Vec<String>,
    /// The folder of all build output.
    pub(crate) target: PathBuf,
}

impl Workspace {
    /// Asks cargo about the workspace in the current directory.
    pub(crate) fn load() -> Result<Self> {
        let mut metadata = command::cargo("metadata --no-deps --format-version 1 --locked");
        Self::parse(&command::output(&mut metadata)?)
    }

    fn parse(metadata: &str) -> Result<Self> {
        let metadata: Value =
            serde_json::from_str(metadata).context("cargo metadata printed no JSON")?;
        let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
        let mut members: Vec<String> = packages
            .iter()
            .filter_map(|package| package["name"].as_str().map(str::to_owned))
            .collect();
        members.sort();
        let target = metadata["target_directory"]
            .as_str()
            .context("cargo metadata has no target_directory")?;
        Ok(Self { members, target: target.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_sorted_by_name() {
        let metadata = r#"{"packages": [{"name": "b"}, {"name": "a"}], "target_directory": "/t"}"#;
        let want = Workspace { members: vec!["a".into(), "b".into()], target: "/t".into() };
        assert_eq!(Workspace::parse(metadata).unwrap(), want);
    }

    #[test]
    fn what_is_no_metadata_is_an_error() {
        assert!(Workspace::parse("{}").is_err());
        assert!(Workspace::parse("warning").is_err());
    }
}
