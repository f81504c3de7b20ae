//! What the agent decides about its own node.

pub mod agent;
pub mod block;
pub mod boot_errors;
pub mod checks;
pub mod condition;
pub mod controllers;
pub mod fold;
pub mod foreign;
pub mod judge;
pub mod log;
pub mod mounts;
mod pace;
pub mod publisher;
pub mod reading;
pub mod repair;
pub mod report;
pub mod rules;
