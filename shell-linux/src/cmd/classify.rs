//! `classify`: what each kernel line would raise, before anything is folded or held.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use fettle_core::bounds::RECORD_MAX;
use fettle_core::node::block::Block;
use fettle_core::node::rules::{Finding, classify};
use fettle_core::wire::kmsg::{Origin, Record};
use fettle_core::wire::scan::Scan;
use serde::Serialize;

use crate::publish::stdout::Format;

/// What to read and how to show it.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// File of raw records (`pri,seq,us,flags;text`) or bare lines; `-` is standard input
    pub file: PathBuf,
    /// Forget everything between two lines
    #[arg(long)]
    pub independent: bool,
}

/// Why lines cannot be classified.
#[derive(Debug, thiserror::Error)]
pub enum ClassifyError {
    /// The lines cannot be read.
    #[error("cannot read {file}")]
    Read {
        /// The file.
        file: PathBuf,
        /// What the operating system says.
        #[source]
        source: io::Error,
    },
    /// The findings cannot be written.
    #[error("cannot write to standard output")]
    Write(#[source] io::Error),
}

/// Classifies each line of the file.
///
/// # Errors
///
/// Says what cannot be read or written.
pub fn run(args: &Args, out: &mut impl Write, format: Format) -> Result<(), ClassifyError> {
    let read_error = |source| ClassifyError::Read { file: args.file.clone(), source };
    let mut input = open(&args.file).map_err(read_error)?;
    if format == Format::Table {
        let heads = ["LINE", "KIND", "NAME", "OBJECT", "MESSAGE"];
        write_row(out, &heads).map_err(ClassifyError::Write)?;
    }
    let mut block = Block::default();
    let mut number = 0_u64;
    while let Some(line) = next_line(&mut input).map_err(read_error)? {
        number = number.saturating_add(1);
        if args.independent {
            block = Block::default();
        }
        let findings = findings_of(&line.bytes, number, &mut block);
        let written = match format {
            Format::Json => write_json(out, number, &line, &findings),
            Format::Table => write_rows(out, number, &findings),
        };
        written.map_err(ClassifyError::Write)?;
    }
    out.flush().map_err(ClassifyError::Write)
}

fn open(file: &Path) -> io::Result<Box<dyn BufRead>> {
    if file.as_os_str() == "-" {
        return Ok(Box::new(io::stdin().lock()));
    }
    Ok(Box::new(BufReader::new(File::open(file)?)))
}

/// One line, as far as a record can be long.
struct Line {
    bytes: Vec<u8>,
    omitted: u64,
}

/// Reads the next line; of one longer than a record only the front is kept.
fn next_line(input: &mut dyn BufRead) -> io::Result<Option<Line>> {
    let mut line = Line { bytes: Vec::new(), omitted: 0 };
    let mut seen = false;
    loop {
        let available = match input.fill_buf() {
            Ok(available) => available,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if available.is_empty() {
            return Ok(seen.then_some(line));
        }
        seen = true;
        let newline = available.iter().position(|byte| *byte == b'\n');
        let part = available.get(..newline.unwrap_or(available.len())).unwrap_or_default();
        let room = RECORD_MAX.saturating_sub(line.bytes.len()).min(part.len());
        let (kept, omitted) = part.split_at_checked(room).unwrap_or((part, &[]));
        line.bytes.extend_from_slice(kept);
        line.omitted =
            line.omitted.saturating_add(u64::try_from(omitted.len()).unwrap_or(u64::MAX));
        let used = part.len().saturating_add(usize::from(newline.is_some()));
        input.consume(used);
        if newline.is_some() {
            return Ok(Some(line));
        }
    }
}

fn findings_of(line: &[u8], number: u64, block: &mut Block) -> Vec<Finding> {
    let mut record = Record::parse(line).unwrap_or_else(|_| Record::bare(without_dmesg_time(line)));
    record.sequence = number;
    if record.origin == Origin::Userspace {
        return Vec::new();
    }
    let mut findings = classify(&record);
    block.complete(&record, &mut findings);
    findings.into_iter().collect()
}

/// Drops `[   12.345678] ` from the front, as `dmesg` prints it.
fn without_dmesg_time(line: &[u8]) -> &[u8] {
    let mut scan = Scan::new(line);
    let time = (|| {
        scan.literal(b"[")?;
        let _ = scan.run(|byte| *byte == b' ');
        scan.number()?;
        scan.literal(b".")?;
        scan.number()?;
        scan.literal(b"]")?;
        // With CONFIG_PRINTK_CALLER the task or processor follows: `[    T1]`.
        if scan.literal(b"[").is_some() {
            scan.run(|byte| byte.is_ascii_alphanumeric() || *byte == b' ')?;
            scan.literal(b"]")?;
        }
        scan.literal(b" ")
    })();
    if time.is_some() { scan.rest() } else { line }
}

/// What one line raises.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Raised<'a> {
    line: u64,
    findings: Vec<Raise<'a>>,
    #[serde(skip_serializing_if = "is_zero")]
    omitted_bytes: u64,
}

/// One condition or event.
#[derive(Serialize)]
struct Raise<'a> {
    kind: &'static str,
    name: &'static str,
    reason: &'static str,
    object: Option<&'a str>,
    message: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn raises(finding: &Finding) -> Vec<Raise<'_>> {
    let object = finding.object.as_str();
    let raise = |kind, name, reason| Raise {
        kind,
        name,
        reason,
        object: (!object.is_empty()).then_some(object),
        message: finding.to_string(),
    };
    let condition = finding.detail.condition().map(|condition| condition.row());
    let event = finding.detail.event().map(|event| event.row());
    let condition = condition.map(|row| raise("condition", row.name, row.problem));
    condition.into_iter().chain(event.map(|row| raise("event", row.name, row.name))).collect()
}

fn write_json(
    out: &mut impl Write,
    number: u64,
    line: &Line,
    findings: &[Finding],
) -> io::Result<()> {
    let findings = findings.iter().flat_map(raises).collect();
    let raised = Raised { line: number, findings, omitted_bytes: line.omitted };
    serde_json::to_writer(&mut *out, &raised)?;
    writeln!(out)
}

fn write_rows(out: &mut impl Write, number: u64, findings: &[Finding]) -> io::Result<()> {
    for raise in findings.iter().flat_map(raises) {
        let object = raise.object.unwrap_or("-");
        write_row(out, &[&number.to_string(), raise.kind, raise.name, object, &raise.message])?;
    }
    Ok(())
}

/// Columns are as wide as the longest name that the catalogue has, so that lines need not wait.
fn write_row(out: &mut impl Write, row: &[&str; 5]) -> io::Result<()> {
    let [line, kind, name, object, message] = row;
    writeln!(out, "{line:>6}  {kind:<9}  {name:<28}  {object:<20}  {message}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_where_a_record_would_end() {
        let long = [b'x'; RECORD_MAX + 3];
        let text = [&long[..], b"\nshort"].concat();
        let mut input: Box<dyn BufRead> = Box::new(BufReader::with_capacity(100, &text[..]));
        let first = next_line(&mut *input).unwrap().unwrap();
        assert_eq!((first.bytes.len(), first.omitted), (RECORD_MAX, 3));
        assert_eq!(next_line(&mut *input).unwrap().unwrap().bytes, b"short");
        assert!(next_line(&mut *input).unwrap().is_none());
    }

    #[test]
    fn the_time_of_dmesg_is_dropped() {
        for (line, want) in [
            ("[    5.123456] a", "a"),
            ("[12345.000001] [x] a", "[x] a"),
            ("[    5.123456][    T1] a", "a"),
            ("[    5.123456][   C12] a", "a"),
            ("[Hardware Error]: a", "[Hardware Error]: a"),
            ("[5.1]a", "[5.1]a"),
        ] {
            assert_eq!(without_dmesg_time(line.as_bytes()), want.as_bytes());
        }
    }

    #[test]
    fn lines_of_one_fault_know_each_other_unless_they_are_independent() {
        let lines = "NVRM: The NVIDIA GPU 0000:b3:00.0\n\
                     NVRM: (PCI ID: 10de:26b5) installed in this system has\n\
                     NVRM: fallen off the bus and is not responding to commands.\n";
        for (independent, object) in [(false, "\"0000:b3:00\""), (true, "null")] {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(lines.as_bytes()).unwrap();
            let args = Args { file: file.path().to_owned(), independent };
            let mut out = Vec::new();
            run(&args, &mut out, Format::Json).unwrap();
            let out = String::from_utf8(out).unwrap();
            assert!(out.lines().nth(2).unwrap().contains(&format!("\"object\":{object}")), "{out}");
        }
    }
}
