//! What probes read of the services of the node: units, the kubelet, the runtime, the network.

use serde::{Deserialize, Serialize};

use crate::time::Instant;
use crate::wire::prom::Gauge;

/// The API server's audit records of the last minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audit {
    /// How many there are.
    pub records: u32,
    /// How many of them have a source outside of loopback and of the proxies' networks.
    pub with_client: u32,
}

/// The local CNI agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cni<'a> {
    /// What it says of itself.
    #[serde(borrow)]
    pub health: CniHealth<'a>,
    /// When it was started last, if that is known.
    pub last_start: Option<Instant>,
}

/// What the local CNI agent says of itself; never whether it reaches other nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CniHealth<'a> {
    /// It is well.
    Ok,
    /// It says something else.
    Other {
        /// The state that it says.
        state: &'a str,
        /// Why, in its words.
        why: &'a str,
    },
    /// It does not answer.
    Unreachable {
        /// What happened instead.
        why: &'a str,
    },
}

/// A gauge out of somebody's metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum GaugeAnswer<'a> {
    /// The metrics do not have it, or only as `NaN`.
    Missing,
    /// Nobody answers with metrics.
    Unreachable {
        /// What happened instead.
        why: &'a str,
    },
    /// It has numbers, in thousandths.
    Value {
        /// The smallest of its series.
        min_milli: i64,
        /// The sum of its series.
        sum_milli: i64,
    },
}

/// The kubelet's answer on `/healthz`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum KubeletHealth {
    /// It answered with another code than 200.
    Answered {
        /// The HTTP status code.
        code: u16,
    },
    /// It answered 200.
    Ok,
    /// Nobody listens, or the connection broke off.
    Refused,
    /// There was no answer within the deadline.
    TimedOut,
}

/// The kubelet's journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KubeletJournal {
    /// How long ago the kubelet last said that it gave up updating its node's status.
    pub gave_up_ago_s: Option<u64>,
}

/// The container runtime's answer to a CRI status request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RuntimeHealth<'a> {
    /// `RuntimeReady` is false.
    NotReady {
        /// Why, in its words.
        why: &'a str,
    },
    /// `RuntimeReady` is true; its network is the CNI's matter.
    Ready,
    /// Nobody listens, or the connection broke off.
    Refused,
    /// There was no answer within the deadline.
    TimedOut,
}

/// A unit of systemd.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unit<'a> {
    /// Its name, such as `kubelet.service`.
    pub name: &'a str,
    /// What the node needs it for.
    pub duty: UnitDuty,
    /// `ActiveState`.
    pub active: ActiveState,
    /// `SubState`.
    pub sub: &'a str,
    /// `Result`: how it ended last.
    pub result: &'a str,
    /// `NRestarts`: restarts by systemd since it was last started by somebody else.
    pub restarts: u32,
    /// When it was last started, or that was last tried, by whomever: the later of
    /// `ExecMainStartTimestamp` and `InactiveExitTimestamp`.
    pub last_start: Option<Instant>,
    /// How long a start may take; `None` if that has no end.
    pub start_timeout_s: Option<u64>,
    /// Whether systemd has a job for it that has not ended.
    pub has_job: bool,
}

/// What the node needs a unit for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitDuty {
    /// Without it the node is of no use: it is one of `units.critical`.
    pub critical: bool,
    /// It operates the platform: it is one of `units.operability`.
    pub operability: bool,
}

/// `ActiveState` of a unit; the names are systemd's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say all")]
pub enum ActiveState {
    Activating,
    Active,
    Deactivating,
    Failed,
    Inactive,
    Maintenance,
    /// One that a later systemd has.
    Other,
    Refreshing,
    Reloading,
}

impl ActiveState {
    /// Returns the state that systemd calls `name`.
    #[must_use]
    pub fn by_name(name: &str) -> Self {
        let is_called = |state: &&Self| state.name() == name;
        Self::NAMED.iter().find(is_called).copied().unwrap_or(Self::Other)
    }

    /// Returns what systemd calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Activating => "activating",
            Self::Active => "active",
            Self::Deactivating => "deactivating",
            Self::Failed => "failed",
            Self::Inactive => "inactive",
            Self::Maintenance => "maintenance",
            Self::Other => "unknown",
            Self::Refreshing => "refreshing",
            Self::Reloading => "reloading",
        }
    }

    /// Returns whether the unit does its work.
    #[must_use]
    pub const fn is_up(self) -> bool {
        matches!(self, Self::Active | Self::Refreshing | Self::Reloading)
    }

    /// Returns whether the unit is at rest, so that nothing is broken off by restarting it.
    #[must_use]
    pub const fn is_settled(self) -> bool {
        matches!(self, Self::Active | Self::Failed | Self::Inactive)
    }

    const NAMED: [Self; 8] = [
        Self::Activating,
        Self::Active,
        Self::Deactivating,
        Self::Failed,
        Self::Inactive,
        Self::Maintenance,
        Self::Refreshing,
        Self::Reloading,
    ];
}

impl GaugeAnswer<'_> {
    /// Returns what metrics say that have `gauge`, or do not have it.
    #[must_use]
    pub fn of(gauge: Option<Gauge>) -> Self {
        match gauge.and_then(|gauge| gauge.numbers) {
            None => Self::Missing,
            Some(numbers) => {
                Self::Value { min_milli: numbers.min_milli, sum_milli: numbers.sum_milli }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::prom;

    #[test]
    fn states_have_systemds_names() {
        for state in ActiveState::NAMED {
            assert_eq!(ActiveState::by_name(state.name()), state);
        }
        assert_eq!(ActiveState::by_name("asleep"), ActiveState::Other);
        assert!(!ActiveState::Other.is_up() && !ActiveState::Other.is_settled());
    }

    #[test]
    fn a_gauge_is_its_smallest_and_its_sum() {
        for (text, want) in [
            (&b"up 1\n"[..], GaugeAnswer::Missing),
            (b"ready NaN\n", GaugeAnswer::Missing),
            (b"ready 0\n", GaugeAnswer::Value { min_milli: 0, sum_milli: 0 }),
            (
                b"ready{a=\"1\"} 2\nready{a=\"2\"} 1\n",
                GaugeAnswer::Value { min_milli: 1000, sum_milli: 3000 },
            ),
        ] {
            assert_eq!(GaugeAnswer::of(prom::gauge(text, b"ready").unwrap()), want);
        }
    }
}
