//! Numbers at fixed places of a binary structure.
//!
//! Little-endian, as devices and firmware write them; so are all machines that Fettle runs on, and
//! with them the structures of the kernel.

/// Returns the `N` bytes at `at`.
pub(super) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// Returns the byte at `at`.
pub(super) fn u8_at(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied()
}

/// Returns the 16-bit number at `at`.
pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array_at(bytes, at).map(u16::from_le_bytes)
}

/// Returns the 32-bit number at `at`.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array_at(bytes, at).map(u32::from_le_bytes)
}

/// Returns the 64-bit number at `at`.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    array_at(bytes, at).map(u64::from_le_bytes)
}

/// Returns the 128-bit number at `at`, or the largest of 64 bits where it does not fit.
pub(super) fn u128_at(bytes: &[u8], at: usize) -> Option<u64> {
    let number = array_at(bytes, at).map(u128::from_le_bytes)?;
    Some(u64::try_from(number).unwrap_or(u64::MAX))
}

/// Returns the string at `at`, which a zero byte ends.
pub(super) fn string_at(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let rest = bytes.get(at..)?;
    let length = rest.iter().position(|byte| *byte == 0)?;
    rest.get(..length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_is_there_and_nothing_past_the_end() {
        let bytes = [1, 2, 3, 4, b'a', 0, 7, 8];
        assert_eq!((u8_at(&bytes, 7), u8_at(&bytes, 8)), (Some(8), None));
        assert_eq!((u16_at(&bytes, 0), u16_at(&bytes, 7)), (Some(0x0201), None));
        assert_eq!((u32_at(&bytes, 0), u32_at(&bytes, 5)), (Some(0x0403_0201), None));
        assert_eq!((u64_at(&bytes, 0), u64_at(&bytes, 1)), (Some(0x0807_0061_0403_0201), None));
        assert_eq!((string_at(&bytes, 4), string_at(&bytes, 6)), (Some(&b"a"[..]), None));
        assert_eq!(string_at(&bytes, usize::MAX), None);
    }

    #[test]
    fn numbers_of_sixteen_bytes_saturate() {
        let mut bytes = [0; 16];
        bytes[0] = 5;
        assert_eq!(u128_at(&bytes, 0), Some(5));
        bytes[8] = 1;
        assert_eq!(u128_at(&bytes, 0), Some(u64::MAX));
        assert_eq!(u128_at(&bytes, 1), None);
    }
}
