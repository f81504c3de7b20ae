//! The agent and its machines.

use core::hint::black_box;

use fettle_core::catalog::{ConditionType, EventReason, ReadingKind};
use fettle_core::node::agent::{Agent, Input, Settings};
use fettle_core::node::block::Block;
use fettle_core::node::boot_errors::BootErrors;
use fettle_core::node::condition::{Condition, Message, Reason, Status, Verdict};
use fettle_core::node::controllers::Controllers;
use fettle_core::node::fold::{Extra, Fold, push_extra};
use fettle_core::node::judge::deadlock::TaskState;
use fettle_core::node::judge::own::Contest;
use fettle_core::node::log::Log;
use fettle_core::node::reading::{BootError, MemoryController};
use fettle_core::node::rules::classify;
use fettle_core::text::Text;
use fettle_core::wire::cper::Severity;
use fettle_core::wire::kmsg::Record;

use crate::checks::{outcome, reading};
use crate::repair::result;
use crate::{bytes, finding, instant, number, show, text};

/// Calls everything in `node` that is not a rule or a judge.
pub(crate) fn call_all() {
    logs(black_box(&mut Log::new()));
    boot_errors(black_box(&mut BootErrors::default()));
    memory(black_box(&mut Controllers::new()));
    blocks(black_box(&mut Block::default()));
    conditions(black_box(&mut Condition::default()));
    let mut fold = Fold::new();
    folds(black_box(&mut fold));
    let mut agent = Agent::new(black_box(Settings::default()));
    use_agent(black_box(&mut agent));
}

fn boot_errors(errors: &mut BootErrors) {
    errors.note_record(&black_box(Record::bare(bytes())));
    errors.note_finding(&finding());
    errors.note_error(BootError { severity: black_box(Severity::Fatal), cleared: black_box(true) });
    errors.note_end();
    black_box(black_box(&mut *errors).take_untold());
    black_box((*errors, *errors == BootErrors::default()));
}

fn memory(controllers: &mut Controllers) {
    controllers.note_line(&finding());
    let (corrected, uncorrected) = (number(), number());
    let reading = MemoryController { name: text(), corrected, uncorrected };
    black_box(controllers.note_counts(instant(), &reading));
    let controllers = black_box(controllers);
    black_box((controllers.clone(), *controllers == Controllers::default()));
}

fn logs(log: &mut Log) {
    black_box(log.accept(number()));
    log.caught_up();
    log.down(black_box(7));
    log.restarted();
    let log = black_box(log);
    black_box((log.state(), log.lost(), log.last(), log.before_first(), log.records()));
    black_box(*log == Log::default());
}

fn blocks(block: &mut Block) {
    let record = black_box(Record::bare(bytes()));
    block.complete(&record, black_box(&mut classify(&record)));
    block.begin(instant(), number(), &finding());
    black_box(black_box(&mut *block).add(&record));
    black_box(black_box(&mut *block).take_due(instant()));
    black_box(black_box(&mut *block).take());
    let block = black_box(block);
    black_box(block.next_wakeup());
    black_box((block.clone(), *block == Block::default()));
}

fn conditions(condition: &mut Condition) {
    let message = Message::from_bytes(bytes());
    let verdict = Verdict { status: Status::True, reason: Reason::Problem, message };
    black_box(condition.step(instant(), black_box(verdict)));
    black_box((condition.held(), condition.is_true(), condition.clone()));
    black_box(black_box(Reason::Problem).name(black_box(ConditionType::KernelDeadlock)));
    show(black_box(Status::True));
}

fn folds(fold: &mut Fold) {
    let reason = black_box(EventReason::NvmeError);
    fold.note(instant(), reason, finding(), black_box(Extra::new()));
    black_box(fold.pop_due(instant()));
    black_box(fold.pop_any(instant()));
    black_box((fold.next_wakeup(), fold.total(reason)));
    black_box((fold.clone(), *fold == Fold::default()));
    push_extra(black_box(&mut Extra::new()), text(), bytes());
}

/// Steps `agent` with every kind of input, and looks at all of it.
pub(crate) fn use_agent(agent: &mut Agent) {
    for input in inputs() {
        black_box(agent.step(instant(), black_box(input)));
    }
    black_box((agent.next_wakeup(), agent.settings(), agent.log(), agent.counts()));
    black_box((agent.checks(), agent.mended(text()), agent.repairs()));
    black_box(agent.condition(black_box(ConditionType::KernelDeadlock)));
    let condition = black_box(ConditionType::ReadonlyFilesystem);
    agent.objects(condition).for_each(|object| _ = black_box(object.clone()));
    black_box(agent.event_total(black_box(EventReason::NvmeError)));
    black_box((agent.clone(), *agent == Agent::new(Settings::default())));
}

fn inputs() -> [Input<'static>; 17] {
    let state = black_box(TaskState::Alive { state: b'D', start_ticks: 7 });
    [
        Input::ClearByHand {
            by: Text::from_bytes(bytes()),
            condition: black_box(ConditionType::KernelDeadlock),
        },
        Input::Configured(black_box(Settings::default())),
        Input::Contested(black_box(Some(Contest {
            condition: ConditionType::KernelDeadlock,
            writer: Text::from_bytes(bytes()),
        }))),
        Input::HeldOnNode { condition: black_box(ConditionType::NodeTampered) },
        Input::CheckEnded { kind: black_box(ReadingKind::Disks), outcome: outcome() },
        Input::LogCaughtUp,
        Input::LogDown { errno: black_box(7) },
        Input::LogOverrun,
        Input::Mounts(bytes()),
        Input::MountsUnreadable,
        Input::Reading { kind: black_box(ReadingKind::Disks), reading: reading() },
        Input::Record(bytes()),
        Input::RestartEnded { result: result(), unit: Text::from_bytes(bytes()) },
        Input::Started(black_box(Settings::default())),
        Input::Stopping,
        Input::Task { pid: number(), state },
        Input::Tick,
    ]
}
