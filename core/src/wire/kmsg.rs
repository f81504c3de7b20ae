//! Records of the kernel log, as `/dev/kmsg` returns them.
//!
//! Format: `Documentation/ABI/testing/dev-kmsg` in the kernel tree.

use serde::{Deserialize, Serialize};

use crate::bounds::RECORD_TEXT_MAX;
use crate::wire::scan::Scan;

/// One record, with its prefix decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// The kernel's sequence number; a gap means that records were lost.
    pub sequence: u64,
    /// Microseconds since boot, suspend excluded (`local_clock`).
    pub timestamp_us: u64,
    /// Who wrote it.
    pub origin: Origin,
    /// The level, 0 (emergency) to 7 (debug); it says little about severity.
    pub level: u8,
    /// Whether this is a piece of a longer line (flag `c`, and `+` of older kernels).
    pub fragment: bool,
    /// The text, still escaped.
    pub text: &'a [u8],
    /// The lines after the first: ` KEY=VALUE`, still escaped.
    pub dictionary: &'a [u8],
}

/// Who wrote a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Origin {
    /// The kernel itself: facility 0, which user space cannot write.
    Kernel,
    /// A process that wrote to `/dev/kmsg`; its text proves nothing.
    Userspace,
}

/// Why bytes are not a record: the first field that does not parse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordError {
    /// The priority is missing or is not a number.
    Priority,
    /// The sequence number is missing or is not a number.
    Sequence,
    /// The `;` before the text is missing.
    Text,
    /// The time is missing or is not a number.
    Timestamp,
}

impl core::fmt::Display for RecordError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let field = match self {
            Self::Priority => "priority (field 1) is not a number",
            Self::Sequence => "sequence number (field 2) is not a number",
            Self::Text => "`;` before the text is missing",
            Self::Timestamp => "time (field 3) is not a number of microseconds",
        };
        write!(f, "not a kernel record: {field}")
    }
}

impl<'a> Record<'a> {
    /// Parses one read of `/dev/kmsg`.
    ///
    /// # Errors
    ///
    /// Returns the first field that does not parse. Never panics.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, RecordError> {
        let mut lines = Scan::new(bytes);
        let line = lines.until(b"\n").unwrap_or(bytes);
        let dictionary = if line.len() == bytes.len() { &[][..] } else { lines.rest() };

        let mut scan = Scan::new(line);
        let priority = scan.number().ok_or(RecordError::Priority)?;
        scan.literal(b",").ok_or(RecordError::Sequence)?;
        let sequence = scan.number().ok_or(RecordError::Sequence)?;
        scan.literal(b",").ok_or(RecordError::Timestamp)?;
        let timestamp_us = scan.number().ok_or(RecordError::Timestamp)?;
        let flags = scan.until(b";").ok_or(RecordError::Text)?;
        if !flags.is_empty() && !flags.starts_with(b",") {
            return Err(RecordError::Timestamp);
        }
        let fragment = flags.starts_with(b",c") || flags.starts_with(b",+");
        let (origin, level) = split_priority(priority);
        Ok(Self {
            sequence,
            timestamp_us,
            origin,
            level,
            fragment: fragment && !flags.starts_with(b",caller"),
            text: scan.rest(),
            dictionary,
        })
    }

    /// Returns a kernel record that holds `text` and nothing else.
    #[must_use]
    pub const fn bare(text: &'a [u8]) -> Self {
        Self {
            sequence: 0,
            timestamp_us: 0,
            origin: Origin::Kernel,
            level: 0,
            fragment: false,
            text,
            dictionary: &[],
        }
    }

    /// Returns the value of `key` in the dictionary, such as `SUBSYSTEM` or `DEVICE`.
    #[must_use]
    pub fn property(&self, key: &[u8]) -> Option<&'a [u8]> {
        self.dictionary
            .split(|byte| *byte == b'\n')
            .find_map(|line| line.strip_prefix(b" ")?.strip_prefix(key)?.strip_prefix(b"="))
    }

    /// Returns the text with its escapes undone.
    #[must_use]
    pub fn plain_text(&self) -> PlainText {
        let mut plain = PlainText { bytes: heapless::Vec::new(), cut: false };
        let mut rest = self.text;
        while let Some((byte, after)) = next_byte(rest) {
            rest = after;
            if plain.bytes.push(byte).is_err() {
                plain.cut = true;
                break;
            }
        }
        plain
    }
}

/// A record's text as the kernel meant it, cut at [`RECORD_TEXT_MAX`] bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainText {
    bytes: heapless::Vec<u8, RECORD_TEXT_MAX>,
    cut: bool,
}

impl PlainText {
    /// Returns the bytes; a newline of the kernel's is a newline.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.as_slice()
    }

    /// Returns whether the end did not fit.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        self.cut
    }
}

fn split_priority(priority: u64) -> (Origin, u8) {
    let origin = if priority >> LEVEL_BITS == 0 { Origin::Kernel } else { Origin::Userspace };
    (origin, u8::try_from(priority & LEVEL_MASK).unwrap_or(u8::MAX))
}

/// Takes one byte, or one `\xNN`, off the front.
fn next_byte(text: &[u8]) -> Option<(u8, &[u8])> {
    if let Some([high, low, rest @ ..]) = text.strip_prefix(b"\\x")
        && let (Some(high), Some(low)) = (hex_digit(*high), hex_digit(*low))
    {
        return Some(((high << 4) | low, rest));
    }
    text.split_first().map(|(byte, rest)| (*byte, rest))
}

fn hex_digit(digit: u8) -> Option<u8> {
    u8::try_from(char::from(digit).to_digit(16)?).ok()
}

/// The low bits of the priority are the level; the rest is the facility.
const LEVEL_BITS: u32 = 3;
const LEVEL_MASK: u64 = (1 << LEVEL_BITS) - 1;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::format;
    use std::vec::Vec;

    use super::*;

    #[test]
    fn reads_every_field_of_a_record() {
        let record = Record::parse(
            b"3,1202,81234999,-,caller=T66;task \\x41\\x0ab\n SUBSYSTEM=nvme\n DEVICE=c241:0\n",
        )
        .unwrap();
        assert_eq!((record.sequence, record.timestamp_us, record.level), (1202, 81_234_999, 3));
        assert_eq!(record.origin, Origin::Kernel);
        assert!(!record.fragment);
        assert_eq!(record.plain_text().as_bytes(), b"task A\nb");
        assert_eq!(record.property(b"DEVICE"), Some(&b"c241:0"[..]));
        assert_eq!(record.property(b"DEV"), None);
    }

    #[test]
    fn only_facility_zero_is_the_kernel() {
        // priority, origin, level
        for (priority, origin, level) in [
            (0, Origin::Kernel, 0),
            (7, Origin::Kernel, 7),
            (8, Origin::Userspace, 0),
            (12, Origin::Userspace, 4),
            (u64::MAX, Origin::Userspace, 7),
        ] {
            let line = format!("{priority},1,2,-;x");
            let record = Record::parse(line.as_bytes()).unwrap();
            assert_eq!((record.origin, record.level), (origin, level), "{line}");
        }
    }

    #[test]
    fn names_the_field_that_does_not_parse() {
        for (bytes, want) in [
            (&b""[..], RecordError::Priority),
            (b"x,1,2,-;t", RecordError::Priority),
            (b"3;t", RecordError::Sequence),
            (b"3,x,2,-;t", RecordError::Sequence),
            (b"3,1,x,-;t", RecordError::Timestamp),
            (b"3,1,2x,-;t", RecordError::Timestamp),
            (b"3,1,2,-", RecordError::Text),
            (b"3,99999999999999999999,2,-;t", RecordError::Sequence),
        ] {
            assert_eq!(Record::parse(bytes), Err(want), "{bytes:?}");
        }
    }

    #[test]
    fn flags_tell_fragments() {
        for (flags, fragment) in
            [("-", false), ("c", true), ("+", true), ("c,caller=C1", true), ("-,caller=T1", false)]
        {
            let line = format!("6,1,2,{flags};x");
            assert_eq!(Record::parse(line.as_bytes()).unwrap().fragment, fragment, "{flags}");
        }
        assert!(!Record::parse(b"6,1,2;x").unwrap().fragment);
    }

    #[test]
    fn text_longer_than_the_kernel_prints_is_cut() {
        let text = [b'a'; RECORD_TEXT_MAX + 1];
        assert!(Record::bare(&text).plain_text().is_cut());
        assert!(!Record::bare(&text[1..]).plain_text().is_cut());
    }

    #[test]
    fn a_backslash_that_is_no_escape_stays() {
        assert_eq!(Record::bare(b"a\\xzz\\x4").plain_text().as_bytes(), b"a\\xzz\\x4");
        assert_eq!(Record::bare(b"\\x5cx41").plain_text().as_bytes(), b"\\x41");
    }

    proptest! {
        #[test]
        fn parse_never_panics(bytes: Vec<u8>) {
            if let Ok(record) = Record::parse(&bytes) {
                let _ = (record.plain_text(), record.property(b"K"));
            }
        }
    }
}
