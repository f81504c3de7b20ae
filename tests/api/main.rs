//! What only a real Kubernetes API server can show.

#![expect(clippy::unwrap_used, reason = "what tests share fails as tests do")]

mod agent;
mod chaos;
mod deploy;
mod installed;
mod kubelet;
mod orders;
mod rig;
mod rights;
mod semantics;
mod server_smoke;
