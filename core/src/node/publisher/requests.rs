//! The requests of the three lanes: when they are sent, and what their answers mean.

use core::time::Duration;

use super::lane::{Jitter, Lane};
use super::levels::Answered;
use super::orders::OperationId;
use super::series::{EventAnswer, EventVerb};
use super::{
    AnnotationPatch, Answer, EVIDENCE, NodeState, Output, Outputs, Publisher, REPORT_EVERY, push,
};
use crate::node::agent::Agent;
use crate::time::Instant;

impl Publisher {
    /// Sends what is due and may go.
    pub(super) fn write(&mut self, now: Instant, agent: &Agent, outputs: &mut Outputs) {
        let is_present = matches!(self.node, NodeState::Present { .. });
        if is_present
            && self.status.is_free(now)
            && let Some(patch) = self.levels.take_due(now, agent)
        {
            self.status.sent();
            (self.patching, self.fresh.status) = (Some(patch), false);
            push(outputs, Output::PatchStatus);
        }
        if is_present
            && self.annotations.is_free(now)
            && let Some(patch) = self.take_annotations(now)
        {
            self.annotations.sent();
            (self.annotating, self.fresh.annotations) = (Some(patch), false);
            push(outputs, Output::Annotate(patch));
        }
        if self.events.is_free(now)
            && let Some(request) = self.series.take_due(now)
        {
            self.events.sent();
            self.sending = Some(request);
            push(outputs, Output::WriteEvent(request));
        }
        if let Some(id) = self.take_reboot(now) {
            push(outputs, Output::Reboot { id });
        }
    }

    /// Asks for the state to be saved, where an event or a mark waits for that.
    pub(super) fn save(&mut self, outputs: &mut Outputs) {
        let waits = self.series.waits_for_disk() || self.clears.waits_for_disk();
        if waits && !self.is_saving {
            self.is_saving = true;
            push(outputs, Output::Save);
        }
    }

    /// Returns when the next event that is saved is written.
    pub(super) fn events_due(&self) -> Option<Instant> {
        Some(self.series.due_at()?.max(self.events.free_at()?))
    }

    fn take_reboot(&mut self, now: Instant) -> Option<OperationId> {
        self.reboots.take_due(now, self.series.is_settled())
    }

    /// Returns when annotations are to be written.
    pub(super) fn annotations_due(&self) -> Option<Instant> {
        let unmark = self.clears.is_due().then_some(Instant::from_millis(0));
        [unmark, self.report_due, self.evidence_due()].into_iter().flatten().min()
    }

    fn evidence_due(&self) -> Option<Instant> {
        Some(self.evidence.due?.max(self.evidence.writes.room_at(EVIDENCE)))
    }

    fn take_annotations(&mut self, now: Instant) -> Option<AnnotationPatch> {
        let is_due = |due: Option<Instant>| due.is_some_and(|due| due <= now);
        let (report, evidence) = (is_due(self.report_due), is_due(self.evidence_due()));
        // A mark that cannot be taken away holds up nothing else.
        let others_first = self.unmark_fails && (report || evidence);
        if self.clears.is_due() && !others_first {
            return Some(AnnotationPatch::Unmark { version: self.version });
        }
        if !report && !evidence {
            return None;
        }
        self.unmark_fails = false;
        if evidence {
            self.evidence.due = None;
            self.evidence.writes.take(now, EVIDENCE);
        }
        if report {
            self.report_due = Some(now + REPORT_EVERY);
        }
        Some(AnnotationPatch::Write { report, evidence })
    }

    pub(super) fn on_status(&mut self, now: Instant, answer: Answer) {
        let Some(patch) = self.patching.take() else {
            return;
        };
        let answered = match answer {
            Answer::Accepted if self.fresh.status => Answered::Taken { is_read: true },
            Answer::Accepted => Answered::Taken { is_read: false },
            Answer::AlreadyExists | Answer::Failed { .. } => Answered::Lost,
        };
        self.levels.answered(now, &patch, answered);
        let is_read = self.fresh.status;
        settle(&mut self.status, &mut self.jitter, now, (answer, is_read));
    }

    pub(super) fn on_annotations(&mut self, now: Instant, answer: Answer) {
        let Some(patch) = self.annotating.take() else {
            return;
        };
        match (answer, patch) {
            (Answer::Failed { .. }, AnnotationPatch::Unmark { .. }) => self.unmark_fails = true,
            (Answer::Failed { code, .. }, AnnotationPatch::Write { report, evidence }) => {
                if report {
                    self.report_due = Some(now);
                }
                // What is refused for its size or content is not sent a second time.
                let is_refused = matches!(code, Some(BAD_REQUEST | TOO_LARGE | INVALID));
                if evidence && !is_refused {
                    self.evidence.due = Some(now);
                }
            }
            (Answer::Accepted | Answer::AlreadyExists, _) => {}
        }
        let is_read = self.fresh.annotations;
        settle(&mut self.annotations, &mut self.jitter, now, (answer, is_read));
    }

    pub(super) fn on_event_answer(&mut self, now: Instant, answer: Answer) {
        let Some(request) = self.sending.take() else {
            return;
        };
        let meaning = match answer {
            Answer::Accepted => EventAnswer::Accepted,
            Answer::AlreadyExists => EventAnswer::AlreadyExists,
            // Of an event that is to be made it is the namespace, which may come yet.
            Answer::Failed { code: Some(NOT_FOUND), .. } if request.verb == EventVerb::Count => {
                EventAnswer::Gone
            }
            Answer::Failed { code: Some(BAD_REQUEST | TOO_LARGE | INVALID), .. } => {
                EventAnswer::Invalid
            }
            Answer::Failed { .. } => EventAnswer::Failed,
        };
        self.series.answered(now, request, meaning);
        if matches!(meaning, EventAnswer::Accepted | EventAnswer::AlreadyExists) {
            self.events.accepted(now);
        } else if meaning == EventAnswer::Failed {
            self.events.failed(now, retry_after(answer), &mut self.jitter);
        } else {
            self.events.refused(now);
        }
    }
}

/// Notes how a request about the Node ended, and whether the Node was read since it was sent.
///
/// One that was taken and cannot be read back is sent again, but not at once; and only the watch
/// says that there is no Node: a 404 may come from anything in between.
fn settle(lane: &mut Lane, jitter: &mut Jitter, now: Instant, (answer, is_read): (Answer, bool)) {
    if answer == Answer::Accepted && is_read {
        lane.accepted(now);
    } else {
        lane.failed(now, retry_after(answer), jitter);
    }
}

const fn retry_after(answer: Answer) -> Option<Duration> {
    match answer {
        Answer::Failed { retry_after, .. } => retry_after,
        Answer::Accepted | Answer::AlreadyExists => None,
    }
}

/// HTTP status codes (RFC 9110, section 15.5).
const BAD_REQUEST: u16 = 400;
const NOT_FOUND: u16 = 404;
const TOO_LARGE: u16 = 413;
const INVALID: u16 = 422;
