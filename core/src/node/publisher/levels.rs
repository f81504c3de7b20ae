//! The conditions on the Node: what differs from how they should stand, and who else writes them.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::lane::{Bucket, Rate};
use super::view::{NodeView, SeenCondition};
use crate::bounds::{CONDITION_NAME_MAX, CONTESTED_MIN, RETIRED_MAX, WRITER_MAX};
use crate::catalog::{CONDITIONS, ConditionType};
use crate::node::agent::Agent;
use crate::node::condition::{Change, Held, Status};
use crate::node::judge::own::Contest;
use crate::text::Text;
use crate::time::{Instant, Timestamp};
use crate::window::Window;

/// How every condition stands on the Node, as far as it was read back.
///
/// # Invariants
///
/// * `own_only`: no patch names a type that is not the catalogue's, but to remove one that the
///   agent's own field manager has written.
/// * `until_read_back`: a condition is due until the Node is seen to have it as it should stand.
/// * `transition_is_status`: a patch that keeps the status keeps the time of its last change.
/// * `no_war`: a condition that somebody else changed [`CONTESTED_MIN`] times in ten minutes is
///   given no value until it was left alone for [`CONTEST_ENDS_AFTER`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Levels {
    levels: [Level; ConditionType::COUNT],
    /// When every condition is written again; `None` before the first patch.
    heartbeat_due: Option<Instant>,
    /// What the agent wrote once and does not know or want any more.
    retired: Names,
    /// What of it was removed: whoever writes it again is to keep it.
    removed: Names,
    patches: Bucket,
    words: Bucket,
}

/// Types of conditions.
type Names = heapless::Vec<Text<CONDITION_NAME_MAX>, RETIRED_MAX>;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Level {
    due: Option<Due>,
    seen: Option<Seen>,
    /// Whether the last turn that was told was one to `True`.
    told_true: bool,
    foreign: Window<CONTESTED_MIN>,
    contest: Option<War>,
}

/// Somebody else goes on writing a condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct War {
    writer: Text<WRITER_MAX>,
    /// When it last wrote to the Node, by the API server's clock.
    written: Option<Timestamp>,
    /// When that was last seen to be another time.
    since: Instant,
}

/// What a patch has to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Due {
    /// It was said, and has not been read back.
    Sent,
    /// Another status, or the Node does not have it as it should.
    Status,
    /// Another reason or message.
    Words,
}

/// What the Node said of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    status: Option<Status>,
    transition: Option<Timestamp>,
}

/// One patch of the Node's status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusPatch {
    /// The conditions that it writes.
    pub writes: heapless::Vec<ConditionWrite, { ConditionType::COUNT }>,
    /// The types that it removes.
    pub removes: Names,
}

/// What a patch says of one condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConditionWrite {
    /// Which one.
    pub condition: ConditionType,
    /// What of it is written, besides the time of the heartbeat.
    pub value: WriteValue,
}

/// What a patch says of a condition's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum WriteValue {
    /// Nothing: somebody else writes it, and the agent does not fight.
    Heartbeat,
    /// How it stands; its status has changed when [`Held::since`] says.
    Turned,
    /// How it stands; its status is what the Node has, since this moment.
    Unturned(Timestamp),
}

/// How a patch was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answered {
    /// It was not taken, or nobody knows.
    Lost,
    /// It was taken.
    Taken {
        /// Whether the Node was read since.
        is_read: bool,
    },
}

impl Levels {
    /// Notes that the agent sees a condition otherwise than before.
    pub(super) fn changed(&mut self, condition: ConditionType, change: Change) {
        self.removed.retain(|name| name.as_str() != condition.row().name);
        if let Some(level) = self.levels.get_mut(condition.index()) {
            let due = match change {
                // What was sent may have been a status, and be lost.
                Change::Explanation if matches!(level.due, None | Some(Due::Words)) => Due::Words,
                Change::Explanation | Change::Resumed | Change::Transition => Due::Status,
            };
            level.due = Some(due);
        }
    }

    /// Notes that the status has turned, and returns whether that is news.
    pub(super) fn turn(&mut self, condition: ConditionType, status: Status) -> bool {
        let Some(level) = self.levels.get_mut(condition.index()) else {
            return false;
        };
        let told_true = match status {
            Status::True => true,
            Status::False => false,
            Status::Unknown => level.told_true,
        };
        core::mem::replace(&mut level.told_true, told_true) != told_true
    }

    /// Notes how a patch was answered; what the Node then had was [seen](Self::seen) before.
    ///
    /// What was sent and is not there is due again. An API server that takes a value and has
    /// another one is somebody else who writes.
    pub(super) fn answered(&mut self, now: Instant, patch: &StatusPatch, answered: Answered) {
        if answered != Answered::Lost {
            for name in &patch.removes {
                // Full means that nothing more is removed: too little rather than for ever.
                let _ = self.removed.push(name.clone());
                self.retired.retain(|retired| retired != name);
            }
        }
        for level in self.levels.iter_mut().filter(|level| level.due == Some(Due::Sent)) {
            level.due = Some(Due::Status);
            if answered == (Answered::Taken { is_read: true }) {
                level.note_foreign(now, None);
            }
        }
    }

    /// Sets when every condition is written the first time, changed or not.
    pub(super) fn start_heartbeat(&mut self, at: Instant) {
        self.heartbeat_due = self.heartbeat_due.or(Some(at));
    }

    /// Forgets what was read: this is another Node of the same name, or a new process.
    pub(super) fn forget(&mut self, agent: &Agent) {
        self.heartbeat_due = None;
        self.retired.clear();
        for (row, level) in CONDITIONS.iter().zip(&mut self.levels) {
            level.seen = None;
            (level.contest, level.foreign) = (None, Window::new());
            level.due = agent.condition(row.condition).map(|_| Due::Status);
        }
    }

    /// Compares what the Node has with how the conditions stand.
    pub(super) fn seen(&mut self, now: Instant, agent: &Agent, view: &NodeView<'_>) {
        for (row, level) in CONDITIONS.iter().zip(&mut self.levels) {
            let on_node = view.conditions.iter().find(|seen| seen.name == row.name);
            level.see(now, row.condition, agent.condition(row.condition), on_node);
        }
        self.retired.clear();
        for seen in view.conditions.iter().filter(|seen| seen.is_own) {
            let name = Text::from_bytes(seen.name.as_bytes());
            // What was cut short may be somebody else's, and what somebody else writes as well is.
            let is_alone = name.as_str() == seen.name && seen.writer.is_none();
            let is_known = self.removed.is_full() || self.removed.contains(&name);
            if is_alone && !is_known && is_retired(agent, seen.name) {
                // More than fit are seen again once these are gone.
                let _ = self.retired.push(name);
            }
        }
    }

    /// Returns when a patch is due; `None` while there is nothing to say.
    #[must_use]
    pub(super) fn due_at(&self) -> Option<Instant> {
        let has = |wanted| self.fighting().any(|level| level.due == Some(wanted));
        let status = has(Due::Status) || !self.retired.is_empty();
        let patch = self.patches.room_at(PATCHES);
        let status = status.then_some(patch);
        let words = has(Due::Words).then(|| patch.max(self.words.room_at(WORDS)));
        let beat = self.heartbeat_due.map(|due| due.max(patch));
        [status, words, beat].into_iter().flatten().min()
    }

    /// Returns the patch that is due, and takes it for sent.
    pub(super) fn take_due(&mut self, now: Instant, agent: &Agent) -> Option<StatusPatch> {
        if self.due_at().is_none_or(|due| due > now) {
            return None;
        }
        let beats = self.heartbeat_due.is_some_and(|due| due <= now);
        let mut patch = StatusPatch { writes: heapless::Vec::new(), removes: self.retired.clone() };
        let mut has_status = !patch.removes.is_empty() || beats;
        for (row, level) in CONDITIONS.iter().zip(&mut self.levels) {
            let Some(held) = agent.condition(row.condition) else {
                level.due = None;
                continue;
            };
            let is_due = matches!(level.due, Some(Due::Status | Due::Words));
            if !beats && (!is_due || level.contest.is_some()) {
                continue;
            }
            has_status |= level.due == Some(Due::Status);
            let value = level.take(held);
            // There is room for every one.
            let _ = patch.writes.push(ConditionWrite { condition: row.condition, value });
        }
        self.patches.take(now, PATCHES);
        if !has_status {
            self.words.take(now, WORDS);
        }
        if beats {
            self.heartbeat_due = Some(now + HEARTBEAT_EVERY);
        }
        (!patch.writes.is_empty() || !patch.removes.is_empty()).then_some(patch)
    }

    /// Ends contests in which nobody has written for long.
    pub(super) fn end_contests(&mut self, now: Instant) {
        for level in &mut self.levels {
            if level.contest_ends_at().is_some_and(|at| at <= now) {
                level.contest = None;
                level.due = Some(Due::Status);
            }
        }
    }

    /// Returns when the next contest ends if it is left alone.
    #[must_use]
    pub(super) fn contest_ends_at(&self) -> Option<Instant> {
        self.levels.iter().filter_map(Level::contest_ends_at).min()
    }

    /// Returns the first condition that somebody else writes, and who.
    #[must_use]
    pub fn contest(&self) -> Option<Contest> {
        CONDITIONS.iter().zip(&self.levels).find_map(|(row, level)| {
            let writer = level.contest.as_ref()?.writer.clone();
            Some(Contest { condition: row.condition, writer })
        })
    }

    /// Returns how many conditions are not on the Node as they should stand.
    #[must_use]
    pub fn unsettled(&self) -> usize {
        self.fighting().filter(|level| level.due.is_some()).count()
    }

    fn fighting(&self) -> impl Iterator<Item = &Level> {
        self.levels.iter().filter(|level| level.contest.is_none())
    }
}

impl Level {
    fn see(
        &mut self,
        now: Instant,
        condition: ConditionType,
        held: Option<&Held>,
        on_node: Option<&SeenCondition<'_>>,
    ) {
        self.seen =
            on_node.map(|seen| Seen { status: status(seen.status), transition: seen.transition });
        let Some(held) = held else {
            self.contest = None;
            return;
        };
        if on_node.is_some_and(|seen| is_same(condition, held, seen)) {
            self.due = None;
            return;
        }
        if let Some(war) = &mut self.contest {
            war.see(now, on_node);
        } else if self.due.is_none() {
            self.due = Some(Due::Status);
            self.note_foreign(now, on_node);
        }
    }

    /// Notes that somebody else has changed what the Node had as it should stand.
    fn note_foreign(&mut self, now: Instant, on_node: Option<&SeenCondition<'_>>) {
        self.foreign.note(now);
        if self.foreign.count(now, CONTESTED_WITHIN) >= CONTESTED_MIN {
            let writer = on_node.and_then(|seen| seen.writer).unwrap_or("somebody unknown");
            let written = on_node.and_then(|seen| seen.written);
            let writer = Text::from_bytes(writer.as_bytes());
            self.contest = Some(War { writer, written, since: now });
        }
    }

    fn contest_ends_at(&self) -> Option<Instant> {
        self.contest.as_ref().map(|war| war.since + CONTEST_ENDS_AFTER)
    }

    fn take(&mut self, held: &Held) -> WriteValue {
        // A condition that is not there would have no status.
        if self.contest.is_some() && self.seen.is_some() {
            return WriteValue::Heartbeat;
        }
        if self.due.is_some() {
            self.due = Some(Due::Sent);
        }
        match self.seen {
            Some(Seen { status: Some(status), transition: Some(transition) })
                if status == held.verdict.status =>
            {
                WriteValue::Unturned(transition)
            }
            Some(_) | None => WriteValue::Turned,
        }
    }
}

impl War {
    /// Notes that somebody has written again, if so.
    fn see(&mut self, now: Instant, on_node: Option<&SeenCondition<'_>>) {
        let Some(seen) = on_node else {
            return;
        };
        if let Some(writer) = seen.writer
            && seen.written != self.written
        {
            self.writer = Text::from_bytes(writer.as_bytes());
            self.written = seen.written;
            self.since = now;
        }
    }
}

fn is_same(condition: ConditionType, held: &Held, seen: &SeenCondition<'_>) -> bool {
    status(seen.status) == Some(held.verdict.status)
        && seen.reason == held.verdict.reason.name(condition)
        && seen.message == held.verdict.message.as_str()
}

/// Returns whether the agent wrote a condition of that name once, and would not today.
fn is_retired(agent: &Agent, name: &str) -> bool {
    let known = CONDITIONS.iter().find(|row| row.name == name);
    known.is_none_or(|row| !agent.settings().schedule.wants(row.condition))
}

fn status(name: &str) -> Option<Status> {
    match name {
        "True" => Some(Status::True),
        "False" => Some(Status::False),
        "Unknown" => Some(Status::Unknown),
        _ => None,
    }
}

/// How often every condition is written, changed or not (decisions, "Node writes").
pub const HEARTBEAT_EVERY: Duration = Duration::from_secs(300);

/// Patches of the status: a storm of changes is two a second, so each is within one.
const PATCHES: Rate = Rate { burst: 30, every: Duration::from_millis(500) };

/// Patches that change words alone: a fault that goes on says so for some minutes, then four times
/// a minute.
const WORDS: Rate = Rate { burst: 240, every: Duration::from_secs(15) };

/// Decisions: three times in ten minutes. Node-problem-detector says again what it says every five
/// minutes, so the third time comes as the ten minutes end, and a little later under load.
const CONTESTED_WITHIN: Duration = Duration::from_secs(630);

/// How long nobody else may have written a condition until the agent writes it again.
pub const CONTEST_ENDS_AFTER: Duration = Duration::from_secs(1800);
