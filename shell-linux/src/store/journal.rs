//! A bounded file of everything that went into the core, so that it can be done again.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};

use fettle_core::bounds::FRAME_MAX;
use fettle_core::journal::{self, FrameError, Header, Step};
use fettle_core::node::agent::Agent;

use crate::store;

/// The journal that is being written.
///
/// At its limit the file becomes `FILE.1`, in place of an older one, and a new file begins with
/// the agent as it is: each of the two can be replayed alone.
#[derive(Debug)]
pub struct JournalWriter {
    path: PathBuf,
    boot_id: String,
    limit_bytes: u64,
    file: BufWriter<File>,
    written_bytes: u64,
    buffer: Vec<u8>,
}

/// The journal that is being read.
#[derive(Debug)]
pub struct JournalReader {
    path: PathBuf,
    file: BufReader<File>,
    frame: Vec<u8>,
    offset: u64,
}

/// Why a journal cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A frame is not what this version writes.
    #[error(
        "{path}: the frame at byte {offset} is not what this version writes; replay ends there"
    )]
    Content {
        /// The file.
        path: PathBuf,
        /// Where the frame begins.
        offset: u64,
    },
    /// Something does not fit into a frame.
    #[error("cannot write to the journal: {error}")]
    Frame {
        /// What the core says.
        error: FrameError,
    },
    /// The file does not begin as a journal does.
    #[error("{path} is not a journal that this version wrote")]
    NoJournal {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be read.
    #[error("cannot read the journal {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        #[source]
        source: io::Error,
    },
    /// The file cannot be written.
    #[error("cannot write the journal {path}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        #[source]
        source: io::Error,
    },
}

impl JournalWriter {
    /// Begins a journal at `path` with the agent as it is.
    ///
    /// # Errors
    ///
    /// Says what cannot be written.
    pub fn create(
        path: PathBuf,
        limit_bytes: u64,
        boot_id: String,
        agent: &Agent,
    ) -> Result<Self, JournalError> {
        // What an earlier run wrote may be what somebody wants to replay.
        keep_old(&path)?;
        let file = create(&path)?;
        let buffer = vec![0; FRAME_MAX];
        let mut writer = Self { path, boot_id, limit_bytes, file, written_bytes: 0, buffer };
        writer.begin(agent)?;
        Ok(writer)
    }

    /// Appends one step; `before` is the agent before it.
    ///
    /// # Errors
    ///
    /// Says what cannot be written.
    pub fn append(&mut self, step: &Step<'_>, before: &Agent) -> Result<(), JournalError> {
        if self.written_bytes >= self.limit_bytes {
            self.rotate(before)?;
        }
        let frame = journal::write_step(step, &mut self.buffer);
        let frame = frame.map_err(|error| JournalError::Frame { error })?;
        write(&mut self.file, &self.path, frame, &mut self.written_bytes)
    }

    /// Hands what was appended to the operating system.
    ///
    /// # Errors
    ///
    /// Says what cannot be written.
    pub fn flush(&mut self) -> Result<(), JournalError> {
        self.file.flush().map_err(|source| write_error(&self.path, source))
    }

    fn rotate(&mut self, agent: &Agent) -> Result<(), JournalError> {
        self.flush()?;
        keep_old(&self.path)?;
        self.file = create(&self.path)?;
        self.written_bytes = 0;
        self.begin(agent)
    }

    fn begin(&mut self, agent: &Agent) -> Result<(), JournalError> {
        let frame_error = |error| JournalError::Frame { error };
        let header = Header::new(self.boot_id.as_bytes());
        let frame = journal::write_header(&header, &mut self.buffer).map_err(frame_error)?;
        write(&mut self.file, &self.path, frame, &mut self.written_bytes)?;
        let frame = journal::write_agent(agent, &mut self.buffer).map_err(frame_error)?;
        write(&mut self.file, &self.path, frame, &mut self.written_bytes)
    }
}

impl JournalReader {
    /// Opens the journal at `path` and returns it with the agent with which it begins.
    ///
    /// # Errors
    ///
    /// Says why it is not a journal, or cannot be read.
    pub fn open(path: &Path) -> Result<(Self, Box<Agent>), JournalError> {
        let file = File::open(path)
            .map_err(|source| JournalError::Read { path: path.to_owned(), source })?;
        let file = BufReader::new(file);
        let mut reader = Self { path: path.to_owned(), file, frame: Vec::new(), offset: 0 };
        let no_journal = || JournalError::NoJournal { path: path.to_owned() };
        let header = reader.next_frame()?.ok_or_else(no_journal)?;
        journal::read_header(header).map_err(|_| no_journal())?;
        let frame = reader.next_frame()?.ok_or_else(no_journal)?;
        let agent = journal::read_agent(frame).map_err(|_| no_journal())?;
        Ok((reader, Box::new(agent)))
    }

    /// Reads the next step; `None` at the end, or where the journal was cut.
    ///
    /// # Errors
    ///
    /// Says where a frame is not what it should be.
    pub fn next_step(&mut self) -> Result<Option<Step<'_>>, JournalError> {
        let offset = self.offset;
        let path = self.path.clone();
        let Some(frame) = self.next_frame()? else {
            return Ok(None);
        };
        let step = journal::read_step(frame);
        step.map(Some).map_err(|_| JournalError::Content { path, offset })
    }

    /// Reads up to and without the next zero.
    fn next_frame(&mut self) -> Result<Option<&mut [u8]>, JournalError> {
        self.frame.clear();
        let limit = u64::try_from(FRAME_MAX).unwrap_or(u64::MAX);
        let read = (&mut self.file).take(limit).read_until(0, &mut self.frame);
        let read = read.map_err(|source| JournalError::Read { path: self.path.clone(), source })?;
        let offset = self.offset;
        self.offset = offset.saturating_add(u64::try_from(read).unwrap_or(u64::MAX));
        match self.frame.pop() {
            Some(0) => Ok(Some(self.frame.as_mut_slice())),
            Some(_) if read >= FRAME_MAX => {
                Err(JournalError::Content { path: self.path.clone(), offset })
            }
            Some(_) | None => Ok(None),
        }
    }
}

fn create(path: &Path) -> Result<BufWriter<File>, JournalError> {
    store::create(path).map(BufWriter::new).map_err(|source| write_error(path, source))
}

/// Makes `FILE` `FILE.1`, if it is there.
fn keep_old(path: &Path) -> Result<(), JournalError> {
    let mut old = path.to_owned().into_os_string();
    old.push(".1");
    match fs::rename(path, &old) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(write_error(path, source)),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn write(
    file: &mut BufWriter<File>,
    path: &Path,
    frame: &[u8],
    written_bytes: &mut u64,
) -> Result<(), JournalError> {
    file.write_all(frame).map_err(|source| write_error(path, source))?;
    *written_bytes = written_bytes.saturating_add(u64::try_from(frame.len()).unwrap_or(u64::MAX));
    Ok(())
}

fn write_error(path: &Path, source: io::Error) -> JournalError {
    JournalError::Write { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use fettle_core::journal::Stamp;
    use fettle_core::node::agent::{Input, Settings};

    use super::*;

    #[test]
    fn what_was_appended_is_read_up_to_where_it_was_cut() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let whole = written(&path, u64::MAX, 20);
        for cut in 0..whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            match JournalReader::open(&path) {
                Ok((mut reader, _)) => {
                    let mut steps = 0;
                    while reader.next_step().unwrap().is_some() {
                        steps += 1;
                    }
                    assert!(steps < 20, "{cut}");
                }
                Err(error) => assert!(matches!(error, JournalError::NoJournal { .. }), "{cut}"),
            }
        }
    }

    #[test]
    fn a_full_journal_begins_again_and_keeps_one_old_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let _ = written(&path, 2_000, 500);
        for file in [path.clone(), directory.path().join("journal.1")] {
            let length = fs::metadata(&file).unwrap().len();
            assert!(length < 2_000 + 200, "{file:?} has {length} bytes");
            let (mut reader, _) = JournalReader::open(&file).unwrap();
            assert!(reader.next_step().unwrap().is_some());
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_broken_frame_says_where_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let mut whole = written(&path, u64::MAX, 1);
        let end = whole.len();
        whole.extend_from_slice(&[3, 200, 200, 0]);
        fs::write(&path, &whole).unwrap();
        let (mut reader, _) = JournalReader::open(&path).unwrap();
        assert!(reader.next_step().unwrap().is_some());
        let want = u64::try_from(end).unwrap();
        assert!(
            matches!(reader.next_step(), Err(JournalError::Content { offset, .. }) if offset == want)
        );
    }

    fn written(path: &Path, limit_bytes: u64, steps: usize) -> Vec<u8> {
        let agent = Agent::new(Settings::default());
        let boot_id = "boot".to_owned();
        let mut writer =
            JournalWriter::create(path.to_owned(), limit_bytes, boot_id, &agent).unwrap();
        let step = Step { stamp: Stamp::default(), input: Input::Record(b"6,1,2,-;a line") };
        for _ in 0..steps {
            writer.append(&step, &agent).unwrap();
        }
        writer.flush().unwrap();
        fs::read(path).unwrap()
    }
}
