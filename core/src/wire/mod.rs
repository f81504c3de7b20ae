//! Bytes to meaning: total parsers of what the kernel and other programs print.

mod binary;
pub mod cper;
pub mod dm;
pub mod kmsg;
pub mod proc;
pub mod prom;
pub mod scan;
pub mod smart;
