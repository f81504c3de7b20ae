//! Whether restarts help the critical units.

use core::fmt;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Judgement, Memory, note};
use crate::node::reading::{ActiveState, Unit};
use crate::time::Instant;

/// What the agent knows of a unit besides what systemd says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mended {
    /// Restarts that the agent ordered in this boot.
    pub own_restarts: u32,
    /// Those of them since the unit last served well for as long as its cooldown.
    pub in_row: u32,
    /// Whether it serves; `None` where nothing probes it.
    pub serves: Option<bool>,
}

/// What is remembered of the restarts of a unit.
///
/// systemd's counter begins anew at every restart that somebody orders, the agent included (R01):
/// what it loses there is not counted, so that a restart by a person is none of these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restarts {
    /// systemd's counter, the agent's, and the start at the last look.
    systemd: u32,
    own: u32,
    last_start: Option<Instant>,
    /// Restarts since the last check, which comes once a minute however often one looks.
    counted: u32,
    checked: Instant,
    /// Since when it is active and serves without a restart.
    calm_since: Option<Instant>,
    /// Why it does not recover, if it does not.
    cause: Option<Cause>,
}

/// Why a unit does not recover.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Cause {
    /// systemd gave it up.
    Failed,
    /// It was restarted too often between two checks.
    Flapping { restarts: u32 },
    /// The agent's restarts do not make it serve.
    Stuck { restarts: u32 },
}

/// Judges `ServiceNotRecovering` by one unit.
pub fn recovering(
    now: Instant,
    unit: &Unit<'_>,
    mended: &Mended,
    memory: &mut Memory,
) -> Judgement {
    if !unit.duty.critical {
        return Judgement::NotMine;
    }
    let restarts = if let Memory::Restarts(before) = memory {
        before.after(now, unit, mended)
    } else {
        Restarts::first(now, unit, mended)
    };
    let judgement = match restarts.cause {
        None => Judgement::Healthy,
        Some(cause) => Judgement::Problem(note(format_args!("{cause}"))),
    };
    *memory = Memory::Restarts(restarts);
    judgement
}

impl Restarts {
    fn first(now: Instant, unit: &Unit<'_>, mended: &Mended) -> Self {
        let stuck = stuck(mended);
        let failed = (unit.active == ActiveState::Failed).then_some(Cause::Failed);
        Self {
            systemd: unit.restarts,
            own: mended.own_restarts,
            last_start: unit.last_start,
            counted: 0,
            checked: now,
            calm_since: None,
            cause: failed.or(stuck),
        }
    }

    fn after(&self, now: Instant, unit: &Unit<'_>, mended: &Mended) -> Self {
        let by_systemd = unit.restarts.checked_sub(self.systemd).unwrap_or(unit.restarts);
        let own = mended.own_restarts.saturating_sub(self.own);
        let counted = self.counted.saturating_add(by_systemd).saturating_add(own);
        let same_start = unit.last_start == self.last_start;
        let is_calm = by_systemd == 0
            && own == 0
            && same_start
            && unit.active.is_up()
            && mended.serves != Some(false);
        let calm_since = is_calm.then(|| self.calm_since.unwrap_or(now));
        let is_check = now.since(self.checked) >= CHECK_EVERY;
        let fresh = self.cause_now(unit, mended, (is_check, counted));
        let is_over = calm_since.is_some_and(|since| now.since(since) >= CALM);
        let cause = if is_over { fresh } else { fresh.or(self.cause) };
        Self {
            systemd: unit.restarts,
            own: mended.own_restarts,
            last_start: unit.last_start,
            counted: if is_check { 0 } else { counted },
            checked: if is_check { now } else { self.checked },
            calm_since,
            cause,
        }
    }

    /// A unit that has failed between two checks may be mended before the next.
    fn cause_now(
        &self,
        unit: &Unit<'_>,
        mended: &Mended,
        (is_check, counted): (bool, u32),
    ) -> Option<Cause> {
        if unit.active == ActiveState::Failed && is_check {
            return Some(Cause::Failed);
        }
        let most = if let Some(Cause::Flapping { restarts }) = self.cause { restarts } else { 0 };
        let flapping = Cause::Flapping { restarts: counted.max(most) };
        stuck(mended).or_else(|| (counted >= RESTARTS_MIN).then_some(flapping))
    }
}

fn stuck(mended: &Mended) -> Option<Cause> {
    let restarts = mended.in_row;
    (restarts >= RESTARTS_MIN).then_some(Cause::Stuck { restarts })
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed => f.write_str("has failed"),
            Self::Flapping { restarts } => {
                write!(f, "was restarted {restarts} times between two checks")
            }
            Self::Stuck { restarts } => {
                write!(f, "was restarted {restarts} times by Fettle and did not serve for long")
            }
        }?;
        f.write_str("; well again after 5 minutes active without a restart")
    }
}

/// Restarts that show that restarting does not help (seed, "When repair is not working").
pub const RESTARTS_MIN: u32 = 3;

/// How long a unit must be well before it has recovered (decisions, `ServiceNotRecovering`).
const CALM: Duration = Duration::from_secs(300);

/// The seed's minute, less what a look may come early after one that came late.
const CHECK_EVERY: Duration = Duration::from_secs(59);

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::node::judge::unit::tests::TUNNEL;
    use crate::node::reading::UnitDuty;

    #[test]
    fn r01_own_restarts_count_although_they_reset_systemds_counter() {
        // (when, NRestarts, own, in a row), problem
        let rows = [
            ((0, 0, 0, 0), false),
            ((60, 0, 1, 1), false),
            ((120, 0, 2, 2), false),
            ((150, 0, 3, 3), true),
            ((180, 0, 3, 3), true),
        ];
        assert_eq!(judge(&rows.map(|(row, _)| row)), rows.map(|(_, want)| want));
    }

    #[test]
    fn three_restarts_by_systemd_between_two_checks_are_a_fault() {
        for (rows, want) in [
            (&[(0, 40, 0, 0), (60, 41, 0, 0), (120, 43, 0, 0)][..], &[false, false, false][..]),
            (&[(0, 40, 0, 0), (60, 43, 0, 0)], &[false, true]),
            // Seen in between, and still between the same two checks.
            (&[(0, 0, 0, 0), (30, 2, 0, 0), (59, 3, 0, 0)], &[false, false, true]),
            (&[(0, 0, 0, 0), (60, 2, 0, 0), (90, 3, 0, 0)], &[false, false, false]),
            // Two by systemd and one by the agent, which resets systemd's.
            (&[(0, 0, 0, 0), (30, 2, 0, 0), (59, 0, 1, 1)], &[false, false, true]),
            // A restart by a person resets it too, and is none.
            (&[(0, 2, 0, 0), (30, 0, 0, 0), (59, 1, 0, 0)], &[false, false, false]),
        ] {
            assert_eq!(judge(rows), want, "{rows:?}");
        }
    }

    #[test]
    fn a_failed_unit_is_a_fault_at_the_next_check() {
        let failed = Unit { active: ActiveState::Failed, ..KUBELET };
        for (at_s, unit, want) in [(30, failed, false), (60, failed, true), (60, KUBELET, false)] {
            let mut memory = Memory::None;
            let _ = recovering(s(0), &KUBELET, &Mended::default(), &mut memory);
            let got = recovering(s(at_s), &unit, &Mended::default(), &mut memory);
            assert_eq!(matches!(got, Judgement::Problem(_)), want, "{at_s}");
        }
        let first = recovering(s(0), &failed, &Mended::default(), &mut Memory::None);
        assert!(matches!(first, Judgement::Problem(_)));
        assert_eq!(
            recovering(s(0), &TUNNEL, &Mended::default(), &mut Memory::None),
            Judgement::NotMine
        );
    }

    #[test]
    fn it_has_recovered_after_five_minutes_active_and_serving_without_a_restart() {
        let serves = |serves| Mended { serves: Some(serves), ..Mended::default() };
        let failed = Unit { active: ActiveState::Failed, ..KUBELET };
        let again = Unit { last_start: Some(s(400)), ..KUBELET };
        // when, unit, whether it serves, problem
        for series in [
            &[(0, failed, false, true), (60, KUBELET, true, true), (360, KUBELET, true, false)][..],
            &[(0, failed, false, true), (60, KUBELET, true, true), (359, KUBELET, true, true)],
            &[(0, failed, false, true), (60, KUBELET, false, true), (360, KUBELET, true, true)],
            // A person starts it once more.
            &[(0, failed, false, true), (200, KUBELET, true, true), (500, again, true, true)],
        ] {
            let mut memory = Memory::None;
            for (at_s, unit, good, want) in series {
                let got = recovering(s(*at_s), unit, &serves(*good), &mut memory);
                assert_eq!(matches!(got, Judgement::Problem(_)), *want, "{at_s}");
            }
        }
    }

    fn judge(rows: &[(u64, u32, u32, u32)]) -> Vec<bool> {
        let mut memory = Memory::None;
        let judge = |&(at_s, restarts, own_restarts, in_row): &(u64, u32, u32, u32)| {
            let unit = Unit { restarts, ..KUBELET };
            let mended = Mended { own_restarts, in_row, serves: Some(true) };
            let got = recovering(s(at_s), &unit, &mended, &mut memory);
            matches!(got, Judgement::Problem(_))
        };
        rows.iter().map(judge).collect()
    }

    const fn s(seconds: u64) -> Instant {
        Instant::from_millis(seconds * 1000)
    }

    const KUBELET: Unit<'static> = Unit {
        name: "kubelet.service",
        duty: UnitDuty { critical: true, operability: false },
        ..TUNNEL
    };
}
