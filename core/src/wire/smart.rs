//! What an NVMe drive says of itself: its health log page and its identity.
//!
//! NVM Express Base Specification, "SMART / Health Information" and "Identify Controller Data
//! Structure".

use core::fmt;

use crate::wire::binary::{array_at, u8_at, u16_at, u32_at, u128_at};

/// The SMART / Health Information log page of a controller.
///
/// Counters of 16 bytes end at the largest number of 8 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Health {
    /// What the controller warns of.
    pub warnings: Warnings,
    /// Composite temperature in kelvins, never 0.
    pub temperature_k: u16,
    /// Spare capacity that is left, in percent.
    pub spare_pct: u8,
    /// Spare capacity below which the controller warns, in percent.
    pub spare_threshold_pct: u8,
    /// Share of the rated endurance that is used, in percent: may pass 100, ends at 255.
    pub used_pct: u8,
    /// What the endurance groups together warn of.
    pub endurance_group_warnings: Warnings,
    /// Data read by the host, in units of 512,000 bytes.
    pub units_read: u64,
    /// Data written by the host, in units of 512,000 bytes.
    pub units_written: u64,
    /// Read commands that were completed.
    pub host_reads: u64,
    /// Write commands that were completed.
    pub host_writes: u64,
    /// Time that the controller was busy with commands, in minutes.
    pub busy_min: u64,
    /// Power cycles.
    pub power_cycles: u64,
    /// Hours under power.
    pub power_on_hours: u64,
    /// Losses of power without a shutdown before.
    pub unsafe_shutdowns: u64,
    /// Errors of data integrity that the controller could not undo.
    pub media_errors: u64,
    /// Entries that the error log ever had.
    pub error_log_entries: u64,
    /// Time at or above the warning temperature, in minutes.
    pub warning_temperature_min: u32,
    /// Time at or above the critical temperature, in minutes.
    pub critical_temperature_min: u32,
    /// Temperatures of single sensors in kelvins; 0 where there is none.
    pub sensors_k: [u16; SENSORS],
    /// Light and heavy thermal throttling.
    pub throttling: [Throttling; 2],
}

/// How often and how long a drive slowed down to cool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Throttling {
    /// How often.
    pub count: u32,
    /// How long in all, in seconds.
    pub total_s: u32,
}

/// Why bytes are no health log page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthError {
    /// The temperature is 0 K: nobody filled the page in.
    ///
    /// Each controller must report its temperature, and none works at absolute zero. Buffers that
    /// no command reached look so, and some virtual disks; taken at its word, a page of zeros is
    /// a disk in perfect health.
    Empty,
    /// There are fewer than [`HEALTH_BYTES`].
    Short,
}

impl Health {
    /// Parses the page as the controller sent it.
    ///
    /// # Errors
    ///
    /// See [`HealthError`].
    pub fn parse(page: &[u8]) -> Result<Self, HealthError> {
        let page: &[u8; HEALTH_BYTES] = page.first_chunk().ok_or(HealthError::Short)?;
        let health = Self::fields(page).ok_or(HealthError::Short)?;
        if health.temperature_k == 0 { Err(HealthError::Empty) } else { Ok(health) }
    }

    fn fields(page: &[u8]) -> Option<Self> {
        Some(Self {
            warnings: Warnings::from_bits(u8_at(page, 0)?),
            temperature_k: u16_at(page, 1)?,
            spare_pct: u8_at(page, 3)?,
            spare_threshold_pct: u8_at(page, 4)?,
            used_pct: u8_at(page, 5)?,
            endurance_group_warnings: Warnings::from_bits(u8_at(page, 6)?),
            units_read: u128_at(page, 32)?,
            units_written: u128_at(page, 48)?,
            host_reads: u128_at(page, 64)?,
            host_writes: u128_at(page, 80)?,
            busy_min: u128_at(page, 96)?,
            power_cycles: u128_at(page, 112)?,
            power_on_hours: u128_at(page, 128)?,
            unsafe_shutdowns: u128_at(page, 144)?,
            media_errors: u128_at(page, 160)?,
            error_log_entries: u128_at(page, 176)?,
            warning_temperature_min: u32_at(page, 192)?,
            critical_temperature_min: u32_at(page, 196)?,
            sensors_k: sensors(array_at(page, 200)?),
            throttling: [throttling(page, 216, 224)?, throttling(page, 220, 228)?],
        })
    }
}

fn sensors(bytes: [u8; 2 * SENSORS]) -> [u16; SENSORS] {
    let mut sensors = [0; SENSORS];
    for (sensor, pair) in sensors.iter_mut().zip(bytes.as_chunks().0) {
        *sensor = u16::from_le_bytes(*pair);
    }
    sensors
}

fn throttling(page: &[u8], count: usize, total: usize) -> Option<Throttling> {
    Some(Throttling { count: u32_at(page, count)?, total_s: u32_at(page, total)? })
}

/// The warnings of a controller, a set of bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Warnings(u8);

impl Warnings {
    /// Takes the byte "Critical Warning" as the controller sent it.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// Returns the byte.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Returns whether there is none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns whether a temperature is past its threshold.
    #[must_use]
    pub const fn temperature(self) -> bool {
        self.0 & TEMPERATURE != 0
    }

    /// Returns all warnings but that of the temperature, which is no failure of the drive.
    #[must_use]
    pub const fn failures(self) -> Self {
        Self(self.0 & !TEMPERATURE)
    }

    /// Returns the name of each warning.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES.iter().filter(move |(bit, _)| self.0 & bit != 0).map(|(_, name)| *name)
    }
}

impl fmt::Display for Warnings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for name in self.names() {
            f.write_str(separator)?;
            f.write_str(name)?;
            separator = ", ";
        }
        Ok(())
    }
}

impl fmt::Debug for Warnings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#04x} ({self})", self.0)
    }
}

/// What a controller says of itself that decisions need.
///
/// Texts are as the controller sent them, without the spaces around them: not safe to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity<'a> {
    /// Serial number.
    pub serial: &'a [u8],
    /// Model number.
    pub model: &'a [u8],
    /// Firmware revision.
    pub firmware: &'a [u8],
    /// WCTEMP, the warning temperature in kelvins, if the controller reports one.
    pub warning_temperature_k: Option<u16>,
    /// CCTEMP, the critical temperature in kelvins, if the controller reports one.
    pub critical_temperature_k: Option<u16>,
}

/// Why bytes are no Identify Controller data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdentityError {
    /// There is neither a model nor a serial number: nobody filled the page in.
    Empty,
    /// There are fewer than [`IDENTITY_BYTES`].
    Short,
}

impl<'a> Identity<'a> {
    /// Parses the page as the controller sent it.
    ///
    /// # Errors
    ///
    /// See [`IdentityError`].
    pub fn parse(page: &'a [u8]) -> Result<Self, IdentityError> {
        let page: &[u8; IDENTITY_BYTES] = page.first_chunk().ok_or(IdentityError::Short)?;
        let identity = Self::fields(page).ok_or(IdentityError::Short)?;
        if identity.serial.is_empty() && identity.model.is_empty() {
            return Err(IdentityError::Empty);
        }
        Ok(identity)
    }

    fn fields(page: &'a [u8]) -> Option<Self> {
        Some(Self {
            serial: text(page.get(4..24)?),
            model: text(page.get(24..64)?),
            firmware: text(page.get(64..72)?),
            warning_temperature_k: Some(u16_at(page, 266)?).filter(|kelvins| *kelvins != 0),
            critical_temperature_k: Some(u16_at(page, 268)?).filter(|kelvins| *kelvins != 0),
        })
    }
}

/// Returns `field` without what pads it: spaces, and zeros where firmware is careless.
fn text(mut field: &[u8]) -> &[u8] {
    while let [b' ' | 0, rest @ ..] | [rest @ .., b' ' | 0] = field {
        field = rest;
    }
    field
}

/// Returns a temperature of a page in degrees Celsius.
#[must_use]
pub fn celsius(kelvins: u16) -> i16 {
    let celsius = i32::from(kelvins).saturating_sub(273);
    i16::try_from(celsius).unwrap_or(i16::MAX)
}

/// Size of the SMART / Health Information log page.
pub const HEALTH_BYTES: usize = 512;

/// Size of the Identify Controller data.
pub const IDENTITY_BYTES: usize = 4096;

/// How many temperature sensors the page has room for.
pub const SENSORS: usize = 8;

const TEMPERATURE: u8 = 1 << 1;

/// In the order of the bits. A reserved bit that is set is a warning that has no name here yet.
const NAMES: [(u8, &str); 8] = [
    (1 << 0, "spare capacity is low"),
    (TEMPERATURE, "temperature is past a threshold"),
    (1 << 2, "reliability is degraded"),
    (1 << 3, "media is read-only"),
    (1 << 4, "volatile memory backup failed"),
    (1 << 5, "persistent memory region is read-only"),
    (1 << 6, "reserved warning 6"),
    (1 << 7, "reserved warning 7"),
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::string::ToString;
    use std::vec::Vec;

    use super::*;

    #[test]
    fn each_field_of_the_health_page_stands_in_its_place() {
        let health = Health::parse(&health_page()).unwrap();
        assert_eq!(health.warnings.bits(), 0x03);
        assert_eq!(health.temperature_k, 0x0141);
        assert_eq!((health.spare_pct, health.spare_threshold_pct, health.used_pct), (9, 10, 120));
        assert_eq!(health.endurance_group_warnings.bits(), 0x04);
        let counters = [
            health.units_read,
            health.units_written,
            health.host_reads,
            health.host_writes,
            health.busy_min,
            health.power_cycles,
            health.power_on_hours,
            health.unsafe_shutdowns,
            health.media_errors,
            health.error_log_entries,
        ];
        assert_eq!(counters, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        assert_eq!((health.warning_temperature_min, health.critical_temperature_min), (11, 12));
        assert_eq!(health.sensors_k, [300, 301, 302, 303, 304, 305, 306, 307]);
        let [light, heavy] = health.throttling;
        assert_eq!((light.count, heavy.count, light.total_s, heavy.total_s), (13, 14, 15, 16));
    }

    #[test]
    fn a_page_that_nobody_filled_in_is_no_healthy_disk() {
        assert_eq!(Health::parse(&[0; HEALTH_BYTES]), Err(HealthError::Empty));
        assert_eq!(Health::parse(&[0xff; HEALTH_BYTES - 1]), Err(HealthError::Short));
        assert_eq!(Identity::parse(&[0; IDENTITY_BYTES]), Err(IdentityError::Empty));
        assert_eq!(Identity::parse(&[b' '; IDENTITY_BYTES]), Err(IdentityError::Empty));
        assert_eq!(Identity::parse(&[b'x'; IDENTITY_BYTES - 1]), Err(IdentityError::Short));
    }

    #[test]
    fn counters_past_eight_bytes_end_at_the_largest_number() {
        let mut page = health_page();
        page[160 + 8] = 1;
        assert_eq!(Health::parse(&page).unwrap().media_errors, u64::MAX);
    }

    #[test]
    fn heat_is_a_warning_but_no_failure() {
        // bits, hot, failures, names
        for (bits, hot, failures, names) in [
            (0x00, false, 0x00, ""),
            (0x02, true, 0x00, "temperature is past a threshold"),
            (0x09, false, 0x09, "spare capacity is low, media is read-only"),
            (
                0x22,
                true,
                0x20,
                "temperature is past a threshold, persistent memory region is read-only",
            ),
            (0x80, false, 0x80, "reserved warning 7"),
        ] {
            let warnings = Warnings::from_bits(bits);
            assert_eq!((warnings.temperature(), warnings.failures().bits()), (hot, failures));
            assert_eq!((warnings.to_string().as_str(), warnings.is_empty()), (names, bits == 0));
        }
    }

    #[test]
    fn identity_is_trimmed_and_a_threshold_of_zero_is_none() {
        let mut page = [0; IDENTITY_BYTES];
        page[4..24].copy_from_slice(b"  S4EV NF0M 1\0      ");
        page[24..64].copy_from_slice(b"Model \xff 1TB                             ");
        page[64..72].copy_from_slice(b"2B2QEXM7");
        page[268..270].copy_from_slice(&358_u16.to_le_bytes());
        let want = Identity {
            serial: b"S4EV NF0M 1",
            model: b"Model \xff 1TB",
            firmware: b"2B2QEXM7",
            warning_temperature_k: None,
            critical_temperature_k: Some(358),
        };
        assert_eq!(Identity::parse(&page), Ok(want));
        page[266..268].copy_from_slice(&355_u16.to_le_bytes());
        let identity = Identity::parse(&page).unwrap();
        assert_eq!(identity.warning_temperature_k.map(celsius), Some(82));
        assert_eq!((celsius(0), celsius(u16::MAX)), (-273, i16::MAX));
    }

    proptest! {
        #[test]
        fn parse_never_panics(bytes: Vec<u8>, seed: u8) {
            let _ = (Health::parse(&bytes), Identity::parse(&bytes));
            let page: Vec<u8> = (0..=u8::MAX).cycle().map(|at| at ^ seed).take(4096).collect();
            if let Ok(health) = Health::parse(&page) {
                prop_assert!(health.temperature_k != 0);
                prop_assert_eq!(health.warnings.is_empty(), health.warnings.to_string().is_empty());
            }
            let _ = Identity::parse(&page);
        }
    }

    fn health_page() -> [u8; HEALTH_BYTES] {
        let mut page = [0; HEALTH_BYTES];
        page[..7].copy_from_slice(&[0x03, 0x41, 0x01, 9, 10, 120, 0x04]);
        for (at, counter) in (32..192).step_by(16).zip(1..) {
            page[at] = counter;
        }
        page[192] = 11;
        page[196] = 12;
        for (at, kelvins) in (200..216).step_by(2).zip(300_u16..) {
            page[at..at + 2].copy_from_slice(&kelvins.to_le_bytes());
        }
        for (at, value) in (216..232).step_by(4).zip(13..) {
            page[at] = value;
        }
        page
    }
}
