//! The agent: loops over the catalogue's rows and merges their wake-ups.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::bounds::{CLEARED_BY_MAX, KUBELET_DIR_MAX, LOOKUPS_MAX, OUTPUTS_KEPT, OUTPUTS_MAX};
use crate::catalog::{CONDITIONS, Clear, ConditionType, EventReason, ReadingKind};
use crate::node::block::{Added, Block, Report};
use crate::node::checks::{Checks, Outcome, Schedule};
use crate::node::condition::{Change, Condition, Held, Verdict};
use crate::node::fold::{EventWrite, Extra, Fold};
use crate::node::judge::deadlock::{self, TaskState};
use crate::node::judge::kernel::{self, Faults};
use crate::node::judge::{Limits, own, readonly};
use crate::node::log::{Log, LogState, Place};
use crate::node::mounts::{DeviceScope, Mounts};
use crate::node::reading::Reading;
use crate::node::rules::{Detail, Finding, Object, classify};
use crate::text::Text;
use crate::time::Instant;
use crate::wire::kmsg::{Origin, Record};

/// Everything that the agent remembers.
///
/// # Invariants
///
/// * `userspace_raises_nothing`: a record that user space wrote changes no condition and raises
///   no event, unless the settings trust it. `AgentDegraded` alone may say another reason: that
///   a record was read, whoever wrote it, shows that the log can be read.
/// * `once`: the same record twice raises nothing the second time.
/// * `wakeup_is_later`: after a step, the next wakeup is after that step, unless the outputs are
///   full but for [`OUTPUTS_KEPT`]: then it is at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    settings: Settings,
    log: Log,
    counts: Counts,
    block: Block,
    faults: Faults,
    checks: Checks,
    /// When the next check is to be started, or is stale.
    checks_due: Option<Instant>,
    fold: Fold,
    /// Read-only file systems, until a fresh mount table says whose device each is.
    lookups: heapless::Vec<Finding, LOOKUPS_MAX>,
    /// When the mount table is read next.
    mounts_due: Option<Instant>,
    conditions: [Condition; ConditionType::COUNT],
    /// When the tasks that hang are looked at next.
    tasks_due: Option<Instant>,
}

const _: () = assert!(size_of::<Agent>() <= 256 * 1024);

/// What a person may set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// How each condition is cleared; only `Held` and `Proof` are looked at.
    pub clear: [Clear; ConditionType::COUNT],
    /// The kubelet's directory, below which volumes are mounted.
    pub kubelet_dir: Text<KUBELET_DIR_MAX>,
    /// What counts as too full.
    pub limits: Limits,
    /// Which checks run, and how often.
    pub schedule: Schedule,
    /// Whether records that user space wrote count as the kernel's: for tests.
    pub trust_userspace: bool,
}

/// How many records there were of which kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Findings that set a condition, by condition.
    pub conditions: [u64; ConditionType::COUNT],
    /// Records whose prefix does not parse.
    pub malformed: u64,
    /// Times that the kernel said that records were overwritten.
    pub overruns: u64,
    /// Records that user space wrote.
    pub userspace: u64,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Input<'a> {
    /// A person says that the fault behind a held condition is over.
    ClearByHand {
        /// Who says so.
        by: Text<CLEARED_BY_MAX>,
        /// Which condition.
        condition: ConditionType,
    },
    /// The run of a check that [`Output::Check`] asked for has ended.
    CheckEnded {
        /// What it read.
        kind: ReadingKind,
        /// How it ended.
        outcome: Outcome,
    },
    /// The same process goes on under other settings.
    Configured(Settings),
    /// There is no further record to read at the moment.
    LogCaughtUp,
    /// The kernel log cannot be read.
    LogDown {
        /// The operating system's error number.
        errno: i32,
    },
    /// The kernel says that records were overwritten before they were read.
    LogOverrun,
    /// The mount table that [`Output::ReadMounts`] asked for, as [`Mounts::parse`] takes it.
    #[serde(borrow)]
    Mounts(&'a [u8]),
    /// The mount table that [`Output::ReadMounts`] asked for cannot be read.
    MountsUnreadable,
    /// A check has read one object.
    Reading {
        /// What the check reads.
        kind: ReadingKind,
        /// What it read.
        reading: Reading<'a>,
    },
    /// One read of `/dev/kmsg`.
    Record(&'a [u8]),
    /// A new process goes on with this state, under these settings.
    Started(Settings),
    /// The agent is about to end: whatever is held back is to be written.
    Stopping,
    /// What was seen of a task that [`Output::ReadTask`] asked for.
    Task {
        /// Its process id.
        pid: u64,
        /// What was seen.
        state: TaskState,
    },
    /// Time passed; nothing else did.
    Tick,
}

/// Something for the shell to do.
#[expect(clippy::large_enum_variant, reason = "there is no heap to put the larger one on")]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Output {
    /// Run a check: answer with an [`Input::Reading`] for each object and one
    /// [`Input::CheckEnded`].
    Check {
        /// What to read.
        kind: ReadingKind,
    },
    /// A level: the condition stands as [`Agent::condition`] says.
    Condition {
        /// What of it changed.
        change: Change,
        /// Which one.
        condition: ConditionType,
    },
    /// An edge: write this event once.
    Event(Event),
    /// An edge: this many records were overwritten before they could be read.
    Lost {
        /// How many.
        records: u64,
        /// How many in all since the log was first read.
        total: u64,
    },
    /// Read the mount table and answer with [`Input::Mounts`], before the next record.
    ReadMounts,
    /// Look at a task and answer with [`Input::Task`].
    ReadTask {
        /// Its process id.
        pid: u64,
    },
}

/// An event to write.
#[expect(clippy::large_enum_variant, reason = "there is no heap to put the larger one on")]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// A person cleared a condition.
    Cleared {
        /// Who.
        by: Text<CLEARED_BY_MAX>,
        /// Which condition.
        condition: ConditionType,
    },
    /// Findings, folded.
    Findings(EventWrite),
}

/// The outputs of one step.
pub type Outputs = heapless::Vec<Output, OUTPUTS_MAX>;

const _: () = assert!(size_of::<Outputs>() <= 20 * 1024);

impl Agent {
    /// Returns an agent that knows nothing yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            log: Log::new(),
            counts: Counts::default(),
            block: Block::default(),
            faults: Faults::new(),
            checks: Checks::new(),
            checks_due: None,
            fold: Fold::new(),
            lookups: heapless::Vec::new(),
            mounts_due: None,
            conditions: Default::default(),
            tasks_due: None,
        }
    }

    /// Applies one input and returns what is to be done.
    #[must_use]
    pub fn step(&mut self, now: Instant, input: Input<'_>) -> Outputs {
        let mut outputs = Outputs::new();
        match input {
            Input::Record(bytes) => self.on_record(now, bytes, &mut outputs),
            Input::LogCaughtUp => self.on_caught_up(now, &mut outputs),
            Input::LogOverrun => self.counts.overruns = self.counts.overruns.saturating_add(1),
            Input::LogDown { errno } => {
                self.log.down(errno);
                self.judge_all(now, ReadingKind::KernelLog, &mut outputs);
                self.judge_own(now, &mut outputs);
            }
            Input::Reading { kind, reading } => self.on_reading(now, kind, &reading, &mut outputs),
            Input::CheckEnded { kind, outcome } => {
                self.on_check_ended(now, kind, outcome, &mut outputs);
            }
            Input::Mounts(table) => self.on_mounts(now, table, &mut outputs),
            Input::MountsUnreadable => self.look_up(now, &Mounts::default(), &mut outputs),
            Input::Task { pid, state } => self.on_task(now, pid, state, &mut outputs),
            Input::ClearByHand { by, condition } => self.on_clear(now, by, condition, &mut outputs),
            Input::Configured(settings) => self.on_configured(now, settings, &mut outputs),
            Input::Started(settings) => self.on_started(now, settings, &mut outputs),
            Input::Stopping => {
                self.write_report(now, Block::take);
                self.write_all(now, &mut outputs);
            }
            Input::Tick => {}
        }
        self.start_checks(now, &mut outputs);
        self.look_at_tasks(now, &mut outputs);
        self.look_at_mounts(now, &mut outputs);
        self.write_report(now, |block| block.take_due(now));
        self.write_due(now, &mut outputs);
        // Most steps have none. To move them copies 14 KiB, used or not: longer than all else.
        if outputs.is_empty() { Outputs::new() } else { outputs }
    }

    /// Returns when to send [`Input::Tick`] if nothing else happens first.
    #[must_use]
    pub fn next_wakeup(&self) -> Option<Instant> {
        let (block, fold) = (self.block.next_wakeup(), self.fold.next_wakeup());
        [block, fold, self.tasks_due, self.mounts_due, self.checks_due].into_iter().flatten().min()
    }

    /// Returns how `condition` stands, once there has been a verdict.
    #[must_use]
    pub fn condition(&self, condition: ConditionType) -> Option<&Held> {
        self.conditions.get(condition.index()).and_then(Condition::held)
    }

    /// Returns where the agent stands in the kernel log.
    #[must_use]
    pub const fn log(&self) -> &Log {
        &self.log
    }

    /// Returns how many records there were of which kind.
    #[must_use]
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Returns how many findings there were of `reason`, written or not.
    #[must_use]
    pub fn event_total(&self, reason: EventReason) -> u64 {
        self.fold.total(reason)
    }

    /// Returns what is remembered of the checks.
    #[must_use]
    pub const fn checks(&self) -> &Checks {
        &self.checks
    }

    /// Returns the settings that are in force.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    fn on_record(&mut self, now: Instant, bytes: &[u8], outputs: &mut Outputs) {
        let Ok(record) = Record::parse(bytes) else {
            self.counts.malformed = self.counts.malformed.saturating_add(1);
            return;
        };
        match self.log.accept(record.sequence) {
            Place::Seen => return,
            Place::New { lost: 0 } => {}
            Place::New { lost } => {
                push(outputs, Output::Lost { records: lost, total: self.log.lost() });
            }
        }
        if record.origin == Origin::Userspace {
            self.counts.userspace = self.counts.userspace.saturating_add(1);
            if !self.settings.trust_userspace {
                return;
            }
        }
        self.on_addition(now, &record, outputs);
        let sequence = record.sequence;
        let mut findings = classify(&record);
        self.block.complete(&record, &mut findings);
        for finding in findings {
            if matches!(finding.detail, Detail::Readonly { .. }) {
                self.on_readonly(now, finding, outputs);
            } else {
                self.on_finding(now, Some(sequence), finding, outputs);
            }
        }
    }

    /// Whose device it is decides what it is; the table is read when it is needed, so that it is
    /// as new as the fault.
    fn on_readonly(&mut self, now: Instant, finding: Finding, outputs: &mut Outputs) {
        match self.lookups.push(finding) {
            Ok(()) => push(outputs, Output::ReadMounts),
            Err(finding) => self.on_finding(now, None, finding, outputs),
        }
    }

    /// Settles every read-only file system that waits for the mount table.
    fn look_up(&mut self, now: Instant, mounts: &Mounts, outputs: &mut Outputs) {
        for finding in core::mem::take(&mut self.lookups) {
            if is_volume(mounts, &finding) {
                let reason = EventReason::VolumeFilesystemReadOnly;
                self.fold.note(now, reason, finding, Extra::new());
            } else {
                self.on_finding(now, None, finding, outputs);
            }
        }
    }

    /// `sequence` numbers the record where later ones may add to the finding.
    fn on_finding(
        &mut self,
        now: Instant,
        sequence: Option<u64>,
        finding: Finding,
        outputs: &mut Outputs,
    ) {
        // Another block begins only when the one before has said everything.
        if let Some(sequence) = sequence
            && finding.detail.takes_lines()
        {
            self.write_report(now, Block::take);
            self.block.begin(now, sequence, &finding);
        } else if let Some(reason) = finding.detail.event() {
            self.fold.note(now, reason, finding.clone(), Extra::new());
        }
        if self.checks.note_disk_error(now, &finding) {
            self.judge(now, ConditionType::DisksFailure, outputs);
        }
        if let Some(condition) = finding.detail.condition() {
            if let Some(count) = self.counts.conditions.get_mut(condition.index()) {
                *count = count.saturating_add(1);
            }
            self.faults.note(condition, finding);
            self.judge(now, condition, outputs);
        }
    }

    /// Notes the event of a block that is complete, or as complete as it may wait for.
    fn write_report(&mut self, now: Instant, take: impl Fn(&mut Block) -> Option<Report>) {
        if let Some(Report { finding, extra, .. }) = take(&mut self.block)
            && let Some(reason) = finding.detail.event()
        {
            self.fold.note(now, reason, finding, extra);
        }
    }

    /// Adds what a record of an open block says to the block's finding.
    fn on_addition(&mut self, now: Instant, record: &Record<'_>, outputs: &mut Outputs) {
        let Some((report, added)) = self.block.add(record) else {
            return;
        };
        let Some(condition) = report.finding.detail.condition() else {
            return;
        };
        match added {
            Added::Name { before } => self.faults.name(condition, &before, report),
            Added::Extra => self.faults.explain(condition, report),
        }
        self.judge(now, condition, outputs);
    }

    fn on_caught_up(&mut self, now: Instant, outputs: &mut Outputs) {
        if self.log.state() != LogState::Live {
            self.log.caught_up();
            self.judge_all(now, ReadingKind::KernelLog, outputs);
            self.judge_own(now, outputs);
        }
    }

    fn on_mounts(&mut self, now: Instant, table: &[u8], outputs: &mut Outputs) {
        let mounts = Mounts::parse(table, self.settings.kubelet_dir.as_str().as_bytes());
        // Before the look-up: ext4 prints its line before it sets what the table shows, so the
        // table that a new fault is looked up in proves nothing about it.
        if self.clear_rule(ConditionType::ReadonlyFilesystem) == Clear::Proof {
            readonly::apply(&mut self.faults, &mounts);
            self.judge(now, ConditionType::ReadonlyFilesystem, outputs);
        }
        self.look_up(now, &mounts, outputs);
        readonly::note_mounted(&mut self.faults, &mounts);
    }

    fn on_task(&mut self, now: Instant, pid: u64, state: TaskState, outputs: &mut Outputs) {
        if self.clear_rule(ConditionType::KernelDeadlock) == Clear::Proof {
            deadlock::apply(&mut self.faults, pid, state);
            self.judge(now, ConditionType::KernelDeadlock, outputs);
        }
    }

    /// Says again how every condition stands: the process that said it is gone.
    fn on_started(&mut self, now: Instant, settings: Settings, outputs: &mut Outputs) {
        self.settings = settings;
        self.log.restarted();
        self.checks.schedule(now, &self.settings.schedule);
        self.checks_due = Some(now);
        if !self.lookups.is_empty() {
            push(outputs, Output::ReadMounts);
        }
        for row in &CONDITIONS {
            let condition = row.condition;
            if self.condition(condition).is_some() {
                push(outputs, Output::Condition { change: Change::Resumed, condition });
            }
        }
    }

    /// Runs every check again; a condition that is not wanted any more is forgotten.
    fn on_configured(&mut self, now: Instant, settings: Settings, outputs: &mut Outputs) {
        self.settings = settings;
        self.checks.schedule(now, &self.settings.schedule);
        self.checks_due = Some(now);
        for (row, stands) in CONDITIONS.iter().zip(&mut self.conditions) {
            if !self.settings.schedule.wants(row.condition) {
                *stands = Condition::default();
            }
        }
        self.judge_all(now, ReadingKind::KernelLog, outputs);
    }

    fn on_clear(
        &mut self,
        now: Instant,
        by: Text<CLEARED_BY_MAX>,
        condition: ConditionType,
        outputs: &mut Outputs,
    ) {
        let was_true = self.conditions.get(condition.index()).is_some_and(Condition::is_true);
        self.faults.clear(condition);
        self.checks.clear(condition);
        self.judge(now, condition, outputs);
        if was_true {
            push(outputs, Output::Event(Event::Cleared { by, condition }));
        }
    }

    /// Asks for the state of the tasks that hang, where that may clear the condition.
    fn look_at_tasks(&mut self, now: Instant, outputs: &mut Outputs) {
        let proof = self.clear_rule(ConditionType::KernelDeadlock) == Clear::Proof;
        if !proof || deadlock::pids(&self.faults).next().is_none() {
            self.tasks_due = None;
            return;
        }
        match self.tasks_due {
            Some(due) if due > now => return,
            Some(_) => {
                let room = OUTPUTS_MAX.saturating_sub(outputs.len()).saturating_sub(OUTPUTS_KEPT);
                for pid in deadlock::pids(&self.faults).take(room) {
                    push(outputs, Output::ReadTask { pid });
                }
            }
            None => {}
        }
        self.tasks_due = Some(now + PROOF_INTERVAL);
    }

    /// Asks for the mount table while a file system is read-only, where that may clear it.
    fn look_at_mounts(&mut self, now: Instant, outputs: &mut Outputs) {
        let condition = ConditionType::ReadonlyFilesystem;
        let proof = self.clear_rule(condition) == Clear::Proof;
        if !proof || self.faults.of(condition).next().is_none() {
            self.mounts_due = None;
            return;
        }
        match self.mounts_due {
            Some(due) if due > now => return,
            Some(_) => push(outputs, Output::ReadMounts),
            None => {}
        }
        self.mounts_due = Some(now + PROOF_INTERVAL);
    }

    /// Returns the objects with an open fault of `condition`, oldest first.
    pub fn objects(&self, condition: ConditionType) -> impl Iterator<Item = &Object> {
        self.faults.of(condition).map(|fault| &fault.finding.object)
    }

    /// Starts the checks that are due; one that is due while its last run goes on waits for it.
    fn start_checks(&mut self, now: Instant, outputs: &mut Outputs) {
        if self.checks_due.is_none_or(|due| due > now) {
            return;
        }
        let room = OUTPUTS_MAX.saturating_sub(OUTPUTS_KEPT);
        while outputs.len() < room
            && let Some(kind) = self.checks.start_due(now, &self.settings.schedule)
        {
            push(outputs, Output::Check { kind });
        }
        self.judge_own(now, outputs);
    }

    fn on_reading(
        &mut self,
        now: Instant,
        kind: ReadingKind,
        reading: &Reading<'_>,
        outputs: &mut Outputs,
    ) {
        if let Reading::Layer(layer) = reading
            && layer.corrupted
        {
            self.on_corrupt_layer(now, layer.name, outputs);
        }
        self.checks.note_reading(now, kind, reading, &self.settings.limits);
    }

    /// The device-mapper's status tells of corruption whose line was lost, too.
    fn on_corrupt_layer(&mut self, now: Instant, name: &str, outputs: &mut Outputs) {
        let condition = ConditionType::VerityCorruption;
        let object = Object::from_bytes(name.as_bytes());
        if self.objects(condition).any(|known| *known == object) {
            return;
        }
        let line = Text::from_bytes(b"the device-mapper's status of it is C, corrupted");
        let detail = Detail::VerityStatus;
        self.faults.note(condition, Finding { object, detail, line, timestamp_us: 0 });
        self.judge(now, condition, outputs);
    }

    fn on_check_ended(
        &mut self,
        now: Instant,
        kind: ReadingKind,
        outcome: Outcome,
        outputs: &mut Outputs,
    ) {
        self.checks.end(now, kind, outcome);
        self.judge_all(now, kind, outputs);
        self.judge_own(now, outputs);
    }

    fn judge_all(&mut self, now: Instant, kind: ReadingKind, outputs: &mut Outputs) {
        for row in CONDITIONS.iter().filter(|row| row.reading == kind) {
            self.judge(now, row.condition, outputs);
        }
    }

    /// Judges the agent itself, and notes when its checks are to be looked at again.
    fn judge_own(&mut self, now: Instant, outputs: &mut Outputs) {
        let schedule = &self.settings.schedule;
        let stale = self.checks.next_stale(now, schedule);
        self.checks_due = [self.checks.next_wakeup(), stale].into_iter().flatten().min();
        let verdict = own::judge(now, &self.log, &self.checks, schedule);
        self.stand(now, ConditionType::AgentDegraded, verdict, outputs);
    }

    fn judge(&mut self, now: Instant, condition: ConditionType, outputs: &mut Outputs) {
        if !self.settings.schedule.wants(condition) {
            return;
        }
        let verdict = if condition.row().reading == ReadingKind::KernelLog {
            kernel::judge(condition, &self.log, &self.faults, self.clear_rule(condition))
        } else {
            self.checks.judge(condition)
        };
        self.stand(now, condition, verdict, outputs);
    }

    fn stand(
        &mut self,
        now: Instant,
        condition: ConditionType,
        verdict: Option<Verdict>,
        outputs: &mut Outputs,
    ) {
        let stands = self.conditions.get_mut(condition.index());
        if let (Some(verdict), Some(stands)) = (verdict, stands)
            && let Some(change) = stands.step(now, verdict)
        {
            push(outputs, Output::Condition { change, condition });
        }
    }

    fn clear_rule(&self, condition: ConditionType) -> Clear {
        self.settings.clear.get(condition.index()).copied().unwrap_or(Clear::Held)
    }

    fn write_due(&mut self, now: Instant, outputs: &mut Outputs) {
        while !outputs.is_full()
            && let Some(write) = self.fold.pop_due(now)
        {
            push(outputs, Output::Event(Event::Findings(write)));
        }
    }

    fn write_all(&mut self, now: Instant, outputs: &mut Outputs) {
        while !outputs.is_full()
            && let Some(write) = self.fold.pop_any(now)
        {
            push(outputs, Output::Event(Event::Findings(write)));
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        let mut clear = [Clear::Held; ConditionType::COUNT];
        for (rule, row) in clear.iter_mut().zip(&CONDITIONS) {
            *rule = row.clear;
        }
        Self {
            clear,
            kubelet_dir: Text::from_bytes(b"/var/lib/kubelet"),
            limits: Limits::default(),
            schedule: Schedule::default(),
            trust_userspace: false,
        }
    }
}

/// A file system that only workloads use is not the node's (decisions, "whose disk").
fn is_volume(mounts: &Mounts, finding: &Finding) -> bool {
    mounts.device(&finding.object).is_some_and(|device| device.scope == DeviceScope::Volume)
}

/// Appends `output`; [`OUTPUTS_MAX`] says why there is room.
fn push(outputs: &mut Outputs, output: Output) {
    let _ = outputs.push(output);
}

/// How often a proof that a fault is over is looked for: the interval of the seed's fastest row.
const PROOF_INTERVAL: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests;
