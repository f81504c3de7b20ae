//! The local file systems of the node, out of its mount table.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use fettle_core::wire::proc::Mount;
use fettle_core::wire::scan::decimal;

use crate::sys::file::shown;

/// The local file systems that can be written to.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// They, by their device.
    pub(super) locals: BTreeMap<(u32, u32), Local>,
    /// How many more there are.
    pub(super) omitted: u64,
}

/// A local file system.
#[derive(Debug)]
pub(super) struct Local {
    /// What is mounted, safe to show.
    pub(super) source: String,
    /// Its type, safe to show.
    pub(super) fs_type: String,
    /// Whether the kernel has stopped writes to it, although it was mounted to be written to.
    pub(super) stopped: bool,
    /// Where it is mounted: the shortest paths, shortest first.
    pub(super) places: Vec<Place>,
}

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// Its number, which no other mount has while someone still waits in this one.
    pub(super) id: u64,
    /// The mount point, as the node calls it.
    pub(super) path: PathBuf,
}

/// Reads the mount table of process 1 below `root`, which is the node's, or else the agent's own.
///
/// # Errors
///
/// Returns why neither can be read.
pub(super) fn read(root: &Path, kubelet_dir: &Path) -> io::Result<Table> {
    let kubelet_dir = kubelet_dir.as_os_str().as_bytes();
    if let Ok(file) = File::open(root.join("proc/1/mountinfo")) {
        return Ok(parse(file, b"", kubelet_dir)?.0);
    }
    // In the agent's own table, mount points begin with the root that it sees the node below.
    let prefix = root.as_os_str().as_bytes();
    let prefix = prefix.strip_suffix(b"/").unwrap_or(prefix);
    match parse(File::open("/proc/self/mountinfo")?, prefix, kubelet_dir)? {
        (_, 0) => Err(io::Error::new(io::ErrorKind::NotFound, "nothing is mounted at the root")),
        (table, _) => Ok(table),
    }
}

/// Returns the table, and how many mounts there are below `prefix`, of whatever kind.
fn parse(file: File, prefix: &[u8], kubelet_dir: &[u8]) -> io::Result<(Table, u64)> {
    let mut reader = BufReader::new(file.take(TABLE_BYTES_MAX));
    let (mut table, mut line, mut count, mut read) = (Table::default(), Vec::new(), 0, 0);
    loop {
        line.clear();
        read += u64::try_from(reader.read_until(b'\n', &mut line)?).unwrap_or(u64::MAX);
        if read >= TABLE_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the mount table has no end"));
        }
        let Some(line) = line.strip_suffix(b"\n") else {
            return Ok((table, count));
        };
        if let Some((mount, place)) = parse_line(line, prefix) {
            count += 1;
            if is_local(&mount) && !is_volume(place.path.as_os_str().as_bytes(), kubelet_dir) {
                table.add(&mount, place);
            }
        }
    }
}

fn parse_line<'a>(line: &'a [u8], prefix: &[u8]) -> Option<(Mount<'a>, Place)> {
    let mount = Mount::parse(line).ok()?;
    let id = decimal(line.split(|byte| *byte == b' ').next()?)?;
    let mut path = unescaped(mount.mount_point);
    path.drain(..path.starts_with(prefix).then_some(prefix.len())?);
    if path.is_empty() {
        path.push(b'/');
    }
    // `/hostile` is not below `/host`.
    let path = (path.first() == Some(&b'/')).then(|| PathBuf::from(OsString::from_vec(path)))?;
    Some((mount, Place { id, path }))
}

impl Table {
    fn add(&mut self, mount: &Mount<'_>, place: Place) {
        if self.locals.len() >= LOCALS_MAX && !self.locals.contains_key(&mount.device) {
            self.omitted = self.omitted.saturating_add(1);
            return;
        }
        let local = self.locals.entry(mount.device).or_insert_with(|| Local {
            source: shown(&unescaped(mount.source)),
            fs_type: shown(mount.file_system),
            stopped: false,
            places: Vec::new(),
        });
        local.stopped |= !mount.is_writable();
        // A later mount at the same path hides the earlier one.
        local.places.retain(|earlier| earlier.path != place.path);
        local.places.push(place);
        local.places.sort_by(|a, b| length(a).cmp(&length(b)).then_with(|| a.path.cmp(&b.path)));
        local.places.truncate(PLACES_MAX);
    }
}

/// Returns whether a mount can be written to and has the node's own storage behind it.
///
/// What has no block device has the major number 0: network, pseudo and memory file systems, and
/// overlays, whose upper layer is counted where it lies. A mount that was asked to be read-only has
/// `ro` among its own options; where the kernel stopped writes by itself, only the file system has.
fn is_local(mount: &Mount<'_>) -> bool {
    let is = |types: &[&[u8]]| types.contains(&mount.file_system);
    let read_only = mount.options.split(|byte| *byte == b',').any(|option| option == b"ro");
    !read_only && !is(&IMAGES) && (mount.device.0 != 0 || is(&OWN_NUMBERS))
}

/// Below the kubelet's directory, `pods/` and `plugins/` hold volumes of workloads.
fn is_volume(path: &[u8], kubelet_dir: &[u8]) -> bool {
    let kubelet_dir = kubelet_dir.strip_suffix(b"/").unwrap_or(kubelet_dir);
    let below = path.strip_prefix(kubelet_dir).and_then(|rest| rest.strip_prefix(b"/"));
    below.is_some_and(|rest| rest.starts_with(b"pods/") || rest.starts_with(b"plugins/"))
}

/// Undoes `\NNN`, by which the table keeps white space and `\` out of its fields.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::with_capacity(field.len()), field);
    while let [first, after @ ..] = rest {
        let escaped = match (first, after) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..]) => {
                Some((((a - b'0') << 6) | ((b - b'0') << 3) | (c - b'0'), after))
            }
            _ => None,
        };
        let (byte, after) = escaped.unwrap_or((*first, after));
        bytes.push(byte);
        rest = after;
    }
    bytes
}

fn length(place: &Place) -> usize {
    place.path.as_os_str().len()
}

/// Images are full by nature; those on a block device would count as local.
const IMAGES: [&[u8]; 6] = [b"cramfs", b"erofs", b"iso9660", b"romfs", b"squashfs", b"udf"];

/// Local file systems that are on several devices, or on none, and have a number of their own.
const OWN_NUMBERS: [&[u8]; 4] = [b"bcachefs", b"btrfs", b"ubifs", b"zfs"];

/// More than any node has; what is beyond is counted.
const LOCALS_MAX: usize = 10_000;

/// Paths by which one file system can be asked, should others be hidden by a later mount.
const PLACES_MAX: usize = 4;

/// 100,000 mounts with overlays of many layers.
const TABLE_BYTES_MAX: u64 = 64 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_what_is_local_and_can_be_written_to_is_kept() {
        // device, mount point, options, type, file system options, kept
        for (device, point, options, kind, own, kept) in [
            ("8:1", "/var", "rw,relatime", "ext4", "rw", true),
            ("0:40", "/data", "rw", "btrfs", "rw", true),
            ("0:41", "/tank", "rw", "zfs", "rw", true),
            ("7:1", "/mnt/ntfs", "rw", "fuseblk", "rw,user_id=0", true),
            ("8:1", "/var", "rw", "ext4", "rw,emergency_ro", true),
            ("8:1", "/var", "rw", "ext4", "ro,errors=remount-ro", true),
            ("8:1", "/boot", "ro,nosuid", "ext4", "ro", false),
            ("8:1", "/boot", "ro", "ext4", "rw", false),
            ("7:0", "/snap", "rw", "squashfs", "rw", false),
            ("7:0", "/usr", "rw", "erofs", "rw", false),
            ("11:0", "/cd", "rw", "iso9660", "rw", false),
            ("0:50", "/nfs", "rw", "nfs4", "rw", false),
            ("0:51", "/sshfs", "rw", "fuse.sshfs", "rw", false),
            ("0:52", "/run", "rw", "tmpfs", "rw", false),
            ("0:53", "/o", "rw", "overlay", "rw,upperdir=/var/o", false),
            ("8:2", "/var/lib/kubelet", "rw", "xfs", "rw", true),
            ("8:2", "/var/lib/kubelet/pods/u/v", "rw", "xfs", "rw", false),
            ("8:2", "/var/lib/kubelet/plugins/p/globalmount", "rw", "ext4", "rw", false),
            ("8:2", "/var/lib/kubelet/plugins_registry", "rw", "ext4", "rw", true),
        ] {
            let line = format!("30 1 {device} / {point} {options} - {kind} source {own}\n");
            assert_eq!(table(&line).locals.len(), usize::from(kept), "{line}");
        }
    }

    #[test]
    fn a_device_counts_once_at_its_shortest_path() {
        let table = table(
            "30 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
             31 1 8:1 /d /var/lib/kubelet/pods/u/volume-subpaths rw - ext4 /dev/sda1 rw\n\
             32 1 8:1 /h /etc/hosts rw - ext4 /dev/sda1 rw\n\
             33 1 8:2 / /long/path rw - ext4 /dev/sda2 rw\n\
             34 1 8:2 / /short rw - ext4 /dev/sda2 rw\n\
             35 1 8:2 / /short rw - ext4 /dev/sda2 rw\n\
             garbage\n",
        );
        let places = |device| {
            table.locals[&device].places.iter().map(|p| (p.id, p.path.to_str().unwrap())).collect()
        };
        let (one, other): (Vec<_>, Vec<_>) = (places((8, 1)), places((8, 2)));
        assert_eq!(one, [(30, "/"), (32, "/etc/hosts")]);
        assert_eq!(other, [(35, "/short"), (33, "/long/path")]);
    }

    #[test]
    fn escapes_are_undone() {
        for (field, want) in [
            (&b"/a\\040b\\011\\012\\134"[..], &b"/a b\t\n\\"[..]),
            (b"/a\\04", b"/a\\04"),
            (b"/a\\999\\", b"/a\\999\\"),
            (b"/\\377", b"/\xff"),
            (b"/\\477", b"/\\477"),
        ] {
            assert_eq!(unescaped(field), want);
        }
    }

    #[test]
    fn the_agents_own_table_is_told_as_the_node_would() {
        let text = b"30 1 8:1 / /host rw - ext4 a rw\n31 1 8:2 / /host/var rw - ext4 b rw\n\
                     32 1 8:3 / /hostile rw - ext4 c rw\n33 1 8:4 / / rw - ext4 d rw\n";
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mountinfo");
        fs::write(&path, text).unwrap();
        let (table, count) = parse(File::open(&path).unwrap(), b"/host", b"/k").unwrap();
        let paths: Vec<_> =
            table.locals.values().map(|local| local.places[0].path.clone()).collect();
        assert_eq!((paths, count), (vec!["/".into(), "/var".into()], 2));
        assert!(read(folder.path(), Path::new("/k")).is_err(), "no root is not an empty one");
    }

    #[test]
    fn ten_thousand_mounts_and_one_more_are_counted() {
        let line = |n: u32| format!("{n} 1 259:{n} / /m/{n} rw - ext4 /dev/n{n} rw\n");
        let table = table(&(0..10_001).map(line).collect::<String>());
        assert_eq!((table.locals.len(), table.omitted), (10_000, 1));
    }

    fn table(text: &str) -> Table {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("proc/1")).unwrap();
        fs::write(folder.path().join("proc/1/mountinfo"), text).unwrap();
        read(folder.path(), Path::new("/var/lib/kubelet/")).unwrap()
    }
}
