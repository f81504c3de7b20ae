//! Fuzzes the literal automaton against a regex engine.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fettle_fuzz::targets::automaton::target(data));
