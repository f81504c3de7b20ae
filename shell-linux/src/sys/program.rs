//! Programs of the node: run without a shell, within a time and a length.

use core::time::Duration;
use std::fmt;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;

use fettle_core::text::Text;
use fettle_core::time::Instant;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::clock;

/// How a program may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long it may take.
    pub deadline: Duration,
    /// How many bytes it may print.
    pub bytes_max: usize,
}

/// A program that does not end, although it was killed: the kernel holds it.
///
/// Whoever has one asks [`Stuck::is_over`] before the next run, so that they do not add up.
#[derive(Debug)]
pub struct Stuck {
    child: Child,
}

/// Why a program printed nothing of use.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// It said that it failed.
    #[error("{status}: {said}")]
    Failed {
        /// How it ended.
        status: ExitStatus,
        /// The last line of its complaint.
        said: String,
    },
    /// It ran too long, and was killed.
    #[error("no answer in {} s", .deadline.as_secs())]
    Late {
        /// How long it had.
        deadline: Duration,
        /// It, if it has not ended yet.
        stuck: Option<Stuck>,
    },
    /// It printed too much, and was killed.
    #[error("it printed more than {bytes_max} bytes")]
    Long {
        /// How many it could have printed.
        bytes_max: usize,
        /// It, if it has not ended yet.
        stuck: Option<Stuck>,
    },
    /// It could not be started or listened to.
    #[error("cannot run it")]
    Run(#[source] io::Error),
}

/// Runs `program` and returns what it printed.
///
/// It gets no input, no environment but `LC_ALL=C`, and `/` as its folder.
///
/// # Errors
///
/// See [`ProgramError`].
pub fn run(program: &Path, arguments: &[&str], limits: Limits) -> Result<Vec<u8>, ProgramError> {
    let until = clock::stamp().at + limits.deadline;
    let child = Command::new(program)
        .args(arguments)
        .env_clear()
        .env("LC_ALL", "C")
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn();
    let mut running = Running { child: child.map_err(ProgramError::Run)?, ended: None };
    let mut printed = Printed { bytes_max: limits.bytes_max, ..Printed::default() };
    match listen(&mut running, &mut printed, until) {
        Err(problem) => {
            running.kill();
            Err(ProgramError::Run(problem))
        }
        Ok(Listened::Late) => {
            Err(ProgramError::Late { deadline: limits.deadline, stuck: running.kill() })
        }
        Ok(Listened::Long) => {
            Err(ProgramError::Long { bytes_max: limits.bytes_max, stuck: running.kill() })
        }
        Ok(Listened::Ended(status)) if status.success() => Ok(printed.out),
        Ok(Listened::Ended(status)) => Err(ProgramError::Failed { status, said: printed.said() }),
    }
}

impl ProgramError {
    /// Takes the program out, if it has not ended yet.
    pub fn take_stuck(&mut self) -> Option<Stuck> {
        match self {
            Self::Late { stuck, .. } | Self::Long { stuck, .. } => stuck.take(),
            Self::Failed { .. } | Self::Run(_) => None,
        }
    }
}

impl Stuck {
    /// Returns whether it has ended by now.
    pub fn is_over(&mut self) -> bool {
        // An error means that there is no such child any more.
        !matches!(self.child.try_wait(), Ok(None))
    }
}

struct Running {
    child: Child,
    ended: Option<ExitStatus>,
}

enum Listened {
    Ended(ExitStatus),
    Late,
    Long,
}

#[derive(Default)]
struct Printed {
    bytes_max: usize,
    out: Vec<u8>,
    complaint: Vec<u8>,
}

/// Takes what the program prints, until it ends or must end.
fn listen(running: &mut Running, printed: &mut Printed, until: Instant) -> io::Result<Listened> {
    let (mut out, mut complaint) = (running.child.stdout.take(), running.child.stderr.take());
    while out.is_some() || complaint.is_some() {
        let left = until.since(clock::stamp().at);
        if left.is_zero() {
            return Ok(Listened::Late);
        }
        let (out_ready, complaint_ready) = ready(out.as_ref(), complaint.as_ref(), left)?;
        if out_ready && take(&mut out, &mut printed.out)? && printed.out.len() > printed.bytes_max {
            return Ok(Listened::Long);
        }
        if complaint_ready && take(&mut complaint, &mut printed.complaint)? {
            printed.forget_old_complaint();
        }
    }
    loop {
        if let Some(status) = running.poll_end()? {
            return Ok(Listened::Ended(status));
        }
        if until.since(clock::stamp().at).is_zero() {
            return Ok(Listened::Late);
        }
        thread::sleep(WAIT);
    }
}

/// Waits until one of two pipes has something to read, or has ended.
fn ready(
    out: Option<&impl AsFd>,
    complaint: Option<&impl AsFd>,
    left: Duration,
) -> io::Result<(bool, bool)> {
    let mut polled = Vec::with_capacity(2);
    polled.extend(out.map(|pipe| PollFd::new(pipe, PollFlags::IN)));
    polled.extend(complaint.map(|pipe| PollFd::new(pipe, PollFlags::IN)));
    let timeout = Timespec::try_from(left).map_err(|_| io::ErrorKind::InvalidInput)?;
    match poll(&mut polled, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(problem) => return Err(problem.into()),
    }
    let mut ready = polled.iter().map(|fd| !fd.revents().is_empty());
    let out_ready = out.is_some() && ready.next().unwrap_or(false);
    let complaint_ready = complaint.is_some() && ready.next().unwrap_or(false);
    Ok((out_ready, complaint_ready))
}

/// Takes what is in a pipe, and drops the pipe at its end. Returns whether something was in it.
fn take(pipe: &mut Option<impl Read>, into: &mut Vec<u8>) -> io::Result<bool> {
    let mut bytes = [0; 4096];
    let read = match pipe {
        Some(pipe) => pipe.read(&mut bytes)?,
        None => 0,
    };
    if read == 0 {
        *pipe = None;
    }
    into.extend_from_slice(bytes.get(..read).unwrap_or_default());
    Ok(read > 0)
}

impl Running {
    fn poll_end(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait()?;
        }
        Ok(self.ended)
    }

    /// Kills the program with all that it started; returns it if it does not end even so.
    fn kill(mut self) -> Option<Stuck> {
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // It can fail only because nobody is left.
            let _ = kill_process_group(group, Signal::KILL);
        }
        for _ in 0..WAITS_MAX {
            match self.poll_end() {
                Ok(None) => thread::sleep(WAIT),
                Ok(Some(_)) | Err(_) => return None,
            }
        }
        Some(Stuck { child: self.child })
    }
}

impl Printed {
    /// Only the last line is told, so the front may go.
    fn forget_old_complaint(&mut self) {
        let old = self.complaint.len().saturating_sub(COMPLAINT_BYTES_MAX);
        self.complaint.drain(..old);
    }

    fn said(&self) -> String {
        let lines = self.complaint.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let last = lines.rev().find(|line| !line.is_empty());
        let said = Text::<SAID_MAX>::from_bytes(last.unwrap_or(b"it did not say why"));
        said.as_str().to_owned()
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("pid", &self.child.id()).finish_non_exhaustive()
    }
}

/// How long to wait for the end of a program before looking again.
const WAIT: Duration = Duration::from_millis(5);

/// A killed program ends at once, unless the kernel holds it: a second is enough.
const WAITS_MAX: u32 = 200;

/// Room for some lines of a complaint.
const COMPLAINT_BYTES_MAX: usize = 4096;

/// Room for a sentence.
const SAID_MAX: usize = 160;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_prints_is_returned_and_its_surroundings_are_bare() {
        let printed = sh("echo out; echo err >&2; env | sort; pwd; cat").unwrap();
        let printed = String::from_utf8(printed).unwrap();
        assert!(printed.starts_with("out\nLC_ALL=C\nPWD=/\n"), "{printed}");
        assert!(!printed.contains("CARGO") && !printed.contains("PATH"), "{printed}");
    }

    #[test]
    fn a_failure_is_told_in_the_program_s_last_words() {
        let problem = sh("echo first >&2; echo 'the second\u{7}' >&2; echo >&2; exit 5");
        let problem = problem.unwrap_err().to_string();
        assert_eq!(problem, "exit status: 5: the second\u{fffd}");
        let problem = sh("kill -9 $$").unwrap_err().to_string();
        assert_eq!(problem, "signal: 9 (SIGKILL): it did not say why");
        let absent = run(Path::new("/nonexistent/program"), &[], LIMITS);
        assert!(matches!(absent, Err(ProgramError::Run(_))));
    }

    #[test]
    fn a_program_that_hangs_is_killed_with_its_children() {
        for script in ["sleep 1000 & sleep 1000", "exec >&- 2>&-; sleep 1000"] {
            let limits = Limits { deadline: Duration::from_millis(200), ..LIMITS };
            let mut problem = run(SHELL.as_ref(), &["-c", script], limits).unwrap_err();
            assert!(matches!(problem, ProgramError::Late { .. }), "{problem}");
            assert!(problem.take_stuck().is_none());
        }
    }

    #[test]
    fn a_program_without_end_is_bounded() {
        let endless = sh("while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done");
        assert!(matches!(endless, Err(ProgramError::Long { stuck: None, .. })));
        let complaints =
            sh("i=0; while [ $i -lt 9999 ]; do echo line $i >&2; i=$((i+1)); done; exit 1");
        assert_eq!(complaints.unwrap_err().to_string(), "exit status: 1: line 9998");
    }

    #[test]
    fn a_stuck_program_is_over_once_it_ends() {
        let child = Command::new(SHELL).args(["-c", "read line"]).stdin(Stdio::piped()).spawn();
        let mut stuck = Stuck { child: child.unwrap() };
        assert!(!stuck.is_over());
        drop(stuck.child.stdin.take());
        while !stuck.is_over() {
            thread::sleep(WAIT);
        }
    }

    fn sh(script: &str) -> Result<Vec<u8>, ProgramError> {
        run(SHELL.as_ref(), &["-c", script], LIMITS)
    }

    const SHELL: &str = "/bin/sh";

    const LIMITS: Limits = Limits { deadline: Duration::from_secs(20), bytes_max: 10_000 };
}
