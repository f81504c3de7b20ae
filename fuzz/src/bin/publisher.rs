//! Fuzzes histories of the publisher: its invariants, and that all is written in the end.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fettle_fuzz::targets::publisher::target(data));
