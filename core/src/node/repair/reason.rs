//! Why a unit is restarted, or is not.

use core::fmt;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::Failure;
use crate::node::reading::ActiveState;
use crate::time::Instant;

/// Why a unit is restarted, or is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// How often the probe failed in a row.
    pub failures: u16,
    /// How it failed last.
    pub last: Failure,
    /// What follows from that.
    pub rule: Rule,
}

/// What follows from failures enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Rule {
    /// It was started too lately.
    Cooldown {
        /// How long a start is to be ago.
        cooldown_s: u64,
        /// How long that is still, rounded up.
        left_s: u64,
    },
    /// A person has turned repair off.
    Disabled,
    /// The unit starts or stops, or is about to.
    Moving {
        /// Its state.
        active: ActiveState,
        /// Whether systemd has a job for it.
        has_job: bool,
    },
    /// It is restarted.
    Restart {
        /// How long its last start is to be ago.
        cooldown_s: u64,
        /// Restarts by the agent, this one included, since it last served for that long.
        in_row: u32,
        /// How long its last start is ago, if anybody knows.
        since_start_s: Option<u64>,
    },
    /// systemd could not be asked, or does not know the unit.
    SystemdSilent,
}

impl Rule {
    pub(super) fn cooldown(now: Instant, until: Instant, cooldown: Duration) -> Self {
        let left_s = until.since(now).as_millis().div_ceil(1000);
        let left_s = u64::try_from(left_s).unwrap_or(u64::MAX);
        Self::Cooldown { cooldown_s: cooldown.as_secs(), left_s }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { failures, last, rule } = self;
        write!(f, "it {last}, failure {failures} in a row; {rule}")
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cooldown { cooldown_s, left_s } => {
                write!(f, "left alone for {left_s} s more: {cooldown_s} s from its last start")
            }
            Self::Disabled => f.write_str("no restart: repair.enabled is false"),
            Self::Moving { active, has_job: false } => {
                write!(f, "no restart while the unit is {}", active.name())
            }
            Self::Moving { active, has_job: true } => {
                write!(
                    f,
                    "no restart while systemd has a job for the unit, which is {}",
                    active.name()
                )
            }
            Self::Restart { cooldown_s, in_row, since_start_s } => {
                write!(f, "restart {in_row} in a row, ")?;
                match since_start_s {
                    Some(seconds) => write!(f, "{seconds} s after its last start"),
                    None => f.write_str("no start of it is known"),
                }?;
                write!(f, " (cooldown {cooldown_s} s)")
            }
            Self::SystemdSilent => f.write_str("no restart: systemd does not say how the unit is"),
        }
    }
}
