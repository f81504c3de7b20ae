//! Replies built as the kernel builds them, and lines as it prints them.

use proptest::prelude::*;
use std::vec;
use std::vec::Vec;

use super::*;

#[test]
fn a_list_names_every_device_with_its_number() {
    let buffer = reply(0, &[device(0xfd00, 24, b"usr"), device(0x0001_fd23, 0, b"a b")].concat());
    let reply = Reply::parse(&buffer).unwrap();
    let devices: Vec<_> = reply.devices().map(Result::unwrap).collect();
    assert_eq!(devices.len(), 2);
    assert_eq!((devices[0].name, devices[0].numbers()), (&b"usr"[..], (0xfd, 0)));
    assert_eq!((devices[1].name, devices[1].numbers()), (&b"a b"[..], (0x1fd, 0x23)));
    assert_eq!((reply.name, reply.is_full()), (&b"root"[..], false));
}

#[test]
fn an_empty_list_and_a_device_without_a_table_are_no_errors() {
    for data in [&[][..], &device(0, 0, b"")] {
        let buffer = reply(0, data);
        assert_eq!(Reply::parse(&buffer).unwrap().devices().count(), 0);
    }
    // A reply without data ends at 305, before its data would begin at 312.
    let mut buffer = reply(0, &[]);
    buffer[12..16].copy_from_slice(&305_u32.to_le_bytes());
    assert_eq!(Reply::parse(&buffer).unwrap().targets().count(), 0);
}

#[test]
fn targets_follow_each_other_from_the_start_of_the_data() {
    let data = [target(0, 48, b"verity", b"V"), target(8, 96, b"sixteen-letters!", b"")].concat();
    let buffer = reply(2, &data);
    let targets: Vec<_> = Reply::parse(&buffer).unwrap().targets().map(Result::unwrap).collect();
    let want = [
        Target { start: 0, length: 8, kind: b"verity", parameters: b"V" },
        Target { start: 8, length: 8, kind: b"sixteen-letters!", parameters: b"" },
    ];
    assert_eq!(targets, want);
}

#[test]
fn entries_that_lead_nowhere_are_one_error_and_the_end() {
    for data in [
        // an entry that is its own next, one that points outside, one without an end
        device(0xfd00, 12, b"usr"),
        device(0xfd00, 4096, b"usr"),
        device(0xfd00, 0, b"usr")[..14].to_vec(),
    ] {
        let buffer = reply(0, &data);
        let devices: Vec<_> = Reply::parse(&buffer).unwrap().devices().collect();
        assert_eq!(devices, [Err(ReplyError::Entry)]);
    }
    for (count, data) in [
        (2, target(0, 0, b"verity", b"V")),
        (1, target(0, 48, b"verity", b"V")[..41].to_vec()),
        (1, vec![]),
        (u32::MAX, target(0, 4096, b"verity", b"V")[..30].to_vec()),
    ] {
        let buffer = reply(count, &data);
        let targets: Vec<_> = Reply::parse(&buffer).unwrap().targets().collect();
        assert_eq!(targets, [Err(ReplyError::Entry)], "{count} in {data:?}");
    }
}

#[test]
fn a_full_buffer_says_so_and_a_short_one_is_an_error() {
    let mut buffer = reply(1, &[]);
    buffer[29] = 1;
    assert!(Reply::parse(&buffer).unwrap().is_full());
    assert_eq!(Reply::parse(&buffer[..175]), Err(ReplyError::Header));
}

#[test]
fn the_ninth_field_of_a_table_is_the_root_digest() {
    let line = b"1 254:2 254:3 4096 1024 262144 1 sha256 43ab 1234 1 panic_on_corruption ";
    let want = VerityTable {
        version: 1,
        data_device: b"254:2",
        hash_device: b"254:3",
        data_block_bytes: 4096,
        hash_block_bytes: 1024,
        data_blocks: 262_144,
        hash_start: 1,
        algorithm: b"sha256",
        root_digest: b"43ab",
        salt: b"1234",
        options: b"1 panic_on_corruption",
    };
    assert_eq!(VerityTable::parse(line), Ok(want));
    let plain = VerityTable::parse(b"1 8:1 8:2 4096 4096 2 1 sha256 43AB -").unwrap();
    assert_eq!((plain.salt, plain.options), (&b""[..], &b""[..]));
}

#[test]
fn a_line_that_is_no_table_says_why() {
    for (line, want) in [
        (&b""[..], VerityTableError::Short),
        (b"1 8:1 8:2 4096 4096 2 1 sha256 43ab", VerityTableError::Short),
        (b"1 8:1 8:2 4096 4096 2 x sha256 43ab -", VerityTableError::Number),
        (b"4294967296 8:1 8:2 4096 4096 2 1 sha256 43ab -", VerityTableError::Number),
        (b"1 8:1 8:2 4096 4096 2 1 sha256 43a -", VerityTableError::Digest),
        (b"1 8:1 8:2 4096 4096 2 1 sha256 - -", VerityTableError::Digest),
        (b"1 8:1 8:2 4096 4096 2 1 sha256 43ab xy", VerityTableError::Digest),
    ] {
        assert_eq!(VerityTable::parse(line), Err(want), "{line:?}");
    }
}

#[test]
fn only_v_is_good() {
    let (letter, corrected) = (VerityStatusError::Letter, VerityStatusError::Corrected);
    for (text, want) in [
        (&b"V"[..], Ok((true, None))),
        (b"C", Ok((false, None))),
        (b"V -", Ok((true, None))),
        (b"C 17", Ok((false, Some(17)))),
        (b"", Err(letter)),
        (b"v", Err(letter)),
        (b"VC", Err(letter)),
        (b"V x", Err(corrected)),
        (b"V 1 2", Err(corrected)),
    ] {
        let status = VerityStatus::parse(text).map(|status| (status.good, status.corrected));
        assert_eq!(status, want, "{text:?}");
    }
}

proptest! {
    #[test]
    fn parsers_never_panic(bytes: Vec<u8>, count in 0..4_u32) {
        let _ = (VerityTable::parse(&bytes), VerityStatus::parse(&bytes));
        for buffer in [reply(count, &bytes), bytes] {
            if let Ok(reply) = Reply::parse(&buffer) {
                reply.devices().for_each(|device| _ = device.map(|device| device.numbers()));
                reply.targets().for_each(drop);
            }
        }
    }

    #[test]
    fn iterators_end(offsets in proptest::collection::vec(0..64_u32, 8)) {
        let data: Vec<u8> =
            offsets.iter().flat_map(|next| device(0xfd00, *next, b"x")).collect();
        let buffer = reply(u32::MAX, &data);
        let reply = Reply::parse(&buffer).unwrap();
        prop_assert!(reply.devices().count() <= data.len());
        prop_assert!(reply.targets().count() <= data.len());
    }
}

/// Builds a reply about the device `root`.
fn reply(target_count: u32, data: &[u8]) -> Vec<u8> {
    let mut buffer = vec![0; 312];
    let end = u32::try_from(buffer.len() + data.len()).unwrap();
    buffer[12..16].copy_from_slice(&end.to_le_bytes());
    buffer[16..20].copy_from_slice(&312_u32.to_le_bytes());
    buffer[20..24].copy_from_slice(&target_count.to_le_bytes());
    buffer[48..52].copy_from_slice(b"root");
    buffer.extend_from_slice(data);
    buffer
}

/// Builds `struct dm_name_list`, the event number after the name.
fn device(encoded: u64, next: u32, name: &[u8]) -> Vec<u8> {
    let mut entry = [&encoded.to_le_bytes()[..], &next.to_le_bytes(), name, b"\0"].concat();
    entry.resize(entry.len().next_multiple_of(8) + 8, 0);
    entry
}

/// Builds `struct dm_target_spec` of 8 sectors.
fn target(start: u64, next: u32, kind: &[u8], parameters: &[u8]) -> Vec<u8> {
    let mut entry =
        [&start.to_le_bytes()[..], &8_u64.to_le_bytes(), &[0; 4], &next.to_le_bytes(), kind]
            .concat();
    entry.resize(40, 0);
    entry.extend_from_slice(parameters);
    entry.resize((entry.len() + 1).next_multiple_of(8), 0);
    entry
}
