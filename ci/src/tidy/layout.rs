//! Where files stand, how they open, and what no file may name.

use super::Finding;
use super::source::{File, Tree};

/// All that may stand at the top level.
const TOP_LEVEL: &[&str] = &[
    ".cargo",
    ".ci",
    ".git",
    ".gitignore",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "README.md",
    "ci",
    "clippy.toml",
    "core",
    "deny.toml",
    "fuzz",
    "rust-toolchain.toml",
    "rustfmt.toml",
    "shell-controller",
    "shell-linux",
    "target",
    "tests",
];

/// The crates whose files open with a sentence.
const CRATES: &[&str] = &["ci/", "core/", "fuzz/", "shell-controller/", "shell-linux/", "tests/"];

/// Package registries and mirrors: a build takes what the machine's own settings name.
///
/// Written in halves, so that this file does not break its own rule.
const REGISTRIES: &[&str] = &[
    concat!("crates", ".io"),
    concat!("deb.", "debian.org"),
    concat!("proxy.", "golang.org"),
    concat!("pypi", ".org"),
    concat!("registry.", "npmjs.org"),
];

/// The folders of one person or machine.
const PERSONAL_FOLDERS: &[&str] = &[concat!("/ro", "ot/"), concat!("/ho", "me/")];

/// Written by cargo, with the name of the registry in every row.
const LOCK_FILE: &str = "Cargo.lock";

/// Names each entry, opening and word that breaks a rule of this file.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let entries = tree.entries.iter().filter(|entry| !TOP_LEVEL.contains(&entry.as_str()));
    let mut findings: Vec<Finding> = entries
        .map(|entry| Finding::new(entry, 1, "may not stand at the top level: find it a crate"))
        .collect();
    for file in &tree.files {
        findings.extend(opening(file));
        findings.extend(names(file));
    }
    findings
}

fn opening(file: &File) -> Option<Finding> {
    let is_judged = CRATES.iter().any(|folder| file.path.starts_with(folder));
    if !is_judged || !file.path.ends_with(".rs") || opens_with_sentence(&file.text) {
        return None;
    }
    Some(Finding::new(&file.path, 1, "does not open with one `//!` sentence that says what it is"))
}

/// Returns whether the first `//!` paragraph stands first and is one sentence.
fn opens_with_sentence(text: &str) -> bool {
    let paragraph: Vec<&str> = text
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
        .map(str::trim)
        .take_while(|line| !line.is_empty())
        .collect();
    let paragraph = paragraph.join(" ");
    paragraph.ends_with('.') && !paragraph.contains(". ")
}

fn names(file: &File) -> Vec<Finding> {
    if file.path == LOCK_FILE {
        return Vec::new();
    }
    let lines = (1..).zip(file.text.lines());
    lines
        .filter_map(|(number, line)| Some(Finding::new(&file.path, number, forbidden(line)?)))
        .collect()
}

fn forbidden(line: &str) -> Option<String> {
    if let Some(host) = REGISTRIES.iter().find(|host| line.contains(**host)) {
        return Some(format!("names the registry {host}: leave that to the machine's settings"));
    }
    let folder = PERSONAL_FOLDERS.iter().find(|folder| has_folder(line, folder))?;
    Some(format!("names a path below {folder}, which is one person's or machine's own"))
}

/// Returns whether a path in `line` starts with `folder`.
fn has_folder(line: &str, folder: &str) -> bool {
    let starts_path = |before: &str| {
        let last = before.chars().next_back();
        !last.is_some_and(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '}' | '/' | '*'))
    };
    line.match_indices(folder).any(|(at, _)| starts_path(line.split_at(at).0))
}

#[cfg(test)]
mod tests {
    use super::super::source::tests::lines;
    use super::*;

    #[test]
    fn the_top_level_is_closed() {
        let tree = |entry: &str| Tree { entries: vec![entry.into()], files: Vec::new() };
        assert!(check(&tree("core")).is_empty());
        assert_eq!(check(&tree("docs")).len(), 1);
    }

    #[test]
    fn a_file_opens_with_one_sentence() {
        let rows = [
            ("//! Reads one page.\n", true),
            ("//! Reads one page,\n//! of a disk.\n//!\n//! More. And more.\n", true),
            ("//! Reads. Writes.\n", false),
            ("//! Reads one page\n", false),
            ("use core::fmt;\n//! Reads.\n", false),
            ("\n//! Reads.\n", false),
        ];
        for (text, want) in rows {
            assert_eq!(opens_with_sentence(text), want, "{text}");
        }
        assert_eq!(lines(check, "core/src/a.rs", "fn a() {}"), [1]);
        assert!(lines(check, "README.md", "# Fettle").is_empty());
    }

    #[test]
    fn no_file_names_a_registry_or_a_personal_folder() {
        for word in REGISTRIES.iter().chain(PERSONAL_FOLDERS) {
            let text = format!("fine\nsee {word}x\n");
            assert_eq!(lines(check, "README.md", &text), [2], "{word}");
            assert!(lines(check, LOCK_FILE, &text).is_empty(), "{word}");
        }
        let inside = format!("tests/data{}proc", PERSONAL_FOLDERS[0]);
        assert!(lines(check, "README.md", &inside).is_empty());
    }
}
