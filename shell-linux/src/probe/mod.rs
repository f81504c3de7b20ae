//! Probes: each makes one kind of reading, on a thread of its own where it may block.
//!
//! To add one: a file here with a [`Probe`], and its line in [`all`].

pub mod batch;
pub mod boot_errors;
pub mod certificates;
pub mod clearings;
pub mod drives;
pub mod file_age;
pub mod file_systems;
pub mod gpu;
pub mod kernel_clock;
pub mod kernel_log;
pub mod layers;
pub mod lvm;
pub mod memory;
pub mod place;
pub mod protected_files;
pub mod role;
pub mod rows;
pub mod runner;
pub mod space;

use core::time::Duration;

use fettle_core::catalog::ReadingKind;
use fettle_core::node::checks::Outcome;

use self::batch::Batch;
use self::boot_errors::BootErrors;
use self::certificates::Certificates;
use self::drives::Drives;
use self::file_age::RenewedFile;
use self::file_systems::FileSystems;
use self::gpu::GpuFiles;
use self::kernel_clock::KernelClock;
use self::layers::Layers;
use self::lvm::Lvm;
use self::memory::Memory;
use self::place::Place;
use self::protected_files::ProtectedFiles;
use self::rows::Rows;
use self::space::Space;
use crate::clock;
use crate::config::{Config, Expected};

/// Makes one kind of reading.
pub trait Probe: Send {
    /// Reads every object of the kind, once, and says how that ended.
    ///
    /// Blocks: it runs on a thread of its own.
    fn read(&mut self, batch: &mut Batch) -> Outcome;

    /// What it reads.
    fn kind(&self) -> ReadingKind;

    /// Adds what the last run read to the rows of the documents.
    fn document(&self, _rows: &mut Rows) {}

    /// Forgets what it compares with: a person says that what it found is over.
    fn forget(&mut self) {}

    /// How long a run may take before it is given up.
    fn deadline(&self) -> Duration {
        DEADLINE
    }
}

/// Returns every probe that this agent has.
#[must_use]
pub fn all(place: &Place, config: &Config) -> Vec<Box<dyn Probe>> {
    let root = || place.root.clone();
    let expects = |what| config.expect.contains(&what);
    let (nodes, gpu) = (&config.nodes_json, &config.gpu);
    let (age_max, expected) = (nodes.max_age, expects(Expected::NodesJson));
    let protected = config.protected.iter().map(|glob| glob.as_str().to_owned()).collect();
    let named = config.is_set("certificates");
    let files = ProtectedFiles::new(root(), protected, place.state_dir.join("baseline"));
    vec![
        Box::new(BootErrors::new(root())),
        Box::new(Certificates::new(root(), config.certificates.clone(), named, clock::wall)),
        Box::new(Drives::new(root())),
        Box::new(GpuFiles::new(
            root(),
            gpu.marker.clone(),
            gpu.cdi.clone(),
            expects(Expected::Gpu),
        )),
        Box::new(KernelClock),
        Box::new(Layers::new(root(), config.sealed_recorded.clone())),
        Box::new(Memory::new(root())),
        Box::new(if place.is_guest { files.as_guest() } else { files }),
        Box::new(RenewedFile::new(root(), nodes.path.clone(), age_max, expected, clock::wall)),
        Box::new(Space::new(
            FileSystems::new(root(), place.kubelet_dir.clone()),
            Lvm::new(root(), expects(Expected::Lvm)),
        )),
    ]
}

/// Long for anything local, short beside the shortest interval of the checks that use it.
const DEADLINE: Duration = Duration::from_secs(20);
