//! The probe of volume groups, on real files and recorded output.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use tempfile::TempDir;

use super::*;

#[test]
fn groups_and_active_pools_are_readings() {
    let node = Node::new(VGS_PRINTED, LVS_PRINTED);
    let mut lvm = node.lvm(false);
    let mut batch = Batch::default();
    assert_eq!(lvm.read(&mut batch).unwrap(), 5);
    assert_eq!(
        batch.readings().collect::<Vec<_>>(),
        [
            Reading::VolumeGroup(VolumeGroup {
                name: "data",
                size_bytes: 125_829_120,
                free_bytes: 88_080_384
            }),
            Reading::ThinPool(ThinPool {
                name: "data/pool0",
                data_pct_hundredths: 85_07,
                metadata_pct_hundredths: 10_50
            }),
            Reading::Unreadable(fettle_core::node::reading::Unreadable {
                object: "data/lost",
                why: "lvs does not say how full it is, although it is active"
            }),
            Reading::VolumeGroup(VolumeGroup { name: "root", size_bytes: 4096, free_bytes: 0 }),
            Reading::Unreadable(fettle_core::node::reading::Unreadable {
                object: "odd",
                why: "vgs does not say how large it is and what is free"
            }),
        ]
    );
    let pools: Vec<_> = lvm.groups()[0].pools.iter().map(|pool| pool.name.as_str()).collect();
    assert_eq!(pools, ["pool0", "idle", "lost"]);
}

#[test]
fn a_node_without_lvm_makes_no_reading_unless_it_should_have_some() {
    let (none, empty) = (Node::bare(), Node::new(r#"{"report":[{"vg":[]}]}"#, "unread"));
    for (node, expected, want) in [
        (&none, false, None),
        (&none, true, Some("there is no program vgs")),
        (&empty, false, None),
        (&empty, true, Some("there is no volume group")),
    ] {
        assert_eq!(why(&mut node.lvm(expected)).as_deref(), want);
    }
    for (expected, want) in
        [(false, None), (true, Some("the programs of another root are not run"))]
    {
        let mut lvm = Lvm::new(none.folder.path().to_owned(), expected);
        assert_eq!(why(&mut lvm).as_deref(), want);
    }
}

#[test]
fn groups_that_vanish_are_missed() {
    let node = Node::new(VGS_PRINTED, LVS_PRINTED);
    let mut lvm = node.lvm(false);
    lvm.read(&mut Batch::default()).unwrap();
    node.install("vgs", r#"{"report":[{"vg":[]}]}"#);
    assert_eq!(why(&mut lvm).as_deref(), Some("there is no volume group"));
    let [group] = lvm.groups() else { panic!("{:?}", lvm.groups()) };
    assert_eq!(group.error.as_deref(), Some("there is no volume group"));
}

#[test]
fn what_is_no_report_is_an_error() {
    for (vgs, lvs, want) in [
        ("", "", "vgs printed no report"),
        ("{", "", "vgs printed no report"),
        (r#"{"report":[{}]}"#, "", "vgs printed no report"),
        (r#"{"report":[]}"#, "", "vgs printed no report"),
        (r#"{"report":[{"vg":[{"vg_name":"a"}]}]}"#, "", "vgs printed no report"),
        (VGS_PRINTED, r#"{"report":[{"lv":[{}]}]}"#, "lvs printed no report"),
        (VGS_PRINTED, &"[".repeat(100_000), "lvs printed no report"),
    ] {
        let node = Node::new(vgs, lvs);
        let mut batch = Batch::default();
        let problem = chain(&node.lvm(false).read(&mut batch).unwrap_err());
        assert!(problem.starts_with(want), "{problem}");
        assert!(batch.is_empty());
    }
}

#[test]
fn a_program_that_fails_says_why() {
    let node = Node::new("", "");
    node.script("vgs", "echo '  P_global:aux: open failed: Permission denied' >&2; exit 5");
    let problem = chain(&node.lvm(false).read(&mut Batch::default()).unwrap_err());
    let want = "vgs failed: exit status: 5: P_global:aux: open failed: Permission denied";
    assert_eq!(problem, want);
}

#[test]
fn more_groups_than_are_kept_are_counted() {
    let row = |n: usize| format!(r#"{{"vg_name":"v{n}","vg_size":"1","vg_free":"1"}}"#);
    let rows = (0..GROUPS_MAX + 7).map(row).collect::<Vec<_>>().join(",");
    let node = Node::new(&format!(r#"{{"report":[{{"vg":[{rows}]}}]}}"#), LVS_PRINTED);
    let mut batch = Batch::default();
    let mut lvm = node.lvm(false);
    assert_eq!(lvm.read(&mut batch).unwrap(), GROUPS_MAX + 1);
    assert_eq!(lvm.groups().len(), GROUPS_MAX + 1);
    assert!(lvm.groups().last().unwrap().error.is_some());
    let last = batch.readings().last().unwrap();
    let Reading::Unreadable(unreadable) = last else { panic!("{last:?}") };
    assert_eq!(unreadable.why, "7 more volume groups or thin pools are not read");
}

#[test]
fn percentages_are_read_exactly() {
    for (text, want) in [
        ("0.00", Some(0)),
        ("12.34", Some(1234)),
        ("12.3", Some(1230)),
        ("100.00", Some(10_000)),
        ("7", Some(700)),
        ("", None),
        (".", None),
        ("-1.00", None),
        ("1.234", None),
        ("99999999999", None),
        ("42949673.00", None),
    ] {
        assert_eq!(hundredths(text), want, "{text}");
    }
}

fn why(lvm: &mut Lvm) -> Option<String> {
    let mut batch = Batch::default();
    let count = lvm.read(&mut batch).unwrap();
    assert_eq!(count, batch.readings().count());
    batch.readings().next().map(|reading| {
        let Reading::Unreadable(unreadable) = reading else { panic!("{reading:?}") };
        unreadable.why.to_owned()
    })
}

/// A folder of programs that print what real ones printed.
struct Node {
    folder: TempDir,
}

impl Node {
    fn bare() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn new(vgs: &str, lvs: &str) -> Self {
        let node = Self::bare();
        node.install("vgs", vgs);
        node.install("lvs", lvs);
        node
    }

    fn install(&self, name: &str, prints: &str) {
        let output = self.folder.path().join(format!("{name}.json"));
        fs::write(&output, format!("{prints}\n")).unwrap();
        self.script(name, &format!("while read -r line; do echo \"$line\"; done < {output:?}"));
    }

    /// Renames it into place: a file that is open for writing cannot be run.
    fn script(&self, name: &str, script: &str) {
        let new = self.folder.path().join("new");
        fs::write(&new, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(&new, self.folder.path().join(name)).unwrap();
    }

    fn lvm(&self, expected: bool) -> Lvm {
        let mut lvm = Lvm::new(PathBuf::from("/"), expected);
        lvm.folders = vec![self.folder.path().to_owned()];
        lvm
    }
}

/// `vgs` of LVM 2.03.16, with two more rows.
const VGS_PRINTED: &str = r#"  {
      "report": [
          {
              "vg": [
                  {"vg_name":"data", "vg_size":"125829120", "vg_free":"88080384"},
                  {"vg_name":"root", "vg_size":"4096", "vg_free":"0"},
                  {"vg_name":"odd", "vg_size":"", "vg_free":"0"}
              ]
          }
      ]
  }
"#;

/// `lvs` of LVM 2.03.16: `idle` is as it printed it, the others as `lvs(8)` says.
const LVS_PRINTED: &str = r#"  {
      "report": [
          {
              "lv": [
                  {"vg_name":"data", "lv_name":"pool0", "lv_attr":"twi-aotz--", "lv_size":"33554432", "data_percent":"85.07", "metadata_percent":"10.50"},
                  {"vg_name":"data", "lv_name":"idle", "lv_attr":"twi---tz--", "lv_size":"33554432", "data_percent":"", "metadata_percent":""},
                  {"vg_name":"data", "lv_name":"lost", "lv_attr":"twi-aotzF-", "lv_size":"33554432", "data_percent":"", "metadata_percent":""},
                  {"vg_name":"data", "lv_name":"plain", "lv_attr":"-wi-a-----", "lv_size":"4194304", "data_percent":"", "metadata_percent":""}
              ]
          }
      ]
  }
"#;
