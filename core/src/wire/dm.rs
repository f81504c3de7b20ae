//! What the device mapper says of its devices.
//!
//! `include/uapi/linux/dm-ioctl.h`; `list_devices` and `retrieve_status` in
//! `drivers/md/dm-ioctl.c`; `Documentation/admin-guide/device-mapper/verity.rst`.

use crate::wire::binary::{string_at, u32_at, u64_at};
use crate::wire::scan::Scan;

/// The reply to one request to the device mapper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply<'a> {
    /// The device asked about; empty in a list of all devices.
    pub name: &'a [u8],
    flags: u32,
    target_count: u32,
    data: &'a [u8],
}

/// Why bytes are no reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyError {
    /// An entry does not end inside the reply, or points outside.
    Entry,
    /// The header is incomplete.
    Header,
}

impl<'a> Reply<'a> {
    /// Parses the buffer that the kernel filled.
    ///
    /// # Errors
    ///
    /// [`ReplyError::Header`] if the header is incomplete.
    pub fn parse(buffer: &'a [u8]) -> Result<Self, ReplyError> {
        Self::fields(buffer).ok_or(ReplyError::Header)
    }

    fn fields(buffer: &'a [u8]) -> Option<Self> {
        let end = usize::try_from(u32_at(buffer, 12)?).ok()?;
        let start = usize::try_from(u32_at(buffer, 16)?).ok()?;
        Some(Self {
            name: string_at(buffer.get(..NAME_END)?, 48)?,
            flags: u32_at(buffer, 28)?,
            target_count: u32_at(buffer, 20)?,
            // Where there is nothing to say, the reply ends before its data.
            data: buffer.get(start..end).unwrap_or_default(),
        })
    }

    /// Returns whether the buffer was too small for what there was to say.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.flags & BUFFER_FULL != 0
    }

    /// Returns the devices, if the request asked for a list.
    #[must_use]
    pub const fn devices(&self) -> Devices<'a> {
        Devices { rest: self.data }
    }

    /// Returns the targets, if the request asked for the status or the table of a device.
    #[must_use]
    pub const fn targets(&self) -> Targets<'a> {
        Targets { data: self.data, next: 0, left: self.target_count }
    }
}

/// One device of the device mapper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Device<'a> {
    /// Its number, as the kernel encodes it in this interface.
    pub encoded: u64,
    /// Its name, without a slash but otherwise of any bytes.
    pub name: &'a [u8],
}

impl Device<'_> {
    /// Returns major and minor number.
    #[must_use]
    pub fn numbers(&self) -> (u32, u32) {
        let major = (self.encoded >> 8) & 0xfff;
        let minor = (self.encoded & 0xff) | ((self.encoded >> 12) & 0xf_ff00);
        (u32::try_from(major).unwrap_or(u32::MAX), u32::try_from(minor).unwrap_or(u32::MAX))
    }
}

/// The devices of a list; ends after the first error.
#[derive(Debug, Clone)]
pub struct Devices<'a> {
    rest: &'a [u8],
}

impl<'a> Devices<'a> {
    fn take(&mut self) -> Option<Device<'a>> {
        let entry = core::mem::take(&mut self.rest);
        let encoded = u64_at(entry, 0)?;
        let next = usize::try_from(u32_at(entry, 8)?).ok()?;
        let name = string_at(entry, DEVICE_HEADER)?;
        if next != 0 {
            // An entry that points into its own header would be read for ever.
            self.rest = entry.get(next..).filter(|_| next > DEVICE_HEADER)?;
        }
        Some(Device { encoded, name })
    }
}

impl<'a> Iterator for Devices<'a> {
    type Item = Result<Device<'a>, ReplyError>;

    fn next(&mut self) -> Option<Self::Item> {
        // Device 0 is none: so the kernel says that its list is empty.
        if self.rest.is_empty() || u64_at(self.rest, 0) == Some(0) {
            return None;
        }
        Some(self.take().ok_or(ReplyError::Entry))
    }
}

/// One target: a stretch of sectors that one kind of mapping serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target<'a> {
    /// First sector.
    pub start: u64,
    /// Number of sectors.
    pub length: u64,
    /// The kind, such as `verity`.
    pub kind: &'a [u8],
    /// The status or the table line, as the request asked.
    pub parameters: &'a [u8],
}

/// The targets of a device; ends after the first error.
#[derive(Debug, Clone)]
pub struct Targets<'a> {
    data: &'a [u8],
    next: usize,
    left: u32,
}

impl<'a> Targets<'a> {
    fn take(&mut self, left: u32) -> Option<Target<'a>> {
        self.left = 0;
        let at = self.next;
        let entry = self.data.get(at..)?;
        let kind = entry.get(24..TARGET_HEADER)?;
        let target = Target {
            start: u64_at(entry, 0)?,
            length: u64_at(entry, 8)?,
            kind: string_at(kind, 0).unwrap_or(kind),
            parameters: string_at(entry, TARGET_HEADER)?,
        };
        self.next = usize::try_from(u32_at(entry, 20)?).ok()?;
        if left > 0 && self.next <= at {
            return None;
        }
        self.left = left;
        Some(target)
    }
}

impl<'a> Iterator for Targets<'a> {
    type Item = Result<Target<'a>, ReplyError>;

    fn next(&mut self) -> Option<Self::Item> {
        let left = self.left.checked_sub(1)?;
        Some(self.take(left).ok_or(ReplyError::Entry))
    }
}

/// The table line of a verity target: what the kernel is enforcing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerityTable<'a> {
    /// Version of the format on disk.
    pub version: u32,
    /// Device with the data, as `MAJOR:MINOR`.
    pub data_device: &'a [u8],
    /// Device with the hashes, as `MAJOR:MINOR`.
    pub hash_device: &'a [u8],
    /// Size of a block of data.
    pub data_block_bytes: u32,
    /// Size of a block of hashes.
    pub hash_block_bytes: u32,
    /// Number of blocks of data.
    pub data_blocks: u64,
    /// Block of the hash device at which the hashes begin.
    pub hash_start: u64,
    /// Name of the hash, such as `sha256`.
    pub algorithm: &'a [u8],
    /// The root digest, in hexadecimal digits.
    pub root_digest: &'a [u8],
    /// The salt, in hexadecimal digits; empty where there is none.
    pub salt: &'a [u8],
    /// Optional parameters with their count before them; mostly empty.
    pub options: &'a [u8],
}

/// Why text is no table line of a verity target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerityTableError {
    /// The root digest or the salt is not hexadecimal.
    Digest,
    /// A field that must be a number is none, or does not fit.
    Number,
    /// There are fewer fields than each kernel prints.
    Short,
}

impl<'a> VerityTable<'a> {
    /// Parses the parameters of the target.
    ///
    /// # Errors
    ///
    /// See [`VerityTableError`].
    pub fn parse(parameters: &'a [u8]) -> Result<Self, VerityTableError> {
        let mut scan = Scan::new(parameters);
        let table = Self {
            version: small(&mut scan)?,
            data_device: field(&mut scan)?,
            hash_device: field(&mut scan)?,
            data_block_bytes: small(&mut scan)?,
            hash_block_bytes: small(&mut scan)?,
            data_blocks: number(&mut scan)?,
            hash_start: number(&mut scan)?,
            algorithm: field(&mut scan)?,
            root_digest: digest(field(&mut scan)?)?,
            salt: match field(&mut scan)? {
                b"-" => b"",
                salt => digest(salt)?,
            },
            options: scan.rest().trim_ascii(),
        };
        Ok(table)
    }
}

/// Takes the next field and the spaces before it.
fn field<'a>(scan: &mut Scan<'a>) -> Result<&'a [u8], VerityTableError> {
    scan.run(|byte| *byte == b' ');
    scan.word().ok_or(VerityTableError::Short)
}

fn number(scan: &mut Scan<'_>) -> Result<u64, VerityTableError> {
    crate::wire::scan::decimal(field(scan)?).ok_or(VerityTableError::Number)
}

fn small(scan: &mut Scan<'_>) -> Result<u32, VerityTableError> {
    u32::try_from(number(scan)?).map_err(|_| VerityTableError::Number)
}

fn digest(digits: &[u8]) -> Result<&[u8], VerityTableError> {
    let pairs = digits.len() & 1 == 0;
    if pairs && digits.iter().all(u8::is_ascii_hexdigit) {
        Ok(digits)
    } else {
        Err(VerityTableError::Digest)
    }
}

/// The status of a verity target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerityStatus {
    /// Whether each block read since the table was loaded matched its hash.
    pub good: bool,
    /// Blocks that forward error correction repaired, where it is in use and the kernel counts
    /// them.
    pub corrected: Option<u64>,
}

/// Why text is no status of a verity target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerityStatusError {
    /// It is neither `V` nor `C`.
    Letter,
    /// What follows the letter is neither a count nor `-`.
    Corrected,
}

impl VerityStatus {
    /// Parses the parameters of the target: `V` or `C`, from 6.19 on also a count or `-`.
    ///
    /// # Errors
    ///
    /// See [`VerityStatusError`].
    pub fn parse(parameters: &[u8]) -> Result<Self, VerityStatusError> {
        let mut scan = Scan::new(parameters);
        let good = match scan.word() {
            Some(b"V") => true,
            Some(b"C") => false,
            Some(_) | None => return Err(VerityStatusError::Letter),
        };
        if scan.at_end() || scan.rest() == b" -" {
            return Ok(Self { good, corrected: None });
        }
        let count = scan.literal(b" ").and_then(|()| scan.number());
        let corrected = count.filter(|_| scan.at_end()).ok_or(VerityStatusError::Corrected)?;
        Ok(Self { good, corrected: Some(corrected) })
    }
}

/// `DM_BUFFER_FULL_FLAG`
const BUFFER_FULL: u32 = 1 << 8;

/// Size of `struct dm_name_list` before the name.
const DEVICE_HEADER: usize = 12;

/// End of the name in `struct dm_ioctl`.
const NAME_END: usize = 176;

/// Size of `struct dm_target_spec`.
const TARGET_HEADER: usize = 40;

#[cfg(test)]
mod tests;
