//! What the stages need on a machine, and how it gets there.

use std::path::{self, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context as _, Result, bail};

use crate::stage::say;
use crate::{apiserver, command, zig};

/// The version of cargo-deny that `deny.toml` is written for.
const DENY_VERSION: &str = "0.20.2";

/// Which Debian package brings a program.
const PACKAGES: &[(&str, &str)] = &[
    ("dbus-daemon", "dbus"),
    ("fsfreeze", "util-linux"),
    ("g++", "g++"),
    ("losetup", "util-linux"),
    ("mkfs.ext4", "e2fsprogs"),
    ("mkfs.xfs", "xfsprogs"),
    ("mount", "mount"),
    ("openssl", "openssl"),
    ("pip3", "python3-pip"),
    ("promtool", "prometheus"),
    ("qemu-aarch64-static", "qemu-user-static"),
    ("setpriv", "util-linux"),
    ("systemd-analyze", "systemd"),
    ("systemd-nspawn", "systemd-container"),
    ("unshare", "util-linux"),
    ("valgrind", "valgrind"),
    ("vgs", "lvm2"),
];

/// Where programs stand that only root has in its PATH.
const SYSTEM_FOLDERS: &[&str] = &["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Something that must be there before a stage runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Need {
    /// A Kubernetes API server, its store and kubectl.
    ApiServer,
    /// A component of the pinned toolchain.
    Component(&'static str),
    /// The licence and source checker.
    Deny,
    /// A program from one of [`PACKAGES`].
    Program(&'static str),
    /// The right to mount, to freeze and to write to `/dev/kmsg`.
    Root,
    /// A target of the pinned toolchain.
    Target(&'static str),
    /// The compiler for other machines.
    Zigbuild,
}

/// Installs what is missing, and remembers what it need not do twice.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    lists_are_fresh: bool,
}

impl Tools {
    /// Sees to it that `need` is met.
    ///
    /// # Errors
    ///
    /// It is missing and cannot be installed from here; the error says what to install.
    pub(crate) fn provide(&mut self, need: &Need) -> Result<()> {
        match *need {
            Need::ApiServer => apiserver::provide(self).map(drop),
            Need::Component(name) => rustup("component", name),
            Need::Deny => deny(),
            Need::Program(name) => self.program(name),
            Need::Root if is_root() => Ok(()),
            Need::Root => bail!("this needs root: run it as root, or use `cargo ci test --quick`"),
            Need::Target(name) => rustup("target", name),
            Need::Zigbuild => zig::provide(),
        }
    }

    fn program(&mut self, name: &str) -> Result<()> {
        if is_installed(name) {
            return Ok(());
        }
        let package = package(name)?;
        if !is_root() || !is_installed("apt-get") {
            bail!("{name} is missing: install the Debian package {package}");
        }
        if !self.lists_are_fresh {
            command::run(&mut apt("update -q"))?;
            self.lists_are_fresh = true;
        }
        command::run(apt("install -q -y --no-install-recommends").arg(package)).with_context(|| {
            format!("{name} is missing, and its package {package} did not install")
        })
    }
}

/// Returns whether this process runs as root.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns the command of the cargo-deny in the cache.
pub(crate) fn deny_command(arguments: &str) -> Result<Command> {
    let mut command = Command::new(tools_folder()?.join("bin/cargo-deny"));
    command.args(arguments.split_whitespace());
    Ok(command)
}

fn rustup(kind: &str, name: &str) -> Result<()> {
    let toolchain = fs::read_to_string("rust-toolchain.toml")
        .context("cannot read rust-toolchain.toml, which pins the toolchain")?;
    let channel = channel(&toolchain)?;
    let list = format!("rustup {kind} list --installed --toolchain {channel}");
    let installed = command::output(&mut command::parse(&list))
        .context("cannot ask rustup what is installed: install Rust by rustup")?;
    if lists(&installed, name) {
        return Ok(());
    }
    command::run(&mut command::parse(&format!("rustup {kind} add --toolchain {channel} {name}")))
}

/// Returns whether rustup's list has `name`; a component's line ends in its host.
fn lists(installed: &str, name: &str) -> bool {
    installed
        .lines()
        .filter_map(|line| line.strip_prefix(name))
        .any(|rest| rest.is_empty() || rest.starts_with('-'))
}

fn channel(toolchain: &str) -> Result<&str> {
    toolchain
        .lines()
        .filter_map(|line| line.split_once('='))
        .find(|(key, _)| key.trim() == "channel")
        .map(|(_, value)| value.trim().trim_matches('"'))
        .context("rust-toolchain.toml names no channel")
}

fn deny() -> Result<()> {
    let want = format!("cargo-deny {DENY_VERSION}");
    let version = deny_command("--version")?.output();
    if version.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).trim() == want) {
        return Ok(());
    }
    let folder = tools_folder()?;
    say(&format!("building cargo-deny {DENY_VERSION} into {}: minutes, once", folder.display()));
    let install = format!("install --locked --force --version {DENY_VERSION} cargo-deny --root");
    command::run(command::cargo(&install).arg(folder))
}

/// Returns the folder of what is built or fetched once, whichever workspace asks.
pub(crate) fn tools_folder() -> Result<PathBuf> {
    let cache = cache_folder(variable)
        .context("no folder for tools: set FETTLE_CACHE, XDG_CACHE_HOME or HOME")?;
    path::absolute(cache.join("tools")).context("the current folder is gone")
}

/// Returns the path in an environment variable, unless that is empty.
pub(crate) fn variable(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn cache_folder(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    variable("FETTLE_CACHE")
        .or_else(|| variable("XDG_CACHE_HOME").map(|cache| cache.join("fettle")))
        .or_else(|| variable("HOME").map(|home| home.join(".cache/fettle")))
}

fn is_installed(program: &str) -> bool {
    find_program(program).is_some()
}

/// Returns where `program` stands, also where only root has it in its PATH.
pub(crate) fn find_program(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(SYSTEM_FOLDERS.iter().map(PathBuf::from))
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

fn package(program: &str) -> Result<&'static str> {
    PACKAGES
        .iter()
        .find(|(name, _)| *name == program)
        .map(|(_, package)| *package)
        .with_context(|| format!("no package is known for {program}: add it in ci/src/tools.rs"))
}

fn apt(arguments: &str) -> Command {
    let mut command = command::parse(&format!("apt-get {arguments}"));
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_channel_is_read_from_the_toolchain_file() {
        assert_eq!(channel("[toolchain]\nchannel = \"1.95.0\"\n").unwrap(), "1.95.0");
        assert!(channel("[toolchain]\n").is_err());
    }

    #[test]
    fn a_component_is_found_with_its_host() {
        let installed = "clippy-x86_64-unknown-linux-gnu\nthumbv7em-none-eabi\n";
        assert!(lists(installed, "clippy"));
        assert!(lists(installed, "thumbv7em-none-eabi"));
        assert!(!lists(installed, "rustfmt"));
        assert!(!lists(installed, "clip"));
    }

    #[test]
    fn the_first_variable_that_is_set_names_the_cache() {
        let rows: &[(&[&str], Option<&str>)] = &[
            (&["FETTLE_CACHE", "XDG_CACHE_HOME", "HOME"], Some("/FETTLE_CACHE")),
            (&["XDG_CACHE_HOME", "HOME"], Some("/XDG_CACHE_HOME/fettle")),
            (&["HOME"], Some("/HOME/.cache/fettle")),
            (&[], None),
        ];
        for (set, want) in rows {
            let got = cache_folder(|name| set.contains(&name).then(|| format!("/{name}").into()));
            assert_eq!(got, want.map(PathBuf::from));
        }
    }

    #[test]
    fn a_program_without_a_package_is_an_error() {
        assert_eq!(package("mkfs.ext4").unwrap(), "e2fsprogs");
        assert!(package("no-such-program").is_err());
    }
}
