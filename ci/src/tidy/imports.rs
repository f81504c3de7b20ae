//! Finds every path by which a file refers to its own crate.
//!
//! Does not follow re-exports: what `lib.rs` or a parent re-exports is theirs.

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{File, ItemMod, ItemUse, Macro, Path, UseTree};

/// One reference from a file into its own crate.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Import {
    /// Where it stands.
    pub(super) line: usize,
    /// What it names, from the crate's root on.
    pub(super) path: Vec<String>,
}

/// Returns each reference of the file that is `module`, in order.
pub(super) fn imports(file: &File, module: &[String]) -> Vec<Import> {
    let mut imports = Imports { module: module.to_vec(), found: Vec::new() };
    imports.visit_file(file);
    imports.found
}

struct Imports {
    module: Vec<String>,
    found: Vec<Import>,
}

impl Imports {
    fn add(&mut self, line: usize, names: &[String]) {
        if let Some(path) = self.resolve(names).filter(|path| !path.is_empty()) {
            self.found.push(Import { line, path });
        }
    }

    /// Returns `names` from the root on, if they start with `crate`, `self` or `super`.
    fn resolve(&self, names: &[String]) -> Option<Vec<String>> {
        let (first, rest) = names.split_first()?;
        let supers = names.iter().take_while(|name| *name == "super").count();
        match first.as_str() {
            "crate" => Some(rest.to_vec()),
            "self" if rest.is_empty() => None,
            "self" => Some([&self.module, rest].concat()),
            "super" => {
                let kept = self.module.len().saturating_sub(supers);
                let names = names.get(supers..).filter(|names| !names.is_empty())?;
                Some([self.module.get(..kept)?, names].concat())
            }
            _ => None,
        }
    }

    fn add_tree(&mut self, tree: &UseTree, prefix: &[String]) {
        match tree {
            UseTree::Glob(glob) => {
                let line = glob.star_token.spans[0].start().line;
                self.add(line, &joined(prefix, "*"));
            }
            UseTree::Group(group) => {
                group.items.iter().for_each(|item| self.add_tree(item, prefix));
            }
            UseTree::Name(name) => self.add_name(&name.ident, prefix),
            UseTree::Path(path) => {
                self.add_tree(&path.tree, &joined(prefix, &path.ident.to_string()));
            }
            UseTree::Rename(rename) => self.add_name(&rename.ident, prefix),
        }
    }

    /// Adds one name of a use; `a::{self}` means `a`.
    fn add_name(&mut self, name: &proc_macro2::Ident, prefix: &[String]) {
        let line = name.span().start().line;
        if name == "self" && !prefix.is_empty() {
            self.add(line, prefix);
        } else {
            self.add(line, &joined(prefix, &name.to_string()));
        }
    }

    /// Adds the paths in a macro's tokens, which no parser knows the meaning of.
    fn add_tokens(&mut self, tokens: &TokenStream) {
        let mut run = Run::default();
        for token in tokens.clone() {
            if !run.extend(&token) {
                self.add_run(&run);
                run = Run::default();
                run.extend(&token);
            }
            if let TokenTree::Group(group) = &token {
                self.add_tokens(&group.stream());
            }
        }
        self.add_run(&run);
    }

    fn add_run(&mut self, run: &Run) {
        if run.names.len() > 1 {
            self.add(run.line, &run.names);
        }
    }
}

impl<'ast> Visit<'ast> for Imports {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        self.module.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.add_tree(&item.tree, &[]);
    }

    fn visit_macro(&mut self, item: &'ast Macro) {
        self.add_tokens(&item.tokens);
        visit::visit_macro(self, item);
    }

    fn visit_path(&mut self, path: &'ast Path) {
        let names: Vec<String> = path.segments.iter().map(|part| part.ident.to_string()).collect();
        let line = path.segments.first().map_or(0, |part| part.ident.span().start().line);
        self.add(line, &names);
        visit::visit_path(self, path);
    }
}

/// Names that `::` joins, as they come out of a macro's tokens.
#[derive(Default)]
struct Run {
    colons: usize,
    line: usize,
    names: Vec<String>,
}

impl Run {
    /// Takes `token` if it goes on with the path.
    fn extend(&mut self, token: &TokenTree) -> bool {
        match token {
            TokenTree::Ident(name) if self.names.is_empty() || self.colons == 2 => {
                if self.names.is_empty() {
                    self.line = name.span().start().line;
                }
                self.names.push(name.to_string());
                self.colons = 0;
                true
            }
            TokenTree::Punct(punct)
                if punct.as_char() == ':' && !self.names.is_empty() && self.colons < 2 =>
            {
                self.colons += 1;
                true
            }
            TokenTree::Group(_)
            | TokenTree::Ident(_)
            | TokenTree::Literal(_)
            | TokenTree::Punct(_) => false,
        }
    }
}

fn joined(prefix: &[String], name: &str) -> Vec<String> {
    let mut path = prefix.to_vec();
    path.push(name.to_owned());
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        let module = ["wire".to_owned(), "kmsg".to_owned()];
        let file = syn::parse_file(text).unwrap();
        imports(&file, &module).into_iter().map(|import| import.path.join("::")).collect()
    }

    #[test]
    fn each_way_to_name_a_path_is_found() {
        let rows: &[(&str, &[&str])] = &[
            ("use crate::time::Instant;", &["time::Instant"]),
            (
                "use crate::{text::*, time::{self, Instant as I}};",
                &["text::*", "time", "time::Instant"],
            ),
            ("use super::smart::Page;", &["wire::smart::Page"]),
            ("use super::super::node::Agent;", &["node::Agent"]),
            ("use self::inner::A;", &["wire::kmsg::inner::A"]),
            ("fn a() -> crate::text::Text { b() }", &["text::Text"]),
            ("fn a() { matches!(b, [crate::node::B, _]); }", &["node::B"]),
            ("mod inner { use super::A; }", &["wire::kmsg::A"]),
            ("pub(crate) fn a(self) { core::mem::drop(self) }", &[]),
        ];
        for (text, want) in rows {
            assert_eq!(paths(text), *want, "{text}");
        }
    }

    #[test]
    fn a_line_is_that_of_the_name() {
        let file =
            syn::parse_file("use crate::{\n    text::Text,\n    time::Instant,\n};").unwrap();
        let lines: Vec<usize> = imports(&file, &[]).iter().map(|import| import.line).collect();
        assert_eq!(lines, [2, 3]);
    }
}
