//! What the health report writes is JSON, whatever its rows hold and however little room there is.

use fettle_core::bounds::REPORT_MAX;
use fettle_core::node::report::{
    CertRow, FileSystemRow, Header, Hundredths, Role, ThinPoolRow, VolumeGroupRow, Written,
    write_certs, write_storage,
};
use fettle_core::time::Timestamp;
use fettle_core::wire::scan::Scan;
use serde_json::Value;

/// Takes the first line of `data` as the room and the time, and each other line as rows.
///
/// ```text
/// BYTES SECONDS   the room, and when the report was made
/// N|f|TEXT|…      N file systems
/// N|g|TEXT|…      N volume groups
/// N|p|TEXT|…      N thin pools of every volume group
/// N|c|TEXT|…      N certificates
/// ```
pub fn target(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let mut numbers = first.split(' ').map(number);
    let room = usize::try_from(numbers.next().flatten().unwrap_or(0)).expect("64 bits");
    let updated_at = time(numbers.next().flatten().unwrap_or(0));
    let header = Header { updated_at, role: Role::Worker };
    let mut out = vec![0; room % (ROOM_MAX + 1)];
    storage(&header, &mut out, rest);
    certs(&header, &mut out, rest);
}

fn storage(header: &Header, out: &mut [u8], text: &str) {
    let pools: Vec<ThinPoolRow<'_>> = rows(text, "p").map(|row| thin_pool(&row)).collect();
    let systems: Vec<FileSystemRow<'_>> = rows(text, "f").map(|row| file_system(&row)).collect();
    let groups: Vec<VolumeGroupRow<'_>> =
        rows(text, "g").map(|row| volume_group(&row, &pools)).collect();
    let given = systems.len() + groups.len();
    let written = write_storage(out, header, systems, groups);
    check(out, written, given, &["filesystems", "volumeGroups"]);
}

fn certs(header: &Header, out: &mut [u8], text: &str) {
    let certs: Vec<CertRow<'_>> = rows(text, "c").map(|row| cert(&row)).collect();
    let given = certs.len();
    let written = write_certs(out, header, certs);
    check(out, written, given, &["certs"]);
}

/// Asserts what the report promises, each under the name that its documentation gives.
fn check(out: &[u8], written: Written, given: usize, lists: &[&str]) {
    assert!(written.bytes <= out.len().min(REPORT_MAX), "bounded");
    let omitted = usize::try_from(written.omitted).expect("64 bits");
    if written.bytes == 0 {
        assert_eq!(omitted, given, "counted");
        return;
    }
    let text = str::from_utf8(&out[..written.bytes]).expect("valid");
    let document: Value = serde_json::from_str(text).expect("valid");
    let len = |key: &&str| document[*key].as_array().expect("valid").len();
    let kept: usize = lists.iter().map(len).sum();
    assert_eq!(kept + omitted, given, "counted");
    assert_eq!(document["omitted"], written.omitted, "counted");
    let is_hidden = |c: char| c.is_control() || matches!(c, '\u{200b}' | '\u{202e}' | '\u{feff}');
    assert!(!text.contains(is_hidden), "seen");
}

/// Returns the rows of one kind: the fields of each line as often as it says.
fn rows<'a>(text: &'a str, kind: &str) -> impl Iterator<Item = Fields<'a>> {
    let lines = text.split('\n').take(LINES_MAX).filter_map(move |line| {
        let mut parts = line.splitn(3, '|');
        let count = number(parts.next()?)?;
        (parts.next()? == kind).then_some(())?;
        Some((count % (REPEAT_MAX + 1), parts.next().unwrap_or_default()))
    });
    lines.flat_map(|(count, fields)| (0..count).map(|_| Fields(fields)))
}

/// The fields of a row; those that are missing or empty are unknown.
struct Fields<'a>(&'a str);

impl<'a> Fields<'a> {
    fn text(&self, at: usize) -> Option<&'a str> {
        self.0.split('|').nth(at).filter(|text| !text.is_empty())
    }

    fn number(&self, at: usize) -> Option<u64> {
        self.text(at).and_then(number)
    }

    fn name(&self) -> &'a str {
        self.text(0).unwrap_or_default()
    }

    fn share(&self, at: usize) -> Option<Hundredths> {
        self.number(at).map(|number| Hundredths(u32::try_from(number).unwrap_or(u32::MAX)))
    }

    fn flag(&self, at: usize) -> Option<bool> {
        self.number(at).map(|number| number != 0)
    }
}

fn file_system<'a>(row: &Fields<'a>) -> FileSystemRow<'a> {
    FileSystemRow {
        mount_point: row.name(),
        device: row.text(1),
        fs_type: row.text(2),
        size_bytes: row.number(3),
        used_bytes: row.number(4),
        used_pct: row.share(5),
        inodes: row.number(3),
        inodes_used: row.number(4),
        inodes_used_pct: row.share(5),
        read_only: row.flag(6),
        error: row.text(7),
    }
}

fn volume_group<'a>(row: &Fields<'a>, pools: &'a [ThinPoolRow<'a>]) -> VolumeGroupRow<'a> {
    VolumeGroupRow {
        name: row.name(),
        size_bytes: row.number(1),
        free_bytes: row.number(2),
        thin_pools: row.flag(3).is_none().then_some(pools),
        error: row.text(4),
    }
}

fn thin_pool<'a>(row: &Fields<'a>) -> ThinPoolRow<'a> {
    ThinPoolRow {
        name: row.name(),
        size_bytes: row.number(1),
        data_pct: row.share(2),
        metadata_pct: row.share(3),
    }
}

fn cert<'a>(row: &Fields<'a>) -> CertRow<'a> {
    CertRow {
        path: row.name(),
        subject: row.text(1),
        issuer: row.text(2),
        serial: row.text(3),
        not_before: row.number(4).map(time),
        not_after: row.number(5).map(time),
        seconds_left: row.number(5).map(u64::cast_signed),
        renewal_due: row.flag(6),
        error: row.text(7),
    }
}

fn number(text: &str) -> Option<u64> {
    Scan::new(text.as_bytes()).number()
}

/// Numbers from 2^63 on are before 1970.
fn time(seconds: u64) -> Timestamp {
    Timestamp::from_unix_secs(seconds.cast_signed())
}

/// Most room that is lent: more than a document may take.
const ROOM_MAX: usize = 48 * 1024;

/// Most rows that a line stands for: enough that short lines fill a document.
const REPEAT_MAX: u64 = 300;

/// Most lines that are read, so that an input takes milliseconds.
const LINES_MAX: usize = 16;
