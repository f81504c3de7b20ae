//! The agent's own log: one line a message on standard error.
//!
//! Under systemd each line begins with its level, `<N>`, as the journal reads it
//! (`sd-daemon(3)`); elsewhere with the level's word.

use std::env;
use std::io::{self, Write as _};

use log::{Level, LevelFilter, Log, Metadata, Record};

/// Makes this the log of the process, for messages of `level` and above.
pub fn init(level: LevelFilter) {
    let journal = env::var_os("JOURNAL_STREAM").is_some();
    // A second call is no fault: the first logger stays.
    let _ = log::set_boxed_logger(Box::new(Logger { journal }));
    log::set_max_level(level);
}

struct Logger {
    journal: bool,
}

impl Log for Logger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let level = log::max_level();
        metadata.level() <= level && (is_own(metadata.target()) || level >= LevelFilter::Debug)
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            // Standard error may be closed; there is nowhere left to say so.
            let _ = writeln!(io::stderr().lock(), "{}", line(self.journal, record));
        }
    }

    fn flush(&self) {}
}

/// Returns whether the agent itself says it, in its own words, and not a library beside it.
fn is_own(target: &str) -> bool {
    target.starts_with("fettle")
}

fn line(journal: bool, record: &Record<'_>) -> String {
    let text: String = record.args().to_string();
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if journal {
        return format!("<{}>{text}", syslog_level(record.level()));
    }
    format!("fettle-agent: {}: {text}", word(record.level()))
}

const fn syslog_level(level: Level) -> u8 {
    match level {
        Level::Error => 3,
        Level::Warn => 4,
        Level::Info => 6,
        Level::Debug | Level::Trace => 7,
    }
}

const fn word(level: Level) -> &'static str {
    match level {
        Level::Error => "error",
        Level::Warn => "warning",
        Level::Info => "info",
        Level::Debug => "debug",
        Level::Trace => "trace",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line_with_its_level() {
        let args = format_args!("two\nlines");
        let record = Record::builder().level(Level::Warn).args(args).build();
        assert_eq!(line(true, &record), "<4>two lines");
        let args = format_args!("two\nlines");
        let record = Record::builder().level(Level::Warn).args(args).build();
        assert_eq!(line(false, &record), "fettle-agent: warning: two lines");
    }

    #[test]
    fn what_libraries_say_is_for_those_who_look_for_it() {
        for (target, is) in [("fettle_agent::run", true), ("kube_client::client", false)] {
            assert_eq!(is_own(target), is, "{target}");
        }
    }
}
