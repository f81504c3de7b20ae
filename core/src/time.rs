//! The two clocks: one to measure with, one to print.

use core::fmt;
use core::ops::Add;
use core::time::Duration;

use serde::{Deserialize, Serialize};

/// A reading of the monotonic clock, in milliseconds since boot.
///
/// Counts time spent suspended (`CLOCK_BOOTTIME`). Compare only readings taken on the same
/// machine since the same boot.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Instant(u64);

impl Instant {
    /// Wraps a millisecond count.
    #[must_use]
    pub const fn from_millis(since_boot_ms: u64) -> Self {
        Self(since_boot_ms)
    }

    /// Returns the count of milliseconds since boot.
    #[must_use]
    pub const fn millis(self) -> u64 {
        self.0
    }

    /// Returns the count of microseconds since boot, as the kernel log counts them while the machine
    /// does not sleep.
    #[must_use]
    pub const fn micros(self) -> u64 {
        self.0.saturating_mul(1000)
    }

    /// Returns how long before `self` `earlier` was; zero if it was not before.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, rhs: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(rhs.as_millis()).unwrap_or(u64::MAX)))
    }
}

/// A reading of the wall clock, in seconds since the Unix epoch.
///
/// May step, and differs between machines. It is data: what must outlive the process, as the
/// times on API objects do. Everything else is measured with [`Instant`].
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Wraps a count of seconds since the Unix epoch.
    #[must_use]
    pub const fn from_unix_secs(unix_s: i64) -> Self {
        Self(unix_s)
    }

    /// Returns the count of seconds since the Unix epoch.
    #[must_use]
    pub const fn unix_secs(self) -> i64 {
        self.0
    }

    /// Returns how long before `self` `earlier` was; zero if it was not before.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_secs(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Returns the moment in UTC, or `None` outside the years 0 to 9999: RFC 3339 has no others.
    #[must_use]
    pub fn rfc3339(self) -> Option<Rfc3339> {
        let second = self.0.rem_euclid(DAY_S);
        let (year, month, day) = civil(self.0.div_euclid(DAY_S));
        (0..=9999).contains(&year).then_some(Rfc3339 {
            year,
            month,
            day,
            hour: second / 3600,
            minute: second / 60 % 60,
            second: second % 60,
        })
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, rhs: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(rhs.as_secs()).unwrap_or(i64::MAX)))
    }
}

/// A moment as API objects write it: `2026-11-30T21:21:27Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rfc3339 {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
}

impl fmt::Display for Rfc3339 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { year, month, day, hour, minute, second } = self;
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

/// Returns year, month and day of the `day`th day after 1 January 1970.
///
/// Counts in years that begin in March, so that a leap day is the last of its year, and in eras of
/// 400 years, after which the Gregorian calendar repeats. No day of an `i64` of seconds comes near
/// where this would saturate.
fn civil(day: i64) -> (i64, i64, i64) {
    let day = day.saturating_add(DAYS_BEFORE_1970);
    let (era, day) = (day.div_euclid(ERA_DAYS), day.rem_euclid(ERA_DAYS));
    let leap_days = (day / 1_460).saturating_sub(day / 36_524).saturating_add(day / 146_096);
    let year = day.saturating_sub(leap_days) / 365;
    let days_of_years =
        year.saturating_mul(365).saturating_add(year / 4).saturating_sub(year / 100);
    let day = day.saturating_sub(days_of_years);
    // Five months from March or August have 153 days.
    let month = day.saturating_mul(5).saturating_add(2) / 153;
    let days_of_months = month.saturating_mul(153).saturating_add(2) / 5;
    let day = day.saturating_sub(days_of_months).saturating_add(1);
    let year = era.saturating_mul(400).saturating_add(year);
    if month < 10 {
        (year, month.saturating_add(3), day)
    } else {
        (year.saturating_add(1), month.saturating_sub(9), day)
    }
}

const DAY_S: i64 = 24 * 3600;
/// Days of 400 Gregorian years.
const ERA_DAYS: i64 = 146_097;
/// Days from 1 March of the year 0 to 1 January 1970.
const DAYS_BEFORE_1970: i64 = 719_468;

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    #[test]
    fn time_never_runs_backwards_nor_over() {
        let (early, late) = (Instant::from_millis(5), Instant::from_millis(1_005));
        assert_eq!(late.since(early), Duration::from_secs(1));
        assert_eq!(early.since(late), Duration::ZERO);
        assert_eq!((Instant::from_millis(u64::MAX) + Duration::MAX).millis(), u64::MAX);
        let stamp = Timestamp::from_unix_secs(-5);
        assert_eq!((stamp + Duration::from_secs(7)).unix_secs(), 2);
        assert_eq!(stamp.since(stamp + Duration::from_secs(1)), Duration::ZERO);
        assert_eq!((Timestamp::from_unix_secs(i64::MAX) + Duration::MAX).unix_secs(), i64::MAX);
    }

    #[test]
    fn a_timestamp_prints_as_rfc_3339() {
        for (unix_s, want) in [
            (0, Some("1970-01-01T00:00:00Z")),
            (-1, Some("1969-12-31T23:59:59Z")),
            (951_782_399, Some("2000-02-28T23:59:59Z")),
            (951_782_400, Some("2000-02-29T00:00:00Z")),
            (951_868_800, Some("2000-03-01T00:00:00Z")),
            (1_709_164_800, Some("2024-02-29T00:00:00Z")),
            (1_709_251_199, Some("2024-02-29T23:59:59Z")),
            (1_796_073_687, Some("2026-11-30T21:21:27Z")),
            (4_107_542_399, Some("2100-02-28T23:59:59Z")),
            (4_107_542_400, Some("2100-03-01T00:00:00Z")),
            (-2_203_891_200, Some("1900-03-01T00:00:00Z")),
            (253_402_300_799, Some("9999-12-31T23:59:59Z")),
            (253_402_300_800, None),
            (-62_167_219_200, Some("0000-01-01T00:00:00Z")),
            (-62_167_219_201, None),
            (i64::MAX, None),
            (i64::MIN, None),
        ] {
            let got = Timestamp::from_unix_secs(unix_s).rfc3339().map(|time| time.to_string());
            assert_eq!(got.as_deref(), want, "{unix_s}");
        }
    }

    #[test]
    fn every_day_of_every_year_is_where_the_calendar_has_it() {
        let mut day = -719_528;
        for year in 0..=9999 {
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let february = if leap { 29 } else { 28 };
            for (month, days) in (1..).zip([31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]) {
                for of_month in 1..=days {
                    assert_eq!(civil(day), (year, month, of_month), "{day}");
                    day += 1;
                }
            }
        }
    }
}
