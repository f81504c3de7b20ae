//! What goes wrong in an order that nobody expects.

use super::*;
use crate::catalog::EventReason;
use crate::node::condition::Status;
use crate::node::publisher::series::tests::happening;

#[test]
fn a_tamper_cleared_before_the_node_was_read_stays_cleared() {
    let tampered = ConditionType::NodeTampered;
    let mut world = World::unread(1);
    world.server.conditions.insert("NodeTampered".into(), world::on_node("True", 7));
    world.agent_takes(AgentInput::HeldOnNode { condition: tampered }); // hold_kept()
    world.clear("NodeTampered"); // by hand, API server away
    world.checked(crate::catalog::ReadingKind::ProtectedFiles);
    assert_eq!(world.agent.condition(tampered).unwrap().verdict.status, Status::False);
    world.look();
    assert_eq!(world.agent.condition(tampered).unwrap().verdict.status, Status::False);
}

#[test]
fn a_contested_condition_has_a_status_on_a_node_made_again() {
    let mut world = World::new(6);
    world.run_for(Duration::from_secs(30));
    for _ in 0..3 {
        world.run_for(Duration::from_secs(200));
        world.server.write_by("npd", DEADLOCK, "True");
        world.look();
    }
    assert!(world.publisher.levels().contest().is_some());
    world.server.delete_node();
    world.look();
    world.server.make_node("second");
    world.look();
    world.run_for(Duration::from_secs(400));
    assert_eq!(world.server.conditions[DEADLOCK].status, "False");
}

#[test]
fn one_404_does_not_silence() {
    let mut world = World::new(1);
    world.run_for(Duration::from_secs(400));
    world.fate = Fate::Refused(404);
    world.run_for(Duration::from_secs(121));
    world.fate = Fate::Taken;
    world.kernel_says("EXT4-fs (sda1): Remounting filesystem read-only");
    world.run_for(Duration::from_secs(3600));
    assert_eq!(world.server.conditions[READONLY].status, "True");
}

#[test]
fn older_versions_after_a_restore_make_no_storm() {
    let mut world = World::new(1);
    world.run_for(Duration::from_secs(30));
    world.server.version = 1_000;
    world.look();
    world.server.version = 10; // etcd restored
    let before = world.writes.len();
    world.kernel_says("EXT4-fs (sda1): Remounting filesystem read-only");
    world.run_for(Duration::from_secs(60));
    // Status and evidence, each with its back-off.
    assert!(world.writes.len() - before < 25, "{}", world.writes.len() - before);
}

#[test]
fn an_accepted_patch_without_a_view_is_not_sent_at_once_again() {
    let mut world = World::new(1);
    world.run_for(Duration::from_secs(30));
    world.fate = Fate::TakenUnseen;
    let writes = world.writes.len();
    world.kernel_says("EXT4-fs (sda1): Remounting filesystem read-only");
    world.run_for(Duration::from_millis(200));
    assert!(world.writes.len() - writes <= 4, "{:?}", &world.writes[writes..]);
}

fn fill(table: &mut SeriesTable, n: u64, now: Instant) {
    for at in 0..n {
        table.note(now, happening(EventReason::IOError, &format!("sd{at}"), 1));
    }
}

#[test]
fn what_is_under_way_is_not_counted_twice() {
    let now = Instant::from_millis(1_000);
    let mut table = SeriesTable::default();
    fill(&mut table, 64, now);
    table.saved();
    let first = table.take_due(now).unwrap();
    table.note(now, happening(EventReason::IOError, "other", 1));
    assert!(table.get(first.number).is_some(), "evicted while its Create is under way");
    table.answered(now, first, series::EventAnswer::Accepted);
    // told by now: 1, in a request that was taken; to be told: what waits
    assert_eq!(1 + table.counts().waiting, 65);
}

#[test]
fn an_order_in_a_full_table_keeps_the_lane() {
    let mut world = World::new(1);
    world.enable_reboots();
    world.run_for(Duration::from_secs(30));
    let now = world.now;
    fill(&mut world.publisher.series, 64, now);
    world.publisher.series.saved();
    world.server.mark("fettle.dev/reboot", "op-1");
    world.look(); // world's write_event does get(number).unwrap()
}

#[test]
fn no_wakeup_in_the_past_while_a_save_is_awaited() {
    let mut world = World::new(1);
    world.run_for(Duration::from_secs(30));
    let now = world.now;
    fill(&mut world.publisher.series, 1, now);
    world.publisher.series.saved();
    fill(&mut world.publisher.series, 2, now);
    // Save is asked for and not answered: saving fails, 10 s until the next try.
    let _ = world.publisher.step(now, &world.agent, Input::Tick);
    assert!(world.publisher.next_wakeup().is_none_or(|at| at > now));
}

#[test]
fn a_retired_condition_of_two_writers_is_left() {
    let mut world = World::new(1);
    world.run_for(Duration::from_secs(30));
    world.server.write_by("npd", DEADLOCK, "True");
    world.look();
    world.run_for(Duration::from_secs(5));
    for _ in 0..3 {
        world.server.write_by("npd", DEADLOCK, "True");
        world.look();
    }
    let mut settings = world.agent.settings().clone();
    settings.schedule.enabled[ConditionType::KernelDeadlock.index()] = false;
    world.agent_takes(AgentInput::Configured(settings));
    world.look();
    world.run_for(Duration::from_secs(60));
    assert!(world.server.conditions.contains_key(DEADLOCK));
}
