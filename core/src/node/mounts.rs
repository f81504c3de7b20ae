//! The node's mount table, by device: whether a device is the node's or a volume's.

use serde::{Deserialize, Serialize};

use crate::bounds::DEVICES_MAX;
use crate::node::rules::Object;
use crate::wire::proc::Mount;
use crate::wire::scan::Scan;

/// Every mounted block device that fits.
///
/// Full means that further devices are counted and not told apart: a fault on one is the node's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mounts {
    devices: heapless::Vec<Device, DEVICES_MAX>,
    omitted: u32,
    read: bool,
}

/// One mounted block device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// The kernel's name of it, such as `sda1` or `dm-3`.
    pub name: Object,
    /// Whose it is.
    pub scope: DeviceScope,
    /// Whether every one of its mounts can be written to.
    pub writable: bool,
    /// How many errors its file system remembers; `None` where none says so.
    pub errors: Option<u64>,
}

/// Whose a device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeviceScope {
    /// It is mounted somewhere outside the kubelet's volume directories.
    Node,
    /// It is mounted only where the kubelet puts the volumes of workloads.
    Volume,
}

impl Mounts {
    /// Reads a mount table in which each line is `NAME ERRORS MOUNTINFO-LINE`.
    ///
    /// `NAME` is the kernel's name of the device, `ERRORS` the error count of its file system or
    /// `-`. Lines that do not parse are left out.
    #[must_use]
    pub fn parse(table: &[u8], kubelet_dir: &[u8]) -> Self {
        let mut mounts = Self { devices: heapless::Vec::new(), omitted: 0, read: true };
        for line in table.split(|byte| *byte == b'\n') {
            if let Some((name, errors, mount)) = parse_line(line) {
                mounts.note(name, errors, &mount, kubelet_dir);
            }
        }
        mounts
    }

    /// Returns the mounted device that the kernel calls `name`.
    #[must_use]
    pub fn device(&self, name: &Object) -> Option<&Device> {
        self.devices.iter().find(|device| device.name == *name)
    }

    /// Returns whether the table lacks `name` for certain.
    #[must_use]
    pub fn lacks(&self, name: &Object) -> bool {
        self.read && self.omitted == 0 && self.device(name).is_none()
    }

    fn note(&mut self, name: &[u8], errors: Option<u64>, mount: &Mount<'_>, kubelet_dir: &[u8]) {
        let name = Object::from_bytes(name);
        let scope = scope_of(mount.mount_point, kubelet_dir);
        let writable = mount.is_writable();
        if let Some(known) = self.devices.iter_mut().find(|device| device.name == name) {
            known.writable &= writable;
            if known.scope == DeviceScope::Volume && scope == DeviceScope::Node {
                known.scope = scope;
            }
            return;
        }
        let device = Device { name, scope, writable, errors };
        if self.devices.push(device).is_err() {
            self.omitted = self.omitted.saturating_add(1);
        }
    }
}

fn parse_line(line: &[u8]) -> Option<(&[u8], Option<u64>, Mount<'_>)> {
    let mut scan = Scan::new(line);
    let name = scan.until(b" ")?;
    let errors = crate::wire::scan::decimal(scan.until(b" ")?);
    Some((name, errors, Mount::parse(scan.rest()).ok()?))
}

/// Below the kubelet's directory, `pods/` and `plugins/` hold volumes of workloads.
fn scope_of(mount_point: &[u8], kubelet_dir: &[u8]) -> DeviceScope {
    let below = mount_point.strip_prefix(kubelet_dir).and_then(|rest| rest.strip_prefix(b"/"));
    match below {
        Some(rest) if rest.starts_with(b"pods/") || rest.starts_with(b"plugins/") => {
            DeviceScope::Volume
        }
        Some(_) | None => DeviceScope::Node,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::format;
    use std::string::String;
    use std::vec::Vec;

    use super::*;

    #[test]
    fn a_device_is_the_nodes_if_any_mount_is() {
        let mounts = table(
            "sda3 0 1 2 8:3 / /var rw - ext4 /dev/sda3 rw\n\
             sdi - 1 2 8:8 / /var/lib/kubelet/plugins/x/globalmount rw - ext4 /dev/sdi rw\n\
             sdi - 1 2 8:8 / /var/lib/kubelet/pods/u/volumes/v rw - ext4 /dev/sdi rw,emergency_ro\n\
             dm-1 7 1 2 9:1 / /var/lib/kubelet/pods/u/v rw - ext4 /dev/mapper/a rw\n\
             dm-1 7 1 2 9:1 / /mnt rw - ext4 /dev/mapper/a rw\n\
             garbage\n",
        );
        let of = |name| mounts.device(&object(name)).map(|d| (d.scope, d.writable, d.errors));
        assert_eq!(of("sda3"), Some((DeviceScope::Node, true, Some(0))));
        assert_eq!(of("sdi"), Some((DeviceScope::Volume, false, None)));
        assert_eq!(of("dm-1"), Some((DeviceScope::Node, true, Some(7))));
        assert!(mounts.lacks(&object("sdz")));
        assert!(!Mounts::default().lacks(&object("sdz")), "a table that was never read lacks none");
    }

    #[test]
    fn only_the_volume_directories_are_volumes() {
        for (mount_point, scope) in [
            ("/var/lib/kubelet", DeviceScope::Node),
            ("/var/lib/kubelet/device-plugins", DeviceScope::Node),
            ("/var/lib/kubelet/pods", DeviceScope::Node),
            ("/var/lib/kubelet/pods/a", DeviceScope::Volume),
            ("/var/lib/kubelet2/pods/a", DeviceScope::Node),
        ] {
            assert_eq!(scope_of(mount_point.as_bytes(), DIR), scope, "{mount_point}");
        }
    }

    #[test]
    fn a_table_that_does_not_fit_is_not_taken_for_all() {
        let lines: String = (0..=DEVICES_MAX)
            .map(|n| format!("sd{n} - 1 2 8:1 / /m{n} rw - ext4 /dev/x rw\n"))
            .collect();
        assert!(!table(&lines).lacks(&object("sdz")));
    }

    proptest! {
        #[test]
        fn parse_never_panics(bytes: Vec<u8>) {
            let _ = Mounts::parse(&bytes, DIR);
        }
    }

    const DIR: &[u8] = b"/var/lib/kubelet";

    fn table(lines: &str) -> Mounts {
        Mounts::parse(lines.as_bytes(), DIR)
    }

    fn object(name: &str) -> Object {
        Object::from_bytes(name.as_bytes())
    }
}
