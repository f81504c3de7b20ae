//! Bytes to meaning: total parsers of what the kernel and other programs print.

pub mod cper;
pub mod kmsg;
pub mod proc;
pub mod scan;
