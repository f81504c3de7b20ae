//! Lines of files under `/proc`: the mount table and one task's state.
//!
//! `Documentation/filesystems/proc.rst`, `/proc/<pid>/mountinfo` and `/proc/<pid>/stat`.

use crate::wire::scan::Scan;

/// One line of `/proc/PID/mountinfo`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mount<'a> {
    /// Major and minor number of the file system's device; the major is 0 where it has none.
    pub device: (u32, u32),
    /// Where it is mounted, with white space and `\` as `\NNN`.
    pub mount_point: &'a [u8],
    /// Options of this mount.
    pub options: &'a [u8],
    /// Type of the file system, such as `ext4`.
    pub file_system: &'a [u8],
    /// What is mounted, such as `/dev/sda1`.
    pub source: &'a [u8],
    /// Options of the file system itself; `emergency_ro` and `shutdown` stand here.
    pub super_options: &'a [u8],
}

/// Why a line is not one of the mount table's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MountError {
    /// Major and minor number are missing or are no numbers.
    Device,
    /// There are fewer fields than every kernel prints.
    Short,
}

impl<'a> Mount<'a> {
    /// Parses one line, without its newline.
    ///
    /// # Errors
    ///
    /// Returns what is missing. Never panics.
    pub fn parse(line: &'a [u8]) -> Result<Self, MountError> {
        let (front, back) = split_at(line, b" - ").ok_or(MountError::Short)?;
        let mut fields = front.split(|byte| *byte == b' ').skip(2);
        let device = fields.next().and_then(numbers).ok_or(MountError::Device)?;
        let mut fields = fields.skip(1);
        let mount_point = fields.next().ok_or(MountError::Short)?;
        let options = fields.next().ok_or(MountError::Short)?;
        let mut fields = back.splitn(3, |byte| *byte == b' ');
        let file_system = fields.next().ok_or(MountError::Short)?;
        let source = fields.next().ok_or(MountError::Short)?;
        let super_options = fields.next().ok_or(MountError::Short)?;
        Ok(Self { device, mount_point, options, file_system, source, super_options })
    }

    /// Returns whether the file system can be written to, here and at all.
    ///
    /// ext4 shows an emergency stop as `ro` up to 6.14 and as `emergency_ro` from 6.15 on.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        !has_option(self.options, b"ro")
            && ![&b"ro"[..], b"emergency_ro", b"shutdown"]
                .iter()
                .any(|option| has_option(self.super_options, option))
    }
}

fn has_option(options: &[u8], wanted: &[u8]) -> bool {
    options.split(|byte| *byte == b',').any(|option| option.trim_ascii_end() == wanted)
}

fn split_at<'a>(line: &'a [u8], middle: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let mut scan = Scan::new(line);
    let front = scan.until(middle)?;
    Some((front, scan.rest()))
}

/// Reads `MAJOR:MINOR`.
fn numbers(field: &[u8]) -> Option<(u32, u32)> {
    let mut scan = Scan::new(field);
    let major = u32::try_from(scan.number()?).ok()?;
    scan.literal(b":")?;
    let minor = u32::try_from(scan.number()?).ok()?;
    scan.at_end().then_some((major, minor))
}

/// What `/proc/PID/stat` says of one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskStat<'a> {
    /// The name, at most 15 bytes.
    pub comm: &'a [u8],
    /// The state's letter; `D` waits uninterruptibly.
    pub state: u8,
    /// When it started, in clock ticks since boot: a pid is not a task's for ever.
    pub start_ticks: u64,
}

/// Why bytes are not the line of `/proc/PID/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskStatError {
    /// The name in parentheses is missing.
    Comm,
    /// The start time is missing or is no number.
    Start,
    /// The state's letter is missing.
    State,
}

impl<'a> TaskStat<'a> {
    /// Parses the line of `/proc/PID/stat`.
    ///
    /// # Errors
    ///
    /// Returns the first field that does not parse. Never panics.
    pub fn parse(line: &'a [u8]) -> Result<Self, TaskStatError> {
        let mut scan = Scan::new(line);
        scan.until(b"(").ok_or(TaskStatError::Comm)?;
        // The name may hold parentheses and spaces; nothing after it does.
        let comm = scan.until_last(b")").ok_or(TaskStatError::Comm)?;
        let mut fields = scan.rest().trim_ascii().split(|byte| *byte == b' ');
        let state = match fields.next() {
            Some([state]) => *state,
            Some(_) | None => return Err(TaskStatError::State),
        };
        let start = fields.nth(FIELDS_BEFORE_START).ok_or(TaskStatError::Start)?;
        let start_ticks = crate::wire::scan::decimal(start).ok_or(TaskStatError::Start)?;
        Ok(Self { comm, state, start_ticks })
    }
}

/// Fields between the state (3) and the start time (22).
const FIELDS_BEFORE_START: usize = 18;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::vec::Vec;

    use super::*;

    #[test]
    fn reads_a_line_of_the_mount_table() {
        let mount = Mount::parse(
            b"36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue",
        )
        .unwrap();
        assert_eq!(mount.device, (98, 0));
        assert_eq!(mount.mount_point, b"/mnt\\0402");
        assert_eq!((mount.file_system, mount.source), (&b"ext3"[..], &b"/dev/root"[..]));
        assert_eq!(mount.super_options, b"rw,errors=continue");
    }

    #[test]
    fn an_emergency_stop_is_not_writable() {
        // mount options, file system options, writable
        for (options, super_options, writable) in [
            ("rw,relatime", "rw,errors=remount-ro", true),
            ("ro,relatime", "rw", false),
            ("rw", "ro", false),
            ("rw", "rw,errors=remount-ro,emergency_ro", false),
            ("rw", "rw,shutdown", false),
            ("rw,errors=remount-ro", "rw,rodir\n", true),
        ] {
            let line = std::format!("1 2 8:1 / / {options} - ext4 /dev/sda1 {super_options}");
            assert_eq!(Mount::parse(line.as_bytes()).unwrap().is_writable(), writable, "{line}");
        }
    }

    #[test]
    fn says_what_a_broken_line_lacks() {
        for (line, want) in [
            (&b""[..], MountError::Short),
            (b"1 2 8:1 / / rw ext4 /dev/sda1 rw", MountError::Short),
            (b"1 2 8 / / rw - ext4 /dev/sda1 rw", MountError::Device),
            (b"1 2 8:1 / - ext4 /dev/sda1 rw", MountError::Short),
            (b"1 2 8:1 / / rw - ext4 /dev/sda1", MountError::Short),
        ] {
            assert_eq!(Mount::parse(line), Err(want));
        }
    }

    #[test]
    fn a_task_may_have_any_name() {
        let line = b"42 (a) R (b) D 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 777 0 0\n";
        let stat = TaskStat::parse(line).unwrap();
        assert_eq!((stat.comm, stat.state, stat.start_ticks), (&b"a) R (b"[..], b'D', 777));
        assert_eq!(TaskStat::parse(b"42"), Err(TaskStatError::Comm));
        assert_eq!(TaskStat::parse(b"42 (a) "), Err(TaskStatError::State));
        assert_eq!(TaskStat::parse(b"42 (a) D 1 2"), Err(TaskStatError::Start));
    }

    proptest! {
        #[test]
        fn parsers_never_panic(bytes: Vec<u8>) {
            let _ = (Mount::parse(&bytes).map(|m| m.is_writable()), TaskStat::parse(&bytes));
        }
    }
}
