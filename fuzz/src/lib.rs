//! Fuzz targets over every parser and machine of the core, and the reader of the configuration.
//!
//! `cargo ci fuzz TARGET` searches for inputs that break a target, with libFuzzer. The inputs
//! under `corpus/TARGET` are what it starts from; `cargo test -p fettle-fuzz` replays them all, so
//! that what once broke stays mended. They are texts, as far as the target reads text: to add one,
//! write a file.
//!
//! # What this crate does not do
//!
//! It does not measure speed, and of the shells it fuzzes nothing but the readers of the agent's
//! configuration and of its Node.

pub mod targets;

mod invariants;
mod ops;
mod promises;
mod server;
