//! `report`: the documents of the health report, read once and as the agent writes them.

mod people;

use std::io::{self, Write};
use std::path::PathBuf;

use fettle_core::catalog::ReadingKind;
use fettle_core::node::report::Header;

use crate::clock;
use crate::config::Config;
use crate::probe::place::PlaceArgs;
use crate::probe::rows::{Document, Rows};
use crate::probe::runner::Runner;
use crate::probe::{self, role};
use crate::publish::stdout::Format;

/// What to report.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Document to print; without it, every one
    #[arg(value_enum)]
    pub document: Option<Document>,
    /// The configuration; by default /etc/fettle/agent.yaml if there is one
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where the node and the agent's own files are.
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Runs each probe that the documents need, once, and prints them.
///
/// # Errors
///
/// Returns why `out` cannot be written to.
pub async fn run(
    args: &Args,
    config: &Config,
    out: &mut impl Write,
    format: Format,
) -> io::Result<()> {
    let wanted = |document: &Document| args.document.is_none_or(|only| only == *document);
    let documents: Vec<_> = Document::ALL.into_iter().filter(wanted).collect();
    let place = args.place.place(true);
    let kinds: Vec<_> = documents.iter().flat_map(|document| kinds(*document)).copied().collect();
    let mut probes = probe::all(&place, config);
    probes.retain(|probe| kinds.contains(&probe.kind()));
    let rows = read(Runner::new(probes), &kinds).await;
    let role = role::read(config.role, &place.root);
    let header = Header { updated_at: clock::wall(), role };
    let written = documents.iter().map(|document| (*document, rows.write(*document, &header)));
    let written: Vec<_> = written.collect();
    match format {
        Format::Json => write_json(out, &written, args.document.is_some()),
        Format::Table => people::write(out, &written),
    }
}

/// Returns what a document needs to be read.
const fn kinds(document: Document) -> &'static [ReadingKind] {
    match document {
        Document::Storage => &[ReadingKind::FileSystems],
        Document::Disks => &[ReadingKind::Disks],
        Document::Certs => &[ReadingKind::Certificates],
        Document::Tamper => &[ReadingKind::SealedLayers, ReadingKind::ProtectedFiles],
        Document::Services => &[],
    }
}

/// Reads every kind at the same time; what does not come back in time is a row that says so.
async fn read(mut runner: Runner, kinds: &[ReadingKind]) -> Rows {
    let now = clock::stamp().at;
    let mut rows = Rows::default();
    let mut outstanding = kinds.len();
    let mut ended: Vec<_> = kinds.iter().filter_map(|kind| runner.start(now, *kind)).collect();
    loop {
        outstanding = outstanding.saturating_sub(ended.len());
        ended.drain(..).for_each(|finished| rows.replace(finished.rows));
        if outstanding == 0 {
            return rows;
        }
        ended.extend(runner.next_in_time().await);
    }
}

/// Writes the documents side by side in one object, or the only one as it is.
fn write_json(
    out: &mut impl Write,
    documents: &[(Document, Vec<u8>)],
    is_only_one: bool,
) -> io::Result<()> {
    let mut before = "{";
    for (document, bytes) in documents {
        if !is_only_one {
            write!(out, "{before}\"{}\":", document.name())?;
            before = ",";
        }
        out.write_all(bytes)?;
    }
    writeln!(out, "{}", if is_only_one { "" } else { "}" })
}

#[cfg(test)]
mod tests;
