//! When the state is saved: soon after something was told, seldom for a place in the log.

use core::time::Duration;

use fettle_core::journal::Stamp;
use fettle_core::node::agent::Agent;
use fettle_core::node::publisher::Publisher;
use log::warn;

use crate::errors::chain;
use crate::store::state::StateFile;

/// The state's file, and what of the state is not in it yet.
pub(super) struct Saver {
    file: StateFile,
    saved: Stamp,
    unsaved: Unsaved,
    /// Whether the last try to save failed.
    fails: bool,
}

/// What of the state is not in its file yet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unsaved {
    /// Nothing.
    Nothing,
    /// Only the place in the log.
    Place,
    /// Something was told: a restart would tell it again.
    Told,
    /// Something that is to be sent once it is saved.
    Awaited,
}

impl Saver {
    pub(super) const fn new(file: StateFile, now: Stamp) -> Self {
        Self { file, saved: now, unsaved: Unsaved::Nothing, fails: false }
    }

    /// Notes that something is not saved.
    pub(super) fn note(&mut self, what: Unsaved) {
        self.unsaved = self.unsaved.max(what);
    }

    /// Returns whether something waits for what is unsaved.
    pub(super) fn is_awaited(&self) -> bool {
        self.unsaved == Unsaved::Awaited
    }

    /// Returns whether it is time to save.
    pub(super) fn is_due(&self, now: Stamp) -> bool {
        self.until_due(now).is_some_and(|wait| wait.is_zero())
    }

    /// Returns how long until it is time to save, if anything is unsaved.
    pub(super) fn until_due(&self, now: Stamp) -> Option<Duration> {
        let every = match self.unsaved {
            Unsaved::Nothing => return None,
            Unsaved::Place => PLACE_SAVED_EVERY,
            Unsaved::Told | Unsaved::Awaited if self.fails => SAVE_RETRIED_EVERY,
            // A flood is saved a few times, not once a turn.
            Unsaved::Told | Unsaved::Awaited => TOLD_SAVED_EVERY,
        };
        Some(every.saturating_sub(now.at.since(self.saved.at)))
    }

    /// Saves; what could not be saved is tried again, and said once.
    pub(super) fn save(&mut self, now: Stamp, agent: &Agent, publisher: Option<&Publisher>) {
        self.saved = now;
        match self.file.save(agent, publisher) {
            Ok(()) => {
                self.unsaved = Unsaved::Nothing;
                self.fails = false;
            }
            Err(problem) => {
                if !self.fails {
                    warn!("{}; trying again", chain(&problem));
                }
                self.fails = true;
                // Who waits for it must not wait for ever.
                self.unsaved = self.unsaved.min(Unsaved::Told);
            }
        }
    }
}

/// How often the place in the log is saved while nothing is told.
const PLACE_SAVED_EVERY: Duration = Duration::from_secs(1);

/// How often the state is saved at most while a lot is told.
///
/// What was told in this time is told again after a crash.
const TOLD_SAVED_EVERY: Duration = Duration::from_millis(50);

/// How often a state that could not be saved is tried again.
const SAVE_RETRIED_EVERY: Duration = Duration::from_secs(10);
