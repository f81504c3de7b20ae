//! Fuzzes what an API server says of the Node: what is written is the agent's own.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fettle_fuzz::targets::node_object::target(data));
