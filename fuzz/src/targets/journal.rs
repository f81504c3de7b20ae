//! The reader of journal frames takes any bytes, and reads again what was written.

use fettle_core::bounds::FRAME_MAX;
use fettle_core::journal::{
    Stamp, Step, read_agent, read_header, read_step, write_agent, write_header, write_step,
};
use fettle_core::node::agent::{Agent, Input};
use fettle_core::time::Instant;

/// Takes `data` as frames, each ended by a zero; then as the bytes of a record.
pub fn target(data: &[u8]) {
    for frame in data.split(|byte| *byte == 0) {
        header(frame);
        step(frame);
        agent(frame);
    }
    record(data);
}

fn header(frame: &[u8]) {
    if let Ok(header) = read_header(&mut frame.to_vec()) {
        let mut buffer = [0; 256];
        let written = write_header(&header, &mut buffer).expect("a header fits");
        assert_eq!(read_header(&mut written.to_vec()), Ok(header));
    }
}

fn step(frame: &[u8]) {
    if let Ok(step) = read_step(&mut frame.to_vec()) {
        assert_reads_back(&step);
    }
}

fn agent(frame: &[u8]) {
    if let Ok(mut agent) = read_agent(&mut frame.to_vec()) {
        let mut buffer = vec![0; FRAME_MAX];
        let written = write_agent(&agent, &mut buffer).expect("FRAME_MAX fits");
        assert!(read_agent(&mut written.to_vec()).as_ref() == Ok(&agent));
        use_agent(&mut agent);
    }
}

/// Whoever wrote the journal: no agent that can be read can panic.
fn use_agent(agent: &mut Agent) {
    let now = agent.next_wakeup().unwrap_or_default();
    for input in [Input::LogCaughtUp, Input::Tick, Input::Record(FAULT), Input::Stopping] {
        let _ = agent.step(now, input);
    }
}

fn record(data: &[u8]) {
    let stamp = Stamp { at: Instant::from_millis(7), log_us: 7, wall_ms: -7 };
    assert_reads_back(&Step { stamp, input: Input::Record(data) });
}

fn assert_reads_back(step: &Step<'_>) {
    let mut buffer = vec![0; FRAME_MAX];
    // What libFuzzer makes up is far shorter than a frame.
    let written = write_step(step, &mut buffer).expect("a step fits");
    assert!(written.iter().position(|byte| *byte == 0) == written.len().checked_sub(1));
    assert_eq!(read_step(&mut written.to_vec()).as_ref(), Ok(step));
}

const FAULT: &[u8] = b"2,18446744073709551615,7,-;EXT4-fs (sda1): Remounting filesystem read-only";
