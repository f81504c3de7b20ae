//! What only a real Kubernetes API server can show.

mod agent;
mod chaos;
mod kubelet;
mod orders;
mod rig;
mod semantics;
mod server_smoke;
