//! Reboots the machine: by systemd where that is process 1, else by the kernel.

use std::path::Path;
use std::{fs, io};

use log::warn;
use rustix::process::{Pid, Signal, kill_process};

/// Asks for a reboot; that it begins is all that can be seen.
///
/// systemd stops units in order and reboots when it gets `SIGINT` (`systemd(1)`, "Signals"). It has
/// a real-time signal for this too, but their numbers differ between C libraries, and the next one
/// powers the machine off. Where process 1 is another, such as on Talos, the kernel is told at once,
/// after a sync (`reboot(2)`).
///
/// # Errors
///
/// Says why it has not begun: this may not be the node's own process 1, or not be allowed.
pub fn reboot(root: &Path) -> io::Result<()> {
    let init = fs::read_to_string("/proc/1/comm")?;
    if init.trim_end() == "systemd" {
        warn!("rebooting: asking systemd");
        return kill_process(Pid::INIT, Signal::INT).map_err(io::Error::from);
    }
    // In a namespace of its own, a pod's process 1 is not the node's.
    let namespace = fs::read_link("/proc/self/ns/pid")?;
    if namespace.as_os_str() != INITIAL_PID_NAMESPACE || root != Path::new("/") && !is_host(root) {
        return Err(io::Error::other(
            "this process does not see the node's process 1: give the pod hostPID",
        ));
    }
    warn!("rebooting: asking the kernel, as process 1 is {}", init.trim_end());
    rustix::fs::sync();
    rustix::system::reboot(rustix::system::RebootCommand::Restart).map_err(io::Error::from)
}

/// Returns whether `root` is that of the node whose processes this one sees.
fn is_host(root: &Path) -> bool {
    let boot = |root: &Path| fs::read(root.join("proc/sys/kernel/random/boot_id")).ok();
    boot(root).is_some() && boot(root) == boot(Path::new("/"))
}

/// The kernel's `PROC_PID_INIT_INO` (`include/uapi/linux/nsfs.h`), as the link in `/proc` shows it.
const INITIAL_PID_NAMESPACE: &str = "pid:[4026531836]";
