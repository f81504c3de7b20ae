//! Reads space: of file systems, and of volume groups and thin pools below them.

use core::time::Duration;

use fettle_core::catalog::ReadingKind;
use fettle_core::node::checks::Outcome;

use crate::errors::chain;
use crate::probe::Probe;
use crate::probe::batch::Batch;
use crate::probe::file_systems::FileSystems;
use crate::probe::lvm::Lvm;

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
            Ok(0) => outcome,
            // What one of the two has read is judged whatever became of the other.
            Ok(_) => Outcome::Complete,
            Err(problem) => {
                batch.push_unreadable("LVM", &chain(&problem));
                Outcome::Complete
            }
        }
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
