//! Whether the units that operate the platform are active.

use core::time::Duration;

use super::{Judgement, Limits, Memory, note};
use crate::node::reading::{ActiveState, Reading, Unit};
use crate::time::Instant;

/// Judges `NodeServiceDown`.
///
/// A unit between two attempts is neither active nor failed, and down (H14); one that is on its
/// first way up is not reported yet.
pub fn active(now: Instant, reading: &Reading<'_>, _: &Limits, memory: &mut Memory) -> Judgement {
    let Reading::Unit(unit) = reading else {
        return Judgement::NotMine;
    };
    if !unit.duty.operability {
        return Judgement::NotMine;
    }
    *memory = Memory::Present;
    if unit.active.is_up() {
        return Judgement::Healthy;
    }
    let (state, sub) = (unit.active.name(), unit.sub);
    if is_starting(now, unit) {
        return Judgement::NotYet(note(format_args!("is {state} ({sub})")));
    }
    Judgement::Problem(note(format_args!("is {state} ({sub}), result {}", unit.result)))
}

/// Returns whether a start goes on that has not taken longer than it may.
fn is_starting(now: Instant, unit: &Unit<'_>) -> bool {
    if unit.active != ActiveState::Activating || unit.sub.starts_with(BETWEEN_ATTEMPTS) {
        return false;
    }
    let (Some(start), Some(timeout_s)) = (unit.last_start, unit.start_timeout_s) else {
        return true;
    };
    now.since(start) < Duration::from_secs(timeout_s)
}

/// How the sub-states begin in which a unit waits for its next attempt.
const BETWEEN_ATTEMPTS: &str = "auto-restart";

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::node::reading::UnitDuty;

    #[test]
    fn h14_what_is_not_active_is_down_unless_it_just_starts() {
        use ActiveState::{Activating, Active, Deactivating, Failed, Inactive, Reloading};
        // state, sub-state, seconds since its start, judgement
        for (state, sub, started_s, want) in [
            (Active, "running", 900, '+'),
            (Reloading, "reload", 900, '+'),
            (Activating, "auto-restart", 1, '-'), // H14
            (Activating, "auto-restart-queued", 1, '-'),
            (Activating, "start", 89, '?'), // H14
            (Activating, "start-pre", 0, '?'),
            (Activating, "start", 90, '-'),
            (Deactivating, "stop-sigterm", 900, '-'),
            (Failed, "failed", 900, '-'),
            (Inactive, "dead", 900, '-'),
            (ActiveState::Other, "?", 900, '-'),
        ] {
            let last_start = Some(Instant::from_millis((1000 - started_s) * 1000));
            let unit = Unit { active: state, sub, last_start, ..TUNNEL };
            let got = match judge(unit) {
                Judgement::Healthy => '+',
                Judgement::NotYet(_) => '?',
                Judgement::Problem(_) => '-',
                Judgement::NotMine | Judgement::Unknown(_) => ' ',
            };
            assert_eq!(got, want, "{state:?} {sub} {started_s}");
        }
        let endless = Unit { active: Activating, sub: "start", start_timeout_s: None, ..TUNNEL };
        assert!(matches!(judge(endless), Judgement::NotYet(_)));
        let critical = UnitDuty { critical: true, operability: false };
        assert_eq!(judge(Unit { duty: critical, ..TUNNEL }), Judgement::NotMine);
    }

    fn judge(unit: Unit<'_>) -> Judgement {
        let now = Instant::from_millis(1_000_000);
        active(now, &Reading::Unit(unit), &Limits::default(), &mut Memory::None)
    }

    pub(crate) const TUNNEL: Unit<'static> = Unit {
        name: "syself-tunnel-agent.service",
        duty: UnitDuty { critical: false, operability: true },
        active: ActiveState::Active,
        sub: "running",
        result: "success",
        restarts: 0,
        last_start: Some(Instant::from_millis(0)),
        start_timeout_s: Some(90),
        has_job: false,
    };
}
