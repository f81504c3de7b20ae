//! A machine to break: file systems on loop devices, tasks that hang, kernel settings; each is put
//! back when it is dropped, also when a test fails.

use core::time::Duration;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::geteuid;
use tempfile::TempDir;

use crate::clock::wait_for;
use crate::kmsg::{Voice, unique_name};

/// The right to break the machine; one test of all that run on it has it at a time.
#[derive(Debug)]
pub struct Machine {
    _devkmsg: Setting,
    _lock: File,
}

impl Machine {
    /// Waits for the right, and empties the kernel log of what earlier tests left there.
    ///
    /// # Panics
    ///
    /// If this process is not root, or another test does not end.
    #[must_use]
    pub fn take() -> Self {
        assert!(
            geteuid().is_root(),
            "needs root and a real kernel: run `cargo ci test` as root, in a machine or a \
             container that may mount and write {}",
            crate::kmsg::PATH
        );
        let lock =
            File::create(LOCK).unwrap_or_else(|error| panic!("cannot write {LOCK}: {error}"));
        let locked = wait_for(LOCK_LIMIT, || match lock.try_lock() {
            Ok(()) => Some(()),
            Err(TryLockError::WouldBlock) => None,
            Err(TryLockError::Error(error)) => panic!("cannot lock {LOCK}: {error}"),
        });
        assert!(locked.is_some(), "another kernel test holds {LOCK} for {LOCK_LIMIT:?}");
        let devkmsg = Setting::set("/proc/sys/kernel/printk_devkmsg", "on");
        Voice::new().flush();
        Self { _devkmsg: devkmsg, _lock: lock }
    }
}

/// A kernel setting that is another while this lives.
#[derive(Debug)]
pub struct Setting {
    path: &'static str,
    before: String,
}

impl Setting {
    /// Sets the file at `path` to `value`.
    ///
    /// # Panics
    ///
    /// If it cannot be set.
    #[must_use]
    pub fn set(path: &'static str, value: &str) -> Self {
        let before = fs::read_to_string(path)
            .unwrap_or_else(|error| panic!("this kernel has no {path}: {error}"));
        let setting = Self { path, before };
        // Some settings refuse a value without the line's end.
        fs::write(path, format!("{value}\n"))
            .unwrap_or_else(|error| panic!("cannot set {path}: {error}"));
        setting
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        if let Err(error) = fs::write(self.path, &self.before) {
            eprintln!("{} stays changed; it was {}: {error}", self.path, self.before.trim_end());
        }
    }
}

/// A block device of a few MiB whose content is a file.
#[derive(Debug)]
pub struct LoopDevice {
    /// Its name, such as `loop0`.
    pub name: String,
    /// Its path, such as `/dev/loop0`.
    pub path: String,
    _image: TempDir,
}

impl LoopDevice {
    /// Makes one whose content `make` has written to a file of zeros.
    fn new(make: impl FnOnce(&Path)) -> Self {
        let directory = scratch();
        let image = directory.path().join("image");
        let file = File::create(&image).expect("the scratch directory can be written");
        file.set_len(IMAGE_BYTES).expect("there is room for a small image");
        make(&image);
        let losetup = run(Command::new("losetup").args(["--find", "--show"]).arg(&image));
        let path = losetup.trim().to_owned();
        let name = path.trim_start_matches("/dev/").to_owned();
        Self { name, path, _image: directory }
    }

    /// Makes one that holds nothing.
    #[must_use]
    pub fn empty() -> Self {
        Self::new(|_| {})
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        attempt(Command::new("losetup").args(["--detach", &self.path]));
    }
}

/// An ext4 file system on a loop device, mounted with `errors=remount-ro`.
#[derive(Debug)]
pub struct Disk {
    /// The device's name, such as `loop0`.
    pub name: String,
    device: LoopDevice,
    place: MountPoint,
    is_mounted: bool,
}

impl Disk {
    /// Makes one and mounts it in a directory of its own.
    #[must_use]
    pub fn new() -> Self {
        Self::made_with(&[])
    }

    /// Makes one with further arguments to `mkfs.ext4`, and mounts it in a directory of its own.
    #[must_use]
    pub fn made_with(arguments: &[&str]) -> Self {
        Self::on(MountPoint::scratch(), arguments)
    }

    /// Makes one and mounts it at `path`, which need not exist.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        Self::on(MountPoint::create(path), &[])
    }

    fn on(place: MountPoint, arguments: &[&str]) -> Self {
        let device = LoopDevice::new(|image| {
            let mut mkfs = Command::new("mkfs.ext4");
            run(mkfs.args(["-q", "-F", "-b", "4096"]).args(arguments).arg(image));
        });
        let mut disk = Self { name: device.name.clone(), device, place, is_mounted: false };
        disk.mount();
        disk
    }

    /// Returns where it is mounted.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.place.path
    }

    /// Mounts it.
    pub fn mount(&mut self) {
        let options = ["-t", "ext4", "-o", "errors=remount-ro"];
        run(Command::new("mount").args(options).arg(&self.device.path).arg(&self.place.path));
        self.is_mounted = true;
    }

    /// Unmounts it.
    pub fn unmount(&mut self) {
        run(Command::new("umount").arg(&self.place.path));
        self.is_mounted = false;
    }

    /// Makes the kernel find an error in it, so that it becomes read-only.
    ///
    /// # Panics
    ///
    /// If this kernel has no such test.
    pub fn break_it(&self) {
        let path = format!("/sys/fs/ext4/{}/trigger_fs_error", self.name);
        fs::write(&path, "fettle test").unwrap_or_else(|error| panic!("{path}: {error}"));
    }

    /// Repairs it while it is not mounted.
    ///
    /// # Panics
    ///
    /// If it cannot be repaired.
    pub fn repair(&self) {
        let mut command = Command::new("e2fsck");
        command
            .args(["-f", "-y"])
            .arg(&self.device.path)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let status = command.status().unwrap_or_else(|error| missing(&command, &error));
        assert!(matches!(status.code(), Some(0 | 1)), "{command:?} ended with {status}");
    }

    /// Stops all writes to it, until the result is dropped.
    #[must_use]
    pub fn freeze(self) -> FrozenDisk {
        run(Command::new("fsfreeze").arg("--freeze").arg(&self.place.path));
        FrozenDisk { is_frozen: true, tasks: Vec::new(), disk: self }
    }
}

impl Default for Disk {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.is_mounted {
            attempt(Command::new("umount").arg(&self.place.path));
        }
    }
}

/// A file system that lets no writer through, and the tasks that wait for it.
#[derive(Debug)]
pub struct FrozenDisk {
    is_frozen: bool,
    tasks: Vec<Child>,
    disk: Disk,
}

impl FrozenDisk {
    /// Starts a task called `name` that waits for the file system, and returns its process id.
    ///
    /// # Panics
    ///
    /// If it cannot be started, or is not called so.
    pub fn block(&mut self, name: &str) -> u32 {
        let directory = scratch();
        let program = directory.path().join(name);
        fs::copy("/bin/dd", &program).expect("there is a dd to be copied");
        let file = format!("of={}/{name}", self.disk.path().display());
        let mut command = Command::new(&program);
        command.args(["if=/dev/zero", "bs=4096", "count=1", &file]).stderr(Stdio::null());
        let task = command.spawn().unwrap_or_else(|error| missing(&command, &error));
        let pid = task.id();
        self.tasks.push(task);
        let stat = format!("/proc/{pid}/stat");
        let waits = format!("({name}) D ");
        let blocked =
            wait_for(LIMIT, || fs::read_to_string(&stat).ok()?.contains(&waits).then_some(()));
        assert!(blocked.is_some(), "{name} does not wait for the frozen file system");
        pid
    }

    /// Lets the tasks go on.
    pub fn thaw(&mut self) {
        run(Command::new("fsfreeze").arg("--unfreeze").arg(self.disk.path()));
        self.is_frozen = false;
        self.end_tasks();
    }

    fn end_tasks(&mut self) {
        for mut task in self.tasks.drain(..) {
            // It may have ended by itself.
            let _ = task.kill();
            let _ = task.wait();
        }
    }
}

impl Drop for FrozenDisk {
    fn drop(&mut self) {
        if self.is_frozen {
            attempt(Command::new("fsfreeze").arg("--unfreeze").arg(self.disk.path()));
        }
        self.end_tasks();
    }
}

/// A directory to mount on; those of its ancestors that did not exist are removed with it.
#[derive(Debug)]
pub struct MountPoint {
    /// The directory.
    pub path: PathBuf,
    created: Vec<PathBuf>,
}

impl MountPoint {
    /// Creates one of its own.
    #[must_use]
    pub fn scratch() -> Self {
        Self::create(&std::env::temp_dir().join(unique_name()))
    }

    /// Creates `path`, if need be.
    ///
    /// # Panics
    ///
    /// If it cannot be created.
    #[must_use]
    pub fn create(path: &Path) -> Self {
        let created = path.ancestors().take_while(|path| !path.exists());
        let created = created.map(Path::to_owned).collect();
        fs::create_dir_all(path)
            .unwrap_or_else(|error| panic!("cannot create {}: {error}", path.display()));
        Self { path: path.to_owned(), created }
    }
}

impl Drop for MountPoint {
    fn drop(&mut self) {
        for path in &self.created {
            // Something else may have come to stand in it.
            let _ = fs::remove_dir(path);
        }
    }
}

fn scratch() -> TempDir {
    TempDir::with_prefix("fettle-test-").expect("there is room for temporary files")
}

/// Runs `command` and returns what it printed.
pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| missing(command, &error));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} ended with {}: {error}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs `command` while something is put back, where a failure must not end the rest of it.
pub fn attempt(command: &mut Command) {
    match command.output() {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            eprintln!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim_end());
        }
        Err(error) => eprintln!("{command:?}: {error}"),
    }
}

fn missing(command: &Command, error: &std::io::Error) -> ! {
    panic!(
        "cannot run {:?}: {error}; install e2fsprogs, util-linux, mount and coreutils",
        command.get_program()
    )
}

const LOCK: &str = "/run/fettle-kernel-tests.lock";

/// How long another run of the kernel tests may take.
const LOCK_LIMIT: Duration = Duration::from_secs(300);

/// A task starts and blocks within this time.
const LIMIT: Duration = Duration::from_secs(10);

const IMAGE_BYTES: u64 = 16 * 1024 * 1024;
