//! The documents for people: the same rows, as aligned tables.

use std::io::{self, Write};

use fettle_core::text::Text;
use serde_json::Value;

use crate::probe::rows::Document;
use crate::table;

/// Writes a table for each list of each document.
///
/// Shows what the JSON holds and nothing else: the order, and what is omitted, are the same.
pub(super) fn write(out: &mut impl Write, documents: &[(Document, Vec<u8>)]) -> io::Result<()> {
    for (at, (document, bytes)) in documents.iter().enumerate() {
        let value: Value = serde_json::from_slice(bytes)?;
        if at == 0 {
            let (role, time) = (text(&value, "role"), text(&value, "updatedAt"));
            writeln!(out, "Role {role}, read at {time}")?;
        }
        match document {
            Document::Storage => {
                write_list(out, &value, &FILE_SYSTEMS)?;
                write_list(out, &value, &VOLUME_GROUPS)?;
            }
            Document::Disks => write_list(out, &value, &DISKS)?,
            Document::Certs => write_list(out, &value, &CERTS)?,
            Document::Tamper => write_tamper(out, &value["tamper"])?,
            Document::Services => write_list(out, &value, &SERVICES)?,
        }
        match value["omitted"].as_u64() {
            None | Some(0) => {}
            Some(omitted) => writeln!(out, "and {omitted} more that have no room in {document:?}")?,
        }
    }
    Ok(())
}

/// A list of a document, as a table.
struct List {
    key: &'static str,
    /// What is in it, in the plural.
    what: &'static str,
    columns: &'static [Column],
}

/// Its head, and how a cell is made of a row.
type Column = (&'static str, fn(&Value) -> String);

const FILE_SYSTEMS: List = List {
    key: "filesystems",
    what: "file systems",
    columns: &[
        ("MOUNT POINT", |row| text(row, "mountPoint")),
        ("DEVICE", |row| text(row, "device")),
        ("TYPE", |row| text(row, "type")),
        ("SIZE", |row| bytes(row, "sizeBytes")),
        ("USED", |row| percent(row, "usedPct")),
        ("INODES", |row| percent(row, "inodesUsedPct")),
        ("READ-ONLY", |row| yes_or_no(row, "readOnly")),
        ("ERROR", |row| text(row, "error")),
    ],
};

const VOLUME_GROUPS: List = List {
    key: "volumeGroups",
    what: "volume groups",
    columns: &[
        ("VOLUME GROUP", |row| text(row, "name")),
        ("SIZE", |row| bytes(row, "sizeBytes")),
        ("FREE", |row| bytes(row, "freeBytes")),
        ("THIN POOLS", |row| list(row, "thinPools", thin_pool)),
        ("ERROR", |row| text(row, "error")),
    ],
};

const DISKS: List = List {
    key: "disks",
    what: "NVMe drives",
    columns: &[
        ("DISK", |row| text(row, "name")),
        ("MODEL", |row| text(row, "model")),
        ("SERIAL", |row| text(row, "serial")),
        ("SIZE", |row| bytes(row, "sizeBytes")),
        ("WARNINGS", |row| list(row, "criticalWarnings", |name| clean(name.as_str()?))),
        ("CELSIUS", |row| of(row, "temperatureCelsius", "temperatureLimitCelsius")),
        ("WEAR", |row| percent(row, "percentageUsed")),
        ("SPARE", |row| of(row, "availableSparePct", "availableSpareThresholdPct")),
        ("MEDIA ERRORS", |row| text(row, "mediaErrors")),
        ("ERROR", |row| text(row, "error")),
    ],
};

const CERTS: List = List {
    key: "certs",
    what: "certificates",
    columns: &[
        ("FILE", |row| text(row, "path")),
        ("SUBJECT", |row| text(row, "subject")),
        ("EXPIRES", |row| text(row, "notAfter")),
        ("LEFT", |row| left(row, "secondsLeft")),
        ("RENEWAL DUE", |row| yes_or_no(row, "renewalDue")),
        ("ERROR", |row| text(row, "error")),
    ],
};

const LAYERS: List = List {
    key: "layers",
    what: "sealed layers",
    columns: &[
        ("LAYER", |row| text(row, "name")),
        ("DEVICE", |row| text(row, "device")),
        ("MODE", |row| text(row, "mode")),
        ("MATCHES", |row| yes_or_no(row, "matches")),
        ("CORRUPTED", |row| yes_or_no(row, "corrupted")),
        ("ENFORCED ROOT HASH", |row| text(row, "enforcedRootHash")),
    ],
};

const SERVICES: List = List {
    key: "services",
    what: "services",
    columns: &[
        ("UNIT", |row| text(row, "unit")),
        ("STATE", |row| of(row, "activeState", "subState")),
        ("RESULT", |row| text(row, "result")),
        ("RESTARTS", |row| text(row, "restarts")),
        ("LAST START", |row| text(row, "lastStartAt")),
    ],
};

fn write_list(out: &mut impl Write, document: &Value, list: &List) -> io::Result<()> {
    let Some(rows) = document[list.key].as_array() else {
        return writeln!(out, "\nNobody knows the {}", list.what);
    };
    if rows.is_empty() {
        return writeln!(out, "\nNo {}", list.what);
    }
    let heads: Vec<_> = list.columns.iter().map(|(head, _)| *head).collect();
    let mut table = table::new(&heads);
    for row in rows {
        table.add_row(list.columns.iter().map(|(_, cell)| cell(row)));
    }
    writeln!(out, "\n{}", table::render(&table))
}

fn write_tamper(out: &mut impl Write, tamper: &Value) -> io::Result<()> {
    write_list(out, tamper, &LAYERS)?;
    let (count, baseline) = (text(tamper, "protectedFiles"), text(tamper, "baselineAt"));
    writeln!(out, "\nProtected files: {count}; baseline: {baseline}")?;
    let mut table = table::new(&["FILE", "SINCE THE BASELINE"]);
    for change in ["changed", "removed", "added"] {
        for path in tamper[change].as_array().into_iter().flatten() {
            table.add_row([
                clean(path.as_str().unwrap_or_default()).unwrap_or_default(),
                change.to_owned(),
            ]);
        }
    }
    if table.row_count() > 0 {
        writeln!(out, "\n{}", table::render(&table))?;
    }
    match tamper["error"].as_str() {
        Some(_) => writeln!(out, "Error: {}", text(tamper, "error")),
        None => Ok(()),
    }
}

/// Returns a field as a person reads it; `-` where it is unknown.
fn text(row: &Value, key: &str) -> String {
    match &row[key] {
        Value::String(value) => clean(value).unwrap_or_else(unknown),
        Value::Number(value) => value.to_string(),
        Value::Array(_) | Value::Bool(_) | Value::Null | Value::Object(_) => unknown(),
    }
}

/// Returns text without what hides it or commands a terminal, which JSON alone escapes.
fn clean(text: &str) -> Option<String> {
    let text = Text::<CELL_MAX>::from_bytes(text.as_bytes());
    (!text.is_empty()).then(|| text.as_str().to_owned())
}

fn yes_or_no(row: &Value, key: &str) -> String {
    let word = row[key].as_bool().map(|value| if value { "yes" } else { "no" });
    word.map_or_else(unknown, str::to_owned)
}

fn percent(row: &Value, key: &str) -> String {
    if row[key].is_null() { unknown() } else { format!("{} %", row[key]) }
}

fn of(row: &Value, part: &str, whole: &str) -> String {
    format!("{} / {}", text(row, part), text(row, whole))
}

fn list(row: &Value, key: &str, item: fn(&Value) -> Option<String>) -> String {
    let Some(items) = row[key].as_array() else {
        return unknown();
    };
    let items: Vec<_> = items.iter().filter_map(item).collect();
    if items.is_empty() { "none".to_owned() } else { items.join(", ") }
}

fn thin_pool(pool: &Value) -> Option<String> {
    let (data, metadata) = (percent(pool, "dataPct"), percent(pool, "metadataPct"));
    Some(format!("{} ({data} data, {metadata} metadata)", text(pool, "name")))
}

/// Returns a size with one decimal in the largest unit of which there is one.
fn bytes(row: &Value, key: &str) -> String {
    let Some(bytes) = row[key].as_u64() else {
        return unknown();
    };
    let shift = bytes.checked_ilog2().unwrap_or(0) / 10 * 10;
    let unit = UNITS.get(usize::try_from(shift / 10).unwrap_or(0)).unwrap_or(&"B");
    if shift == 0 {
        return format!("{bytes} {unit}");
    }
    let tenths = (u128::from(bytes) * 10) >> shift;
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}

/// Returns a time in its two largest units; with a minus once it is over.
fn left(row: &Value, key: &str) -> String {
    let Some(seconds) = row[key].as_i64() else {
        return unknown();
    };
    let sign = if seconds < 0 { "-" } else { "" };
    let (minutes, hours) = (seconds.unsigned_abs() / 60, seconds.unsigned_abs() / 3600);
    match hours / 24 {
        0 => format!("{sign}{hours}h {}m", minutes % 60),
        days => format!("{sign}{days}d {}h", hours % 24),
    }
}

fn unknown() -> String {
    "-".to_owned()
}

const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/// Longest text of a cell: the longest path that the kernel takes.
const CELL_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sizes_and_times_are_short() {
        for (value, want) in [
            (json!(0), "0 B"),
            (json!(1023), "1023 B"),
            (json!(1024), "1.0 KiB"),
            (json!(1_610_612_736_u64), "1.5 GiB"),
            (json!(u64::MAX), "15.9 EiB"),
            (json!(null), "-"),
        ] {
            assert_eq!(bytes(&json!({ "a": value }), "a"), want);
        }
        for (value, want) in [
            (json!(3599), "0h 59m"),
            (json!(-7_200), "-2h 0m"),
            (json!(30 * 3600), "1d 6h"),
            (json!(i64::MIN), "-106751991167300d 15h"),
            (json!(null), "-"),
        ] {
            assert_eq!(left(&json!({ "a": value }), "a"), want);
        }
    }

    #[test]
    fn a_table_shows_what_is_in_the_document_and_hides_no_character() {
        let storage = json!({
            "updatedAt": "2026-11-30T21:21:27Z", "role": "worker",
            "filesystems": [
                { "mountPoint": "/a\u{202e}b", "error": "timed out" },
                { "mountPoint": "/", "device": "/dev/sda1", "type": "ext4", "sizeBytes": 4096,
                  "usedPct": 85.25, "inodesUsedPct": null, "readOnly": false },
            ],
            "volumeGroups": [{
                "name": "vg0", "sizeBytes": 4096, "freeBytes": 0,
                "thinPools": [{ "name": "p", "dataPct": 1.5, "metadataPct": null }],
            }],
            "omitted": 3,
        });
        let mut out = Vec::new();
        write(&mut out, &[(Document::Storage, storage.to_string().into_bytes())]).unwrap();
        let want = "\
Role worker, read at 2026-11-30T21:21:27Z

MOUNT POINT  DEVICE     TYPE  SIZE     USED     INODES  READ-ONLY  ERROR
/a\u{fffd}b         -          -     -        -        -       -          timed out
/            /dev/sda1  ext4  4.0 KiB  85.25 %  -       no         -

VOLUME GROUP  SIZE     FREE  THIN POOLS                  ERROR
vg0           4.0 KiB  0 B   p (1.5 % data, - metadata)  -
and 3 more that have no room in Storage
";
        assert_eq!(String::from_utf8(out).unwrap(), want);
    }

    #[test]
    fn what_changed_is_named_with_its_change() {
        let tamper = json!({
            "updatedAt": "t", "role": "worker",
            "tamper": {
                "layers": null, "baselineAt": "2026-11-30T21:00:00Z", "protectedFiles": 2,
                "added": [], "removed": ["/b"], "changed": ["/a"], "error": "x: no",
            },
            "omitted": 0,
        });
        let mut out = Vec::new();
        write(&mut out, &[(Document::Tamper, tamper.to_string().into_bytes())]).unwrap();
        let want = "\
Role worker, read at t

Nobody knows the sealed layers

Protected files: 2; baseline: 2026-11-30T21:00:00Z

FILE  SINCE THE BASELINE
/a    changed
/b    removed
Error: x: no
";
        assert_eq!(String::from_utf8(out).unwrap(), want);
    }
}
