//! The table of mounted devices says what its lines say.

use fettle_core::bounds::DEVICES_MAX;
use fettle_core::node::mounts::{DeviceScope, Mounts};
use fettle_core::node::rules::Object;
use fettle_core::wire::proc::Mount;

/// Takes `data` as a table with the kernel's name and the error count before each line.
pub fn target(data: &[u8]) {
    let mounts = Mounts::parse(data, DIR);
    let lines: Vec<_> = data.split(|byte| *byte == b'\n').filter_map(line).collect();
    for (name, mount) in lines.iter().take(DEVICES_MAX) {
        let device = mounts.device(name).expect("a device that is mounted is known");
        assert!(mount.is_writable() || !device.writable, "one mount that is not is enough");
        let is_node = !mount.mount_point.starts_with(DIR);
        assert!(!is_node || device.scope == DeviceScope::Node, "one mount outside is enough");
        assert!(!mounts.lacks(name));
    }
    let unknown = Object::from_bytes(b" is no name");
    assert_eq!(mounts.lacks(&unknown), distinct(&lines) <= DEVICES_MAX);
}

fn line(line: &[u8]) -> Option<(Object, Mount<'_>)> {
    let mut parts = line.splitn(3, |byte| *byte == b' ');
    let (name, _errors, mount) = (parts.next()?, parts.next()?, parts.next()?);
    Some((Object::from_bytes(name), Mount::parse(mount).ok()?))
}

fn distinct(lines: &[(Object, Mount<'_>)]) -> usize {
    lines.iter().map(|(name, _)| name).collect::<std::collections::BTreeSet<_>>().len()
}

const DIR: &[u8] = b"/var/lib/kubelet";
