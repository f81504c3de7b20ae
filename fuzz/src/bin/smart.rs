//! Fuzzes the parsers of an NVMe drive's pages.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fettle_fuzz::targets::smart::target(data));
