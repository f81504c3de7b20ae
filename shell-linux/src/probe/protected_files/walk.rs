//! Looks for the files that patterns name, without following a link.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use glob::{MatchOptions, Pattern};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat, statat};
use rustix::io::Errno;

use super::baseline::Facts;
use super::watches::Watches;

/// One pattern of a path, in components.
#[derive(Debug, Clone)]
pub(super) struct Protected {
    text: String,
    whole: Pattern,
    components: Vec<Component>,
}

#[derive(Debug, Clone)]
enum Component {
    /// `**`: any number of folders.
    Deep,
    /// A name without a wildcard.
    Name(String),
    /// A name with some.
    Wild(Pattern),
}

/// A file that a pattern names.
pub(super) struct Found<'a> {
    /// The folder that it is in.
    pub(super) folder: BorrowedFd<'a>,
    /// Its name there.
    pub(super) name: &'a [u8],
    /// Its path.
    pub(super) path: &'a [u8],
    /// What the folder says of it.
    pub(super) facts: Facts,
    /// By what a change shows without reading it.
    pub(super) signature: Signature,
    /// Whether something happened in the folder since the last run.
    pub(super) may_have_changed: bool,
}

/// By what a change of a file's content shows without reading it, unless someone sets clocks back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Signature {
    inode: (u64, u64),
    bytes: i64,
    changed: (i64, u64),
    modified: (i64, u64),
}

/// Whoever is told of what is found.
pub(super) trait Visitor {
    /// Takes note of a file, which more than one pattern may name.
    ///
    /// Returns whether it counts; of a folder that does not, nothing below does.
    fn found(&mut self, found: Found<'_>) -> bool;

    /// Takes note that what is at a path cannot be looked at.
    fn problem(&mut self, path: &[u8], why: String);
}

/// A walk over what one or more patterns name.
pub(super) struct Walk<'a, V> {
    pub(super) watches: &'a mut Watches,
    pub(super) visitor: &'a mut V,
    /// How many more names are looked at.
    pub(super) names_left: usize,
}

impl Protected {
    /// Reads a pattern; or says why it cannot be one.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        let whole = Pattern::new(text).map_err(|problem| problem.msg.to_owned())?;
        let rest = text.strip_prefix('/').ok_or("it does not begin with /")?;
        let components = rest.split('/').filter(|name| !name.is_empty()).map(|name| match name {
            "." | ".." => Err("it holds . or .. as a folder".to_owned()),
            "**" => Ok(Component::Deep),
            name if name.contains(['*', '?', '[']) => {
                Pattern::new(name).map(Component::Wild).map_err(|problem| problem.msg.to_owned())
            }
            name => Ok(Component::Name(name.to_owned())),
        });
        Ok(Self { text: text.to_owned(), whole, components: components.collect::<Result<_, _>>()? })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether the pattern names `path`.
    pub(super) fn names(&self, path: &[u8]) -> bool {
        let options = MatchOptions { require_literal_separator: true, ..MatchOptions::new() };
        self.whole.matches_with(&String::from_utf8_lossy(path), options)
    }
}

impl<V: Visitor> Walk<'_, V> {
    /// Looks for what `pattern` names below `root`.
    pub(super) fn walk(&mut self, root: BorrowedFd<'_>, pattern: &Protected) {
        self.expand(root, &mut Vec::new(), &pattern.components);
    }

    fn expand(&mut self, folder: BorrowedFd<'_>, path: &mut Vec<u8>, components: &[Component]) {
        match components {
            [] => {}
            [Component::Name(name)] => {
                let changed = self.watches.has_changed(folder);
                self.keep(folder, path, name.as_bytes(), changed);
            }
            [Component::Name(name), rest @ ..] => self.enter(folder, path, name.as_bytes(), rest),
            [Component::Wild(wild), rest @ ..] => {
                let changed = rest.is_empty() && self.watches.has_changed(folder);
                for name in self.names(folder, path) {
                    if !wild.matches(&String::from_utf8_lossy(&name)) {
                        continue;
                    }
                    if rest.is_empty() {
                        self.keep(folder, path, &name, changed);
                    } else {
                        self.enter(folder, path, &name, rest);
                    }
                }
            }
            [Component::Deep] => self.keep_all(folder, path),
            [Component::Deep, rest @ ..] => {
                self.expand(folder, path, rest);
                for name in self.names(folder, path) {
                    if is_folder(folder, &name) {
                        self.enter(folder, path, &name, components);
                    }
                }
            }
        }
    }

    /// Goes on in a folder.
    fn enter(
        &mut self,
        folder: BorrowedFd<'_>,
        path: &mut Vec<u8>,
        name: &[u8],
        rest: &[Component],
    ) {
        let length = path.len();
        push(path, name);
        match open_folder(folder, name) {
            Ok(below) => self.expand(below.as_fd(), path, rest),
            Err(Errno::NOENT) => {}
            Err(Errno::NOTDIR | Errno::LOOP) if !is_link(folder, name) => {}
            Err(Errno::NOTDIR | Errno::LOOP) => {
                let why = "it is a link, which is not followed; name where it leads instead";
                self.visitor.problem(path, why.to_owned());
            }
            Err(problem) => self.visitor.problem(path, cannot("open", problem)),
        }
        path.truncate(length);
    }

    /// Keeps everything below a folder.
    fn keep_all(&mut self, folder: BorrowedFd<'_>, path: &mut Vec<u8>) {
        let changed = self.watches.has_changed(folder);
        for name in self.names(folder, path) {
            if !self.keep(folder, path, &name, changed) {
                continue;
            }
            if path.iter().filter(|byte| **byte == b'/').count() >= DEPTH_MAX {
                self.visitor
                    .problem(path, format!("folders are nested more than {DEPTH_MAX} deep"));
                continue;
            }
            self.enter(folder, path, &name, &[Component::Deep]);
        }
    }

    /// Keeps one file; returns whether it is a folder whose content counts too.
    fn keep(
        &mut self,
        folder: BorrowedFd<'_>,
        path: &mut Vec<u8>,
        name: &[u8],
        may_have_changed: bool,
    ) -> bool {
        let length = path.len();
        push(path, name);
        let kept = match facts(folder, name) {
            Ok((facts, signature)) => {
                let is_folder = facts.is_folder();
                let found = Found { folder, name, path, facts, signature, may_have_changed };
                self.visitor.found(found) && is_folder
            }
            Err(Errno::NOENT | Errno::NOTDIR) => false,
            Err(problem) => {
                self.visitor.problem(path, cannot("stat", problem));
                false
            }
        };
        path.truncate(length);
        kept
    }

    fn names(&mut self, folder: BorrowedFd<'_>, path: &[u8]) -> Vec<Vec<u8>> {
        let mut names = Vec::new();
        let listed = Dir::read_from(folder).and_then(|entries| {
            for entry in entries {
                let name = entry?.file_name().to_bytes().to_vec();
                if name == b"." || name == b".." {
                    continue;
                }
                if self.names_left == 0 {
                    return Ok(false);
                }
                self.names_left -= 1;
                names.push(name);
            }
            Ok(true)
        });
        match listed {
            Ok(true) => {}
            Ok(false) => self.visitor.problem(path, format!("more than {NAMES_MAX} names in all")),
            Err(problem) => self.visitor.problem(path, cannot("list", problem)),
        }
        names.sort_unstable();
        names
    }
}

impl Signature {
    pub(super) fn new(stat: &Stat) -> Self {
        Self {
            inode: (stat.st_dev, stat.st_ino),
            bytes: stat.st_size,
            changed: (stat.st_ctime, stat.st_ctime_nsec),
            modified: (stat.st_mtime, stat.st_mtime_nsec),
        }
    }
}

/// Opens the root of the node, to which links may lead.
pub(super) fn open_root(root: &std::path::Path) -> Result<OwnedFd, Errno> {
    rustix::fs::open(root, FOLDER, Mode::empty())
}

fn open_folder(folder: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd, Errno> {
    openat(folder, name, FOLDER | OFlags::NOFOLLOW, Mode::empty())
}

/// Opens a regular file; nothing else is opened, as to open a device can start it.
pub(super) fn open_file(folder: BorrowedFd<'_>, name: &[u8]) -> Result<(OwnedFd, Stat), Errno> {
    let flags =
        OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = openat(folder, name, flags, Mode::empty())?;
    let stat = fstat(&file)?;
    Ok((file, stat))
}

fn facts(folder: BorrowedFd<'_>, name: &[u8]) -> Result<(Facts, Signature), Errno> {
    let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let is_link = FileType::from_raw_mode(stat.st_mode).is_symlink();
    let target = is_link.then(|| readlinkat(folder, name, Vec::new())).transpose()?;
    Ok((Facts::new(&stat, target.map(|target| target.into_bytes())), Signature::new(&stat)))
}

fn is_link(folder: BorrowedFd<'_>, name: &[u8]) -> bool {
    has_type(folder, name, FileType::Symlink)
}

fn is_folder(folder: BorrowedFd<'_>, name: &[u8]) -> bool {
    has_type(folder, name, FileType::Directory)
}

fn has_type(folder: BorrowedFd<'_>, name: &[u8], kind: FileType) -> bool {
    let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
    stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == kind)
}

fn push(path: &mut Vec<u8>, name: &[u8]) {
    path.push(b'/');
    path.extend_from_slice(name);
}

fn cannot(what: &str, problem: Errno) -> String {
    format!("cannot {what} it: {problem}")
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Each level keeps a folder open, and configuration is nested far less.
const DEPTH_MAX: usize = 32;

/// Names that one run looks at: four times the files that it compares, as patterns leave some out.
pub(super) const NAMES_MAX: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_names_paths_as_a_walk_finds_them() {
        for (pattern, path, want) in [
            ("/a/b", "/a/b", true),
            ("/a/*.conf", "/a/x.conf", true),
            ("/a/*.conf", "/a/.x.conf", true),
            ("/a/*.conf", "/a/b/x.conf", false),
            ("/a/**", "/a/b", true),
            ("/a/**", "/a/b/.c/d", true),
            ("/a/**", "/ab", false),
            ("/*/b", "/a/b", true),
        ] {
            let names = Protected::new(pattern).unwrap().names(path.as_bytes());
            assert_eq!(names, want, "{pattern} {path}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_said() {
        for text in ["a/b", "/a/../b", "/a/./b", "/a/[", "/a/x**", "", "/a[/]b"] {
            assert!(Protected::new(text).is_err(), "{text}");
        }
    }
}
