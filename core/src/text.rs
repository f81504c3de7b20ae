//! Bounded text: what came from outside, made safe to show, and never too long.

use core::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// At most `N` bytes of UTF-8 without control characters.
///
/// What does not fit is cut on a character boundary and ends in `…`. Newlines and tabs become
/// spaces. Other control characters, characters that reorder or hide text, and bytes that are not
/// UTF-8 become `\u{fffd}`: a log line is hostile until it is one line that reads as it is.
///
/// # Invariants
///
/// * `fits`: never longer than `N` bytes.
/// * `one_line`: holds no control character.
/// * `cut_shows`: text that was cut ends in `…`.
/// * `journal_keeps`: what a journal reads back is what was written. Formats for people keep the
///   text alone, and take one that ends in `…` for cut.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Text<const N: usize> {
    kept: heapless::String<N>,
    cut: bool,
}

impl<const N: usize> Text<N> {
    /// Returns an empty text.
    #[must_use]
    pub const fn new() -> Self {
        const { assert!(N >= ELLIPSIS.len()) };
        Self { kept: heapless::String::new(), cut: false }
    }

    /// Copies `bytes`, cleaned and cut to fit.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut text = Self::new();
        text.push_bytes(bytes);
        text
    }

    /// Formats `value`, cleaned and cut to fit.
    #[must_use]
    pub fn display(value: impl fmt::Display) -> Self {
        let mut text = Self::new();
        // `write_str` below has no error to return, so only `value` itself could fail.
        let _ = fmt::write(&mut text, format_args!("{value}"));
        text
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.kept.as_str()
    }

    /// Returns whether nothing is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Appends `bytes`, cleaned, as far as they fit.
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        for chunk in bytes.utf8_chunks() {
            self.push_str(chunk.valid());
            if !chunk.invalid().is_empty() {
                self.push(char::REPLACEMENT_CHARACTER);
            }
        }
    }

    /// Appends `text`, cleaned, as far as it fits.
    pub fn push_str(&mut self, text: &str) {
        for c in text.chars() {
            if self.cut {
                return;
            }
            self.push(c);
        }
    }

    fn push(&mut self, c: char) {
        if !self.cut && self.kept.push(shown(c)).is_err() {
            self.end_in_ellipsis();
        }
    }

    fn mark_cut(&mut self) {
        self.cut = true;
        if !self.kept.as_bytes().ends_with(ELLIPSIS.as_bytes()) {
            self.end_in_ellipsis();
        }
    }

    fn end_in_ellipsis(&mut self) {
        self.cut = true;
        while self.kept.push_str(ELLIPSIS).is_err() {
            // Ends: an empty string has room for the ellipsis, as `new` asserts.
            if self.kept.pop().is_none() {
                return;
            }
        }
    }
}

impl<const N: usize> fmt::Write for Text<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push_str(text);
        Ok(())
    }
}

impl<const N: usize> fmt::Display for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.as_str())
    }
}

impl<const N: usize> Serialize for Text<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            return serializer.serialize_str(self.as_str());
        }
        (self.cut, self.as_str()).serialize(serializer)
    }
}

impl<'de, const N: usize> Deserialize<'de> for Text<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (cut, stored) = if deserializer.is_human_readable() {
            let stored = <&str>::deserialize(deserializer)?;
            (stored.as_bytes().ends_with(ELLIPSIS.as_bytes()), stored)
        } else {
            Deserialize::deserialize(deserializer)?
        };
        let mut text = Self::new();
        text.push_str(stored);
        if cut {
            text.mark_cut();
        }
        Ok(text)
    }
}

/// Returns what stands for `c` in one line of plain text.
fn shown(c: char) -> char {
    match c {
        '\n' | '\t' => ' ',
        c if is_hidden(c) => char::REPLACEMENT_CHARACTER,
        c => c,
    }
}

/// Returns whether `c` hides or reorders text, or commands a terminal, instead of being seen.
pub(crate) fn is_hidden(c: char) -> bool {
    // Zero-width and bidirectional controls (Unicode Standard Annex 9), line separators, and tags.
    let invisible = matches!(
        c,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    );
    invisible || c.is_control()
}

const ELLIPSIS: &str = "…";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::string::ToString;
    use std::vec::Vec;

    use super::*;

    #[test]
    fn keeps_what_fits_and_marks_what_does_not() {
        // in, kept in 8 bytes
        for (bytes, want) in [
            (&b""[..], ""),
            (b"12345678", "12345678"),
            (b"123456789", "12345…"),
            ("ääää".as_bytes(), "ääää"),
            ("äääää".as_bytes(), "ää…"),
            (b"a\nb\tc", "a b c"),
            (b"a\x1bb", "a\u{fffd}b"),
            ("a\u{202e}b".as_bytes(), "a\u{fffd}b"),
            (b"\xff", "\u{fffd}"),
        ] {
            assert_eq!(Text::<8>::from_bytes(bytes).to_string(), want, "{bytes:?}");
        }
    }

    #[test]
    fn an_ellipsis_that_came_from_outside_is_no_cut() {
        let mut buffer = [0; 16];
        let text = Text::<8>::from_bytes("a…".as_bytes());
        let mut read: Text<8> =
            postcard::from_bytes(postcard::to_slice(&text, &mut buffer).unwrap()).unwrap();
        read.push_str("b");
        assert_eq!(read.as_str(), "a…b");
        // Nobody wrote this: it says that it was cut, and does not show it.
        let read: Text<8> = postcard::from_bytes(b"\x01\x01a").unwrap();
        assert_eq!(read.as_str(), "a…");
    }

    proptest! {
        #[test]
        fn invariants_hold_for_any_bytes(parts: Vec<Vec<u8>>) {
            let mut text = Text::<16>::new();
            for part in &parts {
                text.push_bytes(part);
            }
            prop_assert!(text.as_str().len() <= 16, "fits");
            prop_assert!(!text.as_str().chars().any(char::is_control), "one_line");
            prop_assert!(!text.cut || text.as_str().ends_with(ELLIPSIS), "cut_shows");
            let mut buffer = [0; 64];
            let written = postcard::to_slice(&text, &mut buffer).unwrap();
            prop_assert_eq!(postcard::from_bytes(written), Ok(text), "journal_keeps");
        }
    }
}
