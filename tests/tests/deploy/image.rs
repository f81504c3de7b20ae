//! The image, read by other means than those that wrote it, and run.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::read::GzDecoder;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::run;

#[test]
#[ignore = "needs the image"]
fn every_blob_is_what_its_digest_says_and_none_is_left_over() {
    let image = Image::open();
    let mut seen = Vec::new();
    let mut todo = vec![image.json("index.json")];
    while let Some(document) = todo.pop() {
        let lists = ["manifests", "layers"].map(|key| document[key].as_array().cloned());
        let config = document.get("config").filter(|config| config.get("digest").is_some());
        for descriptor in lists.into_iter().flatten().flatten().chain(config.cloned()) {
            let (path, bytes) = image.blob(&descriptor);
            assert_eq!(descriptor["size"], bytes.len(), "{descriptor}");
            assert_eq!(descriptor["digest"], digest(&bytes), "{descriptor}");
            if descriptor["mediaType"].as_str().is_some_and(|kind| kind.ends_with("+json")) {
                todo.push(serde_json::from_slice(&bytes).expect("JSON"));
            }
            seen.push(path);
        }
    }
    seen.sort();
    let folder = fs::read_dir(image.folder.join("blobs/sha256")).expect("a folder of blobs");
    let mut there: Vec<_> = folder.map(|entry| entry.expect("an entry").path()).collect();
    there.sort();
    assert_eq!(seen, there);
    assert_eq!(image.json("oci-layout")["imageLayoutVersion"], "1.0.0");
}

#[test]
#[ignore = "needs the image, and qemu-aarch64-static of the Debian package qemu-user-static"]
fn the_binary_of_each_platform_runs() {
    let emulators = BTreeMap::from([("amd64", None), ("arm64", Some("qemu-aarch64-static"))]);
    let image = Image::open();
    for (architecture, emulator) in emulators {
        let unpacked = image.unpack(architecture);
        let agent = unpacked.path().join("fettle-agent");
        let start = |arguments: &[&str]| {
            let mut command = emulator.map_or_else(
                || Command::new(&agent),
                |emulator| {
                    let mut command = Command::new(emulator);
                    command.arg(&agent);
                    command
                },
            );
            let (ok, said) = run(command.args(arguments));
            assert!(ok, "{architecture}, {arguments:?}: {said}");
            said
        };
        let version = format!("fettle-agent {}\n", env!("CARGO_PKG_VERSION"));
        assert_eq!(start(&["--version"]), version, "{architecture}");
        let catalog: Value =
            serde_json::from_str(&start(&["catalog", "-o", "json"])).expect("JSON");
        let conditions = catalog["conditions"].as_array().expect("a list").len();
        assert_eq!(conditions, fettle_core::catalog::CONDITIONS.len(), "{architecture}");
    }
}

#[test]
#[ignore = "needs the image"]
fn a_layer_is_one_static_program_that_root_owns() {
    let image = Image::open();
    for (architecture, machine) in [("amd64", 62), ("arm64", 183)] {
        let (config, archive) = image.platform(architecture);
        assert_eq!(config["rootfs"]["diff_ids"][0], digest(&archive), "{architecture}");
        assert_eq!(config["architecture"], architecture);
        assert_eq!(config["config"]["Entrypoint"][0], "/fettle-agent");
        assert_eq!(config["config"]["User"], "0:0");
        let mut archive = tar::Archive::new(archive.as_slice());
        let mut count = 0;
        for entry in archive.entries().expect("an archive") {
            count += 1;
            let mut entry = entry.expect("an entry");
            let header = entry.header();
            assert_eq!(entry.path().expect("a path"), Path::new("fettle-agent"));
            assert_eq!(header.entry_type(), tar::EntryType::Regular);
            assert_eq!(header.mode().expect("a mode"), 0o755);
            assert_eq!((header.uid().ok(), header.gid().ok()), (Some(0), Some(0)));
            assert_eq!(header.mtime().ok(), Some(0));
            let mut program = Vec::new();
            entry.read_to_end(&mut program).expect("its content");
            assert_eq!(program.get(..4), Some(&b"\x7fELF"[..]));
            assert_eq!(program.get(18).copied(), Some(machine), "{architecture}: e_machine");
            assert!(
                !program.windows(8).any(|bytes| bytes == b"/ld-musl"),
                "{architecture}: not static"
            );
        }
        assert_eq!(count, 1, "{architecture}");
    }
}

/// A folder in the OCI image layout.
pub(crate) struct Image {
    folder: PathBuf,
}

impl Image {
    pub(crate) fn open() -> Self {
        let folder = env::var_os("FETTLE_IMAGE").expect(
            "FETTLE_IMAGE is not set: run `cargo ci test`, or `cargo ci image` and name its folder",
        );
        Self { folder: folder.into() }
    }

    /// Unpacks the layer of a platform; the binary may be run.
    pub(crate) fn unpack(&self, architecture: &str) -> TempDir {
        let folder = tempfile::tempdir().expect("a directory");
        let (_, archive) = self.platform(architecture);
        tar::Archive::new(archive.as_slice()).unpack(folder.path()).expect("it unpacks");
        let mode = fs::metadata(folder.path().join("fettle-agent")).expect("it is there");
        assert_eq!(mode.permissions().mode() & 0o777, 0o755, "{architecture}");
        folder
    }

    /// Returns the configuration of a platform, and its only layer, not compressed.
    fn platform(&self, architecture: &str) -> (Value, Vec<u8>) {
        let (_, index) = self.blob(&self.json("index.json")["manifests"][0]);
        let index: Value = serde_json::from_slice(&index).expect("JSON");
        let is = |entry: &&Value| entry["platform"]["architecture"] == architecture;
        let manifest = index["manifests"].as_array().expect("a list").iter().find(is);
        let (_, manifest) = self.blob(manifest.expect("the platform"));
        let manifest: Value = serde_json::from_slice(&manifest).expect("JSON");
        assert_eq!(manifest["layers"].as_array().map(Vec::len), Some(1));
        let (_, config) = self.blob(&manifest["config"]);
        let (_, layer) = self.blob(&manifest["layers"][0]);
        let mut archive = Vec::new();
        GzDecoder::new(layer.as_slice()).read_to_end(&mut archive).expect("gzip");
        (serde_json::from_slice(&config).expect("JSON"), archive)
    }

    fn json(&self, name: &str) -> Value {
        let text = fs::read(self.folder.join(name)).expect("it is there: run `cargo ci image`");
        serde_json::from_slice(&text).expect("JSON")
    }

    fn blob(&self, descriptor: &Value) -> (PathBuf, Vec<u8>) {
        let digest = descriptor["digest"].as_str().expect("a digest");
        let path = self.folder.join("blobs").join(digest.replace(':', "/"));
        let bytes = fs::read(&path).unwrap_or_else(|problem| panic!("{digest}: {problem}"));
        (path, bytes)
    }
}

fn digest(bytes: &[u8]) -> String {
    let digits = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    format!("sha256:{digits}")
}
