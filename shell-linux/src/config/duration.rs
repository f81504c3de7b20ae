//! Durations as Go writes them: `5m`, `1h30m`, `250ms`, `.5s`, `0`.

use core::time::Duration;

/// Why a text is no duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// A number has no unit.
    #[error("has a number without a unit")]
    MissingUnit,
    /// It is below zero.
    #[error("is below zero")]
    Negative,
    /// It is more nanoseconds than Go can count.
    #[error("is too long")]
    TooLong,
    /// A unit is not one of Go's.
    #[error("has a unit that is none of ns, us, ms, s, m, h")]
    UnknownUnit,
    /// It is not made of numbers and units.
    #[error("is not a number with a unit")]
    Unreadable,
}

/// Reads a duration as Go's `time.ParseDuration` does, except that none is below zero.
///
/// # Errors
///
/// Says why `text` is no duration.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if unsigned == "0" {
        return Ok(Duration::ZERO);
    }
    let mut rest = unsigned;
    let mut nanoseconds = 0;
    while !rest.is_empty() {
        let (part, behind) = one_part(rest)?;
        nanoseconds = add(nanoseconds, part)?;
        rest = behind;
    }
    if unsigned.is_empty() {
        Err(DurationError::Unreadable)
    } else if text.starts_with('-') && nanoseconds > 0 {
        Err(DurationError::Negative)
    } else {
        Ok(Duration::from_nanos(nanoseconds))
    }
}

/// Reads a number and its unit, and returns them as nanoseconds with what follows.
fn one_part(text: &str) -> Result<(u64, &str), DurationError> {
    let (whole, behind) = digits(text);
    let (fraction, behind) = behind.strip_prefix('.').map_or(("", behind), digits);
    if whole.is_empty() && fraction.is_empty() {
        return Err(DurationError::Unreadable);
    }
    let end = behind.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(behind.len());
    let (unit, behind) = behind.split_at(end);
    let unit = match unit {
        "" => return Err(DurationError::MissingUnit),
        "ns" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return Err(DurationError::UnknownUnit),
    };
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(too_long)? };
    let whole = whole.checked_mul(unit).ok_or(DurationError::TooLong)?;
    Ok((add(whole, of_fraction(fraction, unit))?, behind))
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// Returns the nanoseconds of a unit's fraction, rounded as Go rounds.
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "Go multiplies as float64 and cuts; the result is at most an hour"
)]
fn of_fraction(digits: &str, unit: u64) -> u64 {
    let mut value: u64 = 0;
    let mut scale = 1.0;
    for digit in digits.bytes() {
        let more = value.checked_mul(10).and_then(|v| v.checked_add(u64::from(digit - b'0')));
        let Some(more) = more.filter(|more| *more <= GO_MAX) else { break };
        value = more;
        scale *= 10.0;
    }
    (value as f64 * (unit as f64 / scale)) as u64
}

fn add(left: u64, right: u64) -> Result<u64, DurationError> {
    left.checked_add(right).filter(|sum| *sum <= GO_MAX).ok_or(DurationError::TooLong)
}

fn too_long(_: core::num::ParseIntError) -> DurationError {
    DurationError::TooLong
}

/// The longest duration that Go can count, in nanoseconds: `math.MaxInt64`.
const GO_MAX: u64 = u64::MAX >> 1;

#[cfg(test)]
mod tests {
    use super::DurationError::{MissingUnit, Negative, TooLong, UnknownUnit, Unreadable};
    use super::*;

    #[test]
    fn readable_ones_are_as_long_as_go_says() {
        // text, nanoseconds by Go 1.26's time.ParseDuration
        for (text, nanoseconds) in [
            ("0", 0),
            ("+0", 0),
            ("-0", 0),
            ("5s", 5000000000),
            ("30s", 30000000000),
            ("1478s", 1478000000000),
            ("+5s", 5000000000),
            ("5.0s", 5000000000),
            ("5.6s", 5600000000),
            ("5.s", 5000000000),
            (".5s", 500000000),
            ("1.0s", 1000000000),
            ("1.00s", 1000000000),
            ("1.004s", 1004000000),
            ("1.0040s", 1004000000),
            ("100.00100s", 100001000000),
            ("10ns", 10),
            ("11us", 11000),
            ("12\u{b5}s", 12000),
            ("12\u{3bc}s", 12000),
            ("13ms", 13000000),
            ("14s", 14000000000),
            ("15m", 900000000000),
            ("16h", 57600000000000),
            ("3h30m", 12600000000000),
            ("10.5s4m", 250500000000),
            ("1h2m3s4ms5us6ns", 3723004005006),
            ("39h9m14.425s", 140954425000000),
            ("52763797000ns", 52763797000),
            ("0.3333333333333333333h", 1200000000000),
            ("9007199254740993ns", 9007199254740993),
            ("9223372036854775807ns", 9223372036854775807),
            ("9223372036854775.807us", 9223372036854775807),
            ("9223372036s854ms775us807ns", 9223372036854775807),
            ("2562047h47m16.854775807s", 9223372036854775807),
            ("0.100000000000000000000h", 360000000000),
            ("0.830103483285477580700h", 2988372539827),
            ("1.5h30m", 7200000000000),
            ("1m1m", 120000000000),
            ("00005s", 5000000000),
            ("0s", 0),
            ("0.0000000001s", 0),
            ("1.9ns", 1),
            ("0.99999999999999999999999h", 3600000000000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_nanos(nanoseconds)), "{text}");
        }
    }

    #[test]
    fn what_go_refuses_is_refused() {
        for (text, want) in [
            ("", Unreadable),
            ("-", Unreadable),
            ("s", Unreadable),
            (".", Unreadable),
            ("-.", Unreadable),
            (".s", Unreadable),
            ("+.s", Unreadable),
            (" 1s", Unreadable),
            ("\u{663}s", Unreadable),
            ("--1s", Unreadable),
            ("3", MissingUnit),
            ("5.", MissingUnit),
            ("1h30", MissingUnit),
            ("5m0", MissingUnit),
            ("1..5s", MissingUnit),
            ("1d", UnknownUnit),
            ("1 s", UnknownUnit),
            ("1s ", UnknownUnit),
            ("1S", UnknownUnit),
            ("1M", UnknownUnit),
            ("1e3s", UnknownUnit),
            ("0x1s", UnknownUnit),
            ("1_000s", UnknownUnit),
            ("1\u{b5}", UnknownUnit),
            ("3000000h", TooLong),
            ("9223372036854775808ns", TooLong),
            ("9223372036854775809ns", TooLong),
            ("9223372036854775.808us", TooLong),
            ("9223372036854ms775us808ns", TooLong),
            ("2562047h47m16.854775808s", TooLong),
            ("99999999999999999999.0ns", TooLong),
        ] {
            assert_eq!(parse(text), Err(want), "{text:?}");
        }
    }

    #[test]
    fn none_is_below_zero() {
        assert_eq!(parse("-5s"), Err(Negative));
        assert_eq!(parse("-0.0000000001s"), Ok(Duration::ZERO));
    }
}
