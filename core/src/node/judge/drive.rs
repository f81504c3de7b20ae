//! Whether drives fail, wear out or run hot.

use core::time::Duration;

use super::{Judgement, Limits, Memory, note};
use crate::bounds::IO_ERRORS_MAX;
use crate::node::reading::{Drive, Reading};
use crate::node::rules::{BlockError, Detail, Finding};
use crate::time::Instant;
use crate::window::Window;

/// Judges `DisksFailure` by a drive's critical warnings.
///
/// Bit 1, temperature, belongs to `DiskTemperatureHigh` alone (decisions, H11).
pub fn failure(_: Instant, reading: &Reading<'_>, _: &Limits, memory: &mut Memory) -> Judgement {
    let Reading::Drive(drive) = reading else {
        return Judgement::NotMine;
    };
    // From now on its absence is a fault.
    *memory = Memory::Present;
    let warnings = drive.critical_warning & !TEMPERATURE_BIT;
    if warnings == 0 {
        return Judgement::Healthy;
    }
    Judgement::Problem(note(format_args!(
        "serial {} sets critical warning {warnings:#04x}: {}",
        drive.serial,
        Warnings(warnings)
    )))
}

/// Judges `DiskTemperatureHigh` by the drive's own limit, else 70 °C (decisions, H13).
pub fn temperature(_: Instant, reading: &Reading<'_>, _: &Limits, _: &mut Memory) -> Judgement {
    let Reading::Drive(Drive { temperature_celsius, temperature_limit_celsius, .. }) = reading
    else {
        return Judgement::NotMine;
    };
    let limit = temperature_limit_celsius.unwrap_or(TEMPERATURE_LIMIT_CELSIUS);
    let warns = matches!(reading, Reading::Drive(d) if d.critical_warning & TEMPERATURE_BIT != 0);
    if warns || *temperature_celsius >= limit {
        return Judgement::Problem(note(format_args!(
            "{temperature_celsius} °C, its limit is {limit} °C"
        )));
    }
    Judgement::Healthy
}

/// Judges `DiskWearHigh` (decisions, H10).
pub fn wear(_: Instant, reading: &Reading<'_>, _: &Limits, _: &mut Memory) -> Judgement {
    let Reading::Drive(drive) = reading else {
        return Judgement::NotMine;
    };
    let (used, spare, threshold) =
        (drive.percentage_used, drive.spare_pct, drive.spare_threshold_pct);
    if used >= WEAR_PCT {
        return Judgement::Problem(note(format_args!("{used} % of its rated endurance is used")));
    }
    if spare < threshold {
        return Judgement::Problem(note(format_args!(
            "{spare} % of its spare is left, its threshold is {threshold} %"
        )));
    }
    Judgement::Healthy
}

/// Returns the disk whose I/O error `finding` reports, if errors of such a name count at all.
///
/// Named errors that say nothing about the medium do not count, nor do devices without one of
/// their own (decisions, H01, H02).
#[must_use]
pub fn counted_disk(finding: &Finding) -> Option<&[u8]> {
    let counts = match finding.detail {
        Detail::BlockRequest { error, .. } => error != BlockError::Other,
        Detail::BufferIo { .. } => true,
        Detail::Ata
        | Detail::Cper { .. }
        | Detail::Edac { .. }
        | Detail::EdacCount { .. }
        | Detail::Ext4Error
        | Detail::Ext4Warning
        | Detail::GpuOffBus
        | Detail::HungTask { .. }
        | Detail::NetDeviceInUse { .. }
        | Detail::Nvme
        | Detail::Readonly { .. }
        | Detail::Verity { .. }
        | Detail::VerityStatus
        | Detail::UnitRestartFailed
        | Detail::UnitRestartSkipped
        | Detail::UnitRestarted
        | Detail::Xid { .. } => false,
    };
    let disk = whole_disk(finding.object.as_str().as_bytes());
    let excluded = EXCLUDED_DEVICES.iter().any(|prefix| {
        disk.strip_prefix(*prefix).is_some_and(|rest| rest.first().is_some_and(u8::is_ascii_digit))
    });
    (counts && !excluded && !disk.is_empty()).then_some(disk)
}

/// Returns the disk of a partition: `sda` of `sda1`, `nvme0n1` of `nvme0n1p2`.
fn whole_disk(name: &[u8]) -> &[u8] {
    let digits = name.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let (front, number) =
        name.split_at_checked(name.len().saturating_sub(digits)).unwrap_or((name, &[]));
    if number.is_empty() {
        return name;
    }
    match front {
        // A disk whose name ends in a digit has a `p` before the partition's number.
        [disk @ .., b'p'] if disk.last().is_some_and(u8::is_ascii_digit) => disk,
        [b's' | b'v' | b'h', b'd', ..] | [b'x', b'v', b'd', ..] => front,
        _ => name,
    }
}

/// Notes an I/O error, unless it is one more line about the last one.
///
/// One fault prints several lines: one a second and one a sector count.
pub fn note_error(now: Instant, finding: &Finding, memory: &mut Memory) {
    let second = finding.timestamp_us / 1_000_000;
    // An old line that is read late is an old error.
    let now = now.min(Instant::from_millis(finding.timestamp_us / 1000));
    let of_line =
        if let Detail::BlockRequest { sector, .. } = finding.detail { Some(sector) } else { None };
    if let Memory::Errors { last_s, sector, window } = memory {
        let same_sector = of_line.is_some() && of_line == *sector;
        if *last_s == second || (same_sector && window.count(now, ERRORS_WITHIN) > 0) {
            return;
        }
        *last_s = second;
        *sector = of_line;
        window.note(now);
        return;
    }
    let mut window = Window::new();
    window.note(now);
    *memory = Memory::Errors { last_s: second, sector: of_line, window };
}

/// Judges `DisksFailure` by the errors that were noted of a disk.
#[must_use]
pub fn errors(now: Instant, memory: &mut Memory) -> Judgement {
    let Memory::Errors { window, .. } = memory else {
        return Judgement::NotMine;
    };
    let count = window.count(now, ERRORS_WITHIN);
    if count >= IO_ERRORS_MAX {
        return Judgement::Problem(note(format_args!(
            "{count} or more I/O errors within 10 minutes"
        )));
    }
    if count == 0 {
        *memory = Memory::None;
    }
    Judgement::Healthy
}

/// Names of critical-warning bits (NVMe Base Specification, "SMART / Health Information").
struct Warnings(u8);

impl core::fmt::Display for Warnings {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let set = WARNING_NAMES.iter().filter(|(bit, _)| self.0 & bit != 0);
        for (n, (_, name)) in set.enumerate() {
            if n > 0 {
                f.write_str(", ")?;
            }
            f.write_str(name)?;
        }
        Ok(())
    }
}

const WARNING_NAMES: [(u8, &str); 6] = [
    (1, "spare is low"),
    (1 << 2, "reliability is degraded"),
    (1 << 3, "media is read-only"),
    (1 << 4, "volatile memory backup failed"),
    (1 << 5, "persistent memory region is unreliable"),
    (0b1100_0000, "a bit that this version does not know"),
];

/// Devices that are no disks of their own, or whose medium is elsewhere.
const EXCLUDED_DEVICES: [&[u8]; 8] =
    [b"fd", b"sr", b"loop", b"ram", b"zram", b"nbd", b"rbd", b"dm-"];

const TEMPERATURE_BIT: u8 = 1 << 1;
const TEMPERATURE_LIMIT_CELSIUS: i16 = 70;
const WEAR_PCT: u8 = 90;
const ERRORS_WITHIN: Duration = Duration::from_secs(600);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::rules::classify;
    use crate::wire::kmsg::Record;

    #[test]
    fn each_condition_has_its_own_limit() {
        // drive, failure, temperature, wear
        for (drive, want) in [
            (GOOD, (false, false, false)),
            (Drive { percentage_used: 105, ..GOOD }, (false, false, true)), // H10
            (Drive { percentage_used: 89, ..GOOD }, (false, false, false)),
            (Drive { spare_pct: 9, ..GOOD }, (false, false, true)),
            (Drive { spare_pct: 0, spare_threshold_pct: 0, ..GOOD }, (false, false, false)),
            (Drive { critical_warning: 2, temperature_celsius: 84, ..GOOD }, (false, true, false)), // H11
            (Drive { critical_warning: 4, ..GOOD }, (true, false, false)),
            (Drive { critical_warning: 0x40, ..GOOD }, (true, false, false)),
            (Drive { temperature_celsius: 73, ..GOOD }, (false, false, false)), // H13
            (Drive { temperature_celsius: 81, ..GOOD }, (false, true, false)),
            (
                Drive { temperature_celsius: 70, temperature_limit_celsius: None, ..GOOD },
                (false, true, false),
            ),
        ] {
            let reading = Reading::Drive(drive);
            let judge = |judge: super::super::Judge| {
                let now = Instant::from_millis(0);
                let judgement = judge(now, &reading, &Limits::default(), &mut Memory::None);
                matches!(judgement, Judgement::Problem(_))
            };
            assert_eq!((judge(failure), judge(temperature), judge(wear)), want, "{drive:?}");
        }
    }

    #[test]
    fn a_warning_says_what_it_warns_of() {
        let reading = Reading::Drive(Drive { critical_warning: 0b1_1001, ..GOOD });
        let judgement =
            failure(Instant::from_millis(0), &reading, &Limits::default(), &mut Memory::None);
        let want = "serial S1 sets critical warning 0x19: spare is low, media is read-only, \
                    volatile memory backup failed";
        assert_eq!(judgement, Judgement::Problem(note(format_args!("{want}"))));
    }

    #[test]
    fn devices_without_a_medium_of_their_own_do_not_count() {
        for (device, counts) in [
            ("sdc", true),
            ("nvme0n1", true),
            ("fd0", false),
            ("sr1", false),
            ("loop3", false),
            ("zram0", false),
            ("dm-4", false),
            ("srv", true),
            ("rbd1", false),
        ] {
            let finding = finding(&std::format!("I/O error, dev {device}, sector 8"), 0);
            assert_eq!(counted_disk(&finding).is_some(), counts, "{device}");
        }
        let full = finding("critical space allocation error, dev sda, sector 8", 0);
        assert_eq!(counted_disk(&full), None);
    }

    #[test]
    fn an_error_of_a_partition_is_its_disks() {
        for (name, disk) in [
            ("sda", "sda"),
            ("sda12", "sda"),
            ("xvdb1", "xvdb"),
            ("nvme0n1", "nvme0n1"),
            ("nvme0n1p3", "nvme0n1"),
            ("mmcblk1p1", "mmcblk1"),
            ("md127", "md127"),
            ("", ""),
        ] {
            assert_eq!(whole_disk(name.as_bytes()), disk.as_bytes());
        }
    }

    #[test]
    fn five_faults_in_ten_minutes_fail_a_disk_whatever_their_wording() {
        // H02: ten seconds apart
        let lines = [
            "end_request: I/O error, dev sdc, sector 1098288304",
            "blk_update_request: I/O error, dev sdc, sector 1098288312",
            "print_req_error: I/O error, dev sdc, sector 1069354096 flags 0",
            "I/O error, dev sdc, sector 1069356760 op 0x0:(READ) flags 0x80700 phys_seg 1",
            "Buffer I/O error on dev sdc, logical block 137286038, async page read",
        ];
        let mut memory = Memory::None;
        for (n, line) in (1..).zip(lines) {
            let now = Instant::from_millis(n * 10_000);
            note_error(now, &finding(line, n * 10_000_000), &mut memory);
            let failed = matches!(errors(now, &mut memory), Judgement::Problem(_));
            assert_eq!(failed, n == 5, "{line}");
        }
        let later = Instant::from_millis(50_000 + 600_000);
        assert_eq!(errors(later, &mut memory), Judgement::Healthy);
        assert_eq!(memory, Memory::None);
    }

    #[test]
    fn the_lines_of_one_fault_count_once() {
        let mut memory = Memory::None;
        for n in 0..20 {
            let line = std::format!("I/O error, dev sdc, sector {}", n % 2);
            let now = Instant::from_millis(n * 100);
            note_error(now, &finding(&line, n * 100_000), &mut memory);
        }
        assert_eq!(errors(Instant::from_millis(2_000), &mut memory), Judgement::Healthy);
    }

    const GOOD: Drive<'static> = Drive {
        name: "nvme0",
        serial: "S1",
        critical_warning: 0,
        temperature_celsius: 64,
        temperature_limit_celsius: Some(80),
        percentage_used: 3,
        spare_pct: 98,
        spare_threshold_pct: 10,
    };

    fn finding(line: &str, timestamp_us: u64) -> Finding {
        let record = Record { timestamp_us, ..Record::bare(line.as_bytes()) };
        classify(&record).into_iter().next().unwrap()
    }
}
