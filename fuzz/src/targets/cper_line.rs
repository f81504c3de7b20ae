//! The parser of firmware error lines reads any text.

use fettle_core::wire::cper::{Line, Part};

/// Takes `data` as the plain text of a record.
pub fn target(data: &[u8]) {
    let Ok(line) = Line::parse(data) else {
        return;
    };
    assert!(data.starts_with(b"{") == line.record.is_some());
    match line.part {
        Part::DeviceId(value)
        | Part::ErrorType(value)
        | Part::FruText(value)
        | Part::MemoryError(value)
        | Part::PhysicalAddress(value)
        | Part::SectionType(value) => assert!(data.trim_ascii_end().ends_with(value)),
        Part::Other | Part::Severity(_) => {}
    }
}
