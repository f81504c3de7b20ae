//! Every check and every test, as the stages of one task.
//!
//! A test that needs root or a real kernel stands in `tests/tests/checks.rs`,
//! `kernel.rs` or `metrics.rs`, one of what is installed in `tests/tests/deploy/`,
//! one that needs a Kubernetes API server in
//! `tests/api/`. Each is marked `#[ignore = "why"]`, so that `cargo test` runs
//! anywhere; the stages `kernel`, `deploy` and `api` install what such tests need and run
//! exactly the marked ones. Tidy fails on one that is not marked. A test that
//! misses something there fails with a sentence that says what to install; it
//! never passes by doing nothing.

use std::process::{Command, ExitCode, ExitStatus};

use anyhow::{Result, bail};
use clap::Args;

use crate::apiserver;
use crate::bare;
use crate::command;
use crate::image;
use crate::stage::{self, Session, Stage, Tally, say};
use crate::tidy;
use crate::tools::{self, Need, Tools};
use crate::workspace::Workspace;

/// The proof has no std: it is built by itself, in a profile of its own.
const PROOF: &str = "fettle-proof";

/// All crates that are tested together, so that `build`, `test` and `kernel` share one build.
const WITH_STD: &str = "--workspace --exclude fettle-proof --exclude fettle-fuzz";

/// How much to test.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Leaves out what needs root, Debian packages or tools that take minutes to build.
    #[arg(long)]
    quick: bool,
}

/// Runs the stages, and ends with the number of tests that passed and failed.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut session = Session::new(say);
    let mut stages = quick_stages();
    if arguments.quick {
        let slow = slow_stages();
        let names: Vec<&str> = slow.iter().map(Stage::name).collect();
        let names = names.join(", ");
        session.notes.push(format!("left out: {names} (`cargo ci test` runs them)"));
    } else {
        stages.extend(slow_stages());
    }
    let code = stage::run_in(&mut session, &stages);
    say(&session.tally.to_string());
    Ok(code)
}

/// Makes the stage that runs clippy.
pub(crate) fn lint() -> Stage {
    Stage::commands(
        "lint",
        &[
            "cargo clippy --workspace --exclude fettle-proof --all-targets --locked -- -D warnings",
            "cargo clippy -p fettle-proof --profile proof --locked -- -D warnings",
        ],
    )
    .needs(&[Need::Component("clippy")])
    .advice("Mend what clippy names, or allow it where it stands with a reason.")
}

fn quick_stages() -> Vec<Stage> {
    let mut stages = vec![format(), lint(), tidy::stage()];
    stages.extend(bare::stages());
    stages.extend([alone(), doc(), build(), unit(), replay()]);
    stages
}

fn slow_stages() -> Vec<Stage> {
    vec![deny(), kernel(), api(), image::stage(), deploy()]
}

fn format() -> Stage {
    Stage::commands("fmt", &["cargo fmt --all --check"])
        .needs(&[Need::Component("rustfmt")])
        .advice("Run `cargo fmt --all`.")
}

/// Checks each crate by itself, so that no feature comes from a neighbour.
fn alone() -> Stage {
    Stage::function("alone", "cargo check -p CRATE --locked, for each", |_| {
        for member in Workspace::load()?.members.iter().filter(|member| *member != PROOF) {
            command::run(&mut command::cargo(&format!("check -q -p {member} --locked")))?;
        }
        Ok(())
    })
    .advice("Name the missing feature in that crate's own Cargo.toml.")
}

fn doc() -> Stage {
    const ARGUMENTS: &str = "doc --workspace --exclude fettle-proof --no-deps --locked";
    Stage::function("doc", &format!("RUSTDOCFLAGS=\"-D warnings\" cargo {ARGUMENTS}"), |_| {
        command::run(command::cargo(ARGUMENTS).env("RUSTDOCFLAGS", "-D warnings"))
    })
    .advice("Mend what rustdoc names; most often a link to something private or gone.")
}

fn deny() -> Stage {
    const ARGUMENTS: &str = "--all-features --locked check bans licenses sources";
    Stage::function("deny", &format!("cargo deny {ARGUMENTS}"), |_| {
        command::run(&mut tools::deny_command(ARGUMENTS)?)
    })
    .needs(&[Need::Deny])
    .advice("Choose another crate or version; deny.toml says what is allowed and why.")
}

/// Builds the programs that tests start; cargo builds only those of a test's own crate.
fn build() -> Stage {
    Stage::commands(
        "build",
        &["cargo build --workspace --exclude fettle-proof --exclude fettle-fuzz --bins --locked"],
    )
    .advice("Mend what does not compile.")
}

fn unit() -> Stage {
    test_stage("test", &format!("test {WITH_STD} --locked --no-fail-fast"))
}

fn kernel() -> Stage {
    let only = "--test checks --test kernel --test metrics -- --ignored --test-threads=1";
    test_stage("kernel", &format!("test {WITH_STD} --locked --no-fail-fast {only}"))
        .needs(&[
            Need::Root,
            Need::Program("mkfs.ext4"),
            Need::Program("losetup"),
            Need::Program("fsfreeze"),
            Need::Program("mount"),
            Need::Program("openssl"),
            Need::Program("vgs"),
            Need::Program("promtool"),
        ])
        .advice("Read the failed test's message: it names what the machine lacks, or the fault.")
}

fn api() -> Stage {
    // Two at a time: they share one server, and mostly wait for it.
    let only = "--test api -- --ignored --test-threads=2";
    let line = format!("cargo test {WITH_STD} --locked --no-fail-fast {only}");
    Stage::function("api", &line.clone(), move |session| {
        let mut tests = command::parse(&line);
        apiserver::provide(&mut Tools::default())?.name_to(&mut tests);
        count_tests(session, &mut tests)
    })
    .needs(&[
        // A test has a process 1 of its own, which an agent asks to reboot.
        Need::Root,
        Need::ApiServer,
        Need::Program("setpriv"),
        Need::Program("unshare"),
    ])
    .advice("Run the named test alone, with the folder that `cargo ci apiserver` prints.")
}

/// Tests what is installed: the image, the unit, the manifests and the alerts.
fn deploy() -> Stage {
    let only = "--test deploy -- --ignored --test-threads=1";
    let line = format!("cargo test {WITH_STD} --locked --no-fail-fast {only}");
    let about = format!("{}=... {line}", image::IMAGE_VARIABLE);
    Stage::function("deploy", &about, move |session| {
        let mut tests = command::parse(&line);
        tests.env(image::IMAGE_VARIABLE, image::folder(&Workspace::load()?.target));
        count_tests(session, &mut tests)
    })
    .needs(&[
        Need::Root,
        Need::Program("promtool"),
        Need::Program("qemu-aarch64-static"),
        Need::Program("systemd-analyze"),
        Need::Program("systemd-nspawn"),
        Need::Program("dbus-daemon"),
        Need::Program("openssl"),
    ])
    .advice(
        "Read the failed test's message; after a change of the catalogue, write the alerts anew.",
    )
}

fn replay() -> Stage {
    test_stage("fuzz", "test -p fettle-fuzz --locked --no-fail-fast")
        .advice("Replay the input that the message names; mend the code, keep the input.")
}

fn test_stage(name: &str, arguments: &str) -> Stage {
    let line = format!("cargo {arguments}");
    Stage::function(name, &line.clone(), move |session| {
        count_tests(session, &mut command::parse(&line))
    })
    .advice("Run the named test alone: cargo test -p CRATE NAME.")
}

fn count_tests(session: &mut Session, tests: &mut Command) -> Result<()> {
    let (tally, result) = run_tests(tests, session.say);
    session.tally.add(tally);
    result
}

/// Runs `tests`, shows what they print, and counts their results.
fn run_tests(tests: &mut Command, say: fn(&str)) -> (Tally, Result<()>) {
    let mut tally = Tally::default();
    let status = command::stdout_lines(tests, |line| {
        say(line);
        tally.add(parse_result(line).unwrap_or_default());
    });
    (tally, status.and_then(|status| judge(tests, status, tally)))
}

fn judge(tests: &Command, status: ExitStatus, tally: Tally) -> Result<()> {
    let line = command::line(tests);
    if !status.success() {
        bail!("`{line}` ended with {status}; {tally}");
    }
    if tally.is_empty() {
        bail!("`{line}` ran no test, and so shows nothing");
    }
    Ok(())
}

/// Returns the counts of one of cargo's `test result:` lines.
fn parse_result(line: &str) -> Option<Tally> {
    let mut counts = line.strip_prefix("test result: ")?.split("; ");
    let passed = count(counts.next()?, "passed")?;
    let failed = count(counts.next()?, "failed")?;
    Some(Tally { passed, failed })
}

fn count(part: &str, unit: &str) -> Option<u64> {
    let mut words = part.split(' ').rev();
    (words.next()? == unit).then(|| words.next()?.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_line_gives_its_counts() {
        let rows = [
            ("test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured", Some((5, 0))),
            ("test result: FAILED. 2 passed; 3 failed; 0 ignored", Some((2, 3))),
            ("test a ... ok", None),
            ("test result: a test's own words", None),
        ];
        for (line, want) in rows {
            let want = want.map(|(passed, failed)| Tally { passed, failed });
            assert_eq!(parse_result(line), want, "{line}");
        }
    }

    #[test]
    fn no_test_at_all_is_a_failure() {
        let (tally, result) = run_tests(&mut command::parse("echo test result: ok. none"), |_| ());
        assert!(tally.is_empty());
        assert!(result.unwrap_err().to_string().contains("ran no test"));
    }

    #[test]
    fn tests_are_counted_even_when_the_run_fails() {
        let mut tests = Command::new("sh");
        tests.args(["-c", "echo 'test result: FAILED. 2 passed; 3 failed; 0 ignored'; exit 101"]);
        let (tally, result) = run_tests(&mut tests, |_| ());
        assert_eq!(tally, Tally { passed: 2, failed: 3 });
        assert!(result.unwrap_err().to_string().ends_with("exit status: 101; 2 passed, 3 failed"));
    }
}
