//! Tables for people: aligned, wrapped to the terminal, coloured only there.

use std::env;
use std::io::{self, IsTerminal as _};

use comfy_table::{ContentArrangement, Table, presets};

/// Whether a person reads standard output.
#[must_use]
pub fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

fn has_colours() -> bool {
    is_terminal() && env::var_os("NO_COLOR").is_none()
}

/// Returns an empty table with these column heads.
#[must_use]
pub fn new(heads: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(heads.to_vec());
    table.set_content_arrangement(ContentArrangement::Dynamic);
    if let Some(columns) = terminal_columns() {
        table.set_width(columns);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table
}

/// Returns the table as lines without white space at their ends.
#[must_use]
pub fn render(table: &Table) -> String {
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}

/// Returns `text` in the colour of how grave `status` is, where standard output shows colours.
#[must_use]
pub fn coloured(status: &str, text: &str) -> String {
    let code = match status {
        "True" => "31",
        "False" => "32",
        "Unknown" => "33",
        _ => return text.to_owned(),
    };
    if has_colours() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}

fn terminal_columns() -> Option<u16> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0).then_some(size.ws_col)
}
