//! A folder that is removed when this process ends, however that ends.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result};

/// A folder of its own below the system's for temporary files.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    sweeper: Child,
}

impl Folder {
    /// Makes one.
    ///
    /// # Errors
    ///
    /// There is no room for it, or no shell.
    pub(super) fn new() -> Result<Self> {
        let path = tempfile::Builder::new().prefix("fettle-api-").tempdir()?.keep();
        let mut sweeper = Command::new("sh");
        sweeper.args(["-c", SWEEP, "sweep"]).arg(&path);
        // In a group of its own, so that Ctrl-C does not end it before its work.
        sweeper.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let sweeper = sweeper.spawn().context("cannot start sh")?;
        Ok(Self { path, sweeper })
    }

    /// Returns where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(self.sweeper.stdin.take());
        let _ = self.sweeper.wait();
    }
}

/// Waits until the other end of standard input is gone, then removes the folder.
///
/// The processes that write there end at the same moment, so the first try may find it not empty.
const SWEEP: &str =
    "read -r line; for try in 1 2 3 4 5 6 7 8 9; do rm -rf -- \"$1\" && exit; sleep 0.2; done";

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn it_is_removed_with_all_that_is_in_it() {
        let folder = Folder::new().unwrap();
        let path = folder.path().to_owned();
        fs::write(path.join("file"), "").unwrap();
        drop(folder);
        assert!(!path.exists());
    }
}
