//! The rules that no compiler knows.
//!
//! A broken rule fails; what is merely large is listed, for a person to read.
//! Test code, by `#[cfg(test)]` or in a file `tests.rs`, is held to fewer rules.

mod arrows;
mod bounds;
mod imports;
mod layout;
mod marks;
mod proven;
mod sizes;
mod source;
mod unsafe_code;

use core::fmt;
use std::path::Path;

use anyhow::{Result, ensure};

use crate::stage::{Stage, say};
use source::Tree;

/// One place where a rule is broken.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: String,
    line: usize,
    text: String,
}

impl Finding {
    fn new(path: &str, line: usize, text: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, text: text.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.text)
    }
}

type Rule = fn(&Tree) -> Vec<Finding>;

/// Every rule that can fail.
const RULES: &[Rule] = &[
    arrows::check,
    bounds::check,
    layout::check,
    marks::check,
    proven::check,
    source::check,
    unsafe_code::check,
];

/// Makes the stage `tidy`.
pub(crate) fn stage() -> Stage {
    Stage::function("tidy", "arrows, bounds, layout, proof coverage, unsafe; lists sizes", |_| {
        run()
    })
    .advice("Change what each line names; where a rule is wrong, change it in ci/src/tidy/.")
}

fn run() -> Result<()> {
    let tree = Tree::load(Path::new("."))?;
    sizes::table(&tree).iter().for_each(|line| say(line));
    let findings = findings(&tree);
    findings.iter().for_each(|finding| say(&finding.to_string()));
    ensure!(findings.is_empty(), "{} places break a rule", findings.len());
    Ok(())
}

fn findings(tree: &Tree) -> Vec<Finding> {
    let mut findings: Vec<Finding> = RULES.iter().flat_map(|rule| rule(tree)).collect();
    findings.sort();
    findings
}
