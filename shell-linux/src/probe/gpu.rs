//! NVIDIA GPUs on the PCI bus, and what lets containers use them: a marker and CDI specs.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use fettle_core::catalog::ReadingKind;
use fettle_core::node::checks::Outcome;
use fettle_core::node::reading::{Gpus, Reading};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};

use crate::probe::Probe;
use crate::probe::batch::{Batch, failed};
use crate::sys::root::{Root, is_absent};

/// Reads how many GPUs there are, and whether containers can use them.
///
/// A node without a GPU has none of this. Once it had one, or where it should have one, it is a
/// fault that there is none.
#[derive(Debug)]
pub struct GpuFiles {
    root: Root,
    marker: PathBuf,
    cdi: Vec<PathBuf>,
    expected: bool,
}

impl GpuFiles {
    /// Reads the node below `root`: the activation `marker` and the folders of `cdi` specs;
    /// `expected` if the node should have a GPU.
    #[must_use]
    pub const fn new(root: PathBuf, marker: PathBuf, cdi: Vec<PathBuf>, expected: bool) -> Self {
        Self { root: Root::new(root), marker, cdi, expected }
    }

    /// Counts the GPUs on the bus; an error says why nobody can tell.
    fn count_gpus(&self, found: &mut Found<'_>) -> Result<u32, String> {
        let bus = Path::new("/sys/bus");
        // A node without a PCI bus has no GPU; one without sysfs may have some.
        self.root.kind(bus).map_err(|problem| format!("/sys/bus: {problem}"))?;
        let folder = bus.join("pci/devices");
        let names = match self.root.names(&folder, DEVICES_MAX) {
            Ok(names) => names,
            Err(problem) if is_absent(&problem) => return Ok(0),
            Err(problem) => return Err(format!("{}: {problem}", folder.display())),
        };
        if names.omitted > 0 {
            let omitted = names.omitted;
            found.unreadable(&folder, &format_args!("{omitted} more devices are not read"));
        }
        let mut count = 0;
        for name in names.kept {
            let device = folder.join(name);
            match self.is_gpu(&device) {
                Ok(is_gpu) => count += u32::from(is_gpu),
                Err(why) => found.unreadable(&device, &why),
            }
        }
        Ok(count)
    }

    fn is_gpu(&self, device: &Path) -> Result<bool, String> {
        if self.number(&device.join("vendor"))? != Some(NVIDIA) {
            return Ok(false);
        }
        let class = self.number(&device.join("class"))?;
        // The last byte is the programming interface.
        Ok(class.is_some_and(|class| CLASSES.contains(&(class >> 8))))
    }

    /// Reads a number such as `0x10de`; `None` if the device is gone meanwhile.
    fn number(&self, path: &Path) -> Result<Option<u32>, String> {
        let bytes = match self.root.read(path, SYSFS_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(problem) if is_absent(&problem) => return Ok(None),
            Err(problem) => return Err(format!("{}: {problem}", path.display())),
        };
        let digits = str::from_utf8(&bytes).ok().and_then(|text| text.trim().strip_prefix("0x"));
        let number = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        number.map(Some).ok_or_else(|| format!("{} holds no number", path.display()))
    }

    /// Counts the device nodes of every NVIDIA spec; `None` without a spec.
    fn count_nodes(&self, found: &mut Found<'_>) -> Option<u32> {
        let mut nodes = None;
        for path in self.specs(found) {
            match self.read_spec(&path) {
                Ok(Some(more)) => nodes = Some(nodes.unwrap_or(0_u32).saturating_add(more)),
                Ok(None) => {}
                Err(why) => found.unreadable(&path, &why),
            }
        }
        nodes
    }

    /// Returns the files that are specs by their names (CDI, "CDI JSON Specification").
    fn specs(&self, found: &mut Found<'_>) -> BTreeSet<PathBuf> {
        let mut specs = BTreeSet::new();
        for folder in &self.cdi {
            let names = match self.root.names(folder, NAMES_MAX) {
                Ok(names) => names,
                Err(problem) if is_absent(&problem) => continue,
                Err(problem) => {
                    found.unreadable(folder, &problem);
                    continue;
                }
            };
            let paths = names.kept.into_iter().map(|name| folder.join(name));
            let mut paths: Vec<_> = paths.filter(|path| Format::of(path).is_some()).collect();
            let over = paths.len().saturating_sub(SPECS_MAX);
            paths.truncate(SPECS_MAX);
            specs.extend(paths);
            let omitted = names.omitted.saturating_add(u64::try_from(over).unwrap_or(u64::MAX));
            if omitted > 0 {
                found.unreadable(folder, &format_args!("{omitted} more files are not read"));
            }
        }
        specs
    }

    /// Returns the number of device nodes in a spec, if it is of NVIDIA's GPUs.
    fn read_spec(&self, path: &Path) -> Result<Option<u32>, String> {
        let bytes = match self.root.read(path, SPEC_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(problem) if is_absent(&problem) && self.root.link(path).is_none() => {
                return Ok(None);
            }
            Err(problem) => return Err(problem.to_string()),
        };
        let spec = Format::of(path).unwrap_or(Format::Yaml).parse(&bytes);
        let spec = spec.map_err(|problem| format!("is no CDI spec: {problem}"))?;
        Ok(spec.is_of_gpus().then_some(spec.devices.unwrap_or_default().nodes))
    }
}

impl Probe for GpuFiles {
    fn read(&mut self, batch: &mut Batch) -> Outcome {
        let mut found = Found { batch, unreadable: 0 };
        let count = match self.count_gpus(&mut found) {
            Ok(count) => count,
            Err(why) => return failed(&why),
        };
        self.expected |= count > 0;
        if !self.expected {
            return if found.unreadable > 0 { Outcome::Complete } else { Outcome::NotApplicable };
        }
        if count == 0 && found.unreadable > 0 {
            return Outcome::Complete;
        }
        let marker = match self.root.kind(&self.marker) {
            Ok(_) => true,
            Err(problem) if is_absent(&problem) => false,
            Err(problem) => {
                found.unreadable(&self.marker, &problem);
                return Outcome::Complete;
            }
        };
        let before = found.unreadable;
        let cdi_device_nodes = self.count_nodes(&mut found);
        // What is missing may be in what could not be read; a missing marker is missing anyway.
        if marker && cdi_device_nodes.unwrap_or(0) == 0 && found.unreadable > before {
            return Outcome::Complete;
        }
        found.batch.push(&Reading::Gpus(Gpus { count, marker, cdi_device_nodes }));
        Outcome::Complete
    }

    fn kind(&self) -> ReadingKind {
        ReadingKind::GpuFiles
    }
}

/// What a run found that cannot be read.
struct Found<'a> {
    batch: &'a mut Batch,
    unreadable: u32,
}

impl Found<'_> {
    fn unreadable(&mut self, path: &Path, why: &dyn fmt::Display) {
        self.unreadable = self.unreadable.saturating_add(1);
        self.batch.push_unreadable(&path.to_string_lossy(), &why.to_string());
    }
}

/// The form of a spec.
#[derive(Debug, Clone, Copy)]
enum Format {
    Json,
    Yaml,
}

impl Format {
    fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "json" => Some(Self::Json),
            "yaml" => Some(Self::Yaml),
            _ => None,
        }
    }

    fn parse(self, bytes: &[u8]) -> Result<Spec, String> {
        match self {
            Self::Json => serde_json::from_slice(bytes).map_err(|problem| problem.to_string()),
            Self::Yaml => parse_yaml(bytes),
        }
    }
}

fn parse_yaml(bytes: &[u8]) -> Result<Spec, String> {
    let text = str::from_utf8(bytes).map_err(|problem| problem.to_string())?;
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            flow_nesting_limit: DEPTH_MAX,
            max_aliases: ALIASES_MAX,
            max_depth: DEPTH_MAX,
            max_events: 3 * NODES_MAX,
            max_nodes: NODES_MAX,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: NODES_MAX },
        with_snippet: false,
    };
    let spec = serde_saphyr::from_str_with_options(text, options);
    spec.map_err(|problem| problem.without_snippet().to_string())
}

/// The part of a CDI spec that matters here; keys that are not known are passed over.
#[derive(Debug, Deserialize)]
struct Spec {
    kind: String,
    devices: Option<Devices>,
}

/// What the devices of a spec have together: to keep each would take more than the file does.
#[derive(Debug, Default)]
struct Devices {
    nodes: u32,
}

#[derive(Debug, Deserialize)]
struct Device {
    #[serde(rename = "containerEdits")]
    edits: Option<Edits>,
}

#[derive(Debug, Deserialize)]
struct Edits {
    #[serde(rename = "deviceNodes")]
    nodes: Option<Vec<IgnoredAny>>,
}

impl Spec {
    /// A kind is a vendor and a class. NVIDIA's tools write `nvidia.com/gpu`, and the same class
    /// below vendors such as `k8s.device-plugin.nvidia.com`.
    fn is_of_gpus(&self) -> bool {
        let is_nvidia = |vendor: &str| vendor == "nvidia.com" || vendor.ends_with(".nvidia.com");
        let kind = self.kind.split_once('/');
        kind.is_some_and(|(vendor, class)| class == "gpu" && is_nvidia(vendor))
    }
}

impl Device {
    fn nodes(&self) -> u32 {
        let nodes = self.edits.as_ref().and_then(|edits| edits.nodes.as_ref());
        nodes.map_or(0, |nodes| u32::try_from(nodes.len()).unwrap_or(u32::MAX))
    }
}

impl<'de> Deserialize<'de> for Devices {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(DevicesVisitor)
    }
}

struct DevicesVisitor;

impl<'de> Visitor<'de> for DevicesVisitor {
    type Value = Devices;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of devices")
    }

    /// Counts the nodes of each device. Those of all devices together do not count: they are
    /// control nodes such as `/dev/nvidiactl`, of no use without a GPU's own.
    fn visit_seq<A: SeqAccess<'de>>(self, mut devices: A) -> Result<Devices, A::Error> {
        let mut nodes = 0_u32;
        while let Some(device) = devices.next_element::<Device>()? {
            nodes = nodes.saturating_add(device.nodes());
        }
        Ok(Devices { nodes })
    }
}

/// NVIDIA's vendor id (PCI ID Repository).
const NVIDIA: u32 = 0x10de;

/// VGA compatible controller, and 3D controller (PCI Code and ID Assignment, "Base Class 03h").
const CLASSES: [u32; 2] = [0x0300, 0x0302];

/// A few network cards with all their virtual functions make over a thousand.
const DEVICES_MAX: usize = 4096;

/// A file of sysfs says that it has one page, which has up to 64 KiB.
const SYSFS_BYTES_MAX: u64 = 64 * 1024;

/// Each driver and each claim of a pod writes a spec.
const SPECS_MAX: usize = 256;

/// Beside specs, drivers leave a few files of their own.
const NAMES_MAX: usize = 1024;

/// A spec of 8 GPUs, each in 7 parts, has some 100 KB.
const SPEC_BYTES_MAX: u64 = 1024 * 1024;

/// Ten times the nodes of the largest spec that was seen.
const NODES_MAX: usize = 100_000;

/// A spec is nested 7 deep. The parser calls itself for each level, on the small stack of a thread.
const DEPTH_MAX: usize = 12;

/// NVIDIA's tools write none.
const ALIASES_MAX: usize = 64;

#[cfg(test)]
mod tests;
