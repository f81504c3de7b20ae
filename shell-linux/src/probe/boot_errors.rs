//! Reads the hardware errors that firmware recorded before this boot.

use std::path::{Path, PathBuf};

use fettle_core::catalog::ReadingKind;
use fettle_core::node::checks::Outcome;
use fettle_core::node::reading::{BootError, Reading};
use fettle_core::wire::cper::StatusBlocks;
use log::warn;

use crate::probe::Probe;
use crate::probe::batch::{Batch, failed};
use crate::sys::{bert, pstore};

/// The probe of errors of the previous boot that the kernel log does not show.
#[derive(Debug)]
pub struct BootErrors {
    root: PathBuf,
    /// Whether the crashes that the kernel kept have been told.
    told: bool,
}

impl BootErrors {
    /// Reads the table below `root`.
    #[must_use]
    pub const fn new(root: PathBuf) -> Self {
        Self { root, told: false }
    }
}

impl Probe for BootErrors {
    fn read(&mut self, batch: &mut Batch) -> Outcome {
        if !core::mem::replace(&mut self.told, true)
            && let Some(crashes) = crashes(&self.root)
        {
            warn!("{crashes}");
        }
        let region = match bert::read(&self.root) {
            Ok(Some(region)) => region,
            Ok(None) => return Outcome::NotApplicable,
            Err(problem) => return failed(&format!("cannot read the boot error table: {problem}")),
        };
        for block in StatusBlocks::new(&region) {
            match block {
                Ok(block) => {
                    let (severity, cleared) = (block.severity, block.cleared);
                    batch.push(&Reading::BootError(BootError { severity, cleared }));
                }
                // What stands before it is good, and no later run would read more.
                Err(problem) => {
                    warn!("firmware's boot error table breaks off with a bad block: {problem:?}");
                }
            }
        }
        Outcome::Complete
    }

    fn kind(&self) -> ReadingKind {
        ReadingKind::BootErrors
    }
}

/// Says which crashes of earlier boots the kernel kept, if it did; no condition follows from them.
fn crashes(root: &Path) -> Option<String> {
    let kept = pstore::list(root).ok()??;
    let names: Vec<&str> = kept.records.iter().map(|record| record.name.as_str()).collect();
    let (count, omitted) = (names.len(), kept.omitted);
    (count > 0).then(|| {
        let names = names.get(..NAMES_SHOWN.min(count)).unwrap_or_default().join(", ");
        format!(
            "an earlier boot ended in a crash: /sys/fs/pstore keeps {names} ({count} records, \
             {omitted} more not listed)"
        )
    })
}

/// Names of records that the log shows: a crash has several parts.
const NAMES_SHOWN: usize = 4;

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn each_block_is_an_error_until_one_is_bad() {
        let root = tempfile::tempdir().unwrap();
        let mut probe = BootErrors::new(root.path().to_owned());
        assert_eq!(probe.read(&mut Batch::default()), Outcome::NotApplicable);
        let folder = root.path().join("sys/firmware/acpi/tables/data");
        fs::create_dir_all(&folder).unwrap();
        let block = |status, severity| {
            [[status, 0, 0, 0], [0; 4], [0; 4], [4, 0, 0, 0], [severity, 0, 0, 0], [0; 4]].concat()
        };
        let region = [block(1, 1), block(0, 2), block(1, 9), block(1, 1)].concat();
        fs::write(folder.join("BERT"), region).unwrap();
        let mut batch = Batch::default();
        assert_eq!(probe.read(&mut batch), Outcome::Complete);
        let read: Vec<String> = batch.readings().map(|reading| format!("{reading:?}")).collect();
        assert_eq!(
            read,
            [
                "BootError(BootError { severity: Fatal, cleared: false })",
                "BootError(BootError { severity: Corrected, cleared: true })",
            ]
        );
    }

    #[test]
    fn a_crash_that_the_kernel_kept_is_told_with_its_records() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(crashes(root.path()), None);
        let folder = root.path().join("sys/fs/pstore");
        fs::create_dir_all(&folder).unwrap();
        assert_eq!(crashes(root.path()), None);
        for name in ["dmesg-erst-1", "dmesg-erst-2"] {
            fs::write(folder.join(name), "secret").unwrap();
        }
        let told = crashes(root.path()).unwrap();
        assert!(told.contains("keeps dmesg-erst-1, dmesg-erst-2 (2 records"), "{told}");
    }
}
