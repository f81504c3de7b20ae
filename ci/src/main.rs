//! The node agent's binary.
fn main() {}
