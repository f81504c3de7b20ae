//! The configuration's file: found, read, and told what is wrong with it.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use super::{Config, FILE_MAX, Place, Problem, Problems, too_large};

/// The file that the configuration comes from.
#[derive(Debug, Clone)]
pub struct ConfigFile {
    path: PathBuf,
    may_be_absent: bool,
}

/// Why a file is not the agent's configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Something in it is wrong.
    #[error("{path} has problems\n{}", lines(path, problems).join("\n"))]
    Content {
        /// The file.
        path: PathBuf,
        /// All that is wrong.
        problems: Problems,
    },
    /// It cannot be read.
    #[error("cannot read the configuration {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        #[source]
        source: io::Error,
    },
}

impl ConfigError {
    /// Returns a line for each problem, that begins with the file's name.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        match self {
            Self::Content { path, problems } => lines(path, problems),
            Self::Read { path, source } => {
                vec![format!("{}: cannot read it: {source}", path.display())]
            }
        }
    }
}

impl ConfigFile {
    /// Returns the file that was named, or the usual one, which may be absent.
    #[must_use]
    pub fn new(named: Option<PathBuf>) -> Self {
        let may_be_absent = named.is_none();
        Self { path: named.unwrap_or_else(|| PathBuf::from(DEFAULT_FILE)), may_be_absent }
    }

    /// Returns the file's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the file, at the start and at each reload.
    ///
    /// # Errors
    ///
    /// Says why it cannot be read, or all that is wrong with it.
    pub fn load(&self) -> Result<Config, ConfigError> {
        let bytes = match read_bytes(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if self.may_be_absent && error.kind() == io::ErrorKind::NotFound => {
                return Ok(Config::default());
            }
            Err(source) => return Err(ConfigError::Read { path: self.path.clone(), source }),
        };
        text(&bytes)
            .map_err(Problems::from)
            .and_then(Config::parse)
            .map_err(|problems| ConfigError::Content { path: self.path.clone(), problems })
    }
}

/// Reads a regular file, and little more of it than it may have.
fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    // Without waiting: a pipe that nobody writes to must not stop the agent.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let limit = u64::try_from(FILE_MAX).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn text(bytes: &[u8]) -> Result<&str, Problem> {
    if bytes.len() > FILE_MAX {
        return Err(too_large());
    }
    str::from_utf8(bytes).map_err(|error| {
        let good = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let place = Place::behind(str::from_utf8(good).unwrap_or_default());
        Problem::new(place, "", "is not UTF-8; save the file as UTF-8".to_owned())
    })
}

fn lines(path: &Path, problems: &Problems) -> Vec<String> {
    let path = path.display();
    let mut lines = Vec::from_iter(problems.found().iter().map(|p| format!("{path}:{p}")));
    if problems.omitted() > 0 {
        lines.push(format!("{path}: and {} more problems", problems.omitted()));
    }
    lines
}

/// Where the configuration is looked for unless another file is named.
pub const DEFAULT_FILE: &str = "/etc/fettle/agent.yaml";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_only_where_it_is_one() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("agent.yaml");
        let load = |named: &Path| {
            let file = ConfigFile::new(Some(named.to_owned()));
            let error = file.load().expect_err("refused");
            error.lines().join("\n").replace(&format!("{}/", directory.path().display()), "")
        };
        assert!(load(&path).starts_with("agent.yaml: cannot read it: "));
        assert!(load(directory.path()).ends_with("it is not a regular file"));
        assert!(load(Path::new("/dev/zero")).ends_with("it is not a regular file"));
        let mut file = ConfigFile::new(None);
        file.path = path.clone();
        assert_eq!(file.load().expect("defaults"), Config::default());
        for (bytes, want) in [
            (
                &b"role: w\xc3\xb6\n \xff"[..],
                "agent.yaml:2:2: is not UTF-8; save the file as UTF-8",
            ),
            (b"r\0", "agent.yaml:1:2: not readable as YAML: "),
            (
                b"role: 1\nx: 1\n",
                "agent.yaml:1:7: role: 1 is no text; give controlPlane or worker\nagent.yaml:2:1: x: ",
            ),
            (
                &vec![0xff; FILE_MAX + 5],
                "agent.yaml:1:1: larger than 1024 KiB; is this the right file?",
            ),
        ] {
            std::fs::write(&path, bytes).expect("written");
            let error = load(&path);
            assert!(error.starts_with(want), "{error}");
        }
    }
}
