//! Searches for inputs that break a parser or a machine, with libFuzzer on stable Rust.
//!
//! Does not replay the corpus: `cargo test -p fettle-fuzz` does, on every run of CI.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;

use crate::command;
use crate::stage::{Session, Stage, say};
use crate::tools::Need;

/// Named, so that build scripts and procedural macros are not instrumented.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// What `cargo fuzz` passes too; the assertions are what a fuzzer looks for.
const RUSTFLAGS: &str = "-Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares \
    --cfg fuzzing -Ccodegen-units=1 -Cdebug-assertions";

/// Where the instrumented build goes, away from every other.
const BUILD: &str = "target/fuzz";

/// What to fuzz, and for how long.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// One of the files of fuzz/src/bin; all of them when none is named.
    target: Option<String>,
    /// How long each target runs, such as 60s, 10m or 2h.
    #[arg(long = "for", value_name = "TIME", default_value = "60s", value_parser = parse_seconds)]
    seconds: u64,
}

/// Makes one stage for each target to fuzz.
pub(crate) fn stages(arguments: &Arguments) -> Result<Vec<Stage>> {
    let mut names = target_names(Path::new("fuzz/src/bin"))?;
    if let Some(name) = &arguments.target {
        let known = names.join(", ");
        ensure!(names.contains(name), "no fuzz target is named {name}; there are: {known}");
        names = vec![name.clone()];
    }
    ensure!(!names.is_empty(), "fuzz/src/bin has no fuzz target");
    Ok(names.into_iter().map(|name| stage(name, arguments.seconds)).collect())
}

fn stage(name: String, seconds: u64) -> Stage {
    Stage::function(&name.clone(), &format!("libFuzzer for {seconds} s"), move |session| {
        command::run(&mut build(&name))?;
        search(session, &name, seconds)
    })
    .needs(&[Need::Program("g++")])
    .advice("Mend the fault, then move the input to fuzz/corpus so that CI replays it.")
}

fn build(name: &str) -> Command {
    let mut build = command::cargo("build -p fettle-fuzz --features libfuzzer --release --locked");
    build.args(["--bin", name, "--target", TARGET, "--target-dir", BUILD]);
    build.env("RUSTFLAGS", RUSTFLAGS);
    build
}

fn search(session: &mut Session, name: &str, seconds: u64) -> Result<()> {
    // libFuzzer writes what it finds to the first folder, and only reads the second.
    let found_inputs = make_folder("target/fuzz/corpus", name)?;
    let corpus = make_folder("fuzz/corpus", name)?;
    let crashes = make_folder("fuzz/crashes", name)?;
    let mut fuzzer = Command::new(Path::new(BUILD).join(TARGET).join("release").join(name));
    fuzzer.arg(format!("-max_total_time={seconds}"));
    fuzzer.arg(format!("-artifact_prefix={}/", crashes.display()));
    fuzzer.arg("-print_final_stats=1").arg(&found_inputs).arg(&corpus);
    let mut found = Found::default();
    let status = command::stderr_lines(&mut fuzzer, |line| {
        found.read(line);
        if !is_chatter(line) {
            say(line);
        }
    })?;
    if let Some(file) = found.reproducer {
        bail!("breaks on {file}; again: {} {file}", fuzzer.get_program().display());
    }
    command::succeeded(&fuzzer, status)?;
    let speed = found.per_second.context("libFuzzer printed no speed: it may not have run")?;
    session.notes.push(format!("{name}: {speed} executions per second"));
    Ok(())
}

/// What libFuzzer's output says.
#[derive(Debug, Default)]
struct Found {
    per_second: Option<u64>,
    reproducer: Option<String>,
}

impl Found {
    /// Takes what one line says.
    fn read(&mut self, line: &str) {
        if let Some(speed) = line.strip_prefix("stat::average_exec_per_sec:") {
            self.per_second = speed.trim().parse().ok();
        }
        if let Some((_, file)) = line.split_once("Test unit written to ") {
            self.reproducer = Some(file.to_owned());
        }
    }
}

/// Returns whether `line` only tells of one more input.
fn is_chatter(line: &str) -> bool {
    line.starts_with('#') && !line.contains("DONE")
}

fn target_names(folder: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder)
        .with_context(|| format!("cannot list the fuzz targets in {}", folder.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}

fn make_folder(parent: &str, name: &str) -> Result<PathBuf> {
    let folder = Path::new(parent).join(name);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}

/// Returns the seconds of a time such as `60s`, `10m` or `2h`.
fn parse_seconds(time: &str) -> Result<u64> {
    let wanted = || format!("{time:?} is no time: write it as 60s, 10m or 2h");
    let (number, unit) = time.split_at(time.trim_end_matches(char::is_alphabetic).len());
    let factor = match unit {
        "h" => 3600,
        "m" => 60,
        "s" => 1,
        _ => bail!(wanted()),
    };
    let number: u64 = number.parse().with_context(wanted)?;
    ensure!(number > 0, "the time is 0, which for libFuzzer means for ever");
    number.checked_mul(factor).with_context(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_seconds() {
        let rows = [
            ("60s", Some(60)),
            ("10m", Some(600)),
            ("2h", Some(7200)),
            ("0s", None),
            ("60", None),
            ("s", None),
            ("1d", None),
            ("9999999999999999999h", None),
        ];
        for (time, want) in rows {
            assert_eq!(parse_seconds(time).ok(), want, "{time}");
        }
    }

    #[test]
    fn speed_and_reproducer_are_read_from_the_output() {
        let mut found = Found::default();
        found.read("stat::average_exec_per_sec:     247000");
        found.read("artifact_prefix='x/'; Test unit written to x/crash-12ab");
        assert_eq!(found.per_second, Some(247_000));
        assert_eq!(found.reproducer.as_deref(), Some("x/crash-12ab"));
    }
}
