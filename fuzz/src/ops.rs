//! Decodes a history of the agent from text: one line is one thing that happens.
//!
//! Lines are easy to write by hand, and a fuzzer that drops, doubles or joins lines makes other
//! histories of them.
//!
//! ```text
//! k TEXT      the kernel writes the next record
//! u TEXT      user space writes the next record
//! r RECORD    one read of /dev/kmsg, as it stands
//! a           the last record is read again
//! g N         N records are overwritten unread
//! + N         N milliseconds pass
//! m TABLE     the mount table; `|` ends a line of it
//! x           the mount table cannot be read
//! t PID S N   the task is in state S and started at N; without S it is gone
//! h N BY      BY clears the condition of row N by hand
//! d N         the log cannot be read, with errno N
//! l           the log has been read to its end
//! o           the log was overrun
//! q N WHY     the check of kind N ends: it failed, or without WHY it read everything;
//!             with `-` there was nothing to read
//! v N NAME A  a check of kind N has read an object, whose figures are all A
//! w N         a restart ended: 0 done, 1 failed, 2 refused; from 3 on, the runtime's
//! s N         a new process starts; bits of N: 0: proofs clear, 1: user space is trusted,
//!             2: checks run
//! e           the process is about to end
//! j           the journal is cut, and read again from here
//! ```
//!
//! Any other line is a tick.

use core::time::Duration;

use fettle_core::catalog::{CONDITIONS, Clear, ConditionType, ReadingKind};
use fettle_core::node::agent::{Input, RestartResult, Settings};
use fettle_core::node::checks::Outcome;
use fettle_core::node::judge::deadlock::TaskState;
use fettle_core::node::reading::{
    ActiveState, Attachment, Audit, BootError, Clock, Cni, CniHealth, Disk, Drive, FileAge,
    FileSystem, GaugeAnswer, KubeletHealth, KubeletJournal, Layer, MemoryController, Reading,
    RuntimeHealth, Unit, UnitDuty, Unreadable,
};
use fettle_core::node::repair::Ended;
use fettle_core::text::Text;
use fettle_core::time::Instant;
use fettle_core::wire::cper::Severity;
use fettle_core::wire::scan::Scan;

/// One thing that happens.
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
#[derive(Debug)]
pub(crate) enum Op<'a> {
    /// The journal goes on from the agent as it is.
    CutJournal,
    /// An input comes.
    Input(Input<'a>),
    /// Nothing comes; clocks or numbers move.
    Nothing,
}

/// What lines do not say and depends on the lines before: the time and the next record's number.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    now: Instant,
    sequence: u64,
    /// The bytes of the newest record or table, which an input borrows.
    bytes: Vec<u8>,
    /// The name in the newest reading, which an input borrows too.
    name: String,
}

impl Decoder {
    /// Returns the time after the lines so far.
    pub(crate) const fn now(&self) -> Instant {
        self.now
    }

    /// Decodes one line.
    pub(crate) fn decode(&mut self, line: &[u8]) -> Op<'_> {
        let (kind, rest) = line.split_first().unwrap_or((&b' ', &[]));
        let rest = rest.strip_prefix(b" ").unwrap_or(rest);
        let number = Scan::new(rest).number().unwrap_or(0);
        match kind {
            b'+' => self.now = self.now + Duration::from_millis(number.min(STEP_MS)),
            b'g' => self.sequence = self.sequence.saturating_add(number),
            b'j' => return Op::CutJournal,
            b'a' | b'k' | b'r' | b'u' => return Op::Input(self.record(*kind, rest)),
            b'm' => return Op::Input(self.mounts(rest)),
            b'v' => return Op::Input(self.reading(number, rest)),
            _ => return Op::Input(plain(*kind, number, rest)),
        }
        Op::Nothing
    }

    fn record(&mut self, kind: u8, rest: &[u8]) -> Input<'_> {
        let priority = if kind == b'u' { 12 } else { 4 };
        match kind {
            b'a' => {}
            b'r' => self.bytes = rest.to_vec(),
            _ => {
                self.sequence = self.sequence.saturating_add(1);
                self.bytes =
                    format!("{priority},{},{},-;", self.sequence, self.now.millis()).into_bytes();
                self.bytes.extend_from_slice(rest);
            }
        }
        Input::Record(&self.bytes)
    }

    fn reading(&mut self, kind: u64, rest: &[u8]) -> Input<'_> {
        let mut words = rest.split(|byte| *byte == b' ').skip(1);
        let name = words.next().unwrap_or_default();
        let figure = words.next().and_then(|word| Scan::new(word).number()).unwrap_or(0);
        self.name = String::from_utf8_lossy(name).into_owned();
        Input::Reading { kind: kind_of(kind), reading: reading(kind, &self.name, figure) }
    }

    fn mounts(&mut self, rest: &[u8]) -> Input<'_> {
        self.bytes = rest.iter().map(|byte| if *byte == b'|' { b'\n' } else { *byte }).collect();
        Input::Mounts(&self.bytes)
    }
}

/// Returns a reading whose kind, name and figures are the words of a line.
///
/// Those of services have the numbers by which [`kind_of`] finds their kind.
fn reading<'a>(kind: u64, name: &'a str, figure: u64) -> Reading<'a> {
    let gauge =
        GaugeAnswer::Value { min_milli: figure.cast_signed(), sum_milli: figure.cast_signed() };
    match kind {
        11 => Reading::KubeletHealth(match figure {
            0 => KubeletHealth::Ok,
            1 => KubeletHealth::Refused,
            2 => KubeletHealth::TimedOut,
            _ => KubeletHealth::Answered { code: 500 },
        }),
        12 => Reading::KubeletJournal(KubeletJournal { gave_up_ago_s: Some(figure) }),
        16 => Reading::ProxyReady(gauge),
        18 => Reading::TunnelConnections(gauge),
        19 => Reading::Unit(unit(name, figure)),
        20 => Reading::Audit(Audit { records: 1, with_client: u32::from(figure > 0) }),
        24 => Reading::Cni(Cni {
            health: if figure == 0 { CniHealth::Ok } else { CniHealth::Unreachable { why: name } },
            last_start: (figure > 1).then_some(Instant::from_millis(figure)),
        }),
        25 => Reading::RuntimeHealth(match figure {
            0 => RuntimeHealth::Ready,
            1 => RuntimeHealth::Refused,
            2 => RuntimeHealth::TimedOut,
            _ => RuntimeHealth::NotReady { why: name },
        }),
        _ => node_reading(kind, name, figure),
    }
}

fn unit(name: &str, figure: u64) -> Unit<'_> {
    Unit {
        name,
        duty: UnitDuty { critical: figure & 1 != 0, operability: figure & 2 != 0 },
        active: match figure >> 2 & 3 {
            0 => ActiveState::Active,
            1 => ActiveState::Activating,
            2 => ActiveState::Failed,
            _ => ActiveState::Inactive,
        },
        sub: name,
        result: name,
        restarts: u32::try_from(figure >> 5 & 7).unwrap_or(0),
        last_start: (figure >> 8 > 0).then_some(Instant::from_millis(figure >> 8)),
        start_timeout_s: Some(90),
        has_job: figure & 16 != 0,
    }
}

fn restart_ended(number: u64) -> Input<'static> {
    let ended = match number % 3 {
        0 => Ended::Done,
        1 => Ended::Failed,
        _ => Ended::Refused,
    };
    let unit = if number < 3 { &b"kubelet.service"[..] } else { b"containerd.service" };
    let result = RestartResult { ended, why: Text::new() };
    Input::RestartEnded { result, unit: Text::from_bytes(unit) }
}

fn node_reading<'a>(kind: u64, name: &'a str, figure: u64) -> Reading<'a> {
    let small = u8::try_from(figure).unwrap_or(u8::MAX);
    match kind % 9 {
        0 => Reading::Clock(Clock {
            unsynchronized: figure & 1 != 0,
            max_error_us: figure.cast_signed(),
            estimated_error_us: figure.cast_signed(),
        }),
        1 => Reading::Drive(Drive {
            name,
            serial: name,
            critical_warning: small,
            temperature_celsius: i16::from(small),
            temperature_limit_celsius: None,
            percentage_used: small,
            spare_pct: small,
            spare_threshold_pct: 10,
        }),
        2 => Reading::FileAge(FileAge {
            path: name,
            age_s: (figure > 0).then_some(figure),
            age_max_s: 300,
        }),
        3 => Reading::FileSystem(FileSystem {
            mount_point: name,
            used_bytes: figure,
            usable_bytes: 100,
            inodes_used: figure,
            inodes: 100,
        }),
        4 => Reading::Layer(Layer {
            name,
            enforced: name,
            recorded: (figure != 0).then_some("root"),
            corrupted: false,
        }),
        6 => Reading::MemoryController(MemoryController {
            name,
            corrected: figure,
            uncorrected: figure / 2,
        }),
        7 => Reading::Disk(Disk {
            name,
            attachment: if figure == 0 { Attachment::Direct } else { Attachment::Usb },
        }),
        8 => Reading::BootError(BootError {
            severity: if figure & 1 == 0 { Severity::Fatal } else { Severity::Corrected },
            cleared: figure & 2 != 0,
        }),
        _ => Reading::Unreadable(Unreadable { object: name, why: name }),
    }
}

/// Decodes a line whose input borrows nothing.
fn plain(kind: u8, number: u64, rest: &[u8]) -> Input<'static> {
    match kind {
        b'd' => Input::LogDown { errno: i32::try_from(number).unwrap_or(i32::MAX) },
        b'e' => Input::Stopping,
        b'h' => {
            let by = rest.trim_ascii_start();
            Input::ClearByHand { by: Text::from_bytes(by), condition: condition(number) }
        }
        b'l' => Input::LogCaughtUp,
        b'o' => Input::LogOverrun,
        b'q' => Input::CheckEnded { kind: kind_of(number), outcome: outcome(rest) },
        b's' => Input::Started(settings(number)),
        b't' => Input::Task { pid: number, state: task(rest) },
        b'w' => restart_ended(number),
        b'x' => Input::MountsUnreadable,
        _ => Input::Tick,
    }
}

fn condition(number: u64) -> ConditionType {
    let row = usize::try_from(number).unwrap_or(0) % CONDITIONS.len();
    CONDITIONS[row].condition
}

fn settings(bits: u64) -> Settings {
    let mut settings = Settings::default();
    if bits & 1 != 0 {
        settings.clear = [Clear::Proof; ConditionType::COUNT];
    }
    settings.trust_userspace = bits & 2 != 0;
    settings.schedule.probes = [bits & 4 != 0; ReadingKind::COUNT];
    settings
}

/// Returns the kind that a reading of `reading` is of, where the number is one of those.
fn kind_of(number: u64) -> ReadingKind {
    const OF_READINGS: [ReadingKind; 5] = [
        ReadingKind::Clock,
        ReadingKind::Disks,
        ReadingKind::FileAges,
        ReadingKind::FileSystems,
        ReadingKind::SealedLayers,
    ];
    let number = usize::try_from(number).unwrap_or(0);
    let other = ReadingKind::ALL[number % ReadingKind::COUNT];
    OF_READINGS.get(number).copied().unwrap_or(other)
}

fn outcome(rest: &[u8]) -> Outcome {
    match rest.splitn(2, |byte| *byte == b' ').nth(1) {
        None => Outcome::Complete,
        Some(b"-") => Outcome::NotApplicable,
        Some(why) => Outcome::Failed { why: Text::from_bytes(why) },
    }
}

fn task(rest: &[u8]) -> TaskState {
    let mut words = rest.split(|byte| *byte == b' ').skip(1);
    match words.next() {
        None => TaskState::Gone,
        Some([state]) => {
            let start_ticks = words.next().and_then(|word| Scan::new(word).number()).unwrap_or(0);
            TaskState::Alive { state: *state, start_ticks }
        }
        Some(_) => TaskState::Unknown,
    }
}

/// Longest time that one line lets pass: a year, so that clocks do not reach their end.
const STEP_MS: u64 = 365 * 24 * 3_600_000;
