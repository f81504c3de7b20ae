//! Fuzzes the reader of a Prometheus gauge.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fettle_fuzz::targets::prometheus::target(data));
