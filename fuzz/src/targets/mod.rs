//! One function for each target: it takes any bytes, and panics where the core breaks a promise.

pub mod agent;
pub mod automaton;
pub mod classify;
pub mod cper_line;
pub mod journal;
pub mod kmsg_record;
pub mod mount_table;
pub mod mountinfo;
pub mod task_stat;

/// Every target with its name, which its program and the folder of its corpus bear too.
pub const ALL: [(&str, Target); 9] = [
    ("agent", agent::target),
    ("automaton", automaton::target),
    ("classify", classify::target),
    ("cper_line", cper_line::target),
    ("journal", journal::target),
    ("kmsg_record", kmsg_record::target),
    ("mount_table", mount_table::target),
    ("mountinfo", mountinfo::target),
    ("task_stat", task_stat::target),
];

/// Takes any bytes.
pub type Target = fn(&[u8]);
