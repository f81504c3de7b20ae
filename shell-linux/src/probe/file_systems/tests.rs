//! Tests of the probe: what it says of mounts that are full, nonsense, or do not answer.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Condvar, Mutex};

use super::asking::HUNG_MAX;
use super::*;

#[test]
fn a_mount_that_hangs_for_100_runs_has_one_thread_and_makes_no_other_late() {
    // H07, with a local mount.
    let node = Node::new(&["/bad", "/var", "/z"]);
    let mut probe = node.probe();
    for run in 0..100 {
        let started = clock::stamp().at;
        let readings = node.read(&mut probe);
        assert_eq!(readings.keys(), ["/bad", "/var", "/z"], "run {run}");
        assert!(readings.says("/bad", "statfs has not answered for"), "run {run}");
        assert!(readings.is_read("/var") && readings.is_read("/z"), "run {run}");
        assert!(run == 0 || clock::stamp().at.since(started) < SHORT, "run {run} waited again");
    }
    assert_eq!(node.gate.asked("/bad"), 1);
    assert_eq!(node.gate.threads(), 1);
    let error = probe.rows().iter().find(|row| row.mount_point == "/bad").unwrap();
    assert!(error.error.is_some() && error.size_bytes.is_none());
    node.gate.open();
}

#[test]
fn a_mount_that_comes_back_is_read_again_and_its_thread_ends() {
    let node = Node::new(&["/bad", "/var"]);
    let mut probe = node.probe();
    assert!(!node.read(&mut probe).is_read("/bad"));
    node.gate.open();
    let is_back = || node.read(&mut probe).is_read("/bad");
    assert!(until(is_back), "it answers, but is not asked");
    assert!(until(|| node.gate.threads() == 0));
}

#[test]
fn when_too_many_hang_only_the_good_ones_are_asked() {
    let node =
        Node::new(&["/bad1", "/bad2", "/bad3", "/bad4", "/bad5", "/bad6", "/var", "/good/behind"]);
    let mut probe = node.probe();
    let mut check = |run: usize| {
        let readings = node.read(&mut probe);
        assert!(readings.is_read("/var"), "run {run}");
        for object in ["/bad5", "/bad6", "/good/behind"] {
            assert!(readings.says(object, "not asked, because 4 mounts"), "run {run}: {object}");
        }
        assert_eq!(node.gate.threads(), HUNG_MAX);
    };
    (0..3).for_each(&mut check);
    node.gate.open();
    let all_back = || node.read(&mut probe).0.iter().all(|(_, why)| why.is_none());
    assert!(until(all_back), "they answer, but are not asked");
    assert!(until(|| node.gate.threads() == 0));
    node.gate.close();
    let mut check = |run: usize| {
        let readings = node.read(&mut probe);
        assert!(readings.is_read("/var"), "again, run {run}");
        assert!(node.gate.threads() <= HUNG_MAX, "again, run {run}");
    };
    (0..3).for_each(&mut check);
    node.gate.open();
}

#[test]
fn network_mounts_are_never_asked() {
    // H07
    let node = Node::new(&[]);
    node.write(
        "30 1 8:1 / /var rw - ext4 /dev/sda1 rw\n\
         31 1 0:50 / /bad rw - nfs4 server:/x rw\n",
    );
    let mut probe = node.probe();
    for _ in 0..100 {
        assert_eq!(node.read(&mut probe).keys(), ["/var"]);
    }
    assert_eq!(node.gate.asked("/bad"), 0);
}

#[test]
fn images_are_no_disks() {
    // H08
    let node = Node::new(&[]);
    node.write(
        "30 1 253:0 / / rw - squashfs /dev/dm-0 rw\n\
         31 1 253:1 / /usr rw - erofs /dev/dm-1 rw\n\
         32 1 11:0 / /mnt/cidata rw - iso9660 /dev/sr0 rw\n\
         33 1 8:1 / /var rw - ext4 /dev/sda1 rw\n",
    );
    let mut probe = node.probe();
    assert_eq!(node.read(&mut probe).keys(), ["/var"]);
    assert_eq!(probe.rows().len(), 1);
    node.write("30 1 253:0 / / ro - squashfs /dev/dm-0 ro\n");
    assert_eq!(probe.read(&mut Batch::default()), Outcome::NotApplicable);
}

#[test]
fn a_file_system_that_another_hides_is_neither_full_nor_fine() {
    let node = Node::new(&[]);
    // The device that `ask` reports there is the first; the second is reached by its other path.
    node.write(
        "30 1 8:1 / /a rw - ext4 /dev/sda1 rw\n\
         31 1 8:77 / /a rw - ext4 /dev/sdb rw\n\
         32 1 8:78 / /a rw - ext4 /dev/sdc rw\n\
         33 1 8:78 / /device78 rw - ext4 /dev/sdc rw\n\
         34 1 8:1 / /absent rw - ext4 /dev/sda1 rw\n",
    );
    let mut probe = node.probe();
    let mut batch = Batch::default();
    probe.read(&mut batch);
    let hidden = |reading: &Reading<'_>| matches!(reading, Reading::Unreadable(_));
    assert_eq!(batch.readings().filter(hidden).count(), 1);
    let errors: Vec<_> = probe.rows().iter().filter_map(|row| row.error.as_deref()).collect();
    assert_eq!(errors, ["another mount hides it"]);
}

#[test]
fn what_cannot_be_is_neither_full_nor_fine() {
    // size, free, available, inodes, free inodes, type: used, usable, inodes used, inodes
    for (size, free, available, inodes, inodes_free, kind, want) in [
        (100, 30, 20, 10, 4, "ext4", Some((70, 90, 6, 10))),
        (100, 30, 0, 0, 0, "vfat", Some((70, 70, 0, 0))),
        (100, 30, 30, 0, 9, "fuseblk", Some((70, 100, 0, 0))),
        (100, 30, 30, 10, 1, "zfs", Some((70, 100, 0, 0))),
        (100, 30, 30, 10, 1, "xfs", Some((70, 100, 9, 10))),
        (100, 0, 0, 10, 0, "ext4", Some((100, 100, 10, 10))),
        (100, 101, 20, 10, 4, "ext4", None),
        (100, 30, u64::MAX, 10, 4, "ext4", None),
        (0, 0, 0, 0, 0, "ext4", None),
        (100, 30, 20, 10, 11, "ext4", None),
    ] {
        let space = Space {
            size_bytes: size,
            free_bytes: free,
            available_bytes: available,
            inodes,
            inodes_free,
            ..ROOMY
        };
        let got = usage(&space, kind).ok();
        let got = got.map(|u| (u.used_bytes, u.usable_bytes, u.inodes_used, u.inodes));
        assert_eq!(got, want, "{space:?} {kind}");
    }
}

#[test]
fn names_that_the_core_would_cut_stay_apart() {
    let long = "/x".repeat(60);
    let names: BTreeSet<_> = [
        object(format!("{long}1").as_bytes(), (8, 1)),
        object(format!("{long}2").as_bytes(), (8, 2)),
        object(b"/\xff", (8, 3)),
        object(b"/\xfe", (8, 4)),
        object(b"/a\nb", (u32::MAX, u32::MAX)),
        object(b"/a b", (8, 5)),
    ]
    .into();
    assert_eq!(names.len(), 6);
    let kept = |name: &String| Text::<SUBJECT_MAX>::from_bytes(name.as_bytes());
    assert!(names.iter().all(|name| kept(name).as_str() == name), "{names:?}");
    assert!(names.contains("/a b"));
}

#[test]
fn ten_thousand_file_systems_are_all_read() {
    let points: Vec<String> = (0..10_000).map(|n| format!("/m/{n}")).collect();
    let node = Node::new(&points.iter().map(String::as_str).collect::<Vec<_>>());
    let mut probe = node.probe();
    let readings = node.read(&mut probe);
    assert_eq!(readings.0.iter().filter(|(_, why)| why.is_none()).count(), 10_000);
    assert_eq!(probe.rows().len(), 10_000);
}

#[test]
fn a_node_without_a_table_is_a_failure() {
    let mut probe = FileSystems::new(PathBuf::from("/nonexistent"), PathBuf::from("/k"));
    assert!(matches!(probe.read(&mut Batch::default()), Outcome::Failed { .. }));
}

#[test]
fn the_machine_that_runs_this_can_be_read() {
    let mut probe = FileSystems::new(PathBuf::from("/"), PathBuf::from("/var/lib/kubelet"));
    let outcome = probe.read(&mut Batch::default());
    assert!(!matches!(outcome, Outcome::Failed { .. }), "{outcome:?}");
    assert!(probe.rows().iter().all(|row| row.error.is_some() || row.size_bytes > Some(0)));
}

/// A node whose mount points with `bad` in their name answer only while the gate is open.
struct Node {
    folder: tempfile::TempDir,
    gate: Arc<Gate>,
}

impl Node {
    fn new(points: &[&str]) -> Self {
        let node = Self { folder: tempfile::tempdir().unwrap(), gate: Arc::default() };
        fs::create_dir_all(node.folder.path().join("proc/1")).unwrap();
        node.mount(points);
        node
    }

    fn mount(&self, points: &[&str]) {
        let line =
            |(n, point): (usize, &&str)| format!("{n} 1 8:{n} / {point} rw - ext4 /dev/sd{n} rw\n");
        self.write(&points.iter().enumerate().map(line).collect::<String>());
    }

    fn write(&self, table: &str) {
        fs::write(self.folder.path().join("proc/1/mountinfo"), table).unwrap();
        let mut state = self.gate.state.lock().unwrap();
        state.devices.clear();
        for fields in table.lines().map(|line| line.split(' ').collect::<Vec<_>>()) {
            let (major, minor) = fields[2].split_once(':').unwrap();
            let device = (major.parse().unwrap(), minor.parse().unwrap());
            state.devices.entry(fields[4].to_owned()).or_insert(device);
        }
    }

    fn probe(&self) -> FileSystems {
        let root = self.folder.path().to_owned();
        let (gate, below) = (Arc::clone(&self.gate), root.clone());
        let ask = move |path: &Path| {
            let path = Path::new("/").join(path.strip_prefix(&below).unwrap());
            let point = path.to_str().unwrap().to_owned();
            if point.contains("bad") {
                gate.pass(&point);
            }
            if point == "/absent" {
                return Err(Errno::NOENT);
            }
            Ok(Space { device: gate.state.lock().unwrap().devices[&point], ..ROOMY })
        };
        FileSystems::asking(root, PathBuf::from("/k"), Arc::new(ask), SHORT)
    }

    fn read(&self, probe: &mut FileSystems) -> Readings {
        let mut batch = Batch::default();
        assert_eq!(probe.read(&mut batch), Outcome::Complete);
        let mut readings: Vec<_> = batch
            .readings()
            .map(|reading| {
                let object = reading.object().to_owned();
                let Reading::Unreadable(no) = reading else { return (object, None) };
                (object, Some(no.why.to_owned()))
            })
            .collect();
        readings.sort();
        Readings(readings)
    }
}

/// Each object, and why it could not be read.
struct Readings(Vec<(String, Option<String>)>);

impl Readings {
    fn keys(&self) -> Vec<&str> {
        self.0.iter().map(|(object, _)| object.as_str()).collect()
    }

    fn why(&self, object: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| name == object).unwrap().1.as_deref()
    }

    fn is_read(&self, object: &str) -> bool {
        self.why(object).is_none()
    }

    fn says(&self, object: &str, words: &str) -> bool {
        self.why(object).is_some_and(|why| why.contains(words))
    }
}

/// Holds threads until it is opened.
#[derive(Default)]
struct Gate {
    state: Mutex<GateState>,
    moved: Condvar,
}

#[derive(Default)]
struct GateState {
    open: bool,
    /// The device of the first mount at each path.
    devices: BTreeMap<String, (u32, u32)>,
    asked: Vec<String>,
    threads: BTreeSet<PathBuf>,
}

impl Gate {
    fn pass(&self, point: &str) {
        let mut state = self.state.lock().unwrap();
        state.asked.push(point.to_owned());
        state.threads.insert(fs::read_link("/proc/thread-self").unwrap());
        drop(self.moved.wait_while(state, |state| !state.open).unwrap());
    }

    fn open(&self) {
        self.state.lock().unwrap().open = true;
        self.moved.notify_all();
    }

    fn close(&self) {
        self.state.lock().unwrap().open = false;
    }

    fn asked(&self, point: &str) -> usize {
        self.state.lock().unwrap().asked.iter().filter(|asked| *asked == point).count()
    }

    /// Returns how many of the threads that ever came here are still there, as the kernel says.
    fn threads(&self) -> usize {
        let state = self.state.lock().unwrap();
        let is_there = |task: &&PathBuf| Path::new("/proc").join(task).exists();
        state.threads.iter().filter(is_there).count()
    }
}

fn until(mut done: impl FnMut() -> bool) -> bool {
    (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        done()
    })
}

const SHORT: Duration = Duration::from_millis(300);

const ROOMY: Space = Space {
    device: (8, 1),
    size_bytes: 100,
    free_bytes: 60,
    available_bytes: 55,
    inodes: 10,
    inodes_free: 5,
};
