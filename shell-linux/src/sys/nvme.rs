//! NVMe controllers: which there are, and what they say of themselves.
//!
//! `drivers/nvme/host/sysfs.c`.

pub mod admin;

use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use fettle_core::wire::scan::Scan;
use rustix::fs::{Mode, OFlags, open};

use super::file;

/// One controller, as sysfs shows it.
///
/// What a controller says of itself is safe to show; it is `None` where sysfs does not say it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Controller {
    number: u32,
    /// Model number.
    pub model: Option<String>,
    /// Serial number.
    pub serial: Option<String>,
    /// Firmware revision.
    pub firmware: Option<String>,
    /// How it is attached, such as `pcie` or `tcp`.
    pub transport: Option<String>,
    /// What the driver makes of it, such as `live`, `resetting` or `dead`.
    pub state: Option<String>,
    /// Its namespaces: the disks.
    pub namespaces: Vec<Namespace>,
}

/// One namespace of a controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    /// The disk, such as `nvme0n1`.
    pub disk: String,
    /// Its size, if sysfs says it.
    pub bytes: Option<u64>,
}

/// Returns the controllers below `root` in the order of their numbers.
///
/// `None` if the kernel has no such class: its driver is not loaded.
///
/// # Errors
///
/// Returns what the operating system says.
pub fn controllers(root: &Path) -> io::Result<Option<Vec<Controller>>> {
    let class = root.join("sys/class/nvme");
    let numbers = file::numbered(&class, "nvme")?;
    Ok(numbers.map(|numbers| numbers.into_iter().map(|n| controller(&class, n)).collect()))
}

impl Controller {
    /// Returns its name, such as `nvme0`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("nvme{}", self.number)
    }

    /// Opens its device below `root`, for [`admin`].
    ///
    /// # Errors
    ///
    /// Returns what the operating system says.
    pub fn open(&self, root: &Path) -> io::Result<File> {
        let path = root.join("dev").join(self.name());
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        Ok(open(path, flags, Mode::empty())?.into())
    }
}

fn controller(class: &Path, number: u32) -> Controller {
    let folder = class.join(format!("nvme{number}"));
    let line = |name: &str| file::line(&folder.join(name));
    Controller {
        number,
        model: line("model"),
        serial: line("serial"),
        firmware: line("firmware_rev"),
        transport: line("transport"),
        state: line("state"),
        namespaces: namespaces(&folder),
    }
}

/// Returns the namespaces; none where the folder cannot be read, for then its controller is gone.
fn namespaces(folder: &Path) -> Vec<Namespace> {
    let (names, _) = file::names(folder).ok().flatten().unwrap_or_default();
    let disks = names.iter().filter_map(|name| Some((name, disk(name.as_bytes())?)));
    disks
        .map(|(name, disk)| {
            let sectors = file::number(&folder.join(name).join("size"));
            Namespace { disk, bytes: sectors.map(|sectors| sectors.saturating_mul(SECTOR_BYTES)) }
        })
        .collect()
}

/// Returns the disk that an entry of a controller's folder stands for.
///
/// Where several controllers lead to one namespace, each has an entry `nvmeXcYnZ` of its own; the
/// disk is `nvmeXnZ` (`drivers/nvme/host/multipath.c`).
fn disk(name: &[u8]) -> Option<String> {
    let mut scan = Scan::new(name);
    scan.literal(b"nvme")?;
    let device = scan.number()?;
    if scan.literal(b"c").is_some() {
        scan.number()?;
    }
    scan.literal(b"n")?;
    let namespace = scan.number()?;
    scan.rest().is_empty().then(|| format!("nvme{device}n{namespace}"))
}

/// Sizes in sysfs count sectors of 512 bytes, whatever the disk's own are.
const SECTOR_BYTES: u64 = 512;

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn controllers_are_listed_with_their_disks() {
        let root = tempfile::tempdir().unwrap();
        let class = root.path().join("sys/class/nvme");
        let folder = class.join("nvme1");
        for entry in ["nvme1n1", "nvme0c1n2", "ng1n1", "power", "nvme1n1\u{1b}[2J"] {
            fs::create_dir_all(folder.join(entry)).unwrap();
        }
        fs::write(folder.join("model"), "Disk \x1b[31mred\u{202e}     \n").unwrap();
        fs::write(folder.join("serial"), "S1\n").unwrap();
        fs::write(folder.join("firmware_rev"), "        \n").unwrap();
        fs::write(folder.join("nvme1n1/size"), "2048\n").unwrap();
        fs::write(folder.join("nvme0c1n2/size"), "many\n").unwrap();
        fs::create_dir_all(class.join("nvme0")).unwrap();
        let [bare, full] = controllers(root.path()).unwrap().unwrap().try_into().unwrap();
        assert_eq!((bare.name().as_str(), bare.model, bare.namespaces), ("nvme0", None, vec![]));
        assert_eq!(full.name(), "nvme1");
        assert_eq!(full.model.as_deref(), Some("Disk \u{fffd}[31mred\u{fffd}"));
        assert_eq!((full.serial.as_deref(), full.firmware), (Some("S1"), None));
        let want = [("nvme0n2", None), ("nvme1n1", Some(1 << 20))];
        let got: Vec<_> = full.namespaces.iter().map(|n| (n.disk.as_str(), n.bytes)).collect();
        assert_eq!(got, want);
    }

    #[test]
    fn a_kernel_without_the_driver_has_no_list() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(controllers(root.path()).unwrap(), None);
        fs::create_dir_all(root.path().join("sys/class/nvme")).unwrap();
        assert_eq!(controllers(root.path()).unwrap(), Some(vec![]));
    }

    #[test]
    fn a_controller_is_opened_below_the_root() {
        let root = tempfile::tempdir().unwrap();
        let controller = controller(root.path(), 7);
        assert_eq!(controller.open(root.path()).unwrap_err().kind(), io::ErrorKind::NotFound);
        fs::create_dir(root.path().join("dev")).unwrap();
        fs::write(root.path().join("dev/nvme7"), "").unwrap();
        let device = controller.open(root.path()).unwrap();
        assert!(matches!(admin::health(&device), Err(admin::AdminError::Call(_))));
    }
}
