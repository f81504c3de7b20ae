//! Whatever an API server says the Node is, what is written to it is the agent's own.

use std::sync::LazyLock;

use core::time::Duration;

use fettle_agent::publish::kubernetes::body::Subject;
use fettle_agent::publish::kubernetes::node::NodeObject;
use fettle_core::journal::Stamp;
use fettle_core::node::agent::{self, Agent, Settings};
use fettle_core::node::publisher::view::NodeView;
use fettle_core::node::publisher::{Answer, Input, Output, Publisher, Start};
use fettle_core::time::{Instant, Timestamp};
use serde_json::Value;

use crate::promises::{Promises, is_for_agent};

/// Takes `data` as a Node, where it is one.
pub fn target(data: &[u8]) {
    if let Ok(node) = serde_json::from_slice::<NodeObject>(data) {
        node.view(Timestamp::from_unix_secs(1_796_068_800), false, follow);
    }
}

/// Lets a publisher follow a Node that stays as it is, whatever is written to it.
fn follow(view: NodeView<'_>) {
    let mut run = Run { publisher: Box::new(Publisher::new(1)), promises: Promises::default() };
    let mut now = START;
    let started =
        Input::Started(Start { boot: b"boot", reboots: true, ordered: &[], adopts: true });
    for input in [started, Input::NodeSeen(view)] {
        run.step(now, input);
    }
    for _ in 0..WAKEUPS {
        let Some(next) = run.publisher.next_wakeup() else { break };
        now = next + Duration::from_millis(1);
        let answer = Answer::Accepted;
        for input in [
            Input::Tick,
            Input::NodeSeen(view),
            Input::StatusAnswered(answer),
            Input::AnnotationsAnswered(answer),
            Input::EventAnswered(answer),
        ] {
            run.step(now, input);
        }
    }
}

struct Run {
    publisher: Box<Publisher>,
    promises: Promises,
}

impl Run {
    fn step(&mut self, now: Instant, input: Input<'_>) {
        let is_view = matches!(input, Input::NodeSeen(_));
        let outputs = self.promises.step(&mut self.publisher, (now, &AGENT), input);
        for output in outputs {
            assert!(is_view || !matches!(output, Output::Clear { .. } | Output::Hold { .. }));
            self.perform(now, &output);
        }
    }

    fn perform(&mut self, now: Instant, output: &Output) {
        let stamp = Stamp { at: now, log_us: 0, wall_ms: 0 };
        let subject = Subject { name: "n1".into(), uid: String::new() };
        match output {
            Output::PatchStatus => {
                let patch = self.publisher.patch().expect("it is under way");
                let body = subject.status(stamp, &AGENT, patch).body;
                let body: Value = serde_json::from_slice(&body).expect("JSON");
                let conditions = body["status"]["conditions"].as_array().expect("conditions");
                assert_eq!(conditions.len(), patch.writes.len() + patch.removes.len());
            }
            Output::WriteEvent(request) => {
                let series = self.publisher.series().get(request.number).expect("it is there");
                let body = subject.event(stamp, 1, *request, series).body;
                let body: Value = serde_json::from_slice(&body).expect("JSON");
                assert!(body["note"].as_str().is_none_or(|note| note.len() <= NOTE_BYTES_MAX));
            }
            Output::Save => {
                self.promises.saved(&self.publisher);
                self.step(now, Input::Saved);
            }
            Output::RecordReboots => {
                self.step(now, Input::RebootRecorded { is_recorded: true });
            }
            Output::Reboot { .. } => self.step(now, Input::RebootFailed { why: "it is a test" }),
            // An agent that makes nothing of it.
            Output::Annotate(_) => {}
            Output::Clear { .. } | Output::Contested(_) | Output::Hold { .. } => {
                assert!(is_for_agent(output));
            }
        }
    }
}

/// An agent that knows of a fault, and of none.
static AGENT: LazyLock<Box<Agent>> = LazyLock::new(|| {
    let mut agent = Box::new(Agent::new(Settings::default()));
    for input in [
        agent::Input::Started(Settings::default()),
        agent::Input::Record(b"3,1,1000,-;EXT4-fs (sda1): Remounting filesystem read-only"),
        agent::Input::MountsUnreadable,
        agent::Input::LogCaughtUp,
    ] {
        let _ = agent.step(START, input);
    }
    agent
});

const START: Instant = Instant::from_millis(1_000_000);

/// Enough that whatever is due at first was written, and that whoever writes too is noticed.
const WAKEUPS: u32 = 16;

/// What `ValidateEventCreate` lets pass.
const NOTE_BYTES_MAX: usize = 1024;
