//! The disks of a node whose I/O errors say nothing about the node.

use serde::{Deserialize, Serialize};

use crate::bounds::{DISK_NAME_MAX, FOREIGN_DISKS_MAX};
use crate::node::reading::{Attachment, Disk};
use crate::text::Text;

/// The names of the disks that are attached so that they do not count for `DisksFailure`.
///
/// A disk keeps its place when it goes: what is pulled out fails afterwards, and the name is
/// another disk's only once a reading says so. Full means that the disk named longest ago counts
/// again until it is read anew.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignDisks {
    names: heapless::Vec<DiskName, FOREIGN_DISKS_MAX>,
}

type DiskName = Text<DISK_NAME_MAX>;

impl ForeignDisks {
    /// Returns a node all of whose disks count.
    #[must_use]
    pub const fn new() -> Self {
        Self { names: heapless::Vec::new() }
    }

    /// Notes how a disk is attached.
    pub fn note(&mut self, disk: &Disk<'_>) {
        let name = DiskName::from_bytes(disk.name.as_bytes());
        self.names.retain(|known| *known != name);
        if counts(disk) {
            return;
        }
        if self.names.is_full() {
            self.names.remove(0);
        }
        let _ = self.names.push(name);
    }

    /// Returns whether the disk called `name` does not count.
    #[must_use]
    pub fn contains(&self, name: &[u8]) -> bool {
        self.names.iter().any(|known| known.as_str().as_bytes() == name)
    }
}

/// The namespaces of an NVMe drive always count (decisions, `DisksFailure`).
fn counts(disk: &Disk<'_>) -> bool {
    match disk.attachment {
        Attachment::Direct => true,
        Attachment::Iscsi | Attachment::MultipathChild | Attachment::Usb => {
            disk.name.starts_with("nvme")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::format;

    use super::*;

    #[test]
    fn a_name_is_foreign_as_the_last_reading_of_it_says() {
        let mut foreign = ForeignDisks::new();
        // name, attachment, whether it is foreign then
        for (name, attachment, want) in [
            ("sda", Attachment::Direct, false),
            ("sdb", Attachment::Usb, true),
            ("sdb", Attachment::Usb, true),
            ("sdb", Attachment::Direct, false),
            ("sdc", Attachment::Iscsi, true),
            ("sdd", Attachment::MultipathChild, true),
            ("nvme0n1", Attachment::MultipathChild, false),
        ] {
            foreign.note(&Disk { name, attachment });
            assert_eq!(foreign.contains(name.as_bytes()), want, "{name} {attachment:?}");
        }
        assert!(foreign.contains(b"sdc") && !foreign.contains(b"sd") && !foreign.contains(b""));
    }

    #[test]
    fn the_disk_named_longest_ago_makes_room() {
        let mut foreign = ForeignDisks::new();
        for number in 0..=FOREIGN_DISKS_MAX {
            let name = format!("sd{number}");
            foreign.note(&Disk { name: &name, attachment: Attachment::Usb });
        }
        assert!(!foreign.contains(b"sd0") && foreign.contains(b"sd1"));
        assert_eq!(foreign.names.len(), FOREIGN_DISKS_MAX);
    }
}
