//! Fuzzes the writer of the health report.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fettle_fuzz::targets::report::target(data));
