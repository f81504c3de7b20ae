//! The core allocates nothing, whatever comes.
//!
//! It has no way to: it does not link `alloc`. This shows that the crates below it have none
//! either. A counter for each thread stands before the system's allocator; what a test prepares
//! is not counted, what the core does is.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod history;

use core::alloc::{GlobalAlloc, Layout};
use core::cell::Cell;
use std::alloc::System;
use std::thread;

use fettle_core::bounds::MESSAGE_MAX;
use fettle_core::journal::{
    Header, Stamp, Step, read_agent, read_header, read_step, write_agent, write_header, write_step,
};
use fettle_core::node::agent::{Agent, Settings};
use fettle_core::node::mounts::Mounts;
use fettle_core::node::rules::classify;
use fettle_core::text::Text;
use fettle_core::wire::cper::Line;
use fettle_core::wire::kmsg::Record;
use fettle_core::wire::proc::{Mount, TaskStat};
use proptest::prelude::*;

use history::{Happening, histories, service_histories, tables, texts};

proptest! {
    #[test]
    fn no_step_allocates(history in histories(), services in service_histories()) {
        let mut agent = Agent::new(Settings::default());
        for happening in history.iter().chain(&services) {
            let input = happening.input();
            let (outputs, count) = counted(|| agent.step(happening.now, input));
            prop_assert_eq!(count, 0, "{:?} gave {:?}", happening, outputs);
            prop_assert_eq!(counted(|| agent.next_wakeup()).1, 0);
        }
    }

    #[test]
    fn no_reading_of_a_record_allocates(text in texts()) {
        let record = Record::bare(&text);
        let (findings, count) = counted(|| classify(&record));
        prop_assert_eq!(count, 0);
        for finding in &findings {
            prop_assert_eq!(counted(|| Text::<MESSAGE_MAX>::display(finding)).1, 0);
        }
        let ((), count) = counted(|| {
            let _ = (record.plain_text(), record.property(b"DEVICE"), Line::parse(&text));
        });
        prop_assert_eq!(count, 0);
    }

    #[test]
    fn no_parser_allocates(bytes: Vec<u8>, table in tables()) {
        let ((), count) = counted(|| {
            for bytes in [&bytes, &table] {
                let _ = (Record::parse(bytes), Line::parse(bytes), TaskStat::parse(bytes));
                let _ = Mount::parse(bytes).map(|mount| mount.is_writable());
                let _ = Mounts::parse(bytes, b"/var/lib/kubelet");
            }
        });
        prop_assert_eq!(count, 0);
    }

    #[test]
    fn no_frame_allocates(history in histories(), boot_id: [u8; 36]) {
        let mut buffer = vec![0; 1 << 20];
        let header = Header::new(&boot_id);
        let (read, count) = counted(|| {
            let len = write_header(&header, &mut buffer).unwrap().len();
            read_header(&mut buffer[..len])
        });
        prop_assert_eq!((read, count), (Ok(header), 0));
        for happening in &history {
            prop_assert_eq!(frame_step(happening, &mut buffer), 0);
        }
        let framed = thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn(move || frame_agent(&agent_after(&history), &mut buffer));
        prop_assert_eq!(framed.unwrap().join().unwrap(), 0);
    }
}

#[test]
fn an_allocation_is_counted() {
    assert_eq!(counted(|| Box::new(7)).1, 1);
    assert_eq!(counted(|| vec![0; 7]).1, 1);
}

/// Writes and reads a step, and returns how many allocations that took.
fn frame_step(happening: &Happening, buffer: &mut [u8]) -> u64 {
    let step = Step { stamp: Stamp::default(), input: happening.input() };
    let (is_same, count) = counted(|| {
        let len = write_step(&step, buffer).unwrap().len();
        read_step(&mut buffer[..len]).as_ref() == Ok(&step)
    });
    assert!(is_same, "{step:?}");
    count
}

/// Writes and reads an agent, and returns how many allocations that took.
fn frame_agent(agent: &Agent, buffer: &mut [u8]) -> u64 {
    let (is_same, count) = counted(|| {
        let len = write_agent(agent, buffer).unwrap().len();
        read_agent(&mut buffer[..len]).as_ref() == Ok(agent)
    });
    assert!(is_same, "an agent is read back as it was written");
    count
}

fn agent_after(history: &[Happening]) -> Agent {
    let mut agent = Agent::new(Settings::default());
    for happening in history {
        let _ = agent.step(happening.now, happening.input());
    }
    agent
}

/// Runs `work` and returns how many allocations it made.
fn counted<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = ALLOCATIONS.get();
    let done = work();
    (done, ALLOCATIONS.get() - before)
}

/// Unoptimised code moves an agent many times, and each has its own place on the stack.
const STACK_BYTES: usize = 64 << 20;

/// The system's allocator, with a counter before it.
struct Counting;

// SAFETY: `System` upholds the contract, and is handed every call as it came. The methods that
// are not written out here allocate through `alloc`, and so are counted too.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller upholds what `GlobalAlloc::alloc` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: `block` came from `System.alloc` with this layout, as the caller promises.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

thread_local! {
    /// Allocations of this thread. It needs neither an allocation nor a destructor itself.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}
