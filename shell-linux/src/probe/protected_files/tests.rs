//! Tests of the probe on trees of files: what is told of each thing that can be done to a file.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::Path;

use super::*;

#[test]
fn what_is_done_to_a_file_is_told_until_it_is_undone() {
    type Act = fn(&Node);
    let cases: [(&str, Act, &str, Act); 10] = [
        ("add", |n| n.write("d/new", "x"), "+/d/new", |n| n.remove("d/new")),
        ("add hidden", |n| n.write("d/.n", "x"), "+/d/.n", |n| n.remove("d/.n")),
        ("write", |n| n.write("d/a", "two"), "~/d/a", |n| n.write("d/a", "one")),
        ("grow", |n| n.write("d/a", "longer"), "~/d/a", |n| n.write("d/a", "one")),
        ("mode", |n| n.mode("d/a", 0o4755), "~/d/a", |n| n.mode("d/a", 0o644)),
        ("folder's mode", |n| n.mode("d/e", 0o777), "~/d/e", |n| n.mode("d/e", 0o755)),
        ("rename", |n| n.rename("d/a", "d/b"), "-/d/a +/d/b", |n| n.rename("d/b", "d/a")),
        (
            "rename away",
            |n| n.rename("d", "away"),
            "-/d/a -/d/e -/d/e/deep -/d/link",
            |n| {
                n.rename("away", "d");
            },
        ),
        ("remove", |n| n.remove("d/e/deep"), "-/d/e/deep", |n| n.write("d/e/deep", "deep")),
        ("link", |n| n.link("other", "d/link"), "~/d/link", |n| n.link("target", "d/link")),
    ];
    let node = Node::new();
    let mut probe = node.probe("b1");
    assert_eq!(node.read(&mut probe), "");
    for (name, act, want, revert) in cases {
        act(&node);
        assert_eq!(node.read(&mut probe), want, "{name}");
        assert_eq!(node.read(&mut probe), want, "{name}, again");
        revert(&node);
        assert_eq!(node.read(&mut probe), "", "{name} reverted");
    }
}

#[test]
fn another_owner_is_a_change() {
    let node = Node::new();
    let mut probe = node.probe("b1");
    node.read(&mut probe);
    if chown(node.at("d/a"), Some(12_345), None).is_err() {
        // Only root may give files away; the comparison of owners is the same as that of modes.
        return;
    }
    assert_eq!(node.read(&mut probe), "~/d/a");
}

#[test]
fn a_link_in_the_place_of_a_file_is_a_change_and_is_not_followed() {
    let node = Node::new();
    let mut probe = node.probe("b1");
    node.read(&mut probe);
    fs::rename(node.at("d/a"), node.at("same")).unwrap();
    symlink("../same", node.at("d/a")).unwrap();
    assert_eq!(node.read(&mut probe), "~/d/a");
    fs::rename(node.at("d/e"), node.at("elsewhere")).unwrap();
    symlink("../elsewhere", node.at("d/e")).unwrap();
    assert_eq!(node.read(&mut probe), "~/d/a ~/d/e -/d/e/deep");
}

#[test]
fn a_pattern_that_leads_through_a_link_is_unknown() {
    let node = Node::new();
    symlink("d", node.at("linked")).unwrap();
    let mut probe = node.probe_of(&["/linked/*", "/d/**", "no/root"], "b1");
    let said = node.read(&mut probe);
    assert!(said.contains("?/linked: it is a link, which is not followed"), "{said}");
    assert!(said.contains("?no/root: it is no pattern"), "{said}");
}

#[test]
fn a_restart_keeps_the_baseline_and_another_boot_does_not() {
    let node = Node::new();
    node.read(&mut node.probe("b1"));
    node.write("d/a", "two");
    assert_eq!(node.read(&mut node.probe("b1")), "~/d/a", "while no agent ran");
    assert_eq!(node.read(&mut node.probe("b2")), "");
    node.write("d/a", "one");
    assert_eq!(node.read(&mut node.probe("b2")), "~/d/a");
    let mut probe = node.probe("b2");
    assert_eq!(node.read(&mut probe), "~/d/a");
    probe.forget_baseline();
    assert_eq!(node.read(&mut probe), "");
    assert_eq!(node.read(&mut node.probe("b2")), "", "the new one was kept");
}

#[test]
fn a_damaged_baseline_is_no_fresh_start() {
    let node = Node::new();
    node.read(&mut node.probe("b1"));
    fs::write(node.state(), "garbage").unwrap();
    let mut probe = node.probe("b1");
    for _ in 0..2 {
        let outcome = probe.read(&mut Batch::default());
        assert!(matches!(outcome, Outcome::Failed { .. }), "{outcome:?}");
    }
    probe.forget_baseline();
    assert_eq!(node.read(&mut probe), "");
}

#[test]
fn nothing_to_protect_is_not_applicable_until_there_is_something() {
    let node = Node::new();
    let mut probe = node.probe_of(&["/absent/**", "/d/absent"], "b1");
    assert_eq!(probe.read(&mut Batch::default()), Outcome::NotApplicable);
    assert!(!node.state().exists());
    node.write("d/absent", "it joined a cluster");
    assert_eq!(node.read(&mut probe), "");
    node.remove("d/absent");
    assert_eq!(node.read(&mut probe), "-/d/absent");
    fs::create_dir(node.at("absent")).unwrap();
    node.write("absent/x", "x");
    assert_eq!(node.read(&mut probe), "+/absent/x -/d/absent");
    let mut none = node.probe_of(&[], "b1");
    assert_eq!(none.read(&mut Batch::default()), Outcome::NotApplicable);
}

#[test]
fn another_set_of_patterns_is_no_change_of_files() {
    let node = Node::new();
    node.read(&mut node.probe_of(&["/d/a"], "b1"));
    node.write("d/a", "two");
    let mut probe = node.probe_of(&["/d/**", "/d/a"], "b1");
    assert_eq!(node.read(&mut probe), "~/d/a", "the others are taken as they are");
    node.write("d/e/deep", "two");
    assert_eq!(node.read(&mut node.probe_of(&["/d/**", "/d/a"], "b1")), "~/d/a ~/d/e/deep");
    assert_eq!(node.read(&mut node.probe_of(&["/d/e/*"], "b1")), "~/d/e/deep");
}

#[test]
fn an_idle_run_reads_nothing_and_a_touched_folder_is_read_again() {
    let node = Node::new();
    let mut probe = node.probe("b1");
    let mut hashed = || {
        let root = walk::open_root(&node.root()).unwrap();
        probe.load().unwrap();
        let mut comparison = probe.compare(&root);
        probe.keep(&mut comparison);
        assert!(comparison.changes.is_empty() && comparison.problems.is_empty());
        comparison.hashed_bytes
    };
    assert_eq!([hashed(), hashed(), hashed()], [7, 0, 0]);
    node.write("d/new", "x");
    node.remove("d/new");
    assert_eq!([hashed(), hashed()], [3, 0], "one of two folders");
}

#[test]
fn hostile_names_survive() {
    let node = Node::new();
    let mut probe = node.probe("b1");
    let long = [b'n'; 255];
    let names: [&[u8]; 4] = [b"new\nline", b"\xff\xfe", b"\x1b[31m\"", &long];
    node.read(&mut probe);
    for name in names {
        let path = node.at("d").join(OsStr::from_bytes(name));
        fs::write(&path, "x").unwrap();
        assert!(node.read(&mut probe).starts_with("+/d/"), "{name:?}");
        probe.forget_baseline();
        assert_eq!(node.read(&mut probe), "");
        fs::write(&path, "y").unwrap();
        let said = node.read(&mut node.probe("b1"));
        assert!(said.starts_with("~/d/") && !said.contains(char::is_control), "{said}");
        fs::remove_file(path).unwrap();
        probe.forget_baseline();
        assert_eq!(node.read(&mut probe), "");
    }
}

#[test]
fn pipes_and_sockets_are_compared_but_not_opened() {
    let node = Node::new();
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, node.at("d/pipe"), kind, Mode::RUSR, 0).unwrap();
    let mut probe = node.probe("b1");
    assert_eq!(node.read(&mut probe), "");
    node.remove("d/pipe");
    node.write("d/pipe", "");
    assert_eq!(node.read(&mut probe), "~/d/pipe");
}

#[test]
fn more_files_than_can_be_kept_are_unknown_with_their_number() {
    let node = Node::new();
    for n in 0..FILES_MAX {
        node.write(&format!("d/f{n}"), "");
    }
    let mut probe = node.probe("b1");
    let said = node.read(&mut probe);
    assert!(said.starts_with("?protected files: 4 files more than the 4096"), "{said}");
    node.write("d/a", "two");
    let said = node.read(&mut node.probe("b1"));
    assert!(said.starts_with("~/d/a ?protected files: 4 files more"), "{said}");
}

#[test]
fn what_one_run_may_not_read_the_next_one_does() {
    let node = Node::new();
    let forty_mib = vec![0_u8; 40 << 20];
    fs::write(node.at("d/big1"), &forty_mib).unwrap();
    fs::write(node.at("d/big2"), &forty_mib).unwrap();
    let mut probe = node.probe("b1");
    let said = node.read(&mut probe);
    assert!(said.contains("1 files of 41943040 bytes were not read, as a run reads 64 MiB"));
    assert_eq!(node.read(&mut probe), "");
    fs::write(node.at("d/big1"), &forty_mib[1..]).unwrap();
    assert_eq!(node.read(&mut probe), "~/d/big1");
}

#[test]
fn a_folder_without_end_is_unknown_and_added() {
    let node = Node::new();
    let mut probe = node.probe("b1");
    node.read(&mut probe);
    for n in 0..=NAMES_MAX {
        node.write(&format!("d/e/{n}"), "");
    }
    let said = node.read(&mut probe);
    assert!(said.contains("+/d/e/1 ") && said.contains("more than 16384 names"), "{}", said.len());
}

#[test]
fn a_root_that_is_not_there_is_a_failure() {
    let node = Node::new();
    let store = Store::new(node.state(), "b1".to_owned());
    let globs = vec!["/d/**".to_owned()];
    let mut probe = ProtectedFiles::in_boot("/nonexistent".into(), globs, store);
    assert!(matches!(probe.read(&mut Batch::default()), Outcome::Failed { .. }));
}

/// A root with the folder `d`, in which everything is protected.
struct Node {
    folder: tempfile::TempDir,
}

impl Node {
    fn new() -> Self {
        let node = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir_all(node.at("d/e")).unwrap();
        node.mode("d/e", 0o755);
        node.write("d/a", "one");
        node.mode("d/a", 0o644);
        node.write("d/e/deep", "deep");
        node.link("target", "d/link");
        node
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("run/baseline")
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.at(path), text).unwrap();
    }

    fn remove(&self, path: &str) {
        fs::remove_file(self.at(path)).unwrap();
    }

    fn rename(&self, from: &str, to: &str) {
        fs::rename(self.at(from), self.at(to)).unwrap();
    }

    fn mode(&self, path: &str, mode: u32) {
        fs::set_permissions(self.at(path), Permissions::from_mode(mode)).unwrap();
    }

    fn link(&self, target: &str, path: &str) {
        let _ = fs::remove_file(self.at(path));
        symlink(Path::new(target), self.at(path)).unwrap();
    }

    fn probe(&self, boot_id: &str) -> ProtectedFiles {
        self.probe_of(&["/d/**"], boot_id)
    }

    fn probe_of(&self, globs: &[&str], boot_id: &str) -> ProtectedFiles {
        let globs = globs.iter().map(|glob| (*glob).to_owned()).collect();
        let store = Store::new(self.state(), boot_id.to_owned());
        ProtectedFiles::in_boot(self.root(), globs, store)
    }

    /// Returns what one run says: `+` added, `~` changed, `-` removed, `?` unknown.
    fn read(&self, probe: &mut ProtectedFiles) -> String {
        let mut batch = Batch::default();
        assert_eq!(probe.read(&mut batch), Outcome::Complete);
        let said = batch.readings().map(|reading| {
            if let Reading::Unreadable(no) = reading {
                return format!("?{}: {}", no.object, no.why);
            }
            let Reading::ProtectedFile(file) = reading else { panic!("{reading:?}") };
            let sign = match file.change {
                FileChange::Added => '+',
                FileChange::Changed => '~',
                FileChange::Removed => '-',
            };
            format!("{sign}{}", file.path)
        });
        said.collect::<Vec<_>>().join(" ")
    }
}
