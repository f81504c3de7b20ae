//! Files that the agent keeps for itself: its state across restarts, and journals.

pub mod journal;
pub mod state;

use std::fs;

/// Returns the id of this boot, or an empty text where the kernel does not say it.
#[must_use]
pub fn boot_id() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}
