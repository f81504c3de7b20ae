//! `catalog`: every condition and event that Fettle knows.

pub mod markdown;

use core::time::Duration;
use std::io::{self, Write};

use fettle_core::catalog::{CONDITIONS, Clear, ConditionRow, EVENTS, Scope};
use serde::Serialize;

use crate::publish::stdout::Format;
use crate::table;

/// Prints the catalogue.
///
/// # Errors
///
/// Returns why `out` cannot be written to.
pub fn run(out: &mut impl Write, format: Format) -> io::Result<()> {
    match format {
        Format::Json => json(out),
        Format::Table => people(out),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Catalog {
    conditions: Vec<Condition>,
    events: Vec<Event>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Condition {
    name: &'static str,
    source: fettle_core::catalog::Source,
    interval_seconds: Option<u64>,
    disposition: fettle_core::catalog::Disposition,
    scope: Scope,
    clear: Clear,
    problem_reason: &'static str,
    healthy_reason: &'static str,
    trigger: &'static str,
    cause: &'static str,
    advice: &'static str,
}

#[derive(Serialize)]
struct Event {
    name: &'static str,
    meaning: &'static str,
}

fn json(out: &mut impl Write) -> io::Result<()> {
    let conditions = CONDITIONS.iter().map(condition).collect();
    let events = EVENTS.iter().map(|row| Event { name: row.name, meaning: row.meaning }).collect();
    serde_json::to_writer_pretty(&mut *out, &Catalog { conditions, events })?;
    writeln!(out)
}

fn condition(row: &ConditionRow) -> Condition {
    Condition {
        name: row.name,
        source: row.source,
        interval_seconds: row.interval.map(|interval| interval.as_secs()),
        disposition: row.disposition,
        scope: row.scope,
        clear: row.clear,
        problem_reason: row.problem,
        healthy_reason: row.healthy,
        trigger: row.trigger,
        cause: row.cause,
        advice: row.advice,
    }
}

fn people(out: &mut impl Write) -> io::Result<()> {
    let heads =
        ["CONDITION", "SOURCE", "EVERY", "DISPOSITION", "NODES", "CLEARED BY", "SET WHEN", "DO"];
    let mut conditions = table::new(&heads);
    for row in &CONDITIONS {
        conditions.add_row([
            row.name.to_owned(),
            format!("{:?}", row.source).to_lowercase(),
            row.interval.map_or_else(|| "-".to_owned(), every),
            format!("{:?}", row.disposition).to_lowercase(),
            scope(row.scope).to_owned(),
            clear(row.clear).to_owned(),
            row.trigger.to_owned(),
            row.advice.to_owned(),
        ]);
    }
    let mut events = table::new(&["EVENT", "WHEN"]);
    for row in &EVENTS {
        events.add_row([row.name, row.meaning]);
    }
    writeln!(out, "{}\n\n{}", table::render(&conditions), table::render(&events))
}

fn every(interval: Duration) -> String {
    match interval.as_secs() {
        seconds if seconds % 3600 == 0 => format!("{}h", seconds / 3600),
        seconds if seconds % 60 == 0 => format!("{}m", seconds / 60),
        seconds => format!("{seconds}s"),
    }
}

const fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::ControlPlaneOnly => "control plane",
        Scope::EveryNode => "every",
        Scope::GpuNodes => "with GPU",
        Scope::WorkerOnly => "worker",
    }
}

const fn clear(clear: Clear) -> &'static str {
    match clear {
        Clear::ByHand => "hand",
        Clear::Held => "hand, boot",
        Clear::NextGoodRun => "next good run",
        Clear::Proof => "proof, hand, boot",
    }
}
