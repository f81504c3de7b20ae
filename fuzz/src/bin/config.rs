//! Fuzzes the reader of the agent's configuration.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fettle_fuzz::targets::config::target(data));
