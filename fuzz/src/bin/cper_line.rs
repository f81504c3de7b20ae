//! Fuzzes the parser of firmware error lines.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fettle_fuzz::targets::cper_line::target(data));
