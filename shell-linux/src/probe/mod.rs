//! Probes: each makes one kind of reading, on a thread of its own where it may block.
//!
//! To add one: a file here with a [`Probe`], and its line in [`all`].

pub mod batch;
pub mod certificates;
pub mod clearings;
pub mod clock;
pub mod drives;
pub mod file_age;
pub mod file_systems;
pub mod gpu;
pub mod kernel_log;
pub mod layers;
pub mod lvm;
pub mod protected_files;
pub mod runner;

use core::time::Duration;
use std::path::PathBuf;

use fettle_core::catalog::ReadingKind;
use fettle_core::node::checks::Outcome;

use self::batch::Batch;
use self::clock::KernelClock;
use self::drives::Drives;
use self::file_systems::FileSystems;
use self::layers::Layers;
use self::protected_files::ProtectedFiles;
use crate::config::Config;

/// Makes one kind of reading.
pub trait Probe: Send {
    /// Reads every object of the kind, once, and says how that ended.
    ///
    /// Blocks: it runs on a thread of its own.
    fn read(&mut self, batch: &mut Batch) -> Outcome;

    /// What it reads.
    fn kind(&self) -> ReadingKind;

    /// How long a run may take before it is given up.
    fn deadline(&self) -> Duration {
        DEADLINE
    }
}

/// Returns every probe that this agent has.
#[must_use]
pub fn all() -> Vec<Box<dyn Probe>> {
    let root = PathBuf::from("/");
    let protected =
        Config::default().protected.iter().map(|glob| glob.as_str().to_owned()).collect();
    vec![
        Box::new(KernelClock),
        Box::new(Drives::new(root.clone())),
        Box::new(FileSystems::new(root.clone(), PathBuf::from("/var/lib/kubelet"))),
        Box::new(Layers::new(root.clone(), PathBuf::from("/var/lib/syself/sealed.json"))),
        Box::new(ProtectedFiles::new(root, protected, PathBuf::from("/run/fettle/baseline"))),
    ]
}

/// Long for anything local, short beside the shortest interval of the checks that use it.
const DEADLINE: Duration = Duration::from_secs(20);
