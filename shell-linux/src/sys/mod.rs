//! Interfaces of the kernel, one file each.

pub mod kmsg;
pub mod mounts;
pub mod notify;
pub mod task;
