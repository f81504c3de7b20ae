//! The judges of the kernel conditions, and the memory behind them.

use core::hint::black_box;

use fettle_core::catalog::{Clear, ConditionType};
use fettle_core::node::block::Block;
use fettle_core::node::judge::deadlock::{self, TaskState};
use fettle_core::node::judge::kernel::{Faults, judge};
use fettle_core::node::judge::readonly;
use fettle_core::node::log::Log;
use fettle_core::node::mounts::Mounts;

use crate::{bytes, finding, number, object};

/// Calls everything in `node::judge` and `node::mounts`.
pub(crate) fn call_all() {
    let mut faults = Faults::new();
    note(black_box(&mut faults));
    prove(black_box(&mut faults));
    look(black_box(&faults));
}

fn note(faults: &mut Faults) {
    let condition = black_box(ConditionType::KernelDeadlock);
    faults.note(condition, finding());
    if let Some(report) = black_box(&mut Block::default()).take() {
        faults.explain(condition, &report);
        faults.name(condition, &object(), &report);
    }
    faults.clear(condition);
}

fn prove(faults: &mut Faults) {
    let mounts = mounts();
    readonly::apply(faults, black_box(&mounts));
    readonly::note_mounted(faults, black_box(&mounts));
    let state = black_box(TaskState::Alive { state: b'D', start_ticks: 7 });
    deadlock::apply(faults, number(), state);
}

fn mounts() -> Mounts {
    let mounts = Mounts::parse(bytes(), bytes());
    let opaque = black_box(&mounts);
    black_box((opaque.device(&object()), opaque.lacks(&object())));
    black_box((opaque.clone(), *opaque == Mounts::default()));
    mounts
}

fn look(faults: &Faults) {
    let condition = black_box(ConditionType::KernelDeadlock);
    let log = black_box(Log::new());
    black_box(judge(condition, &log, faults, black_box(Clear::Held)));
    deadlock::pids(faults).for_each(|pid| _ = black_box(pid));
    faults.of(condition).for_each(|fault| _ = black_box(fault.clone()));
    black_box((faults.clone(), *faults == Faults::default()));
}
