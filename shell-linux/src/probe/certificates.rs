//! Certificates in files: each one of a bundle, without those that were rotated out.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use ::glob::Pattern;
use fettle_core::bounds::SUBJECT_MAX;
use fettle_core::catalog::ReadingKind;
use fettle_core::node::checks::Outcome;
use fettle_core::node::reading::{Certificate, Reading};
use fettle_core::text::Text;
use fettle_core::time::Timestamp;
use rustls_pki_types::pem::{self, PemObject as _, SectionKind};
use x509_cert::certificate::{CertificateInner, Raw};
use x509_cert::der::Decode as _;
use x509_cert::time::Time;

use crate::probe::Probe;
use crate::probe::batch::{Batch, failed};
use crate::probe::rows::Rows;
use crate::sys::glob::Search;
use crate::sys::root::{Root, is_absent};

/// Reads the certificates in the files that match patterns.
///
/// A pattern that never matched anything is none of this node's. Once something matched, it is a
/// fault that nothing does.
#[derive(Debug)]
pub struct Certificates {
    root: Root,
    watched: Vec<Watched>,
    wall: fn() -> Timestamp,
    rows: Vec<CertRow>,
}

/// A certificate, or a file that could not be read, for the report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CertRow {
    /// The file; followed by `#` and its number for each further certificate in it.
    pub path: String,
    /// Where the file leads, if it is a link.
    pub target: Option<String>,
    /// Whom it is for.
    pub subject: Option<String>,
    /// Who signed it.
    pub issuer: Option<String>,
    /// Its serial number, in hexadecimal.
    pub serial: Option<String>,
    /// From when it is valid.
    pub not_before: Option<Timestamp>,
    /// Until when it is valid.
    pub not_after: Option<Timestamp>,
    /// Why it could not be read.
    pub error: Option<String>,
}

#[derive(Debug)]
struct Watched {
    pattern: Pattern,
    expected: bool,
}

impl Certificates {
    /// Reads files below `root`; `expected` if it is a fault from the start that a pattern matches
    /// nothing.
    #[must_use]
    pub fn new(
        root: PathBuf,
        patterns: Vec<Pattern>,
        expected: bool,
        wall: fn() -> Timestamp,
    ) -> Self {
        let watched = patterns.into_iter().map(|pattern| Watched { pattern, expected }).collect();
        Self { root: Root::new(root), watched, wall, rows: Vec::new() }
    }

    /// Returns what the last run read.
    #[must_use]
    pub fn rows(&self) -> &[CertRow] {
        &self.rows
    }

    /// Looks for files by every pattern, without reading one.
    fn search(&mut self) -> Found {
        let mut found = Found::default();
        for watched in &mut self.watched {
            let mut search = Search::new(&self.root, NAMES_MAX);
            search.add(&watched.pattern);
            if !search.found.is_empty() {
                watched.expected = true;
            } else if watched.expected && search.problems.is_empty() {
                found.missing.push(watched.pattern.to_string());
            }
            found.files.append(&mut search.found);
            found.problems.append(&mut search.problems);
            found.omitted = found.omitted.saturating_add(search.omitted);
        }
        found.files = without_history(&self.root, found.files);
        found
    }
}

impl Probe for Certificates {
    fn read(&mut self, batch: &mut Batch) -> Outcome {
        let found = self.search();
        self.rows.clear();
        if found.files.is_empty() && found.missing.is_empty() && found.omitted == 0 {
            return match found.problems.first() {
                Some((path, problem)) => failed(&format!("{}: {problem}", path.display())),
                None => Outcome::NotApplicable,
            };
        }
        let (root, now, rows) = (&self.root, (self.wall)(), &mut self.rows);
        let mut run = Run { root, now, batch, rows, omitted: found.omitted };
        for (path, problem) in &found.problems {
            run.unreadable(Place::first(path), &problem);
        }
        for pattern in &found.missing {
            run.unreadable(Place::first(Path::new(pattern)), &"no file is there that matches");
        }
        for path in found.files.iter().take(FILES_MAX) {
            run.read_file(path);
        }
        let left = found.files.len().saturating_sub(FILES_MAX);
        run.omitted = run.omitted.saturating_add(u64::try_from(left).unwrap_or(u64::MAX));
        run.end();
        Outcome::Complete
    }

    fn document(&self, rows: &mut Rows) {
        rows.certificates = Some(self.rows.clone());
    }

    fn kind(&self) -> ReadingKind {
        ReadingKind::Certificates
    }
}

/// What a search found.
#[derive(Default)]
struct Found {
    files: BTreeSet<PathBuf>,
    missing: Vec<String>,
    omitted: u64,
    problems: Vec<(PathBuf, io::Error)>,
}

/// One run, from the first file to the last.
struct Run<'a> {
    root: &'a Root,
    now: Timestamp,
    batch: &'a mut Batch,
    rows: &'a mut Vec<CertRow>,
    omitted: u64,
}

/// A file and the number of a block in it, from 1 on.
#[derive(Clone, Copy)]
struct Place<'a> {
    path: &'a Path,
    number: usize,
}

impl Run<'_> {
    fn read_file(&mut self, path: &Path) {
        match self.root.read(path, FILE_BYTES_MAX) {
            Ok(bytes) => self.read_blocks(path, &bytes),
            Err(problem) if is_absent(&problem) => {
                // What is gone since it was found is none; a link is there, and leads nowhere.
                if self.root.link(path).is_some() {
                    self.unreadable(Place::first(path), &"the link leads nowhere");
                }
            }
            Err(problem) => self.unreadable(Place::first(path), &problem),
        }
    }

    /// Reads one block after the other. Keys are dropped at once.
    fn read_blocks(&mut self, path: &Path, bytes: &[u8]) {
        let (mut number, mut others, mut has_key) = (0, 0, false);
        for block in <(SectionKind, Vec<u8>)>::pem_slice_iter(bytes) {
            let kind = block.as_ref().map(|(kind, _)| *kind).ok();
            if kind.is_some_and(|kind| kind != SectionKind::Certificate) {
                others += 1;
                has_key |= kind.is_some_and(is_private_key);
                continue;
            }
            number += 1;
            let place = Place { path, number };
            match block {
                Ok((_, der)) => self.read_certificate(place, &der),
                Err(problem) => self.unreadable(place, &broken(&problem)),
            }
        }
        let begun = begun(bytes);
        if begun > number {
            let place = Place { path, number: number + 1 };
            let more = begun - number;
            return self.unreadable(place, &format_args!("{more} certificates are not whole"));
        }
        if number > 0 || (has_key && path.extension() == Some(OsStr::new("key"))) {
            return;
        }
        let place = Place::first(path);
        match bytes {
            [] => self.unreadable(place, &"is empty"),
            // No PEM, but DER begins so.
            [0x30, ..] if others == 0 => self.read_certificate(place, bytes),
            _ if has_key => self.unreadable(place, &"holds a key and no certificate"),
            _ => self.unreadable(place, &"holds no certificate"),
        }
    }

    fn read_certificate(&mut self, place: Place<'_>, der: &[u8]) {
        if self.rows.len() >= ROWS_MAX {
            self.omitted = self.omitted.saturating_add(1);
            return;
        }
        // `Raw` takes serial numbers that RFC 5280 forbids: they expire like others.
        let certificate = match CertificateInner::<Raw>::from_der(der) {
            Ok(certificate) => certificate,
            Err(problem) => {
                return self.unreadable(place, &format_args!("is no certificate: {problem}"));
            }
        };
        let certificate = certificate.tbs_certificate();
        let subject = shown(certificate.subject());
        let not_before = seconds(certificate.validity().not_before);
        let not_after = seconds(certificate.validity().not_after);
        let (path, subject_text) = (&place.object(), &*subject);
        self.batch.push(&Reading::Certificate(Certificate {
            path,
            subject: subject_text,
            not_before,
            not_after,
            now: self.now,
        }));
        self.rows.push(CertRow {
            subject: Some(subject),
            issuer: Some(shown(certificate.issuer())),
            serial: Some(shown(Hexadecimal(certificate.serial_number().as_bytes()))),
            not_before: Some(not_before),
            not_after: Some(not_after),
            ..self.row(place)
        });
    }

    fn unreadable(&mut self, place: Place<'_>, why: &dyn fmt::Display) {
        if self.rows.len() >= ROWS_MAX {
            self.omitted = self.omitted.saturating_add(1);
            return;
        }
        let why = shown(why);
        self.batch.push_unreadable(&place.object(), &why);
        self.rows.push(CertRow { error: Some(why), ..self.row(place) });
    }

    fn row(&self, place: Place<'_>) -> CertRow {
        let target = self.root.link(place.path);
        let target = target.map(|target| shown(target.display()));
        CertRow { path: place.to_string(), target, ..CertRow::default() }
    }

    fn end(&mut self) {
        if self.omitted > 0 {
            let why = format!("{} more files or certificates are not read", self.omitted);
            self.batch.push_unreadable("certificates", &why);
            let path = "certificates".to_owned();
            self.rows.push(CertRow { path, error: Some(why), ..CertRow::default() });
        }
    }
}

impl<'a> Place<'a> {
    const fn first(path: &'a Path) -> Self {
        Self { path, number: 1 }
    }

    /// Returns the name of the object, short enough that the core does not cut it: then two of one
    /// long path would be one. The end of a path tells more than its front.
    fn object(self) -> String {
        let name = self.to_string();
        if name.len() <= SUBJECT_MAX {
            return name;
        }
        let from = name.ceil_char_boundary(name.len() + ELLIPSIS.len() - SUBJECT_MAX);
        format!("{ELLIPSIS}{}", name.get(from..).unwrap_or_default())
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if self.number > 1 { write!(f, "#{}", self.number) } else { Ok(()) }
    }
}

/// Takes out what was rotated out: where `NAME-current.pem` is a link, other `NAME-*.pem` (H15).
fn without_history(root: &Root, files: BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
    let mut currents = BTreeMap::new();
    let mut is_history = |path: &PathBuf| {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return false;
        };
        let fronts =
            currents.entry(folder.to_owned()).or_insert_with(|| current_fronts(root, folder));
        let name = name.as_bytes();
        let rotates = name.ends_with(b".pem") && !name.ends_with(CURRENT);
        rotates && fronts.iter().any(|front| name.starts_with(front))
    };
    files.into_iter().filter(|path| !is_history(path)).collect()
}

/// Returns `NAME-` of each link `NAME-current.pem` in a folder.
fn current_fronts(root: &Root, folder: &Path) -> Vec<Vec<u8>> {
    let names = root.names(folder, NAMES_MAX).unwrap_or_default();
    let is_link = |name: &&OsStr| root.link(&folder.join(name)).is_some();
    let names = names.kept.iter().map(|name| name.as_os_str());
    let links = names.filter(|name| name.as_bytes().ends_with(CURRENT)).filter(is_link);
    links
        .filter_map(|name| name.as_bytes().strip_suffix(&CURRENT[1..]))
        .map(<[u8]>::to_vec)
        .collect()
}

/// Counts the lines that begin a certificate, also of kinds and forms that the PEM reader passes
/// over in silence.
fn begun(bytes: &[u8]) -> usize {
    let lines = bytes.split(|byte| matches!(byte, b'\n' | b'\r'));
    let lines = lines.map(|line| line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line).trim_ascii());
    let begins =
        |line: &&[u8]| line.starts_with(b"-----BEGIN ") && line.ends_with(b"CERTIFICATE-----");
    lines.filter(begins).count()
}

const fn is_private_key(kind: SectionKind) -> bool {
    matches!(kind, SectionKind::PrivateKey | SectionKind::RsaPrivateKey | SectionKind::EcPrivateKey)
}

/// Says what is wrong with a block, without a byte of it: it may be a key.
const fn broken(problem: &pem::Error) -> &'static str {
    match problem {
        pem::Error::MissingSectionEnd { .. } => "the block has no end",
        pem::Error::IllegalSectionStart { .. } => "the block has no proper beginning",
        pem::Error::Base64Decode(_) => "the block is no base64",
        pem::Error::Io(_) | pem::Error::NoItemsFound | pem::Error::SectionTooLarge | _ => {
            "the block cannot be read"
        }
    }
}

fn seconds(time: Time) -> Timestamp {
    let since_epoch = time.to_unix_duration().as_secs();
    Timestamp::from_unix_secs(i64::try_from(since_epoch).unwrap_or(i64::MAX))
}

/// Returns text that is safe to show and not too long. Whoever signs a certificate chooses its
/// names.
fn shown(value: impl fmt::Display) -> String {
    Text::<SHOWN_MAX>::display(value).as_str().to_owned()
}

struct Hexadecimal<'a>(&'a [u8]);

impl fmt::Display for Hexadecimal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

const CURRENT: &[u8] = b"-current.pem";

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

const ELLIPSIS: &str = "…";

/// A bundle of all public roots has 250 KB.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// A control plane has some 20.
const FILES_MAX: usize = 256;

/// A bundle of all public roots has some 150 certificates.
const ROWS_MAX: usize = 512;

/// Folders hold a rotated file for each rotation: 24 years of one in two days.
const NAMES_MAX: usize = 4096;

/// A common name has at most 64 characters (RFC 5280, "Upper Bounds"): room for several parts.
const SHOWN_MAX: usize = 256;

#[cfg(test)]
mod tests;
