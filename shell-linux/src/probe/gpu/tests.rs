//! The probe of GPUs, on real files and recorded output.

use std::fs;
use std::os::unix::fs::symlink;
use std::thread;

use fettle_core::node::judge::gpu::activation;
use fettle_core::node::judge::{Judgement, Limits, Memory};
use fettle_core::time::Instant;

use super::*;

#[test]
fn gpus_marker_and_device_nodes_are_read() {
    let node = Node::with_gpus(2);
    node.activate();
    node.write("etc/cdi/nvidia.yaml", SPEC);
    assert_eq!(node.read(), Ok(Some((2, true, Some(3)))));
    node.write(
        "run/cdi/k8s.json",
        r#"{"kind":"k8s.device-plugin.nvidia.com/gpu","devices":[
        {"name":"0","containerEdits":{"deviceNodes":[{"path":"/dev/nvidia0"}]}}]}"#,
    );
    symlink("/run", node.at("var/run")).unwrap();
    assert_eq!(node.read(), Ok(Some((2, true, Some(4)))));
}

#[test]
fn a_spec_without_device_nodes_is_a_problem_after_the_grace() {
    // H21, H22
    let node = Node::with_gpus(2);
    assert_eq!(node.judge(60), Some(false));
    assert_eq!(node.judge(3600), Some(true));
    node.activate();
    node.write(
        "etc/cdi/a.yaml",
        "kind: nvidia.com/gpu\ndevices:\n- name: '0'\n  deviceNodes: []\n",
    );
    assert_eq!(node.read(), Ok(Some((2, true, Some(0)))));
    assert_eq!(node.judge(3600), Some(true));
    node.write("etc/cdi/a.yaml", SPEC);
    assert_eq!(node.judge(240), Some(false));
    assert_eq!(node.judge(3600), Some(false));
}

#[test]
fn only_gpus_of_nvidia_count() {
    let node = Node::bare();
    for (address, vendor, class) in [
        ("0000:01:00.0", "0x10de\n", "0x030000\n"),
        ("0000:01:00.1", "0x10de\n", "0x040300\n"), // its sound
        ("0000:02:00.0", "0x10de\n", "0x030200\n"),
        ("0000:03:00.0", "0x10de\n", "0x068000\n"), // a bridge
        ("0000:04:00.0", "0x1002\n", "0x030000\n"), // AMD
        ("0000:05:00.0", "0x8086\n", "0x020000\n"),
    ] {
        node.device(address, vendor, class);
    }
    assert_eq!(node.read(), Ok(Some((2, false, None))));
}

#[test]
fn other_specs_and_files_do_not_count() {
    let node = Node::with_gpus(1);
    node.write("etc/cdi/amd.yaml", &SPEC.replace("nvidia.com/gpu", "amd.com/gpu"));
    node.write("etc/cdi/nic.yaml", &SPEC.replace("nvidia.com/gpu", "nvidia.com/net"));
    node.write("etc/cdi/evil.yaml", &SPEC.replace("nvidia.com/gpu", "evilnvidia.com/gpu"));
    node.write("etc/cdi/nvidia.yaml.tmp", SPEC);
    assert_eq!(node.read(), Ok(Some((1, false, None))));
}

#[test]
fn a_node_without_a_gpu_makes_no_reading_unless_it_had_or_should_have_one() {
    let node = Node::bare();
    fs::create_dir_all(node.at("sys/bus")).unwrap();
    assert_eq!(node.read(), Ok(None));
    node.device("0000:00:00.0", "0x8086\n", "0x030000\n");
    assert_eq!(node.read(), Ok(None));
    assert_eq!(read(&mut node.probe(true)), Ok(Some((0, false, None))));
    let mut probe = node.probe(false);
    node.device("0000:01:00.0", "0x10de\n", "0x030200\n");
    assert_eq!(read(&mut probe), Ok(Some((1, false, None))));
    fs::remove_dir_all(node.at("sys/bus/pci/devices/0000:01:00.0")).unwrap();
    assert_eq!(read(&mut probe), Ok(Some((0, false, None))), "it fell off the bus");
}

#[test]
fn without_sysfs_nobody_can_tell() {
    let node = Node::bare();
    let outcome = node.probe(false).read(&mut Batch::default());
    assert!(matches!(outcome, Outcome::Failed { .. }), "{outcome:?}");
}

#[test]
fn what_cannot_be_read_is_unknown() {
    let node = Node::with_gpus(1);
    node.activate();
    for (file, text, want) in [
        ("etc/cdi/a.json", "{\"kind\":\"nvidia.com/gpu\",", "is no CDI spec: EOF"),
        ("etc/cdi/a.json", "", "is no CDI spec"),
        ("etc/cdi/a.yaml", "", "is no CDI spec"),
        ("etc/cdi/a.yaml", "devices: []\n", "is no CDI spec: "),
        ("etc/cdi/a.yaml", "kind: nvidia.com/gpu\ndevices: 7\n", "is no CDI spec: "),
        ("etc/cdi/a.yaml", "kind: [\n", "is no CDI spec: "),
        ("sys/bus/pci/devices/0000:09:00.0/vendor", "garbage", "holds no number"),
    ] {
        node.write(file, text);
        let problem = node.read().unwrap_err();
        assert!(problem.contains(want), "{problem}");
        fs::remove_file(node.at(file)).unwrap();
    }
    let device = node.at("sys/bus/pci/devices/0000:09:00.0");
    fs::remove_dir(device).unwrap();
    symlink("nowhere.yaml", node.at("etc/cdi/b.yaml")).unwrap();
    assert!(node.read().unwrap_err().starts_with("/etc/cdi/b.yaml: No such file"));
    fs::remove_file(node.at("run/syself/gpu-activated")).unwrap();
    assert_eq!(node.judge(3600), Some(true), "a missing marker is a problem all the same");
}

#[test]
fn a_spec_that_can_be_read_does_not_heal_one_that_cannot() {
    let node = Node::with_gpus(1);
    node.activate();
    node.write("etc/cdi/a.yaml", SPEC);
    node.write("etc/cdi/b.yaml", "\u{0}");
    let mut batch = Batch::default();
    assert_eq!(node.probe(false).read(&mut batch), Outcome::Complete);
    let objects: Vec<_> = batch.readings().map(|reading| reading.object().to_owned()).collect();
    assert_eq!(objects, ["/etc/cdi/b.yaml", "GPUs"]);
}

#[test]
fn hostile_specs_are_refused_on_a_small_stack() {
    let bomb = (1..20).fold("a0: &a0 [x,x]\n".to_owned(), |text, n| {
        let alias = format!("*a{}", n - 1);
        format!("{text}a{n}: &a{n} [{alias},{alias},{alias},{alias}]\n")
    });
    let deep = format!("kind: x/y\ndevices: {}", "[".repeat(500_000));
    let nested = format!("kind: x/y\nother: {}{}", "{a: ".repeat(2000), "}".repeat(2000));
    let wide = format!("kind: x/y\ndevices: [{}]", "{},".repeat(300_000));
    let json = format!(r#"{{"kind":"x/y","other":{}"#, "[".repeat(500_000));
    let texts = [bomb, deep, nested, wide];
    let refused = move || {
        texts.iter().for_each(|text| assert!(Format::Yaml.parse(text.as_bytes()).is_err()));
        assert!(Format::Json.parse(json.as_bytes()).is_err());
        assert!(Format::Yaml.parse(b"\xff\xfe").is_err());
    };
    // That of a probe's thread.
    thread::Builder::new().stack_size(512 * 1024).spawn(refused).unwrap().join().unwrap();
}

#[test]
fn too_long_and_too_many_specs_are_counted() {
    let node = Node::with_gpus(1);
    node.activate();
    node.write("etc/cdi/a.yaml", &"#".repeat(1024 * 1024 + 1));
    assert_eq!(node.read(), Err("/etc/cdi/a.yaml: file too large".to_owned()));
    for number in 0..SPECS_MAX + 4 {
        node.write(&format!("etc/cdi/{number:03}.yaml"), "kind: a/b\n");
    }
    fs::remove_file(node.at("etc/cdi/a.yaml")).unwrap();
    assert_eq!(node.read(), Err("/etc/cdi: 4 more files are not read".to_owned()));
}

#[test]
fn this_machine_s_own_bus_can_be_read() {
    let cdi = vec![PathBuf::from("/etc/cdi"), PathBuf::from("/var/run/cdi")];
    let mut probe = GpuFiles::new("/".into(), "/run/syself/gpu-activated".into(), cdi, false);
    let outcome = probe.read(&mut Batch::default());
    assert!(!matches!(outcome, Outcome::Failed { .. }), "{outcome:?}");
}

/// Returns count, marker and nodes, if they are of this node, or what cannot be read.
fn read(probe: &mut GpuFiles) -> Result<Option<(u32, bool, Option<u32>)>, String> {
    let mut batch = Batch::default();
    let outcome = probe.read(&mut batch);
    let readings: Vec<_> = batch.readings().collect();
    match (outcome, readings.as_slice()) {
        (Outcome::NotApplicable, []) => Ok(None),
        (Outcome::Complete, [Reading::Gpus(gpus)]) => {
            Ok(Some((gpus.count, gpus.marker, gpus.cdi_device_nodes)))
        }
        (Outcome::Complete, [Reading::Unreadable(problem), ..]) => {
            Err(format!("{}: {}", problem.object, problem.why))
        }
        other => panic!("{other:?}"),
    }
}

struct Node {
    folder: tempfile::TempDir,
}

impl Node {
    fn bare() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn with_gpus(count: u32) -> Self {
        let node = Self::bare();
        fs::create_dir_all(node.at("var")).unwrap();
        for number in 0..count {
            node.device(&format!("0000:0{number}:00.0"), "0x10de\n", "0x030200\n");
        }
        node
    }

    /// Makes a device as sysfs has them: a link from the bus to where it is plugged in.
    fn device(&self, address: &str, vendor: &str, class: &str) {
        let bus = self.at("sys/bus/pci/devices");
        fs::create_dir_all(&bus).unwrap();
        self.write(&format!("sys/devices/pci0000:00/{address}/vendor"), vendor);
        self.write(&format!("sys/devices/pci0000:00/{address}/class"), class);
        let link = bus.join(address);
        symlink(format!("../../../devices/pci0000:00/{address}"), link).unwrap();
    }

    fn activate(&self) {
        self.write("run/syself/gpu-activated", "");
    }

    fn probe(&self, expected: bool) -> GpuFiles {
        let cdi = vec![PathBuf::from("/etc/cdi"), PathBuf::from("/var/run/cdi")];
        let root = self.folder.path().to_owned();
        GpuFiles::new(root, "/run/syself/gpu-activated".into(), cdi, expected)
    }

    fn read(&self) -> Result<Option<(u32, bool, Option<u32>)>, String> {
        read(&mut self.probe(false))
    }

    /// Returns whether the core sees a problem, so many seconds after boot.
    fn judge(&self, at_s: u64) -> Option<bool> {
        let mut batch = Batch::default();
        self.probe(false).read(&mut batch);
        let reading = batch.readings().find(|reading| matches!(reading, Reading::Gpus(_)))?;
        let now = Instant::from_millis(at_s * 1000);
        match activation(now, &reading, &Limits::default(), &mut Memory::None) {
            Judgement::Healthy => Some(false),
            Judgement::Problem(_) => Some(true),
            Judgement::NotMine | Judgement::NotYet(_) | Judgement::Unknown(_) => None,
        }
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }
}

/// As `nvidia-ctk cdi generate` writes it, shortened.
const SPEC: &str = "---
cdiVersion: 0.5.0
kind: nvidia.com/gpu
containerEdits:
  deviceNodes:
  - path: /dev/nvidiactl
  - path: /dev/nvidia-uvm
  env:
  - NVIDIA_VISIBLE_DEVICES=void
  hooks:
  - args: [nvidia-cdi-hook, update-ldcache, --folder, /usr/lib/x86_64-linux-gnu]
    hookName: createContainer
    path: /usr/bin/nvidia-cdi-hook
devices:
- name: \"0\"
  containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
    - path: /dev/dri/card1
- name: all
  containerEdits:
    deviceNodes:
    - {path: /dev/nvidia0, major: 195}
";
