//! The workspace's files, read and parsed once for all rules.

use core::str::FromStr as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};

use super::Finding;

/// Folders that hold no source: build output, history, and what a fuzzer wrote.
const SKIPPED: &[&str] = &[".git", "target", "fuzz/corpus", "fuzz/crashes"];

/// All that the rules look at.
#[derive(Default)]
pub(super) struct Tree {
    /// The names at the top level, sorted.
    pub(super) entries: Vec<String>,
    /// Every text file, sorted by path.
    pub(super) files: Vec<File>,
}

impl Tree {
    /// Reads every text file below `root`.
    pub(super) fn load(root: &Path) -> Result<Self> {
        let mut tree = Self::default();
        tree.load_folder(root, "")?;
        tree.entries.sort();
        tree.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(tree)
    }

    /// Returns the Rust files whose path starts with one of `prefixes`.
    pub(super) fn rust<'tree>(
        &'tree self,
        prefixes: &'tree [&str],
    ) -> impl Iterator<Item = (&'tree File, &'tree Rust)> {
        self.files
            .iter()
            .filter(|file| prefixes.iter().any(|prefix| file.path.starts_with(prefix)))
            .filter_map(|file| Some((file, file.rust.as_ref()?)))
    }

    fn load_folder(&mut self, folder: &Path, prefix: &str) -> Result<()> {
        let entries = fs::read_dir(folder).with_context(|| cannot_read(folder))?;
        for entry in entries {
            let entry = entry.with_context(|| cannot_read(folder))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{prefix}{name}");
            if prefix.is_empty() {
                self.entries.push(name);
            }
            if SKIPPED.contains(&path.as_str()) {
                continue;
            }
            let kind = entry.file_type().with_context(|| cannot_read(&entry.path()))?;
            if kind.is_dir() {
                self.load_folder(&entry.path(), &format!("{path}/"))?;
            } else if kind.is_file() {
                self.load_file(&entry.path(), path)?;
            }
        }
        Ok(())
    }

    fn load_file(&mut self, file: &Path, path: String) -> Result<()> {
        let bytes = fs::read(file).with_context(|| cannot_read(file))?;
        if let Ok(text) = String::from_utf8(bytes) {
            self.files.push(File::new(path, text));
        }
        Ok(())
    }
}

fn cannot_read(path: &Path) -> String {
    format!("cannot read {}", path.display())
}

/// One text file.
pub(super) struct File {
    /// Relative to the root, with `/`.
    pub(super) path: String,
    /// All of it.
    pub(super) text: String,
    /// What it means, if it is Rust that parses.
    pub(super) rust: Option<Rust>,
}

impl File {
    /// Parses `text` if `path` is that of a Rust file.
    pub(super) fn new(path: String, text: String) -> Self {
        let rust = path.ends_with(".rs").then(|| Rust::parse(&text)).flatten();
        Self { path, text, rust }
    }

    /// Returns whether all of the file is test code.
    pub(super) fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.contains("/tests/")
    }
}

/// A Rust file without what stands under `#[cfg(test)]`.
pub(super) struct Rust {
    /// Its syntax.
    pub(super) syntax: syn::File,
    /// The lines that test code takes.
    pub(super) test_lines: usize,
    /// Its tokens.
    pub(super) tokens: TokenStream,
}

impl Rust {
    fn parse(text: &str) -> Option<Self> {
        let (tokens, test_lines) = without_tests(TokenStream::from_str(text).ok()?);
        let syntax = syn::parse2(tokens.clone()).ok()?;
        Some(Self { syntax, test_lines, tokens })
    }
}

/// Names each Rust file that does not parse, for no other rule sees it.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.files
        .iter()
        .filter(|file| file.path.ends_with(".rs") && file.rust.is_none())
        .map(|file| Finding::new(&file.path, 1, "is no Rust that can be parsed"))
        .collect()
}

/// Calls `each` with every identifier in `tokens`, however deep.
pub(super) fn each_identifier(tokens: &TokenStream, each: &mut impl FnMut(&Ident)) {
    for token in tokens.clone() {
        if let TokenTree::Group(group) = &token {
            each_identifier(&group.stream(), each);
        }
        if let TokenTree::Ident(identifier) = &token {
            each(identifier);
        }
    }
}

/// Removes every item under `#[cfg(test)]`, and counts the lines removed.
fn without_tests(tokens: TokenStream) -> (TokenStream, usize) {
    let mut kept = Vec::new();
    let mut removed_lines = 0;
    let mut rest = tokens.into_iter().peekable();
    while let Some(token) = rest.next() {
        let marks_test = is_hash(&token) && rest.peek().is_some_and(is_cfg_test);
        if marks_test {
            let last = skip_item(&mut rest).unwrap_or_else(|| token.clone());
            removed_lines += last.span().end().line + 1 - token.span().start().line;
        } else if let TokenTree::Group(group) = token {
            let (stream, lines) = without_tests(group.stream());
            removed_lines += lines;
            kept.push(regroup(&group, stream));
        } else {
            kept.push(token);
        }
    }
    (kept.into_iter().collect(), removed_lines)
}

fn regroup(group: &Group, stream: TokenStream) -> TokenTree {
    let mut copy = Group::new(group.delimiter(), stream);
    copy.set_span(group.span());
    TokenTree::Group(copy)
}

fn is_hash(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == '#')
}

fn is_semicolon(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == ';')
}

/// Returns whether `token` is `[cfg(test)]`, or `[cfg(all(test, ...))]`.
fn is_cfg_test(token: &TokenTree) -> bool {
    let TokenTree::Group(group) = token else {
        return false;
    };
    let mut names = Vec::new();
    each_identifier(&group.stream(), &mut |name| names.push(name.to_string()));
    let has = |name: &str| names.iter().any(|found| found == name);
    names.first().is_some_and(|name| name == "cfg") && has("test") && !has("not") && !has("any")
}

/// Takes the tokens up to the end of an item, and returns the last of them.
fn skip_item(
    rest: &mut core::iter::Peekable<impl Iterator<Item = TokenTree>>,
) -> Option<TokenTree> {
    while let Some(token) = rest.next() {
        let is_body =
            matches!(&token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
        if is_semicolon(&token) {
            return Some(token);
        }
        if is_body {
            return rest.next_if(is_semicolon).or(Some(token));
        }
    }
    None
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Makes a tree of files from paths and texts.
    pub(in crate::tidy) fn tree(files: &[(&str, &str)]) -> Tree {
        let file = |(path, text): &(&str, &str)| File::new((*path).into(), (*text).into());
        Tree { entries: Vec::new(), files: files.iter().map(file).collect() }
    }

    /// Returns the lines that `rule` finds fault with in one file.
    pub(in crate::tidy) fn lines(rule: super::super::Rule, path: &str, text: &str) -> Vec<usize> {
        rule(&tree(&[(path, text)])).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn test_code_is_removed_and_its_lines_are_counted() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n";
        let rust = Rust::parse(text).unwrap();
        assert_eq!(rust.test_lines, 4);
        let mut names = Vec::new();
        each_identifier(&rust.tokens, &mut |name| names.push(name.to_string()));
        assert_eq!(names, ["fn", "a", "fn", "c"]);
    }

    #[test]
    fn only_a_plain_cfg_test_marks_test_code() {
        for (text, want) in [
            ("#[cfg(test)] use a::{b, c};", 0),
            ("#[cfg(test)] #[derive(Debug)] struct A;", 0),
            ("#[cfg(not(test))] struct A;", 1),
            ("#[cfg(feature = \"x\")] struct A;", 1),
        ] {
            assert_eq!(Rust::parse(text).unwrap().syntax.items.len(), want, "{text}");
        }
    }

    #[test]
    fn a_file_that_does_not_parse_is_named() {
        assert_eq!(lines(check, "core/src/a.rs", "fn a( {"), [1]);
        assert!(lines(check, "core/src/a.rs", "fn a() {}").is_empty());
    }
}
