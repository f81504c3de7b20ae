//! Sub-commands, one file each.

pub mod catalog;
pub mod classify;
pub mod replay;
