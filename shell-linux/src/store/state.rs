//! What the agent remembers across restarts within one boot.
//!
//! One file on a tmpfs: a journal's header with the boot id, and the agent. It is replaced as a
//! whole, so a crash leaves the old one or the new one.

use std::io;
use std::path::{Path, PathBuf};

use fettle_core::bounds::FRAME_MAX;
use fettle_core::journal::{self, Header};
use fettle_core::node::agent::Agent;
use fettle_core::node::publisher::Publisher;

use crate::store;

/// What a state holds; a publisher if it was of an agent with a cluster.
pub type Loaded = (Box<Agent>, Option<Box<Publisher>>);

/// The file that holds the state.
#[derive(Debug)]
pub struct StateFile {
    path: PathBuf,
    boot_id: String,
    buffer: Vec<u8>,
}

/// Why a state is not used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The bytes are not a state of this version.
    #[error(
        "{path} does not hold a state that this version wrote; it is ignored, and what the \
             kernel log still holds is told again"
    )]
    Content {
        /// The file.
        path: PathBuf,
    },
    /// The file is of another boot.
    #[error("{path} is of another boot; it is ignored")]
    OtherBoot {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be read.
    #[error("cannot read the state in {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        #[source]
        source: io::Error,
    },
    /// The state cannot be framed.
    #[error("cannot frame the state: {error}")]
    TooLong {
        /// What the core says.
        error: journal::FrameError,
    },
    /// The file cannot be written.
    #[error("cannot write the state to {path}; after a restart the agent would repeat itself")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        #[source]
        source: io::Error,
    },
}

impl StateFile {
    /// Names the state file in `directory`, for the boot `boot_id`.
    #[must_use]
    pub fn new(directory: &Path, boot_id: String) -> Self {
        Self { path: directory.join("state"), boot_id, buffer: Vec::new() }
    }

    /// Reads the state, if this boot left one.
    ///
    /// # Errors
    ///
    /// Says why the file is there but cannot be used.
    pub fn load(&self) -> Result<Option<Loaded>, StateError> {
        let bytes = match store::read(&self.path, STATE_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(StateError::Read { path: self.path.clone(), source }),
        };
        let content = || StateError::Content { path: self.path.clone() };
        let mut frames = bytes.split(|byte| *byte == 0).map(<[u8]>::to_vec);
        let mut header = frames.next().ok_or_else(content)?;
        let header = journal::read_header(&mut header).map_err(|_| content())?;
        // A boot without an id cannot be told from another.
        if self.boot_id.is_empty() || header.boot_id.as_str() != self.boot_id {
            return Err(StateError::OtherBoot { path: self.path.clone() });
        }
        let mut agent = frames.next().ok_or_else(content)?;
        let agent = journal::read_agent(&mut agent).map(Box::new).map_err(|_| content())?;
        let publisher = match frames.next().filter(|frame| !frame.is_empty()) {
            None => None,
            Some(mut frame) => {
                Some(journal::read_publisher(&mut frame).map(Box::new).map_err(|_| content())?)
            }
        };
        Ok(Some((agent, publisher)))
    }

    /// Replaces the state.
    ///
    /// # Errors
    ///
    /// Says what cannot be written; the old state is still there then.
    pub fn save(&mut self, agent: &Agent, publisher: Option<&Publisher>) -> Result<(), StateError> {
        let mut bytes = Vec::new();
        self.buffer.resize(FRAME_MAX, 0);
        let too_long = |error| StateError::TooLong { error };
        let header = Header::new(self.boot_id.as_bytes());
        let frame = journal::write_header(&header, &mut self.buffer).map_err(too_long)?;
        bytes.extend_from_slice(frame);
        let frame = journal::write_agent(agent, &mut self.buffer).map_err(too_long)?;
        bytes.extend_from_slice(frame);
        if let Some(publisher) = publisher {
            let frame = journal::write_publisher(publisher, &mut self.buffer).map_err(too_long)?;
            bytes.extend_from_slice(frame);
        }
        self.buffer = Vec::new();
        store::replace(&self.path, &bytes)
            .map_err(|source| StateError::Write { path: self.path.clone(), source })
    }
}

/// A header, an agent and a publisher.
const STATE_BYTES_MAX: usize = 3 * FRAME_MAX;

#[cfg(test)]
mod tests {
    use std::fs;

    use fettle_core::node::agent::{Input, Settings};
    use fettle_core::time::Instant;

    use super::*;

    #[test]
    fn what_was_saved_is_loaded_in_the_same_boot_only() {
        let directory = tempfile::tempdir().unwrap();
        let mut file = StateFile::new(directory.path(), "b1".to_owned());
        assert!(file.load().unwrap().is_none());
        let mut agent = Agent::new(Settings::default());
        let record = Input::Record(b"3,7,1,-;EXT4-fs error (device sda1): x");
        let _ = agent.step(Instant::from_millis(1), record);
        file.save(&agent, None).unwrap();
        assert_eq!(file.load().unwrap(), Some((Box::new(agent.clone()), None)));
        let publisher = Publisher::new(7);
        file.save(&agent, Some(&publisher)).unwrap();
        assert_eq!(file.load().unwrap(), Some((Box::new(agent), Some(Box::new(publisher)))));
        let other = StateFile::new(directory.path(), "b2".to_owned());
        assert!(matches!(other.load(), Err(StateError::OtherBoot { .. })));
    }

    #[test]
    fn links_and_pipes_that_someone_planted_are_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let victim = directory.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, directory.path().join("state.new")).unwrap();
        let mut file = StateFile::new(directory.path(), "b1".to_owned());
        file.save(&Agent::new(Settings::default()), None).unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
        assert!(file.load().unwrap().is_some());

        let path = directory.path().join("state");
        fs::remove_file(&path).unwrap();
        let kind = rustix::fs::FileType::Fifo;
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, 0).unwrap();
        assert!(matches!(file.load(), Err(StateError::Read { .. })));
    }

    #[test]
    fn garbage_and_halves_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let mut file = StateFile::new(directory.path(), "b1".to_owned());
        file.save(&Agent::new(Settings::default()), None).unwrap();
        let whole = fs::read(directory.path().join("state")).unwrap();
        for cut in 0..whole.len() - 1 {
            fs::write(directory.path().join("state"), &whole[..cut]).unwrap();
            assert!(matches!(file.load(), Err(StateError::Content { .. })), "{cut}");
        }
        fs::write(directory.path().join("state"), [7; 5000]).unwrap();
        assert!(matches!(file.load(), Err(StateError::Content { .. })));
    }
}
