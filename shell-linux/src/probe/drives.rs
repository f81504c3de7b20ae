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
use crate::sys::disks::{self, Disk as Found};
use crate::sys::file::shown;
use crate::sys::nvme::{self, Controller, admin};

/// The probe of `DisksFailure`, `DiskTemperatureHigh` and `DiskWearHigh`.
#[derive(Debug)]
pub struct Drives {
    root: PathBuf,
    ask: Ask,
    seen: bool,
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
        Self { root, ask, seen: false }
    }

    fn read_one(&self, controller: &Controller, batch: &mut Batch) {
        let name = controller.name();
        let pages = match (self.ask)(controller, &self.root) {
            Ok(pages) => pages,
            Err(why) => return batch.push_unreadable(&name, &why),
        };
        let Ok(health) = Health::parse(&pages.health) else {
            return batch.push_unreadable(&name, "its health page is empty");
        };
        let Ok(identity) = Identity::parse(&pages.identity) else {
            return batch.push_unreadable(&name, "it does not say what it is");
        };
        batch.push(&Reading::Drive(Drive {
            name: &name,
            serial: &shown(identity.serial),
            critical_warning: health.warnings.bits(),
            temperature_celsius: celsius(health.temperature_k),
            temperature_limit_celsius: identity.warning_temperature_k.map(celsius),
            percentage_used: health.used_pct,
            spare_pct: health.spare_pct,
            spare_threshold_pct: health.spare_threshold_pct,
        }));
    }
}

impl Probe for Drives {
    fn read(&mut self, batch: &mut Batch) -> Outcome {
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
            self.read_one(controller, batch);
        }
        Outcome::Complete
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

    fn read(ask: Ask) -> (Outcome, Vec<String>) {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("sys/class/nvme/nvme0")).unwrap();
        let mut probe = Drives { root: root.path().to_owned(), ask, seen: false };
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
