//! Sees to it that the no-panic proof calls every public function of the core.
//!
//! Goes by name alone: of two functions with one name, the second may be missed.

use std::collections::BTreeSet;

use syn::visit::{self, Visit};
use syn::{ImplItemFn, ItemFn, Signature, Visibility};

use super::Finding;
use super::source::{Tree, each_identifier};

/// The one file that the proof leaves out: its JSON writer keeps a panic in the link.
const EXEMPT: &str = "core/src/node/report.rs";

/// Names each public function of the core whose name does not occur in the proof.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let called = names_in_proof(tree);
    let mut findings = Vec::new();
    for (file, rust) in tree.rust(&["core/src/"]) {
        if file.is_test() || file.path == EXEMPT {
            continue;
        }
        let mut public = PublicFunctions::default();
        public.visit_file(&rust.syntax);
        let missing = public.found.into_iter().filter(|(_, name)| !called.contains(name));
        findings.extend(missing.map(|(line, name)| {
            Finding::new(&file.path, line, format!("{name} is not called in tests/proof/src"))
        }));
    }
    findings
}

fn names_in_proof(tree: &Tree) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (_, rust) in tree.rust(&["tests/proof/src/"]) {
        each_identifier(&rust.tokens, &mut |name| _ = names.insert(name.to_string()));
    }
    names
}

#[derive(Default)]
struct PublicFunctions {
    found: Vec<(usize, String)>,
}

impl PublicFunctions {
    fn add(&mut self, visibility: &Visibility, signature: &Signature) {
        if matches!(visibility, Visibility::Public(_)) {
            let name = &signature.ident;
            self.found.push((name.span().start().line, name.to_string()));
        }
    }
}

impl<'ast> Visit<'ast> for PublicFunctions {
    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        self.add(&item.vis, &item.sig);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.add(&item.vis, &item.sig);
        visit::visit_impl_item_fn(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::tests::tree;
    use super::*;

    const CORE: &str = "pub fn parse() {}\nimpl A {\n    pub fn step(&mut self) {}\n\
        \x20   pub(crate) fn inner(&self) {}\n}\n#[cfg(test)]\nmod t { pub fn helper() {} }\n";

    fn missing(path: &str, proof: &str) -> Vec<usize> {
        let tree = tree(&[(path, CORE), ("tests/proof/src/main.rs", proof)]);
        check(&tree).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn every_public_function_is_called_by_name() {
        assert!(missing("core/src/a.rs", "fn main() { parse(); a.step(); }").is_empty());
        assert_eq!(missing("core/src/a.rs", "// step\nfn main() { parse(); }"), [3]);
    }

    #[test]
    fn the_report_is_exempt() {
        assert!(missing(EXEMPT, "").is_empty());
    }
}
