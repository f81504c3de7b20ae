//! `/metrics` and `/healthz`, as Prometheus and a kubelet ask for them.
//!
//! Format: Prometheus text exposition format 0.0.4. `problem_counter` and `problem_gauge` have the
//! names that node-problem-detector's users know; what begins with `fettle_` is our own.

use core::fmt::{Display, Write as _};
use core::net::SocketAddr;
use core::time::Duration;
use std::collections::BTreeMap;
use std::io;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use fettle_core::catalog::{CONDITIONS, ConditionType, EVENTS, ReadingKind};
use fettle_core::journal::Stamp;
use fettle_core::node::agent::Agent;
use fettle_core::node::condition::{Reason, Status};
use fettle_core::node::log::LogState;
use fettle_core::node::publisher::{NodeState, Publisher};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

use crate::clock;

/// Someone asks how the agent is; the one loop answers.
#[derive(Debug)]
pub struct Question {
    answer: oneshot::Sender<Answer>,
}

/// How the agent is.
#[derive(Debug)]
struct Answer {
    metrics: String,
    /// Why the agent is not well; `None` where it is.
    ill: Option<String>,
}

/// What the metrics say that the core does not know.
#[derive(Debug, Default)]
pub struct Observed {
    /// How long the last run of each check took.
    pub check_took: BTreeMap<usize, Duration>,
    /// How many event lines were written, by index of the reason.
    pub event_writes: BTreeMap<usize, u64>,
}

/// Serves both pages on `address`, and returns where the questions arrive.
///
/// # Errors
///
/// Returns why the address cannot be listened on.
pub async fn serve(address: SocketAddr) -> io::Result<(SocketAddr, mpsc::Receiver<Question>)> {
    let listener = TcpListener::bind(address).await?;
    let bound = listener.local_addr()?;
    let (sender, receiver) = mpsc::channel(QUESTIONS_MAX);
    let pages = axum::Router::new()
        .route("/metrics", get(metrics_page))
        .route("/healthz", get(health_page))
        .with_state(sender);
    // The task ends with the process.
    tokio::spawn(async move { axum::serve(listener, pages).await });
    Ok((bound, receiver))
}

impl Question {
    /// Answers with how the agent is.
    pub fn answer(
        self,
        stamp: Stamp,
        agent: &Agent,
        publisher: Option<&Publisher>,
        observed: &Observed,
    ) {
        let mut metrics = render(stamp, agent, observed);
        if let Some(publisher) = publisher {
            metrics.push_str(&render_cluster(stamp, publisher));
        }
        let answer = Answer { metrics, ill: ill(agent) };
        // Whoever asked may have gone.
        let _ = self.answer.send(answer);
    }
}

async fn metrics_page(State(questions): State<mpsc::Sender<Question>>) -> Response {
    match ask(&questions).await {
        Some(answer) => {
            let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
            (kind, answer.metrics).into_response()
        }
        None => busy(),
    }
}

async fn health_page(State(questions): State<mpsc::Sender<Question>>) -> Response {
    match ask(&questions).await {
        Some(Answer { ill: None, .. }) => "ok\n".into_response(),
        Some(Answer { ill: Some(why), .. }) => {
            (StatusCode::SERVICE_UNAVAILABLE, why).into_response()
        }
        None => busy(),
    }
}

async fn ask(questions: &mpsc::Sender<Question>) -> Option<Answer> {
    let (answer, answered) = oneshot::channel();
    let answered = async {
        questions.send(Question { answer }).await.ok()?;
        answered.await.ok()
    };
    tokio::time::timeout(ANSWER_WITHIN, answered).await.ok().flatten()
}

fn busy() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, "the agent does not answer\n").into_response()
}

/// The agent is ill while it cannot see; a check that fails is a condition of its own.
fn ill(agent: &Agent) -> Option<String> {
    if let LogState::Down { errno } = agent.log().state() {
        return Some(format!("the kernel log cannot be read (errno {errno})\n"));
    }
    None
}

/// Returns the page of metrics.
#[must_use]
pub fn render(stamp: Stamp, agent: &Agent, observed: &Observed) -> String {
    let mut page = Page { text: String::new() };
    problems(&mut page, agent);
    log(&mut page, agent);
    checks(&mut page, stamp, agent, observed);
    page.family("fettle_event_writes_total", "counter", "Events that were written, by reason.");
    for row in &EVENTS {
        let writes = observed.event_writes.get(&row.reason.index()).copied().unwrap_or(0);
        page.sample("fettle_event_writes_total", &[("reason", row.name)], writes);
    }
    page.family("fettle_build_info", "gauge", "The version that runs; always 1.");
    page.sample("fettle_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    page.text
}

/// Returns the metrics of what is written to the API server.
#[must_use]
pub fn render_cluster(stamp: Stamp, publisher: &Publisher) -> String {
    let mut page = Page { text: String::new() };
    let name = "fettle_api_requests_total";
    page.family(name, "counter", "Requests that write to the API server, by kind and result.");
    for (kind, lane) in publisher.lanes() {
        let counts = lane.counts();
        page.sample(name, &[("kind", kind), ("result", "accepted")], counts.accepted);
        page.sample(name, &[("kind", kind), ("result", "failed")], counts.failed);
    }
    let name = "fettle_api_last_accepted_timestamp_seconds";
    page.family(name, "gauge", "When the API server last accepted a write, by kind.");
    for (kind, lane) in publisher.lanes() {
        if let Some(at) = lane.last_accepted() {
            page.sample(name, &[("kind", kind)], clock::wall_of(stamp, at) / 1000);
        }
    }
    let is_there = matches!(publisher.node(), NodeState::Present { .. });
    let help = "Whether the agent's Node was found.";
    page.single("fettle_api_node_found", "gauge", help, u8::from(is_there));
    let help = "Conditions that the Node does not have as they stand.";
    page.single("fettle_conditions_unwritten", "gauge", help, publisher.levels().unsettled());
    let contested = u8::from(publisher.levels().contest().is_some());
    let help = "Whether somebody else writes a condition of the agent's.";
    page.single("fettle_conditions_contested", "gauge", help, contested);
    let counts = publisher.series().counts();
    let help = "Happenings that events have still to tell.";
    page.single("fettle_events_waiting", "gauge", help, counts.waiting);
    for (name, help, count) in [
        ("fettle_events_told_total", "Happenings that events have told.", counts.written),
        ("fettle_events_merged_total", "Happenings told without their object.", counts.merged),
        ("fettle_events_dropped_total", "Happenings that no event tells.", counts.dropped),
    ] {
        page.single(name, "counter", help, count);
    }
    page.text
}

fn problems(page: &mut Page, agent: &Agent) {
    page.family("problem_counter", "counter", "Lines that reported a problem, by reason.");
    for row in &EVENTS {
        page.sample("problem_counter", &[("reason", row.name)], agent.event_total(row.reason));
    }
    for (row, count) in CONDITIONS.iter().zip(&agent.counts().conditions) {
        if row.reading == ReadingKind::KernelLog {
            page.sample("problem_counter", &[("reason", row.problem)], count);
        }
    }
    page.family("problem_gauge", "gauge", "Whether a condition is True, by type and reason.");
    for row in &CONDITIONS {
        let Some(held) = agent.condition(row.condition) else {
            continue;
        };
        let is_true = held.verdict.status == Status::True;
        let reason = if is_true { held.verdict.reason } else { Reason::Problem };
        let labels = [("type", row.name), ("reason", reason.name(row.condition))];
        page.sample("problem_gauge", &labels, u8::from(is_true));
    }
    page.family("fettle_condition_unknown", "gauge", "Whether nobody can tell of a condition.");
    for row in &CONDITIONS {
        let status = agent.condition(row.condition).map(|held| held.verdict.status);
        let unknown = u8::from(status == Some(Status::Unknown));
        page.sample("fettle_condition_unknown", &[("type", row.name)], unknown);
    }
}

fn log(page: &mut Page, agent: &Agent) {
    let (log, counts) = (agent.log(), agent.counts());
    let up = u8::from(!matches!(log.state(), LogState::Down { .. }));
    page.single("fettle_kmsg_up", "gauge", "Whether the kernel log can be read.", up);
    let trusts = u8::from(agent.settings().trust_userspace);
    let help = "Whether records of user space count as the kernel's, for tests.";
    page.single("fettle_kmsg_trust_userspace", "gauge", help, trusts);
    for (name, help, count) in [
        ("fettle_kmsg_records_total", "Kernel log records that were read.", log.records()),
        (
            "fettle_kmsg_lost_records_total",
            "Kernel log records that were overwritten before they were read.",
            log.lost(),
        ),
        ("fettle_kmsg_overruns_total", "Times that the kernel log overran.", counts.overruns),
        ("fettle_kmsg_malformed_records_total", "Records that do not parse.", counts.malformed),
        ("fettle_kmsg_userspace_records_total", "Records of user space.", counts.userspace),
    ] {
        page.single(name, "counter", help, count);
    }
}

fn checks(page: &mut Page, stamp: Stamp, agent: &Agent, observed: &Observed) {
    let name = "fettle_check_last_success_timestamp_seconds";
    page.family(name, "gauge", "When a check last succeeded.");
    for kind in ReadingKind::ALL {
        if let Some(at) = agent.checks().last_success(kind) {
            let seconds = clock::wall_of(stamp, at) / 1000;
            page.sample(name, &[("check", &format!("{kind:?}"))], seconds);
        }
    }
    let name = "fettle_check_duration_seconds";
    page.family(name, "gauge", "How long the last run of a check took.");
    for kind in ReadingKind::ALL {
        if let Some(took) = observed.check_took.get(&kind.index()) {
            let millis = took.as_millis();
            let seconds = format!("{}.{:03}", millis / 1000, millis % 1000);
            page.sample(name, &[("check", &format!("{kind:?}"))], seconds);
        }
    }
    let name = "fettle_agent_degraded";
    let degraded = agent.condition(ConditionType::AgentDegraded);
    let degraded = degraded.is_some_and(|held| held.verdict.status == Status::True);
    page.single(name, "gauge", "Whether the agent cannot do its work.", u8::from(degraded));
}

/// A page of metrics that grows.
struct Page {
    text: String,
}

impl Page {
    fn single(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }

    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // A String takes everything.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.text.push_str(name);
        for (n, (label, value)) in labels.iter().enumerate() {
            self.text.push(if n == 0 { '{' } else { ',' });
            let _ = write!(self.text, "{label}=\"{}\"", escaped(value));
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }
}

/// Escapes a label's value as the format asks.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Most questions that wait for the loop: a scraper, a kubelet, and some more.
const QUESTIONS_MAX: usize = 16;

/// How long a question waits: a kubelet's probe gives up after a second or more.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use fettle_core::node::agent::{Input, Settings};
    use fettle_core::time::Instant;

    use super::*;

    #[test]
    fn every_line_counts_and_a_condition_is_a_gauge() {
        let mut agent = Agent::new(Settings::default());
        let now = Instant::from_millis(0);
        for sequence in 0..3 {
            let record = format!("3,{sequence},1,-;NVRM: Xid (PCI:0000:dc:00): 45, Ch 1");
            let _ = agent.step(now, Input::Record(record.as_bytes()));
        }
        let record =
            Input::Record(b"3,9,1,-;device-mapper: verity: 8:1: data block 7 is corrupted");
        let _ = agent.step(now, record);
        let page = render(Stamp::default(), &agent, &Observed::default());
        for line in [
            "problem_counter{reason=\"NvidiaXidError\"} 3",
            "problem_counter{reason=\"VerityBlockIsCorrupt\"} 1",
            "problem_gauge{type=\"VerityCorruption\",reason=\"VerityBlockIsCorrupt\"} 1",
            "fettle_kmsg_lost_records_total 6",
            "fettle_kmsg_records_total 4",
            "fettle_kmsg_trust_userspace 0",
        ] {
            assert!(page.lines().any(|got| got == line), "{line} in\n{page}");
        }
    }

    #[test]
    fn a_label_may_hold_anything() {
        assert_eq!(escaped("a\\b\"c\nd"), "a\\\\b\\\"c\\nd");
    }
}
