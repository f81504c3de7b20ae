//! What only a real Kubernetes API server can show.

mod agent;
mod deploy;
mod installed;
mod kubelet;
mod orders;
mod rig;
mod rights;
mod semantics;
mod server_smoke;
