//! What the running agent needs: CPU, memory, time to start, and how it idles.

use core::time::Duration;
use std::path::{Path, PathBuf};
use std::{env, fs, thread};

use anyhow::{Context as _, Result, ensure};
use fettle_core::node::rules::RULES;
use fettle_tests::lines;

use crate::kmsg::KernelLog;
use crate::process::Agent;
use crate::report::{Figure, Report, Unit};
use crate::stopwatch::Stopwatch;

/// Measures everything and adds it to `report`.
pub(crate) fn measure(report: &mut Report, repeats: usize, starts: usize) -> Result<()> {
    ensure!(repeats > 0 && starts > 0, "measure at least once");
    let binary = binary()?;
    eprintln!("the agent, {}:", binary.display());
    let mut log = KernelLog::open()?;
    size(report, &binary)?;
    start(report, &binary, &mut log, starts)?;
    idle(report, &binary)?;
    // The last is a node on which everything fails at once, again and again: it has no limit.
    for (what, lines, npd, limit) in [
        ("none matching", mixed(RECORDS, 0), NPD_CPU_NONE, Some(CPU_LIMIT_NS)),
        ("1 % matching", mixed(RECORDS, 1), NPD_CPU_1_PCT, Some(CPU_LIMIT_NS)),
        ("10 % matching, one disk", one_disk(RECORDS, 10), NPD_CPU_10_PCT, Some(CPU_LIMIT_NS)),
        ("10 % matching, every rule", mixed(RECORDS, 10), NPD_CPU_10_PCT, None),
    ] {
        let times = (0..repeats).map(|_| cpu(&binary, &mut log, &lines));
        let times = times.collect::<Result<_>>()?;
        let figure = Figure::new(format!("CPU, 10,000 records, {what}"), Unit::Nanoseconds, times);
        report.add(limit.into_iter().fold(figure.peer(npd), Figure::limit));
    }
    memory(report, &binary, &mut log)
}

/// Returns the shipped binary, or the one beside this program with a word about it.
pub(crate) fn binary() -> Result<PathBuf> {
    if let Some(binary) = env::var_os(BINARY_VARIABLE) {
        return Ok(PathBuf::from(binary));
    }
    let binary = env::current_exe()?.with_file_name("fettle-agent");
    eprintln!("{BINARY_VARIABLE} is not set: this measures a binary that is not the shipped one.");
    ensure!(binary.is_file(), "no agent at {}: build it first", binary.display());
    Ok(binary)
}

fn size(report: &mut Report, binary: &Path) -> Result<()> {
    let bytes = fs::metadata(binary).context("cannot see the agent")?.len();
    report.add(Figure::new("binary", Unit::Bytes, vec![bytes]).peer(NPD_BINARY));
    Ok(())
}

/// Times the first finding of a fault that the log holds already.
fn start(report: &mut Report, binary: &Path, log: &mut KernelLog, starts: usize) -> Result<()> {
    log.write(RULES.first().context("there are rules")?.example)?;
    let mut times = Vec::new();
    for _ in 0..starts {
        let started = Stopwatch::start();
        let agent = Agent::start(binary)?;
        agent.wait_for_finding()?;
        times.push(nanoseconds(started.elapsed()));
        agent.stop()?;
    }
    let figure = Figure::new("start to first finding", Unit::Nanoseconds, times);
    report.add(figure.limit(START_LIMIT_NS).peer(NPD_START_NS));
    Ok(())
}

fn idle(report: &mut Report, binary: &Path) -> Result<()> {
    let agent = Agent::start(binary)?;
    agent.wait_until_idle(CALM)?;
    let (cpu, sleeps) = (agent.cpu()?, agent.sleeps_so_far()?);
    thread::sleep(IDLE);
    let spent = nanoseconds(agent.cpu()?.saturating_sub(cpu));
    let woken = agent.sleeps_so_far()?.saturating_sub(sleeps);
    agent.stop()?;
    report.add(Figure::new("idle 10 s: CPU", Unit::Nanoseconds, vec![spent]));
    report.add(Figure::new("idle 10 s: times woken", Unit::Count, vec![woken]));
    Ok(())
}

/// Returns the CPU time that a new agent takes for `lines`.
fn cpu(binary: &Path, log: &mut KernelLog, lines: &[&str]) -> Result<u64> {
    let agent = Agent::start(binary)?;
    agent.wait_until_idle(CALM)?;
    let before = agent.cpu()?;
    write_paced(log, &agent, lines)?;
    let spent = agent.cpu()?.saturating_sub(before);
    let lost = agent.stop()?;
    ensure!(lost == 0, "{lost} records lost: the agent could not follow");
    Ok(nanoseconds(spent))
}

fn memory(report: &mut Report, binary: &Path, log: &mut KernelLog) -> Result<()> {
    let agent = Agent::start(binary)?;
    agent.wait_until_idle(CALM)?;
    let idle = agent.memory()?;
    write_paced(log, &agent, &mixed(3 * RECORDS, 10))?;
    let after = agent.memory()?;
    let lost = agent.stop()?;
    ensure!(lost == 0, "{lost} records lost: the agent could not follow");
    let figure = |name: &str, bytes| Figure::new(name, Unit::Bytes, vec![bytes]);
    report.add(figure("RSS, idle", idle.resident).limit(RSS_LIMIT).peer(NPD_RSS_IDLE));
    report.add(figure("RSS, idle: anonymous part", idle.anonymous));
    let name = "RSS, after 30,000 records";
    report.add(figure(name, after.resident).limit(RSS_LIMIT).peer(NPD_RSS_AFTER));
    report.add(figure("RSS, after 30,000 records: anonymous part", after.anonymous));
    report.add(figure("RSS, most ever", after.peak).limit(RSS_LIMIT));
    Ok(())
}

/// Writes `lines` in bursts that the ring holds, each once the agent has read the one before.
fn write_paced(log: &mut KernelLog, agent: &Agent, lines: &[&str]) -> Result<()> {
    for burst in lines.chunks(BURST) {
        for line in burst {
            log.write(line)?;
        }
        agent.wait_until_idle(BURST_CALM)?;
    }
    Ok(())
}

fn mixed(records: usize, matching_pct: usize) -> Vec<&'static str> {
    lines::mixed(records, matching_pct).collect()
}

/// Returns a mix in which all faults are the same disk's, as when a disk fails.
fn one_disk(records: usize, matching_pct: usize) -> Vec<&'static str> {
    let is_quiet = |line: &&str| lines::QUIET.contains(line);
    let disk = |line| if is_quiet(&line) { line } else { DISK_FAULT };
    lines::mixed(records, matching_pct).map(disk).collect()
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Set by `cargo ci bench`.
const BINARY_VARIABLE: &str = "FETTLE_DIST_BINARY";

/// Records in one measurement, as many as the peer was given.
const RECORDS: usize = 10_000;

/// Records written at once: some 25 KiB, beside the 128 KiB of the smallest usual ring.
const BURST: usize = 200;

/// How long the agent must have done nothing after a burst.
const BURST_CALM: Duration = Duration::from_millis(3);

/// How long the agent must have done nothing after its start.
const CALM: Duration = Duration::from_millis(300);

const IDLE: Duration = Duration::from_secs(10);

const CPU_LIMIT_NS: u64 = 30_000_000;
const RSS_LIMIT: u64 = 4_000_000;
const START_LIMIT_NS: u64 = 50_000_000;

const DISK_FAULT: &str = "I/O error, dev sdq, sector 88 op 0x0:(READ) flags 0x0 phys_seg 1";

/// node-problem-detector's CPU time for 10,000 records, by how many of them match.
const NPD_CPU_NONE: u64 = 128_000_000;
const NPD_CPU_1_PCT: u64 = 149_000_000;
const NPD_CPU_10_PCT: u64 = 185_000_000;
const NPD_BINARY: u64 = 48_400_000;
const NPD_RSS_AFTER: u64 = 42_000_000;
const NPD_RSS_IDLE: u64 = 39_000_000;
/// To the first answer of its metrics; the fastest of 49 to 252 ms.
const NPD_START_NS: u64 = 49_000_000;
