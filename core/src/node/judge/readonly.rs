//! What proves that a file system can be written to again.

use crate::catalog::ConditionType;
use crate::node::judge::kernel::{Evidence, Faults, retain_unproven};
use crate::node::mounts::{Device, Mounts};
use crate::node::rules::{Detail, Object, ReadonlyHow};

/// Forgets each fault whose device `mounts` proves to be well, or gone after it was there.
pub fn apply(faults: &mut Faults, mounts: &Mounts) {
    retain_unproven(faults, ConditionType::ReadonlyFilesystem, |fault| {
        let name = &fault.finding.object;
        if let Some(device) = mounts.device(name) {
            fault.evidence = Evidence::Mounted;
            is_well(device, fault.finding.detail)
        } else {
            fault.evidence == Evidence::Mounted && is_gone(mounts, name)
        }
    });
}

/// Notes which of the faults have their device in `mounts`: its absence later on is a proof.
pub fn note_mounted(faults: &mut Faults, mounts: &Mounts) {
    retain_unproven(faults, ConditionType::ReadonlyFilesystem, |fault| {
        if mounts.device(&fault.finding.object).is_some() {
            fault.evidence = Evidence::Mounted;
        }
        false
    });
}

/// ext4 up to 6.14 may show `rw` although every write fails, so the count of errors that its
/// superblock keeps must be 0 as well. XFS shows nothing at all: only its absence proves anything.
fn is_well(device: &Device, detail: Detail) -> bool {
    let Detail::Readonly { how } = detail else {
        return false;
    };
    match how {
        ReadonlyHow::Remount => device.writable && device.errors == Some(0),
        ReadonlyHow::BtrfsForced => device.writable,
        ReadonlyHow::XfsShutdown => false,
    }
}

fn is_gone(mounts: &Mounts, name: &Object) -> bool {
    !name.is_empty() && mounts.lacks(name)
}

#[cfg(test)]
mod tests {
    use std::format;

    use super::*;
    use crate::bounds::LINE_MAX;
    use crate::node::rules::Finding;
    use crate::text::Text;

    #[test]
    fn only_a_proof_ends_a_fault() {
        use ReadonlyHow::{BtrfsForced, Remount, XfsShutdown};
        const RW: &str = "sdq1 0 1 2 8:1 / /m rw - ext4 /dev/sdq1 rw";
        const ERRORS: &str = "sdq1 3 1 2 8:1 / /m rw - ext4 /dev/sdq1 rw";
        const UNCOUNTED: &str = "sdq1 - 1 2 8:1 / /m rw - xfs /dev/sdq1 rw";
        const STOPPED: &str = "sdq1 0 1 2 8:1 / /m rw - ext4 /dev/sdq1 rw,emergency_ro";
        // how, tables in the order in which they are read, over
        for (how, tables, over) in [
            (Remount, &[RW][..], true),
            (Remount, &[ERRORS], false),
            (Remount, &[STOPPED], false),
            (Remount, &[UNCOUNTED], false),
            (Remount, &[""], false), // never seen mounted: absence proves nothing
            (Remount, &[STOPPED, ""], true),
            (BtrfsForced, &[UNCOUNTED], true),
            (XfsShutdown, &[UNCOUNTED], false),
            (XfsShutdown, &[UNCOUNTED, ""], true),
        ] {
            let mut faults = Faults::new();
            faults.note(ConditionType::ReadonlyFilesystem, finding(how));
            for table in tables {
                apply(&mut faults, &Mounts::parse(table.as_bytes(), b"/var/lib/kubelet"));
            }
            let open = faults.of(ConditionType::ReadonlyFilesystem).count();
            assert_eq!(open == 0, over, "{how:?} {tables:?}");
        }
    }

    fn finding(how: ReadonlyHow) -> Finding {
        Finding {
            object: Object::from_bytes(b"sdq1"),
            detail: Detail::Readonly { how },
            line: Text::<LINE_MAX>::from_bytes(format!("{how}").as_bytes()),
            timestamp_us: 0,
        }
    }
}
