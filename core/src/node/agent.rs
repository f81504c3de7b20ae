//! The agent: loops over the catalogue's rows and merges their wake-ups.

mod records;
mod repairs;
mod rounds;

use serde::{Deserialize, Serialize};

pub use self::repairs::RestartResult;
use crate::bounds::{CLEARED_BY_MAX, KUBELET_DIR_MAX, LOOKUPS_MAX, OUTPUTS_MAX};
use crate::catalog::{CONDITIONS, Clear, ConditionType, EventReason, ReadingKind};
use crate::node::block::Block;
use crate::node::boot_errors::BootErrors;
use crate::node::checks::{Checks, Outcome, Schedule};
use crate::node::condition::{Change, Condition, Held, Message, Verdict};
use crate::node::controllers::Controllers;
use crate::node::fold::{EventWrite, Fold};
use crate::node::judge::Limits;
use crate::node::judge::deadlock::TaskState;
use crate::node::judge::kernel::{self, Faults};
use crate::node::judge::own::Contest;
use crate::node::log::Log;
use crate::node::mounts::Mounts;
use crate::node::reading::Reading;
use crate::node::repair::{self, RepairSettings, Repairs, UnitName};
use crate::node::rules::{Finding, Object};
use crate::text::Text;
use crate::time::Instant;

/// Everything that the agent remembers.
///
/// # Invariants
///
/// * `userspace_raises_nothing`: a record that user space wrote changes no condition and raises
///   no event, unless the settings trust it. `AgentDegraded` alone may say another reason: that
///   a record was read, whoever wrote it, shows that the log can be read.
/// * `once`: the same record twice raises nothing the second time.
/// * `mends_seldom`: a unit is restarted at most once in its cooldown, and never unless repair is
///   on.
/// * `wakeup_is_later`: after a step, the next wakeup is after that step, unless the outputs are
///   full but for [`OUTPUTS_KEPT`](crate::bounds::OUTPUTS_KEPT): then it is at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    settings: Settings,
    log: Log,
    counts: Counts,
    block: Block,
    boot_errors: BootErrors,
    faults: Faults,
    checks: Checks,
    /// When the next check is to be started, or is stale.
    checks_due: Option<Instant>,
    controllers: Controllers,
    fold: Fold,
    /// Read-only file systems, until a fresh mount table says whose device each is.
    lookups: heapless::Vec<Finding, LOOKUPS_MAX>,
    /// When the mount table is read next.
    mounts_due: Option<Instant>,
    conditions: [Condition; ConditionType::COUNT],
    /// Somebody else who writes a condition to the Node.
    contest: Option<Contest>,
    repairs: Repairs,
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
    /// Whether and which units are restarted.
    pub repair: RepairSettings,
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
    /// Records that mean something.
    pub matched: u64,
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
    /// Somebody else writes a condition to the Node, or nobody does any more.
    Contested(Option<Contest>),
    /// A tamper condition stood `True` on the Node before this agent knew anything of it.
    HeldOnNode {
        /// Which one.
        condition: ConditionType,
    },
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
    /// The restart that [`Output::RestartUnit`] asked for has ended.
    RestartEnded {
        /// How.
        result: RestartResult,
        /// The unit, as the output named it.
        unit: UnitName,
    },
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
    /// Restart a unit, once, and answer with [`Input::RestartEnded`] when the job has ended.
    ///
    /// Save the agent first: a restart that it knows of is never ordered twice.
    RestartUnit {
        /// Why.
        reason: repair::Reason,
        /// Which one.
        unit: UnitName,
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

impl Event {
    /// Returns its reason.
    #[must_use]
    pub const fn reason(&self) -> EventReason {
        match self {
            Self::Cleared { .. } => EventReason::ConditionCleared,
            Self::Findings(write) => write.reason,
        }
    }

    /// Returns what it tells, in a sentence.
    #[must_use]
    pub fn message(&self) -> Message {
        match self {
            Self::Cleared { by, condition } => {
                Text::display(format_args!("{} was cleared by {by}", condition.row().name))
            }
            Self::Findings(write) => write.message(),
        }
    }
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
            boot_errors: BootErrors::default(),
            faults: Faults::new(),
            checks: Checks::new(),
            checks_due: None,
            controllers: Controllers::new(),
            fold: Fold::new(),
            lookups: heapless::Vec::new(),
            mounts_due: None,
            conditions: Default::default(),
            contest: None,
            repairs: Repairs::default(),
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
            Input::LogDown { errno } => self.on_log_down(now, errno, &mut outputs),
            Input::Reading { kind, reading } => self.on_reading(now, kind, &reading, &mut outputs),
            Input::CheckEnded { kind, outcome } => {
                self.on_check_ended(now, kind, outcome, &mut outputs);
            }
            Input::Mounts(table) => self.on_mounts(now, table, &mut outputs),
            Input::MountsUnreadable => self.look_up(now, &Mounts::default(), &mut outputs),
            Input::Task { pid, state } => self.on_task(now, pid, state, &mut outputs),
            Input::RestartEnded { result, unit } => {
                self.on_restart_ended(now, (&unit, &result), &mut outputs);
            }
            Input::ClearByHand { by, condition } => self.on_clear(now, by, condition, &mut outputs),
            Input::Contested(contest) => {
                self.contest = contest;
                self.judge_own(now, &mut outputs);
            }
            Input::HeldOnNode { condition } => {
                self.checks.hold(condition);
                self.judge(now, condition, &mut outputs);
            }
            Input::Configured(settings) => self.on_configured(now, settings, &mut outputs),
            Input::Started(settings) => self.on_started(now, settings, &mut outputs),
            Input::Stopping => {
                self.write_report(now, Block::take);
                self.write_all(now, &mut outputs);
            }
            Input::Tick => {}
        }
        self.do_what_is_due(now, &mut outputs);
        // Most steps have none. To move them copies 14 KiB, used or not: longer than all else.
        if outputs.is_empty() { Outputs::new() } else { outputs }
    }

    fn do_what_is_due(&mut self, now: Instant, outputs: &mut Outputs) {
        self.start_checks(now, outputs);
        self.look_at_tasks(now, outputs);
        self.look_at_mounts(now, outputs);
        self.write_report(now, |block| block.take_due(now));
        self.write_due(now, outputs);
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

    /// Says again how every condition stands: the process that said it is gone.
    fn on_started(&mut self, now: Instant, settings: Settings, outputs: &mut Outputs) {
        self.settings = settings;
        self.log.restarted();
        self.checks.schedule(now, &self.settings.schedule);
        self.checks_due = Some(now);
        self.forget_unwanted();
        // Whoever knows of one says so again.
        self.contest = None;
        self.resume_repairs(now);
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
        self.forget_unwanted();
        self.judge_all(now, ReadingKind::KernelLog, outputs);
    }

    fn forget_unwanted(&mut self) {
        self.forget_unprobed();
        for (row, stands) in CONDITIONS.iter().zip(&mut self.conditions) {
            if !self.settings.schedule.wants(row.condition) {
                *stands = Condition::default();
            }
        }
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

    /// Returns the objects with an open fault of `condition`, oldest first.
    pub fn objects(&self, condition: ConditionType) -> impl Iterator<Item = &Object> {
        self.faults.of(condition).map(|fault| &fault.finding.object)
    }

    fn judge_all(&mut self, now: Instant, kind: ReadingKind, outputs: &mut Outputs) {
        for row in CONDITIONS.iter().filter(|row| row.reading == kind) {
            self.judge(now, row.condition, outputs);
        }
    }

    fn judge(&mut self, now: Instant, condition: ConditionType, outputs: &mut Outputs) {
        if !self.settings.schedule.wants(condition) {
            return;
        }
        let verdict = if condition.row().reading == ReadingKind::KernelLog {
            kernel::judge(condition, &self.log, &self.faults, self.clear_rule(condition))
        } else {
            self.checks.judge(condition, self.condition(condition).is_some())
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
        let wanted = self.settings.schedule.wants(condition);
        let stands = self.conditions.get_mut(condition.index()).filter(|_| wanted);
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
            repair: RepairSettings::default(),
            schedule: Schedule::default(),
            trust_userspace: false,
        }
    }
}

/// Appends `output`; [`OUTPUTS_MAX`] says why there is room.
fn push(outputs: &mut Outputs, output: Output) {
    let _ = outputs.push(output);
}

#[cfg(test)]
mod tests;
