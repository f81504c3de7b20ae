//! Files whose paths match a pattern, below a root.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use glob::{MatchOptions, Pattern};

use super::root::{Kind, Root, is_absent};

/// Looks for files, within bounds.
///
/// `glob` itself opens what it finds without regard to a root, so only its patterns are used.
#[derive(Debug)]
pub struct Search<'a> {
    root: &'a Root,
    names_left: usize,
    /// What was found.
    pub found: BTreeSet<PathBuf>,
    /// Folders that could not be looked into, and why.
    pub problems: Vec<(PathBuf, io::Error)>,
    /// Names that were not looked at, because there are too many.
    pub omitted: u64,
}

/// One component of a pattern.
#[derive(Debug, Clone)]
enum Component {
    /// `**`: any number of folders.
    Deep,
    /// A name without a wildcard.
    Name(OsString),
    /// A name with some.
    Wild(Pattern),
}

impl<'a> Search<'a> {
    /// Begins a search below `root`, which looks at no more than `names_max` names.
    #[must_use]
    pub const fn new(root: &'a Root, names_max: usize) -> Self {
        Self {
            root,
            names_left: names_max,
            found: BTreeSet::new(),
            problems: Vec::new(),
            omitted: 0,
        }
    }

    /// Adds the files that match `pattern`.
    ///
    /// Folders are none, unless the pattern names them as it would name a file. Names that begin
    /// with a dot match only where the pattern says the dot. `**` follows no link.
    pub fn add(&mut self, pattern: &Pattern) {
        match components(pattern) {
            Ok(components) => self.expand(Path::new("/"), &components, 0),
            Err(problem) => {
                let problem = io::Error::new(io::ErrorKind::InvalidInput, problem.msg);
                self.problems.push((PathBuf::from(pattern.as_str()), problem));
            }
        }
    }

    fn expand(&mut self, folder: &Path, components: &[Component], depth: usize) {
        match components {
            [] => {}
            [Component::Name(name)] => self.add_named(folder.join(name)),
            [Component::Name(name), rest @ ..] => self.expand(&folder.join(name), rest, depth),
            [Component::Wild(pattern), rest @ ..] => {
                for name in self.names(folder) {
                    if matches(pattern, &name) {
                        self.add_matching(folder.join(name), pattern, rest, depth);
                    }
                }
            }
            [Component::Deep, rest @ ..] => self.descend(folder, components, rest, depth),
        }
    }

    fn add_named(&mut self, path: PathBuf) {
        match self.root.kind(&path) {
            // A link that leads nowhere is there, and shall be told.
            Err(problem) if is_absent(&problem) && self.root.link(&path).is_none() => {}
            _ => self.keep(path),
        }
    }

    fn add_matching(&mut self, path: PathBuf, pattern: &Pattern, rest: &[Component], depth: usize) {
        if !rest.is_empty() {
            self.expand(&path, rest, depth);
        } else if pattern.as_str() != "*" || !matches!(self.root.kind(&path), Ok(Kind::Folder)) {
            self.keep(path);
        }
    }

    /// Matches `rest` in `folder` and in every folder below it.
    fn descend(
        &mut self,
        folder: &Path,
        components: &[Component],
        rest: &[Component],
        depth: usize,
    ) {
        let every_file = [Component::Wild(every_name())];
        self.expand(folder, if rest.is_empty() { &every_file } else { rest }, depth);
        if depth >= DEPTH_MAX {
            self.problems.push((folder.to_owned(), io::ErrorKind::QuotaExceeded.into()));
            return;
        }
        for name in self.names(folder) {
            let path = folder.join(name);
            let is_link = self.root.link(&path).is_some();
            if !is_link && matches!(self.root.kind(&path), Ok(Kind::Folder)) {
                self.expand(&path, components, depth + 1);
            }
        }
    }

    fn names(&mut self, folder: &Path) -> Vec<OsString> {
        match self.root.names(folder, self.names_left) {
            Ok(names) => {
                self.names_left -= names.kept.len();
                self.omitted = self.omitted.saturating_add(names.omitted);
                names.kept
            }
            Err(problem) if is_absent(&problem) => Vec::new(),
            Err(problem) => {
                self.problems.push((folder.to_owned(), problem));
                Vec::new()
            }
        }
    }

    fn keep(&mut self, path: PathBuf) {
        self.found.insert(path);
    }
}

/// Splits a pattern; a character class that holds a `/` is an error.
fn components(pattern: &Pattern) -> Result<Vec<Component>, glob::PatternError> {
    let names = pattern.as_str().split('/').filter(|name| !name.is_empty());
    names
        .map(|name| match name {
            "**" => Ok(Component::Deep),
            name if name.contains(['*', '?', '[']) => Pattern::new(name).map(Component::Wild),
            name => Ok(Component::Name(OsString::from(name))),
        })
        .collect()
}

fn matches(pattern: &Pattern, name: &OsStr) -> bool {
    let options = MatchOptions { require_literal_leading_dot: true, ..MatchOptions::new() };
    pattern.matches_with(&name.to_string_lossy(), options)
}

fn every_name() -> Pattern {
    Pattern::new("*").expect("a star alone is a pattern")
}

/// Deeper than any configuration is nested.
const DEPTH_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_star_stays_within_one_component() {
        let node =
            Node::new(&["pki/a.crt", "pki/.hidden.crt", "pki/a.key", "pki/etcd/b.crt", "c.crt"]);
        for (pattern, want) in [
            ("/pki/*.crt", "/pki/a.crt"),
            ("/*/a.crt", "/pki/a.crt"),
            ("/pki/*/*.crt", "/pki/etcd/b.crt"),
            ("/pki/*", "/pki/a.crt /pki/a.key"),
            ("/pki/.*.crt", "/pki/.hidden.crt"),
            ("/pki/[!b].cr?", "/pki/a.crt"),
            ("/pki/a.crt", "/pki/a.crt"),
            ("/pki/absent.crt", ""),
            ("/absent/*.crt", ""),
            ("/pki/a.crt/*", ""),
            ("/**/*.crt", "/c.crt /pki/a.crt /pki/etcd/b.crt"),
            ("/pki/**", "/pki/a.crt /pki/a.key /pki/etcd/b.crt"),
            ("/pki/**/b.crt", "/pki/etcd/b.crt"),
        ] {
            assert_eq!(node.found(pattern), want, "{pattern}");
        }
    }

    #[test]
    fn links_are_found_even_where_they_lead_nowhere() {
        let node = Node::new(&["real/a.pem"]);
        let at = |name: &str| node.folder.path().join(name);
        symlink("/real/absent", at("real/dangling.pem")).unwrap();
        symlink("/real", at("linked")).unwrap();
        symlink("..", at("real/up")).unwrap();
        assert_eq!(node.found("/linked/*.pem"), "/linked/a.pem /linked/dangling.pem");
        assert_eq!(node.found("/real/dangling.pem"), "/real/dangling.pem");
        assert_eq!(node.found("/**/*.pem"), "/real/a.pem /real/dangling.pem");
    }

    #[test]
    fn a_search_is_bounded_and_says_so() {
        let node = Node::new(&["a", "b", "c"]);
        let root = node.root();
        let mut search = Search::new(&root, 2);
        search.add(&Pattern::new("/*").unwrap());
        assert_eq!((search.found.len(), search.omitted), (2, 1));
        let deep = (0..DEPTH_MAX + 2).map(|_| "d").collect::<Vec<_>>().join("/");
        fs::create_dir_all(node.folder.path().join(deep)).unwrap();
        let mut search = Search::new(&root, 1000);
        search.add(&Pattern::new("/**/x").unwrap());
        assert_eq!(search.problems.len(), 1);
    }

    #[test]
    fn a_pattern_that_cannot_be_split_is_a_problem() {
        let node = Node::new(&[]);
        let root = node.root();
        let mut search = Search::new(&root, 10);
        search.add(&Pattern::new("/a[/]b").unwrap());
        assert_eq!(search.problems[0].0, Path::new("/a[/]b"));
    }

    struct Node {
        folder: tempfile::TempDir,
    }

    impl Node {
        fn new(files: &[&str]) -> Self {
            let folder = tempfile::tempdir().unwrap();
            for file in files {
                let path = folder.path().join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "").unwrap();
            }
            Self { folder }
        }

        fn root(&self) -> Root {
            Root::new(self.folder.path().to_owned())
        }

        fn found(&self, pattern: &str) -> String {
            let root = self.root();
            let mut search = Search::new(&root, 100);
            search.add(&Pattern::new(pattern).unwrap());
            assert!(search.problems.is_empty() && search.omitted == 0, "{search:?}");
            let found: Vec<_> = search.found.iter().map(|path| path.to_str().unwrap()).collect();
            found.join(" ")
        }
    }
}
