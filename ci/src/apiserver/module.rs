//! The Go module that names the programs: which versions it asks for.

use std::fs;

use anyhow::{Context as _, Result};

/// Where it stands.
pub(super) const FOLDER: &str = "tests/api/server";

/// What the module's `go.mod` says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Module {
    /// All of it.
    pub(super) text: String,
    /// The Go that it needs: 26 of 1.26.0.
    pub(super) go_minor: u32,
    kubernetes: String,
    etcd: String,
}

impl Module {
    /// Reads the module of the workspace in the current directory.
    pub(super) fn read() -> Result<Self> {
        let path = format!("{FOLDER}/go.mod");
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        Self::parse(&text).with_context(|| format!("cannot understand {path}"))
    }

    /// Reads the text of a `go.mod`.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let go = value_of(text, "go").context("it has no line `go 1.N`")?;
        let go_minor = minor(go).with_context(|| format!("`go {go}` is no version 1.N"))?;
        let required = |path: &str| {
            let version = value_of(text, path).and_then(|version| version.strip_prefix('v'));
            version.map(str::to_owned).with_context(|| format!("it requires no {path}"))
        };
        Ok(Self {
            kubernetes: required("k8s.io/kubernetes")?,
            etcd: required("go.etcd.io/etcd/server/v3")?,
            text: text.to_owned(),
            go_minor,
        })
    }

    /// Returns the name of the folder for the programs, which holds their versions.
    pub(super) fn folder_name(&self) -> String {
        format!("apiserver-{}-etcd-{}", self.kubernetes, self.etcd)
    }

    /// Returns the linker's flags: no symbols, and the version as Kubernetes' build sets it.
    pub(super) fn linker_flags(&self) -> String {
        let mut parts = self.kubernetes.split('.');
        let (major, minor) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let version =
            |name: &str, value: &str| format!(" -X k8s.io/component-base/version.{name}={value}");
        let whole = version("gitVersion", &format!("v{}", self.kubernetes));
        let commit = version("gitTreeState", "clean");
        format!("-s -w{whole}{}{}{commit}", version("gitMajor", major), version("gitMinor", minor))
    }
}

/// Returns the N of `1.N`, whatever follows.
pub(super) fn minor(version: &str) -> Option<u32> {
    let rest = version.strip_prefix("1.")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Returns the word after `key` on the line that has just these, or `require` before them.
///
/// The lines of tools have no version, and those of replacements another path behind the arrow.
fn value_of<'text>(text: &'text str, key: &str) -> Option<&'text str> {
    text.lines().find_map(|line| {
        let line = line.trim();
        let mut words = line.strip_prefix("require ").unwrap_or(line).split_whitespace();
        (words.next()? == key).then(|| words.next()).flatten().filter(|value| *value != "=>")
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The form of a `go.mod` after `go mod tidy`.
    pub(in crate::apiserver) const TEXT: &str = "module m\n\ngo 1.26.0\n\ntool (\n\
        \tgo.etcd.io/etcd/server/v3\n\tk8s.io/kubernetes/cmd/kubectl\n)\n\n\
        require k8s.io/kubernetes v1.36.3 // indirect\n\nrequire (\n\
        \tgo.etcd.io/etcd/api/v3 v3.6.12 // indirect\n\
        \tgo.etcd.io/etcd/server/v3 v3.6.13 // indirect\n)\n\n\
        replace (\n\tk8s.io/api => k8s.io/api v0.36.3\n)\n";

    #[test]
    fn versions_are_those_that_the_module_requires() {
        let module = Module::parse(TEXT).unwrap();
        assert_eq!(module.go_minor, 26);
        assert_eq!(module.folder_name(), "apiserver-1.36.3-etcd-3.6.13");
        for flag in ["gitVersion=v1.36.3", "gitMajor=1", "gitMinor=36"] {
            let flag = format!("-X k8s.io/component-base/version.{flag} ");
            assert!(module.linker_flags().contains(&flag), "{flag}");
        }
    }

    #[test]
    fn a_module_without_the_programs_is_an_error() {
        for missing in ["go 1.26.0\n", "k8s.io/kubernetes v1.36.3", "etcd/server/v3 v3.6.13"] {
            assert!(Module::parse(&TEXT.replace(missing, "")).is_err(), "{missing}");
        }
    }

    #[test]
    fn the_minor_version_ends_at_what_is_no_digit() {
        let rows = [("1.26.8", Some(26)), ("1.27rc1", Some(27)), ("1.28", Some(28)), ("2.1", None)];
        for (version, want) in rows {
            assert_eq!(minor(version), want, "{version}");
        }
    }
}
