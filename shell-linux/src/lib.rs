//! The node agent's Linux half: reads the node, steps the core, does what the core says.
//!
//! # What this crate does not do
//!
//! It decides nothing. What a reading means, when something is said and how often is the core's.

#![deny(unsafe_code)]

pub mod clock;
pub mod cmd;
pub mod config;
pub mod errors;
pub mod probe;
pub mod publish;
pub mod run;
pub mod store;
pub mod sys;
pub mod table;
