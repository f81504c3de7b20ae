//! What the agent does with records of the kernel log, and with the proofs that a fault is over.

use core::time::Duration;

use super::{Agent, Output, Outputs, push};
use crate::bounds::{OUTPUTS_KEPT, OUTPUTS_MAX};
use crate::catalog::{Clear, ConditionType, EventReason, ReadingKind};
use crate::node::block::{Added, Block, Report};
use crate::node::fold::Extra;
use crate::node::judge::deadlock::{self, TaskState};
use crate::node::judge::readonly;
use crate::node::log::{LogState, Place};
use crate::node::mounts::{DeviceScope, Mounts};
use crate::node::rules::{Detail, Finding, classify};
use crate::time::Instant;
use crate::wire::kmsg::{Origin, Record};

impl Agent {
    pub(super) fn on_record(&mut self, now: Instant, bytes: &[u8], outputs: &mut Outputs) {
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
        self.boot_errors.note_record(&record);
        let sequence = record.sequence;
        let mut findings = classify(&record);
        self.block.complete(&record, &mut findings);
        if !findings.is_empty() {
            self.counts.matched = self.counts.matched.saturating_add(1);
        }
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
    pub(super) fn on_readonly(&mut self, now: Instant, finding: Finding, outputs: &mut Outputs) {
        match self.lookups.push(finding) {
            Ok(()) => push(outputs, Output::ReadMounts),
            Err(finding) => self.on_finding(now, None, finding, outputs),
        }
    }

    /// Settles every read-only file system that waits for the mount table.
    pub(super) fn look_up(&mut self, now: Instant, mounts: &Mounts, outputs: &mut Outputs) {
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
    pub(super) fn on_finding(
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
        self.controllers.note_line(&finding);
        self.boot_errors.note_finding(&finding);
        if self.checks.note_disk_error(now, &finding, &self.settings.schedule) {
            self.judge(now, ConditionType::DisksFailure, outputs);
            self.check_sooner();
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
    pub(super) fn write_report(
        &mut self,
        now: Instant,
        take: impl Fn(&mut Block) -> Option<Report>,
    ) {
        if let Some(Report { finding, extra, .. }) = take(&mut self.block)
            && let Some(reason) = finding.detail.event()
        {
            self.fold.note(now, reason, finding, extra);
        }
    }

    /// Adds what a record of an open block says to the block's finding.
    pub(super) fn on_addition(&mut self, now: Instant, record: &Record<'_>, outputs: &mut Outputs) {
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

    pub(super) fn on_caught_up(&mut self, now: Instant, outputs: &mut Outputs) {
        if self.log.state() != LogState::Live {
            self.log.caught_up();
            self.tell_boot_errors(now, outputs);
            self.judge_all(now, ReadingKind::KernelLog, outputs);
            self.judge_own(now, outputs);
        }
    }

    pub(super) fn on_log_down(&mut self, now: Instant, errno: i32, outputs: &mut Outputs) {
        self.log.down(errno);
        self.judge_all(now, ReadingKind::KernelLog, outputs);
        self.judge_own(now, outputs);
    }

    pub(super) fn on_mounts(&mut self, now: Instant, table: &[u8], outputs: &mut Outputs) {
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

    pub(super) fn on_task(
        &mut self,
        now: Instant,
        pid: u64,
        state: TaskState,
        outputs: &mut Outputs,
    ) {
        if self.clear_rule(ConditionType::KernelDeadlock) == Clear::Proof {
            deadlock::apply(&mut self.faults, pid, state);
            self.judge(now, ConditionType::KernelDeadlock, outputs);
        }
    }

    /// Asks for the state of the tasks that hang, where that may clear the condition.
    pub(super) fn look_at_tasks(&mut self, now: Instant, outputs: &mut Outputs) {
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
    pub(super) fn look_at_mounts(&mut self, now: Instant, outputs: &mut Outputs) {
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
}

/// A file system that only workloads use is not the node's (decisions, "whose disk").
fn is_volume(mounts: &Mounts, finding: &Finding) -> bool {
    mounts.device(&finding.object).is_some_and(|device| device.scope == DeviceScope::Volume)
}

/// How often a proof that a fault is over is looked for: the interval of the seed's fastest row.
const PROOF_INTERVAL: Duration = Duration::from_secs(10);
