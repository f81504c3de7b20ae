//! Everything that Fettle decides, as pure functions of state, time and input.
#![no_std]
#![forbid(unsafe_code)]
