//! Frames, and through them every implementation of serde's traits that the agent uses.

use core::hint::black_box;

use fettle_core::journal::{
    FrameError, Header, Stamp, Step, read_agent, read_header, read_publisher, read_step,
    write_agent, write_header, write_publisher, write_step,
};
use fettle_core::node::agent::{Agent, Input, Settings};
use fettle_core::node::publisher::Publisher;

use crate::{bytes, instant, node, publisher, show};

/// Calls everything in `journal`.
pub(crate) fn call_all() {
    let mut buffer = [0; 4096];
    write(black_box(&mut buffer));
    read(black_box(&mut buffer));
}

fn write(buffer: &mut [u8]) {
    note(write_header(&black_box(Header::new(bytes())), black_box(&mut *buffer)));
    let agent = Agent::new(black_box(Settings::default()));
    note(write_agent(black_box(&agent), black_box(&mut *buffer)));
    let publisher = Publisher::new(black_box(7));
    note(write_publisher(black_box(&publisher), black_box(&mut *buffer)));
    let stamp = black_box(Stamp { at: instant(), log_us: 7, wall_ms: 7 });
    let step = Step { stamp, input: Input::Record(bytes()) };
    note(write_step(black_box(&step), black_box(buffer)));
}

fn note(written: Result<&[u8], FrameError>) {
    match written {
        Ok(frame) => _ = black_box(frame),
        Err(error) => show(error),
    }
}

fn read(buffer: &mut [u8]) {
    let _ = black_box(read_header(black_box(&mut *buffer)));
    let _ = black_box(read_step(black_box(&mut *buffer)));
    if let Ok(mut publisher) = read_publisher(black_box(&mut *buffer)) {
        publisher::use_publisher(black_box(&mut publisher));
    }
    if let Ok(mut agent) = read_agent(black_box(buffer)) {
        node::use_agent(black_box(&mut agent));
    }
}
