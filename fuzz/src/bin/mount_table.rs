//! Fuzzes the table of mounted devices.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fettle_fuzz::targets::mount_table::target(data));
