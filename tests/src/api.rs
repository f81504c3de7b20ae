//! API servers to test against: a real one, a fake, a front that breaks things, and what all do.

mod broken;
pub mod fake;
pub mod faults;
mod listen;
pub mod proxy;
pub mod semantics;
pub mod server;
