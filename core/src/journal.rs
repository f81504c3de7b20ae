//! Frames for inputs and state, so that what an agent did can be done again.
//!
//! A journal is a [`Header`], the [`Agent`] as it was, and then one [`Step`] for each input, each
//! in a frame of its own: postcard, made free of zeros by COBS, ended by a zero. A journal that
//! was cut anywhere is good up to its last whole frame.

mod cobs;

use core::fmt;

use serde::{Deserialize, Serialize};

use self::cobs::Framed;
use crate::bounds::BOOT_ID_MAX;
use crate::node::agent::{Agent, Input};
use crate::node::publisher::Publisher;
use crate::text::Text;
use crate::time::Instant;

/// The first frame of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// What the frames mean; see [`FORMAT`].
    pub format: u32,
    /// The boot that the journal is of: `/proc/sys/kernel/random/boot_id`.
    pub boot_id: Text<BOOT_ID_MAX>,
}

/// One input, and when it came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step<'a> {
    /// The clocks when it came.
    pub stamp: Stamp,
    /// What came.
    #[serde(borrow)]
    pub input: Input<'a>,
}

/// One reading of both clocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Time since boot, suspend included.
    pub at: Instant,
    /// Time since boot without suspend, in microseconds: the clock of the kernel log.
    pub log_us: u64,
    /// Wall clock, in milliseconds since the Unix epoch.
    pub wall_ms: i64,
}

/// Why something cannot be framed or read from a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameError {
    /// The frame is not what this version writes.
    Content,
    /// The buffer is too small for the frame.
    TooLong,
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Content => "the frame does not hold what this version writes",
            Self::TooLong => "the frame does not fit into the buffer",
        })
    }
}

impl Header {
    /// Returns the header of a journal of this version.
    #[must_use]
    pub fn new(boot_id: &[u8]) -> Self {
        Self { format: FORMAT, boot_id: Text::from_bytes(boot_id) }
    }
}

/// Writes `header` as one frame and returns its bytes.
///
/// # Errors
///
/// [`FrameError::TooLong`] if `buffer` is too small.
pub fn write_header<'b>(header: &Header, buffer: &'b mut [u8]) -> Result<&'b [u8], FrameError> {
    frame(header, buffer)
}

/// Writes `agent` as one frame and returns its bytes.
///
/// # Errors
///
/// [`FrameError::TooLong`] if `buffer` is too small; [`FRAME_MAX`](crate::bounds::FRAME_MAX) fits.
pub fn write_agent<'b>(agent: &Agent, buffer: &'b mut [u8]) -> Result<&'b [u8], FrameError> {
    frame(agent, buffer)
}

/// Writes `publisher` as one frame and returns its bytes.
///
/// # Errors
///
/// [`FrameError::TooLong`] if `buffer` is too small; [`FRAME_MAX`](crate::bounds::FRAME_MAX) fits.
pub fn write_publisher<'b>(
    publisher: &Publisher,
    buffer: &'b mut [u8],
) -> Result<&'b [u8], FrameError> {
    frame(publisher, buffer)
}

/// Writes `step` as one frame and returns its bytes.
///
/// # Errors
///
/// [`FrameError::TooLong`] if `buffer` is too small.
pub fn write_step<'b>(step: &Step<'_>, buffer: &'b mut [u8]) -> Result<&'b [u8], FrameError> {
    frame(step, buffer)
}

/// Reads a header from the bytes of one frame, without its zero; they are used up.
///
/// # Errors
///
/// [`FrameError::Content`] if it is not a header, or one of another format.
pub fn read_header(frame: &mut [u8]) -> Result<Header, FrameError> {
    let header: Header = unframe(frame)?;
    if header.format == FORMAT { Ok(header) } else { Err(FrameError::Content) }
}

/// Reads an agent from the bytes of one frame, without its zero; they are used up.
///
/// # Errors
///
/// [`FrameError::Content`] if it is not an agent.
pub fn read_agent(frame: &mut [u8]) -> Result<Agent, FrameError> {
    unframe(frame)
}

/// Reads a publisher from the bytes of one frame, without its zero; they are used up.
///
/// # Errors
///
/// [`FrameError::Content`] if it is not a publisher.
pub fn read_publisher(frame: &mut [u8]) -> Result<Publisher, FrameError> {
    unframe(frame)
}

/// Reads a step from the bytes of one frame, without its zero; they are used up.
///
/// # Errors
///
/// [`FrameError::Content`] if it is not a step.
pub fn read_step(frame: &mut [u8]) -> Result<Step<'_>, FrameError> {
    unframe(frame)
}

fn frame<'b>(value: &impl Serialize, buffer: &'b mut [u8]) -> Result<&'b [u8], FrameError> {
    let framed = postcard::serialize_with_flavor(value, Framed::new(buffer));
    framed.map_err(|_| FrameError::TooLong)
}

fn unframe<'f, T: Deserialize<'f>>(frame: &'f mut [u8]) -> Result<T, FrameError> {
    let bytes = cobs::unframe(frame).ok_or(FrameError::Content)?;
    postcard::from_bytes(bytes).map_err(|_| FrameError::Content)
}

/// What the frames mean; raised whenever a type in them changes.
pub const FORMAT: u32 = 3;

#[cfg(test)]
mod tests {
    use std::vec;
    use std::vec::Vec;

    use super::*;
    use crate::bounds::{FRAME_MAX, RECORD_MAX};
    use crate::node::agent::Settings;

    #[test]
    fn what_is_written_is_read() {
        let mut buffer = vec![0; FRAME_MAX];
        let header = Header::new(b"0f2c9a1e-0000-4000-8000-000000000000");
        let mut frame = unended(write_header(&header, &mut buffer).unwrap());
        assert_eq!(read_header(&mut frame), Ok(header));

        let mut agent = Agent::new(Settings::default());
        let input = Input::Record(b"3,1,2,-;INFO: task kubelet:1 blocked for more than 9 seconds.");
        let stamp = Stamp { at: Instant::from_millis(7), log_us: 6, wall_ms: -5 };
        let step = Step { stamp, input };
        let mut frame = unended(write_step(&step, &mut buffer).unwrap());
        assert_eq!(read_step(&mut frame).as_ref(), Ok(&step));

        let _ = agent.step(stamp.at, step.input);
        let mut frame = unended(write_agent(&agent, &mut buffer).unwrap());
        assert_eq!(read_agent(&mut frame).as_ref(), Ok(&agent));
    }

    #[test]
    fn another_format_is_refused() {
        let mut buffer = vec![0; 256];
        let header = Header { format: FORMAT + 1, ..Header::new(b"") };
        let mut frame = unended(write_header(&header, &mut buffer).unwrap());
        assert_eq!(read_header(&mut frame), Err(FrameError::Content));
    }

    #[test]
    fn the_longest_record_fits_and_a_small_buffer_is_an_error() {
        let record = [0xff; RECORD_MAX];
        let step = Step { stamp: Stamp::default(), input: Input::Record(&record) };
        let mut buffer = vec![0; FRAME_MAX];
        assert!(write_step(&step, &mut buffer).is_ok());
        assert_eq!(write_step(&step, &mut buffer[..RECORD_MAX]), Err(FrameError::TooLong));
    }

    fn unended(frame: &[u8]) -> Vec<u8> {
        let (end, frame) = frame.split_last().unwrap();
        assert_eq!(*end, 0);
        assert!(!frame.contains(&0));
        frame.to_vec()
    }
}
