//! What the agent needs and does with a cluster: from the kernel's line to the Node, and at rest.
//!
//! Needs a real API server; see `cargo ci apiserver`.

use core::time::Duration;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use anyhow::{Context as _, Result};
use fettle_tests::api::server::{ApiServer, Options};
use fettle_tests::kmsg::FakeLog;
use k8s_openapi::api::core::v1::Node;
use kube::api::{WatchEvent, WatchParams};
use kube::{Api, Client};

use crate::process::Agent;
use crate::report::{Figure, Report, Unit};
use crate::stopwatch::Stopwatch;

/// Measures everything and adds it to `report`.
pub(crate) fn measure(report: &mut Report, binary: &Path, faults: usize) -> Result<()> {
    eprintln!("the agent at an API server, {}:", binary.display());
    let server = ApiServer::start(&Options::default()).context("cannot start the API server")?;
    server.create_node(NODE)?;
    let folder = tempfile::tempdir()?;
    let kubeconfig = server.kubelet(NODE)?.write_to(folder.path())?;
    let mut log = FakeLog::new();
    let mut command = Command::new(binary);
    command.args(["run", "--node-name", NODE, "--metrics-listen", "127.0.0.1:0", "--kubeconfig"]);
    command.arg(kubeconfig).arg("--kmsg").arg(log.path()).arg("--state-dir");
    let agent = Agent::start_by(command)?;
    let seen = watch(server.admin()?)?;
    let said = |text: &str| await_words(&seen, text);
    said("the kernel log of this boot reports none")?;
    let mut times = Vec::new();
    for fault in 0..faults {
        // What else is going on settles: each of these is one fault on a node at rest.
        thread::sleep(BETWEEN);
        let device = format!("sdb{fault}");
        let started = Stopwatch::start();
        log.write(&format!("3,{fault},1,-;EXT4-fs ({device}): Remounting filesystem read-only"));
        said(&format!("({device})"))?;
        times.push(u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }
    let p99 = percentile(&mut times, 99);
    let name = format!("kernel line to condition, {faults} faults");
    report.add(Figure::new(name, Unit::Nanoseconds, times).peer(NPD_LATENCY_NS));
    let figure = Figure::new("kernel line to condition, p99", Unit::Nanoseconds, vec![p99]);
    report.add(figure.limit(LATENCY_LIMIT_NS).peer(NPD_LATENCY_NS));
    rest(report, &agent)
}

fn rest(report: &mut Report, agent: &Agent) -> Result<()> {
    thread::sleep(SETTLE);
    let (cpu, sleeps) = (agent.cpu()?, agent.sleeps_so_far()?);
    thread::sleep(REST);
    let spent = agent.cpu()?.saturating_sub(cpu);
    let spent = u64::try_from(spent.as_nanos()).unwrap_or(u64::MAX);
    let woken = agent.sleeps_so_far()?.saturating_sub(sleeps);
    let name = |what: &str| format!("{what} in {} s at rest, with a cluster", REST.as_secs());
    report.add(Figure::new(name("CPU"), Unit::Nanoseconds, vec![spent]));
    report.add(Figure::new(name("woken"), Unit::Count, vec![woken]));
    let memory = agent.memory()?;
    let resident = Figure::new("RSS with a cluster", Unit::Bytes, vec![memory.resident]);
    report.add(resident.limit(RSS_LIMIT_BYTES).peer(NPD_RSS_BYTES));
    report.add(Figure::new("RSS with a cluster, most", Unit::Bytes, vec![memory.peak]));
    report.add(Figure::new("RSS with a cluster, anonymous", Unit::Bytes, vec![memory.anonymous]));
    Ok(())
}

/// Returns the messages of the Node's conditions, as they change.
fn watch(admin: fettle_tests::api::server::Identity) -> Result<Receiver<String>> {
    let (sender, seen) = mpsc::channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    thread::spawn(move || {
        // It ends with the measurement, which then says what it waited for.
        let _ = runtime.block_on(async {
            let client = admin.client().await?;
            follow(client, &sender).await
        });
    });
    Ok(seen)
}

async fn follow(client: Client, sender: &mpsc::Sender<String>) -> Result<()> {
    use futures_util::TryStreamExt as _;
    let nodes: Api<Node> = Api::all(client);
    let parameters = WatchParams::default().fields(&format!("metadata.name={NODE}")).timeout(290);
    let mut version = "0".to_owned();
    loop {
        let mut events = Box::pin(nodes.watch(&parameters, &version).await?);
        while let Some(event) = events.try_next().await? {
            if let WatchEvent::Added(node) | WatchEvent::Modified(node) = event {
                version = node.metadata.resource_version.unwrap_or_default();
                let conditions = node.status.and_then(|status| status.conditions);
                let messages = conditions.into_iter().flatten().filter_map(|one| one.message);
                sender.send(messages.collect::<Vec<_>>().join("\n"))?;
            }
        }
    }
}

fn await_words(seen: &Receiver<String>, words: &str) -> Result<()> {
    let waited = Stopwatch::start();
    loop {
        let messages = seen.recv_timeout(waited.left(PATIENCE));
        let messages = messages.with_context(|| format!("no condition says {words:?}"))?;
        if messages.contains(words) {
            return Ok(());
        }
    }
}

fn percentile(times: &mut [u64], percent: usize) -> u64 {
    times.sort_unstable();
    let at = times.len().saturating_mul(percent).div_ceil(100).saturating_sub(1);
    times.get(at).copied().unwrap_or_default()
}

const NODE: &str = "bench";

/// More than the agent's pace, so that it is not what is measured.
const BETWEEN: Duration = Duration::from_millis(600);

const SETTLE: Duration = Duration::from_secs(5);

/// Long enough for checks of each minute, and a report.
const REST: Duration = Duration::from_secs(125);

const PATIENCE: Duration = Duration::from_secs(20);

/// Wanted by those who watch a node: a tenth of a second.
const LATENCY_LIMIT_NS: u64 = 100_000_000;

const RSS_LIMIT_BYTES: u64 = 12_000_000;

/// Node-problem-detector on a machine of this kind: 0.73 to 1.0 s, and 42 to 53 MB.
const NPD_LATENCY_NS: u64 = 730_000_000;
const NPD_RSS_BYTES: u64 = 42_000_000;
