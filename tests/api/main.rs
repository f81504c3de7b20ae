//! What only a real Kubernetes API server can show.

mod kubelet;
mod server_smoke;
