//! Fuzzes the parser of kernel records.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fettle_fuzz::targets::kmsg_record::target(data));
