//! Fuzzes the reader of journal frames, and what is written and read again.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fettle_fuzz::targets::journal::target(data));
