//! Writes records to the machine's kernel log, as many and as fast as asked.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;

use anyhow::{Context as _, Result};

/// The kernel log, open for writing without a limit on the rate.
#[derive(Debug)]
pub(crate) struct KernelLog {
    device: File,
    _limit: RateLimit,
}

impl KernelLog {
    pub(crate) fn open() -> Result<Self> {
        let limit = RateLimit::lift()?;
        let device = OpenOptions::new().write(true).open(DEVICE).context("cannot open the log")?;
        Ok(Self { device, _limit: limit })
    }

    /// Writes one record, as a user's, of a level that no console shows.
    ///
    /// Without the newline nobody could read the record before the next is written: the kernel
    /// keeps it open for more (`kernel/printk/printk.c`, `vprintk_store`).
    pub(crate) fn write(&mut self, line: &str) -> Result<()> {
        let record = format!("<{USER_DEBUG}>{line}\n");
        self.device.write_all(record.as_bytes()).context("cannot write to the log")
    }
}

/// The limit on what user space may write to the log; as before once this is dropped.
#[derive(Debug)]
struct RateLimit {
    before: String,
}

impl RateLimit {
    fn lift() -> Result<Self> {
        let before = fs::read_to_string(RATE_LIMIT).context("cannot read the rate limit")?;
        // Without the newline the kernel refuses it.
        fs::write(RATE_LIMIT, "on\n").context("cannot lift the rate limit: only root may")?;
        Ok(Self { before })
    }
}

impl Drop for RateLimit {
    fn drop(&mut self) {
        if let Err(error) = fs::write(RATE_LIMIT, &self.before) {
            eprintln!("cannot write {:?} back to {RATE_LIMIT}: {error}", self.before.trim());
        }
    }
}

const DEVICE: &str = "/dev/kmsg";
const RATE_LIMIT: &str = "/proc/sys/kernel/printk_devkmsg";

/// Facility 1, level 7.
const USER_DEBUG: u8 = 15;
