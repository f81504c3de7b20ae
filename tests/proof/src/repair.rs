//! In-place repair.

use core::hint::black_box;
use core::time::Duration;

use fettle_core::catalog::ReadingKind;
use fettle_core::node::agent::RestartResult;
use fettle_core::node::judge::streak::{Answer, Failure};
use fettle_core::node::reading::ActiveState;
use fettle_core::node::repair::{
    Ended, Input, Mode, Output, Policy, Reason, Repair, RepairSettings, Repairs, Rule, Target,
    UnitState,
};
use fettle_core::text::Text;

use crate::checks::a_unit;
use crate::{bytes, instant, number, show, text};

/// Calls everything in `node::repair`.
pub(crate) fn call_all() {
    one(black_box(&mut Repair::default()));
    all(black_box(&mut Repairs::default()));
    show(Rule::Moving { active: black_box(ActiveState::Failed), has_job: black_box(true) });
}

/// Returns the end of a restart, of which the optimiser knows nothing.
pub(crate) fn result() -> RestartResult {
    black_box(RestartResult { ended: black_box(Ended::Failed), why: Text::from_bytes(bytes()) })
}

fn one(repair: &mut Repair) {
    let cooldown = Duration::from_millis(number());
    let policy = Policy { cooldown, mode: black_box(Mode::Act) };
    for input in [
        Input::Answer(black_box(Answer::Failed(Failure::Refused))),
        Input::Unit(black_box(Some(UnitState::of(&a_unit())))),
        Input::Ended(black_box(Ended::Done)),
        Input::Resumed,
    ] {
        if let Some(Output::Restart(reason) | Output::Hold(reason)) =
            repair.step(instant(), black_box(input), &policy)
        {
            show(reason);
        }
    }
    let reason = Reason { failures: 7, last: Failure::Refused, rule: Rule::SystemdSilent };
    black_box(black_box(Output::Hold(reason)).reason());
    repair.forget_answers();
    let repair = black_box(repair);
    black_box((repair.mended(), repair.clone(), *repair == Repair::default()));
}

fn all(repairs: &mut Repairs) {
    let settings = black_box(RepairSettings::default());
    let target = black_box(Target::Runtime);
    let kind = black_box(ReadingKind::Cri);
    black_box((target.probe(), Target::probed_by(kind), target.cooldown()));
    black_box((settings.unit(target), settings.target(text())));
    black_box(settings == RepairSettings::default());
    repairs.note_unit(&a_unit(), &settings);
    let input = Input::Unit(black_box(&mut *repairs).take_unit(target));
    black_box(repairs.step(instant(), (target, input), &settings));
    repairs.forget_answers(target);
    let repairs = black_box(repairs);
    black_box((repairs.mended(text(), &settings), repairs.reason(target), repairs.clone()));
    black_box(*repairs == Repairs::default());
}
