//! Ports to listen on that stay free while nothing listens.

use core::sync::atomic::{AtomicU16, Ordering};
use std::net::TcpListener;

use anyhow::{Context as _, Result};

/// Returns a port of the loopback address that nothing listens on, another at each call.
///
/// It is none that the kernel gives to outgoing connections: while the server is down, a client
/// that tries again and again would at some time be given its port, and connect to itself.
///
/// # Errors
///
/// None is free.
pub(super) fn free() -> Result<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Test programs that run at the same time start at different places.
    let offset = u16::try_from(std::process::id() % u32::from(PORTS)).unwrap_or_default();
    (0..PORTS)
        .map(|_| FIRST + (NEXT.fetch_add(1, Ordering::Relaxed) % PORTS + offset) % PORTS)
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .context("no port from 20000 on is free")
}

/// The first port, and how many: Linux gives outgoing connections those from 32768 on.
const FIRST: u16 = 20_000;
const PORTS: u16 = 12_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_port_is_given_twice() {
        let (first, second) = (free().unwrap(), free().unwrap());
        assert_ne!(first, second);
        assert!((FIRST..FIRST + PORTS).contains(&first));
    }
}
