//! The tests against an API server, fake or real.

mod fake;
mod proxy;
mod watcher;
