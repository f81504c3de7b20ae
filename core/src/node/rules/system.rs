//! Confirms faults of tasks and of network devices.

use super::Meaning;
use super::finding::Detail;
use crate::bounds::COMM_MAX;
use crate::catalog::CRITICAL_TASKS;
use crate::wire::scan::Scan;

/// Confirms `INFO: task COMM:PID blocked for more than N seconds.`
///
/// `kernel/hung_task.c` (`check_hung_task`); from 7.1 on `blocked in I/O wait for more than`. The
/// name may hold colons, spaces and even these words, so the line is read from its end.
pub(super) fn hung_task(text: &[u8]) -> Option<Meaning<'_>> {
    let mut scan = Scan::new(text.trim_ascii_end());
    let _ = scan.literal(b"INFO: ");
    scan.literal(b"task ")?;
    let mut who = Scan::new(scan.until_last(b" for more than ")?);
    let seconds = scan.number()?;
    scan.literal(b" seconds")?;
    let _ = scan.literal(b".");
    scan.at_end().then_some(())?;

    let task = who.until_last(b" blocked")?;
    let mut wait = who;
    if !wait.at_end() {
        wait.literal(b" in ")?;
        wait.run(|byte| byte.is_ascii_alphabetic() || b" /-".contains(byte))?;
        wait.at_end().then_some(())?;
    }
    let mut name = Scan::new(task);
    let comm = name.until_last(b":")?;
    let pid = name.number()?;
    if !name.at_end() || comm.len() > COMM_MAX {
        return None;
    }
    let critical = CRITICAL_TASKS.iter().any(|critical| critical.matches(comm));
    Some((task, Detail::HungTask { critical, pid, seconds }))
}

/// Returns who a hung task waits for, from the line that may follow its own.
///
/// `kernel/hung_task.c` (`debug_show_blocker`, 6.16): `... likely owned by task COMM:PID.`
#[must_use]
pub fn lock_owner(text: &[u8]) -> Option<&[u8]> {
    let mut scan = Scan::new(text.trim_ascii_end());
    scan.literal(b"INFO: task ")?;
    scan.until(b" blocked on a")?;
    scan.until(b" likely owned by task ")?;
    let owner = scan.rest();
    Some(owner.strip_suffix(b".").unwrap_or(owner))
}

/// Confirms `unregister_netdevice: waiting for DEV to become free. Usage count = N`.
///
/// `net/core/dev.c` (`netdev_wait_allrefs_any`); the count is a signed number.
pub(super) fn net_device_in_use(text: &[u8]) -> Option<Meaning<'_>> {
    let mut scan = Scan::new(text);
    scan.literal(b"unregister_netdevice: waiting for ")?;
    let device = scan.until(b" to become free.")?;
    scan.literal(b" Usage count = ")?;
    let usage = scan.signed()?;
    Some((device, Detail::NetDeviceInUse { usage }))
}
