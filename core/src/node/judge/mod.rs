//! Judges: from a reading, and what is remembered of earlier ones, to a judgement.

pub mod audit;
pub mod certificate;
pub mod clock;
pub mod cni;
pub mod deadlock;
pub mod drive;
pub mod file_age;
pub mod gpu;
pub mod integrity;
pub mod kernel;
pub mod kubelet;
pub mod own;
pub mod proxy;
pub mod readonly;
pub mod recovery;
pub mod runtime;
pub mod space;
pub mod streak;
pub mod tunnel;
pub mod unit;

use serde::{Deserialize, Serialize};

use self::recovery::Restarts;
use self::streak::Streak;
use crate::bounds::{IO_ERRORS_MAX, NOTE_MAX};
use crate::catalog::ConditionType;
use crate::node::reading::Reading;
use crate::text::Text;
use crate::time::Instant;
use crate::window::Window;

/// What a judge says of one object, for people.
pub type Note = Text<NOTE_MAX>;

/// What a judge says of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// Nothing is wrong with it.
    Healthy,
    /// The reading says nothing about the judge's condition.
    NotMine,
    /// Something is, but not for long enough to count: it stands as it did, and the note is told.
    NotYet(Note),
    /// Something is.
    Problem(Note),
    /// Nobody can tell.
    Unknown(Note),
}

/// What a judge remembers of one object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Memory {
    /// It was over its limit: it must fall further to be well.
    Above,
    /// How the answers of a probe have been.
    Answers(Streak),
    /// Its latest errors, and the moment and sector of the last, so that one fault counts once.
    Errors {
        /// When the last error that counted came, in seconds of the kernel log.
        last_s: u64,
        /// The sector of that error, if it had one.
        sector: Option<u64>,
        /// The errors that counted.
        window: Window<IO_ERRORS_MAX>,
    },
    /// Nothing.
    #[default]
    None,
    /// It was there: its absence is a fault.
    Present,
    /// How often a unit was restarted.
    Restarts(Restarts),
    /// It was there at this moment, which the judge counts from.
    Since(Instant),
}

impl Memory {
    /// Returns whether its object was there, so that its absence is a fault.
    pub(super) const fn was_there(&self) -> bool {
        matches!(self, Self::Answers(_) | Self::Present | Self::Since(_))
    }
}

/// Limits that a person may set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// How long the container runtime may take to answer.
    pub cri_deadline_ms: u32,
    /// How long the kubelet may take to answer.
    pub kubelet_deadline_ms: u32,
    /// Space of a file system or thin pool, from which on it is too full.
    pub usage_pct: u8,
    /// Inodes of a file system, from which on it has too few left.
    pub inode_pct: u8,
    /// How far below its limit something must fall to be well again, in percent.
    pub clear_below_pct: u8,
    /// Whether a volume group without free space counts.
    pub volume_group_free: bool,
}

impl Default for Limits {
    fn default() -> Self {
        // decisions.md, "Configuration keys and defaults".
        Self {
            cri_deadline_ms: 15_000,
            kubelet_deadline_ms: 5_000,
            usage_pct: 85,
            inode_pct: 90,
            clear_below_pct: 3,
            volume_group_free: false,
        }
    }
}

/// Judges one reading of one object.
pub type Judge = fn(Instant, &Reading<'_>, &Limits, &mut Memory) -> Judgement;

/// Returns the judge of `condition`, if it is judged by readings.
#[must_use]
pub fn judge_of(condition: ConditionType) -> Option<Judge> {
    JUDGES.iter().find(|(judged, _)| *judged == condition).map(|(_, judge)| *judge)
}

/// The judge of each condition that is judged by readings of single objects.
///
/// `ServiceNotRecovering` has [`recovery::recovering`], which asks for more than a reading.
static JUDGES: [(ConditionType, Judge); 18] = [
    (ConditionType::APIServerSourceIPUnavailable, audit::source_address),
    (ConditionType::CertRenewalFailing, certificate::renewal),
    (ConditionType::ClockNotSynchronized, clock::synchronized),
    (ConditionType::CNIUnhealthy, cni::health),
    (ConditionType::ContainerRuntimeUnhealthy, runtime::health),
    (ConditionType::DisksFailure, drive::failure),
    (ConditionType::DiskTemperatureHigh, drive::temperature),
    (ConditionType::DiskUsageHigh, space::usage),
    (ConditionType::DiskWearHigh, drive::wear),
    (ConditionType::GpuActivationFailed, gpu::activation),
    (ConditionType::KubeletHeartbeatFailed, kubelet::heartbeat),
    (ConditionType::KubeletUnhealthy, kubelet::health),
    (ConditionType::NodeInfoStale, file_age::node_info),
    (ConditionType::NodeServiceDown, unit::active),
    (ConditionType::NodeTampered, integrity::protected_file),
    (ConditionType::ProxyNotServing, proxy::ready),
    (ConditionType::SealedOSTampered, integrity::sealed_layer),
    (ConditionType::TunnelDisconnected, tunnel::connected),
];

/// Returns a note of what `arguments` say.
fn note(arguments: core::fmt::Arguments<'_>) -> Note {
    let mut note = Note::new();
    // Text takes everything; what does not fit is cut.
    let _ = core::fmt::write(&mut note, arguments);
    note
}

/// Returns how much of `whole` `part` is, in whole percent, rounded down.
fn percent(part: u64, whole: u64) -> u64 {
    let hundredfold = u128::from(part).saturating_mul(100);
    let percent = hundredfold.checked_div(u128::from(whole)).unwrap_or(0);
    u64::try_from(percent).unwrap_or(u64::MAX)
}
