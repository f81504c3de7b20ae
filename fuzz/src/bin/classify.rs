//! Fuzzes the kernel rule table.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fettle_fuzz::targets::classify::target(data));
