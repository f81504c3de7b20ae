//! Fuzzes the parser of task states.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fettle_fuzz::targets::task_stat::target(data));
