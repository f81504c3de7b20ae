//! The readings of one run, on their way from a probe's thread to the core.

use fettle_core::node::checks::Outcome;
use fettle_core::node::judge::Note;
use fettle_core::node::reading::{Reading, Unreadable};

/// Readings, encoded one after the other, so that their text needs no owner of its own.
#[derive(Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Batch {
    /// Appends a reading.
    pub fn push(&mut self, reading: &Reading<'_>) {
        let start = self.bytes.len();
        let mut room = ENCODED_BYTES;
        loop {
            self.bytes.resize(start.saturating_add(room), 0);
            let free = self.bytes.get_mut(start..).unwrap_or_default();
            // A buffer that is too small is the only way in which encoding can fail.
            if let Ok(encoded) = postcard::to_slice(reading, free) {
                let length = encoded.len();
                self.bytes.truncate(start.saturating_add(length));
                self.ends.push(self.bytes.len());
                return;
            }
            room = room.saturating_mul(2);
        }
    }

    /// Appends that `object` could not be read, and why.
    pub fn push_unreadable(&mut self, object: &str, why: &str) {
        self.push(&Reading::Unreadable(Unreadable { object, why }));
    }

    /// Returns the readings in their order.
    pub fn readings(&self) -> impl Iterator<Item = Reading<'_>> {
        let starts = core::iter::once(0).chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .filter_map(|(start, end)| postcard::from_bytes(self.bytes.get(start..*end)?).ok())
    }

    /// Returns whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

/// Returns the outcome of a run in which nothing could be read.
#[must_use]
pub fn failed(why: &str) -> Outcome {
    Outcome::Failed { why: Note::from_bytes(why.as_bytes()) }
}

/// Room that is made for one reading at first: names, and two hashes.
const ENCODED_BYTES: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_come_out_as_they_went_in() {
        let long = "x".repeat(5000);
        let mut batch = Batch::default();
        batch.push_unreadable("/a", "no");
        batch.push_unreadable(&long, "");
        batch.push_unreadable("/b", "yes");
        let objects: Vec<_> = batch.readings().map(|reading| reading.object().to_owned()).collect();
        assert_eq!(objects, ["/a", &long, "/b"]);
    }
}
