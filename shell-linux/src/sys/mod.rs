//! Interfaces of the kernel, one file each.

pub mod bert;
pub mod disks;
pub mod dm;
pub mod edac;
pub mod file;
pub mod glob;
pub mod kmsg;
pub mod mounts;
pub mod notify;
pub mod nvme;
pub mod program;
pub mod pstore;
pub mod reboot;
pub mod root;
pub mod statfs;
pub mod task;
pub mod timex;
