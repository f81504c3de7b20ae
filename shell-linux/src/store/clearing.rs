//! Requests of people to clear a held condition: one file each, which the agent takes away.

use std::fs::{self, DirBuilder};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use fettle_core::bounds::CLEARED_BY_MAX;
use fettle_core::catalog::ConditionType;
use log::warn;

use crate::store;

/// A request to clear a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clearing {
    /// Which condition.
    pub condition: ConditionType,
    /// Who says that it is over.
    pub by: String,
}

/// Makes the directory of requests below `state_dir`, for the agent and root alone.
///
/// # Errors
///
/// Returns what the operating system says.
pub fn directory(state_dir: &Path) -> io::Result<PathBuf> {
    let directory = state_dir.join("clear");
    DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
    Ok(directory)
}

/// Leaves a request for the agent whose state is in `state_dir`.
///
/// # Errors
///
/// Returns what the operating system says.
pub fn leave(state_dir: &Path, clearing: &Clearing) -> io::Result<()> {
    let directory = directory(state_dir)?;
    // The agent takes files by their name as soon as they have it: the file is whole by then.
    let new = directory.join(format!(".{}", clearing.condition.row().name));
    match fs::remove_file(&new) {
        Err(problem) if problem.kind() != io::ErrorKind::NotFound => return Err(problem),
        Ok(()) | Err(_) => {}
    }
    store::create(&new)?.write_all(clearing.by.as_bytes())?;
    fs::rename(new, directory.join(clearing.condition.row().name))
}

/// Takes every request away and returns them; what is none is taken away too, and said.
#[must_use]
pub fn take(directory: &Path) -> Vec<Clearing> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let names = entries.filter_map(Result::ok).map(|entry| entry.file_name());
    let names = names.filter(|name| !name.as_encoded_bytes().starts_with(b"."));
    names.take(ConditionType::COUNT).filter_map(|name| take_one(&directory.join(name))).collect()
}

fn take_one(path: &Path) -> Option<Clearing> {
    let by = read(path);
    if let Err(problem) = fs::remove_file(path) {
        warn!("cannot take {} away, so it is not followed: {problem}", path.display());
        return None;
    }
    let name = path.file_name()?.to_str()?;
    let Some(condition) = ConditionType::by_name(name) else {
        warn!("{} names no condition", path.display());
        return None;
    };
    Some(Clearing { condition, by: by.unwrap_or_else(|_| "someone".to_owned()) })
}

fn read(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(CLEARED_BY_MAX).unwrap_or(u64::MAX);
    store::open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_taken_once_and_what_is_none_is_not_followed() {
        let state = tempfile::tempdir().unwrap();
        let clearing =
            Clearing { condition: ConditionType::KernelDeadlock, by: "alice".to_owned() };
        leave(state.path(), &clearing).unwrap();
        let directory = directory(state.path()).unwrap();
        fs::write(directory.join("Nonsense"), "bob").unwrap();
        assert_eq!(take(&directory), [clearing]);
        assert_eq!(take(&directory), []);
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
    }
}
