//! Probes: each makes one kind of reading, on a thread of its own where it may block.

pub mod kernel_log;
