//! Tells systemd how the agent is: `sd_notify(3)`.

use core::time::Duration;
use std::env;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use log::warn;

/// The way to the service manager; leads nowhere where there is none.
#[derive(Debug)]
pub struct Notifier {
    socket: Option<(UnixDatagram, SocketAddr)>,
    watchdog: Option<Duration>,
    is_ready: bool,
}

impl Notifier {
    /// Finds the service manager through `NOTIFY_SOCKET` and `WATCHDOG_USEC`.
    #[must_use]
    pub fn from_environment() -> Self {
        let socket = env::var_os("NOTIFY_SOCKET").and_then(|name| {
            connect(name.as_bytes())
                .inspect_err(|problem| warn!("cannot reach NOTIFY_SOCKET: {problem}"))
                .ok()
        });
        let usec = env::var("WATCHDOG_USEC").ok().and_then(|usec| usec.parse().ok());
        Self { socket, watchdog: usec.map(Duration::from_micros), is_ready: false }
    }

    /// Says once that the agent has started.
    pub fn ready(&mut self) {
        if !self.is_ready {
            self.is_ready = true;
            self.send("READY=1");
        }
    }

    /// Sends a state, such as `STOPPING=1`.
    pub fn send(&self, state: &str) {
        if let Some((socket, address)) = &self.socket {
            // systemd restarts what it does not hear from; there is nobody else to tell.
            let _ = socket.send_to_addr(state.as_bytes(), address);
        }
    }

    /// Returns how often the watchdog wants to hear: twice in its interval.
    #[must_use]
    pub fn watchdog_interval(&self) -> Option<Duration> {
        self.socket.as_ref()?;
        self.watchdog.map(|interval| interval / 2)
    }
}

/// A name that begins with `@` is in the abstract name space.
fn connect(name: &[u8]) -> io::Result<(UnixDatagram, SocketAddr)> {
    let address = match name.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(name))?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    Ok((socket, address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_arrives_by_path_and_by_abstract_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let abstract_name = format!("@fettle-test-{}", std::process::id());
        for name in [path.to_str().unwrap(), &abstract_name] {
            let (socket, address) = connect(name.as_bytes()).unwrap();
            let manager = UnixDatagram::bind_addr(&address).unwrap();
            let mut notifier = Notifier {
                socket: Some((socket, address)),
                watchdog: Some(Duration::from_secs(4)),
                is_ready: false,
            };
            notifier.ready();
            notifier.ready();
            notifier.send("STOPPING=1");
            assert_eq!(received(&manager), "READY=1");
            assert_eq!(received(&manager), "STOPPING=1");
            assert_eq!(notifier.watchdog_interval(), Some(Duration::from_secs(2)));
        }
    }

    fn received(manager: &UnixDatagram) -> String {
        let mut buffer = [0; 64];
        let length = manager.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }

    #[test]
    fn without_a_manager_nothing_is_sent() {
        let watchdog = Some(Duration::from_secs(1));
        let notifier = Notifier { socket: None, watchdog, is_ready: false };
        notifier.send("READY=1");
        assert_eq!(notifier.watchdog_interval(), None);
    }
}
