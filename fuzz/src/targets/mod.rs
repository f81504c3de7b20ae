//! One function for each target: it takes any bytes, and panics where the code breaks a promise.

pub mod agent;
pub mod automaton;
pub mod classify;
pub mod config;
pub mod cper_line;
pub mod device_mapper;
pub mod journal;
pub mod kmsg_record;
pub mod mount_table;
pub mod mountinfo;
pub mod node_object;
pub mod prometheus;
pub mod publisher;
pub mod report;
pub mod smart;
pub mod status_blocks;
pub mod task_stat;

/// Every target with its name, which its program and the folder of its corpus bear too.
pub const ALL: [(&str, Target); 17] = [
    ("agent", agent::target),
    ("automaton", automaton::target),
    ("classify", classify::target),
    ("config", config::target),
    ("cper_line", cper_line::target),
    ("device_mapper", device_mapper::target),
    ("journal", journal::target),
    ("kmsg_record", kmsg_record::target),
    ("mount_table", mount_table::target),
    ("mountinfo", mountinfo::target),
    ("node_object", node_object::target),
    ("prometheus", prometheus::target),
    ("publisher", publisher::target),
    ("report", report::target),
    ("smart", smart::target),
    ("status_blocks", status_blocks::target),
    ("task_stat", task_stat::target),
];

/// Takes any bytes.
pub type Target = fn(&[u8]);
