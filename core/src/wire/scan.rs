//! A cursor over bytes, for parsers that cannot panic.

/// What is left to read of one line.
///
/// Each method takes what it matched off the front and returns it; where nothing matches, it
/// returns `None` and takes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scan<'a> {
    rest: &'a [u8],
}

impl<'a> Scan<'a> {
    /// Starts at the front of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Returns what is left.
    #[must_use]
    pub const fn rest(self) -> &'a [u8] {
        self.rest
    }

    /// Returns whether nothing but white space is left.
    #[must_use]
    pub fn at_end(self) -> bool {
        self.rest.iter().all(u8::is_ascii_whitespace)
    }

    /// Takes `literal`.
    pub fn literal(&mut self, literal: &[u8]) -> Option<()> {
        self.rest = self.rest.strip_prefix(literal)?;
        Some(())
    }

    /// Takes the first of `literals` that is next, and returns which it was.
    pub fn one_of(&mut self, literals: &[&[u8]]) -> Option<usize> {
        literals.iter().position(|literal| self.literal(literal).is_some())
    }

    /// Takes the longest run of bytes that `wanted` accepts, if there is one.
    pub fn run(&mut self, wanted: impl Fn(&u8) -> bool) -> Option<&'a [u8]> {
        let len = self.rest.iter().position(|byte| !wanted(byte)).unwrap_or(self.rest.len());
        if len == 0 {
            return None;
        }
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    /// Takes what stands before the first `stop`, and `stop` itself.
    pub fn until(&mut self, stop: &[u8]) -> Option<&'a [u8]> {
        self.take_before(find(self.rest, stop)?, stop)
    }

    fn take_before(&mut self, at: usize, stop: &[u8]) -> Option<&'a [u8]> {
        let (before, rest) = self.rest.split_at_checked(at)?;
        self.rest = rest.strip_prefix(stop)?;
        Some(before)
    }

    /// Takes what stands before the last `stop`, and `stop` itself.
    pub fn until_last(&mut self, stop: &[u8]) -> Option<&'a [u8]> {
        self.take_before(find_last(self.rest, stop)?, stop)
    }

    /// Takes a decimal number.
    pub fn number(&mut self) -> Option<u64> {
        decimal(self.run(u8::is_ascii_digit)?)
    }

    /// Takes a decimal number that may have a minus sign.
    pub fn signed(&mut self) -> Option<i64> {
        let negative = self.literal(b"-").is_some();
        let magnitude = i64::try_from(self.number()?).ok()?;
        if negative { magnitude.checked_neg() } else { Some(magnitude) }
    }

    /// Takes a word: a run of bytes without white space.
    pub fn word(&mut self) -> Option<&'a [u8]> {
        self.run(|byte| !byte.is_ascii_whitespace())
    }
}

/// Returns where `wanted` first stands in `bytes`.
#[must_use]
pub fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    let first = wanted.first()?;
    let mut from = 0_usize;
    loop {
        let rest = bytes.get(from..)?;
        let step = rest.iter().position(|byte| byte == first)?;
        if rest.get(step..)?.starts_with(wanted) {
            return from.checked_add(step);
        }
        from = from.checked_add(step)?.checked_add(1)?;
    }
}

/// Returns where `wanted` last stands in `bytes`.
#[must_use]
pub fn find_last(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    let first = wanted.first()?;
    let mut end = bytes.len();
    loop {
        let at = bytes.get(..end)?.iter().rposition(|byte| byte == first)?;
        if bytes.get(at..)?.starts_with(wanted) {
            return Some(at);
        }
        end = at;
    }
}

/// Returns whether `wanted` stands anywhere in `bytes`.
#[must_use]
pub fn has(bytes: &[u8], wanted: &[u8]) -> bool {
    find(bytes, wanted).is_some()
}

/// Reads all of `digits` as a decimal number.
#[must_use]
pub fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, digit| {
        let digit = char::from(*digit).to_digit(10)?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::vec::Vec;

    use super::*;

    #[test]
    fn takes_what_it_matches_and_nothing_else() {
        let mut scan = Scan::new(b"task a:b:7 for -3 s");
        assert_eq!(scan.literal(b"Task "), None);
        assert_eq!(scan.literal(b"task "), Some(()));
        assert_eq!(scan.until(b" for "), Some(&b"a:b:7"[..]));
        assert_eq!(scan.signed(), Some(-3));
        assert_eq!(scan.number(), None);
        assert_eq!(scan.one_of(&[b"x", b" s"]), Some(1));
        assert!(scan.at_end());
        let mut name = Scan::new(b"a:b:7");
        assert_eq!(name.until_last(b":"), Some(&b"a:b"[..]));
        assert_eq!(name.number(), Some(7));
    }

    #[test]
    fn numbers_that_do_not_fit_are_none() {
        assert_eq!(decimal(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(decimal(b"18446744073709551616"), None);
        assert_eq!(decimal(b"+1"), None);
        assert_eq!(decimal(b""), None);
        assert_eq!(Scan::new(b"-9223372036854775809").signed(), None);
    }

    proptest! {
        #[test]
        fn find_is_what_windows_say(bytes in "[ab]{0,12}", wanted in "[ab]{1,3}") {
            let (bytes, wanted) = (bytes.as_bytes(), wanted.as_bytes());
            let want = bytes.windows(wanted.len()).position(|window| window == wanted);
            prop_assert_eq!(find(bytes, wanted), want);
            let last = bytes.windows(wanted.len()).rposition(|window| window == wanted);
            prop_assert_eq!(find_last(bytes, wanted), last);
        }

        #[test]
        fn never_panics(bytes: Vec<u8>, stop: Vec<u8>) {
            let mut scan = Scan::new(&bytes);
            let _ = (scan.until(&stop), scan.number(), scan.word(), scan.until_last(&stop));
        }
    }
}
