//! Probes: each makes one kind of reading, on a thread of its own where it may block.
//!
//! To add one: a file here with a [`Probe`], and its line in [`all`].

pub mod batch;
pub mod certificates;
pub mod clearings;
pub mod drives;
pub mod file_age;
pub mod gpu;
pub mod kernel_clock;
pub mod kernel_log;
pub mod layers;
pub mod lvm;
pub mod runner;

use core::time::Duration;
use std::path::Path;

use fettle_core::catalog::ReadingKind;
use fettle_core::node::checks::Outcome;

use self::batch::Batch;
use self::certificates::Certificates;
use self::drives::Drives;
use self::file_age::RenewedFile;
use self::gpu::GpuFiles;
use self::kernel_clock::KernelClock;
use self::layers::Layers;
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

    /// How long a run may take before it is given up.
    fn deadline(&self) -> Duration {
        DEADLINE
    }
}

/// Returns every probe that this agent has, for the node below `root`.
#[must_use]
pub fn all(root: &Path, config: &Config) -> Vec<Box<dyn Probe>> {
    let root = || root.to_owned();
    let expects = |what| config.expect.contains(&what);
    let (nodes, gpu) = (&config.nodes_json, &config.gpu);
    let (nodes_expected, gpu_expected) = (expects(Expected::NodesJson), expects(Expected::Gpu));
    let wanted = config.is_set("certificates");
    vec![
        Box::new(Certificates::new(root(), config.certificates.clone(), wanted, clock::wall)),
        Box::new(KernelClock),
        Box::new(Drives::new(root())),
        Box::new(RenewedFile::new(
            root(),
            nodes.path.clone(),
            nodes.max_age,
            nodes_expected,
            clock::wall,
        )),
        Box::new(GpuFiles::new(root(), gpu.marker.clone(), gpu.cdi.clone(), gpu_expected)),
        Box::new(Layers::new(root(), config.sealed_recorded.clone())),
    ]
}

/// Long for anything local, short beside the shortest interval of the checks that use it.
const DEADLINE: Duration = Duration::from_secs(20);
