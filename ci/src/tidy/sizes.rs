//! Lists what is larger than one aims for; nothing here fails.

use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{Block, ExprForLoop, ExprIf, ExprLoop, ExprMatch, ExprWhile, ImplItemFn, ItemFn};
use syn::{Signature, TraitItemFn};

use super::source::{File, Rust, Tree};

/// Columns of a line.
const COLUMNS_AIM: usize = 100;
/// Lines of a file, without tests.
const FILE_LINES_AIM: usize = 400;
/// Lines of a function, from its signature to its closing brace.
const FUNCTION_LINES_AIM: usize = 40;
/// Depth of `if`, `match`, `for`, `while` and `loop` in a function.
const NESTING_AIM: usize = 3;
/// Parameters of a function, `self` included.
const PARAMETERS_AIM: usize = 4;

/// Returns the lines of an aligned table of all that passes an aim.
pub(super) fn table(tree: &Tree) -> Vec<String> {
    let rows = rows(tree);
    let place_width = rows.iter().map(|row| row.place.chars().count()).max().unwrap_or(0);
    let what_width = rows.iter().map(|row| row.what.chars().count()).max().unwrap_or(0);
    let line = |row: &Row| {
        let Row { place, what, size, aim } = row;
        format!("{place:place_width$}  {what:what_width$}  {size:>4}  (aim {aim})")
    };
    rows.iter().map(line).collect()
}

/// One thing that passes an aim.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    place: String,
    what: String,
    size: usize,
    aim: usize,
}

fn rows(tree: &Tree) -> Vec<Row> {
    let files = tree.rust(&[""]).filter(|(file, _)| !is_test(file));
    files.flat_map(|(file, rust)| file_rows(file, rust)).collect()
}

/// Returns whether `file` is only there for tests; the proof is a program.
fn is_test(file: &File) -> bool {
    file.is_test() || (file.path.starts_with("tests/") && !file.path.starts_with("tests/proof/"))
}

fn file_rows(file: &File, rust: &Rust) -> Vec<Row> {
    let mut sizes = Sizes { path: &file.path, nesting: Nesting::default(), rows: Vec::new() };
    let lines = file.text.lines().count().saturating_sub(rust.test_lines);
    sizes.add(1, "lines of the file", (lines, FILE_LINES_AIM));
    for (number, line) in (1..).zip(file.text.lines()) {
        sizes.add(number, "columns", (line.chars().count(), COLUMNS_AIM));
    }
    sizes.visit_file(&rust.syntax);
    sizes.rows
}

struct Sizes<'file> {
    path: &'file str,
    nesting: Nesting,
    rows: Vec<Row>,
}

#[derive(Default)]
struct Nesting {
    depth: usize,
    deepest: usize,
}

impl Sizes<'_> {
    fn add(&mut self, line: usize, what: &str, (size, aim): (usize, usize)) {
        if size > aim {
            let place = format!("{}:{line}", self.path);
            self.rows.push(Row { place, what: what.to_owned(), size, aim });
        }
    }

    fn function(&mut self, signature: &Signature, body: &Block) {
        let line = signature.span().start().line;
        let lines = body.span().end().line + 1 - line;
        let outer = core::mem::take(&mut self.nesting);
        visit::visit_block(self, body);
        let deepest = core::mem::replace(&mut self.nesting, outer).deepest;
        let name = &signature.ident;
        self.add(line, &format!("lines of {name}"), (lines, FUNCTION_LINES_AIM));
        self.add(line, &format!("parameters of {name}"), (signature.inputs.len(), PARAMETERS_AIM));
        self.add(line, &format!("nesting of {name}"), (deepest, NESTING_AIM));
    }

    fn deeper(&mut self, visit: impl FnOnce(&mut Self)) {
        self.nesting.depth += 1;
        self.nesting.deepest = self.nesting.deepest.max(self.nesting.depth);
        visit(self);
        self.nesting.depth -= 1;
    }

    /// Visits an `if`; each `else if` of its chain is as deep as the first.
    fn chain(&mut self, item: &ExprIf) {
        self.visit_expr(&item.cond);
        self.visit_block(&item.then_branch);
        let Some((_, branch)) = &item.else_branch else {
            return;
        };
        if let syn::Expr::If(next) = &**branch {
            self.chain(next);
        } else {
            self.visit_expr(branch);
        }
    }
}

impl<'ast> Visit<'ast> for Sizes<'_> {
    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        self.function(&item.sig, &item.block);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.function(&item.sig, &item.block);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        if let Some(body) = &item.default {
            self.function(&item.sig, body);
        }
    }

    fn visit_expr_for_loop(&mut self, item: &'ast ExprForLoop) {
        self.deeper(|sizes| visit::visit_expr_for_loop(sizes, item));
    }

    fn visit_expr_if(&mut self, item: &'ast ExprIf) {
        self.deeper(|sizes| sizes.chain(item));
    }

    fn visit_expr_loop(&mut self, item: &'ast ExprLoop) {
        self.deeper(|sizes| visit::visit_expr_loop(sizes, item));
    }

    fn visit_expr_match(&mut self, item: &'ast ExprMatch) {
        self.deeper(|sizes| visit::visit_expr_match(sizes, item));
    }

    fn visit_expr_while(&mut self, item: &'ast ExprWhile) {
        self.deeper(|sizes| visit::visit_expr_while(sizes, item));
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::tests::tree;
    use super::*;

    fn sizes(text: &str) -> Vec<(String, usize)> {
        let rows = rows(&tree(&[("core/src/a.rs", text)]));
        rows.into_iter().map(|row| (row.what, row.size)).collect()
    }

    #[test]
    fn what_keeps_to_every_aim_is_not_listed() {
        let body = "    b();\n".repeat(38);
        assert_eq!(sizes(&format!("fn a(b: u8, c: u8, d: u8, e: u8) {{\n{body}}}\n")), []);
    }

    #[test]
    fn each_aim_that_is_passed_is_listed() {
        let body = "    b();\n".repeat(39);
        let long = format!("fn a() {{\n{body}}}\n");
        assert_eq!(sizes(&long), [("lines of a".into(), 41)]);
        assert_eq!(sizes(&format!("// {}\n", "x".repeat(98))), [("columns".into(), 101)]);
        assert_eq!(sizes(&"// x\n".repeat(401)), [("lines of the file".into(), 401)]);
        let many = "fn a(&self, b: u8, c: u8, d: u8, e: u8) {}";
        assert_eq!(sizes(&format!("impl A {{ {many} }}")), [("parameters of a".into(), 5)]);
    }

    #[test]
    fn nesting_is_counted_without_else_if() {
        let chain = "fn a() { if b {} else if c {} else if d {} else if e {} else {} }";
        assert_eq!(sizes(chain), []);
        let deep = "fn a() { loop { for b in c { match b { _ => if d { e() } } } } }";
        assert_eq!(sizes(deep), [("nesting of a".into(), 4)]);
    }

    #[test]
    fn tests_are_not_listed() {
        let body = "    b();\n".repeat(500);
        let text = format!("#[cfg(test)]\nmod tests {{\nfn a() {{\n{body}}}\n}}\n");
        assert_eq!(sizes(&text), []);
    }
}
