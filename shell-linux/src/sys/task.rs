//! The state of one task, out of `/proc`.

use std::fs;
use std::io;
use std::path::Path;

use fettle_core::node::judge::deadlock::TaskState;
use fettle_core::wire::proc::TaskStat;

/// Returns what can be seen of the task `pid` below `root`, where the node is mounted.
#[must_use]
pub fn read(root: &Path, pid: u64) -> TaskState {
    let own = root == Path::new("/");
    if own && !sees_every_pid() {
        return TaskState::Unknown;
    }
    match fs::read(root.join(format!("proc/{pid}/stat"))) {
        Ok(line) => TaskStat::parse(&line).map_or(TaskState::Unknown, |stat| TaskState::Alive {
            state: stat.state,
            start_ticks: stat.start_ticks,
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => TaskState::Gone,
        // The task ended between open and read (ESRCH).
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => {
            TaskState::Gone
        }
        Err(_) => TaskState::Unknown,
    }
}

/// The kernel log has the pids of the first namespace; in another one they are other tasks'.
fn sees_every_pid() -> bool {
    fs::read_link("/proc/self/ns/pid").is_ok_and(|link| link.as_os_str() == FIRST_PID_NAMESPACE)
}

/// `PROC_PID_INIT_INO` in `include/linux/proc_ns.h`.
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_alive_or_gone() {
        let own = u64::from(std::process::id());
        let root = Path::new("/");
        assert!(matches!(read(root, own), TaskState::Alive { state: b'R' | b'S', .. }));
        assert_eq!(read(root, u64::MAX), TaskState::Gone);
    }
}
