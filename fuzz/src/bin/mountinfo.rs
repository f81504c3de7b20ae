//! Fuzzes the parser of mount table lines.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fettle_fuzz::targets::mountinfo::target(data));
