//! Builds the shipped binary for each architecture, and packs it as one OCI image.
//!
//! Needs no container engine. The same binaries give the same digests: nothing of the day, of the
//! machine or of an order that may change is in the image.

mod layer;
mod layout;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use self::layer::Layer;
use self::layout::{Descriptor, Layout};
use crate::command;
use crate::stage::{Session, Stage};
use crate::tools::Need;
use crate::workspace::Workspace;
use crate::zig;

/// Tells the tests where the image is.
pub(crate) const IMAGE_VARIABLE: &str = "FETTLE_IMAGE";

/// The target of the machines that develop: what is measured is what is shipped.
pub(crate) const AMD64: &str = "x86_64-unknown-linux-musl";

/// The second target.
const ARM64: &str = "aarch64-unknown-linux-musl";

/// Each target, and what OCI calls its architecture.
const PLATFORMS: [(&str, &str); 2] = [(AMD64, "amd64"), (ARM64, "arm64")];

/// The name of the binary, of the only file in the image, and of the image.
const NAME: &str = "fettle-agent";

/// Of the beginning of Unix time, as every date in an image.
const CREATED: &str = "1970-01-01T00:00:00Z";

const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG_TYPE: &str = "application/vnd.oci.image.config.v1+json";
const LAYER_TYPE: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// Makes the stage `image`.
pub(crate) fn stage() -> Stage {
    let about = format!("the shipped binary for {AMD64} and {ARM64}, as an OCI layout");
    Stage::function("image", &about, |session| {
        let target = Workspace::load()?.target;
        command::run(&mut build(&PLATFORMS.map(|(target, _)| target))?)?;
        let rows = pack(&target)?;
        session.notes.push(format!("image: {}", folder(&target).display()));
        note(session, &rows);
        Ok(())
    })
    .needs(&needs())
    .advice("Mend the build; `cargo clean --profile dist` if a digest is not what it was.")
}

/// What a build of the shipped binary needs.
pub(crate) fn needs() -> Vec<Need> {
    let mut needs = vec![Need::Program("pip3"), Need::Zigbuild];
    needs.extend(PLATFORMS.map(|(target, _)| Need::Target(target)));
    needs
}

/// Returns the command that builds what is shipped for `targets`.
pub(crate) fn build(targets: &[&str]) -> Result<Command> {
    let mut build = zig::build(&format!("--profile dist -p {NAME} --locked"))?;
    for target in targets {
        build.args(["--target", target]);
    }
    Ok(build)
}

/// Returns the binary that is built for `triple` below the folder of all build output.
pub(crate) fn binary(target: &Path, triple: &str) -> PathBuf {
    target.join(triple).join("dist").join(NAME)
}

/// Returns the folder of the image's layout.
pub(crate) fn folder(target: &Path) -> PathBuf {
    target.join("image")
}

/// One line of the table: what it is, its size, its digest.
type Row = (String, u64, String);

/// Packs the binaries below `target`, and returns what to show of it.
fn pack(target: &Path) -> Result<Vec<Row>> {
    let layout = Layout::create(&folder(target))?;
    let (mut manifests, mut rows) = (Vec::new(), Vec::new());
    for (triple, architecture) in PLATFORMS {
        let path = binary(target, triple);
        let content = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let layer = Layer::of_one_file(NAME, &content)?;
        let config = layout.add(CONFIG_TYPE, &to_bytes(&config(architecture, &layer))?)?;
        let blob = layout.add(LAYER_TYPE, &layer.compressed)?;
        rows.push((format!("linux/{architecture} binary"), layout::size(&content), String::new()));
        rows.push((format!("linux/{architecture} layer"), blob.size, blob.digest.clone()));
        let manifest = layout.add(MANIFEST_TYPE, &to_bytes(&manifest(&config, &blob))?)?;
        rows.push((
            format!("linux/{architecture} manifest"),
            manifest.size,
            manifest.digest.clone(),
        ));
        let mut entry = manifest.to_json();
        entry["platform"] = json!({ "architecture": architecture, "os": "linux" });
        manifests.push(entry);
    }
    let index = layout.add(INDEX_TYPE, &to_bytes(&index(&manifests))?)?;
    rows.push(("index".to_owned(), index.size, index.digest.clone()));
    let mut entry = index.to_json();
    entry["annotations"] = json!({ "org.opencontainers.image.ref.name": version() });
    layout.finish(&to_bytes(&index_of_layout(entry))?)?;
    Ok(rows)
}

fn config(architecture: &str, layer: &Layer) -> Value {
    json!({
        "architecture": architecture,
        "os": "linux",
        "created": CREATED,
        "config": {
            // The kernel log, drives and protected files are root's alone.
            "User": "0:0",
            "Entrypoint": [format!("/{NAME}")],
            "Cmd": ["run"],
            // So that `kubectl exec ... -- fettle-agent clear CONDITION` finds it.
            "Env": ["PATH=/"],
            "WorkingDir": "/",
            "Labels": {
                "org.opencontainers.image.title": NAME,
                "org.opencontainers.image.description": "Fettle's node health agent",
                "org.opencontainers.image.licenses": "Apache-2.0",
                "org.opencontainers.image.version": version(),
            },
        },
        "rootfs": { "type": "layers", "diff_ids": [layer.diff_id] },
        "history": [{ "created": CREATED, "created_by": "cargo ci image" }],
    })
}

fn manifest(config: &Descriptor, layer: &Descriptor) -> Value {
    json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "config": config.to_json(),
        "layers": [layer.to_json()],
    })
}

fn index(manifests: &[Value]) -> Value {
    json!({ "schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": manifests })
}

/// A layout names one thing: the index over the platforms, under the version.
fn index_of_layout(entry: Value) -> Value {
    index(&[entry])
}

/// The workspace has one version.
const fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

fn to_bytes(value: &Value) -> Result<Vec<u8>> {
    serde_json::to_vec(value).context("cannot write JSON")
}

fn note(session: &mut Session, rows: &[Row]) {
    let name_width = rows.iter().map(|(name, ..)| name.len()).max().unwrap_or(0);
    let size_width = rows.iter().map(|(_, size, _)| size.to_string().len()).max().unwrap_or(0);
    for (name, size, digest) in rows {
        let row = format!("  {name:name_width$}  {size:>size_width$} bytes  {digest}");
        session.notes.push(row.trim_end().to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_binaries_make_the_same_image() {
        let images = [1, 2].map(|_| {
            let target = tempfile::tempdir().expect("a directory");
            for (triple, _) in PLATFORMS {
                let path = binary(target.path(), triple);
                fs::create_dir_all(path.parent().expect("it has one")).expect("made");
                fs::write(&path, triple.repeat(999)).expect("written");
            }
            let rows = pack(target.path()).expect("packed");
            // Again over the first: nothing of it stays.
            assert_eq!(pack(target.path()).expect("packed"), rows);
            let index = folder(target.path()).join("index.json");
            (rows, fs::read_to_string(index).expect("read"))
        });
        assert_eq!(images[0], images[1]);
        let digests: std::collections::BTreeSet<_> = images[0].0.iter().map(|row| &row.2).collect();
        // Two layers, two manifests, the index, and the binaries' empty ones.
        assert_eq!(digests.len(), 6);
    }
}
