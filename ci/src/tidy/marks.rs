//! Keeps tests that need a real kernel or API server out of an ordinary run, and in one that has it.

use syn::visit::{self, Visit};
use syn::{Attribute, ItemFn};

use super::Finding;
use super::source::Tree;

/// The test programs of the stages `api`, `deploy` and `kernel`, each as one file or as a folder.
const MARKED: &[&str] = &[
    "tests/api/",
    "tests/tests/checks.rs",
    "tests/tests/deploy/",
    "tests/tests/kernel.rs",
    "tests/tests/kernel/",
    "tests/tests/metrics.rs",
];

/// Names each test of these that is not marked, and each marked one elsewhere.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, rust) in tree.rust(&[""]) {
        let is_marked = MARKED.iter().any(|path| file.path.starts_with(path));
        let mut marks = Marks { is_marked, found: Vec::new() };
        marks.visit_file(&rust.syntax);
        findings.extend(
            marks.found.into_iter().map(|(line, text)| Finding::new(&file.path, line, text)),
        );
    }
    findings
}

struct Marks {
    is_marked: bool,
    found: Vec<(usize, &'static str)>,
}

impl<'ast> Visit<'ast> for Marks {
    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        // `#[tokio::test]` makes a test too.
        let last =
            |attribute: &Attribute| attribute.path().segments.last().map(|s| s.ident.clone());
        let has = |name: &str| item.attrs.iter().filter_map(last).any(|ident| ident == name);
        let line = item.sig.ident.span().start().line;
        if self.is_marked && has("test") && !has("ignore") {
            self.found.push((line, "needs #[ignore = \"why\"], or cargo test runs it anywhere"));
        }
        if !self.is_marked && has("ignore") {
            self.found.push((
                line,
                "is ignored and never runs: only tests of the kernel or an API server may be",
            ));
        }
        visit::visit_item_fn(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::tests::lines;
    use super::*;

    #[test]
    fn a_kernel_test_is_marked() {
        let marked = "#[test]\n#[ignore = \"needs root\"]\nfn a() {}\nfn helper() {}\n";
        assert!(lines(check, "tests/tests/kernel.rs", marked).is_empty());
        assert_eq!(lines(check, "tests/tests/kernel/disk.rs", "#[test]\nfn a() {}\n"), [2]);
    }

    #[test]
    fn a_test_of_the_api_server_is_marked_however_it_is_run() {
        let marked = "#[tokio::test]\n#[ignore = \"needs an API server\"]\nasync fn a() {}\n";
        assert!(lines(check, "tests/api/node.rs", marked).is_empty());
        assert_eq!(lines(check, "tests/api/node.rs", "#[tokio::test]\nasync fn a() {}\n"), [2]);
        assert_eq!(lines(check, "tests/src/api/server.rs", marked), [3]);
    }

    #[test]
    fn no_other_test_is_ignored() {
        let ignored = "#[test]\n#[ignore]\nfn a() {}\n";
        assert_eq!(lines(check, "tests/tests/replay.rs", ignored), [3]);
        assert!(lines(check, "tests/tests/replay.rs", "#[test]\nfn a() {}\n").is_empty());
    }
}
