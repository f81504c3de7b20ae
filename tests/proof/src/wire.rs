//! Parsers of what the kernel prints.

use core::hint::black_box;

use fettle_core::wire::cper::{Line, StatusBlock, StatusBlocks};
use fettle_core::wire::dm::{Reply, VerityStatus, VerityTable};
use fettle_core::wire::kmsg::Record;
use fettle_core::wire::proc::{Mount, TaskStat};
use fettle_core::wire::prom::gauge;
use fettle_core::wire::scan::{Scan, decimal, find, find_last, has};
use fettle_core::wire::smart::{Health, Identity, Warnings, celsius};

use crate::{bytes, show};

/// Calls everything in `wire`.
pub(crate) fn call_all() {
    scans();
    searches();
    records();
    device_mapper();
    drives();
    let _ = black_box(gauge(bytes(), bytes()));
    let _ = black_box(Line::parse(bytes()));
    let _ = black_box(StatusBlock::parse(bytes()));
    StatusBlocks::new(bytes()).for_each(|block| _ = black_box(block));
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

fn device_mapper() {
    if let Ok(reply) = Reply::parse(bytes()) {
        black_box(reply.is_full());
        for device in reply.devices() {
            let _ = black_box(device.map(|device| device.numbers()));
        }
        reply.targets().for_each(|target| _ = black_box(target));
    }
    let _ = black_box(VerityTable::parse(bytes()));
    let _ = black_box(VerityStatus::parse(bytes()));
}

fn drives() {
    let _ = black_box(Health::parse(bytes()));
    let _ = black_box(Identity::parse(bytes()));
    let warnings = Warnings::from_bits(black_box(7));
    black_box((warnings.bits(), warnings.is_empty(), warnings.temperature()));
    show(warnings.failures());
    warnings.names().for_each(|name| _ = black_box(name));
    black_box(celsius(black_box(300)));
}
