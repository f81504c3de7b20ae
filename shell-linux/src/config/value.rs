//! Kinds of values: how each is read, and what it has to be.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::time::Duration;
use std::path::PathBuf;

use fettle_core::catalog::{Clear, ConditionType};
use glob::Pattern;

use super::document::{Node, Value};
use super::duration;
use super::nearest::did_you_mean;

/// A network: an address and how many of its bits are the network's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    address: IpAddr,
    prefix: u8,
}

impl Cidr {
    /// Returns whether `address` is of this network; an IPv4 address written as IPv6 counts as IPv4.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        masked(address.to_canonical(), self.prefix) == Some(self.address)
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

/// Something whose absence is a fault when it is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Expected {
    /// An audit log of the API server.
    Audit,
    /// The local Cilium agent.
    Cilium,
    /// An NVIDIA GPU.
    Gpu,
    /// A volume group.
    Lvm,
    /// The list of nodes.
    NodesJson,
    /// The local proxy.
    Proxy,
    /// The tunnel.
    Tunnel,
    /// Sealed layers.
    Verity,
}

impl Expected {
    /// Every one, by name.
    pub const NAMES: [(&'static str, Self); 8] = [
        ("audit", Self::Audit),
        ("cilium", Self::Cilium),
        ("gpu", Self::Gpu),
        ("lvm", Self::Lvm),
        ("nodesJson", Self::NodesJson),
        ("proxy", Self::Proxy),
        ("tunnel", Self::Tunnel),
        ("verity", Self::Verity),
    ];
}

/// Where to send a plain HTTP request; an address, so that no probe waits for a name server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpUrl {
    /// Whom to ask.
    pub address: SocketAddr,
    /// What to ask for; begins with a slash.
    pub path: String,
}

impl fmt::Display for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.address, self.path)
    }
}

/// What a node is in its cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It runs an API server.
    ControlPlane,
    /// It runs workloads.
    Worker,
}

/// A kind of value.
pub(super) struct Kind<T> {
    /// Reads a value, or says what is wrong with it.
    pub(super) read: fn(&Node) -> Result<T, String>,
    /// What to write instead, as a request.
    pub(super) want: &'static str,
}

pub(super) static AGE: Kind<Duration> =
    Kind { read: |node| time(node, SECOND, 720 * HOUR), want: "give a time from 1s to 720h" };

pub(super) static BOOL: Kind<bool> = Kind {
    read: |node| match &node.value {
        Value::Bool(value) => Ok(*value),
        Value::Float
        | Value::Integer(_)
        | Value::List(_)
        | Value::Map(_)
        | Value::Null
        | Value::Text(_) => Err(format!("{} is neither true nor false", show(node))),
    },
    want: "give true or false",
};

pub(super) static CIDR: Kind<Cidr> =
    Kind { read: cidr, want: "give a network such as 10.0.0.0/8 or fd00::/8" };

pub(super) static CLEAR: Kind<String> = Kind {
    read: |node| text(node).map(str::to_owned),
    want: "give held, or proof where a reading can prove that the fault is gone",
};

pub(super) static DEADLINE: Kind<Duration> = Kind {
    read: |node| time(node, SECOND / 10, 60 * SECOND),
    want: "give a time from 100ms to 1m",
};

pub(super) static EXPECTED: Kind<Expected> = Kind {
    read: |node| one_of(node, &Expected::NAMES),
    want: "name some of audit, cilium, gpu, lvm, nodesJson, proxy, tunnel, verity",
};

pub(super) static GLOB: Kind<Pattern> = Kind {
    read: |node| {
        let text = absolute(node, usize::MAX)?;
        Pattern::new(text).map_err(|error| format!("{} is no pattern: {}", show(node), error.msg))
    },
    want: "give a path that begins with / and may have *, ?, [..] and, between slashes, **",
};

pub(super) static GAUGE: Kind<String> = Kind {
    read: |node| {
        let good = |c: char, first: bool| {
            c.is_ascii_alphabetic() || c == '_' || c == ':' || !first && c.is_ascii_digit()
        };
        let text = text(node)?;
        let is_name = !text.is_empty() && text.char_indices().all(|(index, c)| good(c, index == 0));
        if is_name {
            Ok(text.to_owned())
        } else {
            Err(format!("{} is no metric's name", show(node)))
        }
    },
    want: "give a name of letters, digits, _ and :, not beginning with a digit",
};

pub(super) static INTERVAL: Kind<Duration> = Kind {
    read: |node| match time(node, SECOND, 24 * HOUR)? {
        interval if interval.subsec_nanos() == 0 => Ok(interval),
        _ => Err(format!("{} is no whole number of seconds", show(node))),
    },
    want: "give a time from 1s to 24h",
};

pub(super) static LISTEN: Kind<SocketAddr> = Kind {
    read: |node| {
        let text = text(node)?;
        text.parse().map_err(|_| format!("{} is no address with a port", show(node)))
    },
    want: "give an address and a port, such as 0.0.0.0:20257 or [::]:20257",
};

pub(super) static PATH: Kind<PathBuf> = Kind {
    read: |node| absolute(node, PATH_MAX).map(PathBuf::from),
    want: "give a path that begins with /",
};

pub(super) static PERCENT: Kind<u8> =
    Kind { read: |node| whole(node, 100), want: "give a whole number from 1 to 100" };

pub(super) static POINTS: Kind<u8> =
    Kind { read: |node| whole(node, 99), want: "give a whole number from 1 to 99" };

pub(super) static PREFIX: Kind<String> = Kind {
    read: |node| {
        let text = text(node)?;
        let is_label = |label: &str| {
            let is_good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            !label.is_empty()
                && label.len() <= 63
                && label.chars().all(is_good)
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        let is_prefix = text.len() <= 253 && text.split('.').all(is_label);
        if is_prefix { Ok(text.to_owned()) } else { Err(format!("{} is no DNS name", show(node))) }
    },
    want: "give a DNS name in lower case without a slash, such as autopilot.syself.com",
};

pub(super) static ROLE: Kind<Role> = Kind {
    read: |node| one_of(node, &[("controlPlane", Role::ControlPlane), ("worker", Role::Worker)]),
    want: "give controlPlane or worker",
};

pub(super) static SOCKET: Kind<PathBuf> = Kind {
    read: |node| absolute(node, SOCKET_PATH_MAX).map(PathBuf::from),
    want: "give the socket's path: it begins with / and has at most 107 bytes",
};

pub(super) static UNIT: Kind<String> = Kind {
    read: |node| {
        let text = text(node)?;
        let is_good = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c);
        if !text.chars().all(is_good) || text.len() > 255 {
            return Err(format!("{} is no unit's name", show(node)));
        }
        match text.rsplit_once('.') {
            Some((name, kind)) if !name.is_empty() && UNIT_KINDS.contains(&kind) => {
                Ok(text.to_owned())
            }
            Some(_) | None => Err(format!("{} is no unit's whole name", show(node))),
        }
    },
    want: "give its whole name, such as kubelet.service",
};

pub(super) static URL: Kind<HttpUrl> =
    Kind { read: url, want: "give an address such as http://127.0.0.1:10248/healthz" };

/// Reads how `condition` is cleared besides by hand and by a boot.
///
/// # Errors
///
/// Says why `word` is no choice of this condition.
pub fn clear_rule(condition: ConditionType, word: &str) -> Result<Clear, String> {
    let clear = match word {
        "held" => Clear::Held,
        "proof" => Clear::Proof,
        _ => return Err(format!("{} is neither held nor proof", short(word))),
    };
    let name = condition.row().name;
    match condition.clear_choices() {
        choices if choices.contains(&clear) => Ok(clear),
        [] => Err(format!("{name} leaves no choice of how it is cleared")),
        _ => Err(format!("{name} cannot be cleared by {word}")),
    }
}

/// Shows a value in an error: short, and without what a terminal would obey.
pub(super) fn show(node: &Node) -> String {
    match &node.value {
        Value::Bool(value) => value.to_string(),
        Value::Float => "a number with a fraction".to_owned(),
        Value::Integer(value) => value.to_string(),
        Value::List(_) => "a list".to_owned(),
        Value::Map(_) => "a map".to_owned(),
        Value::Null => "an empty value".to_owned(),
        Value::Text(text) => short(text),
    }
}

/// Quotes the start of a text.
pub(super) fn short(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{:?}...", text.get(..end).unwrap_or_default()),
        None => format!("{text:?}"),
    }
}

pub(super) fn text(node: &Node) -> Result<&str, String> {
    match &node.value {
        Value::Text(text) => Ok(text),
        Value::Bool(_)
        | Value::Float
        | Value::Integer(_)
        | Value::List(_)
        | Value::Map(_)
        | Value::Null => Err(format!("{} is no text", show(node))),
    }
}

fn absolute(node: &Node, length_max: usize) -> Result<&str, String> {
    let text = text(node)?;
    if !text.starts_with('/') {
        Err(format!("{} does not begin with /", show(node)))
    } else if text.contains('\0') {
        Err(format!("{} has a NUL in it", show(node)))
    } else if text.len() > length_max {
        Err(format!("{} has {} bytes", show(node), text.len()))
    } else {
        Ok(text)
    }
}

fn cidr(node: &Node) -> Result<Cidr, String> {
    let text = text(node)?;
    let none = || format!("{} is no network", show(node));
    let Some((address, prefix)) = text.split_once('/') else {
        return Err(match text.parse::<IpAddr>() {
            Ok(address) => format!(
                "{text} has no prefix length (it alone is {address}/{})",
                if address.is_ipv4() { 32 } else { 128 }
            ),
            Err(_) => none(),
        });
    };
    let address: IpAddr = address.parse().map_err(|_| none())?;
    let prefix: u8 = prefix.parse().map_err(|_| none())?;
    match masked(address, prefix) {
        Some(network) if network == address => Ok(Cidr { address, prefix }),
        Some(network) => {
            Err(format!("{text} has bits behind its prefix (its network is {network}/{prefix})"))
        }
        None => Err(none()),
    }
}

/// Returns the first `prefix` bits of an address.
fn masked(address: IpAddr, prefix: u8) -> Option<IpAddr> {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32_u32.checked_sub(prefix.into())?).unwrap_or(0);
            Some(IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & mask)))
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128_u32.checked_sub(prefix.into())?).unwrap_or(0);
            Some(IpAddr::V6(core::net::Ipv6Addr::from_bits(address.to_bits() & mask)))
        }
    }
}

fn one_of<T: Copy>(node: &Node, names: &[(&str, T)]) -> Result<T, String> {
    let text = text(node)?;
    if let Some((_, value)) = names.iter().find(|(name, _)| *name == text) {
        return Ok(*value);
    }
    let nearest = did_you_mean(text, names.iter().map(|(name, _)| *name));
    Err(format!("{} is unknown{nearest}", show(node)))
}

fn time(node: &Node, min: Duration, max: Duration) -> Result<Duration, String> {
    let zero = matches!(node.value, Value::Integer(0)).then_some("0");
    if let (Value::Integer(number), None) = (&node.value, zero) {
        return Err(format!("{number} has no unit"));
    }
    let text = zero.map_or_else(|| text(node), Ok)?;
    let time = duration::parse(text).map_err(|error| format!("{} {error}", short(text)))?;
    if time < min {
        Err(format!("{text} is too short"))
    } else if time > max {
        Err(format!("{text} is too long"))
    } else {
        Ok(time)
    }
}

fn url(node: &Node) -> Result<HttpUrl, String> {
    let text = text(node)?;
    let rest = text.strip_prefix("http://");
    let rest = rest.ok_or_else(|| format!("{} does not begin with http://", show(node)))?;
    let slash = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(slash);
    let address = match authority.strip_prefix("localhost:") {
        Some(port) => port.parse().map(|port| (Ipv4Addr::LOCALHOST, port).into()).ok(),
        None => authority.parse().ok(),
    };
    let address = address.ok_or_else(|| {
        format!("{} in it is neither localhost nor an address, with a port", short(authority))
    })?;
    if !path.chars().all(|c| c.is_ascii_graphic() && c != '#') {
        return Err(format!("{} in it is no path", short(path)));
    }
    let path = if path.is_empty() { "/" } else { path };
    Ok(HttpUrl { address, path: path.to_owned() })
}

fn whole(node: &Node, max: u8) -> Result<u8, String> {
    match &node.value {
        Value::Integer(number) => u8::try_from(*number)
            .ok()
            .filter(|number| (1..=max).contains(number))
            .ok_or_else(|| format!("{number} is out of range")),
        Value::Bool(_)
        | Value::Float
        | Value::List(_)
        | Value::Map(_)
        | Value::Null
        | Value::Text(_) => Err(format!("{} is no whole number", show(node))),
    }
}

/// What a unit's name may end with, less what is not started (`systemd.unit(5)`).
const UNIT_KINDS: [&str; 6] = ["mount", "path", "service", "socket", "target", "timer"];

const SECOND: Duration = Duration::from_secs(1);

const HOUR: Duration = Duration::from_secs(3600);

/// The longest path that Linux takes, less its NUL: `PATH_MAX` of `linux/limits.h`.
const PATH_MAX: usize = 4095;

/// The longest path of a socket, less its NUL: `sun_path` in `unix(7)`.
const SOCKET_PATH_MAX: usize = 107;

/// Most characters of a value that an error shows.
const SHOWN_MAX: usize = 60;
