//! Measures the shipped agent.
fn main() {}
