//! `config check`: says all that is wrong with a configuration file.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Subcommand;
use serde::Serialize;

use crate::config::{ConfigError, ConfigFile, Problem};
use crate::errors::chain;
use crate::publish::stdout::Format;

/// What to do with a configuration.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Say all that is wrong with a file; exit with 1 if anything is
    Check {
        /// The file, such as /etc/fettle/agent.yaml
        file: PathBuf,
    },
}

#[derive(Serialize)]
struct Report<'a> {
    file: String,
    ok: bool,
    problems: &'a [Problem],
    /// How many more problems there are than are told.
    #[serde(skip_serializing_if = "is_zero")]
    omitted: usize,
    /// Why the file cannot be read at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Checks a file, tells the result, and returns whether all is well.
///
/// Without JSON, `out` gets what is well and `err` what is not.
///
/// # Errors
///
/// Returns why the result cannot be written.
pub fn run(
    args: Args,
    out: &mut impl Write,
    err: &mut impl Write,
    format: Format,
) -> io::Result<bool> {
    let Command::Check { file } = args.command;
    let file = ConfigFile::new(Some(file));
    let outcome = file.load();
    let is_ok = outcome.is_ok();
    let name = file.path().display();
    match (format, outcome) {
        (Format::Json, outcome) => json(out, name.to_string(), outcome.err().as_ref())?,
        (Format::Table, Ok(_)) => writeln!(out, "{name}: ok")?,
        (Format::Table, Err(error)) => writeln!(err, "{}", error.lines().join("\n"))?,
    }
    Ok(is_ok)
}

fn json(out: &mut impl Write, file: String, error: Option<&ConfigError>) -> io::Result<()> {
    let mut report = Report { file, ok: error.is_none(), problems: &[], omitted: 0, error: None };
    match error {
        Some(ConfigError::Content { problems, .. }) => {
            report.problems = problems.found();
            report.omitted = problems.omitted();
        }
        Some(error @ ConfigError::Read { .. }) => report.error = Some(chain(error)),
        None => {}
    }
    serde_json::to_writer_pretty(&mut *out, &report)?;
    writeln!(out)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &usize) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Value, json};

    use super::*;

    /// Returns whether all is well, and what was written to `out` and `err`.
    fn check(content: Option<&str>, format: Format) -> (bool, String, String) {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("agent.yaml");
        if let Some(content) = content {
            fs::write(&file, content).expect("written");
        }
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let args = Args { command: Command::Check { file } };
        let is_ok = run(args, &mut out, &mut err, format).expect("checked");
        let directory = format!("{}/", directory.path().display());
        let text = |bytes| String::from_utf8(bytes).expect("text").replace(&directory, "");
        (is_ok, text(out), text(err))
    }

    #[test]
    fn people_read_a_line_for_each_problem() {
        let ok = check(Some("# nothing\n"), Format::Table);
        assert_eq!(ok, (true, "agent.yaml: ok\n".to_owned(), String::new()));
        let bad = check(Some("disk:\n  usagePct: 0\nrole: king\n"), Format::Table);
        let want = "agent.yaml:2:13: disk.usagePct: 0 is out of range; give a whole number from 1 to 100\n\
            agent.yaml:3:7: role: \"king\" is unknown; give controlPlane or worker\n";
        assert_eq!(bad, (false, String::new(), want.to_owned()));
        let absent = check(None, Format::Table).2;
        assert!(absent.starts_with("agent.yaml: cannot read it: "), "{absent}");
    }

    #[test]
    fn machines_read_the_same_as_json() {
        let read = |content| -> Value {
            serde_json::from_str(&check(content, Format::Json).1).expect("JSON")
        };
        let ok = json!({"file": "agent.yaml", "ok": true, "problems": []});
        assert_eq!(read(Some("")), ok);
        let message = "0 is out of range; give a whole number from 1 to 100";
        let problem = json!({"line": 1, "column": 18, "key": "disk.usagePct", "message": message});
        let bad = json!({"file": "agent.yaml", "ok": false, "problems": [problem]});
        assert_eq!(read(Some("disk: {usagePct: 0}")), bad);
        assert!(read(None).get("error").is_some_and(Value::is_string));
    }
}
