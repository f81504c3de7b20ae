//! The catalogue and what its conditions lead to.

use core::hint::black_box;

use fettle_core::catalog::{CRITICAL_TASKS, ConditionType, EventReason};
use fettle_core::disposition::{PoolKind, route, watch_rows};

use crate::{bytes, text};

/// Calls everything in `catalog` and `disposition`.
pub(crate) fn call_all() {
    let condition = black_box(ConditionType::KernelDeadlock);
    black_box(condition.clear_choices());
    black_box((condition.row(), condition.index(), ConditionType::by_name(text())));
    let reason = black_box(EventReason::NvmeError);
    black_box((reason.row(), reason.index()));
    for name in &CRITICAL_TASKS {
        black_box(black_box(*name).matches(bytes()));
    }
    let pool = black_box(PoolKind::Cloud);
    black_box((route(condition, pool), watch_rows(pool)));
}
