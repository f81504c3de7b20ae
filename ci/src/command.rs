//! Runs other programs, and says which command failed and how.

use std::env;
use std::io::{BufRead as _, BufReader, Read};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context as _, Result, bail};

/// Returns the command `cargo <arguments>`; the arguments are separated by spaces.
pub(crate) fn cargo(arguments: &str) -> Command {
    parse(&format!("cargo {arguments}"))
}

/// Returns the command of one line, whose words are separated by spaces.
pub(crate) fn parse(line: &str) -> Command {
    let mut words = line.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    if env::var_os("CI").is_some() {
        command.env("CARGO_TERM_PROGRESS_WHEN", "never");
    }
    command
}

/// Returns the words of `command` as one would type them.
pub(crate) fn line(command: &Command) -> String {
    let mut line = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    line
}

/// Runs `command` with the streams of this process.
///
/// # Errors
///
/// The command cannot be started, or does not end with status 0.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| cannot_start(command))?;
    succeeded(command, status)
}

/// Runs `command` and returns what it writes to standard output.
///
/// # Errors
///
/// The command cannot be started, or does not end with status 0.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output =
        command.stderr(Stdio::inherit()).output().with_context(|| cannot_start(command))?;
    succeeded(command, output.status)?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs `command` and hands each line of its standard output to `each`.
pub(crate) fn stdout_lines(command: &mut Command, each: impl FnMut(&str)) -> Result<ExitStatus> {
    let mut child =
        command.stdout(Stdio::piped()).spawn().with_context(|| cannot_start(command))?;
    let stream = child.stdout.take().context("a piped stream was not there")?;
    each_line(stream, each).with_context(|| format!("cannot read from `{}`", line(command)))?;
    child.wait().with_context(|| format!("cannot wait for `{}`", line(command)))
}

/// Runs `command` and hands each line of its standard error to `each`.
pub(crate) fn stderr_lines(command: &mut Command, each: impl FnMut(&str)) -> Result<ExitStatus> {
    let mut child =
        command.stderr(Stdio::piped()).spawn().with_context(|| cannot_start(command))?;
    let stream = child.stderr.take().context("a piped stream was not there")?;
    each_line(stream, each).with_context(|| format!("cannot read from `{}`", line(command)))?;
    child.wait().with_context(|| format!("cannot wait for `{}`", line(command)))
}

/// Turns a status other than 0 into an error that names the command.
pub(crate) fn succeeded(command: &Command, status: ExitStatus) -> Result<()> {
    if status.success() {
        return Ok(());
    }
    bail!("`{}` ended with {status}", line(command))
}

fn each_line(stream: impl Read, mut each: impl FnMut(&str)) -> Result<()> {
    let mut reader = BufReader::new(stream);
    let mut bytes = Vec::new();
    while reader.read_until(b'\n', &mut bytes)? > 0 {
        each(String::from_utf8_lossy(&bytes).trim_end_matches(['\r', '\n']));
        bytes.clear();
    }
    Ok(())
}

fn cannot_start(command: &Command) -> String {
    format!("cannot start `{}`: is it installed and in PATH?", line(command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_reads_back_as_its_line() {
        assert_eq!(line(&cargo("build -p fettle-core")), "cargo build -p fettle-core");
    }

    #[test]
    fn a_failure_names_the_command_and_its_status() {
        let error = run(&mut parse("false --why")).unwrap_err();
        assert_eq!(error.to_string(), "`false --why` ended with exit status: 1");
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = run(&mut parse("fettle-no-such-program")).unwrap_err();
        assert!(error.to_string().contains("`fettle-no-such-program`"), "{error}");
    }

    #[test]
    fn lines_arrive_without_their_ends() {
        let mut lines = Vec::new();
        each_line(&b"a\r\n\nb"[..], |line| lines.push(line.to_owned())).unwrap();
        assert_eq!(lines, ["a", "", "b"]);
    }
}
