//! Shared parts of the tests: the agent's program, the kernel log, and a machine to break.
//!
//! # What this crate does not do
//!
//! It never skips. What a test misses is said in a sentence, and the test fails.

pub mod api;
pub mod clock;
pub mod hanging;
pub mod kmsg;
pub mod lines;
pub mod machine;
pub mod pages;
pub mod program;
