//! The boot error record: what firmware saw before it started this kernel.
//!
//! `acpi_bert_data_init` in `drivers/acpi/sysfs.c`.

use std::io;
use std::path::Path;

use super::file;

/// Reads the boot error region below `root`, for the core to parse; `None` if there is none.
///
/// # Errors
///
/// Returns what the operating system says, and [`io::ErrorKind::FileTooLarge`] for a region that
/// is larger than any that firmware reserves.
pub fn read(root: &Path) -> io::Result<Option<Vec<u8>>> {
    file::read(&root.join("sys/firmware/acpi/tables/data/BERT"), REGION_BYTES_MAX)
}

/// Firmware reserves some KiB, and some hundred where it keeps the registers of each processor.
const REGION_BYTES_MAX: usize = 4 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use std::fs;

    use fettle_core::wire::cper::{Severity, StatusBlock};

    use super::*;

    #[test]
    fn a_region_is_read_whole_or_not_at_all() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(read(root.path()).unwrap(), None);
        let folder = root.path().join("sys/firmware/acpi/tables/data");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("BERT"), [&[1, 0, 0, 0][..], &[0; 12], &[1, 0, 0, 0]].concat())
            .unwrap();
        let region = read(root.path()).unwrap().unwrap();
        let block = StatusBlock::parse(&region).unwrap().unwrap();
        assert_eq!((block.severity, block.length), (Severity::Fatal, 20));
        fs::write(folder.join("BERT"), vec![0; REGION_BYTES_MAX + 1]).unwrap();
        assert!(read(root.path()).is_err());
    }
}
