//! Confirms faults of file systems: ext4, XFS, btrfs, and whatever is remounted read-only.

use super::Meaning;
use super::finding::{Detail, ReadonlyHow};
use crate::wire::scan::Scan;

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
    let shut =
        scan.rest().starts_with(b"Filesystem has been shut down due to ") || ends_in_shutdown(scan);
    let how = ReadonlyHow::XfsShutdown;
    shut.then_some((device, Detail::Readonly { how }))
}

/// Accepts text that ends in `Shutting down filesystem`, `.` or `: DEV`.
///
/// What stands before may quote anything: a task may call itself `XFS (a): ` and fault in a file
/// with these words in its name, but then `[ADDRESS+LENGTH]` follows.
fn ends_in_shutdown(mut scan: Scan<'_>) -> bool {
    if scan.until_last(b"Shutting down filesystem").is_none() {
        return false;
    }
    if scan.literal(b": ").is_some() {
        return scan.run(is_name_byte).is_some() && scan.at_end();
    }
    let _ = scan.literal(b".");
    scan.at_end()
}

/// Takes `XFS (DEV): `, or `Filesystem "DEV": ` as kernels up to 2.6 print it.
fn xfs_device<'a>(scan: &mut Scan<'a>) -> Option<&'a [u8]> {
    let end: &[u8] = match scan.one_of(&[b"XFS (", b"Filesystem \"", b"Filesystem "])? {
        0 => b"): ",
        1 => b"\": ",
        _ => b": ",
    };
    let device = scan.run(is_name_byte)?;
    scan.literal(end)?;
    Some(device)
}

/// Accepts what stands in the name of a block device.
fn is_name_byte(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.!/".contains(byte)
}

/// Confirms `BTRFS info (device DEV state EA): forced readonly`.
///
/// `fs/btrfs/super.c`, `fs/btrfs/fs.c` (`__btrfs_handle_fs_error`).
pub(super) fn btrfs_forced_readonly(text: &[u8]) -> Option<Meaning<'_>> {
    let mut scan = Scan::new(text);
    let device = match scan.one_of(&[b"BTRFS", b"btrfs is "])? {
        0 => btrfs_device(&mut scan)?,
        _ => &[],
    };
    scan.literal(b"forced readonly")?;
    let how = ReadonlyHow::BtrfsForced;
    scan.at_end().then_some((device, Detail::Readonly { how }))
}

/// Takes ` info (device DEV state EA): `, ` info (device DEV: state EA): ` or `: `.
fn btrfs_device<'a>(scan: &mut Scan<'a>) -> Option<&'a [u8]> {
    if scan.literal(b": ").is_some() {
        return Some(&[]);
    }
    scan.literal(b" ")?;
    scan.run(u8::is_ascii_lowercase)?;
    if scan.literal(b": ").is_some() {
        return Some(&[]);
    }
    scan.literal(b" (device ")?;
    let device = scan.run(is_name_byte)?;
    scan.until(b"): ")?;
    Some(device)
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
        _ => {
            let device = ahead.run(is_name_byte)?;
            ahead.literal(b"): ")?;
            device
        }
    };
    *scan = ahead;
    Some(device)
}

/// Returns the device in `(device DEV)` or `(device DEV state EA)`.
fn device_in_parentheses(text: &[u8]) -> Option<&[u8]> {
    let mut scan = Scan::new(text);
    scan.literal(b"(device ")?;
    scan.run(is_name_byte)
}
