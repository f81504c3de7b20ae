//! The agent's program as a process of the test's own: what it prints, what it uses, how it ends.

use core::fmt::Write as _;
use core::time::Duration;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::clock::{now, wait_for};

/// A running agent; dropping it ends it.
#[derive(Debug)]
pub struct Agent {
    child: Child,
    shown: String,
    lines: Arc<Mutex<Vec<Line>>>,
    log: Arc<Mutex<String>>,
    readers: Vec<JoinHandle<()>>,
}

/// One line of the agent's standard output.
#[derive(Debug, Clone)]
pub struct Line {
    /// When the test read it.
    pub at: Instant,
    /// The line, with its end.
    pub text: String,
    /// What it says; `Null` where it is not JSON.
    pub value: Value,
}

/// An agent that has ended.
#[derive(Debug)]
pub struct Ended {
    /// How.
    pub status: ExitStatus,
    /// How long it took from the request.
    pub took: Duration,
    /// All that it printed.
    pub lines: Vec<Line>,
    /// All that it logged.
    pub log: String,
}

/// Returns the path of the agent's program.
///
/// # Panics
///
/// If it was not built: cargo builds for a test only the programs of the test's own crate.
#[must_use]
pub fn path() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows where it is");
    let path = test.ancestors().nth(2).expect("tests are below deps").join("fettle-agent");
    assert!(
        path.is_file(),
        "{} is missing: run `cargo build --workspace --bins` first",
        path.display()
    );
    path
}

/// Returns a command that runs the agent with `arguments`.
#[must_use]
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(path());
    command.args(arguments);
    command
}

/// Returns a command that follows the kernel log at `kmsg` with the state in `state`.
#[must_use]
pub fn standalone(state: &Path, kmsg: &Path) -> Command {
    let mut command = command(&["run", "--standalone", "-o", "json"]);
    command.arg("--state-dir").arg(state).arg("--kmsg").arg(kmsg);
    command
}

/// Runs the agent on `input` until it ends by itself.
#[must_use]
pub fn finish(arguments: &[&str], input: &[u8]) -> Ended {
    let mut agent = Agent::start(command(arguments).stdin(Stdio::piped()));
    let mut stdin = agent.take_stdin();
    let input = input.to_vec();
    let writer = thread::spawn(move || {
        // An agent that refuses its arguments does not read its input.
        let _ = stdin.write_all(&input);
    });
    let ended = agent.wait_end(END_LIMIT);
    writer.join().expect("the writer only writes");
    ended
}

impl Agent {
    /// Starts `command`.
    ///
    /// # Panics
    ///
    /// If it cannot be started.
    #[must_use]
    pub fn start(command: &mut Command) -> Self {
        Self::start_into(command, Stdio::piped())
    }

    /// Starts `command` with a standard output that the test may keep for itself.
    ///
    /// # Panics
    ///
    /// If it cannot be started.
    #[must_use]
    pub fn start_into(command: &mut Command, stdout: impl Into<Stdio>) -> Self {
        let shown = format!("{command:?}");
        let mut child = command
            .stdout(stdout)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {shown}: {error}"));
        // The command would keep its end of a pipe open.
        command.stdout(Stdio::null());
        let (lines, log) = (Arc::default(), Arc::default());
        let stderr = child.stderr.take().expect("it is piped");
        let mut readers = vec![read_log(stderr, &log)];
        readers.extend(child.stdout.take().map(|stdout| read_lines(stdout, Arc::clone(&lines))));
        Self { child, shown, lines, log, readers }
    }

    /// Returns its standard input, which the command has piped.
    ///
    /// # Panics
    ///
    /// If it was not piped, or was taken before.
    pub fn take_stdin(&mut self) -> impl Write + Send + use<> {
        self.child.stdin.take().expect("it is piped and taken once")
    }

    /// Waits until it says that it has caught up with the kernel log.
    pub fn wait_following(&self) {
        self.wait_log("following the kernel log");
    }

    /// Waits until it has logged `words`.
    ///
    /// # Panics
    ///
    /// If that does not happen in time.
    pub fn wait_log(&self, words: &str) {
        let said = wait_for(LINE_LIMIT, || self.log().contains(words).then_some(()));
        assert!(said.is_some(), "never logged {words:?}\n{}", self.describe());
    }

    /// Waits for a line that `is` what the test waits for, and returns the first such.
    ///
    /// # Panics
    ///
    /// If there is none in time.
    pub fn wait_line(&self, what: &str, is: impl Fn(&Value) -> bool) -> Line {
        self.wait(LINE_LIMIT, what, |line| is(&line.value))
    }

    /// Waits longer for a line after `earlier`, for what takes the agent its time.
    pub fn wait_line_after(&self, earlier: &Line, what: &str, is: impl Fn(&Value) -> bool) -> Line {
        self.wait(SLOW_LIMIT, what, |line| line.at > earlier.at && is(&line.value))
    }

    fn wait(&self, limit: Duration, what: &str, is: impl Fn(&Line) -> bool) -> Line {
        let find = || self.lines().into_iter().find(|line| is(line));
        wait_for(limit, find).unwrap_or_else(|| panic!("never printed {what}\n{}", self.describe()))
    }

    /// Returns what it has printed so far.
    #[must_use]
    pub fn lines(&self) -> Vec<Line> {
        lock(&self.lines).clone()
    }

    /// Returns what it has logged so far.
    #[must_use]
    pub fn log(&self) -> String {
        lock(&self.log).clone()
    }

    /// Returns the most memory that it has used, in KiB.
    ///
    /// # Panics
    ///
    /// If it has ended.
    #[must_use]
    pub fn peak_kib(&self) -> u64 {
        let status = self.proc("status");
        status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok())
            .unwrap_or_else(|| panic!("no VmHWM in {status}"))
    }

    /// Returns the processor time that it has used, in clock ticks.
    ///
    /// # Panics
    ///
    /// If it has ended.
    #[must_use]
    pub fn cpu_ticks(&self) -> u64 {
        let stat = self.proc("stat");
        let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
        fields.skip(11).take(2).map(|field| field.parse::<u64>().expect("ticks are numbers")).sum()
    }

    /// Returns whether it still runs.
    ///
    /// # Panics
    ///
    /// If the process is not this one's child.
    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().expect("it is a child").is_none()
    }

    /// Sends `signal` to it.
    ///
    /// # Panics
    ///
    /// If it has ended.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal)
            .unwrap_or_else(|error| panic!("{signal:?}: {error}\n{}", self.describe()));
    }

    /// Stops it until it gets `SIGCONT`, and returns once no thread of it runs any more.
    ///
    /// # Panics
    ///
    /// If it has ended, or does not stop.
    pub fn stop(&self) {
        self.signal(Signal::STOP);
        let tasks = format!("/proc/{}/task", self.pid());
        let stopped = || every_task_is_stopped(Path::new(&tasks)).then_some(());
        assert!(wait_for(LINE_LIMIT, stopped).is_some(), "it runs on\n{}", self.describe());
    }

    /// Asks it to end, and fails unless it does so cleanly within two seconds.
    ///
    /// # Panics
    ///
    /// If it takes longer, or ends with an error.
    pub fn terminate(self) -> Ended {
        self.signal(Signal::TERM);
        let ended = self.wait_end(TERMINATE_LIMIT);
        assert!(ended.status.success(), "SIGTERM gave {}\n{}", ended.status, ended.log);
        ended
    }

    /// Ends it at once, without a chance to write anything.
    pub fn kill(self) -> Ended {
        self.signal(Signal::KILL);
        self.wait_end(TERMINATE_LIMIT)
    }

    /// Waits until it has ended by itself, for at most `limit`.
    ///
    /// # Panics
    ///
    /// If it has not.
    pub fn wait_end(mut self, limit: Duration) -> Ended {
        let start = now();
        let status = wait_for(limit, || self.child.try_wait().expect("it is a child"));
        let took = start.elapsed();
        let Some(status) = status else {
            panic!("did not end within {limit:?}\n{}", self.describe());
        };
        for reader in self.readers.drain(..) {
            reader.join().expect("readers only read");
        }
        Ended { status, took, lines: self.lines(), log: self.log() }
    }

    /// Returns its process id.
    #[must_use]
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    fn proc(&self, file: &str) -> String {
        let path = format!("/proc/{}/{file}", self.child.id());
        fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("cannot read {path}: {error}\n{}", self.describe()))
    }

    /// Returns what a person needs who reads why a test failed.
    fn describe(&self) -> String {
        let mut text = format!("--- {}\n--- printed, the end of it:\n", self.shown);
        let lines = self.lines();
        for line in lines.iter().skip(lines.len().saturating_sub(SHOWN_LINES)) {
            text.push_str(&line.text);
        }
        let log = self.log();
        let log: Vec<&str> = log.lines().collect();
        let log = log.get(log.len().saturating_sub(SHOWN_LINES)..).unwrap_or_default();
        let _ = write!(text, "--- logged, the end of it:\n{}", log.join("\n"));
        text
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It may be stopped or have ended; both are fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ended {
    /// Returns all that it printed, byte for byte.
    #[must_use]
    pub fn printed(&self) -> String {
        self.lines.iter().map(|line| line.text.as_str()).collect()
    }

    /// Returns what each line says.
    ///
    /// # Panics
    ///
    /// If a line is not JSON.
    #[must_use]
    pub fn values(&self) -> Vec<&Value> {
        for line in &self.lines {
            assert!(line.value.is_object(), "not a JSON object: {:?}", line.text);
        }
        self.lines.iter().map(|line| &line.value).collect()
    }

    /// Returns the last line, which must be the summary.
    ///
    /// # Panics
    ///
    /// If it is not.
    #[must_use]
    pub fn summary(&self) -> &Value {
        let last = self.lines.last().map_or(&Value::Null, |line| &line.value);
        assert_eq!(last["kind"], "summary", "the last line is no summary: {last}\n{}", self.log);
        last
    }

    /// Fails if it panicked or was ended by a signal.
    ///
    /// # Panics
    ///
    /// If so.
    pub fn assert_no_crash(&self) {
        assert!(!self.log.contains("panicked"), "{}", self.log);
        assert!(self.status.code().is_some(), "ended with {}: {}", self.status, self.log);
    }
}

/// Returns a test for lines about condition `name` with `status`.
pub fn condition(name: &str, status: &str) -> impl Fn(&Value) -> bool {
    move |line| line["kind"] == "condition" && line["name"] == name && line["status"] == status
}

/// Returns a test for lines about condition `name` with `status` that name `object`.
pub fn condition_of(name: &str, status: &str, object: &str) -> impl Fn(&Value) -> bool {
    let is_condition = condition(name, status);
    move |line| is_condition(line) && names_object(line, object)
}

/// Returns a test for lines about event `name` of `object`.
pub fn event_of(name: &str, object: &str) -> impl Fn(&Value) -> bool {
    move |line| line["kind"] == "event" && line["name"] == name && line["object"] == object
}

/// Returns whether a line is about `object`.
#[must_use]
pub fn names_object(line: &Value, object: &str) -> bool {
    let listed = line["objects"].as_array();
    line["object"] == object || listed.is_some_and(|all| all.iter().any(|one| one == object))
}

fn read_lines(pipe: impl Read + Send + 'static, lines: Arc<Mutex<Vec<Line>>>) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut pipe = BufReader::new(pipe);
        let mut bytes = Vec::new();
        while matches!(pipe.read_until(b'\n', &mut bytes), Ok(1..)) {
            let at = now();
            let value = serde_json::from_slice(&bytes).unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes).into_owned();
            lock(&lines).push(Line { at, text, value });
            bytes.clear();
        }
    })
}

fn read_log(pipe: impl Read + Send + 'static, log: &Arc<Mutex<String>>) -> JoinHandle<()> {
    let log = Arc::clone(log);
    thread::spawn(move || {
        for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
            let mut log = lock(&log);
            log.push_str(&String::from_utf8_lossy(&line));
            log.push('\n');
        }
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no holder panics")
}

/// Tells whether each thread below `tasks` is stopped: state `T` in `proc_pid_stat(5)`.
fn every_task_is_stopped(tasks: &Path) -> bool {
    let threads = fs::read_dir(tasks).expect("it has not ended");
    threads.map(|thread| thread.expect("it can be listed").path().join("stat")).all(|path| {
        // A thread that has ended since does not run either.
        let stat = fs::read_to_string(path).unwrap_or_default();
        stat.rsplit_once(") ").is_none_or(|(_, fields)| fields.starts_with('T'))
    })
}

/// A line may be this late before a test says that it never came.
const LINE_LIMIT: Duration = Duration::from_secs(20);

/// What is looked for every ten seconds, or waits for a back-off, may be this late.
const SLOW_LIMIT: Duration = Duration::from_secs(40);

/// A run over given input ends within this time.
const END_LIMIT: Duration = Duration::from_secs(60);

/// From the request to end until the end.
const TERMINATE_LIMIT: Duration = Duration::from_secs(2);

/// Lines of output and log that a failed test shows.
const SHOWN_LINES: usize = 20;
