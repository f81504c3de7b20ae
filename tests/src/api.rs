//! API servers to test against: a fake, a front that breaks things, and what both must do.

pub mod fake;
mod listen;
pub mod semantics;
