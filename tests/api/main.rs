//! What only a real Kubernetes API server can show.

mod server_smoke;
