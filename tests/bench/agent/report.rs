//! Figures, each beside the peer's and its limit, as a table or as JSON.

use core::fmt;

use serde_json::{Value, json};

/// All figures, in the order in which they were measured.
#[derive(Debug, Default)]
pub(crate) struct Report {
    figures: Vec<Figure>,
}

/// One thing that was measured, once or several times.
#[derive(Debug)]
pub(crate) struct Figure {
    name: String,
    unit: Unit,
    /// In ascending order; never empty.
    values: Vec<u64>,
    limit: Option<u64>,
    peer: Option<u64>,
}

/// What a value counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Shown as MB, as the peer's figures are.
    Bytes,
    /// Shown as it is.
    Count,
    /// Shown as milliseconds.
    Nanoseconds,
}

impl Report {
    pub(crate) fn add(&mut self, figure: Figure) {
        // Shown at once as well, since all of it takes minutes.
        eprintln!("  {}: {}", figure.name, figure.shown(figure.median()));
        self.figures.push(figure);
    }

    pub(crate) fn limits_passed(&self) -> Vec<&str> {
        let passed = |figure: &&Figure| figure.limit.is_some_and(|limit| figure.median() >= limit);
        self.figures.iter().filter(passed).map(|figure| figure.name.as_str()).collect()
    }

    pub(crate) fn json(&self) -> Value {
        self.figures.iter().map(Figure::json).collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = ["figure", "min", "median", "max", "limit", "NPD", "NPD/ours"];
        let rows: Vec<[String; 7]> = [header.map(str::to_owned)]
            .into_iter()
            .chain(self.figures.iter().map(Figure::row))
            .collect();
        let widths: [usize; 7] = core::array::from_fn(|column| {
            rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
        });
        for row in &rows {
            let [name, values @ ..] = row;
            write!(f, "{name:<width$}", width = widths[0])?;
            for (value, width) in values.iter().zip(&widths[1..]) {
                write!(f, "  {value:>width$}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

impl Figure {
    pub(crate) fn new(name: impl Into<String>, unit: Unit, mut values: Vec<u64>) -> Self {
        assert!(!values.is_empty(), "a figure is measured at least once");
        values.sort_unstable();
        Self { name: name.into(), unit, values, limit: None, peer: None }
    }

    /// Sets what the median has to stay below.
    pub(crate) fn limit(self, limit: u64) -> Self {
        Self { limit: Some(limit), ..self }
    }

    /// Sets what node-problem-detector needs for the same.
    pub(crate) fn peer(self, peer: u64) -> Self {
        Self { peer: Some(peer), ..self }
    }

    fn min(&self) -> u64 {
        self.values.first().copied().unwrap_or(0)
    }

    fn median(&self) -> u64 {
        self.values.get(self.values.len() / 2).copied().unwrap_or(0)
    }

    fn max(&self) -> u64 {
        self.values.last().copied().unwrap_or(0)
    }

    fn row(&self) -> [String; 7] {
        let shown = |value: Option<u64>| value.map_or_else(String::new, |v| self.shown(v));
        let ratio = |peer: u64| {
            let tenths = peer.saturating_mul(10).checked_div(self.median()).unwrap_or(0);
            format!("{}.{}", tenths / 10, tenths % 10)
        };
        [
            self.name.clone(),
            self.shown(self.min()),
            self.shown(self.median()),
            self.shown(self.max()),
            shown(self.limit),
            shown(self.peer),
            self.peer.map_or_else(String::new, ratio),
        ]
    }

    fn shown(&self, value: u64) -> String {
        match self.unit {
            Unit::Bytes => format!("{} MB", thousandths(value / 1000)),
            Unit::Count => value.to_string(),
            Unit::Nanoseconds => format!("{} ms", thousandths(value / 1000)),
        }
    }

    fn json(&self) -> Value {
        let unit = match self.unit {
            Unit::Bytes => "bytes",
            Unit::Count => "count",
            Unit::Nanoseconds => "ns",
        };
        json!({
            "figure": self.name,
            "unit": unit,
            "min": self.min(),
            "median": self.median(),
            "max": self.max(),
            "limit": self.limit,
            "npd": self.peer,
        })
    }
}

/// Writes a count of thousandths with its point.
fn thousandths(value: u64) -> String {
    format!("{}.{:03}", value / 1000, value % 1000)
}
