//! Whether file systems, thin pools and volume groups have room.

use super::{Judgement, Limits, Memory, note, percent};
use crate::node::reading::{FileSystem, Reading, ThinPool, VolumeGroup};
use crate::time::Instant;

/// Judges `DiskUsageHigh`.
pub fn usage(_: Instant, reading: &Reading<'_>, limits: &Limits, memory: &mut Memory) -> Judgement {
    let fullest = if let Reading::FileSystem(system) = reading {
        of_file_system(system, limits)
    } else if let Reading::ThinPool(pool) = reading {
        of_thin_pool(pool, limits)
    } else if let Reading::VolumeGroup(group) = reading {
        if !limits.volume_group_free {
            return Judgement::Healthy;
        }
        of_volume_group(group)
    } else {
        return Judgement::NotMine;
    };
    let Use { what, used_pct, limit_pct } = fullest;
    let clear_pct = limit_pct.saturating_sub(u64::from(limits.clear_below_pct));
    let was_above = *memory == Memory::Above;
    if used_pct >= limit_pct || (was_above && used_pct >= clear_pct) {
        *memory = Memory::Above;
        return Judgement::Problem(note(format_args!(
            "{used_pct} % of its {what} is used, the limit is {limit_pct} %; well again below {clear_pct} %"
        )));
    }
    *memory = Memory::None;
    Judgement::Healthy
}

/// How much of something is used, and how much of it may be.
struct Use {
    what: &'static str,
    used_pct: u64,
    limit_pct: u64,
}

impl Use {
    /// Returns the one that is further over its limit, or nearer to it.
    fn or_worse(self, other: Self) -> Self {
        let over = |of: &Self| i128::from(of.used_pct).saturating_sub(i128::from(of.limit_pct));
        if over(&other) > over(&self) { other } else { self }
    }
}

fn of_file_system(system: &FileSystem<'_>, limits: &Limits) -> Use {
    let space = Use {
        what: "space",
        used_pct: percent(system.used_bytes, system.usable_bytes),
        limit_pct: u64::from(limits.usage_pct),
    };
    // btrfs and others make inodes as they need them, and say 0.
    let inodes = Use {
        what: "inodes",
        used_pct: percent(system.inodes_used, system.inodes),
        limit_pct: u64::from(limits.inode_pct),
    };
    space.or_worse(inodes)
}

fn of_thin_pool(pool: &ThinPool<'_>, limits: &Limits) -> Use {
    let limit_pct = u64::from(limits.usage_pct);
    let whole = |hundredths: u32| u64::from(hundredths / 100);
    let data = Use { what: "data", used_pct: whole(pool.data_pct_hundredths), limit_pct };
    let used_pct = whole(pool.metadata_pct_hundredths);
    data.or_worse(Use { what: "metadata", used_pct, limit_pct })
}

fn of_volume_group(group: &VolumeGroup<'_>) -> Use {
    let used = group.size_bytes.saturating_sub(group.free_bytes);
    Use { what: "space", used_pct: percent(used, group.size_bytes), limit_pct: GROUP_USED_PCT }
}

/// A volume group is too full with less than 15 % free (decisions, "LVM").
const GROUP_USED_PCT: u64 = 85;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_is_85_and_well_again_is_below_82() {
        let mut memory = Memory::None;
        for (used, problem) in [(84, false), (85, true), (82, true), (81, false), (84, false)] {
            let system = FileSystem { used_bytes: used, ..EMPTY };
            assert_eq!(judge(Reading::FileSystem(system), &mut memory), problem, "{used}");
        }
    }

    #[test]
    fn inodes_count_where_there_are_any() {
        for (inodes_used, inodes, problem) in [(89, 100, false), (90, 100, true), (5, 0, false)] {
            let system = FileSystem { inodes_used, inodes, ..EMPTY };
            assert_eq!(judge(Reading::FileSystem(system), &mut Memory::None), problem);
        }
    }

    #[test]
    fn a_pool_is_full_by_data_or_by_metadata() {
        for (data, metadata, problem) in [(84_99, 0, false), (85_00, 0, true), (1, 99_00, true)] {
            let pool = ThinPool {
                name: "vg/pool",
                data_pct_hundredths: data,
                metadata_pct_hundredths: metadata,
            };
            assert_eq!(judge(Reading::ThinPool(pool), &mut Memory::None), problem);
        }
    }

    #[test]
    fn a_full_volume_group_counts_only_where_that_is_wanted() {
        let group = VolumeGroup { name: "vg", size_bytes: 100, free_bytes: 14 };
        let reading = Reading::VolumeGroup(group);
        assert!(!judge(reading, &mut Memory::None));
        let limits = Limits { volume_group_free: true, ..Limits::default() };
        let judgement = usage(Instant::from_millis(0), &reading, &limits, &mut Memory::None);
        assert!(matches!(judgement, Judgement::Problem(_)));
    }

    const EMPTY: FileSystem<'static> = FileSystem {
        mount_point: "/",
        used_bytes: 0,
        usable_bytes: 100,
        inodes_used: 0,
        inodes: 0,
    };

    fn judge(reading: Reading<'_>, memory: &mut Memory) -> bool {
        let judgement = usage(Instant::from_millis(0), &reading, &Limits::default(), memory);
        matches!(judgement, Judgement::Problem(_))
    }
}
