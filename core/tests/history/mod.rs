//! Histories of the agent for property tests: what happens, in which order, and when.

#![allow(clippy::disallowed_methods, reason = "tests may panic")]

use core::time::Duration;

use fettle_core::catalog::{CONDITIONS, Clear, ConditionType, ReadingKind};
use fettle_core::node::agent::{Input, RestartResult, Settings};
use fettle_core::node::checks::Outcome;
use fettle_core::node::judge::deadlock::TaskState;
use fettle_core::node::reading::{
    ActiveState, Attachment, Cni, CniHealth, Disk, Drive, FileSystem, KubeletHealth, Layer,
    Reading, RuntimeHealth, Unit, UnitDuty, Unreadable,
};
use fettle_core::node::repair::{Ended, Mode};
use fettle_core::text::Text;
use fettle_core::time::Instant;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// One thing that happens to an agent.
#[derive(Debug, Clone)]
pub(crate) struct Happening {
    /// When; never before the one before it.
    pub(crate) now: Instant,
    what: What,
}

#[derive(Debug, Clone)]
enum What {
    Mounts(Vec<u8>),
    Plain(Box<Input<'static>>),
    Record(Vec<u8>),
}

impl Happening {
    /// Returns it as the agent takes it.
    pub(crate) fn input(&self) -> Input<'_> {
        match &self.what {
            What::Mounts(table) => Input::Mounts(table),
            What::Plain(input) => Input::clone(input),
            What::Record(bytes) => Input::Record(bytes),
        }
    }
}

/// Makes histories in which every kind of input is common.
pub(crate) fn histories() -> impl Strategy<Value = Vec<Happening>> {
    let gap_ms = prop_oneof![4 => Just(0), 4 => 0..20_000_u64, 1 => 0..8_000_000_u64];
    vec((gap_ms, draft()), 0..64).prop_map(|drafts| {
        let (mut now, mut sequence) = (Instant::default(), 0);
        let happening = |(gap_ms, draft): (u64, Draft)| {
            now = now + Duration::from_millis(gap_ms);
            Happening { now, what: draft.write(&mut sequence) }
        };
        drafts.into_iter().map(happening).collect()
    })
}

/// Makes histories of services alone, of an agent that probes and repairs them.
pub(crate) fn service_histories() -> impl Strategy<Value = Vec<Happening>> {
    let kinds = vec![ReadingKind::Cri, ReadingKind::KubeletHealthz, ReadingKind::Units];
    let ended = (select(kinds), outcome());
    let input = prop_oneof![
        service().prop_map(|(kind, reading)| Input::Reading { kind, reading }),
        ended.prop_map(|(kind, outcome)| Input::CheckEnded { kind, outcome }),
        restart_ended(),
    ];
    let mut settings = Settings::default();
    settings.schedule.probes = [true; ReadingKind::COUNT];
    vec((0..40_000_u64, input), 0..128).prop_map(move |steps| {
        let mut now = Instant::default();
        let started = (0, Input::Started(settings.clone()));
        let happening = |(gap_ms, input)| {
            now = now + Duration::from_millis(gap_ms);
            Happening { now, what: What::Plain(Box::new(input)) }
        };
        [started].into_iter().chain(steps).map(happening).collect()
    })
}

/// Makes texts of records: those of the corpus, whole and broken, and any bytes.
pub(crate) fn texts() -> impl Strategy<Value = Vec<u8>> {
    let line = || select(lines()).prop_map(|line| line.as_bytes().to_vec());
    let cut = (line(), any::<Index>()).prop_map(|(mut line, at)| {
        line.truncate(at.index(line.len() + 1));
        line
    });
    let replaced = (line(), any::<Index>(), any::<u8>()).prop_map(|(mut line, at, byte)| {
        let at = at.index(line.len());
        line[at] = byte;
        line
    });
    let joined = (line(), line()).prop_map(|(a, b)| [a, b].concat());
    prop_oneof![6 => line(), 1 => cut, 1 => replaced, 1 => joined, 1 => any::<Vec<u8>>()]
}

/// Makes mount tables of devices that the corpus names, and any bytes.
pub(crate) fn tables() -> impl Strategy<Value = Vec<u8>> {
    let line = (
        select(vec!["sda1", "sda4", "loop0", "dm-17", "sdb"]),
        select(vec!["0", "3", "-"]),
        select(vec!["/", "/var/lib/kubelet/pods/u/v", "/mnt"]),
        select(vec!["rw", "ro", "rw,emergency_ro"]),
    )
        .prop_map(|(name, errors, point, options)| {
            format!("{name} {errors} 1 2 8:1 / {point} rw - ext4 /dev/{name} {options}\n")
        });
    let table = vec(line, 0..8).prop_map(|lines| lines.concat().into_bytes());
    prop_oneof![9 => table, 1 => any::<Vec<u8>>()]
}

/// A happening before it is known when and with which number.
#[derive(Debug, Clone)]
enum Draft {
    Final(What),
    /// A record, `lost` others before it, by the writer that `priority` names.
    Record {
        lost: u64,
        priority: u8,
        text: Vec<u8>,
    },
}

impl Draft {
    fn write(self, sequence: &mut u64) -> What {
        match self {
            Self::Final(what) => what,
            Self::Record { lost, priority, text } => {
                *sequence += lost;
                let prefix = format!("{priority},{sequence},7,-;");
                What::Record([prefix.into_bytes(), text].concat())
            }
        }
    }
}

fn draft() -> impl Strategy<Value = Draft> {
    let lost = prop_oneof![1 => Just(0_u64), 8 => Just(1), 1 => 2..5000_u64];
    let priority = prop_oneof![4 => 0..8_u8, 1 => any::<u8>()];
    let record = (lost, priority, texts()).prop_map(|(lost, priority, text)| Draft::Record {
        lost,
        priority,
        text,
    });
    let broken = any::<Vec<u8>>().prop_map(|bytes| Draft::Final(What::Record(bytes)));
    let mounts = tables().prop_map(|table| Draft::Final(What::Mounts(table)));
    let plain = plain().prop_map(|input| Draft::Final(What::Plain(Box::new(input))));
    prop_oneof![10 => record, 1 => broken, 2 => mounts, 6 => plain]
}

fn plain() -> impl Strategy<Value = Input<'static>> {
    let clear = (select(&CONDITIONS[..]), "[ -~]{0,80}").prop_map(|(row, by)| Input::ClearByHand {
        by: Text::from_bytes(by.as_bytes()),
        condition: row.condition,
    });
    prop_oneof![
        clear,
        Just(Input::LogCaughtUp),
        any::<i32>().prop_map(|errno| Input::LogDown { errno }),
        Just(Input::LogOverrun),
        Just(Input::MountsUnreadable),
        (kind(), reading()).prop_map(|(kind, reading)| Input::Reading { kind, reading }),
        service().prop_map(|(kind, reading)| Input::Reading { kind, reading }),
        restart_ended(),
        (kind(), outcome()).prop_map(|(kind, outcome)| Input::CheckEnded { kind, outcome }),
        settings().prop_map(Input::Started),
        Just(Input::Stopping),
        (select(pids()), task()).prop_map(|(pid, state)| Input::Task { pid, state }),
        Just(Input::Tick),
    ]
}

fn kind() -> impl Strategy<Value = ReadingKind> {
    select(vec![
        ReadingKind::Cri,
        ReadingKind::Disks,
        ReadingKind::FileSystems,
        ReadingKind::KubeletHealthz,
        ReadingKind::SealedLayers,
        ReadingKind::Units,
    ])
}

/// Readings of services, each of its kind.
fn service() -> impl Strategy<Value = (ReadingKind, Reading<'static>)> {
    let health = vec![
        KubeletHealth::Answered { code: 500 },
        KubeletHealth::Ok,
        KubeletHealth::Refused,
        KubeletHealth::TimedOut,
    ];
    let runtime = vec![
        RuntimeHealth::NotReady { why: "corrupt" },
        RuntimeHealth::Ready,
        RuntimeHealth::Refused,
        RuntimeHealth::TimedOut,
    ];
    let cni = vec![CniHealth::Ok, CniHealth::Unreachable { why: "no such socket" }];
    prop_oneof![
        select(health)
            .prop_map(|health| (ReadingKind::KubeletHealthz, Reading::KubeletHealth(health))),
        select(runtime).prop_map(|health| (ReadingKind::Cri, Reading::RuntimeHealth(health))),
        select(cni).prop_map(|health| {
            (ReadingKind::Cni, Reading::Cni(Cni { health, last_start: None }))
        }),
        unit().prop_map(|unit| (ReadingKind::Units, Reading::Unit(unit))),
    ]
}

fn unit() -> impl Strategy<Value = Unit<'static>> {
    let name = select(vec!["kubelet.service", "containerd.service", "syself-tunnel-agent.service"]);
    let active = select(vec![ActiveState::Activating, ActiveState::Active, ActiveState::Failed]);
    let duty = (any::<bool>(), any::<bool>());
    (name, active, duty, 0..9_u32, any::<Option<u32>>(), any::<bool>()).prop_map(
        |(name, active, (critical, operability), restarts, started, has_job)| Unit {
            name,
            duty: UnitDuty { critical, operability },
            active,
            sub: "start",
            result: "exit-code",
            restarts,
            last_start: started.map(|ms| Instant::from_millis(u64::from(ms % 100_000))),
            start_timeout_s: Some(90),
            has_job,
        },
    )
}

fn restart_ended() -> impl Strategy<Value = Input<'static>> {
    let unit = select(vec![&b"kubelet.service"[..], b"containerd.service"]);
    (unit, result())
        .prop_map(|(unit, result)| Input::RestartEnded { result, unit: Text::from_bytes(unit) })
}

fn result() -> impl Strategy<Value = RestartResult> {
    select(vec![Ended::Done, Ended::Failed, Ended::Refused])
        .prop_map(|ended| RestartResult { ended, why: Text::from_bytes(b"no such unit") })
}

fn reading() -> impl Strategy<Value = Reading<'static>> {
    let name = || select(vec!["nvme0", "sda", "/", "/var"]);
    prop_oneof![
        (name(), 70..100_u64, any::<u64>()).prop_map(|(mount_point, used_bytes, inodes_used)| {
            let (usable_bytes, inodes) = (100, u64::MAX);
            let system = FileSystem { mount_point, used_bytes, usable_bytes, inodes_used, inodes };
            Reading::FileSystem(system)
        }),
        (name(), select(vec![None, Some("a"), Some("b")])).prop_map(|(name, recorded)| {
            Reading::Layer(Layer { name, enforced: "a", recorded, corrupted: false })
        }),
        (name(), any::<u8>(), any::<i16>()).prop_map(|(name, figure, degrees)| {
            Reading::Drive(Drive {
                name,
                serial: name,
                critical_warning: figure,
                temperature_celsius: degrees,
                temperature_limit_celsius: None,
                percentage_used: figure,
                spare_pct: figure,
                spare_threshold_pct: 10,
            })
        }),
        (name(), select(vec![Attachment::Direct, Attachment::Usb]))
            .prop_map(|(name, attachment)| Reading::Disk(Disk { name, attachment })),
        name().prop_map(|object| Reading::Unreadable(Unreadable { object, why: "no such file" })),
    ]
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        4 => Just(Outcome::Complete),
        1 => Just(Outcome::Failed { why: Text::from_bytes(b"timed out") }),
        1 => Just(Outcome::NotApplicable),
    ]
}

fn settings() -> impl Strategy<Value = Settings> {
    let mode = select(vec![Mode::Act, Mode::DryRun, Mode::Off]);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), mode);
    flags.prop_map(|(proof, trust_userspace, probe, mode)| {
        let mut settings = Settings { trust_userspace, ..Settings::default() };
        settings.repair.mode = mode;
        settings.schedule.probes = [probe; ReadingKind::COUNT];
        if proof {
            settings.clear = [Clear::Proof; ConditionType::COUNT];
        }
        settings
    })
}

fn task() -> impl Strategy<Value = TaskState> {
    prop_oneof![
        (select(vec![b'D', b'S']), 0..3_u64)
            .prop_map(|(state, start_ticks)| TaskState::Alive { state, start_ticks }),
        Just(TaskState::Gone),
        Just(TaskState::Unknown),
    ]
}

/// Pids of critical tasks in the corpus.
fn pids() -> Vec<u64> {
    vec![7663, 931_150, 13_677, 30_181, 4711]
}

fn lines() -> Vec<&'static str> {
    let rows = include_str!("../../../tests/data/kmsg-corpus.tsv").lines().skip(1);
    rows.filter_map(|row| row.split('\t').nth(1)).chain(BLOCK_LINES).collect()
}

/// Lines that add to the finding before them.
const BLOCK_LINES: [&str; 7] = [
    "{1}[Hardware Error]: event severity: corrected",
    "{1}[Hardware Error]:   device_id: 0000:01:00.0",
    "{1}[Hardware Error]:   section_type: PCIe error",
    "{1}[Hardware Error]:  fru_text: DIMM A1",
    "INFO: task kubelet:13677 is blocked on a mutex likely owned by task dd:9.",
    "NVRM: The NVIDIA GPU 0000:5a:00.0",
    "NVRM: fallen off the bus and is not responding to commands.",
];
