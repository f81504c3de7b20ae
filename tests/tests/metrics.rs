//! The pages that the agent serves, as those read them who ask for them.

use core::time::Duration;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use fettle_tests::clock::wait_for;
use fettle_tests::kmsg::PATH;
use fettle_tests::machine::Machine;
use fettle_tests::pages::{address, get};
use fettle_tests::program::{Agent, standalone};

#[test]
#[ignore = "needs the kernel log, and promtool of the Debian package prometheus"]
fn promtool_objects_to_nothing_but_the_two_names_that_users_know() {
    let _machine = Machine::take();
    let scratch = tempfile::tempdir().expect("a directory");
    let (agent, address) = serve(scratch.path(), Path::new(PATH));
    agent.wait_following();
    // Without samples a family is not looked at.
    let page = wait_for(LIMIT, || {
        let (status, page) = get(&address, "/metrics");
        assert_eq!(status, 200, "{page}");
        SAMPLES.iter().all(|sample| page.contains(sample)).then_some(page)
    });
    let page = page.unwrap_or_else(|| panic!("never all of {SAMPLES:?}\n{}", agent.log()));
    let checked = promtool(&page);
    let said = String::from_utf8_lossy(&[checked.stdout, checked.stderr].concat()).into_owned();
    println!("{said}");
    assert!(matches!(checked.status.code(), Some(0 | 3)), "{:?}: {said}", checked.status);
    for line in said.lines() {
        let name = line.split(' ').next().unwrap_or_default();
        assert!(["problem_counter", "problem_gauge"].contains(&name), "{line}\n{page}");
    }
    agent.terminate();
}

#[test]
#[ignore = "needs the kernel log"]
fn an_agent_that_reads_the_log_is_well() {
    let _machine = Machine::take();
    let scratch = tempfile::tempdir().expect("a directory");
    let (agent, address) = serve(scratch.path(), Path::new(PATH));
    agent.wait_following();
    assert_eq!(get(&address, "/healthz"), (200, "ok\n".to_owned()));
    agent.terminate();
}

#[test]
#[ignore = "stands with the tests of the same pages"]
fn k02_an_agent_that_cannot_read_the_log_is_not_well_and_says_why() {
    let scratch = tempfile::tempdir().expect("a directory");
    let (agent, address) = serve(scratch.path(), Path::new("/nonexistent"));
    agent.wait_log("cannot read the kernel log /nonexistent");
    let want = (503, "the kernel log cannot be read (errno 2)\n".to_owned());
    assert_eq!(get(&address, "/healthz"), want);
    let (status, page) = get(&address, "/metrics");
    assert_eq!(status, 200);
    for line in ["fettle_kmsg_up 0", "fettle_agent_degraded 1"] {
        assert!(page.lines().any(|got| got == line), "{line} in\n{page}");
    }
    agent.terminate();
}

/// Starts an agent that serves its pages, and returns where.
fn serve(state: &Path, kmsg: &Path) -> (Agent, String) {
    let mut command = standalone(state, kmsg);
    let agent = Agent::start(command.args(["--metrics-listen", "127.0.0.1:0"]));
    let address = address(&agent);
    (agent, address)
}

fn promtool(page: &str) -> Output {
    let mut child = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool is there: install the Debian package prometheus");
    let mut stdin = child.stdin.take().expect("it is piped");
    stdin.write_all(page.as_bytes()).expect("it reads all of it");
    drop(stdin);
    child.wait_with_output().expect("it ends")
}

/// A sample of each family that has none at the start.
const SAMPLES: [&str; 3] = [
    "\nproblem_gauge{",
    "\nfettle_check_last_success_timestamp_seconds{",
    "\nfettle_check_duration_seconds{",
];

const LIMIT: Duration = Duration::from_secs(20);
