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
//! s N         a new process starts; bit 0 of N: proofs clear, bit 1: user space is trusted
//! e           the process is about to end
//! j           the journal is cut, and read again from here
//! ```
//!
//! Any other line is a tick.

use core::time::Duration;

use fettle_core::catalog::{CONDITIONS, Clear, ConditionType};
use fettle_core::node::agent::{Input, Settings};
use fettle_core::node::judge::deadlock::TaskState;
use fettle_core::text::Text;
use fettle_core::time::Instant;
use fettle_core::wire::scan::Scan;

/// One thing that happens.
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

    fn mounts(&mut self, rest: &[u8]) -> Input<'_> {
        self.bytes = rest.iter().map(|byte| if *byte == b'|' { b'\n' } else { *byte }).collect();
        Input::Mounts(&self.bytes)
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
        b's' => Input::Started(settings(number)),
        b't' => Input::Task { pid: number, state: task(rest) },
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
    settings
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
