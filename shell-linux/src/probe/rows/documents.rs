//! The documents of the health report, from the rows that probes have read.
//!
//! In each list stands first what matters most: what is broken or could not be read, then what is
//! fullest, most worn or soonest to expire. What does not fit is then what matters least.

use core::cmp::Reverse;

use clap::ValueEnum;
use fettle_core::bounds::REPORT_MAX;
use fettle_core::node::judge::{Judgement, Limits, Memory, certificate, integrity};
use fettle_core::node::reading::{Certificate, Layer, ProtectedFile, Reading};
use fettle_core::node::report::{
    CertRow, DiskRow, FileSystemRow, Header, Hundredths, LayerRow, ServiceRow, TamperReport,
    ThinPoolRow, VolumeGroupRow, Written, write_certs, write_disks, write_services, write_storage,
    write_tamper,
};
use fettle_core::time::{Instant, Timestamp};
use fettle_core::wire::smart::celsius;

use super::Rows;
use crate::probe::certificates;
use crate::probe::drives::DriveRow;
use crate::probe::file_systems;
use crate::probe::layers;
use crate::probe::lvm::{Group, Pool};
use crate::probe::protected_files::ProtectedReport;

/// A document of the health report, in the order in which they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Document {
    /// File systems and volume groups.
    Storage,
    /// Drives.
    Disks,
    /// Certificates.
    Certs,
    /// Sealed layers and protected files.
    Tamper,
    /// Units.
    Services,
}

impl Document {
    /// Every document.
    pub const ALL: [Self; 5] =
        [Self::Storage, Self::Disks, Self::Certs, Self::Tamper, Self::Services];

    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Storage => "storage",
            Self::Disks => "disks",
            Self::Certs => "certs",
            Self::Tamper => "tamper",
            Self::Services => "services",
        }
    }
}

impl Rows {
    /// Writes a document as JSON.
    #[must_use]
    pub fn write(&self, document: Document, header: &Header) -> Vec<u8> {
        let mut out = vec![0; REPORT_MAX];
        let Written { bytes, .. } = match document {
            Document::Storage => self.write_storage(&mut out, header),
            Document::Disks => self.write_disks(&mut out, header),
            Document::Certs => self.write_certs(&mut out, header),
            Document::Tamper => self.write_tamper(&mut out, header),
            // No probe reads units yet.
            Document::Services => write_services(&mut out, header, NO_SERVICES),
        };
        out.truncate(bytes);
        out
    }

    fn write_storage(&self, out: &mut [u8], header: &Header) -> Written {
        let mut systems: Vec<_> = self.file_systems.iter().flatten().map(file_system).collect();
        systems.sort_by_key(|row| {
            let stopped = row.read_only == Some(true);
            (row.error.is_none(), !stopped, Reverse(row.used_pct.max(row.inodes_used_pct)))
        });
        let groups = self.volume_groups.iter().flatten();
        let pools = groups.map(|group| (group, thin_pools(group)));
        let mut groups: Vec<_> = pools.collect();
        groups.sort_by_key(|(group, _)| {
            let is_read = group.error.is_none() && group.size_bytes.is_some();
            let fullest = group.pools.iter().map(fullness).max();
            (is_read, Reverse(fullest), Reverse(allocated(group)))
        });
        let groups = groups.iter().map(|(group, pools)| volume_group(group, pools));
        write_storage(out, header, systems, groups)
    }

    fn write_disks(&self, out: &mut [u8], header: &Header) -> Written {
        let mut disks: Vec<_> = self.drives.iter().flatten().map(disk).collect();
        disks.sort_by_key(|row| {
            let warns = row.critical_warning.is_some_and(|bits| bits != 0);
            let limit = row.temperature_limit_celsius;
            let is_hot = limit.is_some_and(|limit| row.temperature_celsius >= Some(limit));
            (row.error.is_none(), !warns, !is_hot, Reverse(row.percentage_used))
        });
        write_disks(out, header, disks)
    }

    fn write_certs(&self, out: &mut [u8], header: &Header) -> Written {
        let now = header.updated_at;
        let certs = self.certificates.iter().flatten().map(|row| cert(row, now));
        let mut certs: Vec<_> = certs.collect();
        certs.sort_by_key(|row| (row.error.is_none(), row.not_after.map(Timestamp::unix_secs)));
        write_certs(out, header, certs)
    }

    fn write_tamper(&self, out: &mut [u8], header: &Header) -> Written {
        let layers = self.layers.as_ref().and_then(|report| report.layers.as_deref());
        let layers = layers.map(|layers| {
            let mut layers: Vec<_> = layers.iter().map(layer).collect();
            layers.sort_by_key(|row| row.matches == Some(true) && row.corrupted == Some(false));
            layers
        });
        // Without a baseline it is only known that nothing is protected if nothing went wrong.
        let is_known =
            |files: &&ProtectedReport| files.baseline_at.is_some() || files.error.is_none();
        let files = self.protected.as_ref().filter(is_known);
        let changes = files.map(|files| {
            files.changes.iter().map(|(path, change)| ProtectedFile { path, change: *change })
        });
        let of_layers = self.layers.iter().filter_map(|report| report.error.as_deref());
        let of_files = self.protected.iter().filter_map(|report| report.error.as_deref());
        let errors: Vec<_> = of_layers.chain(of_files).collect();
        let error = errors.join("; ");
        let report = TamperReport {
            layers,
            baseline_at: files.and_then(|files| files.baseline_at),
            protected_files: files.map(|files| files.files),
            changes,
            error: (!error.is_empty()).then_some(&error),
        };
        write_tamper(out, header, report)
    }
}

fn file_system(row: &file_systems::FileSystemRow) -> FileSystemRow<'_> {
    let is_mount = !row.fs_type.is_empty();
    FileSystemRow {
        mount_point: &row.mount_point,
        device: is_mount.then_some(&row.device),
        fs_type: is_mount.then_some(&row.fs_type),
        size_bytes: row.size_bytes,
        used_bytes: row.used_bytes,
        used_pct: row.used_pct_hundredths.map(Hundredths),
        inodes: row.inodes,
        inodes_used: row.inodes_used,
        inodes_used_pct: row.inodes_used_pct_hundredths.map(Hundredths),
        read_only: is_mount.then_some(row.read_only),
        error: row.error.as_deref(),
    }
}

/// Returns the pools of a group, the fullest first.
fn thin_pools(group: &Group) -> Vec<ThinPoolRow<'_>> {
    let mut pools: Vec<_> = group.pools.iter().collect();
    pools.sort_by_key(|pool| Reverse(fullness(pool)));
    pools.into_iter().map(thin_pool).collect()
}

fn thin_pool(pool: &Pool) -> ThinPoolRow<'_> {
    ThinPoolRow {
        name: &pool.name,
        size_bytes: pool.size_bytes,
        data_pct: pool.data_pct_hundredths.map(Hundredths),
        metadata_pct: pool.metadata_pct_hundredths.map(Hundredths),
    }
}

/// Returns how full a pool is: above all others where that should be known and is not, and below
/// them where the pool is not in use.
fn fullness(pool: &Pool) -> u32 {
    let shares = pool.data_pct_hundredths.zip(pool.metadata_pct_hundredths);
    let unknown = if pool.active { u32::MAX } else { 0 };
    shares.map_or(unknown, |(data, metadata)| data.max(metadata))
}

fn allocated(group: &Group) -> Option<Hundredths> {
    let size = group.size_bytes?;
    Hundredths::of(size.saturating_sub(group.free_bytes?), size)
}

fn volume_group<'a>(group: &'a Group, pools: &'a [ThinPoolRow<'a>]) -> VolumeGroupRow<'a> {
    VolumeGroupRow {
        name: &group.name,
        size_bytes: group.size_bytes,
        free_bytes: group.free_bytes,
        thin_pools: group.error.is_none().then_some(pools),
        error: group.error.as_deref(),
    }
}

fn disk(row: &DriveRow) -> DiskRow<'_> {
    let health = row.health.as_ref();
    DiskRow {
        name: &row.name,
        model: row.model.as_deref(),
        serial: row.serial.as_deref(),
        firmware: row.firmware.as_deref(),
        size_bytes: row.size_bytes,
        critical_warning: health.map(|health| health.warnings.bits()),
        critical_warnings: health.map(|health| health.warnings),
        temperature_celsius: health.map(|health| celsius(health.temperature_k)),
        temperature_limit_celsius: row.temperature_limit_celsius,
        percentage_used: health.map(|health| health.used_pct),
        available_spare_pct: health.map(|health| health.spare_pct),
        available_spare_threshold_pct: health.map(|health| health.spare_threshold_pct),
        media_errors: health.map(|health| health.media_errors),
        power_on_hours: health.map(|health| health.power_on_hours),
        unsafe_shutdowns: health.map(|health| health.unsafe_shutdowns),
        data_units_read: health.map(|health| health.units_read),
        data_units_written: health.map(|health| health.units_written),
        // Counted by the core, which follows the kernel log.
        io_errors_last10m: None,
        error: row.error.as_deref(),
    }
}

fn cert(row: &certificates::CertRow, now: Timestamp) -> CertRow<'_> {
    let left = |until: Timestamp| until.unix_secs().saturating_sub(now.unix_secs());
    CertRow {
        path: &row.path,
        subject: row.subject.as_deref(),
        issuer: row.issuer.as_deref(),
        serial: row.serial.as_deref(),
        not_before: row.not_before,
        not_after: row.not_after,
        seconds_left: row.not_after.map(left),
        renewal_due: renewal_due(row, now),
        error: row.error.as_deref(),
    }
}

/// Returns what the condition's judge says of a certificate.
fn renewal_due(row: &certificates::CertRow, now: Timestamp) -> Option<bool> {
    let reading = Reading::Certificate(Certificate {
        path: &row.path,
        subject: row.subject.as_deref().unwrap_or_default(),
        not_before: row.not_before?,
        not_after: row.not_after?,
        now,
    });
    is_problem(&certificate::renewal(NEVER, &reading, &Limits::default(), &mut Memory::None))
}

fn layer(row: &layers::LayerRow) -> LayerRow<'_> {
    let enforced = row.enforced.as_ref();
    LayerRow {
        name: &row.name,
        device: enforced.map(|enforced| enforced.device.as_str()),
        mode: enforced.and_then(|enforced| enforced.mode.as_deref()),
        enforced_root_hash: enforced.map(|enforced| enforced.hash.as_str()),
        recorded_root_hash: row.recorded.as_deref(),
        matches: enforced.and_then(|enforced| matches(row, enforced)),
        corrupted: enforced.map(|enforced| enforced.corrupted),
    }
}

/// Returns what the condition's judge says of a layer.
fn matches(row: &layers::LayerRow, enforced: &layers::Enforced) -> Option<bool> {
    let reading = Reading::Layer(Layer {
        name: &row.name,
        enforced: &enforced.hash,
        recorded: row.recorded.as_deref(),
        corrupted: enforced.corrupted,
    });
    let judgement = integrity::sealed_layer(NEVER, &reading, &Limits::default(), &mut Memory::None);
    is_problem(&judgement).map(|is_problem| !is_problem)
}

fn is_problem(judgement: &Judgement) -> Option<bool> {
    match judgement {
        Judgement::Healthy => Some(false),
        Judgement::Problem(_) => Some(true),
        Judgement::NotMine | Judgement::NotYet(_) | Judgement::Unknown(_) => None,
    }
}

const NO_SERVICES: [ServiceRow<'_>; 0] = [];

/// Neither judge asks how long the node is up.
const NEVER: Instant = Instant::from_millis(0);

#[cfg(test)]
mod tests;
