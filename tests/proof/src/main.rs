//! Links only if no function of the core can panic.
//!
//! Its panic handler calls a function that does not exist. A panic that the optimiser cannot show
//! to be unreachable keeps that call, and the linker names it. Every input is hidden from the
//! optimiser by `black_box`, and so is every machine's state before each call: what is proven
//! holds for all inputs and states, not for the ones that stand here. The program is only linked;
//! it may be run, but that shows nothing.
//!
//! Each module takes one room of the core and calls every public function there. A function whose
//! type parameter a shell chooses (`Text<N>`, `Window<N>`, `Scan::run`) is proven for the choices
//! that the core makes itself.

#![no_std]
#![no_main]

mod catalog;
mod checks;
mod journal;
mod judge;
mod node;
mod plain;
mod publisher;
mod repair;
mod rules;
mod wire;

use core::fmt;
use core::hint::black_box;
use core::panic::PanicInfo;

use fettle_core::bounds::{MESSAGE_MAX, OBJECT_MAX};
use fettle_core::node::rules::{Detail, Finding, Object};
use fettle_core::text::Text;
use fettle_core::time::Instant;

unsafe extern "C" {
    /// Is defined nowhere.
    fn fettle_core_can_panic() -> !;
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    // SAFETY: never runs: a program that could get here does not link.
    unsafe { fettle_core_can_panic() }
}

// SAFETY: the C library's start-up code calls `main`; nothing else here has that name.
#[unsafe(no_mangle)]
extern "C" fn main() -> i32 {
    plain::call_all();
    catalog::call_all();
    wire::call_all();
    rules::call_all();
    judge::call_all();
    checks::call_all();
    repair::call_all();
    node::call_all();
    publisher::call_all();
    journal::call_all();
    #[cfg(feature = "seeded-panic")]
    seeded_panic();
    0
}

/// A panic that can be reached, so that CI sees the link fail.
#[cfg(feature = "seeded-panic")]
#[expect(clippy::unwrap_used, reason = "the panic is what it is for")]
fn seeded_panic() {
    let _ = black_box(bytes().first().unwrap());
}

/// Returns bytes of which the optimiser knows neither the number nor the values.
fn bytes() -> &'static [u8] {
    black_box(b"6,1,2,-;EXT4-fs (sda1): Remounting filesystem read-only\n")
}

/// Returns text of which the optimiser knows neither the length nor the characters.
fn text() -> &'static str {
    black_box("EXT4-fs")
}

/// Returns a number that the optimiser does not know.
fn number() -> u64 {
    black_box(7)
}

/// Returns an instant that the optimiser does not know.
fn instant() -> Instant {
    Instant::from_millis(number())
}

/// Returns a finding of which the optimiser knows nothing.
fn finding() -> Finding {
    black_box(Finding {
        object: Object::from_bytes(bytes()),
        detail: Detail::Nvme,
        line: Text::from_bytes(bytes()),
        timestamp_us: number(),
    })
}

/// Returns the name of an object of which the optimiser knows nothing.
fn object() -> Text<OBJECT_MAX> {
    black_box(Object::from_bytes(bytes()))
}

/// Formats `value` as the shells do.
fn show(value: impl fmt::Display) {
    black_box(Text::<MESSAGE_MAX>::display(value));
}
