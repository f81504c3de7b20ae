//! Keeps tests that need a real kernel out of an ordinary run, and in the run that has one.

use syn::ItemFn;
use syn::visit::{self, Visit};

use super::Finding;
use super::source::Tree;

/// The test programs that the stages `kernel` and `deploy` run, each as one file or as a folder.
const KERNEL: &[&str] = &[
    "tests/tests/checks.rs",
    "tests/tests/deploy/",
    "tests/tests/kernel.rs",
    "tests/tests/kernel/",
    "tests/tests/metrics.rs",
];

/// Names each test of the kernel's that is not marked, and each marked one elsewhere.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, rust) in tree.rust(&[""]) {
        let in_kernel = KERNEL.iter().any(|path| file.path.starts_with(path));
        let mut marks = Marks { in_kernel, found: Vec::new() };
        marks.visit_file(&rust.syntax);
        findings.extend(
            marks.found.into_iter().map(|(line, text)| Finding::new(&file.path, line, text)),
        );
    }
    findings
}

struct Marks {
    in_kernel: bool,
    found: Vec<(usize, &'static str)>,
}

impl<'ast> Visit<'ast> for Marks {
    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        let has = |name: &str| item.attrs.iter().any(|attribute| attribute.path().is_ident(name));
        let line = item.sig.ident.span().start().line;
        if self.in_kernel && has("test") && !has("ignore") {
            self.found.push((line, "needs #[ignore = \"why\"], or cargo test runs it anywhere"));
        }
        if !self.in_kernel && has("ignore") {
            self.found.push((line, "is ignored and never runs: only kernel tests may be"));
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
    fn no_other_test_is_ignored() {
        let ignored = "#[test]\n#[ignore]\nfn a() {}\n";
        assert_eq!(lines(check, "tests/tests/replay.rs", ignored), [3]);
        assert!(lines(check, "tests/tests/replay.rs", "#[test]\nfn a() {}\n").is_empty());
    }
}
