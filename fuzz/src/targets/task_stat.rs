//! The parser of task states reads any bytes, and again what it read.

use fettle_core::wire::proc::TaskStat;

/// Takes `data` as the line of `/proc/PID/stat`.
pub fn target(data: &[u8]) {
    let Ok(task) = TaskStat::parse(data) else {
        return;
    };
    let between = "0 ".repeat(18);
    let line = [
        b"1 (",
        task.comm,
        b") ",
        &[task.state],
        b" ",
        between.as_bytes(),
        task.start_ticks.to_string().as_bytes(),
    ]
    .concat();
    assert_eq!(TaskStat::parse(&line), Ok(task));
}
