//! `catalog -o markdown`: a runbook, with a paragraph for each condition.

use core::fmt::{self, Write as _};
use core::time::Duration;
use std::io::{self, Write};

use fettle_core::catalog::{Clear, ConditionRow, Disposition, EventRow, Scope, Source};
use fettle_core::disposition::{PoolKind, Then, WatchRow, route};

/// Writes a runbook for `conditions` and `events`.
///
/// Every sentence follows from a row: a condition that is new has its paragraph at once.
///
/// # Errors
///
/// Returns why `out` cannot be written to.
pub fn write(
    out: &mut impl Write,
    conditions: &[ConditionRow],
    events: &[EventRow],
) -> io::Result<()> {
    writeln!(out, "# What Fettle reports\n\n* [Conditions](#conditions)")?;
    for row in conditions {
        writeln!(out, "  * [{}](#{})", Escaped(row.name), row.name.to_lowercase())?;
    }
    writeln!(out, "* [Events](#events)\n\n## Conditions\n\n{CONDITIONS_ARE}")?;
    for row in conditions {
        write_condition(out, row)?;
    }
    writeln!(out, "\n## Events\n\n{EVENTS_ARE}\n\n| event | when |\n|---|---|")?;
    for row in events {
        writeln!(out, "| {} | {} |", Escaped(row.name), Escaped(row.meaning))?;
    }
    Ok(())
}

fn write_condition(out: &mut impl Write, row: &ConditionRow) -> io::Result<()> {
    let (trigger, cause, advice) = (Escaped(row.trigger), Escaped(row.cause), Escaped(row.advice));
    writeln!(out, "\n### {}\n", Escaped(row.name))?;
    writeln!(
        out,
        "* **What it means:** {trigger}. The likely cause: {cause}. {} {}.",
        read(row),
        scope(row.scope)
    )?;
    writeln!(
        out,
        "* **What to look at:** the condition's message, which names what is wrong. Then: {advice}."
    )?;
    writeln!(out, "* **What clears it:** {}", cleared(row))?;
    writeln!(out, "* **What Fettle will do:** {}", does(row))
}

/// Says how it is found out.
fn read(row: &ConditionRow) -> String {
    let what = match row.source {
        Source::Check => "Checked",
        Source::Kernel => return "Read from the kernel log as it is written,".to_owned(),
        Source::Own => return "The agent watches itself,".to_owned(),
        Source::Tamper => "Compared with the record",
    };
    row.interval.map_or_else(|| what.to_owned(), |every| format!("{what} every {}", time(every)))
}

const fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::ControlPlaneOnly => "on nodes of the control plane",
        Scope::EveryNode => "on every node",
        Scope::GpuNodes => "on nodes with an NVIDIA GPU",
        Scope::WorkerOnly => "on workers",
    }
}

fn cleared(row: &ConditionRow) -> String {
    let name = row.name;
    let by_hand = format!(
        "`fettle-agent clear {name}` on the node, or the annotation \
         `fettle.dev/clear-condition: {name}` on the Node"
    );
    let proof = "a reading that proves that the fault is gone";
    let may_be_proven = row.condition.clear_choices().contains(&Clear::Proof);
    match row.clear {
        Clear::ByHand => format!("only a person, by {by_hand}. A boot does not."),
        Clear::Held if may_be_proven => {
            format!("the next boot, or {by_hand}. Set to `clear: proof`, also {proof}.")
        }
        Clear::Held => format!("the next boot, or {by_hand}."),
        Clear::NextGoodRun => "the next run that finds nothing wrong.".to_owned(),
        Clear::Proof => format!("{proof}, the next boot, or {by_hand}."),
    }
}

fn does(row: &ConditionRow) -> String {
    let mut text = match row.disposition {
        Disposition::Alert => "report it, for a person to act soon.",
        Disposition::Operability => {
            "report it, for a person to act some day: the node itself goes on with its work."
        }
        Disposition::Repair => "restart the unit, and report it for as long as that does not help.",
        Disposition::Security => "report it, and leave the node as it is for whoever investigates.",
    }
    .to_owned();
    for (pool, name) in [(PoolKind::Cloud, "cloud"), (PoolKind::BareMetal, "bare metal")] {
        if let Some(watch) = route(row.condition, pool).watch {
            // Cannot fail: a `String` takes all.
            let _ = write!(text, " {}", watched(watch, name));
        }
    }
    text
}

/// Says what automatic replacement does in one kind of pool.
fn watched(row: &WatchRow, pool: &str) -> String {
    let hold = time(row.hold);
    let then = match row.then {
        Then::Alert => "it alerts",
        Then::RebootThenReplace => "it reboots the node once, then replaces the machine",
        Then::RebootThenReprovision => {
            "it reboots the node up to twice, then provisions the host anew"
        }
    };
    format!(
        "Automatic replacement watches it in {pool} pools: once it has been `{:?}` for {hold}, \
         {then}; unless its policy is in mode `Act`, it only says so.",
        row.status
    )
}

fn time(time: Duration) -> String {
    match time.as_secs() {
        3600 => "hour".to_owned(),
        seconds if seconds > 60 && seconds % 60 == 0 => format!("{} minutes", seconds / 60),
        seconds => format!("{seconds} seconds"),
    }
}

/// Text without a meaning in Markdown.
///
/// Any ASCII punctuation may be escaped (`CommonMark`, "Backslash escapes"); these are what could
/// begin something within a line.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '~' | '&') {
                f.write_char('\\')?;
            }
            f.write_char(c)?;
        }
        Ok(())
    }
}

const CONDITIONS_ARE: &str = "\
    Fettle writes these on the Node. `True` is a problem; `Unknown` says that nobody can tell; a \
    condition that does not apply to a node is not written.";

const EVENTS_ARE: &str =
    "Fettle tells these once, and then how often they came; they hold no state.";

#[cfg(test)]
mod tests {
    use fettle_core::catalog::{CONDITIONS, ConditionType, EVENTS};

    use super::*;

    #[test]
    fn two_rows_make_this_runbook() {
        let made_up = ConditionRow {
            name: "Made_Up",
            interval: Some(Duration::from_secs(30)),
            trigger: "a_b < c | d",
            cause: "`*`",
            advice: "[x](y)",
            ..*ConditionType::NodeTampered.row()
        };
        let event = EventRow { meaning: "a | b", ..EVENTS[0] };
        let got = runbook(&[*ConditionType::KernelDeadlock.row(), made_up], &[event]);
        assert_eq!(got, include_str!("runbook.md"));
    }

    #[test]
    fn every_condition_has_its_entry_its_heading_and_four_lines() {
        let got = runbook(&CONDITIONS, &EVENTS);
        for row in &CONDITIONS {
            let name = row.name;
            let entry = format!("\n  * [{name}](#{})\n", name.to_lowercase());
            assert_eq!(got.matches(&entry).count(), 1, "{name}");
            let (_, paragraph) = got.split_once(&format!("\n### {name}\n\n")).unwrap();
            let lines: Vec<_> = paragraph.lines().take(5).collect();
            let heads = ["means", "to look at", "clears it", "Fettle will do"];
            for (line, head) in lines.iter().zip(heads) {
                assert!(
                    line.starts_with(&format!("* **What {head}:** "))
                        || line.starts_with(&format!("* **What it {head}:** ")),
                    "{name}: {line}"
                );
                assert!(line.ends_with('.') && !line.contains(".."), "{name}: {line}");
            }
            assert_eq!(lines.get(4).copied().unwrap_or_default(), "", "{name}");
        }
        assert_eq!(got.matches("\n### ").count(), CONDITIONS.len());
        for row in &EVENTS {
            assert!(got.contains(&format!("\n| {} | ", row.name)), "{}", row.name);
        }
    }

    #[test]
    fn what_is_done_follows_from_the_row() {
        for (condition, want) in [
            (ConditionType::KubeletUnhealthy, "restart the unit, and report it"),
            (ConditionType::VerityCorruption, "has been `True` for 60 seconds, it reboots"),
            (ConditionType::KernelDeadlock, "has been `True` for 2 minutes, it reboots"),
            (ConditionType::NodeTampered, "leave the node as it is"),
        ] {
            let got = does(condition.row());
            assert!(got.contains(want), "{got}");
        }
    }

    fn runbook(conditions: &[ConditionRow], events: &[EventRow]) -> String {
        let mut out = Vec::new();
        write(&mut out, conditions, events).unwrap();
        String::from_utf8(out).unwrap()
    }
}
