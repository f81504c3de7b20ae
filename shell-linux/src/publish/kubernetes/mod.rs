//! The API server: who the agent is there, what it reads of its Node, and what it writes.
//!
//! Decides nothing: requests are the core's, and every answer goes back to it.

pub mod access;
pub mod body;
pub mod node;
mod requests;
mod watch;

pub use self::requests::{Api, Asked, Lane, Reply, Request};
