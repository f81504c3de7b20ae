//! Reads the health of each NVMe drive from the drive itself, and how each disk is attached.

use std::io;
use std::path::{Path, PathBuf};

use fettle_core::catalog::ReadingKind;
use fettle_core::node::checks::Outcome;
use fettle_core::node::reading::{Disk, Drive, Reading};
use fettle_core::wire::smart::{HEALTH_BYTES, Health, IDENTITY_BYTES, Identity, celsius};

use crate::errors::chain;
use crate::probe::Probe;
use crate::probe::batch::{Batch, failed};
use crate::probe::rows::Rows;
use crate::sys::disks::{self, Disk as Found};
use crate::sys::file::shown;
use crate::sys::nvme::{self, Controller, admin};

/// The probe of `DisksFailure`, `DiskTemperatureHigh` and `DiskWearHigh`.
#[derive(Debug)]
pub struct Drives {
    root: PathBuf,
    ask: Ask,
    seen: bool,
    rows: Vec<DriveRow>,
}

/// A drive, for the report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DriveRow {
    /// The controller, such as `nvme0`.
    pub name: String,
    /// The model.
    pub model: Option<String>,
    /// The serial number.
    pub serial: Option<String>,
    /// The revision of its firmware.
    pub firmware: Option<String>,
    /// All of its space.
    pub size_bytes: Option<u64>,
    /// Its health page.
    pub health: Option<Health>,
    /// The temperature from which on it is too hot.
    pub temperature_limit_celsius: Option<i16>,
    /// Why it could not be read.
    pub error: Option<String>,
}

/// How a drive is asked for its pages.
type Ask = fn(&Controller, &Path) -> Result<Pages, String>;

/// What a drive answers.
struct Pages {
    health: [u8; HEALTH_BYTES],
    identity: [u8; IDENTITY_BYTES],
}

impl Drives {
    /// Reads the drives below `root`.
    #[must_use]
    pub fn new(root: PathBuf) -> Self {
        Self { root, ask, seen: false, rows: Vec::new() }
    }

    fn read_one(&self, controller: &Controller, batch: &mut Batch) -> DriveRow {
        let mut row = DriveRow::new(controller);
        let pages = (self.ask)(controller, &self.root);
        if let Err(why) = pages.and_then(|pages| read_pages(&pages, &mut row, batch)) {
            batch.push_unreadable(&row.name, &why);
            row.error = Some(why);
        }
        row
    }
}

impl DriveRow {
    /// Takes what sysfs shows of a drive, which the drive itself may correct.
    fn new(controller: &Controller) -> Self {
        let namespaces = &controller.namespaces;
        let sum = |sum: u64, bytes: Option<u64>| Some(sum.saturating_add(bytes?));
        let size_bytes = namespaces.iter().map(|namespace| namespace.bytes).try_fold(0, sum);
        Self {
            name: controller.name(),
            model: controller.model.clone(),
            serial: controller.serial.clone(),
            firmware: controller.firmware.clone(),
            // A drive without a disk is one whose disks nobody could list.
            size_bytes: size_bytes.filter(|_| !namespaces.is_empty()),
            ..Self::default()
        }
    }
}

/// Appends the reading of a drive and completes its row, or says what is wrong with its pages.
fn read_pages(pages: &Pages, row: &mut DriveRow, batch: &mut Batch) -> Result<(), String> {
    let health = Health::parse(&pages.health).map_err(|_| "its health page is empty")?;
    row.health = Some(health);
    let identity = Identity::parse(&pages.identity).map_err(|_| "it does not say what it is")?;
    let serial = shown(identity.serial);
    row.temperature_limit_celsius = identity.warning_temperature_k.map(celsius);
    batch.push(&Reading::Drive(Drive {
        name: &row.name,
        serial: &serial,
        critical_warning: health.warnings.bits(),
        temperature_celsius: celsius(health.temperature_k),
        temperature_limit_celsius: row.temperature_limit_celsius,
        percentage_used: health.used_pct,
        spare_pct: health.spare_pct,
        spare_threshold_pct: health.spare_threshold_pct,
    }));
    row.model = Some(shown(identity.model));
    row.serial = Some(serial);
    row.firmware = Some(shown(identity.firmware));
    Ok(())
}

impl Probe for Drives {
    fn read(&mut self, batch: &mut Batch) -> Outcome {
        self.rows.clear();
        let controllers = match nvme::controllers(&self.root) {
            Ok(controllers) => controllers.unwrap_or_default(),
            Err(problem) => return failed(&format!("cannot list the NVMe drives: {problem}")),
        };
        match disks::disks(&self.root) {
            Ok(found) => push_disks(&found.unwrap_or_default(), batch),
            Err(problem) => return failed(&format!("cannot list the disks: {problem}")),
        }
        if controllers.is_empty() && !self.seen {
            return Outcome::NotApplicable;
        }
        // From now on a drive that is missing is one that vanished.
        self.seen = true;
        for controller in &controllers {
            let row = self.read_one(controller, batch);
            self.rows.push(row);
        }
        Outcome::Complete
    }

    fn document(&self, rows: &mut Rows) {
        rows.drives = Some(self.rows.clone());
    }

    fn kind(&self) -> ReadingKind {
        ReadingKind::Disks
    }
}

/// Says of each disk whose errors the kernel log may report how it is attached.
fn push_disks(disks: &[Found], batch: &mut Batch) {
    for Found { name, attachment } in disks {
        batch.push(&Reading::Disk(Disk { name, attachment: *attachment }));
    }
}

fn ask(controller: &Controller, root: &Path) -> Result<Pages, String> {
    let open = controller.open(root).map_err(|problem| cannot_open(controller, &problem))?;
    let health = admin::health(&open).map_err(|problem| chain(&problem))?;
    let identity = admin::identity(&open).map_err(|problem| chain(&problem))?;
    Ok(Pages { health, identity })
}

fn cannot_open(controller: &Controller, problem: &io::Error) -> String {
    format!("cannot open /dev/{}: {problem}", controller.name())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_node_without_nvme_has_nothing_to_check() {
        let root = tempfile::tempdir().unwrap();
        let mut probe = Drives::new(root.path().to_owned());
        assert_eq!(probe.read(&mut Batch::default()), Outcome::NotApplicable);
    }

    #[test]
    fn disks_are_read_where_no_drive_is_nvme() {
        let root = tempfile::tempdir().unwrap();
        let (sys, place) = (root.path().join("sys"), "devices/usb1/block/sdb");
        fs::create_dir_all(sys.join("block")).unwrap();
        fs::create_dir_all(sys.join(place)).unwrap();
        std::os::unix::fs::symlink(Path::new("..").join(place), sys.join("block/sdb")).unwrap();
        let mut batch = Batch::default();
        let outcome = Drives::new(root.path().to_owned()).read(&mut batch);
        assert_eq!(outcome, Outcome::NotApplicable);
        let read: Vec<_> = batch.readings().map(|reading| format!("{reading:?}")).collect();
        assert_eq!(read, ["Disk(Disk { name: \"sdb\", attachment: Usb })"]);
    }

    #[test]
    fn a_drive_is_read_as_it_answers() {
        let (outcome, readings) = read(|_, _| Ok(pages(|_| {}, |_| {})));
        assert_eq!((outcome, readings.len()), (Outcome::Complete, 1));
        let want = "Drive(Drive { name: \"nvme0\", serial: \"S1\", critical_warning: 0, \
                    temperature_celsius: 50, temperature_limit_celsius: Some(70), \
                    percentage_used: 3, spare_pct: 100, spare_threshold_pct: 10 })";
        assert_eq!(readings[0], want);
    }

    #[test]
    fn a_drive_that_refuses_or_answers_with_zeros_is_unreadable() {
        let asks: [(Ask, &str); 3] = [
            (|_, _| Err("refused by the controller".to_owned()), "refused by the controller"),
            (|_, _| Ok(pages(|health| health.fill(0), |_| {})), "its health page is empty"),
            (|_, _| Ok(pages(|_| {}, |identity| identity.fill(0))), "it does not say what it is"),
        ];
        for (ask, why) in asks {
            let (outcome, readings) = read(ask);
            let want = format!("Unreadable(Unreadable {{ object: \"nvme0\", why: \"{why}\" }})");
            assert_eq!((outcome, readings), (Outcome::Complete, vec![want]));
        }
    }

    #[test]
    fn a_drive_that_refuses_is_reported_with_what_sysfs_shows() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("sys/class/nvme/nvme0");
        fs::create_dir_all(folder.join("nvme0n1")).unwrap();
        fs::write(folder.join("nvme0n1/size"), "8\n").unwrap();
        fs::write(folder.join("model"), "Old name\n").unwrap();
        let asks: [(Ask, &str, Option<&str>); 2] = [
            (|_, _| Err("refused".to_owned()), "Old name", Some("refused")),
            (|_, _| Ok(pages(|_| {}, |_| {})), "Model", None),
        ];
        for (ask, model, error) in asks {
            let mut probe = Drives { ask, ..Drives::new(root.path().to_owned()) };
            probe.read(&mut Batch::default());
            let mut rows = Rows::default();
            probe.document(&mut rows);
            let drives = rows.drives.unwrap();
            let [row] = drives.as_slice() else { panic!("{drives:?}") };
            assert_eq!((row.model.as_deref(), row.error.as_deref()), (Some(model), error));
            assert_eq!((row.size_bytes, row.health.is_some()), (Some(4096), error.is_none()));
        }
    }

    fn read(ask: Ask) -> (Outcome, Vec<String>) {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("sys/class/nvme/nvme0")).unwrap();
        let mut probe = Drives { ask, ..Drives::new(root.path().to_owned()) };
        let mut batch = Batch::default();
        let outcome = probe.read(&mut batch);
        let readings = batch.readings().map(|reading| format!("{reading:?}")).collect();
        (outcome, readings)
    }

    fn pages(
        health: fn(&mut [u8; HEALTH_BYTES]),
        identity: fn(&mut [u8; IDENTITY_BYTES]),
    ) -> Pages {
        let mut pages = Pages { health: [0; HEALTH_BYTES], identity: [0; IDENTITY_BYTES] };
        pages.health[1..6].copy_from_slice(&[0x43, 0x01, 100, 10, 3]); // 323 K
        pages.identity[4..24].fill(b' ');
        pages.identity[4..6].copy_from_slice(b"S1");
        pages.identity[24..64].fill(b' ');
        pages.identity[24..29].copy_from_slice(b"Model");
        pages.identity[266..268].copy_from_slice(&343_u16.to_le_bytes());
        health(&mut pages.health);
        identity(&mut pages.identity);
        pages
    }
}
