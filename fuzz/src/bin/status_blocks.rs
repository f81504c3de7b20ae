//! Fuzzes the parser of the boot error region.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fettle_fuzz::targets::status_blocks::target(data));
