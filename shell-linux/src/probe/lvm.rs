//! Volume groups and thin pools, as the node's own `vgs` and `lvs` report them.
//!
//! Not a probe: the check of the file systems asks for it.

use core::time::Duration;
use std::path::{Path, PathBuf};

use fettle_core::node::reading::{Reading, ThinPool, VolumeGroup};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::errors::chain;
use crate::probe::batch::Batch;
use crate::sys::program::{self, Limits, ProgramError, Stuck};
use crate::sys::root::{Kind, Root};

/// The volume groups of the node.
///
/// A node without the programs has none. Where there were some, or where there should be some,
/// it is a fault that there are none.
#[derive(Debug)]
pub struct Lvm {
    root: Root,
    folders: Vec<PathBuf>,
    expected: bool,
    seen: bool,
    groups: Vec<Group>,
    stuck: Option<Stuck>,
}

/// A volume group, for the report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// All of its space, and the space in no volume; `None` if the program did not say.
    pub size_bytes: Option<u64>,
    /// See `size_bytes`.
    pub free_bytes: Option<u64>,
    /// Its thin pools.
    pub pools: Vec<Pool>,
    /// Why it could not be read.
    pub error: Option<String>,
}

/// A thin pool, for the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// Its name, without the group's.
    pub name: String,
    /// Whether it is in use; the kernel knows nothing of one that is not.
    pub active: bool,
    /// All of its space for data.
    pub size_bytes: Option<u64>,
    /// Data that is used, in hundredths of a percent.
    pub data_pct_hundredths: Option<u32>,
    /// Metadata that is used, in hundredths of a percent.
    pub metadata_pct_hundredths: Option<u32>,
}

/// Why no volume group could be read.
#[derive(Debug, thiserror::Error)]
pub enum LvmError {
    /// What a program printed is no report.
    #[error("{program} printed no report that can be read")]
    Report {
        /// The program.
        program: &'static str,
        /// What is wrong with it.
        #[source]
        problem: serde_json::Error,
    },
    /// A program failed.
    #[error("{program} failed")]
    Run {
        /// The program.
        program: &'static str,
        /// How.
        #[source]
        problem: ProgramError,
    },
    /// A program of an earlier run has not ended.
    #[error("a program of an earlier run does not end, although it was killed")]
    Stuck,
}

impl Lvm {
    /// Reads the volume groups of the node below `root`; `expected` if there should be some.
    #[must_use]
    pub fn new(root: PathBuf, expected: bool) -> Self {
        let folders = FOLDERS.iter().map(PathBuf::from).collect();
        let root = Root::new(root);
        Self { root, folders, expected, seen: false, groups: Vec::new(), stuck: None }
    }

    /// Reads every volume group and every active thin pool; returns how many readings that made.
    ///
    /// The programs are run only where the root is the agent's own: those of another root would
    /// need its libraries and devices.
    ///
    /// # Errors
    ///
    /// Returns why there is no report. Then nothing was appended to `batch`.
    pub fn read(&mut self, batch: &mut Batch) -> Result<usize, LvmError> {
        self.groups.clear();
        let read = self.read_all(batch);
        if let Err(problem) = &read {
            self.groups.push(Group::unread(chain(problem)));
        }
        read
    }

    fn read_all(&mut self, batch: &mut Batch) -> Result<usize, LvmError> {
        if self.stuck.as_mut().is_some_and(|stuck| !stuck.is_over()) {
            return Err(LvmError::Stuck);
        }
        self.stuck = None;
        if !self.root.is_own() {
            return Ok(self.missing(batch, "the programs of another root are not run"));
        }
        let Some(vgs) = self.program("vgs") else {
            return Ok(self.missing(batch, "there is no program vgs"));
        };
        let [VgReport { vg }] = self.run("vgs", &vgs, &VGS)?;
        if vg.is_empty() {
            return Ok(self.missing(batch, "there is no volume group"));
        }
        let [LvReport { lv }] = self.run("lvs", &vgs.with_file_name("lvs"), &LVS)?;
        self.seen = true;
        let omitted = vg.len().saturating_sub(GROUPS_MAX) + lv.len().saturating_sub(POOLS_MAX);
        self.groups = vg.into_iter().take(GROUPS_MAX).map(Group::from).collect();
        for row in lv.into_iter().take(POOLS_MAX).filter(LvRow::is_thin_pool) {
            if let Some(group) = self.groups.iter_mut().find(|group| group.name == row.vg_name) {
                group.pools.push(Pool::from(row));
            }
        }
        let mut count = push(batch, &self.groups);
        if omitted > 0 {
            let why = format!("{omitted} more volume groups or thin pools are not read");
            batch.push_unreadable(LVM, &why);
            self.groups.push(Group::unread(why));
            count += 1;
        }
        Ok(count)
    }

    /// Returns what the last run read.
    #[must_use]
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Says that there is nothing, where there was or should be something.
    fn missing(&mut self, batch: &mut Batch, why: &str) -> usize {
        if !self.expected && !self.seen {
            return 0;
        }
        batch.push_unreadable(LVM, why);
        self.groups.push(Group::unread(why.to_owned()));
        1
    }

    fn program(&self, name: &str) -> Option<PathBuf> {
        let mut paths = self.folders.iter().map(|folder| folder.join(name));
        paths.find(|path| matches!(self.root.kind(path), Ok(Kind::File { .. })))
    }

    fn run<T: DeserializeOwned>(
        &mut self,
        program: &'static str,
        path: &Path,
        arguments: &[&str],
    ) -> Result<[T; 1], LvmError> {
        let printed = program::run(path, arguments, LIMITS).map_err(|mut problem| {
            self.stuck = problem.take_stuck();
            LvmError::Run { program, problem }
        })?;
        let report: Report<T> = serde_json::from_slice(&printed)
            .map_err(|problem| LvmError::Report { program, problem })?;
        Ok(report.report)
    }
}

/// What `--reportformat json` prints.
#[derive(Debug, Deserialize)]
struct Report<T> {
    report: [T; 1],
}

#[derive(Debug, Deserialize)]
struct VgReport {
    vg: Vec<VgRow>,
}

#[derive(Debug, Deserialize)]
struct LvReport {
    lv: Vec<LvRow>,
}

/// Every value is text; what is not known is empty.
#[derive(Debug, Deserialize)]
struct VgRow {
    vg_name: String,
    vg_size: String,
    vg_free: String,
}

#[derive(Debug, Deserialize)]
struct LvRow {
    vg_name: String,
    lv_name: String,
    lv_attr: String,
    lv_size: String,
    data_percent: String,
    metadata_percent: String,
}

impl LvRow {
    /// `lvs(8)`, "Attributes": the first letter is the type, the fifth the state.
    fn is_thin_pool(&self) -> bool {
        self.lv_attr.starts_with('t')
    }

    fn is_active(&self) -> bool {
        self.lv_attr.as_bytes().get(4).is_some_and(|state| *state != b'-')
    }
}

impl Group {
    /// Returns the row that says why volume groups could not be read.
    fn unread(why: String) -> Self {
        Self { name: LVM.to_owned(), error: Some(why), ..Self::default() }
    }
}

impl From<VgRow> for Group {
    fn from(row: VgRow) -> Self {
        let size_bytes = row.vg_size.parse().ok();
        let free_bytes = row.vg_free.parse().ok();
        Self { name: row.vg_name, size_bytes, free_bytes, ..Self::default() }
    }
}

impl From<LvRow> for Pool {
    fn from(row: LvRow) -> Self {
        Self {
            active: row.is_active(),
            size_bytes: row.lv_size.parse().ok(),
            data_pct_hundredths: hundredths(&row.data_percent),
            metadata_pct_hundredths: hundredths(&row.metadata_percent),
            name: row.lv_name,
        }
    }
}

/// Appends a reading for each group and each pool; returns how many.
fn push(batch: &mut Batch, groups: &[Group]) -> usize {
    let mut count = 0;
    for group in groups {
        push_group(batch, group);
        // Nothing can be written to a pool that is not active, and nobody knows how full it is.
        let active = group.pools.iter().filter(|pool| pool.active);
        count += 1 + active.map(|pool| push_pool(batch, group, pool)).count();
    }
    count
}

fn push_group(batch: &mut Batch, group: &Group) {
    let name = group.name.as_str();
    match (group.size_bytes, group.free_bytes) {
        (Some(size_bytes), Some(free_bytes)) => {
            batch.push(&Reading::VolumeGroup(VolumeGroup { name, size_bytes, free_bytes }));
        }
        _ => batch.push_unreadable(name, "vgs does not say how large it is and what is free"),
    }
}

fn push_pool(batch: &mut Batch, group: &Group, pool: &Pool) {
    let name = format!("{}/{}", group.name, pool.name);
    match (pool.data_pct_hundredths, pool.metadata_pct_hundredths) {
        (Some(data_pct_hundredths), Some(metadata_pct_hundredths)) => {
            let name = name.as_str();
            batch.push(&Reading::ThinPool(ThinPool {
                name,
                data_pct_hundredths,
                metadata_pct_hundredths,
            }));
        }
        _ => batch.push_unreadable(&name, "lvs does not say how full it is, although it is active"),
    }
}

/// Reads a percentage with at most two decimals.
fn hundredths(text: &str) -> Option<u32> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(part) || part.len() > 2 {
        return None;
    }
    let part = part.parse::<u32>().ok()? * if part.len() == 1 { 10 } else { 1 };
    whole.parse::<u32>().ok()?.checked_mul(100)?.checked_add(part)
}

/// What stands for all volume groups.
const LVM: &str = "LVM";

/// Where distributions put the programs; there is no `PATH` to search.
const FOLDERS: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];

const VGS: [&str; 7] =
    ["--reportformat", "json", "--units", "b", "--nosuffix", "-o", "vg_name,vg_size,vg_free"];

const LVS: [&str; 9] = [
    "--reportformat",
    "json",
    "--units",
    "b",
    "--nosuffix",
    "--select",
    "segtype=thin-pool",
    "-o",
    "vg_name,lv_name,lv_attr,lv_size,data_percent,metadata_percent",
];

/// Both programs end within a second, unless somebody holds a lock or a disk hangs; both together
/// stay below the deadline of a probe.
const LIMITS: Limits = Limits { deadline: Duration::from_secs(6), bytes_max: 1024 * 1024 };

/// More than the physical volumes of any node; most have one group.
const GROUPS_MAX: usize = 256;

/// Most groups have one thin pool.
const POOLS_MAX: usize = 256;

#[cfg(test)]
mod tests;
