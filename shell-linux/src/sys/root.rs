//! Files below a root folder, which no link leads out of.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use fettle_core::time::Timestamp;
use rustix::fs::{
    CWD, Dir, FileType, Mode, OFlags, ResolveFlags, fstat, open, openat2, readlinkat,
};

/// The root folder of the node: `/`, or where a container mounts it.
///
/// Paths are those of the node, from `/` on. Links are followed as the node would follow them, so
/// that an absolute link stays below the root (`RESOLVE_IN_ROOT` in `openat2(2)`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    folder: PathBuf,
}

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File {
        /// Its length.
        bytes: u64,
        /// When it was last written.
        modified: Timestamp,
    },
    /// A folder.
    Folder,
    /// A device, a pipe or a socket.
    Other,
}

/// The names in a folder.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// They, in order.
    pub kept: Vec<OsString>,
    /// How many more there are.
    pub omitted: u64,
}

impl Root {
    /// Takes `folder` for the root.
    #[must_use]
    pub const fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Returns whether this is the root that programs run in.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.folder == Path::new("/")
    }

    /// Reads a regular file of at most `bytes_max` bytes.
    ///
    /// Opens nothing but regular files: to open a device can start it.
    ///
    /// # Errors
    ///
    /// Returns what the operating system says, [`io::ErrorKind::FileTooLarge`] for a longer file,
    /// and [`io::ErrorKind::IsADirectory`] or [`io::ErrorKind::InvalidInput`] for what is no file.
    pub fn read(&self, path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
        match self.kind(path)? {
            Kind::File { bytes, .. } if bytes > bytes_max => {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            Kind::File { .. } => {}
            Kind::Folder => return Err(io::ErrorKind::IsADirectory.into()),
            Kind::Other => return Err(io::ErrorKind::InvalidInput.into()),
        }
        // Should a pipe have taken its place meanwhile, this does not wait.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = File::from(self.open(path, flags)?);
        let mut bytes = Vec::new();
        file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
        if u64::try_from(bytes.len()).is_ok_and(|read| read > bytes_max) {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(bytes)
    }

    /// Returns what stands at `path`, at the end of all links.
    ///
    /// # Errors
    ///
    /// Returns what the operating system says.
    pub fn kind(&self, path: &Path) -> io::Result<Kind> {
        let stat = fstat(self.open(path, OFlags::PATH)?)?;
        Ok(match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Kind::File {
                bytes: u64::try_from(stat.st_size).unwrap_or(u64::MAX),
                modified: Timestamp::from_unix_secs(stat.st_mtime),
            },
            FileType::Directory => Kind::Folder,
            FileType::BlockDevice
            | FileType::CharacterDevice
            | FileType::Fifo
            | FileType::Socket
            | FileType::Symlink
            | FileType::Unknown => Kind::Other,
        })
    }

    /// Returns `path` as the node would without any link in it.
    ///
    /// # Errors
    ///
    /// Returns what the operating system says, and [`io::ErrorKind::InvalidInput`] for what the
    /// kernel can give no path below the root.
    pub fn canonicalize(&self, path: &Path) -> io::Result<PathBuf> {
        if self.is_own() {
            return Path::new("/").join(path).canonicalize();
        }
        let (root, end) = (self.open_folder()?, self.open(path, OFlags::PATH)?);
        let (root, end) = (path_of(&root)?, path_of(&end)?);
        let below = end.strip_prefix(root).map_err(|_| io::ErrorKind::InvalidInput)?;
        Ok(Path::new("/").join(below))
    }

    /// Returns where the link at `path` leads; `None` if it is no link.
    #[must_use]
    pub fn link(&self, path: &Path) -> Option<PathBuf> {
        let folder = self.open(path.parent()?, OFlags::PATH | OFlags::DIRECTORY).ok()?;
        let target = readlinkat(folder, path.file_name()?, Vec::new()).ok()?;
        Some(PathBuf::from(OsString::from_vec(target.into_bytes())))
    }

    /// Returns the first `names_max` names in `folder`, in order, and how many more there are.
    ///
    /// # Errors
    ///
    /// Returns what the operating system says.
    pub fn names(&self, folder: &Path, names_max: usize) -> io::Result<Names> {
        let entries = Dir::new(self.open(folder, OFlags::RDONLY | OFlags::DIRECTORY)?)?;
        let mut names = Names::default();
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            if names.kept.len() < names_max {
                names.kept.push(OsStr::from_bytes(name).to_owned());
            } else {
                names.omitted = names.omitted.saturating_add(1);
            }
        }
        names.kept.sort();
        Ok(names)
    }

    fn open(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::CLOEXEC;
        if self.is_own() {
            // Nothing leads out of everything; and kernels before 5.6 have no `openat2`.
            let path = Path::new("/").join(path);
            return Ok(rustix::fs::openat(CWD, path, flags, Mode::empty())?);
        }
        let root = self.open_folder()?;
        let mut attempts = 0;
        loop {
            attempts += 1;
            match openat2(&root, path, flags, Mode::empty(), ResolveFlags::IN_ROOT) {
                // Something was renamed while a `..` was being followed.
                Err(rustix::io::Errno::AGAIN) if attempts < ATTEMPTS_MAX => {}
                result => return Ok(result?),
            }
        }
    }

    /// Opens the root itself. That it is not there does not mean that all below it is absent.
    fn open_folder(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        open(&self.folder, flags, Mode::empty()).map_err(|problem| {
            let problem = io::Error::from(problem);
            io::Error::other(format!("the root {}: {problem}", self.folder.display()))
        })
    }
}

/// Returns where in the agent's own root the kernel has opened a file (`proc_pid_fd(5)`).
fn path_of(file: &OwnedFd) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Returns whether an error says that there is nothing at a path.
#[must_use]
pub fn is_absent(problem: &io::Error) -> bool {
    matches!(problem.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Renames are short: who loses against so many of them in a row loses against an attack.
const ATTEMPTS_MAX: u32 = 16;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_stays_below_the_root() {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "outside").unwrap();
        fs::create_dir_all(folder.path().join("etc/pki")).unwrap();
        fs::write(folder.path().join("etc/a"), "inside").unwrap();
        let root = Root::new(folder.path().to_owned());
        let at = |name: &str| folder.path().join("etc/pki").join(name);
        symlink("/etc/a", at("absolute")).unwrap();
        symlink("../../../../../../etc/a", at("climbing")).unwrap();
        symlink(outside.path().join("secret"), at("leaving")).unwrap();
        symlink(outside.path(), folder.path().join("out")).unwrap();
        symlink("loop", at("loop")).unwrap();
        for (path, want) in [
            ("/etc/pki/absolute", Some("inside")),
            ("/etc/pki/climbing", Some("inside")),
            ("/etc/pki/leaving", None),
            ("/out/secret", None),
            ("/../../etc/a", Some("inside")),
            ("/etc/pki/loop", None),
        ] {
            let read = root.read(Path::new(path), 100).ok();
            assert_eq!(read.as_deref(), want.map(str::as_bytes), "{path}");
        }
        let real = |path| root.canonicalize(Path::new(path)).ok();
        assert_eq!(real("/etc/pki/absolute"), Some("/etc/a".into()));
        assert_eq!(real("/etc/pki/climbing"), Some("/etc/a".into()));
        assert_eq!(real("/etc/pki/leaving"), None);
        assert_eq!(real("/.."), Some("/".into()));
        assert_eq!(root.link(Path::new("/etc/pki/absolute")), Some("/etc/a".into()));
        assert_eq!(root.link(Path::new("/etc/a")), None);
    }

    #[test]
    fn only_regular_files_within_the_bound_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path().to_owned());
        fs::write(folder.path().join("file"), "four").unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR, 0).unwrap();
        for (path, bytes_max, want) in [
            ("/file", 4, Ok(4)),
            ("/file", 3, Err(io::ErrorKind::FileTooLarge)),
            ("/", 4, Err(io::ErrorKind::IsADirectory)),
            ("/pipe", 4, Err(io::ErrorKind::InvalidInput)),
            ("/absent", 4, Err(io::ErrorKind::NotFound)),
        ] {
            let read = root.read(Path::new(path), bytes_max);
            assert_eq!(read.map(|bytes| bytes.len()).map_err(|e| e.kind()), want, "{path}");
        }
    }

    #[test]
    fn a_root_that_is_not_there_is_not_an_empty_one() {
        let root = Root::new(PathBuf::from("/nonexistent/root"));
        let problem = root.kind(Path::new("/etc")).unwrap_err();
        assert!(!is_absent(&problem) && problem.to_string().contains("/nonexistent/root"));
    }

    #[test]
    fn the_node_s_own_root_is_read_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "own").unwrap();
        symlink("file", folder.path().join("link")).unwrap();
        let root = Root::new(PathBuf::from("/"));
        assert_eq!(root.read(&folder.path().join("link"), 9).unwrap(), b"own");
        // What the kernel makes up says that it is empty.
        assert!(!root.read(Path::new("/proc/self/stat"), 4096).unwrap().is_empty());
    }

    #[test]
    fn a_folder_without_end_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b", "a", "c"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let root = Root::new(folder.path().to_owned());
        let names = |max| root.names(Path::new("/"), max).unwrap();
        assert_eq!(names(3), Names { kept: vec!["a".into(), "b".into(), "c".into()], omitted: 0 });
        assert_eq!((names(1).kept.len(), names(1).omitted), (1, 2));
        assert!(root.names(Path::new("/a"), 1).is_err());
    }
}
