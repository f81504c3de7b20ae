//! Keeps `unsafe` in the few files that are read with that in mind.

use super::Finding;
use super::source::{Tree, each_identifier};

/// Where it may stand: one file per kernel interface, the proof's own entry point, and the test
/// that counts allocations, for which it has to be an allocator.
const ALLOWED: &[&str] = &["core/tests/no_alloc.rs", "shell-linux/src/sys/", "tests/proof/src/"];

/// Names each `unsafe` outside [`ALLOWED`].
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, rust) in tree.rust(&[""]) {
        if ALLOWED.iter().any(|folder| file.path.starts_with(folder)) {
            continue;
        }
        each_identifier(&rust.tokens, &mut |name| {
            if name == "unsafe" {
                let line = name.span().start().line;
                let text = format!("unsafe may stand only in {}", ALLOWED.join(", "));
                findings.push(Finding::new(&file.path, line, text));
            }
        });
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::source::tests::lines;
    use super::*;

    #[test]
    fn unsafe_stands_only_where_it_may() {
        let text = "// unsafe\n#![forbid(unsafe_code)]\nfn a() { unsafe { b() } }\n";
        assert_eq!(lines(check, "shell-linux/src/run.rs", text), [3]);
        assert!(lines(check, "shell-linux/src/sys/nvme.rs", text).is_empty());
    }
}
