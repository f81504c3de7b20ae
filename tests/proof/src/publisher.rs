//! The publisher and its machines.

use core::hint::black_box;

use fettle_core::catalog::{ConditionType, EventReason};
use fettle_core::node::agent::{Agent, Event, Settings};
use fettle_core::node::condition::Change;
use fettle_core::node::fold::{EventWrite, Extra};
use fettle_core::node::publisher::orders::Reboot;
use fettle_core::node::publisher::view::{Mark, NodeView, SeenCondition};
use fettle_core::node::publisher::{Answer, Input, Publisher, Start};
use fettle_core::text::Text;
use fettle_core::time::Timestamp;

use crate::{bytes, finding, instant, number, text};

/// Calls everything in `publisher`.
pub(crate) fn call_all() {
    use_publisher(black_box(&mut Publisher::new(number())));
}

/// Steps `publisher` with every kind of input, and looks at all of it.
pub(crate) fn use_publisher(publisher: &mut Publisher) {
    let mut agent = Agent::new(black_box(Settings::default()));
    crate::node::use_agent(&mut agent);
    let agent = black_box(&agent);
    see(black_box(&mut *publisher), agent);
    start(black_box(&mut *publisher), agent);
    tell(black_box(&mut *publisher), agent);
    answer(black_box(&mut *publisher), agent);
    look(black_box(publisher));
}

fn see(publisher: &mut Publisher, agent: &Agent) {
    let transition = black_box(Some(Timestamp::from_unix_secs(7)));
    let condition = SeenCondition {
        name: text(),
        status: text(),
        reason: text(),
        message: text(),
        transition,
        writer: black_box(Some(text())),
        written: transition,
        is_own: black_box(true),
    };
    let mark = black_box(Some(Mark { value: text(), by: text(), age: black_box(None) }));
    let conditions = [condition];
    let view = NodeView {
        uid: text(),
        version: black_box(Some(7)),
        is_listed: black_box(true),
        conditions: black_box(conditions.as_slice()),
        clear: mark,
        reboot: mark,
    };
    black_box(publisher.step(instant(), agent, Input::NodeSeen(view)));
    black_box(publisher.step(instant(), agent, Input::NodeMissing));
}

fn start(publisher: &mut Publisher, agent: &Agent) {
    let (id, boot) = (Text::from_bytes(bytes()), Text::from_bytes(bytes()));
    let ordered = [Reboot { id, boot, told: black_box(false) }];
    let (boot, reboots, adopts) = (bytes(), black_box(true), black_box(true));
    let ordered = black_box(ordered.as_slice());
    let input = Input::Started(Start { boot, reboots, ordered, adopts });
    black_box(publisher.step(instant(), agent, input));
    black_box(publisher.step(instant(), agent, Input::Configured { reboots }));
}

fn tell(publisher: &mut Publisher, agent: &Agent) {
    let condition = black_box(ConditionType::KernelDeadlock);
    let change = black_box(Change::Transition);
    black_box(publisher.step(instant(), agent, Input::Changed { condition, change }));
    let reason = black_box(EventReason::NvmeError);
    let (newest, extra) = (finding(), Extra::from_bytes(bytes()));
    let write = EventWrite { reason, newest, extra, count: number(), first_us: number() };
    black_box(write.message());
    let found = Event::Findings(write);
    black_box((found.reason(), found.message()));
    black_box(publisher.step(instant(), agent, Input::Happened(&found)));
    let by = Text::from_bytes(bytes());
    let cleared = Event::Cleared { by, condition };
    black_box(publisher.step(instant(), agent, Input::Happened(&cleared)));
}

fn answer(publisher: &mut Publisher, agent: &Agent) {
    let failed = Answer::Failed { code: black_box(Some(422)), retry_after: black_box(None) };
    for answer in black_box([Answer::Accepted, Answer::AlreadyExists, failed]) {
        black_box(publisher.step(instant(), agent, Input::StatusAnswered(answer)));
        black_box(publisher.step(instant(), agent, Input::AnnotationsAnswered(answer)));
        black_box(publisher.step(instant(), agent, Input::EventAnswered(answer)));
    }
    let is_recorded = black_box(true);
    let why = text();
    for input in [
        Input::RebootRecorded { is_recorded },
        Input::RebootFailed { why },
        Input::ReportComplete,
        Input::Saved,
        Input::Stopping,
        Input::Tick,
    ] {
        black_box(publisher.step(instant(), agent, black_box(input)));
    }
}

fn look(publisher: &Publisher) {
    black_box((publisher.next_wakeup(), publisher.seed(), publisher.node(), publisher.patch()));
    black_box((publisher.series().counts(), publisher.is_settled()));
    black_box(publisher.series().get(number()).cloned());
    black_box((publisher.levels().contest(), publisher.levels().unsettled()));
    black_box(publisher.reboots().known().len());
    for (name, lane) in publisher.lanes() {
        black_box((name, lane.last_accepted(), lane.counts()));
    }
    black_box((publisher.clone(), *publisher == Publisher::new(7)));
}
