//! Fuzzes the parsers of the device mapper's replies.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fettle_fuzz::targets::device_mapper::target(data));
