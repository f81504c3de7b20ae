//! The systemd unit: verified, scored, and run.

use core::time::Duration;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use fettle_tests::clock::wait_for;
use fettle_tests::machine::Disk;
use serde_json::Value;
use tempfile::TempDir;

use super::container::Container;
use super::image::Image;
use super::{deployed, run};

#[test]
#[ignore = "needs the image, and systemd-analyze of the Debian package systemd"]
fn systemd_objects_to_nothing_in_the_unit() {
    let shipped = Shipped::new();
    let unit = shipped.folder.path().join("fettle-agent.service");
    fs::write(&unit, shipped.text("fettle-agent.service")).expect("written");
    let (ok, said) = run(Command::new("systemd-analyze").arg("verify").arg(unit));
    assert!(ok && said.is_empty(), "{said}");
}

#[test]
#[ignore = "needs systemd-analyze of the Debian package systemd"]
fn the_unit_is_no_more_exposed_than_it_was() {
    let (ok, said) = run(Command::new("systemd-analyze")
        .args(["security", "--offline=true", &format!("--threshold={EXPOSURE_MAX}")])
        .arg(deployed("fettle-agent.service")));
    println!("{}", said.lines().last().unwrap_or_default());
    assert!(ok, "{said}");
}

#[test]
#[ignore = "needs root, the image, and systemd-nspawn of the Debian package systemd-container"]
fn the_unit_starts_is_ready_and_starts_again_with_its_state() {
    let shipped = Shipped::new();
    let container = Container::boot(&shipped.node());
    container.must(&["systemctl", "start", "--no-block", "fettle-agent"]);
    let log = || container.must(&["journalctl", "-o", "cat", "-u", "fettle-agent"]);
    let is_ready = || container.property("fettle-agent", "SubState") == "running";
    assert!(wait_for(LIMIT, || is_ready().then_some(())).is_some(), "{}", log());
    // Each kind of reading ends in a condition; those of the log are the first.
    let seen = wait_for(LIMIT, || log().contains("\"name\":\"DiskUsageHigh\"").then_some(()));
    assert!(seen.is_some(), "{}", log());
    // The API server of its kubeconfig is away.
    let tried = wait_for(LIMIT, || log().contains("cannot watch the Node").then_some(()));
    assert!(tried.is_some(), "{}", log());
    let refusals: Vec<_> =
        log().lines().filter(|line| line.contains("not permitted")).map(str::to_owned).collect();
    assert!(refusals.is_empty(), "{refusals:#?}");
    let main_pid = || container.property("fettle-agent", "MainPID");
    let again = |before: &str| {
        let pid = main_pid();
        (is_ready() && pid != "0" && pid != before).then_some(())
    };
    let before = main_pid();
    container.must(&["systemctl", "kill", "-s", "KILL", "fettle-agent"]);
    assert!(wait_for(LIMIT, || again(&before)).is_some(), "{}", log());
    assert!(container.run(&["test", "-s", "/run/fettle/state"]).0, "no state outlived it");
    let target = format!("--target={}", main_pid());
    // As the agent itself would do it, behind all that the unit puts before it.
    let kept = ["nsenter", &target, "--mount", "touch", "/var/lib/fettle/kept.json"];
    container.must(&kept);
    assert!(!container.run(&["nsenter", &target, "--mount", "touch", "/var/lib/x"]).0);
    // A node whose disk was made read-only needs its agent most.
    for folder in ["present", "missing"] {
        if folder == "missing" {
            container.must(&["rm", "-r", "/var/lib/fettle"]);
        }
        container.must(&["mount", "-o", "bind", "/var/lib", "/var/lib"]);
        container.must(&["mount", "-o", "remount,bind,ro", "/var/lib"]);
        let before = main_pid();
        container.must(&["systemctl", "restart", "--no-block", "fettle-agent"]);
        assert!(wait_for(LIMIT, || again(&before)).is_some(), "{folder}: {}", log());
        container.must(&["umount", "/var/lib"]);
    }
}

#[test]
#[ignore = "needs root, the image, and systemd-nspawn of the Debian package systemd-container"]
fn the_unit_is_ready_though_it_has_no_kernel_log() {
    let shipped = Shipped::new();
    let container = Container::boot(&shipped.node());
    container.must(&["sh", "-c", "umount -l /dev/kmsg; rm /dev/kmsg"]);
    container.must(&["systemctl", "start", "fettle-agent"]);
    let log = container.must(&["journalctl", "-o", "cat", "-u", "fettle-agent"]);
    assert!(log.contains("cannot read the kernel log"), "{log}");
    assert_eq!(container.property("fettle-agent", "SubState"), "running");
}

#[test]
#[ignore = "needs root, the image, and systemd-nspawn of the Debian package systemd-container"]
fn the_unit_may_do_what_a_reboot_takes() {
    let shipped = Shipped::new();
    let path = shipped.unit("fettle-agent", " run", " run");
    // What the agent does to reboot (sys/reboot.rs), as confined as the agent.
    let text = fs::read_to_string(&path).expect("read");
    let start = format!("ExecStart={} run\n", shipped.agent.display());
    let text = text.replace(&start, "ExecStart=kill -s INT 1\n");
    let text = text.replace("Type=notify", "Type=oneshot").replace("Restart=always", "Restart=no");
    fs::write(&path, text).expect("written");
    let mut container = Container::boot(&shipped.binds(&[path], &[]));
    container.must(&["systemctl", "start", "--no-block", "fettle-agent"]);
    assert!(container.has_rebooted(), "it goes on as if nothing were");
}

#[test]
#[ignore = "needs root, the image, and systemd-nspawn of the Debian package systemd-container"]
fn the_confined_agent_sees_what_an_unconfined_one_sees() {
    let shipped = Shipped::new();
    let disk = Disk::new();
    let commands = ["check -o json", "report storage -o json", "report certs -o json"];
    let names = ["check", "storage", "certs"];
    let units = names.iter().zip(commands).map(|(name, command)| {
        let path = shipped.unit(name, " run", &format!(" {command}"));
        // One run, whose exit code says what it found.
        let text = fs::read_to_string(&path).expect("read");
        let text = text
            .replace("Type=notify", "Type=oneshot\nSuccessExitStatus=1 2")
            .replace("Restart=always", "Restart=no")
            .replace("WatchdogSec=60s\n", "");
        fs::write(&path, text).expect("written");
        path
    });
    let mut binds = shipped.binds(&units.collect::<Vec<_>>(), &[disk.path().to_owned()]);
    let certificate = certificate(shipped.folder.path());
    let place = "/var/lib/kubelet/pki/fettle-test.pem";
    binds.push(format!("--bind-ro={}:{place}", certificate.display()));
    let container = Container::boot(&binds);
    for (name, command) in names.iter().zip(commands) {
        container.must(&["systemctl", "start", name]);
        let confined =
            container.must(&["journalctl", "-o", "cat", "-t", "fettle-agent", "-u", name]);
        let mut arguments = vec![shipped.agent.to_str().expect("UTF-8")];
        arguments.extend(command.split(' '));
        let (_, free) = container.run(&arguments);
        let (confined, free) = (settled(&confined), settled(&free));
        assert_eq!(confined, free, "{command}");
        let text = format!("{free:?}");
        match *name {
            "storage" => assert!(text.contains(&disk.path().display().to_string()), "{text}"),
            "certs" => assert!(text.contains("fettle-test.pem"), "{text}"),
            _ => assert!(text.contains("ClockNotSynchronized"), "{text}"),
        }
    }
}

/// The binary of the image, and the files of the unit with its place.
struct Shipped {
    folder: TempDir,
    agent: PathBuf,
    _image: TempDir,
}

impl Shipped {
    fn new() -> Self {
        let image = Image::open().unpack("amd64");
        let folder = tempfile::tempdir().expect("a directory");
        Self { folder, agent: image.path().join("fettle-agent"), _image: image }
    }

    /// Returns one of the files, which starts the binary of the image.
    fn text(&self, name: &str) -> String {
        let text = fs::read_to_string(deployed(name)).expect("it can be read");
        text.replace("=/usr/bin/fettle-agent", &format!("={}", self.agent.display()))
    }

    /// Writes the unit under another name and with other arguments, and returns where.
    fn unit(&self, name: &str, arguments: &str, others: &str) -> PathBuf {
        let start = format!("={}", self.agent.display());
        let text = self.text("fettle-agent.service");
        let text = text.replace(&format!("{start}{arguments}"), &format!("{start}{others}"));
        assert!(text.contains(&format!("{start}{others}\n")), "{text}");
        let path = self.folder.path().join(format!("{name}.service"));
        fs::write(&path, text).expect("written");
        path
    }

    /// Returns what a container needs to be a node whose API server is away.
    fn node(&self) -> Vec<String> {
        let mut binds = self.binds(&[self.unit("fettle-agent", " run", " run")], &[]);
        let kubeconfig = self.folder.path().join("kubelet.conf");
        fs::write(&kubeconfig, KUBECONFIG).expect("written");
        let place = "/etc/kubernetes/kubelet.conf";
        binds.push(format!("--bind-ro={}:{place}", kubeconfig.display()));
        let authority = certificate(self.folder.path());
        binds.push(format!("--bind-ro={}:/etc/kubernetes/ca.pem", authority.display()));
        binds
    }

    /// Returns what a container needs to have `units`, the binary, the kernel log and `folders`.
    fn binds(&self, units: &[PathBuf], folders: &[PathBuf]) -> Vec<String> {
        let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
        let to = |unit: &PathBuf| {
            format!("--bind-ro={}:/etc/systemd/system/{}", unit.display(), name(unit))
        };
        let mut binds: Vec<_> = units.iter().map(to).collect();
        binds.push(format!("--bind-ro={}", self.agent.display()));
        binds.push("--bind=/dev/kmsg".to_owned());
        binds.extend(folders.iter().map(|folder| format!("--bind={}", folder.display())));
        binds
    }
}

/// Makes a certificate that only one user may read, who is not root.
fn certificate(folder: &Path) -> PathBuf {
    let path = folder.join("fettle-test.pem");
    let (ok, said) = run(Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "90"])
        .args(["-subj", "/CN=fettle", "-keyout", "/dev/null", "-out"])
        .arg(&path));
    assert!(ok, "{said}");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).expect("changed");
    std::os::unix::fs::chown(&path, Some(12_345), Some(12_345)).expect("given away");
    path
}

/// Takes out of what was printed all that differs from one run to the next.
fn settled(printed: &str) -> Vec<Value> {
    let start = printed.find(['{', '[']).unwrap_or_else(|| panic!("no JSON: {printed}"));
    let values = serde_json::Deserializer::from_str(&printed[start..]).into_iter();
    let mut values: Vec<Value> = values.map_while(Result::ok).collect();
    assert!(!values.is_empty(), "no JSON: {printed}");
    values.iter_mut().for_each(settle);
    values
}

fn settle(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !PASSING.contains(&name.as_str()));
            fields.values_mut().for_each(settle);
        }
        Value::Array(values) => values.iter_mut().for_each(settle),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What a second changes.
const PASSING: [&str; 6] =
    ["updatedAt", "message", "usedBytes", "inodesUsed", "secondsLeft", "tookMs"];

/// A kubelet's way to an API server where nothing listens.
const KUBECONFIG: &str = "apiVersion: v1
kind: Config
current-context: away
contexts: [{name: away, context: {cluster: away, user: away}}]
clusters:
- {name: away, cluster: {server: 'https://127.0.0.1:1', certificate-authority: ca.pem}}
users: [{name: away, user: {token: none}}]
";

/// The most that `systemd-analyze security` may say, times ten.
const EXPOSURE_MAX: u32 = 35;

const LIMIT: Duration = Duration::from_secs(30);
