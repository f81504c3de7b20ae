//! Checks, their readings, and the judges of readings.

use core::hint::black_box;

use fettle_core::catalog::{ConditionType, ReadingKind};
use fettle_core::node::checks::{Checks, Outcome, Schedule};
use fettle_core::node::foreign::ForeignDisks;
use fettle_core::node::judge::streak::{Answer, Streak};
use fettle_core::node::judge::{
    Judge, Judgement, Limits, Memory, audit, certificate, clock, cni, drive, file_age, gpu,
    integrity, judge_of, kubelet, own, proxy, recovery, runtime, space, tunnel, unit,
};
use fettle_core::node::log::Log;
use fettle_core::node::reading::{
    ActiveState, Attachment, Disk, GaugeAnswer, Reading, Unit, UnitDuty, Unreadable,
};
use fettle_core::text::Text;

use crate::{bytes, finding, instant, number, show, text};

/// Calls everything in `node::checks` and `node::reading`, and the judges of readings.
pub(crate) fn call_all() {
    judges();
    services(black_box(&mut Memory::None));
    errors(black_box(&mut Memory::None));
    disks(black_box(&mut ForeignDisks::new()));
    let mut checks = Checks::new();
    run(black_box(&mut checks));
    look(black_box(&checks));
}

/// Returns a reading of which the optimiser knows neither the kind nor the content.
pub(crate) fn reading() -> Reading<'static> {
    let reading = black_box(Reading::Unreadable(Unreadable { object: text(), why: text() }));
    black_box(reading.object());
    reading
}

/// Returns the end of a run, of which the optimiser knows nothing.
pub(crate) fn outcome() -> Outcome {
    black_box(Outcome::Failed { why: Text::from_bytes(bytes()) })
}

fn judges() {
    black_box(judge_of(black_box(ConditionType::DisksFailure)));
    let all: [Judge; 18] = [
        audit::source_address,
        certificate::renewal,
        clock::synchronized,
        cni::health,
        drive::failure,
        drive::temperature,
        drive::wear,
        file_age::node_info,
        gpu::activation,
        integrity::protected_file,
        integrity::sealed_layer,
        kubelet::health,
        kubelet::heartbeat,
        proxy::ready,
        runtime::health,
        space::usage,
        tunnel::connected,
        unit::active,
    ];
    for judge in all {
        let limits = black_box(Limits::default());
        let judgement: Judgement =
            judge(instant(), &reading(), &limits, black_box(&mut Memory::None));
        black_box(judgement);
    }
}

/// Returns a unit of which the optimiser knows nothing.
pub(crate) fn a_unit() -> Unit<'static> {
    black_box(Unit {
        name: text(),
        duty: UnitDuty { critical: black_box(true), operability: black_box(true) },
        active: ActiveState::by_name(text()),
        sub: text(),
        result: text(),
        restarts: black_box(7),
        last_start: black_box(Some(instant())),
        start_timeout_s: black_box(Some(number())),
        has_job: black_box(true),
    })
}

fn services(memory: &mut Memory) {
    let (unit, mended) = (a_unit(), black_box(recovery::Mended::default()));
    black_box((unit.active.name(), unit.active.is_up(), unit.active.is_settled()));
    black_box(recovery::recovering(instant(), &unit, &mended, memory));
    black_box((memory.clone(), mended == recovery::Mended::default()));
    black_box(GaugeAnswer::of(black_box(None)));
    let answer = Answer::of(&reading(), &black_box(Limits::default()));
    if let Some(answer) = black_box(answer) {
        black_box(black_box(Streak::default()).after(answer));
        if let Answer::Failed(failure) = answer {
            show(failure);
        }
    }
}

fn errors(memory: &mut Memory) {
    let finding = finding();
    black_box(drive::counted_disk(&finding));
    drive::note_error(instant(), &finding, black_box(memory));
    black_box(drive::errors(instant(), black_box(memory)));
    black_box((memory.clone(), *memory == Memory::None));
}

fn disks(foreign: &mut ForeignDisks) {
    foreign.note(&Disk { name: text(), attachment: black_box(Attachment::Usb) });
    let foreign = black_box(foreign);
    black_box((foreign.contains(bytes()), foreign.clone()));
    black_box(*foreign == ForeignDisks::default());
}

fn run(checks: &mut Checks) {
    let (kind, schedule) = (black_box(ReadingKind::Disks), black_box(Schedule::default()));
    black_box((schedule.interval(kind), schedule.wants(condition())));
    checks.schedule(instant(), &schedule);
    black_box(checks.start_due(instant(), &schedule));
    checks.note_reading(instant(), kind, &reading(), &black_box(Limits::default()));
    black_box(checks.note_disk_error(instant(), &finding(), &schedule));
    checks.end(instant(), kind, outcome());
    checks.note_unit(instant(), &a_unit(), &black_box(recovery::Mended::default()));
    checks.clear(condition());
}

fn look(checks: &Checks) {
    let (kind, schedule) = (black_box(ReadingKind::Disks), black_box(Schedule::default()));
    black_box((
        checks.next_wakeup(),
        checks.judge(condition(), black_box(true)),
        checks.is_not_applicable(kind),
    ));
    black_box((checks.stale(instant(), &schedule), checks.next_stale(instant(), &schedule)));
    black_box((checks.last_success(kind), kind.index()));
    checks.objects(condition()).for_each(|object| _ = black_box(object));
    black_box(own::judge(instant(), &black_box(Log::new()), (checks, &schedule), None));
    black_box((checks.clone(), *checks == Checks::default()));
}

fn condition() -> ConditionType {
    black_box(ConditionType::DisksFailure)
}
