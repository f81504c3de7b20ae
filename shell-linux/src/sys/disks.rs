//! The disks of the node, and how each is attached.
//!
//! `Documentation/ABI/stable/sysfs-block`; `drivers/scsi/scsi_transport_iscsi.c` (`session%u`);
//! `dm_uuid` of multipath-tools (`mpath-`).

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

use fettle_core::node::reading::Attachment;

use super::file;

/// One disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// Its name, as the kernel log has it.
    pub name: String,
    /// How it is attached.
    pub attachment: Attachment,
}

/// Returns the disks below `root`, in the order of their names; `None` if no kernel lists them.
///
/// Leaves out devices that the kernel makes by itself: loops, RAM disks, mapped devices.
/// `removable` says nothing here: drives in hot-swap bays set it, too.
///
/// # Errors
///
/// Returns what the operating system says.
pub fn disks(root: &Path) -> io::Result<Option<Vec<Disk>>> {
    let folder = root.join("sys/block");
    let Some((names, _)) = file::names(&folder)? else {
        return Ok(None);
    };
    let disk = |name: &std::ffi::OsString| {
        let place = std::fs::read_link(folder.join(name)).ok()?;
        if place.components().any(|part| part.as_os_str() == "virtual") {
            return None;
        }
        // `cciss/c0d0` would be a folder.
        let shown = name.to_str()?.replace('!', "/");
        Some(Disk { name: shown, attachment: attachment(&folder, name, &place) })
    };
    Ok(Some(names.iter().filter_map(disk).collect()))
}

/// The folders that a device stands in name the buses that it hangs on.
fn attachment(folder: &Path, name: &OsStr, place: &Path) -> Attachment {
    let stands_in = |prefix: &[u8]| place.components().any(|part| is_numbered(part, prefix));
    if stands_in(b"usb") {
        Attachment::Usb
    } else if stands_in(b"session") {
        Attachment::Iscsi
    } else if is_path(folder, name) {
        Attachment::MultipathChild
    } else {
        Attachment::Direct
    }
}

fn is_numbered(part: Component<'_>, prefix: &[u8]) -> bool {
    let digits = part.as_os_str().as_bytes().strip_prefix(prefix);
    digits.is_some_and(|digits| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit))
}

/// Returns whether a multipath device holds the disk.
fn is_path(folder: &Path, name: &OsStr) -> bool {
    let holders = file::names(&folder.join(name).join("holders"));
    let Ok(Some((holders, _))) = holders else {
        return false;
    };
    holders.iter().any(|holder| {
        let uuid = file::line(&folder.join(holder).join("dm/uuid"));
        uuid.is_some_and(|uuid| uuid.starts_with("mpath-"))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_disk_is_attached_as_its_place_says() {
        use Attachment::{Direct, Iscsi, MultipathChild, Usb};
        let root = tempfile::tempdir().unwrap();
        assert_eq!(disks(root.path()).unwrap(), None);
        let want = [
            ("cciss!c0d0", "pci0000:00/0000:06:00.0/cciss0", Some(Direct)),
            ("dm-0", "virtual", None),
            ("nvme0n1", "pci0000:00/0000:01:00.0/nvme/nvme0", Some(Direct)),
            ("sda", "pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0", Some(Direct)),
            (
                "sdb",
                "pci0000:00/0000:00:14.0/usb2/2-1/2-1:1.0/host6/target6:0:0/6:0:0:0",
                Some(Usb),
            ),
            ("sdc", "platform/host7/session1/target7:0:0/7:0:0:0", Some(Iscsi)),
            (
                "sdd",
                "pci0000:00/0000:05:00.0/host8/rport-8:0-0/target8:0:0/8:0:0:0",
                Some(MultipathChild),
            ),
            ("vda", "pci0000:00/0000:00:05.0/virtio2", Some(Direct)),
        ];
        for (name, place, _) in want {
            add(root.path(), name, place);
        }
        let block = root.path().join("sys/block");
        fs::create_dir(block.join("dm-0/dm")).unwrap();
        fs::write(block.join("dm-0/dm/uuid"), "mpath-3600a098000\n").unwrap();
        fs::create_dir_all(block.join("sdd/holders/dm-0")).unwrap();
        fs::create_dir_all(block.join("sda/holders/dm-1")).unwrap();
        let want = want.into_iter().filter_map(|(name, _, attachment)| {
            Some(Disk { name: name.replace('!', "/"), attachment: attachment? })
        });
        assert_eq!(disks(root.path()).unwrap().unwrap(), want.collect::<Vec<_>>());
    }

    fn add(root: &Path, name: &str, place: &str) {
        let place = format!("devices/{place}/block/{name}");
        fs::create_dir_all(root.join("sys/block")).unwrap();
        fs::create_dir_all(root.join("sys").join(&place)).unwrap();
        symlink(Path::new("..").join(place), root.join("sys/block").join(name)).unwrap();
    }
}
