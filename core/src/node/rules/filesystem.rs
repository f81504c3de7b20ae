//! Confirms faults of file systems: ext4, XFS, btrfs, and whatever is remounted read-only.

use super::Meaning;
use super::finding::{Detail, ReadonlyHow};
use crate::wire::scan::{Scan, find, has};

/// Confirms `EXT4-fs (DEV): Remounting filesystem read-only`.
///
/// `fs/ext4/super.c`, `fs/f2fs/super.c`, `fs/nilfs2/super.c`; ext3 of 2.6 prints no device.
pub(super) fn readonly_remount(text: &[u8]) -> Option<Meaning<'_>> {
    let mut scan = Scan::new(text);
    let device = driver_and_device(&mut scan).unwrap_or(b"");
    scan.literal(b"Remounting filesystem read-only")?;
    let _ = scan.literal(b".");
    let how = ReadonlyHow::Remount;
    scan.at_end().then_some((device, Detail::Readonly { how }))
}

/// Confirms a line with which XFS says that it has shut a file system down.
///
/// `fs/xfs/xfs_fsops.c` (`xfs_do_force_shutdown`), `fs/xfs/xfs_log.c`.
pub(super) fn xfs_shutdown(text: &[u8]) -> Option<Meaning<'_>> {
    let mut scan = Scan::new(text);
    let device = xfs_device(&mut scan)?;
    let said = scan.rest();
    let shut = has(said, b"Shutting down filesystem")
        || said.starts_with(b"Filesystem has been shut down due to ");
    let how = ReadonlyHow::XfsShutdown;
    shut.then_some((device, Detail::Readonly { how }))
}

/// Takes `XFS (DEV): `, or `Filesystem "DEV": ` as kernels up to 2.6 print it.
fn xfs_device<'a>(scan: &mut Scan<'a>) -> Option<&'a [u8]> {
    match scan.one_of(&[b"XFS (", b"Filesystem \"", b"Filesystem "])? {
        0 => scan.until(b"): "),
        1 => scan.until(b"\": "),
        _ => scan.until(b": "),
    }
}

/// Confirms `BTRFS info (device DEV state EA): forced readonly`.
///
/// `fs/btrfs/super.c`, `fs/btrfs/fs.c` (`__btrfs_handle_fs_error`).
pub(super) fn btrfs_forced_readonly(text: &[u8]) -> Option<Meaning<'_>> {
    let mut scan = Scan::new(text);
    let rest = match scan.one_of(&[b"BTRFS", b"btrfs"])? {
        0 => scan.until(b": ").map(|head| (head, scan.rest())),
        _ => scan.literal(b" is ").map(|()| (&[][..], scan.rest())),
    };
    let (head, said) = rest?;
    let device = find(head, b"(device ").and_then(|_| device_in_parentheses(head)).unwrap_or(b"");
    let how = ReadonlyHow::BtrfsForced;
    Scan::new(said.strip_prefix(b"forced readonly")?)
        .at_end()
        .then_some((device, Detail::Readonly { how }))
}

/// Confirms `EXT4-fs error (device DEV)`; `EXT4-fs error: N callbacks suppressed` is none.
pub(super) fn ext4_error(text: &[u8]) -> Option<Meaning<'_>> {
    Some((ext4_device(text, b"EXT4-fs error ")?, Detail::Ext4Error))
}

/// Confirms `EXT4-fs warning (device DEV)`.
pub(super) fn ext4_warning(text: &[u8]) -> Option<Meaning<'_>> {
    Some((ext4_device(text, b"EXT4-fs warning ")?, Detail::Ext4Warning))
}

fn ext4_device<'a>(text: &'a [u8], head: &[u8]) -> Option<&'a [u8]> {
    device_in_parentheses(text.strip_prefix(head)?)
}

/// Takes `EXT4-fs (DEV): ` or `EXT4-fs: `, and returns the device if there is one.
fn driver_and_device<'a>(scan: &mut Scan<'a>) -> Option<&'a [u8]> {
    let mut ahead = *scan;
    ahead.run(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())?;
    let _ = ahead.literal(b"-fs");
    let device = match ahead.one_of(&[b": ", b" ("])? {
        0 => &[][..],
        _ => ahead.until(b"): ")?,
    };
    *scan = ahead;
    Some(device)
}

/// Returns the device in `(device DEV)` or `(device DEV state EA)`.
fn device_in_parentheses(text: &[u8]) -> Option<&[u8]> {
    let mut scan = Scan::new(text);
    scan.until(b"(device ")?;
    let inside = scan.until(b")")?;
    Scan::new(inside).word()
}
