//! Sub-commands, one file each.

pub mod catalog;
pub mod check;
pub mod classify;
pub mod clear;
pub mod config;
pub mod replay;
pub mod report;
