//! What is wrong with a configuration, and where.

use core::error::Error;
use core::fmt;

use serde::Serialize;

/// A place in a file, both numbers from 1; the column counts characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line.
    pub line: u64,
    /// The column.
    pub column: u64,
}

impl Place {
    /// The start of a file.
    pub const START: Self = Self { line: 1, column: 1 };

    /// Returns a place; a parser's 0 for "unknown" is the start.
    pub(super) fn new(line: u64, column: u64) -> Self {
        Self { line: line.max(1), column: column.max(1) }
    }

    /// Returns the place right behind `text`.
    pub(super) fn behind(text: &str) -> Self {
        let last = text.rsplit('\n').next().unwrap_or_default();
        let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX).saturating_add(1);
        Self { line: count(text.matches('\n').count()), column: count(last.chars().count()) }
    }
}

/// One thing that is wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The line, from 1.
    pub line: u64,
    /// The column in characters, from 1.
    pub column: u64,
    /// The dotted key; empty where the file as a whole is not readable.
    pub key: String,
    /// What is wrong; what to do.
    pub message: String,
}

impl Problem {
    pub(super) fn new(place: Place, key: &str, message: String) -> Self {
        Self { line: place.line, column: place.column, key: key.to_owned(), message }
    }
}

/// Prints `LINE:COLUMN: key: what is wrong; what to do`, to be put behind a file's name.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.line, self.column)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

/// All that is wrong with a configuration, in the order of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problems {
    found: Vec<Problem>,
    omitted: usize,
}

impl Problems {
    /// Adds a problem; where there are too many, it is only counted, not even made.
    pub(super) fn push(&mut self, problem: impl FnOnce() -> Problem) {
        if self.found.len() < PROBLEMS_MAX {
            self.found.push(problem());
        } else {
            self.omitted += 1;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Puts the problems into the order of the file.
    pub(super) fn sorted(mut self) -> Self {
        self.found.sort_by_key(|problem| (problem.line, problem.column));
        self
    }

    /// Returns the problems.
    #[must_use]
    pub fn found(&self) -> &[Problem] {
        &self.found
    }

    /// Returns how many more there were.
    #[must_use]
    pub const fn omitted(&self) -> usize {
        self.omitted
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self { found: vec![problem], omitted: 0 }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.found.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{problem}")?;
        }
        match self.omitted {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

impl Error for Problems {}

/// Most problems that are told: more than one reads before mending.
const PROBLEMS_MAX: usize = 50;
