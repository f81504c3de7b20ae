//! Fuzzes histories of the agent: its invariants, and that a replayed journal gives the same.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fettle_fuzz::targets::agent::target(data));
