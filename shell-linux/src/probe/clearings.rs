//! Waits for requests to clear a condition, on a thread of its own.

use core::mem::MaybeUninit;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::thread;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tokio::sync::mpsc;

use crate::store::clearing::{self, Clearing};

/// Starts to watch for requests below `state_dir` and returns where they arrive.
///
/// # Errors
///
/// Returns what the operating system says.
pub fn follow(state_dir: &Path) -> io::Result<mpsc::Receiver<Clearing>> {
    let state_dir = state_dir.to_owned();
    let watch = inotify::init(CreateFlags::CLOEXEC)?;
    watch_requests(&watch, &state_dir)?;
    let (sender, receiver) = mpsc::channel(CLEARINGS_MAX);
    let follow = move || {
        // Somebody may take the directory away: then it is made again, and watched again.
        while let Ok(directory) = watch_requests(&watch, &state_dir)
            && send_all(&directory, &sender).is_some()
        {
            let mut buffer = [MaybeUninit::uninit(); EVENTS_BYTES];
            // What has changed is read from the directory; the event only wakes.
            if inotify::Reader::new(&watch, &mut buffer).next().is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("clear".to_owned()).stack_size(STACK_BYTES).spawn(follow)?;
    Ok(receiver)
}

/// Makes the directory of requests if it is not there, and watches it; twice is as good as once.
fn watch_requests(watch: &OwnedFd, state_dir: &Path) -> io::Result<PathBuf> {
    let directory = clearing::directory(state_dir)?;
    let wanted = WatchFlags::MOVED_TO | WatchFlags::CLOSE_WRITE | WatchFlags::DELETE_SELF;
    inotify::add_watch(watch, &directory, wanted)?;
    Ok(directory)
}

/// Hands on every request; `None` once nobody takes them.
fn send_all(directory: &Path, sender: &mpsc::Sender<Clearing>) -> Option<()> {
    for clearing in clearing::take(directory) {
        sender.blocking_send(clearing).ok()?;
    }
    Some(())
}

/// Most requests that wait for the loop.
const CLEARINGS_MAX: usize = 8;

/// Room for some events with names.
const EVENTS_BYTES: usize = 4096;

const STACK_BYTES: usize = 128 * 1024;

#[cfg(test)]
mod tests {
    use fettle_core::catalog::ConditionType;

    use super::*;

    #[tokio::test]
    async fn requests_arrive_whether_they_were_left_before_or_after() {
        let state = tempfile::tempdir().unwrap();
        let clearing = |condition| Clearing { condition, by: "alice".to_owned() };
        let before = clearing(ConditionType::KernelDeadlock);
        clearing::leave(state.path(), &before).unwrap();
        let mut clearings = follow(state.path()).unwrap();
        assert_eq!(clearings.recv().await, Some(before));
        let after = clearing(ConditionType::NodeTampered);
        clearing::leave(state.path(), &after).unwrap();
        assert_eq!(clearings.recv().await, Some(after));

        std::fs::remove_dir_all(state.path().join("clear")).unwrap();
        let again = clearing(ConditionType::SealedOSTampered);
        while !state.path().join("clear").exists() {
            tokio::task::yield_now().await;
        }
        clearing::leave(state.path(), &again).unwrap();
        assert_eq!(clearings.recv().await, Some(again));
    }
}
