//! Small files and folders, read whole but within a bound.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use fettle_core::text::Text;
use fettle_core::wire::scan::decimal;
use rustix::fs::{Mode, OFlags, open};

/// Reads a file of at most `bytes_max` bytes; `None` if it does not exist.
///
/// Does not wait: a pipe that stands where a file should reads as empty.
///
/// # Errors
///
/// Returns what the operating system says, and [`io::ErrorKind::FileTooLarge`] for a longer file.
pub fn read(path: &Path, bytes_max: usize) -> io::Result<Option<Vec<u8>>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let Some(file) = present(open(path, flags, Mode::empty()).map_err(io::Error::from))? else {
        return Ok(None);
    };
    let mut bytes = Vec::new();
    let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
    File::from(file).take(limit).read_to_end(&mut bytes)?;
    if bytes.len() > bytes_max {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(Some(bytes))
}

/// Reads a file of one line as text that is safe to show; `None` where there is none.
#[must_use]
pub fn line(path: &Path) -> Option<String> {
    let bytes = read(path, LINE_BYTES_MAX).ok()??;
    let text = shown(bytes.trim_ascii());
    (!text.is_empty()).then_some(text)
}

/// Reads a file that holds one number; `None` where it holds none.
#[must_use]
pub fn number(path: &Path) -> Option<u64> {
    decimal(read(path, LINE_BYTES_MAX).ok()??.trim_ascii())
}

/// Returns the names in `folder` in order, and how many did not fit; `None` if it does not exist.
///
/// # Errors
///
/// Returns what the operating system says.
pub fn names(folder: &Path) -> io::Result<Option<(Vec<OsString>, u64)>> {
    let Some(entries) = present(fs::read_dir(folder))? else {
        return Ok(None);
    };
    let (mut names, mut omitted) = (Vec::new(), 0);
    for entry in entries {
        let name = entry?.file_name();
        if names.len() < NAMES_MAX {
            names.push(name);
        } else {
            omitted += 1;
        }
    }
    names.sort();
    Ok(Some((names, omitted)))
}

/// Returns each `N` for which `folder` has an entry `PREFIX` `N`, in order.
///
/// Other entries are none of the kernel's, whatever they are called.
///
/// # Errors
///
/// Returns what the operating system says, and [`io::ErrorKind::FileTooLarge`] where [`names`]
/// would omit some: a device that is left out would look like one that is gone.
pub fn numbered(folder: &Path, prefix: &str) -> io::Result<Option<Vec<u32>>> {
    let Some((names, omitted)) = names(folder)? else {
        return Ok(None);
    };
    if omitted > 0 {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let number = |name: &OsString| {
        let digits = name.as_bytes().strip_prefix(prefix.as_bytes())?;
        let number = u32::try_from(decimal(digits)?).ok()?;
        (number.to_string().as_bytes() == digits).then_some(number)
    };
    let mut numbers: Vec<u32> = names.iter().filter_map(number).collect();
    numbers.sort_unstable();
    Ok(Some(numbers))
}

/// Returns `bytes` as text that is safe to show.
#[must_use]
pub fn shown(bytes: &[u8]) -> String {
    Text::<TEXT_MAX>::from_bytes(bytes).as_str().to_owned()
}

fn present<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// A file of sysfs shows at most one page.
const LINE_BYTES_MAX: usize = 4096;

/// The largest folder that is read so has an entry for each drive of a node, or for each record
/// of its crashes: eight times the most drives that a report has room for.
const NAMES_MAX: usize = 4096;

/// Names of devices have at most 128 bytes, those of files 255.
const TEXT_MAX: usize = 256;

/// Returns where `path`, which is the node's, stands below `root`.
#[must_use]
pub fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_whole_or_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        assert!(read(&path, 4).unwrap().is_none());
        fs::write(&path, " 12\n").unwrap();
        assert_eq!(read(&path, 4).unwrap().unwrap(), b" 12\n");
        assert_eq!(read(&path, 3).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!((number(&path), line(&path).as_deref()), (Some(12), Some("12")));
        assert!(read(folder.path(), 4).is_err());
    }

    #[test]
    fn a_pipe_in_the_place_of_a_file_does_not_hang() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &path, kind, Mode::RUSR, 0).unwrap();
        assert_eq!((line(&path), number(&path)), (None, None));
    }

    #[test]
    fn what_is_no_number_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("count");
        for text in ["", "-1\n", "1 2\n", "0x1\n", "18446744073709551616\n"] {
            fs::write(&path, text).unwrap();
            assert_eq!(number(&path), None, "{text}");
        }
    }

    #[test]
    fn only_the_names_that_a_kernel_gives_are_numbered() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["nvme10", "nvme2", "nvme02", "nvme", "nvme-1", "nvme2\n", "xnvme3", "nvme9x"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(numbered(folder.path(), "nvme").unwrap().unwrap(), [2, 10]);
        assert!(numbered(&folder.path().join("absent"), "nvme").unwrap().is_none());
    }

    #[test]
    fn a_folder_without_end_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..NAMES_MAX + 3 {
            fs::write(folder.path().join(number.to_string()), "").unwrap();
        }
        let (names, omitted) = names(folder.path()).unwrap().unwrap();
        assert_eq!((names.len(), omitted), (NAMES_MAX, 3));
        assert_eq!(numbered(folder.path(), "").unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }
}
