//! Runs the stages of a task in order, times them, and says what failed and what to do.

use core::fmt::Display;
use core::time::Duration;
use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::Instant;
use std::{env, fmt};

use anyhow::{Error, Result};

use crate::command;
use crate::tools::{Need, Tools};

/// One named part of a task.
pub(crate) struct Stage {
    name: String,
    about: String,
    advice: String,
    needs: Vec<Need>,
    work: Box<Work>,
}

type Work = dyn Fn(&mut Session) -> Result<()>;

impl Stage {
    /// Makes a stage that runs `lines`, one command each, until one fails.
    pub(crate) fn commands(name: &str, lines: &'static [&'static str]) -> Self {
        Self::function(name, &lines.join(" && "), |_| {
            lines.iter().try_for_each(|line| command::run(&mut command::parse(line)))
        })
    }

    /// Makes a stage that calls `work`; `about` says what that does.
    pub(crate) fn function(
        name: &str,
        about: &str,
        work: impl Fn(&mut Session) -> Result<()> + 'static,
    ) -> Self {
        let (advice, needs) = (String::new(), Vec::new());
        Self { name: name.to_owned(), about: about.to_owned(), advice, needs, work: Box::new(work) }
    }

    /// Returns the name of the stage.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Adds what is installed before the stage runs.
    pub(crate) fn needs(mut self, needs: &[Need]) -> Self {
        self.needs.extend_from_slice(needs);
        self
    }

    /// Adds what a person does when the stage fails.
    pub(crate) fn advice(mut self, advice: &str) -> Self {
        advice.clone_into(&mut self.advice);
        self
    }
}

/// What the stages of one task share.
pub(crate) struct Session {
    /// What to print below the summary, one line each.
    pub(crate) notes: Vec<String>,
    /// Prints one line.
    pub(crate) say: fn(&str),
    /// The tests that ran so far.
    pub(crate) tally: Tally,
    tools: Tools,
}

impl Session {
    /// Starts a task that prints by `say`.
    pub(crate) fn new(say: fn(&str)) -> Self {
        Self { notes: Vec::new(), say, tally: Tally::default(), tools: Tools::default() }
    }
}

/// How many tests passed and failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Tests that passed.
    pub(crate) passed: u64,
    /// Tests that failed.
    pub(crate) failed: u64,
}

impl Tally {
    /// Returns whether no test ran.
    pub(crate) fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// Adds the counts of `other`.
    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

impl Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

/// Runs `stages` and returns the exit code of the task.
pub(crate) fn run(stages: Vec<Stage>) -> Result<ExitCode> {
    let mut session = Session::new(say);
    Ok(run_in(&mut session, &stages))
}

/// Runs every one of `stages` in `session`, prints a summary, and returns the exit code.
///
/// A failure does not keep later stages from running: one run shows all that is wrong.
pub(crate) fn run_in(session: &mut Session, stages: &[Stage]) -> ExitCode {
    let (paint, say) = (Paint::detect(), session.say);
    let start = now();
    let mut ends = Vec::new();
    for (index, stage) in stages.iter().enumerate() {
        let position = format!("[{}/{}]", index + 1, stages.len());
        say(&format!("{position} {}  {}", paint.bold(&stage.name), stage.about));
        let end = run_one(session, stage);
        say(&format!("{position} {}  {} in {}", stage.name, end.word(paint), seconds(end.took)));
        if let Some(explanation) = end.explain() {
            say(&explanation);
        }
        ends.push(end);
    }
    summarise(session, &ends, start.elapsed(), paint);
    if ends.iter().all(|end| end.failure.is_none()) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run_one<'stage>(session: &mut Session, stage: &'stage Stage) -> End<'stage> {
    let start = now();
    let result = stage
        .needs
        .iter()
        .try_for_each(|need| session.tools.provide(need))
        .and_then(|()| (stage.work)(session));
    End { stage, took: start.elapsed(), failure: result.err() }
}

/// How a stage ended.
struct End<'stage> {
    stage: &'stage Stage,
    took: Duration,
    failure: Option<Error>,
}

impl End<'_> {
    fn word(&self, paint: Paint) -> String {
        if self.failure.is_some() { paint.red("FAILED") } else { paint.green("ok    ") }
    }

    fn explain(&self) -> Option<String> {
        let failure = self.failure.as_ref()?;
        Some(format!("{}: {failure:#}\n  what to do: {}", self.stage.name, self.stage.advice))
    }
}

fn summarise(session: &Session, ends: &[End<'_>], took: Duration, paint: Paint) {
    let say = session.say;
    let width = ends.iter().map(|end| end.stage.name.len()).max().unwrap_or(0).max("total".len());
    say("");
    for end in ends {
        let (name, time) = (&end.stage.name, seconds(end.took));
        say(&format!("{name:width$}  {}  {time:>9}", end.word(paint)));
    }
    say(&format!("{:width$}          {:>9}", "total", seconds(took)));
    ends.iter().filter_map(End::explain).for_each(|explanation| say(&explanation));
    session.notes.iter().for_each(|note| say(note));
}

/// Prints one line; a reader that has gone is no reason to stop.
pub(crate) fn say(line: &str) {
    let mut out = io::stdout().lock();
    _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Whether and how to colour.
#[derive(Clone, Copy)]
struct Paint {
    on: bool,
}

impl Paint {
    fn detect() -> Self {
        let plain = ["CI", "NO_COLOR"].iter().any(|name| env::var_os(name).is_some());
        Self { on: !plain && io::stdout().is_terminal() }
    }

    fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    fn green(self, text: &str) -> String {
        self.wrap("32", text)
    }

    fn red(self, text: &str) -> String {
        self.wrap("1;31", text)
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[expect(clippy::disallowed_methods, reason = "times a stage; nothing is decided by it")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[test]
    fn a_failure_does_not_keep_later_stages_from_running() {
        let stages = [
            Stage::function("first", "", |_| bail!("broken")),
            Stage::function("second", "", |session| {
                session.tally.passed += 1;
                Ok(())
            }),
        ];
        let mut session = Session::new(|_| ());
        assert_eq!(run_in(&mut session, &stages), ExitCode::FAILURE);
        assert_eq!(session.tally, Tally { passed: 1, failed: 0 });
    }

    #[test]
    fn a_failure_says_where_why_and_what_to_do() {
        let stage = Stage::commands("lint", &["false"]).advice("Mend it.");
        let end = run_one(&mut Session::new(|_| ()), &stage);
        let want = "lint: `false` ended with exit status: 1\n  what to do: Mend it.";
        assert_eq!(end.explain().unwrap(), want);
    }

    #[test]
    fn a_tally_reads_as_the_last_line_of_a_test_run() {
        assert_eq!(Tally { passed: 3, failed: 1 }.to_string(), "3 passed, 1 failed");
    }
}
