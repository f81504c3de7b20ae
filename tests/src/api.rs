//! What tests need that talk to a Kubernetes API server.

pub mod server;
