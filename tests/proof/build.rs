//! Links the C library: for its memory functions, which compiled code calls, and its start-up code.
//!
//! The proof has no std, which otherwise asks for it: `memcpy`, `memset` and their like are not
//! in the precompiled `core` of a target with an operating system.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-link-arg-bins=-lc");
}
