//! Reads the sealed layers: what dm-verity enforces, against what was recorded.

use std::collections::BTreeMap;
use std::path::PathBuf;

use fettle_core::catalog::ReadingKind;
use fettle_core::node::checks::Outcome;
use fettle_core::node::reading::{Layer, Reading};
use fettle_core::wire::dm::{VerityStatus, VerityTable};
use serde::Deserialize;

use crate::errors::chain;
use crate::probe::Probe;
use crate::probe::batch::{Batch, failed};
use crate::probe::rows::Rows;
use crate::sys::dm::{Control, Device, DmError};
use crate::sys::file;

/// The probe of `SealedOSTampered`, and of what the device mapper knows of `VerityCorruption`.
#[derive(Debug)]
pub struct Layers {
    root: PathBuf,
    recorded: PathBuf,
    report: LayersReport,
}

/// How the sealed layers stand, for the report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LayersReport {
    /// The layers, if it is known which there are.
    pub layers: Option<Vec<LayerRow>>,
    /// Why something could not be read.
    pub error: Option<String>,
}

/// A sealed layer, for the report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LayerRow {
    /// Its name.
    pub name: String,
    /// What the kernel enforces for it, if it does.
    pub enforced: Option<Enforced>,
    /// The root hash that was recorded when the node was provisioned.
    pub recorded: Option<String>,
}

/// The record that was written when the node was provisioned.
#[derive(Debug, Deserialize)]
struct Record {
    layers: Vec<RecordedLayer>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RecordedLayer {
    name: String,
    root_hash: String,
}

/// What the kernel enforces for one layer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Enforced {
    /// Its device, such as `dm-0`.
    pub device: String,
    /// What the kernel does on corruption, if that could be read.
    pub mode: Option<String>,
    /// The root hash.
    pub hash: String,
    /// Whether a block has failed its check.
    pub corrupted: bool,
    /// Whether the kernel's table and status could be read: if not, nobody can tell.
    pub makes_sense: bool,
}

impl Layers {
    /// Reads the layers of the node below `root`, against the record at `recorded`.
    #[must_use]
    pub fn new(root: PathBuf, recorded: PathBuf) -> Self {
        Self { root, recorded, report: LayersReport::default() }
    }

    fn recorded(&self) -> Result<BTreeMap<String, String>, String> {
        let mut hashes = self.of_command_line();
        let path = file::below(&self.root, &self.recorded);
        let bytes = file::read(&path, RECORD_BYTES)
            .map_err(|problem| format!("cannot read {}: {problem}", self.recorded.display()))?;
        if let Some(bytes) = bytes {
            let record: Record = serde_json::from_slice(&bytes)
                .map_err(|problem| format!("{}: {problem}", self.recorded.display()))?;
            hashes.extend(record.layers.into_iter().map(|layer| (layer.name, layer.root_hash)));
        }
        Ok(hashes)
    }

    /// The boot loader may say the root's hash: `roothash=` or `systemd.verity_root_hash=`.
    fn of_command_line(&self) -> BTreeMap<String, String> {
        let line = file::line(&self.root.join("proc/cmdline")).unwrap_or_default();
        let hash = line.split_ascii_whitespace().find_map(|word| {
            word.strip_prefix("roothash=")
                .or_else(|| word.strip_prefix("systemd.verity_root_hash="))
        });
        hash.map(|hash| (ROOT_LAYER.to_owned(), hash.to_owned())).into_iter().collect()
    }
}

impl Probe for Layers {
    fn read(&mut self, batch: &mut Batch) -> Outcome {
        self.report = LayersReport { layers: Some(Vec::new()), error: None };
        let control = match Control::open(&self.root) {
            Ok(control) => control,
            Err(problem) => return failed(&format!("cannot ask the device mapper: {problem}")),
        };
        let recorded = match self.recorded() {
            Ok(recorded) => recorded,
            Err(why) => return failed(&why),
        };
        let enforced = match control.map(|control| enforced(&control)).transpose() {
            Ok(enforced) => enforced.unwrap_or_default(),
            Err(problem) => return failed(&chain(&problem)),
        };
        if enforced.is_empty() && recorded.is_empty() {
            return Outcome::NotApplicable;
        }
        self.report = push(batch, enforced, recorded);
        Outcome::Complete
    }

    fn document(&self, rows: &mut Rows) {
        rows.layers = Some(self.report.clone());
    }

    fn kind(&self) -> ReadingKind {
        ReadingKind::SealedLayers
    }
}

/// Appends the readings of a run.
fn push(
    batch: &mut Batch,
    enforced: BTreeMap<String, Enforced>,
    mut recorded: BTreeMap<String, String>,
) -> LayersReport {
    let mut layers = Vec::new();
    let mut error = None;
    for (name, layer) in enforced {
        let recorded = recorded.remove(&name);
        if layer.makes_sense {
            batch.push(&Reading::Layer(Layer {
                name: &name,
                enforced: &layer.hash,
                recorded: recorded.as_deref(),
                corrupted: layer.corrupted,
            }));
        } else {
            batch.push_unreadable(&name, NO_SENSE);
            error.get_or_insert_with(|| format!("{name}: {NO_SENSE}"));
        }
        layers.push(LayerRow { name, enforced: Some(layer), recorded });
    }
    for (name, hash) in recorded {
        batch.push_unreadable(&name, NOT_ENFORCED);
        error.get_or_insert_with(|| format!("{name}: {NOT_ENFORCED}"));
        layers.push(LayerRow { name, enforced: None, recorded: Some(hash) });
    }
    LayersReport { layers: Some(layers), error }
}

fn enforced(control: &Control) -> Result<BTreeMap<String, Enforced>, DmError> {
    let mut layers = BTreeMap::new();
    for device in control.devices()? {
        if let Some(layer) = verity(control, &device)? {
            layers.insert(device.name, layer);
        }
    }
    Ok(layers)
}

/// Returns what a device enforces, if it is a dm-verity device.
fn verity(control: &Control, device: &Device) -> Result<Option<Enforced>, DmError> {
    let status = control.status(device)?;
    let Some(status) = status.iter().find(|target| target.kind == VERITY) else {
        return Ok(None);
    };
    let status = VerityStatus::parse(&status.parameters).ok();
    let targets = control.table(device, VERITY)?;
    let table = targets.first().and_then(|target| VerityTable::parse(&target.parameters).ok());
    Ok(Some(Enforced {
        device: format!("dm-{}", device.numbers.1),
        mode: table.as_ref().map(|table| mode(table.options)),
        makes_sense: status.is_some() && table.is_some(),
        hash: table.map(|table| file::shown(table.root_digest)).unwrap_or_default(),
        corrupted: status.is_some_and(|status| !status.good),
    }))
}

/// Returns what the kernel does on corruption: the option that says so, or `eio`, as the kernel
/// calls what it does without one (`enum verity_mode` in `drivers/md/dm-verity.h`).
fn mode(options: &[u8]) -> String {
    let mut words = options.split(|byte| *byte == b' ');
    let mode = words.find(|word| word.ends_with(b"_corruption"));
    mode.map_or_else(|| "eio".to_owned(), file::shown)
}

const NOT_ENFORCED: &str = "a root hash is recorded, but no dm-verity device enforces it";

const VERITY: &str = "verity";

const NO_SENSE: &str = "what the device mapper says of it makes no sense";

/// The layer that the kernel command line speaks of.
const ROOT_LAYER: &str = "root";

/// Longest record: some dozens of layers.
const RECORD_BYTES: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_node_without_layers_and_records_has_nothing_to_check() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(probe(&root).read(&mut Batch::default()), Outcome::NotApplicable);
    }

    #[test]
    fn records_come_from_the_file_and_from_the_command_line() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("proc")).unwrap();
        fs::write(root.path().join("proc/cmdline"), "quiet roothash=aa rw\n").unwrap();
        fs::create_dir_all(root.path().join("var/lib/syself")).unwrap();
        let record = r#"{"layers":[{"name":"usr","rootHash":"bb"}]}"#;
        fs::write(root.path().join("var/lib/syself/sealed.json"), record).unwrap();
        let recorded = probe(&root).recorded().unwrap();
        let want = [("root", "aa"), ("usr", "bb")].map(|(n, h)| (n.to_owned(), h.to_owned()));
        assert_eq!(recorded, BTreeMap::from(want));
        // This kernel enforces neither: nobody can tell.
        let mut batch = Batch::default();
        assert_eq!(probe(&root).read(&mut batch), Outcome::Complete);
        assert_eq!(batch.readings().filter(|r| matches!(r, Reading::Unreadable(_))).count(), 2);
    }

    #[test]
    fn a_record_that_does_not_parse_says_where() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("var/lib/syself")).unwrap();
        fs::write(root.path().join("var/lib/syself/sealed.json"), r#"{"layers":[{"#).unwrap();
        let Outcome::Failed { why } = probe(&root).read(&mut Batch::default()) else {
            panic!("a half-written record is no record");
        };
        assert!(why.as_str().contains("line 1 column"), "{why}");
    }

    #[test]
    fn what_is_enforced_stands_against_what_is_recorded() {
        let enforced = |hash: &str, corrupted| Enforced {
            hash: hash.to_owned(),
            corrupted,
            makes_sense: true,
            ..Enforced::default()
        };
        let layers = BTreeMap::from([
            ("root".to_owned(), enforced("aa", false)),
            ("usr".to_owned(), enforced("cc", true)),
        ]);
        let recorded = BTreeMap::from([("usr".to_owned(), "bb".to_owned())]);
        let mut batch = Batch::default();
        let report = push(&mut batch, layers, recorded);
        assert_eq!((report.layers.unwrap().len(), report.error), (2, None));
        let readings: Vec<_> = batch.readings().collect();
        let [Reading::Layer(root), Reading::Layer(usr)] = readings[..] else {
            panic!("{readings:?}");
        };
        assert_eq!((root.recorded, root.corrupted), (None, false));
        assert_eq!((usr.enforced, usr.recorded, usr.corrupted), ("cc", Some("bb"), true));
    }

    #[test]
    fn the_mode_is_an_option_or_what_the_kernel_does_without_one() {
        for (options, want) in [
            (&b""[..], "eio"),
            (b"1 panic_on_corruption", "panic_on_corruption"),
            (b"2 ignore_zero_blocks restart_on_corruption", "restart_on_corruption"),
            (b"3 root_hash_sig_key_desc ignore_corruption x", "ignore_corruption"),
        ] {
            assert_eq!(mode(options), want);
        }
    }

    fn probe(root: &tempfile::TempDir) -> Layers {
        let recorded = PathBuf::from("/var/lib/syself/sealed.json");
        Layers::new(root.path().to_owned(), recorded)
    }
}
