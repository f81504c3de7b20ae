//! The agent's checks where the real thing is wrong: file systems that are full or do not answer,
//! and protected files that change.

use core::time::Duration;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use fettle_agent::probe::Probe;
use fettle_agent::probe::batch::Batch;
use fettle_agent::probe::file_systems::FileSystems;
use fettle_agent::probe::protected_files::ProtectedFiles;
use fettle_core::node::checks::Outcome;
use fettle_core::node::reading::{FileChange, Reading};
use fettle_tests::clock::{now, wait_for};
use fettle_tests::hanging::HangingDisk;
use fettle_tests::kmsg::PATH;
use fettle_tests::machine::{Disk, LoopDevice, Machine, attempt, run};
use fettle_tests::program::{Agent, finish, standalone};
use rustix::fs::{FallocateFlags, fallocate, statvfs};
use rustix::mount::{UnmountFlags, mount_bind, unmount};
use serde_json::Value;
use tempfile::TempDir;

// Space.

#[test]
#[ignore = "needs root, mounts file systems"]
fn a_full_disk_is_named_and_one_below_the_limit_is_not() {
    let _machine = Machine::take();
    let disk = Disk::new();
    for (pct, want) in [(84, "False"), (86, "True"), (100, "True")] {
        fill(disk.path(), pct);
        let row = check("DiskUsageHigh");
        assert_eq!(row.value["status"], want, "{pct} %: {}", row.value);
        assert_eq!(row.code, i32::from(want == "True"), "{pct} %");
        let named = format!("{}: {pct} % of its space", disk.path().display());
        assert_eq!(row.message().contains(&named), want == "True", "{}", row.value);
    }
    // The kernel has stopped writes to it, but it is full all the same.
    disk.break_it();
    assert_eq!(check("DiskUsageHigh").value["status"], "True");
}

#[test]
#[ignore = "needs root, mounts file systems"]
fn a_disk_without_inodes_is_named() {
    let _machine = Machine::take();
    let disk = Disk::made_with(&["-N", "128"]);
    let mut made = 0;
    while File::create(disk.path().join(made.to_string())).is_ok() {
        made += 1;
    }
    let row = check("DiskUsageHigh");
    assert_eq!((&row.value["status"], row.code), (&Value::from("True"), 1), "{}", row.value);
    let named = format!("{}: 100 % of its inodes", disk.path().display());
    assert!(row.message().contains(&named), "{made} files: {}", row.value);
}

#[test]
#[ignore = "needs root, mounts file systems"]
fn a_full_volume_of_a_pod_and_a_full_disk_that_is_only_read_do_not_count() {
    let _machine = Machine::take();
    let volume = "/var/lib/kubelet/pods/fettle-test/volumes/kubernetes.io~csi/v/mount";
    let (volume, disk) = (Disk::at(Path::new(volume)), Disk::new());
    fill(volume.path(), 100);
    fill(disk.path(), 100);
    let flags = rustix::mount::MountFlags::RDONLY;
    rustix::mount::mount_remount(disk.path(), flags, "").expect("nobody writes to it");
    let row = check("DiskUsageHigh");
    assert_eq!((&row.value["status"], row.code), (&Value::from("False"), 0), "{}", row.value);
}

#[test]
#[ignore = "needs root, makes a volume group"]
fn a_volume_group_without_free_space_counts_only_where_that_is_wanted() {
    let _machine = Machine::take();
    let group = VolumeGroup::create();
    for (wanted, status) in [(false, "False"), (true, "True")] {
        let config = format!("lvm: {{vgFree: {wanted}}}\nexpect: [lvm]\n");
        let row = check_with("DiskUsageHigh", &config);
        assert_eq!(row.value["status"], status, "{}", row.value);
        assert_eq!(row.message().contains(&group.name), wanted, "{}", row.value);
    }
}

// What expires.

#[test]
#[ignore = "needs openssl"]
fn certificates_that_were_not_renewed_are_named_among_good_ones_and_garbage() {
    let folder = TempDir::new().expect("there is room for files");
    let issuer = Issuer::new(folder.path());
    issuer.issue("good", "20200101000000Z", "20990101000000Z");
    assert_eq!(renewal(folder.path()).value["status"], "False");
    fs::write(folder.path().join("junk.pem"), "no certificate").expect("it can be written");
    assert_eq!(renewal(folder.path()).value["status"], "Unknown");
    issuer.issue("expired", "20200101000000Z", "20200201000000Z");
    let row = renewal(folder.path());
    assert_eq!((&row.value["status"], row.code), (&Value::from("True"), 1), "{}", row.value);
    assert!(row.message().contains("expired.pem: expired"), "{}", row.value);
    fs::remove_file(folder.path().join("expired.pem")).expect("it was there");
    issuer.issue_for("soon", 3);
    let row = renewal(folder.path());
    assert!(row.message().contains("soon.pem: expires in"), "{}", row.value);
    assert!(!row.message().contains("good.pem"), "{}", row.value);
}

// What grows old.

#[test]
#[ignore = "beside the other checks of real things"]
fn a_file_that_nobody_renews_is_stale_and_one_that_is_gone_too() {
    let folder = TempDir::new().expect("there is room for files");
    let path = folder.path().join("nodes.json");
    let config =
        format!("nodesJson: {{path: {}, maxAge: 5m}}\nexpect: [nodesJson]\n", path.display());
    assert_eq!(check_with("NodeInfoStale", &config).value["status"], "True", "it is expected");
    fs::write(&path, "{}").expect("it can be written");
    assert_eq!(check_with("NodeInfoStale", &config).value["status"], "False");
    run(Command::new("touch").args(["-d", "6 minutes ago"]).arg(&path));
    let row = check_with("NodeInfoStale", &config);
    assert_eq!((&row.value["status"], row.code), (&Value::from("True"), 1), "{}", row.value);
}

// What hangs.

#[test]
#[ignore = "needs root, mounts a file system that hangs"]
fn a_mount_that_never_answers_is_unknown_and_hides_no_full_disk() {
    let _machine = Machine::take();
    let (hanging, disk) = (HangingDisk::new(), Disk::new());
    let start = now();
    let row = check("DiskUsageHigh");
    println!("with a mount that hangs: {:?}", start.elapsed());
    let named = format!("{}: statfs has not answered for 5 s", hanging.path().display());
    assert_eq!((&row.value["status"], row.code), (&Value::from("Unknown"), 2), "{}", row.value);
    assert!(row.message().contains(&named), "{}", row.value);
    fill(disk.path(), 100);
    let row = check("DiskUsageHigh");
    assert_eq!((&row.value["status"], row.code), (&Value::from("True"), 1), "{}", row.value);
}

#[test]
#[ignore = "needs root, mounts a file system that hangs"]
fn a_mount_that_hangs_for_100_runs_has_one_thread() {
    let _machine = Machine::take();
    let (mut hanging, disk) = (HangingDisk::new(), Disk::new());
    let mut probe = FileSystems::new(PathBuf::from("/"), PathBuf::from("/var/lib/kubelet"));
    for run in 0..100 {
        let start = now();
        assert_eq!(read(&mut probe, &disk), None, "run {run}");
        let limit = Duration::from_secs(if run == 0 { 7 } else { 1 });
        assert!(start.elapsed() < limit, "run {run}: {:?}", start.elapsed());
        assert!(are_left(1), "run {run}: {} threads", threads());
    }
    hanging.abort();
    let came_back = wait_for(LIMIT, || {
        read(&mut probe, &disk);
        (threads() == 0).then_some(())
    });
    assert!(came_back.is_some(), "{} threads still wait", threads());
    read(&mut probe, &disk);
    let path = hanging.path().display().to_string();
    let row = probe.rows().iter().find(|row| row.mount_point == path).expect("it is mounted");
    let error = row.error.as_deref().unwrap_or_default();
    assert!(error.contains("statfs failed"), "{error}");
}

#[test]
#[ignore = "needs root, mounts a file system that hangs"]
fn an_agent_with_a_mount_that_hangs_ends_at_once() {
    let _machine = Machine::take();
    let hanging = HangingDisk::new();
    let scratch = TempDir::new().expect("there is room for temporary files");
    let agent = Agent::start(&mut standalone(scratch.path(), Path::new(PATH)));
    let path = hanging.path().display().to_string();
    agent.wait_line("it", |line| {
        line["name"] == "DiskUsageHigh"
            && line["status"] == "Unknown"
            && line.to_string().contains(&path)
    });
    // Fails where that takes two seconds.
    let _ = agent.terminate();
}

// Protected files.

#[test]
#[ignore = "needs root, writes to a protected folder"]
fn a_protected_file_that_changes_is_named_until_it_is_reverted() {
    let _machine = Machine::take();
    let file = ProtectedFile::create();
    let state = TempDir::new().expect("there is room for temporary files");
    // An agent takes the baseline, which a single check compares with and leaves as it is.
    let agent = Agent::start(&mut standalone(state.path(), Path::new(PATH)));
    let baseline = state.path().join("baseline");
    assert!(wait_for(LIMIT, || baseline.exists().then_some(())).is_some(), "no baseline");
    agent.terminate();
    let directory = state.path().display().to_string();
    let said = |want: &str| {
        let row = row(&["check", "NodeTampered", "-o", "json", "--state-dir", &directory]);
        assert_eq!(row.value["status"], want, "{}", row.value);
        row.message().contains(&*file.path.to_string_lossy())
    };
    assert!(!said("False"));
    fs::write(&file.path, "other").expect("it can be written");
    assert!(said("True"));
    fs::write(&file.path, "first").expect("it can be written");
    assert!(!said("False"), "one check remembers nothing, only an agent that runs does");
    fs::remove_file(&file.path).expect("it can be removed");
    assert!(said("True"));
}

#[test]
#[ignore = "needs root, mounts over files"]
fn a_mount_over_a_protected_file_or_folder_is_a_change() {
    let _machine = Machine::take();
    let node = TempDir::new().expect("there is room for temporary files");
    let (root, state) = (node.path().join("root"), node.path().join("baseline"));
    for path in ["protected", "other"] {
        fs::create_dir_all(root.join(path)).expect("the directory is the test's");
        fs::write(root.join(path).join("file"), path).expect("the directory is the test's");
    }
    let mut probe = ProtectedFiles::new(root.clone(), vec!["/protected/**".to_owned()], state);
    assert_eq!(changes(&mut probe), []);
    for name in ["protected/file", "protected"] {
        let (over, path) = (root.join(name.replace("protected", "other")), root.join(name));
        mount_bind(over, &path).expect("root may mount");
        let seen = changes(&mut probe);
        unmount(&path, UnmountFlags::DETACH).expect("it was mounted");
        assert_eq!(seen, [("/protected/file".to_owned(), FileChange::Changed)], "{name}");
        assert_eq!(changes(&mut probe), [], "{name} is away again");
    }
}

// Helpers.

/// What one check said.
struct Row {
    value: Value,
    code: i32,
}

impl Row {
    fn message(&self) -> &str {
        self.value["message"].as_str().expect("a row has a message")
    }
}

/// Asks the agent's program for one condition.
fn check(name: &str) -> Row {
    row(&["check", name, "-o", "json"])
}

/// Runs one check under a configuration.
fn check_with(name: &str, config: &str) -> Row {
    let folder = TempDir::new().expect("there is room for a file");
    let path = folder.path().join("agent.yaml");
    fs::write(&path, config).expect("the folder is the test's");
    row(&["check", name, "-o", "json", "--config", path.to_str().expect("it is ASCII")])
}

/// Judges the certificates in `folder`.
fn renewal(folder: &Path) -> Row {
    let config = format!("certificates: ['{}/*.pem']\n", folder.display());
    check_with("CertRenewalFailing", &config)
}

fn row(flags: &[&str]) -> Row {
    let ended = finish(flags, b"");
    ended.assert_no_crash();
    let code = ended.status.code().expect("it has not crashed");
    let [value] = ended.values()[..] else { panic!("not one row: {}", ended.printed()) };
    Row { value: value.clone(), code }
}

/// Fills the file system at `path`, until `pct` percent of what users may have is used.
fn fill(path: &Path, pct: u64) {
    let _ = fs::remove_file(path.join("filler"));
    let stat = statvfs(path).expect("it answers");
    let used = stat.f_blocks - stat.f_bfree;
    // Half a percent above, as a file has blocks of its own beside its content.
    let wanted = (used + stat.f_bavail) * (2 * pct + 1) / 200;
    let wanted = wanted.min(used + stat.f_bavail).saturating_sub(used) * stat.f_frsize;
    let file = File::create(path.join("filler")).expect("it can be written");
    fallocate(&file, FallocateFlags::empty(), 0, wanted).expect("there is room for it");
}

/// Reads every file system; returns why `disk` could not be read.
fn read(probe: &mut FileSystems, disk: &Disk) -> Option<String> {
    assert_eq!(probe.read(&mut Batch::default()), Outcome::Complete);
    let path = disk.path().display().to_string();
    let row = probe.rows().iter().find(|row| row.mount_point == path).expect("it is mounted");
    row.error.clone()
}

/// Returns how many threads of this process ask file systems.
fn threads() -> usize {
    let tasks = fs::read_dir("/proc/self/task").expect("there is a /proc");
    let name = |task: std::io::Result<fs::DirEntry>| {
        fs::read_to_string(task.ok()?.path().join("comm")).ok()
    };
    tasks.filter_map(name).filter(|name| name.trim_end() == "statfs").count()
}

/// Waits until `count` threads are left: one that has nothing to ask any more is about to end.
fn are_left(count: usize) -> bool {
    wait_for(LIMIT, || (threads() == count).then_some(())).is_some()
}

fn changes(probe: &mut ProtectedFiles) -> Vec<(String, FileChange)> {
    let mut batch = Batch::default();
    assert_eq!(probe.read(&mut batch), Outcome::Complete);
    let change = |reading| {
        let Reading::ProtectedFile(file) = reading else { panic!("{reading:?}") };
        (file.path.to_owned(), file.change)
    };
    batch.readings().map(change).collect()
}

/// A volume group on two loop devices, all of it in a volume.
struct VolumeGroup {
    name: String,
    disks: [LoopDevice; 2],
}

impl VolumeGroup {
    fn create() -> Self {
        let name = format!("fettle{}", std::process::id());
        let disks = [LoopDevice::empty(), LoopDevice::empty()];
        let paths = disks.each_ref().map(|disk| disk.path.as_str());
        run(Command::new("vgcreate").args(["-q", &name]).args(paths));
        let group = Self { name, disks };
        // No device mapper is needed for a volume that nobody uses.
        let volume =
            ["--driverloaded", "n", "-q", "-an", "-Zn", "-Wn", "-l", "100%VG", "-n", "plain"];
        run(Command::new("lvcreate").args(volume).arg(&group.name));
        group
    }
}

impl Drop for VolumeGroup {
    fn drop(&mut self) {
        attempt(Command::new("vgremove").args(["--driverloaded", "n", "-qff", &self.name]));
        let paths = self.disks.each_ref().map(|disk| disk.path.as_str());
        attempt(Command::new("pvremove").arg("-qff").args(paths));
    }
}

/// Issues certificates with any dates, by openssl.
struct Issuer {
    folder: PathBuf,
    own: TempDir,
}

impl Issuer {
    fn new(folder: &Path) -> Self {
        let own = TempDir::new().expect("there is room for files");
        let at = |name: &str| own.path().join(name);
        fs::write(at("index"), "").expect("the folder is the test's");
        let config = format!(
            "[ca]\ndefault_ca=d\n[d]\ndatabase={0}/index\nnew_certs_dir={0}\nrand_serial=yes\n\
             default_md=sha256\npolicy=p\nunique_subject=no\n[p]\ncommonName=supplied\n\
             [req]\ndistinguished_name=n\n[n]\n",
            own.path().display()
        );
        fs::write(at("config"), config).expect("the folder is the test's");
        let key = ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out"];
        run(Command::new("openssl").args(key).arg(at("key")));
        Self { folder: folder.to_owned(), own }
    }

    /// Issues `NAME.pem` for these dates.
    fn issue(&self, name: &str, from: &str, until: &str) {
        self.sign(name, &["-startdate", from, "-enddate", until]);
    }

    /// Issues `NAME.pem` from long ago until so many days from now.
    fn issue_for(&self, name: &str, days: u32) {
        self.sign(name, &["-startdate", "20200101000000Z", "-days", &days.to_string()]);
    }

    fn sign(&self, name: &str, dates: &[&str]) {
        let at = |name: &str| self.own.path().join(name);
        let mut request = Command::new("openssl");
        request.args(["req", "-new", "-subj", &format!("/CN={name}"), "-config"]).arg(at("config"));
        run(request.arg("-key").arg(at("key")).arg("-out").arg(at("request")));
        let mut sign = Command::new("openssl");
        sign.args(["ca", "-batch", "-selfsign", "-notext", "-config"]).arg(at("config"));
        sign.arg("-keyfile").arg(at("key")).arg("-in").arg(at("request")).args(dates);
        run(sign.arg("-out").arg(self.folder.join(format!("{name}.pem"))));
    }
}

/// A file in a protected folder of this machine; all is as before afterwards.
struct ProtectedFile {
    path: PathBuf,
    created: Vec<PathBuf>,
}

impl ProtectedFile {
    fn create() -> Self {
        let path = PathBuf::from("/var/lib/syself/fettle-test");
        let created = path.ancestors().skip(1).take_while(|path| !path.exists());
        let file = Self { created: created.map(Path::to_owned).collect(), path };
        let folder = file.path.parent().expect("it is in a folder");
        fs::create_dir_all(folder).expect("root may create it");
        fs::write(&file.path, "first").expect("root may write it");
        file
    }
}

impl Drop for ProtectedFile {
    fn drop(&mut self) {
        // What the test removed, or never had, is no fault here.
        let _ = fs::remove_file(&self.path);
        for folder in &self.created {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// A thread ends, and a call is aborted, well within this time.
const LIMIT: Duration = Duration::from_secs(5);
