//! What only a real Kubernetes API server can show.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod agent;
mod chaos;
mod kubelet;
mod orders;
mod rig;
mod semantics;
mod server_smoke;
