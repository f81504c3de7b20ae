//! Series of events that are merged, lost, forgotten and refused.

use proptest::prelude::*;
use std::format;

use super::*;
use crate::text::Text;

fn at(second: u64) -> Instant {
    Instant::from_millis(second * 1000)
}

pub(in crate::node::publisher) fn happening(
    reason: EventReason,
    object: &str,
    count: u64,
) -> Happening {
    let object = Object::from_bytes(object.as_bytes());
    let (topic, note) = (Topic::Event(reason), Text::from_bytes(b"a note"));
    Happening { topic, object, note, count, first_us: 1, last_us: 2 }
}

#[test]
fn a_lost_answer_makes_no_second_event_and_loses_no_count() {
    let mut table = SeriesTable::default();
    table.note(at(0), happening(EventReason::IOError, "sda", 3));
    assert_eq!((table.take_due(at(0)), table.waits_for_disk()), (None, true));
    table.saved();
    let create = table.take_due(at(0)).unwrap();
    assert_eq!(create.verb, EventVerb::Create);
    table.note(at(1), happening(EventReason::IOError, "sda", 2));
    table.answered(at(1), create, EventAnswer::Failed);
    assert_eq!(table.take_due(at(2)), Some(create));
    table.answered(at(2), create, EventAnswer::AlreadyExists);
    let count = table.take_due(at(3)).unwrap();
    assert_eq!((count.number, count.verb), (create.number, EventVerb::Count));
    table.answered(at(3), count, EventAnswer::Accepted);
    assert!(table.is_settled());
    assert_eq!(table.counts().written, 5);
}

#[test]
fn an_event_that_the_api_server_forgot_is_made_anew_with_the_rest() {
    let mut table = SeriesTable::default();
    table.note(at(0), happening(EventReason::IOError, "sda", 3));
    table.saved();
    let create = table.take_due(at(0)).unwrap();
    table.answered(at(0), create, EventAnswer::Accepted);
    table.note(at(1), happening(EventReason::IOError, "sda", 4));
    let count = table.take_due(at(100)).unwrap();
    table.answered(at(100), count, EventAnswer::Gone);
    assert!(table.waits_for_disk());
    table.saved();
    let again = table.take_due(at(100)).unwrap();
    assert_eq!(again.verb, EventVerb::Create);
    assert_ne!(again.number, create.number);
    assert_eq!(table.get(again.number).unwrap().count, 4);
    // After almost an hour without a write nothing is counted on an old object.
    table.answered(at(100), again, EventAnswer::Accepted);
    table.note(at(4000), happening(EventReason::IOError, "sda", 1));
    table.saved();
    assert_eq!(table.take_due(at(4000)).unwrap().verb, EventVerb::Create);
}

#[test]
fn what_will_never_be_taken_is_dropped_and_counted() {
    let mut table = SeriesTable::default();
    table.note(at(0), happening(EventReason::IOError, "sda", 3));
    table.saved();
    let create = table.take_due(at(0)).unwrap();
    table.answered(at(0), create, EventAnswer::Invalid);
    assert_eq!(table.take_due(at(0)), None);
    assert_eq!(table.counts(), SeriesCounts { dropped: 3, ..SeriesCounts::default() });
}

#[test]
fn the_end_does_not_wait_for_the_time_to_count_on() {
    let mut table = SeriesTable::default();
    table.note(at(0), happening(EventReason::IOError, "sda", 1));
    table.saved();
    let create = table.take_due(at(0)).unwrap();
    table.answered(at(0), create, EventAnswer::Accepted);
    table.note(at(1), happening(EventReason::IOError, "sda", 39));
    assert_eq!((table.take_due(at(1)), table.due_at()), (None, Some(at(60))));
    table.hurry();
    assert_eq!(table.take_due(at(1)).unwrap().verb, EventVerb::Count);
}

#[test]
fn too_many_objects_are_told_together() {
    let mut table = SeriesTable::default();
    table.note(at(0), happening(EventReason::NvmeError, "nvme0", 1));
    for number in 0..1000 {
        table.note(at(1), happening(EventReason::IOError, &format!("sd{number}"), 1));
    }
    let counts = table.counts();
    assert_eq!((counts.waiting, counts.dropped), (1001, 0));
    assert_eq!(counts.merged, 1001 - u64::try_from(SERIES_MAX).unwrap());
    assert!(table.entries.iter().any(|series| series.object.as_str() == "nvme0"));
    assert!(table.entries.iter().any(|series| series.object.is_empty()));
}

#[test]
fn what_was_sent_is_not_merged_while_anything_else_can_be() {
    let mut table = SeriesTable::default();
    table.note(at(0), happening(EventReason::IOError, "sda", 1));
    table.saved();
    let create = table.take_due(at(0)).unwrap();
    for number in 0..1000 {
        table.note(at(1), happening(EventReason::IOError, &format!("sd{number}"), 1));
    }
    table.answered(at(2), create, EventAnswer::Accepted);
    let counts = table.counts();
    assert_eq!((counts.written, counts.waiting, counts.dropped), (1, 1000, 0));
}

proptest! {
    #[test]
    fn all_counted(
        steps in proptest::collection::vec((0..6_u8, 0..90_u8, 0..400_u64), 0..600),
    ) {
        let reasons = [EventReason::IOError, EventReason::NvmeError, EventReason::TaskHung];
        let mut table = SeriesTable::default();
        let (mut now, mut happened, mut under_way) = (0, 0, None);
        for (step, object, wait) in steps {
            now += wait;
            match step {
                0..=2 => {
                    let reason = reasons[usize::from(step)];
                    table.note(at(now), happening(reason, &format!("o{object}"), 1));
                    happened += 1;
                }
                3 => table.saved(),
                4 => under_way = under_way.or_else(|| table.take_due(at(now))),
                _ => {
                    let answer = [
                        EventAnswer::Accepted,
                        EventAnswer::AlreadyExists,
                        EventAnswer::Gone,
                        EventAnswer::Invalid,
                        EventAnswer::Failed,
                    ][usize::from(object % 5)];
                    if let Some(request) = under_way.take() {
                        table.answered(at(now), request, answer);
                    }
                }
            }
            let counts = table.counts();
            prop_assert_eq!(counts.written + counts.waiting + counts.dropped, happened);
        }
    }
}
