//! Reads the error counts of the memory controllers.

use std::path::PathBuf;

use fettle_core::catalog::ReadingKind;
use fettle_core::node::checks::Outcome;
use fettle_core::node::reading::{MemoryController, Reading};

use crate::probe::Probe;
use crate::probe::batch::{Batch, failed};
use crate::sys::edac;

/// The probe of memory errors that the kernel log does not show.
#[derive(Debug)]
pub struct Memory {
    root: PathBuf,
}

impl Memory {
    /// Reads the controllers below `root`.
    #[must_use]
    pub const fn new(root: PathBuf) -> Self {
        Self { root }
    }
}

impl Probe for Memory {
    fn read(&mut self, batch: &mut Batch) -> Outcome {
        let controllers = match edac::controllers(&self.root) {
            Ok(controllers) => controllers.unwrap_or_default(),
            Err(problem) => return failed(&format!("cannot list memory controllers: {problem}")),
        };
        if controllers.is_empty() {
            return Outcome::NotApplicable;
        }
        for edac::MemoryController { name, corrected, uncorrected, .. } in &controllers {
            match (corrected, uncorrected) {
                (Some(corrected), Some(uncorrected)) => {
                    let (corrected, uncorrected) = (*corrected, *uncorrected);
                    let reading = MemoryController { name, corrected, uncorrected };
                    batch.push(&Reading::MemoryController(reading));
                }
                (None, _) | (_, None) => batch.push_unreadable(name, "it does not say its counts"),
            }
        }
        Outcome::Complete
    }

    fn kind(&self) -> ReadingKind {
        ReadingKind::MemoryErrors
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn each_controller_says_its_counts_or_that_it_does_not() {
        let root = tempfile::tempdir().unwrap();
        let mut probe = Memory::new(root.path().to_owned());
        assert_eq!(probe.read(&mut Batch::default()), Outcome::NotApplicable);
        for (name, corrected, uncorrected) in [("mc0", "3\n", "1\n"), ("mc1", "3\n", "?")] {
            let folder = root.path().join("sys/devices/system/edac/mc").join(name);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("ce_count"), corrected).unwrap();
            fs::write(folder.join("ue_count"), uncorrected).unwrap();
        }
        let mut batch = Batch::default();
        assert_eq!(probe.read(&mut batch), Outcome::Complete);
        let read: Vec<String> = batch.readings().map(|reading| format!("{reading:?}")).collect();
        assert_eq!(
            read,
            [
                "MemoryController(MemoryController { name: \"mc0\", corrected: 3, uncorrected: 1 })",
                "Unreadable(Unreadable { object: \"mc1\", why: \"it does not say its counts\" })",
            ]
        );
    }
}
