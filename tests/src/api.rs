//! API servers to test against: a fake, a front that breaks things, and what both must do.

mod broken;
pub mod fake;
pub mod faults;
mod listen;
pub mod proxy;
pub mod semantics;
