//! A program that runs until it is ended, or until this process ends, however that ends.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use anyhow::{Context as _, Result, anyhow, bail};

/// A running program; dropping it kills it.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `command`, whose output goes to the end of the file `log`.
    ///
    /// # Errors
    ///
    /// It cannot be started.
    pub(super) fn start(command: Command, log: &Path) -> Result<Self> {
        let output = OpenOptions::new().create(true).append(true).open(log)?;
        let mut bound = Command::new("setpriv");
        bound.args(["--pdeathsig", "KILL", "--"]).arg(command.get_program());
        bound.args(command.get_args());
        bound.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        let child = start_in_keeper(bound).context("cannot run setpriv: install util-linux")?;
        Ok(Self { child, log: log.to_owned() })
    }

    /// Fails with the end of the log if it has ended, or is not `in_time`.
    pub(super) fn check(&mut self, name: &str, in_time: bool) -> Result<()> {
        let status = self.child.try_wait()?;
        let what = match status {
            Some(status) => format!("ended with {status}"),
            None if in_time => return Ok(()),
            None => "did not get ready in time".to_owned(),
        };
        bail!("{name} {what}; the end of its log:\n{}", end_of(&self.log));
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended; both are fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Something to start, and where to say how that went.
struct Order {
    command: Command,
    reply: Sender<io::Result<Child>>,
}

/// Starts `command` on a thread that ends only with this process.
///
/// The kernel kills the child at the end of the *thread* that started it, not of the process
/// (`prctl(2)`, "PR_SET_PDEATHSIG"), and the thread of a test ends with the test.
fn start_in_keeper(command: Command) -> Result<Child> {
    static KEEPER: LazyLock<Sender<Order>> = LazyLock::new(|| {
        let (sender, orders) = channel();
        thread::spawn(move || keep(&orders));
        sender
    });
    let (reply, answer) = channel();
    let gone = |_| anyhow!("the thread that starts programs is gone");
    KEEPER.send(Order { command, reply }).map_err(|_| gone(()))?;
    Ok(answer.recv().map_err(|_| gone(()))??)
}

fn keep(orders: &Receiver<Order>) {
    for Order { mut command, reply } in orders {
        // Who asked may have gone; the child is then killed with this process.
        let _ = reply.send(command.spawn());
    }
}

fn end_of(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines.get(lines.len().saturating_sub(SHOWN_LINES)..).unwrap_or_default().join("\n")
}

/// Lines of its log that an error shows.
const SHOWN_LINES: usize = 20;

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::clock::wait_for;

    const LIMIT: Duration = Duration::from_secs(20);

    fn shell(script: &str, log: &Path) -> Process {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Process::start(command, log).unwrap()
    }

    #[test]
    fn one_that_ended_is_an_error_with_the_end_of_its_log() {
        let folder = tempfile::tempdir().unwrap();
        let mut process = shell("seq 1 30; exit 3", &folder.path().join("log"));
        let error = wait_for(LIMIT, || process.check("it", true).err()).unwrap().to_string();
        assert!(error.starts_with("it ended with exit status: 3"), "{error}");
        assert!(error.ends_with("\n29\n30") && !error.contains("\n10\n"), "{error}");
    }

    #[test]
    fn it_outlives_the_thread_that_asked_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let mut process = thread::spawn(move || shell("exec sleep 60", &log)).join().unwrap();
        thread::sleep(Duration::from_millis(100));
        assert!(process.check("it", true).is_ok());
        let late = process.check("it", false).unwrap_err().to_string();
        assert!(late.starts_with("it did not get ready in time"), "{late}");
    }
}
