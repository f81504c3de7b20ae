//! The command, on a tree that looks like a node and on a probe that hangs.

use core::time::Duration;
use std::fs;
use std::sync::mpsc;

use fettle_core::node::checks::Outcome;
use serde_json::Value;

use super::*;
use crate::probe::Probe;
use crate::probe::batch::Batch;

#[tokio::test]
async fn every_document_of_a_bare_node_stands_in_one_object() {
    let node = node();
    let printed: Value = serde_json::from_str(&print(&node, None, Format::Json).await).unwrap();
    let keys: Vec<_> = printed.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["certs", "disks", "services", "storage", "tamper"]);
    assert_eq!(printed["certs"]["certs"][0]["error"], "holds no certificate");
    assert_eq!(printed["certs"]["role"], "controlplane");
    assert_eq!(printed["disks"]["disks"][0]["name"], "nvme0");
    assert!(printed["disks"]["disks"][0]["error"].as_str().unwrap().contains("cannot open"));
    assert_eq!(printed["tamper"]["tamper"]["protectedFiles"], 1, "the manifest");
    assert_eq!(printed["services"]["services"], Value::Array(Vec::new()));
}

#[tokio::test]
async fn a_single_document_is_printed_as_it_is() {
    let node = node();
    let printed = print(&node, Some(Document::Disks), Format::Json).await;
    assert!(printed.starts_with(r#"{"updatedAt":""#) && printed.ends_with("\"omitted\":0}\n"));
    let table = print(&node, Some(Document::Disks), Format::Table).await;
    assert!(table.contains("\nDISK ") && table.contains("\nnvme0 "), "{table}");
}

#[tokio::test]
async fn a_probe_that_hangs_is_an_error_in_its_document_and_holds_nothing_up() {
    let (release, hang) = mpsc::channel();
    let runner = Runner::new(vec![Box::new(Hanging { hang })]);
    let rows = read(runner, &[ReadingKind::Disks, ReadingKind::Certificates]).await;
    let disks = rows.drives.unwrap();
    assert_eq!(disks[0].error.as_deref(), Some("the check did not come back in time"));
    let certs = rows.certificates.unwrap();
    assert_eq!(certs[0].error.as_deref(), Some("this agent cannot make such a reading"));
    drop(release);
}

async fn print(node: &tempfile::TempDir, document: Option<Document>, format: Format) -> String {
    let args = Args {
        document,
        config: None,
        place: PlaceArgs {
            host_root: node.path().to_owned(),
            state_dir: node.path().join("run/fettle"),
            kubelet_dir: "/var/lib/kubelet".into(),
        },
    };
    let mut out = Vec::new();
    run(&args, &Config::default(), &mut out, format).await.unwrap();
    String::from_utf8(out).unwrap()
}

/// Returns a tree with a drive that does not answer, a file that is no certificate, and an API
/// server.
fn node() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("sys/class/nvme/nvme0")).unwrap();
    for (path, content) in [
        ("etc/kubernetes/pki/ca.crt", "garbage"),
        ("etc/kubernetes/manifests/kube-apiserver.yaml", ""),
    ] {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    root
}

struct Hanging {
    hang: mpsc::Receiver<()>,
}

impl Probe for Hanging {
    fn read(&mut self, _: &mut Batch) -> Outcome {
        let _ = self.hang.recv();
        Outcome::Complete
    }

    fn kind(&self) -> ReadingKind {
        ReadingKind::Disks
    }

    fn deadline(&self) -> Duration {
        Duration::from_millis(50)
    }
}
