//! What a condition leads to in a pool: who acts, and what automatic replacement watches.
//!
//! Seed, "Dispositions" and "Automatic replacement".

use core::time::Duration;

use crate::catalog::{ConditionType, Disposition};

/// A kind of pool, as far as automatic replacement tells them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolKind {
    /// Physical machines: re-provisioned, never replaced.
    BareMetal,
    /// Virtual machines of a cloud: replaced.
    Cloud,
}

/// The status of a condition, as a watch row names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchedStatus {
    /// `False`
    False,
    /// `True`
    True,
    /// `Unknown`
    Unknown,
}

/// The condition that a watch row names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watched {
    /// One of Fettle's own.
    Condition(ConditionType),
    /// The kubelet's `Ready`.
    Ready,
}

/// One condition that automatic replacement watches in one kind of pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchRow {
    /// Which condition.
    pub watched: Watched,
    /// The status that means trouble.
    pub status: WatchedStatus,
    /// How long it must hold.
    pub hold: Duration,
    /// What follows.
    pub then: Then,
}

/// What follows once a watched condition has held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// A person is told; nothing is done.
    Alert,
    /// Up to two reboots, then the same host is provisioned anew.
    RebootThenReprovision,
    /// One reboot, then a new machine.
    RebootThenReplace,
}

/// What a condition leads to in one kind of pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// Who is meant to act.
    pub disposition: Disposition,
    /// What automatic replacement does besides, if it watches the condition there.
    pub watch: Option<&'static WatchRow>,
}

/// Returns what `condition` leads to in a pool of kind `pool`.
#[must_use]
pub fn route(condition: ConditionType, pool: PoolKind) -> Route {
    let watch = watch_rows(pool).iter().find(|row| row.watched == Watched::Condition(condition));
    Route { disposition: condition.row().disposition, watch }
}

/// Returns what automatic replacement watches in a pool of kind `pool`.
#[must_use]
pub fn watch_rows(pool: PoolKind) -> &'static [WatchRow] {
    match pool {
        PoolKind::BareMetal => &BARE_METAL,
        PoolKind::Cloud => &CLOUD,
    }
}

static CLOUD: [WatchRow; 6] = [
    cloud(Watched::Ready, WatchedStatus::Unknown, 600),
    cloud(Watched::Ready, WatchedStatus::False, 300),
    cloud(Watched::Condition(ConditionType::ReadonlyFilesystem), WatchedStatus::True, 120),
    cloud(Watched::Condition(ConditionType::KernelDeadlock), WatchedStatus::True, 120),
    cloud(Watched::Condition(ConditionType::ServiceNotRecovering), WatchedStatus::True, 60),
    cloud(Watched::Condition(ConditionType::VerityCorruption), WatchedStatus::True, 60),
];

static BARE_METAL: [WatchRow; 2] = [
    WatchRow {
        watched: Watched::Ready,
        status: WatchedStatus::False,
        hold: Duration::from_secs(300),
        then: Then::RebootThenReprovision,
    },
    WatchRow {
        watched: Watched::Ready,
        status: WatchedStatus::Unknown,
        hold: Duration::from_secs(300),
        then: Then::Alert,
    },
];

const fn cloud(watched: Watched, status: WatchedStatus, hold_s: u64) -> WatchRow {
    WatchRow { watched, status, hold: Duration::from_secs(hold_s), then: Then::RebootThenReplace }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::CONDITIONS;

    #[test]
    fn four_conditions_replace_cloud_machines_and_none_replaces_bare_metal() {
        let watched = |pool| {
            CONDITIONS.iter().filter(|row| route(row.condition, pool).watch.is_some()).count()
        };
        assert_eq!((watched(PoolKind::Cloud), watched(PoolKind::BareMetal)), (4, 0));
    }

    #[test]
    fn holds_are_the_seeds() {
        let hold = |condition| {
            route(condition, PoolKind::Cloud).watch.map(|row| (row.hold.as_secs(), row.then))
        };
        let after = |seconds| Some((seconds, Then::RebootThenReplace));
        assert_eq!(hold(ConditionType::KernelDeadlock), after(120));
        assert_eq!(hold(ConditionType::VerityCorruption), after(60));
        assert_eq!(hold(ConditionType::NodeTampered), None);
    }

    #[test]
    fn a_route_names_the_disposition_of_the_catalogue() {
        let route = route(ConditionType::VerityCorruption, PoolKind::BareMetal);
        assert_eq!(route, Route { disposition: Disposition::Security, watch: None });
    }
}
