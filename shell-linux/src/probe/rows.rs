//! What the documents of the health report need to know of the last run of each probe.

mod documents;

use fettle_core::catalog::ReadingKind;
use fettle_core::node::checks::Outcome;

use crate::probe::Probe;
use crate::probe::certificates::CertRow;
use crate::probe::drives::DriveRow;
use crate::probe::file_systems::FileSystemRow;
use crate::probe::layers::LayersReport;
use crate::probe::lvm::Group;
use crate::probe::protected_files::ProtectedReport;

pub use self::documents::Document;

/// The rows of every document; `None` of what no run has read.
///
/// Each probe bounds what it adds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rows {
    /// Certificates.
    pub certificates: Option<Vec<CertRow>>,
    /// Drives.
    pub drives: Option<Vec<DriveRow>>,
    /// File systems.
    pub file_systems: Option<Vec<FileSystemRow>>,
    /// Sealed layers.
    pub layers: Option<LayersReport>,
    /// Protected files.
    pub protected: Option<ProtectedReport>,
    /// Volume groups.
    pub volume_groups: Option<Vec<Group>>,
}

impl Rows {
    /// Returns what the run of `probe` that ended so has read.
    #[must_use]
    pub fn of(probe: &dyn Probe, outcome: &Outcome) -> Self {
        if let Outcome::Failed { why } = outcome {
            return Self::failed(probe.kind(), why.as_str());
        }
        let mut rows = Self::default();
        probe.document(&mut rows);
        rows
    }

    /// Returns what a run says of which nothing came: a row that says why.
    #[must_use]
    pub fn failed(kind: ReadingKind, why: &str) -> Self {
        let mut rows = Self::default();
        let error = Some(why.to_owned());
        if kind == ReadingKind::Certificates {
            let path = "certificates".to_owned();
            rows.certificates = Some(vec![CertRow { path, error, ..CertRow::default() }]);
        } else if kind == ReadingKind::Disks {
            let name = "NVMe drives".to_owned();
            rows.drives = Some(vec![DriveRow { name, error, ..DriveRow::default() }]);
        } else if kind == ReadingKind::FileSystems {
            rows.file_systems = Some(vec![FileSystemRow::unread(why.to_owned())]);
            rows.volume_groups = Some(Vec::new());
        } else if kind == ReadingKind::SealedLayers {
            rows.layers = Some(LayersReport { layers: None, error });
        } else if kind == ReadingKind::ProtectedFiles {
            rows.protected = Some(ProtectedReport { error, ..ProtectedReport::default() });
        }
        rows
    }

    /// Takes what a later run says in place of what is known of the same.
    pub fn replace(&mut self, later: Self) {
        let Self { certificates, drives, file_systems, layers, protected, volume_groups } = later;
        replace(&mut self.certificates, certificates);
        replace(&mut self.drives, drives);
        replace(&mut self.file_systems, file_systems);
        replace(&mut self.layers, layers);
        replace(&mut self.protected, protected);
        replace(&mut self.volume_groups, volume_groups);
    }
}

fn replace<T>(known: &mut Option<T>, later: Option<T>) {
    if later.is_some() {
        *known = later;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_run_replaces_its_own_rows_alone_even_if_it_failed() {
        let mut rows = Rows::failed(ReadingKind::Disks, "first");
        rows.replace(Rows::failed(ReadingKind::Certificates, "no"));
        rows.replace(Rows::failed(ReadingKind::Disks, "second"));
        rows.replace(Rows::failed(ReadingKind::Clock, "in no document"));
        let error = |row: &DriveRow| row.error.clone();
        let drives: Vec<_> = rows.drives.iter().flatten().filter_map(error).collect();
        assert_eq!((drives, rows.certificates.is_some()), (vec!["second".to_owned()], true));
        assert_eq!(rows.file_systems, None);
    }
}
