//! One gauge out of metrics in text form.
//!
//! Prometheus documentation, "Text-based format"; OpenMetrics as far as a gauge looks the same.

use crate::wire::scan::Scan;

/// All series of one gauge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gauge {
    /// How many series there are: one for each set of labels.
    pub series: u32,
    /// How many of them have `NaN` as their value.
    pub not_a_number: u32,
    /// What the others say, if there are others.
    pub numbers: Option<Numbers>,
}

/// The values of a gauge in thousandths, without floating point.
///
/// What lies between two thousandths counts as the one nearer to zero; what does not fit, such as
/// an infinity, as the largest or the smallest number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    /// The smallest value.
    pub min_milli: i64,
    /// The sum of all values.
    pub sum_milli: i64,
}

/// Why a gauge cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GaugeError {
    /// The labels of a series are none, or do not end.
    Labels,
    /// The text ends within a line, so that numbers or lines may be missing.
    Truncated,
    /// The value of a series, or its time, is missing or is no number.
    Value,
}

/// Returns the gauge `name`, or `None` if `text` does not have it.
///
/// # Errors
///
/// Returns what is wrong with the text as a whole, or with a line of this gauge. Lines of other
/// metrics are not looked at.
pub fn gauge(text: &[u8], name: &[u8]) -> Result<Option<Gauge>, GaugeError> {
    if text.last().is_some_and(|byte| *byte != b'\n') {
        return Err(GaugeError::Truncated);
    }
    let mut gauge = Gauge { series: 0, not_a_number: 0, numbers: None };
    for line in text.split(|byte| *byte == b'\n') {
        if let Some(series) = after_name(line, name) {
            gauge.add(value_of(series)?);
        }
    }
    Ok((gauge.series > 0).then_some(gauge))
}

impl Gauge {
    fn add(&mut self, value: Value) {
        self.series = self.series.saturating_add(1);
        match (value, self.numbers) {
            (Value::NotANumber, _) => self.not_a_number = self.not_a_number.saturating_add(1),
            (Value::Milli(milli), None) => {
                self.numbers = Some(Numbers { min_milli: milli, sum_milli: milli });
            }
            (Value::Milli(milli), Some(Numbers { min_milli, sum_milli })) => {
                self.numbers = Some(Numbers {
                    min_milli: min_milli.min(milli),
                    sum_milli: sum_milli.saturating_add(milli),
                });
            }
        }
    }
}

/// The value of one series.
#[derive(Clone, Copy)]
enum Value {
    Milli(i64),
    NotANumber,
}

/// Returns what follows `name` in a line that is a series of it.
fn after_name<'a>(line: &'a [u8], name: &[u8]) -> Option<Scan<'a>> {
    let rest = line.trim_ascii_start().strip_prefix(name)?;
    matches!(rest.first(), Some(b'{' | b' ' | b'\t')).then(|| Scan::new(rest))
}

/// Reads `{LABELS} VALUE TIME`; labels and time may be missing.
fn value_of(mut scan: Scan<'_>) -> Result<Value, GaugeError> {
    blanks(&mut scan);
    if scan.literal(b"{").is_some() {
        labels(&mut scan).ok_or(GaugeError::Labels)?;
        blanks(&mut scan);
    }
    let value = scan.word().and_then(number).ok_or(GaugeError::Value)?;
    blanks(&mut scan);
    // A time is milliseconds in one format and seconds with a fraction in the other.
    if scan.word().is_some_and(|time| number(time).is_none()) || !scan.at_end() {
        return Err(GaugeError::Value);
    }
    Ok(value)
}

/// Takes `NAME="VALUE",…}`.
fn labels(scan: &mut Scan<'_>) -> Option<()> {
    loop {
        blanks(scan);
        if scan.literal(b"}").is_some() {
            return Some(());
        }
        scan.run(|byte| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte == b':')?;
        blanks(scan);
        scan.literal(b"=")?;
        blanks(scan);
        scan.literal(b"\"")?;
        quoted(scan)?;
        blanks(scan);
        if scan.literal(b",").is_none() {
            return scan.literal(b"}");
        }
    }
}

/// Takes the rest of a label's value, up to the quotation mark that ends it.
fn quoted(scan: &mut Scan<'_>) -> Option<()> {
    loop {
        scan.run(|byte| *byte != b'"' && *byte != b'\\');
        if scan.literal(b"\"").is_some() {
            return Some(());
        }
        // What is escaped does not matter, only that it is no end.
        scan.one_of(&[b"\\\\", b"\\\"", b"\\"])?;
    }
}

fn blanks(scan: &mut Scan<'_>) {
    scan.run(|byte| matches!(byte, b' ' | b'\t'));
}

/// Reads a number as Prometheus prints it.
fn number(word: &[u8]) -> Option<Value> {
    let mut scan = Scan::new(word);
    let negative = scan.one_of(&[b"+", b"-"]) == Some(1);
    if scan.rest().eq_ignore_ascii_case(b"nan") {
        return Some(Value::NotANumber);
    }
    let magnitude = magnitude(scan)?;
    Some(Value::Milli(if negative { magnitude.saturating_neg() } else { magnitude }))
}

/// Reads a number without its sign, as thousandths.
fn magnitude(mut scan: Scan<'_>) -> Option<i64> {
    let word = scan.rest();
    if word.eq_ignore_ascii_case(b"inf") || word.eq_ignore_ascii_case(b"infinity") {
        return Some(i64::MAX);
    }
    let whole = scan.run(u8::is_ascii_digit).unwrap_or_default();
    let fraction = match scan.literal(b".") {
        Some(()) => scan.run(u8::is_ascii_digit).unwrap_or_default(),
        None => b"",
    };
    let exponent = match scan.one_of(&[b"e", b"E"]) {
        Some(_) => exponent(&mut scan)?,
        None => 0,
    };
    if (whole.is_empty() && fraction.is_empty()) || !scan.rest().is_empty() {
        return None;
    }
    Some(shifted(whole, fraction, exponent.saturating_add(3)))
}

fn exponent(scan: &mut Scan<'_>) -> Option<i64> {
    let negative = scan.one_of(&[b"+", b"-"]) == Some(1);
    let magnitude = scan.run(u8::is_ascii_digit)?.iter().fold(0, push_digit);
    Some(if negative { magnitude.saturating_neg() } else { magnitude })
}

/// Returns `whole.fraction` × 10^`places`, without what stays behind the point.
fn shifted(whole: &[u8], fraction: &[u8], places: i64) -> i64 {
    let whole_len = i64::try_from(whole.len()).unwrap_or(i64::MAX);
    let mut wanted = whole_len.saturating_add(places);
    let mut number = 0;
    for digit in whole.iter().chain(fraction) {
        if wanted <= 0 {
            return number;
        }
        wanted = wanted.saturating_sub(1);
        number = push_digit(number, digit);
    }
    // Ends soon: nineteen zeros fill an `i64`, whatever stands before them.
    while wanted > 0 && number != 0 && number != i64::MAX {
        wanted = wanted.saturating_sub(1);
        number = push_digit(number, &b'0');
    }
    number
}

fn push_digit(number: i64, digit: &u8) -> i64 {
    number.saturating_mul(10).saturating_add(i64::from(digit.saturating_sub(b'0')))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::format;
    use std::vec::Vec;

    use super::*;

    #[test]
    fn finds_the_series_of_one_gauge_among_others() {
        let text = b"# HELP up_total No gauge.\n# TYPE up gauge\n\
            up{job=\"a\",path=\"C:\\\\\\\"}\\n\"} 3 1700000000000\n\
            up_total 7\nupper 8\nup{} 0.5\n up\t{ job = \"b\" , }\t1e1\r\n# EOF\n";
        let numbers = Some(Numbers { min_milli: 500, sum_milli: 13_500 });
        assert_eq!(gauge(text, b"up"), Ok(Some(Gauge { series: 3, not_a_number: 0, numbers })));
        assert_eq!(gauge(text, b"u"), Ok(None));
        assert_eq!(gauge(b"", b"up"), Ok(None));
    }

    #[test]
    fn what_is_no_number_is_counted_and_left_out() {
        let numbers = Some(Numbers { min_milli: 2000, sum_milli: 2000 });
        let want = Gauge { series: 2, not_a_number: 1, numbers };
        assert_eq!(gauge(b"x NaN\nx{a=\"b\"} 2\n", b"x"), Ok(Some(want)));
        let want = Gauge { series: 1, not_a_number: 1, numbers: None };
        assert_eq!(gauge(b"x NaN\n", b"x"), Ok(Some(want)));
    }

    #[test]
    fn numbers_are_thousandths_cut_towards_zero() {
        for (value, want) in [
            ("0", 0),
            ("-0.0019", -1),
            ("1.9999", 1999),
            ("+12.", 12_000),
            (".5", 500),
            ("1e-3", 1),
            ("9.99e-4", 0),
            ("0.30000000000000004", 300),
            ("1.5E+09", 1_500_000_000_000),
            ("9223372036854775.807", i64::MAX),
            ("9223372036854775", 9_223_372_036_854_775_000),
            ("1e16", i64::MAX),
            ("-1e99999999999999999999", i64::MIN + 1),
            ("0e99999999999999999999", 0),
            ("7e-99999999999999999999", 0),
            ("+Inf", i64::MAX),
            ("-inf", i64::MIN + 1),
        ] {
            assert_eq!(milli(value), Some(want), "{value}");
        }
    }

    #[test]
    fn a_line_that_is_no_series_says_why() {
        for (text, want) in [
            (&b"x 1\nx 2"[..], GaugeError::Truncated),
            (b"y 1", GaugeError::Truncated),
            (b"x{a=\"b\" 1\n", GaugeError::Labels),
            (b"x{a=\"b\\\"} 1\n", GaugeError::Labels),
            (b"x{a=\"b\\\n\"} 1\n", GaugeError::Labels),
            (b"x{\"a\"} 1\n", GaugeError::Labels),
            (b"x \n", GaugeError::Value),
            (b"x 1 2 3\n", GaugeError::Value),
            (b"x 1 then\n", GaugeError::Value),
            (b"x 0x10\n", GaugeError::Value),
            (b"x 1_000\n", GaugeError::Value),
            (b"x 1e\n", GaugeError::Value),
            (b"x .\n", GaugeError::Value),
            (b"x --1\n", GaugeError::Value),
        ] {
            assert_eq!(gauge(text, b"x"), Err(want), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(bytes: Vec<u8>, name: Vec<u8>) {
            let _ = gauge(&bytes, &name);
            let line = [b"x{a=\"".as_slice(), &bytes, b"\n"].concat();
            let _ = gauge(&line, b"x");
        }

        #[test]
        fn decimals_are_what_they_say(whole in 0..1_000_000_i64, milli_part in 0..1000_i64) {
            let want = whole * 1000 + milli_part;
            prop_assert_eq!(milli(&format!("{whole}.{milli_part:03}")), Some(want));
            prop_assert_eq!(milli(&format!("-{want}e-3")), Some(-want));
        }
    }

    fn milli(value: &str) -> Option<i64> {
        let text = format!("x {value}\n");
        gauge(text.as_bytes(), b"x").ok()??.numbers.map(|numbers| numbers.min_milli)
    }
}
