//! Keeps every capacity of the core in one file, each with its reason.

use proc_macro2::Ident;
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItemConst, ItemConst};

use super::Finding;
use super::source::Tree;

const BOUNDS: &str = "core/src/bounds.rs";

/// Names each capacity outside `bounds.rs`, and each in it that has no doc comment.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, rust) in tree.rust(&["core/src/"]).filter(|(file, _)| !file.is_test()) {
        let mut capacities = Capacities { in_bounds: file.path == BOUNDS, found: Vec::new() };
        capacities.visit_file(&rust.syntax);
        findings.extend(
            capacities.found.into_iter().map(|(line, text)| Finding::new(&file.path, line, text)),
        );
    }
    findings
}

struct Capacities {
    in_bounds: bool,
    found: Vec<(usize, String)>,
}

impl Capacities {
    fn judge(&mut self, name: &Ident, attributes: &[Attribute]) {
        let is_documented = attributes.iter().any(|attribute| attribute.path().is_ident("doc"));
        if !name.to_string().ends_with("_MAX") || (self.in_bounds && is_documented) {
            return;
        }
        let text = if self.in_bounds {
            format!("{name} needs a doc comment that gives the reason for its size")
        } else {
            format!("{name} is a capacity: move it to {BOUNDS}, with the reason for its size")
        };
        self.found.push((name.span().start().line, text));
    }
}

impl<'ast> Visit<'ast> for Capacities {
    fn visit_item_const(&mut self, item: &'ast ItemConst) {
        self.judge(&item.ident, &item.attrs);
        visit::visit_item_const(self, item);
    }

    fn visit_impl_item_const(&mut self, item: &'ast ImplItemConst) {
        self.judge(&item.ident, &item.attrs);
        visit::visit_impl_item_const(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::tests::lines;
    use super::*;

    #[test]
    fn a_capacity_stands_in_bounds_with_its_reason() {
        let text = "/// Enough for one rack.\npub const A_MAX: usize = 1;\n";
        assert!(lines(check, BOUNDS, text).is_empty());
        assert_eq!(lines(check, "core/src/window.rs", text), [2]);
        assert_eq!(lines(check, BOUNDS, "pub const A_MAX: usize = 1;"), [1]);
    }

    #[test]
    fn other_constants_and_test_code_stand_anywhere() {
        let text = "const MAX: u8 = 1;\n#[cfg(test)]\nmod tests { const B_MAX: u8 = 1; }\n";
        assert!(lines(check, "core/src/window.rs", text).is_empty());
    }
}
