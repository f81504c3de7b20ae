//! Lines of a firmware error record (CPER), as the kernel prints them to its log.
//!
//! `drivers/firmware/efi/cper.c`, `drivers/acpi/apei/{ghes,bert}.c`, `drivers/acpi/acpi_extlog.c`.
//! UEFI Specification, "Common Platform Error Record".

use serde::{Deserialize, Serialize};

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

    proptest! {
        #[test]
        fn parse_never_panics(bytes: Vec<u8>) {
            let _ = Line::parse(&bytes);
        }
    }

    const FATAL: Part<'static> = Part::Severity(Severity::Fatal);
}
