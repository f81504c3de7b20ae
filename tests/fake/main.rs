//! The fake API server, and a front that breaks what passes through it.

mod fake;
mod proxy;
mod watcher;
