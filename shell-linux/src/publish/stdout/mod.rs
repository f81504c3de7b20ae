//! Standard output: what the core gave out, for machines or for people.

pub mod json;
pub mod people;

use std::io::{self, Write};

use clap::ValueEnum;
use fettle_core::journal::{Stamp, Step};
use fettle_core::node::agent::{Agent, Input, Output};

use self::people::People;

/// How a command prints what it found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// JSON, for machines.
    Json,
    /// Aligned text, for people.
    Table,
}

/// Standard output, in the format that was asked for; the same for `run` and `replay`.
#[derive(Debug)]
pub struct Printer<'o, W> {
    out: &'o mut W,
    /// The state of the output for people; `None` prints JSON.
    people: Option<People>,
}

impl<'o, W: Write> Printer<'o, W> {
    /// Prints to `out`.
    pub fn new(out: &'o mut W, format: Format) -> Self {
        let people = match format {
            Format::Json => None,
            Format::Table => Some(People::default()),
        };
        Self { out, people }
    }

    /// Steps the core and shows what comes out.
    ///
    /// Returns it on the heap: to move all that a step may give copies 14 KiB each time, and what
    /// most steps give is nothing.
    ///
    /// # Errors
    ///
    /// Returns why the output cannot be written to.
    pub fn step(&mut self, agent: &mut Agent, step: Step<'_>) -> io::Result<Vec<Output>> {
        let stamp = step.stamp;
        let stopping = matches!(step.input, Input::Stopping);
        let outputs = agent.step(stamp.at, step.input);
        for output in &outputs {
            self.show(stamp, agent, output)?;
        }
        if let Some(people) = &mut self.people {
            people.first_result(self.out, stamp, agent)?;
        }
        if stopping && outputs.is_empty() {
            self.end(stamp, agent)?;
        }
        Ok(outputs.to_vec())
    }

    fn show(&mut self, stamp: Stamp, agent: &Agent, output: &Output) -> io::Result<()> {
        if let Some(people) = &mut self.people {
            return people.show(self.out, stamp, agent, output);
        }
        match json::line(stamp, agent, output) {
            Some(line) => write_json(self.out, &line),
            None => Ok(()),
        }
    }

    fn end(&mut self, stamp: Stamp, agent: &Agent) -> io::Result<()> {
        if self.people.is_some() {
            return People::end(self.out, stamp, agent);
        }
        write_json(self.out, &json::summary(stamp, agent))
    }

    /// Hands on what was written.
    ///
    /// # Errors
    ///
    /// Returns why the output cannot be written to.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn write_json(out: &mut impl Write, line: &json::Line<'_>) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    writeln!(out)
}
