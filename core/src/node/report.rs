//! The five JSON documents of the health report, and the evidence of a fault.
//!
//! Seed, "Reading conditions and the health report"; fields: decisions, "Fields of the five
//! documents".
//!
//! # Invariants
//!
//! * `valid`: what is written is one JSON document whatever the rows hold, or nothing.
//! * `bounded`: never longer than [`REPORT_MAX`] or the space that is lent.
//! * `counted`: each row stands whole in the document or counts in `omitted`.
//! * `seen`: no character that hides text or commands a terminal stands unescaped.
//!
//! Rows come in the order in which they are given, so what matters most goes first. After a row
//! that does not fit, shorter ones are still tried: one long name hides nothing but itself.

use core::fmt::Write as _;

use serde::Serialize;

pub use self::rows::{
    CertRow, ConditionRow, DiskRow, FileSystemRow, Hundredths, LayerRow, ProbeRow, RecordRow,
    ServiceRow, TamperReport, ThinPoolRow, VolumeGroupRow,
};
use crate::bounds::{EVIDENCE_MAX, MESSAGE_MAX, REPORT_MAX};
use crate::node::reading::{FileChange, ProtectedFile};
use crate::text::{Text, is_hidden};
use crate::time::Timestamp;

mod rows;
#[cfg(test)]
mod tests;

/// What every document begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// When the report was made.
    pub updated_at: Timestamp,
    /// What the node is in its cluster.
    pub role: Role,
}

/// What a node is in its cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// It runs the API server.
    ControlPlane,
    /// It runs workload alone.
    Worker,
}

/// How much of a document was written.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Its length; 0 where not even a document without rows fits.
    pub bytes: usize,
    /// The rows that are not in it.
    pub omitted: u32,
}

/// Writes the document `storage`.
///
/// Neither list can push the other out: volume groups take half of the room at most, and file
/// systems all that is left.
pub fn write_storage<'a>(
    out: &mut [u8],
    header: &Header,
    file_systems: impl IntoIterator<Item = FileSystemRow<'a>>,
    volume_groups: impl IntoIterator<Item = VolumeGroupRow<'a>>,
) -> Written {
    let mut document = Document::open(out, &Head::new(header), 1, &["filesystems", "volumeGroups"]);
    let start = document.at;
    document.list("volumeGroups", 2, Some(volume_groups));
    let groups_len = document.at.saturating_sub(start);
    document.list("filesystems", 1, Some(file_systems));
    document.move_to_end(start, groups_len);
    document.close()
}

/// Writes the document `disks`.
pub fn write_disks<'a>(
    out: &mut [u8],
    header: &Header,
    disks: impl IntoIterator<Item = DiskRow<'a>>,
) -> Written {
    write_list(out, header, "disks", disks)
}

/// Writes the document `certs`.
pub fn write_certs<'a>(
    out: &mut [u8],
    header: &Header,
    certs: impl IntoIterator<Item = CertRow<'a>>,
) -> Written {
    write_list(out, header, "certs", certs)
}

/// Writes the document `services`.
pub fn write_services<'a>(
    out: &mut [u8],
    header: &Header,
    services: impl IntoIterator<Item = ServiceRow<'a>>,
) -> Written {
    write_list(out, header, "services", services)
}

/// Writes the document `tamper`.
///
/// Each list has its share of the room: who adds ten thousand files does not hide a changed one.
pub fn write_tamper<'a, L, C>(
    out: &mut [u8],
    header: &Header,
    report: TamperReport<'a, L, C>,
) -> Written
where
    L: IntoIterator<Item = LayerRow<'a>>,
    C: IntoIterator<Item = ProtectedFile<'a>> + Clone,
{
    let tamper = TamperHead {
        baseline_at: report.baseline_at,
        protected_files: report.protected_files,
        error: report.error.map(|error| Text::from_bytes(error.as_bytes())),
    };
    let head = Head { tamper: Some(tamper), ..Head::new(header) };
    let mut document = Document::open(out, &head, 2, &["layers", "added", "removed", "changed"]);
    document.list("layers", 4, report.layers);
    let paths = |change| {
        let changes = report.changes.clone()?;
        Some(changes.into_iter().filter(move |file| file.change == change).map(|file| file.path))
    };
    document.list("added", 3, paths(FileChange::Added));
    document.list("removed", 2, paths(FileChange::Removed));
    document.list("changed", 1, paths(FileChange::Changed));
    document.close()
}

/// Writes what is known of a fault when a condition turns `True`: at most [`EVIDENCE_MAX`] bytes.
///
/// Conditions have half of the room; records, newest first, all that is left.
pub fn write_evidence<'a>(
    out: &mut [u8],
    header: &Header,
    conditions: impl IntoIterator<Item = ConditionRow<'a>>,
    records: impl IntoIterator<Item = RecordRow<'a>>,
) -> Written {
    let limit = out.len().min(EVIDENCE_MAX);
    let out = out.get_mut(..limit).unwrap_or_default();
    let mut document = Document::open(out, &Head::new(header), 1, &["conditions", "records"]);
    document.list("conditions", 2, Some(conditions));
    document.list("records", 1, Some(records));
    document.close()
}

fn write_list<R: Serialize>(
    out: &mut [u8],
    header: &Header,
    key: &str,
    rows: impl IntoIterator<Item = R>,
) -> Written {
    let mut document = Document::open(out, &Head::new(header), 1, &[key]);
    document.list(key, 1, Some(rows));
    document.close()
}

/// What stands before the lists.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    #[serde(serialize_with = "rows::rfc3339")]
    updated_at: Option<Timestamp>,
    role: Role,
    /// Of the document `tamper` alone; its lists stand in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    tamper: Option<TamperHead>,
}

impl Head {
    fn new(header: &Header) -> Self {
        Self { updated_at: Some(header.updated_at), role: header.role, tamper: None }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TamperHead {
    #[serde(serialize_with = "rows::rfc3339")]
    baseline_at: Option<Timestamp>,
    protected_files: Option<u64>,
    /// Cut, so that it never keeps the document from being written.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Text<MESSAGE_MAX>>,
}

/// A document under way.
struct Document<'o> {
    /// All that may be written to; nothing, where not even a document without rows fits.
    out: &'o mut [u8],
    /// How much is written.
    at: usize,
    /// How much room is kept for what must follow.
    kept: usize,
    /// How many objects are open.
    depth: usize,
    omitted: u32,
}

impl<'o> Document<'o> {
    /// Writes `head` without the braces that close its last `depth` objects.
    ///
    /// Keeps room for the lists named `keys`, each without rows, and for the end.
    fn open(out: &'o mut [u8], head: &Head, depth: usize, keys: &[&str]) -> Self {
        let frames = keys.iter().map(|key| key.len().saturating_add(LIST_FRAME.len()));
        let kept = frames.sum::<usize>().saturating_add(depth).saturating_add(END.len());
        let limit = out.len().min(REPORT_MAX);
        let mut document = Self { out: &mut [], at: 0, kept, depth, omitted: 0 };
        let room = limit.checked_sub(kept).and_then(|room| out.get_mut(..room));
        let written = room.and_then(|room| serde_json_core::to_slice(head, room).ok());
        if let (Some(written), Some(out)) = (written, out.get_mut(..limit)) {
            document.at = written.saturating_sub(depth);
            document.out = out;
        }
        document
    }

    /// Writes a list of as many `rows` as fit in `1 / shares` of the room; `None` is unknown.
    fn list<R: Serialize>(
        &mut self,
        key: &str,
        shares: usize,
        rows: Option<impl IntoIterator<Item = R>>,
    ) {
        for part in [",\"", key, "\":"] {
            self.fixed(part);
        }
        let Some(rows) = rows else {
            self.fixed("null");
            return;
        };
        self.fixed("[");
        let end = self.at.saturating_add(self.room().checked_div(shares).unwrap_or(0));
        let mut separator = "";
        for row in rows {
            if self.row(separator, &row, end).is_some() {
                separator = ",";
            } else {
                self.omitted = self.omitted.saturating_add(1);
            }
        }
        self.fixed("]");
        self.kept = self.kept.saturating_sub("null".len().saturating_sub("[]".len()));
    }

    /// Writes one row before `end`, or changes nothing that counts.
    fn row(&mut self, separator: &str, row: &impl Serialize, end: usize) -> Option<()> {
        let free = self.out.get_mut(self.at..end)?;
        let (before, free) = free.split_at_mut_checked(separator.len())?;
        before.copy_from_slice(separator.as_bytes());
        let len = serde_json_core::to_slice(row, free).ok()?;
        let len = escape_hidden(free, len)?;
        self.at = self.at.saturating_add(separator.len()).saturating_add(len);
        Some(())
    }

    /// Writes a part for which room is kept.
    fn fixed(&mut self, part: &str) {
        self.kept = self.kept.saturating_sub(part.len());
        let end = self.at.saturating_add(part.len());
        if let Some(slot) = self.out.get_mut(self.at..end) {
            slot.copy_from_slice(part.as_bytes());
            self.at = end;
        }
    }

    /// Moves `len` bytes from `start` behind all that was written after them.
    fn move_to_end(&mut self, start: usize, len: usize) {
        if let Some(written) = self.out.get_mut(start..self.at)
            && len <= written.len()
        {
            written.rotate_left(len);
        }
    }

    fn room(&self) -> usize {
        self.out.len().saturating_sub(self.at).saturating_sub(self.kept)
    }

    fn close(mut self) -> Written {
        for _ in 1..self.depth {
            self.fixed("}");
        }
        let mut end = heapless::String::<{ END.len() }>::new();
        // Cannot fail: `END` holds the largest count.
        let _ = write!(end, ",\"omitted\":{}}}", self.omitted);
        self.fixed(&end);
        Written { bytes: self.at, omitted: self.omitted }
    }
}

/// What a list adds to its key, at its longest.
const LIST_FRAME: &str = r#","":null"#;
/// How a document ends, at its longest.
const END: &str = r#","omitted":4294967295}"#;
/// An escaped UTF-16 unit.
const ESCAPE: &str = r"\u0000";

/// Escapes, in the first `len` bytes of `free`, what JSON allows but nobody sees.
///
/// serde-json-core escapes what JSON demands: quotes, backslashes and what is below U+0020. The
/// others stand within strings, since all else in a document is ASCII. Goes from the last
/// character to the first, so that nothing is overwritten before it has moved. Returns the new
/// length, or `None` if that does not fit.
fn escape_hidden(free: &mut [u8], len: usize) -> Option<usize> {
    let text = str::from_utf8(free.get(..len)?).ok()?;
    let hidden = text.chars().filter(|c| is_hidden(*c));
    let growth: usize = hidden.map(|c| escape(c).len().saturating_sub(c.len_utf8())).sum();
    let grown = len.checked_add(growth).filter(|grown| *grown <= free.len())?;
    let (mut from, mut to) = (len, grown);
    while from < to {
        let c = last_char(free.get(..from)?)?;
        let start = from.checked_sub(c.len_utf8())?;
        if is_hidden(c) {
            let (escape, end) = (escape(c), to);
            to = to.checked_sub(escape.len())?;
            free.get_mut(to..end)?.copy_from_slice(escape.as_bytes());
        } else {
            to = to.checked_sub(c.len_utf8())?;
            free.copy_within(start..from, to);
        }
        from = start;
    }
    Some(grown)
}

/// Returns the escape of `c`: one for each of its UTF-16 units, as JSON has it.
fn escape(c: char) -> heapless::String<{ 2 * ESCAPE.len() }> {
    let mut escape = heapless::String::new();
    for unit in c.encode_utf16(&mut [0; 2]) {
        // Cannot fail: two units fit.
        let _ = write!(escape, "\\u{unit:04X}");
    }
    escape
}

fn last_char(text: &[u8]) -> Option<char> {
    (1..=4).find_map(|len| {
        let last = text.get(text.len().checked_sub(len)?..)?;
        str::from_utf8(last).ok()?.chars().next()
    })
}
