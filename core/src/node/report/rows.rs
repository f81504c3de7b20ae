//! The rows of the documents: `None` is unknown, and becomes `null`.

use serde::ser::SerializeSeq as _;
use serde::{Serialize, Serializer};

use crate::time::Timestamp;
use crate::wire::smart::Warnings;

/// A mounted file system.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileSystemRow<'a> {
    /// Where it is mounted.
    pub mount_point: &'a str,
    /// What is mounted.
    pub device: Option<&'a str>,
    /// Its type, such as `ext4`.
    #[serde(rename = "type")]
    pub fs_type: Option<&'a str>,
    /// All of its space.
    pub size_bytes: Option<u64>,
    /// Space that is used.
    pub used_bytes: Option<u64>,
    /// Space that is used, of what is used or free for ordinary users.
    pub used_pct: Option<Hundredths>,
    /// All inodes; 0 where the file system makes them as it needs them.
    pub inodes: Option<u64>,
    /// Inodes that are used.
    pub inodes_used: Option<u64>,
    /// Inodes that are used, of all.
    pub inodes_used_pct: Option<Hundredths>,
    /// Whether it takes no writes.
    pub read_only: Option<bool>,
    /// Why it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a str>,
}

/// An LVM volume group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeGroupRow<'a> {
    /// Its name.
    pub name: &'a str,
    /// All of its space.
    pub size_bytes: Option<u64>,
    /// Space in no volume.
    pub free_bytes: Option<u64>,
    /// Its thin pools.
    pub thin_pools: Option<&'a [ThinPoolRow<'a>]>,
    /// Why it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a str>,
}

/// A thin pool of a volume group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ThinPoolRow<'a> {
    /// Its name, without the group's.
    pub name: &'a str,
    /// All of its space for data.
    pub size_bytes: Option<u64>,
    /// Data that is used.
    pub data_pct: Option<Hundredths>,
    /// Metadata that is used.
    pub metadata_pct: Option<Hundredths>,
}

/// A disk, as its SMART / Health log page and the kernel log show it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DiskRow<'a> {
    /// The controller or device, such as `nvme0`.
    pub name: &'a str,
    /// The model.
    pub model: Option<&'a str>,
    /// The serial number.
    pub serial: Option<&'a str>,
    /// The revision of its firmware.
    pub firmware: Option<&'a str>,
    /// All of its space.
    pub size_bytes: Option<u64>,
    /// The critical-warning bits.
    pub critical_warning: Option<u8>,
    /// The same bits, written by name.
    #[serde(serialize_with = "names")]
    pub critical_warnings: Option<Warnings>,
    /// Composite temperature.
    pub temperature_celsius: Option<i16>,
    /// The temperature from which on it is too hot.
    pub temperature_limit_celsius: Option<i16>,
    /// Estimate of the endurance that is used; may pass 100.
    pub percentage_used: Option<u8>,
    /// Spare capacity that is left.
    pub available_spare_pct: Option<u8>,
    /// The spare capacity below which the drive warns.
    pub available_spare_threshold_pct: Option<u8>,
    /// Errors of media and of data integrity.
    pub media_errors: Option<u64>,
    /// How long it has had power.
    pub power_on_hours: Option<u64>,
    /// How often it lost power without notice.
    pub unsafe_shutdowns: Option<u64>,
    /// What was read, in thousands of 512-byte units.
    pub data_units_read: Option<u64>,
    /// What was written, in thousands of 512-byte units.
    pub data_units_written: Option<u64>,
    /// I/O errors that the kernel logged in the last 10 minutes.
    pub io_errors_last10m: Option<u32>,
    /// Why it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a str>,
}

/// A certificate in a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CertRow<'a> {
    /// The file.
    pub path: &'a str,
    /// Whom it is for.
    pub subject: Option<&'a str>,
    /// Who signed it.
    pub issuer: Option<&'a str>,
    /// Its serial number, in hexadecimal.
    pub serial: Option<&'a str>,
    /// From when it is valid.
    #[serde(serialize_with = "rfc3339")]
    pub not_before: Option<Timestamp>,
    /// Until when it is valid.
    #[serde(serialize_with = "rfc3339")]
    pub not_after: Option<Timestamp>,
    /// How long it is valid still; negative once it has expired.
    pub seconds_left: Option<i64>,
    /// Whether it should have been renewed by now.
    pub renewal_due: Option<bool>,
    /// Why it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a str>,
}

/// A condition, as evidence shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConditionRow<'a> {
    /// Its type.
    #[serde(rename = "type")]
    pub name: &'a str,
    /// `True`, `False` or `Unknown`.
    pub status: &'a str,
    /// Why, in one word.
    pub reason: &'a str,
    /// Why, in a sentence.
    pub message: &'a str,
    /// When the status last changed.
    #[serde(serialize_with = "rfc3339")]
    pub since: Option<Timestamp>,
}

/// A record of the kernel log that means something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordRow<'a> {
    /// When the kernel said so.
    #[serde(serialize_with = "rfc3339")]
    pub at: Option<Timestamp>,
    /// Its sequence number.
    pub sequence: u64,
    /// What it said.
    pub text: &'a str,
}

/// What the document `tamper` shows, without what it shows of the node.
///
/// `L` gives [`LayerRow`]s, `C` each
/// [`ProtectedFile`](crate::node::reading::ProtectedFile) that is not as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TamperReport<'a, L, C> {
    /// The sealed layers of the operating system.
    pub layers: Option<L>,
    /// When the baseline of the protected files was taken.
    pub baseline_at: Option<Timestamp>,
    /// How many files are protected.
    pub protected_files: Option<u64>,
    /// The protected files that are not as at the baseline.
    pub changes: Option<C>,
    /// Why layers or files could not be read.
    pub error: Option<&'a str>,
}

/// A sealed layer of the operating system.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LayerRow<'a> {
    /// Its name, such as `root`.
    pub name: &'a str,
    /// Its device-mapper device.
    pub device: Option<&'a str>,
    /// What the kernel does on corruption, such as `panic_on_corruption`.
    pub mode: Option<&'a str>,
    /// The root hash that the kernel enforces, in hexadecimal.
    pub enforced_root_hash: Option<&'a str>,
    /// The root hash that was recorded when the node was provisioned.
    pub recorded_root_hash: Option<&'a str>,
    /// Whether they are the same.
    pub matches: Option<bool>,
    /// Whether a block has failed its check since the device was set up.
    pub corrupted: Option<bool>,
}

/// A unit of systemd.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceRow<'a> {
    /// Its name, such as `kubelet.service`.
    pub unit: &'a str,
    /// `ActiveState`.
    pub active_state: Option<&'a str>,
    /// `SubState`.
    pub sub_state: Option<&'a str>,
    /// `Result`: how it ended last.
    pub result: Option<&'a str>,
    /// `NRestarts`: restarts by systemd.
    pub restarts: Option<u32>,
    /// Restarts by the agent.
    pub own_restarts: Option<u32>,
    /// When it was started last.
    #[serde(serialize_with = "rfc3339")]
    pub last_start_at: Option<Timestamp>,
    /// The last probe of what it serves.
    pub probe: Option<ProbeRow<'a>>,
}

/// A probe of what a unit serves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProbeRow<'a> {
    /// Whether the answer was good.
    pub ok: Option<bool>,
    /// How long the answer took.
    pub latency_ms: Option<u32>,
    /// When it was probed.
    #[serde(serialize_with = "rfc3339")]
    pub at: Option<Timestamp>,
    /// What was wrong with the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a str>,
}

/// A share in hundredths of a percent; in JSON a percentage such as `85.25`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hundredths(pub u32);

impl Hundredths {
    /// Returns what share of `whole` `part` is, rounded down; `None` of nothing.
    #[must_use]
    pub fn of(part: u64, whole: u64) -> Option<Self> {
        let share = u128::from(part).saturating_mul(10_000).checked_div(u128::from(whole))?;
        Some(Self(u32::try_from(share).unwrap_or(u32::MAX)))
    }
}

impl Serialize for Hundredths {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_multiple_of(100) {
            return serializer.serialize_u32(self.0 / 100);
        }
        // Prints two decimals at most: the shortest that reads back as this `f64` is what was
        // divided, since 15 digits fit in one and these are 10.
        serializer.serialize_f64(f64::from(self.0) / 100.0)
    }
}

/// Writes a time in RFC 3339; `null` outside of the years that it has.
pub(super) fn rfc3339<S: Serializer>(
    time: &Option<Timestamp>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match time.and_then(Timestamp::rfc3339) {
        Some(time) => serializer.collect_str(&time),
        None => serializer.serialize_none(),
    }
}

fn names<S: Serializer>(warnings: &Option<Warnings>, serializer: S) -> Result<S::Ok, S::Error> {
    let Some(warnings) = warnings else {
        return serializer.serialize_none();
    };
    let mut list = serializer.serialize_seq(None)?;
    for name in warnings.names() {
        list.serialize_element(name)?;
    }
    list.end()
}
