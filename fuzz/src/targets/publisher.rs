//! Histories of the publisher: its invariants hold, and in the end all is written.
//!
//! A line is one thing that happens: to the agent, as the module `ops` says, or one of these.
//!
//! ```text
//! A N S       the request for annotations is answered by N: below 100, 0 is that it is done, 1
//!             that it exists, 2 that it was lost, 3 that its answer was, 4 that it is done and the
//!             answer cannot be read; else N is an HTTP status code, and S its Retry-After
//! B N         orders of reboots are on disk if N is odd, else they cannot be
//! C N         ordered reboots are done if N is odd
//! D           the documents are complete
//! E N S       the request for an event is answered
//! F           the state cannot be saved
//! K VALUE     somebody asks to clear
//! L N         the condition of row N is turned off, or on
//! M           the Node is deleted, and that is seen
//! N           the Node is read
//! O VALUE     somebody orders a reboot
//! P N S       the request for conditions is answered
//! R N         another process goes on; bits of N: 0: reboots are done, 1: after a boot, 2: what was
//!             under way is done
//! S           the state is saved
//! U UID       there is another Node
//! V N         an old view is seen: version N
//! W BY C S    BY writes the status S of condition C
//! X WHY       the reboot did not begin
//! ```

use core::time::Duration;

use fettle_core::bounds::FRAME_MAX;
use fettle_core::catalog::{CONDITIONS, ConditionType};
use fettle_core::journal::{read_agent, read_publisher, write_agent, write_publisher};
use fettle_core::node::agent::{Agent, Input as AgentInput, Output as AgentOutput, Settings};
use fettle_core::node::publisher::orders::Reboot;
use fettle_core::node::publisher::{Answer, Input, Output, Publisher, Start};
use fettle_core::time::Instant;
use fettle_core::wire::scan::Scan;

use crate::ops::{Decoder, Op};
use crate::promises::Promises;
use crate::server::{Server, Under};

/// Runs the history that `data` holds.
pub fn target(data: &[u8]) {
    let mut decoder = Decoder::default();
    let mut run = Run::new();
    for line in data.split(|byte| *byte == b'\n').take(LINES_MAX) {
        if line.first().is_some_and(u8::is_ascii_uppercase) {
            run.take(line);
        } else if let Op::Input(input) = decoder.decode(line) {
            run.agent_takes(input);
            run.publisher_takes(Input::Tick);
        }
        run.now = START + decoder.now().since(Instant::default());
    }
    run.heal();
}

struct Run {
    agent: Box<Agent>,
    publisher: Box<Publisher>,
    promises: Promises,
    server: Server,
    now: Instant,
    saved: Option<(Box<Agent>, Box<Publisher>)>,
    disk: Vec<Reboot>,
    boot: u8,
    reboots_enabled: bool,
    rebooted: Vec<String>,
    /// The requests under way.
    status: Option<Under>,
    annotating: Option<Under>,
    sending: Option<Under>,
    is_saving: bool,
    is_recording: bool,
}

impl Run {
    fn new() -> Self {
        let mut run = Self {
            agent: Box::new(Agent::new(Settings::default())),
            publisher: Box::new(Publisher::new(1)),
            promises: Promises::default(),
            server: Server::default(),
            now: START,
            saved: None,
            disk: Vec::new(),
            boot: 0,
            reboots_enabled: false,
            rebooted: Vec::new(),
            status: None,
            annotating: None,
            sending: None,
            is_saving: false,
            is_recording: false,
        };
        run.start();
        run
    }

    fn take(&mut self, line: &[u8]) {
        let (kind, rest) = line.split_first().expect("it has a letter");
        let rest = rest.strip_prefix(b" ").unwrap_or(rest);
        let text = String::from_utf8_lossy(rest).into_owned();
        let mut words = text.split(' ');
        let number = Scan::new(rest).number().unwrap_or(0);
        let after = words.nth(1).and_then(|word| word.parse().ok());
        let wait = after.map(Duration::from_secs);
        match kind {
            b'A' => self.annotations_answered(number, wait),
            b'B' => self.recorded(number & 1 != 0),
            b'C' => {
                self.reboots_enabled = number & 1 != 0;
                self.publisher_takes(Input::Configured { reboots: self.reboots_enabled });
            }
            b'D' => self.publisher_takes(Input::ReportComplete),
            b'E' => self.event_answered(number, wait),
            b'F' => self.save(false),
            b'K' => self.server.set_clear(&text),
            b'L' => self.turn(number),
            b'M' => {
                self.server.delete();
                self.publisher_takes(Input::NodeMissing);
            }
            b'O' => self.server.set_reboot(&text),
            b'P' => self.status_answered(number, wait),
            b'R' => self.restart(number),
            b'S' => self.save(true),
            b'U' => self.server.make(&text),
            b'V' => self.look(Some(number)),
            b'W' => self.server.write_by(&text),
            b'X' => self.publisher_takes(Input::RebootFailed { why: &text }),
            _ => self.look(None),
        }
    }

    fn start(&mut self) {
        let (disk, boot) = (self.disk.clone(), [b'0' + self.boot % 10; 4]);
        (self.status, self.annotating, self.sending) = (None, None, None);
        (self.is_saving, self.is_recording) = (false, false);
        let reboots = self.reboots_enabled;
        self.publisher_takes(Input::Started(Start {
            boot: &boot,
            reboots,
            ordered: &disk,
            adopts: true,
        }));
        let settings = self.agent.settings().clone();
        self.agent_takes(AgentInput::Started(settings));
    }

    fn restart(&mut self, bits: u64) {
        if bits & 4 != 0 {
            self.apply_all();
        }
        if bits & 2 != 0 {
            self.saved = None;
            self.boot = self.boot.wrapping_add(1);
        }
        self.reboots_enabled = bits & 1 != 0;
        let settings = self.agent.settings().clone();
        let seed = self.publisher.seed().wrapping_add(1);
        let (agent, publisher) = self.saved.clone().unwrap_or_else(|| {
            (Box::new(Agent::new(settings.clone())), Box::new(Publisher::new(seed)))
        });
        (self.agent, self.publisher) = (agent, publisher);
        self.start();
    }

    fn apply_all(&mut self) {
        for under in [self.status.take(), self.annotating.take(), self.sending.take()] {
            under.map(|under| self.server.apply(&under));
        }
    }

    fn turn(&mut self, row: u64) {
        let mut settings = self.agent.settings().clone();
        let row = usize::try_from(row).unwrap_or(0) % ConditionType::COUNT;
        settings.schedule.enabled[row] = !settings.schedule.enabled[row];
        self.agent_takes(AgentInput::Configured(settings));
        self.publisher_takes(Input::Tick);
    }

    fn look(&mut self, version: Option<u64>) {
        let server = self.server.clone();
        server.view(version, |view| match view {
            Some(view) => self.publisher_takes(Input::NodeSeen(view)),
            None => self.publisher_takes(Input::NodeMissing),
        });
    }

    /// Does what `code` says to what is under way, and returns what is heard of it.
    fn answer(&mut self, under: Option<Under>, code: u64, retry_after: Option<Duration>) -> Answer {
        let failed = |code| Answer::Failed { code, retry_after };
        let done = under.filter(|_| matches!(code, 0 | 3 | 4)).map(|under| {
            let is_about_node = !matches!(under, Under::Event { .. });
            (self.server.apply(&under), is_about_node)
        });
        match (code, done) {
            (0 | 4, Some((Ok(()), is_about_node))) => {
                if is_about_node && code == 0 {
                    self.look(None);
                }
                Answer::Accepted
            }
            (0 | 4, Some((Err(answer), _))) => answer,
            (0 | 4, None) => Answer::Accepted,
            (1, _) => Answer::AlreadyExists,
            (0..100, _) => failed(None),
            _ => failed(Some(u16::try_from(code).unwrap_or(500))),
        }
    }

    fn status_answered(&mut self, code: u64, retry_after: Option<Duration>) {
        let under = self.status.take();
        let answer = self.answer(under, code, retry_after);
        self.publisher_takes(Input::StatusAnswered(answer));
    }

    fn annotations_answered(&mut self, code: u64, retry_after: Option<Duration>) {
        let under = self.annotating.take();
        let answer = self.answer(under, code, retry_after);
        self.publisher_takes(Input::AnnotationsAnswered(answer));
    }

    fn event_answered(&mut self, code: u64, retry_after: Option<Duration>) {
        let under = self.sending.take();
        let answer = self.answer(under, code, retry_after);
        self.publisher_takes(Input::EventAnswered(answer));
    }

    fn save(&mut self, works: bool) {
        if works {
            assert_reads_back(&self.agent, &self.publisher);
            self.saved = Some((self.agent.clone(), self.publisher.clone()));
            self.promises.saved(&self.publisher);
        } else {
            self.promises.unsaved();
        }
        if core::mem::take(&mut self.is_saving) {
            self.publisher_takes(Input::Saved);
        }
    }

    fn recorded(&mut self, is_recorded: bool) {
        if !core::mem::take(&mut self.is_recording) {
            return;
        }
        if is_recorded {
            self.disk = self.publisher.reboots().known().to_vec();
        }
        self.publisher_takes(Input::RebootRecorded { is_recorded });
    }

    fn agent_takes(&mut self, input: AgentInput<'_>) {
        for output in self.agent.step(self.now, input) {
            match output {
                AgentOutput::Condition { change, condition } => {
                    self.publisher_takes(Input::Changed { condition, change });
                }
                AgentOutput::Event(event) => self.publisher_takes(Input::Happened(&event)),
                AgentOutput::Check { .. }
                | AgentOutput::Lost { .. }
                | AgentOutput::ReadMounts
                | AgentOutput::ReadTask { .. }
                | AgentOutput::RestartUnit { .. } => {}
            }
        }
    }

    fn publisher_takes(&mut self, input: Input<'_>) {
        let outputs = self.promises.step(&mut self.publisher, (self.now, &self.agent), input);
        for output in outputs {
            self.perform(output);
        }
    }

    fn perform(&mut self, output: Output) {
        match output {
            Output::Annotate(patch) => {
                self.annotating = Some(Under::Annotations(patch));
            }
            Output::PatchStatus => {
                let patch = self.publisher.patch().expect("it is under way");
                self.status = Some(Under::status(&self.agent, patch));
            }
            Output::WriteEvent(request) => {
                let series = self.publisher.series().get(request.number).expect("it is there");
                let (seed, count) = (self.publisher.seed(), series.count);
                self.sending = Some(Under::Event { seed, request, count });
            }
            Output::Save => self.is_saving = true,
            Output::Clear { condition, by } => {
                self.agent_takes(AgentInput::ClearByHand { by, condition });
            }
            Output::Contested(contest) => self.agent_takes(AgentInput::Contested(contest)),
            Output::Hold { condition } => self.agent_takes(AgentInput::HeldOnNode { condition }),
            Output::Reboot { id } => self.reboots(id.as_str()),
            Output::RecordReboots => self.is_recording = true,
        }
    }

    fn reboots(&mut self, id: &str) {
        assert!(self.reboots_enabled, "off_is_off");
        assert!(self.disk.iter().any(|known| known.id.as_str() == id), "once_per_id");
        assert!(!self.rebooted.iter().any(|done| done == id), "once_per_id");
        self.rebooted.push(id.to_owned());
    }

    /// From here on everything works: in the end all is as it should be.
    fn heal(&mut self) {
        assert_reads_back(&self.agent, &self.publisher);
        self.server.heal();
        for code in [2, 0] {
            self.status_answered(code, None);
            self.annotations_answered(code, None);
            self.event_answered(code, None);
        }
        for _ in 0..2 {
            self.look(None);
            self.run_for(HEALED_WITHIN);
        }
        let unsettled = self.publisher.levels().unsettled();
        assert_eq!(unsettled, 0, "until_read_back");
        assert_eq!(self.publisher.series().counts().waiting, 0, "an event is never written");
        for row in &CONDITIONS {
            if let Some(held) = self.agent.condition(row.condition) {
                let has = self.server.has(row.condition, &held.verdict);
                assert!(has, "until_read_back: {} {:?}", row.name, self.server);
            }
        }
    }

    fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        for _ in 0..STEPS_MAX {
            self.answer_all();
            let wakeups = [self.agent.next_wakeup(), self.publisher.next_wakeup()];
            let next = wakeups.into_iter().flatten().min().filter(|at| *at <= end);
            let Some(next) = next else {
                self.now = end;
                return;
            };
            self.now = self.now.max(next) + Duration::from_millis(1);
            self.agent_takes(AgentInput::Tick);
            self.publisher_takes(Input::Tick);
        }
        panic!("it is never at rest");
    }

    fn answer_all(&mut self) {
        for _ in 0..STEPS_MAX {
            if self.is_saving {
                self.save(true);
            } else if self.is_recording {
                self.recorded(true);
            } else if self.status.is_some() {
                self.status_answered(0, None);
            } else if self.annotating.is_some() {
                self.annotations_answered(0, None);
            } else if self.sending.is_some() {
                self.event_answered(0, None);
            } else {
                return;
            }
        }
        panic!("it asks for ever");
    }
}

fn assert_reads_back(agent: &Agent, publisher: &Publisher) {
    let mut buffer = vec![0; FRAME_MAX];
    let frame = write_publisher(publisher, &mut buffer).expect("FRAME_MAX fits");
    let read = read_publisher(&mut frame.to_vec()).expect("it is read back");
    assert!(read == *publisher, "a publisher is read back as it was written");
    let frame = write_agent(agent, &mut buffer).expect("FRAME_MAX fits");
    assert!(read_agent(&mut frame.to_vec()).as_ref() == Ok(agent));
}

const START: Instant = Instant::from_millis(1_000_000);

/// Most lines of one history, so that an input takes milliseconds.
const LINES_MAX: usize = 128;

/// Longer than any wait for a retry or the end of a contest.
const HEALED_WITHIN: Duration = Duration::from_secs(2 * 3600);

/// More steps than two hours of anything have.
const STEPS_MAX: u32 = 20_000;
