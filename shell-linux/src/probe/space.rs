//! Reads space: of file systems, and of volume groups and thin pools below them.

use core::time::Duration;

use fettle_core::catalog::ReadingKind;
use fettle_core::node::checks::Outcome;

use crate::errors::chain;
use crate::probe::Probe;
use crate::probe::batch::Batch;
use crate::probe::file_systems::FileSystems;
use crate::probe::lvm::Lvm;
use crate::probe::rows::Rows;

/// The probe of `DiskUsageHigh`.
#[derive(Debug)]
pub struct Space {
    file_systems: FileSystems,
    lvm: Lvm,
}

impl Space {
    /// Reads both.
    #[must_use]
    pub const fn new(file_systems: FileSystems, lvm: Lvm) -> Self {
        Self { file_systems, lvm }
    }
}

impl Probe for Space {
    fn read(&mut self, batch: &mut Batch) -> Outcome {
        let outcome = self.file_systems.read(batch);
        match self.lvm.read(batch) {
            Ok(0) => return outcome,
            Ok(_) => {}
            Err(problem) => batch.push_unreadable("LVM", &chain(&problem)),
        }
        // What one of the two has read is judged whatever became of the other; but that a table of
        // mounts could not be read is not to look like a node whose file systems are well.
        if let Outcome::Failed { why } = &outcome {
            batch.push_unreadable("file systems", why.as_str());
        }
        Outcome::Complete
    }

    fn document(&self, rows: &mut Rows) {
        rows.file_systems = Some(self.file_systems.rows().to_vec());
        rows.volume_groups = Some(self.lvm.groups().to_vec());
    }

    fn kind(&self) -> ReadingKind {
        ReadingKind::FileSystems
    }

    fn deadline(&self) -> Duration {
        self.file_systems.deadline().saturating_add(LVM_WITHIN)
    }
}

/// Above what the programs of LVM are given.
const LVM_WITHIN: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn volume_groups_do_not_hide_that_no_file_system_could_be_read() {
        let absent = || PathBuf::from("/nonexistent");
        let file_systems = FileSystems::new(absent(), absent());
        let mut batch = Batch::default();
        let mut space = Space::new(file_systems, Lvm::new(absent(), true));
        assert_eq!(space.read(&mut batch), Outcome::Complete);
        let objects: Vec<_> = batch.readings().map(|r| r.object().to_owned()).collect();
        assert_eq!(objects, ["LVM", "file systems"]);
    }
}
