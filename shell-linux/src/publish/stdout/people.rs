//! Standard output for people: what was found since boot as a table, then a line for each change.

use std::io::{self, Write};

use fettle_core::catalog::CONDITIONS;
use fettle_core::journal::Stamp;
use fettle_core::node::agent::{Agent, Output};
use fettle_core::node::log::LogState;

use crate::publish::stdout::json::{self, Line};
use crate::table;

/// What has been found before the log was first read up to its end.
#[derive(Debug, Default)]
pub struct People {
    /// Rows of the table of what was found since boot, until it is shown.
    found: Vec<[String; 5]>,
    omitted: usize,
    shown: bool,
}

impl People {
    /// Shows one output, or keeps it for the table.
    ///
    /// # Errors
    ///
    /// Returns why `out` cannot be written to.
    pub fn show(
        &mut self,
        out: &mut impl Write,
        stamp: Stamp,
        agent: &Agent,
        output: &Output,
    ) -> io::Result<()> {
        let Some(line) = json::line(stamp, agent, output) else {
            return Ok(());
        };
        if self.shown {
            return writeln!(out, "{}", sentence(&line));
        }
        match line {
            Line::Event { first, name, object, count, message, .. } => {
                let count = count.to_string();
                let row = [&first, name, object.unwrap_or("-"), &count, &message];
                self.keep(row.map(str::to_owned));
                Ok(())
            }
            Line::Lost { .. } => writeln!(out, "{}", sentence(&line)),
            Line::Condition { .. } | Line::Summary { .. } => Ok(()),
        }
    }

    /// Shows how the conditions stand and what was found, once that can be said.
    ///
    /// # Errors
    ///
    /// Returns why `out` cannot be written to.
    pub fn first_result(
        &mut self,
        out: &mut impl Write,
        stamp: Stamp,
        agent: &Agent,
    ) -> io::Result<()> {
        let state = agent.log().state();
        if self.shown || state == LogState::CatchingUp {
            return Ok(());
        }
        self.shown = true;
        writeln!(out, "{}\n\n{}\n", conditions(stamp, agent), self.found_table())?;
        match state {
            LogState::Live => writeln!(out, "Following the kernel log; end with Ctrl-C."),
            LogState::CatchingUp | LogState::Down { .. } => {
                writeln!(out, "The kernel log cannot be read; trying again. End with Ctrl-C.")
            }
        }
    }

    /// Shows what the agent has seen, when it ends.
    ///
    /// # Errors
    ///
    /// Returns why `out` cannot be written to.
    pub fn end(out: &mut impl Write, stamp: Stamp, agent: &Agent) -> io::Result<()> {
        writeln!(out, "{}", sentence(&json::summary(stamp, agent)))
    }

    fn found_table(&mut self) -> String {
        let found = core::mem::take(&mut self.found);
        if found.is_empty() {
            return "What is left of the kernel log reports no other fault.".to_owned();
        }
        let mut table = table::new(&["FIRST SEEN", "EVENT", "OBJECT", "COUNT", "MESSAGE"]);
        for row in found {
            table.add_row(row);
        }
        let more = match self.omitted {
            0 => String::new(),
            omitted => format!("\nand {omitted} more"),
        };
        format!("Reported by what is left of the kernel log\n{}{more}", table::render(&table))
    }

    fn keep(&mut self, row: [String; 5]) {
        if self.found.len() >= FOUND_MAX {
            self.omitted = self.omitted.saturating_add(1);
            return;
        }
        self.found.push(row);
    }
}

fn conditions(stamp: Stamp, agent: &Agent) -> String {
    let mut table = table::new(&["CONDITION", "STATUS", "REASON", "MESSAGE"]);
    for row in &CONDITIONS {
        let Some(held) = agent.condition(row.condition) else {
            continue;
        };
        let status = held.verdict.status.to_string();
        let reason = held.verdict.reason.name(row.condition);
        table.add_row([row.name, &status, reason, held.verdict.message.as_str()]);
    }
    format!("Conditions at {}\n{}", json::time(stamp.wall_ms), table::render(&table))
}

/// Returns one line as people read it.
fn sentence(line: &Line<'_>) -> String {
    match line {
        Line::Condition { time, name, status, reason, message, .. } => {
            let shown = table::coloured(status, &format!("{name}={status}"));
            format!("{time}  {shown}  {reason}  {message}")
        }
        Line::Event { time, name, object, count, message, .. } => {
            let times = if *count == 1 { String::new() } else { format!(" x{count}") };
            format!("{time}  {name}{times}  {}  {message}", object.unwrap_or("-"))
        }
        Line::Lost { time, records, total } => {
            format!("{time}  lost {records} records that were overwritten unread, {total} in all")
        }
        Line::Summary { time, records, lost, userspace, malformed, findings, .. } => {
            let found: u64 = findings.values().sum();
            format!(
                "{time}  read {records} records ({userspace} of user space, {malformed} malformed), \
                 lost {lost}, found {found}"
            )
        }
    }
}

/// Most rows of the first table: what a person reads.
const FOUND_MAX: usize = 200;
