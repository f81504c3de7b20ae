//! The alert rules, in the eyes of Prometheus.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{deployed, run};

#[test]
#[ignore = "needs promtool of the Debian package prometheus"]
fn promtool_accepts_every_rule() {
    let folder = tempfile::tempdir().expect("a directory");
    write_rules(folder.path());
    let (ok, said) = run(Command::new("promtool").current_dir(folder.path()).args([
        "check",
        "rules",
        "--lint=all",
        "--lint-fatal",
        "rules.json",
    ]));
    println!("{said}");
    assert!(ok, "{said}");
}

#[test]
#[ignore = "needs promtool of the Debian package prometheus"]
fn what_is_wrong_fires_and_what_is_well_does_not() {
    let folder = tempfile::tempdir().expect("a directory");
    write_rules(folder.path());
    fs::write(folder.path().join("tests.yaml"), include_str!("alerts.yaml")).expect("written");
    let (ok, said) = run(Command::new("promtool").current_dir(folder.path()).args([
        "test",
        "rules",
        "tests.yaml",
    ]));
    assert!(ok, "{said}");
}

/// Writes what stands below `spec` as Prometheus' own rule file; JSON is YAML.
fn write_rules(folder: &Path) {
    let path = deployed("components/prometheus-operator/alerts.yaml");
    let text = fs::read_to_string(path).expect("it can be read");
    let rule: Value = serde_saphyr::from_str(&text).expect("YAML");
    fs::write(folder.join("rules.json"), rule["spec"].to_string()).expect("written");
}
