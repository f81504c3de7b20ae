//! The checks of the node: when each is due, what it found, and what its conditions are.

use core::fmt;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::bounds::{SUBJECT_MAX, SUBJECTS_MAX, SUBJECTS_OF_ONE_MAX, SUBJECTS_SHOWN_MAX};
use crate::catalog::{CONDITIONS, Clear, ConditionRow, ConditionType, ReadingKind, Source};
use crate::node::condition::{Message, Reason, Status, Verdict};
use crate::node::foreign::ForeignDisks;
use crate::node::judge::recovery::{self, Mended};
use crate::node::judge::{Judgement, Limits, Memory, Note, drive, judge_of};
use crate::node::reading::{Disk, Reading, Unit};
use crate::node::rules::Finding;
use crate::text::Text;
use crate::time::Instant;

/// Everything that is remembered of the checks.
///
/// A subject is one object as one condition sees it. Only those are kept that are not well, or of
/// which a judge remembers something. Full means that a further one is counted and not named.
///
/// # Invariants
///
/// * `one_at_a_time`: no check is asked for while an earlier run of it has not ended.
/// * `silence_is_not_health`: a run that failed makes no condition `False`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checks {
    subjects: heapless::Vec<Subject, SUBJECTS_MAX>,
    runs: [Run; ReadingKind::COUNT],
    beyond: [Beyond; ConditionType::COUNT],
    foreign: ForeignDisks,
}

/// How many objects of a condition did not fit in its last run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Beyond {
    problems: u32,
    unknown: u32,
}

/// One object as one condition sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Subject {
    condition: ConditionType,
    object: SubjectName,
    standing: Standing,
    memory: Memory,
    note: Note,
    /// Whether the run that goes on has read it.
    seen: bool,
}

/// The name of an object that is checked: a path, a drive, a unit.
type SubjectName = Text<SUBJECT_MAX>;

/// How a subject stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Standing {
    Gone,
    Healthy,
    Problem,
    Unknown,
}

impl Standing {
    const fn is_trouble(self) -> bool {
        matches!(self, Self::Gone | Self::Problem)
    }
}

/// The runs of one kind of reading.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Run {
    /// When the next one is due; `None` where it never is.
    due: Option<Instant>,
    /// When the first one was due.
    first_due: Option<Instant>,
    /// Whether one goes on.
    running: bool,
    /// When the last one ended well.
    last_success: Option<Instant>,
    /// How the last one ended.
    outcome: Option<Outcome>,
}

/// How the run of a check ended.
#[expect(clippy::large_enum_variant, reason = "there is no heap to put the larger one on")]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// Every object was read, or reported as unreadable.
    Complete,
    /// Nothing could be read.
    Failed {
        /// Why, in words.
        why: Note,
    },
    /// There is nothing of the kind on this node.
    NotApplicable,
}

/// How often checks run, and which conditions there are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// The interval of each condition's check, in seconds; 0 where nothing is scheduled.
    pub intervals_s: [u32; ConditionType::COUNT],
    /// Whether each condition is wanted.
    pub enabled: [bool; ConditionType::COUNT],
    /// Which kinds of reading the shell can make.
    pub probes: [bool; ReadingKind::COUNT],
}

impl Checks {
    /// Returns checks of which none has run.
    #[must_use]
    pub fn new() -> Self {
        Self {
            subjects: heapless::Vec::new(),
            runs: Default::default(),
            beyond: [Beyond::default(); ConditionType::COUNT],
            foreign: ForeignDisks::new(),
        }
    }

    /// Schedules every check to run now, and then at its interval.
    pub fn schedule(&mut self, now: Instant, schedule: &Schedule) {
        for kind in ReadingKind::ALL {
            let run = self.run_mut(kind);
            run.running = false;
            run.due = schedule.interval(kind).map(|_| now);
            // What an earlier process, or an earlier schedule, let pass is not held against it.
            run.first_due = run.due;
        }
    }

    /// Returns the next check that is due, and takes it for started.
    pub fn start_due(&mut self, now: Instant, schedule: &Schedule) -> Option<ReadingKind> {
        let is_due = |run: &Run| !run.running && run.due.is_some_and(|due| due <= now);
        let kind = ReadingKind::ALL.into_iter().find(|kind| is_due(self.run(*kind)))?;
        let due = schedule.interval(kind).map(|interval| now + interval);
        let run = self.run_mut(kind);
        run.running = true;
        run.due = due;
        run.first_due = run.first_due.or(Some(now));
        self.forget_beyond(kind);
        Some(kind)
    }

    /// Returns when the next check is due.
    #[must_use]
    pub fn next_wakeup(&self) -> Option<Instant> {
        self.runs.iter().filter(|run| !run.running).filter_map(|run| run.due).min()
    }

    /// Judges one reading for each condition that it says something about.
    pub fn note_reading(
        &mut self,
        now: Instant,
        kind: ReadingKind,
        reading: &Reading<'_>,
        limits: &Limits,
    ) {
        if let Reading::Disk(disk) = reading {
            return self.note_disk(disk);
        }
        let object = Text::from_bytes(reading.object().as_bytes());
        for row in rows(kind).filter(|row| !matches!(row.source, Source::Kernel | Source::Own)) {
            let mut memory = self.memory(row.condition, &object);
            let judgement = if let Reading::Unreadable(unreadable) = reading {
                Judgement::Unknown(Text::from_bytes(unreadable.why.as_bytes()))
            } else if let Some(judge) = judge_of(row.condition) {
                judge(now, reading, limits, &mut memory)
            } else {
                continue;
            };
            self.stand(row, &object, judgement, memory);
        }
    }

    /// Judges a unit, of which the agent knows more than systemd, for `ServiceNotRecovering`.
    pub fn note_unit(&mut self, now: Instant, unit: &Unit<'_>, mended: &Mended) {
        let row = ConditionType::ServiceNotRecovering.row();
        let object = Text::from_bytes(unit.name.as_bytes());
        let mut memory = self.memory(row.condition, &object);
        let judgement = recovery::recovering(now, unit, mended, &mut memory);
        self.stand(row, &object, judgement, memory);
    }

    /// Asks for a run now, besides those at its interval; says whether there can be one.
    pub(super) fn ask(&mut self, now: Instant, kind: ReadingKind, schedule: &Schedule) -> bool {
        let is_offered = schedule.interval(kind).is_some();
        if is_offered {
            self.run_mut(kind).due = Some(now);
        }
        is_offered
    }

    /// Notes an I/O error that the kernel reported, for `DisksFailure`.
    ///
    /// Before a disk fails, a run says how it is attached: one is asked for, and its end judges.
    pub fn note_disk_error(
        &mut self,
        now: Instant,
        finding: &Finding,
        schedule: &Schedule,
    ) -> bool {
        let Some(disk) = drive::counted_disk(finding).filter(|disk| !self.foreign.contains(disk))
        else {
            return false;
        };
        let object = Text::from_bytes(disk);
        let row = ConditionType::DisksFailure.row();
        let mut memory = self.memory(row.condition, &object);
        drive::note_error(now, finding, &mut memory);
        let mut judgement = drive::errors(now, &mut memory);
        let fails = |s: &Subject| s.object == object && s.standing == Standing::Problem;
        if matches!(judgement, Judgement::Problem(_))
            && schedule.interval(row.reading).is_some()
            && !self.of(row.condition).any(fails)
        {
            self.run_mut(row.reading).due = Some(now);
            judgement = Judgement::Healthy;
        }
        self.stand(row, &object, judgement, memory);
        true
    }

    /// A foreign disk's errors are forgotten, and whatever they stood for.
    fn note_disk(&mut self, disk: &Disk<'_>) {
        self.foreign.note(disk);
        if self.foreign.contains(disk.name.as_bytes()) {
            let name = SubjectName::from_bytes(disk.name.as_bytes());
            let of_errors = |s: &Subject| matches!(s.memory, Memory::Errors { .. });
            self.subjects.retain(|subject| !(subject.object == name && of_errors(subject)));
        }
    }

    /// Ends a run: what it did not see is gone, unless its absence is a fault.
    pub fn end(&mut self, now: Instant, kind: ReadingKind, outcome: Outcome) {
        let was_read = !matches!(outcome, Outcome::Failed { .. });
        let run = self.run_mut(kind);
        run.running = false;
        if was_read {
            run.last_success = Some(now);
        }
        run.outcome = Some(outcome);
        self.judge_errors(now, kind);
        if was_read {
            self.forget_unseen(kind);
        }
    }

    /// Forgets everything about `condition`: a person says that it is over.
    pub fn clear(&mut self, condition: ConditionType) {
        self.subjects.retain(|subject| subject.condition != condition);
        if let Some(beyond) = self.beyond.get_mut(condition.index()) {
            *beyond = Beyond::default();
        }
    }

    /// Holds a tamper condition that an earlier boot found, until a person clears it.
    pub(super) fn hold(&mut self, condition: ConditionType) {
        let row = condition.row();
        let note = Text::from_bytes(b"stood True on the Node before this boot");
        self.stand(row, &Text::from_bytes(b"Node"), Judgement::Problem(note), Memory::None);
    }

    /// Returns what `condition` is, once that can be said; `None` where it does not apply.
    ///
    /// What was `told` of it before is to be taken back where it does not apply any more.
    #[must_use]
    pub fn judge(&self, condition: ConditionType, told: bool) -> Option<Verdict> {
        let run = self.run(condition.row().reading);
        let count = |standing| self.of(condition).filter(|s| s.standing == standing).count();
        let beyond = self.beyond.get(condition.index()).copied().unwrap_or_default();
        let gone = count(Standing::Gone) > 0;
        if count(Standing::Problem) > 0 || beyond.problems > 0 || gone {
            let gone = count(Standing::Problem) == 0 && beyond.problems == 0;
            let reason = if gone { Reason::DriveGone } else { Reason::Problem };
            return Some(self.verdict(condition, Status::True, reason));
        }
        match &run.outcome {
            Some(Outcome::NotApplicable) if told => {
                Some(self.verdict(condition, Status::False, Reason::Healthy))
            }
            None | Some(Outcome::NotApplicable) => None,
            Some(Outcome::Failed { why }) => {
                let message = Message::from_bytes(why.as_str().as_bytes());
                Some(Verdict { status: Status::Unknown, reason: Reason::CheckFailed, message })
            }
            Some(Outcome::Complete) if count(Standing::Unknown) > 0 || beyond.unknown > 0 => {
                Some(self.verdict(condition, Status::Unknown, Reason::CheckFailed))
            }
            Some(Outcome::Complete) => {
                Some(self.verdict(condition, Status::False, Reason::Healthy))
            }
        }
    }

    /// Returns whether the last run of a kind found that there is nothing of it on this node.
    #[must_use]
    pub fn is_not_applicable(&self, kind: ReadingKind) -> bool {
        self.run(kind).outcome == Some(Outcome::NotApplicable)
    }

    /// Returns the first check that has had no success for five intervals.
    #[must_use]
    pub fn stale(&self, now: Instant, schedule: &Schedule) -> Option<ReadingKind> {
        ReadingKind::ALL
            .into_iter()
            .find(|kind| self.stale_at(*kind, schedule).is_some_and(|at| at <= now))
    }

    /// Returns when the next check that is not stale yet will be, if it has no success by then.
    #[must_use]
    pub fn next_stale(&self, now: Instant, schedule: &Schedule) -> Option<Instant> {
        let at = ReadingKind::ALL.into_iter().filter_map(|kind| self.stale_at(kind, schedule));
        at.filter(|at| *at > now).min()
    }

    fn stale_at(&self, kind: ReadingKind, schedule: &Schedule) -> Option<Instant> {
        let run = self.run(kind);
        let since = run.last_success.max(run.first_due)?;
        Some(since + schedule.interval(kind)?.saturating_mul(STALE_INTERVALS))
    }

    /// Returns when the last run of a kind ended well.
    #[must_use]
    pub fn last_success(&self, kind: ReadingKind) -> Option<Instant> {
        self.run(kind).last_success
    }

    /// Returns the objects for which `condition` is `True`.
    pub fn objects(&self, condition: ConditionType) -> impl Iterator<Item = &str> {
        let in_trouble = |subject: &&Subject| subject.standing.is_trouble();
        self.of(condition).filter(in_trouble).map(|subject| subject.object.as_str())
    }

    fn verdict(&self, condition: ConditionType, status: Status, reason: Reason) -> Verdict {
        let message = Text::display(Explanation { checks: self, condition, status });
        Verdict { status, reason, message }
    }

    fn of(&self, condition: ConditionType) -> impl Iterator<Item = &Subject> {
        self.subjects.iter().filter(move |subject| subject.condition == condition)
    }

    fn memory(&self, condition: ConditionType, object: &SubjectName) -> Memory {
        self.of(condition).find(|s| s.object == *object).map_or(Memory::None, |s| s.memory.clone())
    }

    fn stand(
        &mut self,
        row: &ConditionRow,
        object: &SubjectName,
        judgement: Judgement,
        memory: Memory,
    ) {
        let (standing, note) = match judgement {
            Judgement::NotMine => return,
            Judgement::Healthy => (Standing::Healthy, Note::new()),
            Judgement::NotYet(note) => self.as_it_stood(row.condition, object, note),
            Judgement::Problem(note) => (Standing::Problem, note),
            Judgement::Unknown(note) => (Standing::Unknown, note),
        };
        let held = row.clear == Clear::ByHand;
        let known = self
            .subjects
            .iter_mut()
            .find(|subject| subject.condition == row.condition && subject.object == *object);
        if let Some(known) = known {
            known.seen = true;
            if held && known.standing == Standing::Problem {
                return;
            }
            known.standing = standing;
            known.note = note;
            known.memory = memory;
            return;
        }
        if standing == Standing::Healthy && memory == Memory::None {
            return;
        }
        let (condition, object) = (row.condition, object.clone());
        let subject = Subject { condition, object, standing, memory, note, seen: true };
        // One condition's storm must not make another blind.
        let has_room = self.of(condition).count() < SUBJECTS_OF_ONE_MAX;
        if !has_room || self.subjects.push(subject).is_err() {
            self.count_beyond(condition, standing);
        }
    }

    /// What is not proven well is unknown; what is a problem is not better for one that is less.
    fn as_it_stood(
        &self,
        condition: ConditionType,
        object: &SubjectName,
        note: Note,
    ) -> (Standing, Note) {
        match self.of(condition).find(|subject| subject.object == *object) {
            Some(Subject { standing: Standing::Healthy, .. }) => (Standing::Healthy, note),
            Some(Subject { standing: Standing::Problem, note, .. }) => {
                (Standing::Problem, note.clone())
            }
            Some(Subject { standing: Standing::Gone, .. }) => (Standing::Problem, note),
            Some(Subject { standing: Standing::Unknown, .. }) | None => (Standing::Unknown, note),
        }
    }

    fn count_beyond(&mut self, condition: ConditionType, standing: Standing) {
        let Some(beyond) = self.beyond.get_mut(condition.index()) else {
            return;
        };
        match standing {
            Standing::Gone | Standing::Problem => {
                beyond.problems = beyond.problems.saturating_add(1);
            }
            Standing::Unknown => beyond.unknown = beyond.unknown.saturating_add(1),
            Standing::Healthy => {}
        }
    }

    /// Errors grow old however a run ends, and need no run that sees their disk.
    fn judge_errors(&mut self, now: Instant, kind: ReadingKind) {
        let of_kind = |subject: &&mut Subject| subject.condition.row().reading == kind;
        for subject in self.subjects.iter_mut().filter(of_kind) {
            match drive::errors(now, &mut subject.memory) {
                Judgement::NotMine | Judgement::NotYet(_) => {}
                Judgement::Problem(note) => {
                    subject.seen = true;
                    subject.standing = Standing::Problem;
                    subject.note = note;
                }
                Judgement::Healthy | Judgement::Unknown(_) => {
                    subject.seen = true;
                    subject.standing = Standing::Healthy;
                    subject.note = Note::new();
                }
            }
        }
        let is_well = |s: &Subject| s.standing == Standing::Healthy && s.memory == Memory::None;
        self.subjects.retain(|subject| !is_well(subject));
    }

    fn forget_unseen(&mut self, kind: ReadingKind) {
        let of_kind = |subject: &&mut Subject| subject.condition.row().reading == kind;
        for subject in self.subjects.iter_mut().filter(of_kind) {
            if !subject.seen && subject.memory.was_there() {
                subject.standing = Standing::Gone;
                subject.note = Text::from_bytes(b"was there and is gone");
                subject.seen = true;
            }
        }
        self.subjects.retain_mut(|subject| {
            let row = subject.condition.row();
            if row.reading != kind {
                return true;
            }
            let held = row.clear == Clear::ByHand && subject.standing == Standing::Problem;
            let unwell = subject.standing != Standing::Healthy || subject.memory != Memory::None;
            let keep = held || (subject.seen && unwell);
            subject.seen = false;
            keep
        });
    }

    /// A run counts anew what does not fit; what only a person clears has others that are kept.
    fn forget_beyond(&mut self, kind: ReadingKind) {
        for row in rows(kind) {
            if let Some(beyond) = self.beyond.get_mut(row.condition.index()) {
                *beyond = Beyond::default();
            }
        }
    }

    fn run(&self, kind: ReadingKind) -> &Run {
        static NEVER: Run =
            Run { due: None, first_due: None, running: false, last_success: None, outcome: None };
        self.runs.get(kind.index()).unwrap_or(&NEVER)
    }

    fn run_mut(&mut self, kind: ReadingKind) -> &mut Run {
        let index = kind.index().min(ReadingKind::COUNT.saturating_sub(1));
        // `index` is below COUNT, which is not 0; the first run stands in for none.
        let [first, rest @ ..] = &mut self.runs;
        match index.checked_sub(1) {
            Some(at) => rest.get_mut(at).unwrap_or(first),
            None => first,
        }
    }
}

impl Default for Checks {
    fn default() -> Self {
        Self::new()
    }
}

impl Schedule {
    /// Returns how often a kind of reading is made: as often as the most eager of its conditions.
    ///
    /// A kind that no condition is judged by is read at an interval that nobody sets.
    #[must_use]
    pub fn interval(&self, kind: ReadingKind) -> Option<Duration> {
        if !self.probes.get(kind.index()).copied().unwrap_or(false) {
            return None;
        }
        let wanted = rows(kind).filter(|row| self.wants(row.condition));
        let seconds = wanted.filter_map(|row| self.intervals_s.get(row.condition.index()));
        let shortest = seconds.copied().filter(|seconds| *seconds > 0).min();
        let of_rows = shortest.map(|seconds| Duration::from_secs(u64::from(seconds)));
        of_rows.or_else(|| interval_without_condition(kind))
    }

    /// Returns whether a condition is wanted.
    #[must_use]
    pub fn wants(&self, condition: ConditionType) -> bool {
        self.enabled.get(condition.index()).copied().unwrap_or(false)
    }
}

impl Default for Schedule {
    /// The catalogue's intervals, and every condition; but no check, which the shell must offer.
    fn default() -> Self {
        let mut intervals_s = [0; ConditionType::COUNT];
        for (interval_s, row) in intervals_s.iter_mut().zip(&CONDITIONS) {
            let seconds = row.interval.map_or(0, |interval| interval.as_secs());
            *interval_s = u32::try_from(seconds).unwrap_or(u32::MAX);
        }
        let enabled = [true; ConditionType::COUNT];
        Self { intervals_s, enabled, probes: [false; ReadingKind::COUNT] }
    }
}

/// The sentence for a condition that a check has judged.
struct Explanation<'a> {
    checks: &'a Checks,
    condition: ConditionType,
    status: Status,
}

impl fmt::Display for Explanation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |subject: &&Subject| match self.status {
            // What is not a problem yet.
            Status::False => !subject.note.is_empty(),
            Status::True => subject.standing.is_trouble(),
            Status::Unknown => subject.standing == Standing::Unknown,
        };
        let subjects = self.checks.of(self.condition).filter(shown);
        let mut count = 0_usize;
        for subject in subjects {
            if count < SUBJECTS_SHOWN_MAX {
                f.write_str(match (count, self.status) {
                    (0, Status::False) => "nothing counts yet: ",
                    (0, Status::True | Status::Unknown) => "",
                    (_, _) => "; ",
                })?;
                write!(f, "{}: {}", subject.object, subject.note)?;
            }
            count = count.saturating_add(1);
        }
        let beyond = self.checks.beyond.get(self.condition.index()).copied().unwrap_or_default();
        let beyond = match self.status {
            Status::False => 0,
            Status::True => beyond.problems,
            Status::Unknown => beyond.unknown,
        };
        let unnamed = u64::try_from(count.saturating_sub(SUBJECTS_SHOWN_MAX)).unwrap_or(u64::MAX);
        match (count, unnamed.saturating_add(u64::from(beyond))) {
            (0, 0) => f.write_str("nothing is wrong"),
            (_, 0) => Ok(()),
            (0, more) => write!(f, "{more} objects that are not named"),
            (_, more) => write!(f, "; and {more} more"),
        }
    }
}

/// Returns the conditions that are judged by a kind of reading.
fn rows(kind: ReadingKind) -> impl Iterator<Item = &'static ConditionRow> {
    CONDITIONS.iter().filter(move |row| row.reading == kind)
}

/// Returns how often a kind is read that no condition wants, and so at no interval that is set.
fn interval_without_condition(kind: ReadingKind) -> Option<Duration> {
    if kind == ReadingKind::BootErrors {
        return Some(BOOT_ERRORS_EVERY);
    }
    let is_needed = matches!(kind, ReadingKind::MemoryErrors | ReadingKind::Units);
    is_needed.then_some(EVERY_MINUTE)
}

/// They do not change; another run only tries again what failed.
const BOOT_ERRORS_EVERY: Duration = Duration::from_secs(24 * 3600);

/// As often as the catalogue's cheap checks: to read a counter is to read two files of sysfs.
/// Units are repaired even where no condition of theirs is wanted.
const EVERY_MINUTE: Duration = Duration::from_secs(60);

/// Intervals without a success after which a check is stale.
const STALE_INTERVALS: u32 = 5;

#[cfg(test)]
mod tests;
