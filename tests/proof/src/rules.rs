//! The kernel rule table, and what its findings say.

use core::hint::black_box;

use fettle_core::node::rules::{
    BlockError, Detail, Fault, ReadonlyHow, candidates, classify, fragments, lock_owner,
    pci_address, scan,
};
use fettle_core::wire::kmsg::Record;

use crate::{bytes, finding, show};

/// Calls everything in `node::rules`.
pub(crate) fn call_all() {
    let found = candidates(bytes());
    black_box((found.contains(black_box(Fault::Ata)), found.is_empty()));
    black_box((scan(bytes()), fragments()));
    for finding in classify(&black_box(Record::bare(bytes()))) {
        show(&finding);
        black_box(finding);
    }
    black_box((pci_address(bytes()), lock_owner(bytes())));
    details();
}

fn details() {
    let finding = finding();
    show(&finding);
    black_box((finding.clone(), finding == crate::finding()));
    let detail: Detail = black_box(finding.detail);
    black_box((detail.condition(), detail.event(), detail.takes_lines()));
    show(black_box(BlockError::Io));
    show(black_box(ReadonlyHow::Remount));
}
