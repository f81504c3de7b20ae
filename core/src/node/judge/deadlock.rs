//! What proves that a hung task is no longer hung.

use serde::{Deserialize, Serialize};

use crate::catalog::ConditionType;
use crate::node::judge::kernel::{Evidence, Faults, retain_unproven};
use crate::node::rules::Detail;

/// What was seen of one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TaskState {
    /// There is a task with the pid.
    Alive {
        /// The state's letter in `/proc/PID/stat`; `D` waits uninterruptibly.
        state: u8,
        /// When it started, in clock ticks since boot.
        start_ticks: u64,
    },
    /// There is none.
    Gone,
    /// Nobody can tell.
    Unknown,
}

/// Forgets the fault of task `pid` if `task` proves that it no longer hangs.
pub fn apply(faults: &mut Faults, pid: u64, task: TaskState) {
    retain_unproven(faults, ConditionType::KernelDeadlock, |fault| {
        if pid_of(fault.finding.detail) != Some(pid) {
            return false;
        }
        match task {
            TaskState::Unknown => false,
            TaskState::Gone => true,
            TaskState::Alive { state, .. } if state != UNINTERRUPTIBLE => true,
            TaskState::Alive { start_ticks, .. } => {
                let known = fault.evidence;
                fault.evidence = Evidence::Task { start_ticks };
                matches!(known, Evidence::Task { start_ticks: before } if before != start_ticks)
            }
        }
    });
}

/// Returns the pids of the tasks that hang, as far as is known.
pub fn pids(faults: &Faults) -> impl Iterator<Item = u64> + '_ {
    faults.of(ConditionType::KernelDeadlock).filter_map(|fault| pid_of(fault.finding.detail))
}

const fn pid_of(detail: Detail) -> Option<u64> {
    if let Detail::HungTask { pid, .. } = detail { Some(pid) } else { None }
}

const UNINTERRUPTIBLE: u8 = b'D';

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::LINE_MAX;
    use crate::node::rules::{Finding, Object};
    use crate::text::Text;

    #[test]
    fn only_a_proof_ends_a_fault() {
        let alive = |state, start_ticks| TaskState::Alive { state, start_ticks };
        // pid, readings in their order, over
        for (pid, readings, over) in [
            (7, &[TaskState::Gone][..], true),
            (8, &[TaskState::Gone], false),
            (7, &[TaskState::Unknown], false),
            (7, &[alive(b'D', 5), alive(b'D', 5)], false),
            (7, &[alive(b'D', 5), alive(b'S', 5)], true),
            (7, &[alive(b'D', 5), alive(b'D', 9)], true), // the pid is another task's
        ] {
            let mut faults = Faults::new();
            faults.note(ConditionType::KernelDeadlock, finding());
            for reading in readings {
                apply(&mut faults, pid, *reading);
            }
            assert_eq!(pids(&faults).next().is_none(), over, "{pid} {readings:?}");
        }
    }

    fn finding() -> Finding {
        Finding {
            object: Object::from_bytes(b"kubelet:7"),
            detail: Detail::HungTask { critical: true, pid: 7, seconds: 120 },
            line: Text::<LINE_MAX>::from_bytes(b"a line"),
            timestamp_us: 0,
        }
    }
}
