//! Consistent Overhead Byte Stuffing: bytes without a zero, so that a zero can end a frame.
//!
//! Cheshire and Baker, "Consistent Overhead Byte Stuffing". A frame is a row of blocks; a block is
//! one code and the `code - 1` bytes after it, none of them zero. Between two blocks stands a
//! zero, unless the first has the code 255. Written here because the functions of the crate
//! `cobs`, which postcard uses, leave a panic in the no-panic link.

use postcard::ser_flavors::Flavor;
use postcard::{Error, Result};

/// Frames what postcard writes, as it writes it.
pub(super) struct Framed<'b> {
    buffer: &'b mut [u8],
    /// Where the open block's code will stand.
    code_at: usize,
    code: u8,
    end: usize,
}

impl<'b> Framed<'b> {
    /// Begins a frame at the front of `buffer`.
    pub(super) fn new(buffer: &'b mut [u8]) -> Self {
        Self { buffer, code_at: 0, code: 1, end: 1 }
    }

    fn put(&mut self, at: usize, byte: u8) -> Result<()> {
        *self.buffer.get_mut(at).ok_or(Error::SerializeBufferFull)? = byte;
        Ok(())
    }

    fn close_block(&mut self) -> Result<()> {
        self.put(self.code_at, self.code)?;
        self.code_at = self.end;
        self.code = 1;
        self.end = self.end.saturating_add(1);
        Ok(())
    }
}

impl<'b> Flavor for Framed<'b> {
    type Output = &'b [u8];

    fn try_push(&mut self, byte: u8) -> Result<()> {
        if byte == 0 {
            return self.close_block();
        }
        self.put(self.end, byte)?;
        self.end = self.end.saturating_add(1);
        self.code = self.code.saturating_add(1);
        if self.code == FULL { self.close_block() } else { Ok(()) }
    }

    fn finalize(mut self) -> Result<Self::Output> {
        self.close_block()?;
        self.put(self.code_at, 0)?;
        let buffer: &'b [u8] = self.buffer;
        buffer.get(..self.end).ok_or(Error::SerializeBufferFull)
    }
}

/// Undoes the framing of `frame` where it stands; a zero and what follows it are left out.
///
/// `None` if the last block is cut.
pub(super) fn unframe(frame: &mut [u8]) -> Option<&[u8]> {
    let end = frame.iter().position(|byte| *byte == 0).unwrap_or(frame.len());
    let frame = frame.get_mut(..end)?;
    let (mut from, mut to) = (0_usize, 0_usize);
    while let Some(code) = frame.get(from).copied() {
        from = from.checked_add(1)?;
        for _ in 1..code {
            *frame.get_mut(to)? = *frame.get(from)?;
            (from, to) = (from.checked_add(1)?, to.checked_add(1)?);
        }
        if code != FULL && from < end {
            *frame.get_mut(to)? = 0;
            to = to.checked_add(1)?;
        }
    }
    frame.get(..to)
}

/// The code of a block that is as long as a block can be, and has no zero after it.
const FULL: u8 = 255;

#[cfg(test)]
mod tests {
    use postcard::ser_flavors::{Cobs, Slice};
    use proptest::prelude::*;
    use std::vec;
    use std::vec::Vec;

    use super::*;

    #[test]
    fn blocks_end_at_zeros_and_when_full() {
        // bytes, frame
        for (bytes, want) in [
            (&[][..], &[1, 0][..]),
            (&[0], &[1, 1, 0]),
            (&[7, 0, 8], &[2, 7, 2, 8, 0]),
            (&[7, 0], &[2, 7, 1, 0]),
        ] {
            assert_eq!(frame(bytes), want, "{bytes:?}");
        }
        let full = frame(&[7; 254]);
        assert_eq!((full.first(), full.ends_with(&[7, 1, 0])), (Some(&255), true));
    }

    #[test]
    fn a_buffer_that_is_too_small_is_an_error() {
        let len = frame(&[7, 0, 8]).len();
        for size in 0..len {
            assert!(write(&[7, 0, 8], Framed::new(&mut vec![0; size])).is_err(), "{size}");
        }
    }

    #[test]
    fn a_cut_block_is_none() {
        for frame in [&[2][..], &[255, 1], &[1, 3, 1], &[3, 1, 0, 1]] {
            assert_eq!(unframe(&mut frame.to_vec()), None, "{frame:?}");
        }
    }

    proptest! {
        #[test]
        fn frames_are_those_of_the_crate(bytes in near_full_blocks()) {
            let mut want = vec![0; 2 * bytes.len() + 8];
            let want = write(&bytes, Cobs::try_new(Slice::new(&mut want)).unwrap()).unwrap();
            let mut framed = frame(&bytes);
            prop_assert_eq!(&framed, want);
            prop_assert!(!framed[..framed.len() - 1].contains(&0));
            prop_assert_eq!(unframe(&mut framed), Some(&bytes[..]));
        }

        #[test]
        fn reads_any_bytes_as_the_crate_does(bytes in near_frames()) {
            let (mut ours, mut theirs) = (bytes.clone(), bytes.clone());
            // The crate takes no bytes at all for an error, and drops a zero at the front.
            let want = postcard::take_from_bytes_cobs::<()>(&mut theirs).is_ok();
            prop_assert_eq!(unframe(&mut ours).is_some(), want || bytes.is_empty());
        }
    }

    /// Bytes with few zeros, so that full blocks are common.
    fn near_full_blocks() -> impl Strategy<Value = Vec<u8>> {
        let run = (prop_oneof![0..4_usize, 252..257_usize], any::<bool>());
        proptest::collection::vec(run, 0..4).prop_map(|runs| {
            let run = |(len, zero): &(usize, bool)| {
                let mut run = vec![7; *len];
                run.extend(zero.then_some(0));
                run
            };
            runs.iter().flat_map(run).collect()
        })
    }

    /// Small codes and bytes, so that whole frames are common.
    fn near_frames() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(prop_oneof![0..4_u8, Just(255)], 0..12)
    }

    fn frame(bytes: &[u8]) -> Vec<u8> {
        write(bytes, Framed::new(&mut vec![0; 2 * bytes.len() + 8])).unwrap().to_vec()
    }

    fn write<F: Flavor>(bytes: &[u8], mut flavor: F) -> Result<F::Output> {
        flavor.try_extend(bytes)?;
        flavor.finalize()
    }
}
