//! The parsers of the device mapper's replies read any bytes, and come to an end.

use core::fmt::Debug;

use fettle_core::wire::dm::{Reply, ReplyError, VerityStatus, VerityTable};

/// Takes `data` as a reply, and as the parameters of a target.
pub fn target(data: &[u8]) {
    if let Ok(reply) = Reply::parse(data) {
        use_reply(&reply, data.len());
    }
    parameters(data);
}

fn use_reply(reply: &Reply<'_>, len: usize) {
    assert!(!reply.name.contains(&0), "a name ends at its zero");
    // Each entry begins after the one before it, and a reply holds as many as it has bytes at most.
    ends(reply.devices(), len, |device| {
        assert!(!device.name.contains(&0), "a name ends at its zero");
        let (major, minor) = device.numbers();
        assert!(major < 1 << 12 && minor < 1 << 20, "{major}:{minor}");
    });
    ends(reply.targets(), len, |target| {
        assert!(!target.kind.contains(&0) && target.kind.len() <= 16);
        assert!(!target.parameters.contains(&0), "a text ends at its zero");
        parameters(target.parameters);
    });
}

/// Asserts that `entries` are not more than `most`, and that none follows an error.
fn ends<T: Debug>(
    entries: impl Iterator<Item = Result<T, ReplyError>>,
    most: usize,
    check: impl Fn(T),
) {
    let (mut count, mut is_over) = (0, false);
    for entry in entries {
        assert!(!is_over, "{entry:?} follows an error");
        is_over = entry.is_err();
        count += 1;
        assert!(count <= most, "more entries than bytes");
        if let Ok(entry) = entry {
            check(entry);
        }
    }
}

fn parameters(text: &[u8]) {
    if let Ok(table) = VerityTable::parse(text) {
        assert_eq!(VerityTable::parse(&written(&table)), Ok(table));
    }
    if let Ok(status) = VerityStatus::parse(text) {
        let letter = if status.good { 'V' } else { 'C' };
        let count = status.corrected.map_or_else(|| "-".to_owned(), |count| count.to_string());
        assert_eq!(VerityStatus::parse(format!("{letter} {count}").as_bytes()), Ok(status));
    }
}

/// Returns `table` as the kernel would print it.
fn written(table: &VerityTable<'_>) -> Vec<u8> {
    let sizes = format!("{} {}", table.data_block_bytes, table.hash_block_bytes);
    let places = format!("{} {}", table.data_blocks, table.hash_start);
    let salt = if table.salt.is_empty() { b"-" } else { table.salt };
    [
        table.version.to_string().as_bytes(),
        table.data_device,
        table.hash_device,
        sizes.as_bytes(),
        places.as_bytes(),
        table.algorithm,
        table.root_digest,
        salt,
        table.options,
    ]
    .join(&b' ')
}
