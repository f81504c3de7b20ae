//! Firmware error records (CPER): lines as the kernel prints them to its log, and binary blocks.
//!
//! `drivers/firmware/efi/cper.c`, `drivers/acpi/apei/{ghes,bert}.c`, `drivers/acpi/acpi_extlog.c`.
//! UEFI Specification, "Common Platform Error Record"; ACPI Specification, "Generic Error Status
//! Block".

use serde::{Deserialize, Serialize};

use crate::wire::binary::u32_at;
use crate::wire::scan::Scan;

/// One line of the text form of a CPER record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// The number in `{N}`: lines of one record share it. BERT records have none.
    pub record: Option<u64>,
    /// What the line says.
    pub part: Part<'a>,
}

/// What one line of a CPER record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'a> {
    /// `device_id: DDDD:BB:DD.F` of a PCIe section.
    DeviceId(&'a [u8]),
    /// ` Error N, type: SEVERITY`: the severity of one section, never of the event.
    ErrorType(&'a [u8]),
    /// `error_type: N, TEXT` of a memory section.
    MemoryError(&'a [u8]),
    /// `fru_text: TEXT`, the firmware's name of the part.
    FruText(&'a [u8]),
    /// Something that no decision needs.
    Other,
    /// `physical_address: 0xN` of a memory section.
    PhysicalAddress(&'a [u8]),
    /// `section_type: TEXT`.
    SectionType(&'a [u8]),
    /// `event severity: SEVERITY`, once in each record.
    Severity(Severity),
}

/// The severity of an error event, as `cper_severity_str` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Severity {
    /// `corrected`
    Corrected,
    /// `fatal`
    Fatal,
    /// `info`
    Info,
    /// `recoverable`
    Recoverable,
}

/// Why text is no line of a CPER record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineError {
    /// Neither `{N}` nor `[Hardware Error]: ` stands at the front.
    Prefix,
}

impl<'a> Line<'a> {
    /// Parses the text of one record, its escapes undone.
    ///
    /// # Errors
    ///
    /// [`LineError::Prefix`] if the line does not begin as the kernel begins these lines.
    pub fn parse(text: &'a [u8]) -> Result<Self, LineError> {
        let mut scan = Scan::new(text);
        let record = record_number(&mut scan);
        let tagged = scan.literal(TAG).is_some();
        if record.is_none() && !tagged {
            return Err(LineError::Prefix);
        }
        Ok(Self { record, part: part(scan.rest()) })
    }
}

/// Takes `{N}` off the front.
fn record_number(scan: &mut Scan<'_>) -> Option<u64> {
    let mut ahead = *scan;
    ahead.literal(b"{")?;
    let number = ahead.number()?;
    ahead.literal(b"}")?;
    *scan = ahead;
    Some(number)
}

fn part(text: &[u8]) -> Part<'_> {
    if let Some(severity) = text.strip_prefix(b"event severity: ") {
        return severity_of(severity).map_or(Part::Other, Part::Severity);
    }
    let mut scan = Scan::new(text.trim_ascii_start());
    match scan.one_of(&[
        b"device_id: ",
        b"section_type: ",
        b"fru_text: ",
        b"physical_address: ",
        b"error_type: ",
        b"Error ",
    ]) {
        Some(0) => Part::DeviceId(value(scan)),
        Some(1) => Part::SectionType(value(scan)),
        Some(2) => Part::FruText(value(scan)),
        Some(3) => Part::PhysicalAddress(value(scan)),
        Some(4) => Part::MemoryError(value(scan)),
        Some(5) => error_type(scan).unwrap_or(Part::Other),
        Some(_) | None => Part::Other,
    }
}

/// Reads `N, type: SEVERITY`.
fn error_type(mut scan: Scan<'_>) -> Option<Part<'_>> {
    scan.number()?;
    scan.literal(b", type: ")?;
    Some(Part::ErrorType(value(scan)))
}

fn value(scan: Scan<'_>) -> &[u8] {
    scan.rest().trim_ascii()
}

fn severity_of(word: &[u8]) -> Option<Severity> {
    match word.trim_ascii_end() {
        b"corrected" => Some(Severity::Corrected),
        b"fatal" => Some(Severity::Fatal),
        b"info" => Some(Severity::Info),
        b"recoverable" => Some(Severity::Recoverable),
        _ => None,
    }
}

/// One generic error status block: an error that firmware left for the next boot (BERT).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusBlock {
    /// How bad the error was.
    pub severity: Severity,
    /// Whether the block's status is 0 although it holds an error.
    ///
    /// Firmware sets the status. The kernel clears it at boot, once it has looked at the block,
    /// whether it printed the error or only counted it (`bert_print_all`). So on a running node
    /// this is the rule; but memory that firmware never wrote anew looks the same.
    pub cleared: bool,
    /// Size of the block with all of its data; the next one begins after it.
    pub length: u32,
}

/// Why bytes are no status block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusBlockError {
    /// The lengths contradict each other.
    Length,
    /// The severity is none that the specification knows.
    Severity,
    /// The block is longer than what there is.
    Short,
}

impl StatusBlock {
    /// Parses the block at the front of `region`; `None` if there is no error in it.
    ///
    /// # Errors
    ///
    /// See [`StatusBlockError`].
    pub fn parse(region: &[u8]) -> Result<Option<Self>, StatusBlockError> {
        let [status, raw_at, raw_length, data_length, severity] =
            header(region).ok_or(StatusBlockError::Short)?;
        if (status, raw_length, data_length) == (0, 0, 0) {
            return Ok(None);
        }
        let data_end = HEADER_BYTES.checked_add(data_length).ok_or(StatusBlockError::Length)?;
        let length = match raw_length {
            0 => data_end,
            _ if raw_at < data_end => return Err(StatusBlockError::Length),
            _ => raw_at.checked_add(raw_length).ok_or(StatusBlockError::Length)?,
        };
        if usize::try_from(length).map_or(true, |length| length > region.len()) {
            return Err(StatusBlockError::Short);
        }
        let severity = severity_number(severity).ok_or(StatusBlockError::Severity)?;
        Ok(Some(Self { severity, cleared: status == 0, length }))
    }
}

fn header(region: &[u8]) -> Option<[u32; 5]> {
    Some([
        u32_at(region, 0)?,
        u32_at(region, 4)?,
        u32_at(region, 8)?,
        u32_at(region, 12)?,
        u32_at(region, 16)?,
    ])
}

const fn severity_number(number: u32) -> Option<Severity> {
    match number {
        0 => Some(Severity::Recoverable),
        1 => Some(Severity::Fatal),
        2 => Some(Severity::Corrected),
        3 => Some(Severity::Info),
        _ => None,
    }
}

/// The blocks of a boot error region, up to the first without an error; ends after an error.
#[derive(Debug, Clone)]
pub struct StatusBlocks<'a> {
    rest: &'a [u8],
}

impl<'a> StatusBlocks<'a> {
    /// Starts at the front of `region`.
    #[must_use]
    pub const fn new(region: &'a [u8]) -> Self {
        Self { rest: region }
    }
}

impl Iterator for StatusBlocks<'_> {
    type Item = Result<StatusBlock, StatusBlockError>;

    fn next(&mut self) -> Option<Self::Item> {
        let region = core::mem::take(&mut self.rest);
        if region.is_empty() {
            return None;
        }
        let block = StatusBlock::parse(region).transpose()?;
        if let Ok(block) = block {
            self.rest = usize::try_from(block.length).map_or(&[], |at| after(region, at));
        }
        Some(block)
    }
}

/// Returns what follows the first block; a rest that holds no header is none.
fn after(region: &[u8], length: usize) -> &[u8] {
    region.get(length..).filter(|rest| header(rest).is_some()).unwrap_or_default()
}

/// Size of `struct acpi_hest_generic_status`.
const HEADER_BYTES: u32 = 20;

const TAG: &[u8] = b"[Hardware Error]: ";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::vec::Vec;

    use super::*;

    #[test]
    fn reads_the_lines_that_matter() {
        // text, record number, part
        for (text, record, part) in [
            (&b"{1}[Hardware Error]: event severity: fatal"[..], Some(1), FATAL),
            (b"[Hardware Error]: event severity: fatal ", None, FATAL),
            (b"{7}event severity: fatal", Some(7), FATAL),
            (b"{8}[Hardware Error]:  Error 0, type: fatal", Some(8), Part::ErrorType(b"fatal")),
            (b"[Hardware Error]: event severity: fatality", None, Part::Other),
            (
                b"{1}[Hardware Error]:   section_type: PCIe error",
                Some(1),
                Part::SectionType(b"PCIe error"),
            ),
            (
                b"{1}[Hardware Error]:   device_id: 0000:01:00.0",
                Some(1),
                Part::DeviceId(b"0000:01:00.0"),
            ),
            (b"{1}[Hardware Error]:  fru_text: DIMM A1", Some(1), Part::FruText(b"DIMM A1")),
            (
                b"{1}[Hardware Error]:   error_type: 3, multi-bit ECC",
                Some(1),
                Part::MemoryError(b"3, multi-bit ECC"),
            ),
        ] {
            assert_eq!(Line::parse(text), Ok(Line { record, part }));
        }
    }

    #[test]
    fn other_lines_are_not_records() {
        for text in [
            &b"mce: [Hardware Error]: event severity: fatal"[..],
            b"event severity: fatal",
            b"{x}[Hardware Error: event severity: fatal",
            b"usb 1-1: [Hardware Error]: event severity: fatal",
        ] {
            assert_eq!(Line::parse(text), Err(LineError::Prefix));
        }
    }

    #[test]
    fn blocks_follow_each_other_until_one_without_an_error() {
        let first = block([0x12, 0, 0, 72, 1]);
        let second = block([0, 92, 8, 72, 2]);
        let region = [first.clone(), second, block([0; 5]), first].concat();
        let blocks: Vec<_> = StatusBlocks::new(&region).map(Result::unwrap).collect();
        let want = [
            StatusBlock { severity: Severity::Fatal, cleared: false, length: 92 },
            StatusBlock { severity: Severity::Corrected, cleared: true, length: 100 },
        ];
        assert_eq!(blocks, want);
    }

    #[test]
    fn a_region_of_zeros_has_no_error() {
        assert_eq!(StatusBlock::parse(&[0; 64]), Ok(None));
        assert_eq!(StatusBlocks::new(&[0; 64]).count(), 0);
        assert_eq!(StatusBlocks::new(&[]).count(), 0);
    }

    #[test]
    fn a_block_that_contradicts_itself_is_an_error_and_the_end() {
        // status, raw data at, its length, data length, severity
        for (header, want) in [
            ([1, 19, 8, 0, 1], StatusBlockError::Length),
            ([1, 91, 8, 72, 1], StatusBlockError::Length),
            ([1, u32::MAX, 8, 0, 1], StatusBlockError::Length),
            ([1, 0, 0, u32::MAX, 1], StatusBlockError::Length),
            ([1, 0, 0, 1 << 20, 1], StatusBlockError::Short),
            ([1, 0, 0, 72, 4], StatusBlockError::Severity),
        ] {
            let mut region = block([1, 0, 0, 72, 0]);
            region[..20].copy_from_slice(&block(header)[..20]);
            assert_eq!(StatusBlock::parse(&region), Err(want), "{header:?}");
            assert_eq!(StatusBlocks::new(&region).collect::<Vec<_>>(), [Err(want)]);
        }
        assert_eq!(StatusBlock::parse(&[1; 19]), Err(StatusBlockError::Short));
    }

    proptest! {
        #[test]
        fn parse_never_panics(bytes: Vec<u8>) {
            let _ = (Line::parse(&bytes), StatusBlock::parse(&bytes));
        }

        #[test]
        fn blocks_end(numbers in proptest::collection::vec(0..64_u32, 64)) {
            let region: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            prop_assert!(StatusBlocks::new(&region).count() <= region.len());
        }
    }

    /// Builds a block: its header, and zeros where its data would be.
    fn block(header: [u32; 5]) -> Vec<u8> {
        let mut block: Vec<u8> = header.iter().flat_map(|number| number.to_le_bytes()).collect();
        let [_, raw_at, raw_length, data_length, _] = header;
        let length = if raw_length == 0 {
            data_length.saturating_add(20)
        } else {
            raw_at.saturating_add(raw_length)
        };
        block.resize(usize::try_from(length.min(1024)).unwrap().max(20), 0);
        block
    }

    const FATAL: Part<'static> = Part::Severity(Severity::Fatal);
}
