//! Builds the agent and becomes it.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{fs, process};

use anyhow::{Context as _, Result};
use clap::Args;

use crate::command;
use crate::stage::say;
use crate::tools;
use crate::workspace::Workspace;

/// What the demonstration runs with.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Ends the agent after this time, such as 10s.
    #[arg(long = "for", value_name = "TIME")]
    time: Option<String>,
    /// More arguments for `fettle-agent run`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    more: Vec<String>,
}

/// Builds the agent, then replaces this process by it.
///
/// So Ctrl-C reaches the agent and nothing else, and its exit code is the task's.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    say("Building the agent: cargo build --release -p fettle-agent");
    command::run(&mut command::cargo("build --release -p fettle-agent"))?;
    if !tools::is_root() {
        say("Not root: /dev/kmsg usually needs root, so kernel findings may be missing.");
    }
    let target = Workspace::load()?.target;
    let state = fresh_state(&target.join("demo"))?;
    let mut agent = agent(&target, &state, arguments);
    say(&format!("Running until Ctrl-C: {}", command::line(&agent)));
    let error = agent.exec();
    Err(error).with_context(|| format!("cannot start `{}`", command::line(&agent)))
}

fn agent(target: &Path, state: &Path, arguments: &Arguments) -> Command {
    let mut agent = Command::new(target.join("release/fettle-agent"));
    agent.args(["run", "--standalone", "--output", "table", "--state-dir"]).arg(state);
    if let Some(time) = &arguments.time {
        agent.args(["--for", time]);
    }
    agent.args(&arguments.more);
    agent
}

/// Makes an empty folder named after this process, and removes those of processes that ended.
fn fresh_state(folder: &Path) -> Result<PathBuf> {
    let state = folder.join(process::id().to_string());
    if folder.exists() {
        remove_stale(folder, &state)
            .with_context(|| format!("cannot clear {}", folder.display()))?;
    }
    fs::create_dir_all(&state).with_context(|| format!("cannot make {}", state.display()))?;
    Ok(state)
}

fn remove_stale(folder: &Path, own: &Path) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let is_running = Path::new("/proc").join(entry.file_name()).exists();
        if !is_running || entry.path() == own {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_and_further_arguments_are_passed_on() {
        let arguments = Arguments { time: Some("10s".into()), more: vec!["--config".into()] };
        let agent = agent(Path::new("t"), Path::new("s"), &arguments);
        let want = "t/release/fettle-agent run --standalone --output table --state-dir s \
                    --for 10s --config";
        assert_eq!(command::line(&agent), want);
    }
}
