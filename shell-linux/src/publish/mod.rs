//! Publishers: each carries what the core gave out to one kind of reader.

pub mod kubernetes;
pub mod logger;
pub mod metrics;
pub mod stdout;
