//! Checks, their readings, and the judges of readings.

use core::hint::black_box;

use fettle_core::catalog::{ConditionType, ReadingKind};
use fettle_core::node::checks::{Checks, Outcome, Schedule};
use fettle_core::node::foreign::ForeignDisks;
use fettle_core::node::judge::{
    Judge, Judgement, Limits, Memory, certificate, clock, drive, file_age, gpu, integrity,
    judge_of, own, space,
};
use fettle_core::node::log::Log;
use fettle_core::node::reading::{Attachment, Disk, Reading, Unreadable};
use fettle_core::text::Text;

use crate::{bytes, finding, instant, text};

/// Calls everything in `node::checks` and `node::reading`, and the judges of readings.
pub(crate) fn call_all() {
    judges();
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
    let all: [Judge; 10] = [
        certificate::renewal,
        clock::synchronized,
        drive::failure,
        drive::temperature,
        drive::wear,
        file_age::node_info,
        gpu::activation,
        integrity::protected_file,
        integrity::sealed_layer,
        space::usage,
    ];
    for judge in all {
        let limits = black_box(Limits::default());
        let judgement: Judgement =
            judge(instant(), &reading(), &limits, black_box(&mut Memory::None));
        black_box(judgement);
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
