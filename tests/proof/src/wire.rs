//! Parsers of what the kernel prints.

use core::hint::black_box;

use fettle_core::wire::cper::Line;
use fettle_core::wire::kmsg::Record;
use fettle_core::wire::proc::{Mount, TaskStat};
use fettle_core::wire::scan::{Scan, decimal, find, find_last, has};

use crate::{bytes, show};

/// Calls everything in `wire`.
pub(crate) fn call_all() {
    scans();
    searches();
    records();
    let _ = black_box(Line::parse(bytes()));
    let _ = black_box(Mount::parse(bytes()).map(|mount| mount.is_writable()));
    let _ = black_box(TaskStat::parse(bytes()));
}

fn scans() {
    let mut scan = Scan::new(bytes());
    black_box(black_box(&mut scan).literal(bytes()));
    black_box(black_box(&mut scan).one_of(&[bytes(), bytes()]));
    black_box(black_box(&mut scan).run(u8::is_ascii_digit));
    black_box(black_box(&mut scan).until(bytes()));
    black_box(black_box(&mut scan).until_last(bytes()));
    black_box(black_box(&mut scan).number());
    black_box(black_box(&mut scan).signed());
    black_box(black_box(&mut scan).word());
    black_box((scan.rest(), scan.at_end()));
}

fn searches() {
    let (whole, wanted) = (bytes(), bytes());
    black_box((find(whole, wanted), find_last(whole, wanted), has(whole, wanted)));
    black_box(decimal(whole));
}

fn records() {
    match Record::parse(bytes()) {
        Ok(record) => use_record(&record),
        Err(error) => show(error),
    }
    use_record(&black_box(Record::bare(bytes())));
}

fn use_record(record: &Record<'_>) {
    black_box(record.property(bytes()));
    let plain = record.plain_text();
    black_box((plain.as_bytes(), plain.is_cut()));
}
