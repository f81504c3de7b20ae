//! A booted systemd of its own: this machine's programs over an empty state.

use core::time::Duration;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use fettle_tests::clock::wait_for;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::run;

/// A container that has booted; it ends with the value.
pub(crate) struct Container {
    /// The process that began it.
    nspawn: Child,
    /// Its process 1, as this machine numbers it.
    init: i32,
    /// Where its console goes.
    console: TempDir,
}

impl Container {
    /// Boots a container in which each of `binds` stands at the same path, or at the one after `:`.
    pub(crate) fn boot(binds: &[String]) -> Self {
        let console = tempfile::tempdir().expect("a directory");
        let log = File::create(console.path().join("log")).expect("a file");
        // An empty root over this machine's /usr: nothing of its /etc and /var is there.
        let nspawn = Command::new("systemd-nspawn")
            .args(["--boot", "--keep-unit", "--register=no", "--link-journal=no"])
            .args(["--private-network", "--volatile=yes", "--directory=/"])
            // Else it keeps from the unit what a node would give it: the log and adjtimex(2).
            .arg("--capability=CAP_SYSLOG,CAP_SYS_TIME")
            .arg(format!("--machine=fettle-{}", std::process::id()))
            .args(binds)
            .args(["systemd.unit=basic.target", "systemd.firstboot=off"])
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file"))
            .stderr(log)
            .spawn()
            .expect("systemd-nspawn is there: install the Debian package systemd-container");
        let mut container = Self { nspawn, init: 0, console };
        let up = wait_for(LIMIT, || container.is_up().then_some(()));
        assert!(up.is_some(), "it never came up: {}", container.said());
        container
    }

    /// Returns whether it has booted.
    ///
    /// The first child of nspawn is not yet process 1: it makes that one and ends.
    fn is_up(&mut self) -> bool {
        let ended = self.nspawn.try_wait().expect("it is ours");
        assert!(ended.is_none(), "{ended:?}: {}", self.said());
        let Some(init) = child_of(self.nspawn.id()) else {
            return false;
        };
        self.init = init;
        let (_, state) = self.run(&["systemctl", "is-system-running"]);
        matches!(state.trim(), "running" | "degraded")
    }

    /// Returns whether its process 1 comes to an end, as it does for a reboot.
    pub(crate) fn has_rebooted(&mut self) -> bool {
        let is_over = || {
            let ended = self.nspawn.try_wait().ok().flatten().is_some();
            (ended || child_of(self.nspawn.id()) != Some(self.init)).then_some(())
        };
        wait_for(LIMIT, is_over).is_some() && self.said().contains("Reboot")
    }

    fn said(&self) -> String {
        fs::read_to_string(self.console.path().join("log")).unwrap_or_default()
    }

    /// Runs a program in it, and returns whether it succeeded, and what it said.
    pub(crate) fn run(&self, arguments: &[&str]) -> (bool, String) {
        // What does not answer fails, and holds up nothing.
        run(Command::new("timeout")
            .args(["60", "nsenter"])
            .arg(format!("--target={}", self.init))
            .arg("--all")
            .args(arguments)
            .env("PATH", "/usr/sbin:/usr/bin"))
    }

    /// Runs a program in it that must succeed, and returns what it said.
    pub(crate) fn must(&self, arguments: &[&str]) -> String {
        let (ok, said) = self.run(arguments);
        assert!(ok, "{arguments:?}: {said}");
        said
    }

    /// Asks systemd in it for one property of a unit.
    pub(crate) fn property(&self, unit: &str, name: &str) -> String {
        let said = self.must(&["systemctl", "show", "--value", "-p", name, unit]);
        said.trim().to_owned()
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        // nspawn asks its process 1 to end; one that does not is killed, and takes all with it.
        let signal = |pid: i32, signal: Signal| {
            Pid::from_raw(pid).map(|pid| kill_process(pid, signal));
        };
        signal(i32::try_from(self.nspawn.id()).unwrap_or_default(), Signal::TERM);
        let ended = || self.nspawn.try_wait().ok().flatten();
        if wait_for(LIMIT, ended).is_none() {
            signal(self.init, Signal::KILL);
            let _ = self.nspawn.wait();
        }
    }
}

fn child_of(pid: u32) -> Option<i32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    fs::read_to_string(Path::new(&path)).ok()?.split_whitespace().next()?.parse().ok()
}

const LIMIT: Duration = Duration::from_secs(30);
