//! What only a real Kubernetes API server can show.

#![expect(clippy::unwrap_used, reason = "what tests share fails as tests do")]

mod agent;
mod chaos;
mod kubelet;
mod orders;
mod rig;
mod semantics;
mod server_smoke;
