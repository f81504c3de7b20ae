//! The parser of kernel records reads any bytes, and again what it read.

use fettle_core::bounds::RECORD_TEXT_MAX;
use fettle_core::wire::kmsg::{Origin, Record};

/// Takes `data` as one read of `/dev/kmsg`.
pub fn target(data: &[u8]) {
    let Ok(record) = Record::parse(data) else {
        return;
    };
    let plain = record.plain_text();
    assert!(plain.as_bytes().len() <= RECORD_TEXT_MAX);
    assert!(plain.is_cut() || plain.as_bytes().len() <= record.text.len());
    assert!(!record.text.contains(&b'\n'), "the text is one line");
    if let Some(value) = record.property(b"SUBSYSTEM") {
        assert!(!value.contains(&b'\n'), "a value is one line");
    }
    assert_eq!(Record::parse(&written(&record)), Ok(record));
}

/// Returns `record` as the kernel would print it.
fn written(record: &Record<'_>) -> Vec<u8> {
    let facility = match record.origin {
        Origin::Kernel => 0,
        Origin::Userspace => 1,
    };
    let priority = u32::from(record.level) | facility << 3;
    let flag = if record.fragment { 'c' } else { '-' };
    let prefix = format!("{priority},{},{},{flag};", record.sequence, record.timestamp_us);
    [prefix.as_bytes(), record.text, b"\n", record.dictionary].concat()
}
