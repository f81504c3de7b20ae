//! One run of the agent, and what the kernel says of its process.

use core::time::Duration;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::stopwatch::Stopwatch;

/// A running agent; dropped, it is killed.
#[derive(Debug)]
pub(crate) struct Agent {
    child: Child,
    lines: Receiver<String>,
    /// Kept as long as the agent runs.
    _state: TempDir,
}

/// Memory of a process, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    /// What is resident.
    pub(crate) resident: u64,
    /// The most that ever was.
    pub(crate) peak: u64,
    /// The part of what is resident that no file backs.
    pub(crate) anonymous: u64,
}

impl Agent {
    /// Starts the agent with no state of an earlier run.
    pub(crate) fn start(binary: &Path) -> Result<Self> {
        let mut command = Command::new(binary);
        command.args(["run", "--standalone", "--trust-userspace-kmsg", "--state-dir"]);
        Self::start_by(command)
    }

    /// Starts the agent by `command`, to whose end the state directory is added.
    pub(crate) fn start_by(mut command: Command) -> Result<Self> {
        let state = tempfile::tempdir_in(TMPFS).context("cannot make a state directory")?;
        let mut child = command
            .arg(state.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {command:?}"))?;
        let output = child.stdout.take().context("its output is a pipe")?;
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            lines.map_while(|line| sender.send(line).ok()).for_each(drop);
        });
        Ok(Self { child, lines, _state: state })
    }

    /// Waits for a condition that is true, or for an event.
    pub(crate) fn wait_for_finding(&self) -> Result<()> {
        let waited = Stopwatch::start();
        loop {
            let line = self.next_line(waited)?.context("the agent ended without a finding")?;
            if is_finding(&line) {
                return Ok(());
            }
        }
    }

    /// Waits until every thread sleeps and has done nothing for a while.
    pub(crate) fn wait_until_idle(&self, calm: Duration) -> Result<()> {
        let waited = Stopwatch::start();
        let mut since = Stopwatch::start();
        let mut cpu = self.cpu()?;
        while since.elapsed() < calm {
            ensure!(waited.elapsed() < PATIENCE, "the agent is still at work");
            thread::sleep(POLL);
            let now = self.cpu()?;
            if now != cpu || !self.sleeps()? {
                cpu = now;
                since = Stopwatch::start();
            }
        }
        Ok(())
    }

    /// Returns the time that all of its threads have spent on a CPU, in the kernel or not.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        let mut spent_ns = 0;
        for text in self.of_threads("schedstat")? {
            let on_cpu = text.split_ascii_whitespace().next().context("schedstat is empty")?;
            spent_ns += on_cpu.parse::<u64>()?;
        }
        Ok(Duration::from_nanos(spent_ns))
    }

    /// Returns how often its threads have gone to sleep.
    pub(crate) fn sleeps_so_far(&self) -> Result<u64> {
        let mut switches = 0;
        for status in self.of_threads("status")? {
            switches += field(&status, "voluntary_ctxt_switches:")?;
        }
        Ok(switches)
    }

    pub(crate) fn memory(&self) -> Result<Memory> {
        let status = fs::read_to_string(self.proc().join("status"))?;
        let bytes = |name| field(&status, name).map(|kib| kib * 1024);
        Ok(Memory {
            resident: bytes("VmRSS:")?,
            peak: bytes("VmHWM:")?,
            anonymous: bytes("RssAnon:")?,
        })
    }

    /// Ends the agent and returns how many records it lost.
    pub(crate) fn stop(mut self) -> Result<u64> {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM).context("cannot end the agent")?;
        let waited = Stopwatch::start();
        let mut summary = None;
        while let Some(line) = self.next_line(waited)? {
            summary = summary.or_else(|| lost(&line));
        }
        // Its output is closed, so it is about to end.
        self.child.wait()?;
        summary.context("the agent ended without a summary")
    }

    /// Returns the next line of its output; `None` at the end.
    fn next_line(&self, waited: Stopwatch) -> Result<Option<String>> {
        match self.lines.recv_timeout(waited.left(PATIENCE)) {
            Ok(line) => Ok(Some(line)),
            Err(mpsc::RecvTimeoutError::Disconnected) => Ok(None),
            Err(mpsc::RecvTimeoutError::Timeout) => bail!("the agent says nothing"),
        }
    }

    fn sleeps(&self) -> Result<bool> {
        for stat in self.of_threads("stat")? {
            // The name in parentheses may hold anything.
            let after_name = stat.rsplit(')').next().unwrap_or("");
            if !after_name.trim_start().starts_with('S') {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads a file of each thread; one that ends meanwhile, as a check's does, is left out.
    fn of_threads(&self, file: &str) -> Result<Vec<String>> {
        let entries = fs::read_dir(self.proc().join("task")).context("the agent has ended")?;
        let texts =
            entries.filter_map(|entry| fs::read_to_string(entry.ok()?.path().join(file)).ok());
        Ok(texts.collect())
    }

    fn proc(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}", self.child.id()))
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // Both fail if it has ended already, which is as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_finding(line: &str) -> bool {
    let Ok(change) = serde_json::from_str::<Value>(line) else {
        return false;
    };
    match change["kind"].as_str() {
        Some("condition") => change["status"] == "True",
        Some("event") => true,
        Some(_) | None => false,
    }
}

/// Reads how many records were lost, if `line` is the summary.
fn lost(line: &str) -> Option<u64> {
    let summary: Value = serde_json::from_str(line).ok()?;
    (summary["kind"] == "summary").then(|| summary["lost"].as_u64()).flatten()
}

fn field(status: &str, name: &str) -> Result<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix(name));
    let value = value.with_context(|| format!("the status has no {name}"))?;
    Ok(value.trim().trim_end_matches(" kB").parse()?)
}

/// Where the state belongs: a file system in memory.
const TMPFS: &str = "/dev/shm";

/// How long the agent may take for anything.
const PATIENCE: Duration = Duration::from_secs(20);

const POLL: Duration = Duration::from_millis(1);
