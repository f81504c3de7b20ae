//! Error counts of memory controllers.
//!
//! `Documentation/ABI/testing/sysfs-devices-edac`.

use std::io;
use std::path::Path;

use super::file;

/// One memory controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryController {
    /// Its name, such as `mc0`.
    pub name: String,
    /// What the driver calls it, safe to show.
    pub label: Option<String>,
    /// Errors that were corrected since the driver was loaded; `None` if that cannot be read.
    pub corrected: Option<u64>,
    /// Errors that were not; `None` if that cannot be read.
    pub uncorrected: Option<u64>,
}

/// Returns the memory controllers below `root` in the order of their numbers.
///
/// `None` if the kernel counts no memory errors at all; an empty list if no driver knows the
/// node's memory controllers.
///
/// # Errors
///
/// Returns what the operating system says.
pub fn controllers(root: &Path) -> io::Result<Option<Vec<MemoryController>>> {
    let folder = root.join("sys/devices/system/edac/mc");
    let numbers = file::numbered(&folder, "mc")?;
    Ok(numbers.map(|numbers| numbers.into_iter().map(|n| controller(&folder, n)).collect()))
}

fn controller(folder: &Path, number: u32) -> MemoryController {
    let name = format!("mc{number}");
    let folder = folder.join(&name);
    MemoryController {
        name,
        label: file::line(&folder.join("mc_name")),
        corrected: file::number(&folder.join("ce_count")),
        uncorrected: file::number(&folder.join("ue_count")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn counts_are_numbers_or_unknown() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(controllers(root.path()).unwrap(), None);
        let folder = root.path().join("sys/devices/system/edac/mc");
        fs::create_dir_all(folder.join("mc0")).unwrap();
        fs::create_dir_all(folder.join("mc10")).unwrap();
        fs::create_dir_all(folder.join("power")).unwrap();
        fs::write(folder.join("mc0/mc_name"), "i10nm \x1b#0\n").unwrap();
        fs::write(folder.join("mc0/ce_count"), "3\n").unwrap();
        fs::write(folder.join("mc0/ue_count"), "").unwrap();
        let [first, second] = controllers(root.path()).unwrap().unwrap().try_into().unwrap();
        assert_eq!(
            (first.name.as_str(), first.corrected, first.uncorrected),
            ("mc0", Some(3), None)
        );
        assert_eq!(first.label.as_deref(), Some("i10nm \u{fffd}#0"));
        assert_eq!((second.name.as_str(), second.corrected, second.label), ("mc10", None, None));
    }
}
