//! Everything that Fettle decides, as pure functions of state, time and input.
//!
//! A shell reads the world, hands what it read to a `step`, and carries out what comes back.
//!
//! # What this crate does not do
//!
//! It opens no file, reads no clock, allocates no memory, writes no log and never panics. Shells
//! do the first four; the no-panic link proves the last.

#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::unreachable
    )
)]

#[cfg(test)]
extern crate std;

pub mod bounds;
pub mod catalog;
pub mod disposition;
pub mod journal;
pub mod node;
pub mod text;
pub mod time;
pub mod window;
pub mod wire;
