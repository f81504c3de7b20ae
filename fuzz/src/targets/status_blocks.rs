//! The boot error region may hold any bytes: its blocks stay inside of it, and end.

use fettle_core::wire::cper::{StatusBlock, StatusBlocks};

/// Takes `data` as the region that firmware left.
pub fn target(data: &[u8]) {
    let mut rest = Some(data);
    for block in StatusBlocks::new(data) {
        let region = rest.expect("nothing follows an error");
        assert_eq!(StatusBlock::parse(region).transpose(), Some(block));
        rest = block.ok().map(|block| {
            let length = usize::try_from(block.length).expect("it was in memory");
            assert!(length >= HEADER_BYTES, "a block holds its header");
            region.get(length..).expect("a block ends inside of the region")
        });
    }
    if let Some(left) = rest {
        let is_end = left.len() < HEADER_BYTES || StatusBlock::parse(left) == Ok(None);
        assert!(is_end, "a block was passed over");
    }
}

/// Size of a block without data.
const HEADER_BYTES: usize = 20;
