//! Histories of the agent: its invariants hold, and a replayed journal gives the same.

use fettle_core::bounds::FRAME_MAX;
use fettle_core::catalog::{EventReason, ReadingKind};
use fettle_core::journal::{Stamp, Step, read_agent, read_step, write_agent, write_step};
use fettle_core::node::agent::{Agent, Event, Input, Output, Outputs, Settings};

use crate::invariants::{Done, that_forbids};
use crate::ops::{Decoder, Op};

/// Runs the history that `data` holds; the module `ops` says how.
pub fn target(data: &[u8]) {
    let mut decoder = Decoder::default();
    let mut run = Run::new();
    for line in data.split(|byte| *byte == b'\n').take(LINES_MAX) {
        match decoder.decode(line) {
            Op::CutJournal => run.cut_journal(),
            Op::Input(input) => {
                let stamp = run.stamp;
                run.step(&Step { stamp, input }, line.starts_with(b"a"));
            }
            Op::Nothing => {}
        }
        run.stamp.at = decoder.now();
    }
    run.end();
}

/// An agent, and the one that a journal of it gives.
struct Run {
    agent: Box<Agent>,
    replayed: Box<Agent>,
    stamp: Stamp,
    buffer: Vec<u8>,
    /// How many findings the events so far stand for, by reason.
    written: [u64; EventReason::COUNT],
    /// Which checks go on.
    running: [bool; ReadingKind::COUNT],
}

impl Run {
    fn new() -> Self {
        let agent = Box::new(Agent::new(Settings::default()));
        let buffer = vec![0; FRAME_MAX];
        let written = [0; EventReason::COUNT];
        let running = [false; ReadingKind::COUNT];
        Self { replayed: agent.clone(), agent, stamp: Stamp::default(), buffer, written, running }
    }

    fn step(&mut self, step: &Step<'_>, is_again: bool) {
        let (now, input) = (step.stamp.at, &step.input);
        let forbids = that_forbids(&self.agent, input, is_again);
        let before = forbids.map(|name| (self.agent.clone(), name));
        let outputs = self.agent.step(now, input.clone());
        let done = Done { now, outputs: &outputs, after: &self.agent };
        done.check();
        if let Some((before, name)) = before {
            done.does_nothing(before, name);
        }

        self.count(&outputs);
        self.one_at_a_time(input, &outputs);

        let read = journaled(step, &mut self.buffer);
        assert_eq!(read, *step, "a step is read back as it was written");
        let replayed = self.replayed.step(read.stamp.at, read.input);
        assert_eq!(replayed, outputs, "a replay says what the agent said");
    }

    /// Events stand for no more findings than there were.
    fn count(&mut self, outputs: &Outputs) {
        for output in outputs {
            if let Output::Event(Event::Findings(write)) = output {
                let written = &mut self.written[write.reason.index()];
                *written += write.count;
                assert!(*written <= self.agent.event_total(write.reason), "all_counted");
            }
        }
    }

    /// No check is asked for while an earlier run of it goes on in the same process.
    fn one_at_a_time(&mut self, input: &Input<'_>, outputs: &Outputs) {
        if let Input::Started(_) = input {
            self.running = [false; ReadingKind::COUNT];
        }
        if let Input::CheckEnded { kind, .. } = input {
            self.running[kind.index()] = false;
        }
        for output in outputs {
            if let Output::Check { kind } = output {
                assert!(!self.running[kind.index()], "one_at_a_time");
                self.running[kind.index()] = true;
            }
        }
    }

    fn cut_journal(&mut self) {
        let frame = write_agent(&self.agent, &mut self.buffer).expect("FRAME_MAX fits");
        let read = read_agent(&mut frame.to_vec()).expect("an agent is read back");
        *self.replayed = read;
    }

    fn end(mut self) {
        assert_eq!(self.replayed, self.agent, "a replay ends where the agent did");
        self.cut_journal();
        assert_eq!(self.replayed, self.agent, "an agent is read back as it was written");
        self.drain();
    }

    /// Stops until all is written that was held back.
    fn drain(&mut self) {
        for _ in 0..DRAIN_STEPS_MAX {
            let outputs = self.agent.step(self.stamp.at, Input::Stopping);
            self.count(&outputs);
            if outputs.is_empty() {
                return;
            }
        }
        panic!("an agent that stops has always more to say");
    }
}

fn journaled<'b>(step: &Step<'_>, buffer: &'b mut [u8]) -> Step<'b> {
    let len = write_step(step, buffer).expect("a step fits").len();
    let (zero, frame) = buffer[..len].split_last_mut().expect("a frame has a zero");
    assert!(*zero == 0 && !frame.contains(&0), "the only zero is the last byte");
    read_step(frame).expect("a step is read back")
}

/// Most lines of one history: each step clones the agent, and so takes time.
const LINES_MAX: usize = 256;

/// Steps after which a stopping agent must be silent: all pairs fit into a few outputs.
const DRAIN_STEPS_MAX: usize = 16;
