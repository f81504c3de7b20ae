//! The documents, from recorded rows.

use std::path::Path;

use fettle_core::node::reading::FileChange;
use fettle_core::node::report::Role;
use fettle_core::wire::smart::{HEALTH_BYTES, Health};
use serde_json::Value;

use super::*;
use crate::probe::layers::{Enforced, LayersReport};

#[test]
fn a_small_node_is_as_recorded() {
    let rows = small_node();
    let mut got = String::new();
    for document in Document::ALL {
        got.push_str(str::from_utf8(&rows.write(document, &HEADER)).unwrap());
        got.push('\n');
    }
    assert_eq!(got, include_str!("small-node.jsonl"));
}

#[test]
fn what_no_run_has_read_is_empty_or_unknown_and_valid() {
    for document in Document::ALL {
        let value = value(&Rows::default(), document);
        assert_eq!(value["omitted"], 0, "{document:?}");
    }
    let tamper = value(&Rows::default(), Document::Tamper);
    assert!(tamper["tamper"]["protectedFiles"].is_null() && tamper["tamper"]["layers"].is_null());
}

#[test]
fn what_is_left_out_is_what_matters_least() {
    let row = |n: u32| file_systems::FileSystemRow {
        mount_point: format!("/m{n}"),
        fs_type: "ext4".to_owned(),
        used_pct_hundredths: Some(n),
        error: (n == 3).then(|| "timed out".to_owned()),
        ..file_systems::FileSystemRow::default()
    };
    let rows = Rows { file_systems: Some((0..10_000).map(row).collect()), ..Rows::default() };
    let storage = value(&rows, Document::Storage);
    let systems = storage["filesystems"].as_array().unwrap();
    assert_eq!(systems[0]["mountPoint"], "/m3", "the one that could not be read");
    assert_eq!(systems[1]["usedPct"], 99.99);
    let omitted = usize::try_from(storage["omitted"].as_u64().unwrap()).unwrap();
    assert_eq!(systems.len() + omitted, 10_000);
    assert!(omitted > 9000);
}

#[test]
fn groups_stand_by_their_fullest_pool_that_is_in_use() {
    let pool = |name: &str, active, data_pct_hundredths| Pool {
        name: name.to_owned(),
        active,
        size_bytes: None,
        data_pct_hundredths,
        metadata_pct_hundredths: data_pct_hundredths,
    };
    let group = |name: &str, pools: Vec<Pool>, error: Option<&str>| Group {
        name: name.to_owned(),
        size_bytes: Some(9),
        free_bytes: Some(0),
        pools,
        error: error.map(str::to_owned),
    };
    let groups = vec![
        group("idle", vec![pool("p", false, None)], None),
        group("full", vec![pool("low", true, Some(1)), pool("high", true, Some(9))], None),
        group("strange", vec![pool("p", true, None)], None),
        group("LVM", Vec::new(), Some("vgs failed")),
    ];
    let storage =
        value(&Rows { volume_groups: Some(groups), ..Rows::default() }, Document::Storage);
    let rows = storage["volumeGroups"].as_array().unwrap();
    let names: Vec<_> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["LVM", "strange", "full", "idle"]);
    assert_eq!(rows[2]["thinPools"][0]["name"], "high");
    assert!(rows[0]["thinPools"].is_null());
}

#[test]
fn broken_disks_come_before_hot_ones_and_those_before_worn_ones() {
    let drive = |name: &str, warnings: u8, celsius: u8, used_pct: u8| DriveRow {
        name: name.to_owned(),
        health: Some(health(warnings, celsius, used_pct)),
        temperature_limit_celsius: Some(70),
        ..DriveRow::default()
    };
    let lost = DriveRow {
        name: "lost".to_owned(),
        error: Some("refused".to_owned()),
        ..DriveRow::default()
    };
    let drives = vec![
        drive("new", 0, 40, 1),
        drive("worn", 0, 40, 99),
        drive("hot", 0, 70, 2),
        drive("warns", 4, 40, 0),
        lost,
    ];
    let disks = value(&Rows { drives: Some(drives), ..Rows::default() }, Document::Disks);
    let rows = disks["disks"].as_array().unwrap();
    let names: Vec<_> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["lost", "warns", "hot", "worn", "new"]);
}

#[test]
fn a_layer_that_nothing_is_recorded_for_neither_matches_nor_differs() {
    let layer = |name: &str, recorded: Option<&str>, hash: Option<&str>| layers::LayerRow {
        name: name.to_owned(),
        enforced: hash.map(|hash| Enforced { hash: hash.to_owned(), ..Enforced::default() }),
        recorded: recorded.map(str::to_owned),
    };
    let layers = vec![
        layer("good", Some("AA"), Some("aa")),
        layer("none", None, Some("aa")),
        layer("swapped", Some("ab"), Some("aa")),
        layer("gone", Some("aa"), None),
    ];
    let layers = Some(LayersReport { layers: Some(layers), error: None });
    let tamper = value(&Rows { layers, ..Rows::default() }, Document::Tamper);
    let rows = tamper["tamper"]["layers"].as_array().unwrap();
    let got: Vec<_> =
        rows.iter().map(|row| (row["name"].clone(), row["matches"].clone())).collect();
    let unknown = Value::Null;
    let want = [
        ("none", unknown.clone()),
        ("swapped", false.into()),
        ("gone", unknown),
        ("good", true.into()),
    ];
    assert_eq!(got, want.map(|(name, matches)| (name.into(), matches)));
}

fn value(rows: &Rows, document: Document) -> Value {
    serde_json::from_slice(&rows.write(document, &HEADER)).unwrap()
}

fn small_node() -> Rows {
    let text = str::to_owned;
    let root = file_systems::FileSystemRow {
        mount_point: text("/"),
        device: text("/dev/nvme0n1p3"),
        fs_type: text("ext4"),
        size_bytes: Some(100 << 30),
        used_bytes: Some(60 << 30),
        used_pct_hundredths: Some(63_15),
        inodes: Some(6_553_600),
        inodes_used: Some(655_360),
        inodes_used_pct_hundredths: Some(10_00),
        read_only: false,
        error: None,
    };
    let boot = file_systems::FileSystemRow {
        mount_point: text("/boot/efi"),
        device: text("/dev/nvme0n1p1"),
        fs_type: text("vfat"),
        used_pct_hundredths: Some(90_00),
        inodes_used_pct_hundredths: None,
        ..root.clone()
    };
    let pool = Pool {
        name: text("pool0"),
        active: true,
        size_bytes: Some(10),
        data_pct_hundredths: Some(85_07),
        metadata_pct_hundredths: Some(10_50),
    };
    let group = Group {
        name: text("data"),
        size_bytes: Some(100),
        free_bytes: Some(50),
        pools: vec![pool],
        error: None,
    };
    let drive = DriveRow {
        name: text("nvme0"),
        model: Some(text("Model \u{202e}1")),
        serial: Some(text("S1")),
        firmware: Some(text("F1")),
        size_bytes: Some(1 << 40),
        health: Some(health(4, 50, 3)),
        temperature_limit_celsius: Some(70),
        error: None,
    };
    let broken = certificates::CertRow {
        path: text("/etc/kubernetes/pki/broken.crt"),
        error: Some(text("the block has no end")),
        ..certificates::CertRow::default()
    };
    Rows {
        certificates: Some(vec![cert("/late.pem", 300), cert("/soon.pem", 6), broken]),
        drives: Some(vec![drive]),
        file_systems: Some(vec![root, boot]),
        layers: Some(layers()),
        protected: Some(ProtectedReport {
            baseline_at: Some(Timestamp::from_unix_secs(NOW_S - 3600)),
            files: 3,
            changes: vec![
                (text("/etc/kubernetes/manifests/new.yaml"), FileChange::Added),
                (text("/var/lib/kubelet/config.yaml"), FileChange::Changed),
            ],
            error: None,
        }),
        volume_groups: Some(vec![group]),
    }
}

fn layers() -> LayersReport {
    let root = layers::LayerRow {
        name: "root".to_owned(),
        enforced: Some(Enforced {
            device: "dm-0".to_owned(),
            mode: Some("panic_on_corruption".to_owned()),
            hash: "aa".to_owned(),
            corrupted: false,
            makes_sense: true,
        }),
        recorded: Some("aa".to_owned()),
    };
    LayersReport { layers: Some(vec![root]), error: None }
}

/// Returns a certificate for a year that has so many days left.
fn cert(path: &str, left_days: i64) -> certificates::CertRow {
    let not_after_s = NOW_S + left_days * DAY_S;
    certificates::CertRow {
        path: Path::new("/etc").join(path.trim_start_matches('/')).display().to_string(),
        target: None,
        subject: Some("CN=a".to_owned()),
        issuer: Some("CN=ca".to_owned()),
        serial: Some("01".to_owned()),
        not_before: Some(Timestamp::from_unix_secs(not_after_s - 365 * DAY_S)),
        not_after: Some(Timestamp::from_unix_secs(not_after_s)),
        error: None,
    }
}

fn health(warnings: u8, celsius: u8, used_pct: u8) -> Health {
    let mut page = [0; HEALTH_BYTES];
    page[0] = warnings;
    page[1..3].copy_from_slice(&(273 + u16::from(celsius)).to_le_bytes());
    page[3..6].copy_from_slice(&[100, 10, used_pct]);
    page[128] = 7; // power-on hours
    Health::parse(&page).unwrap()
}

const NOW_S: i64 = 1_796_073_687;

const DAY_S: i64 = 24 * 3600;

const HEADER: Header = Header { updated_at: Timestamp::from_unix_secs(NOW_S), role: Role::Worker };
