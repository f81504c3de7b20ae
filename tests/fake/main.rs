//! The fake API server, and a front that breaks what passes through it.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod agent;
mod fake;
mod proxy;
mod rig;
mod watcher;
