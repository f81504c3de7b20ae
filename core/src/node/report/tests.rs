//! Shows that the documents are what readers expect, whatever stands in them.

use std::string::{String, ToString};
use std::vec::Vec;
use std::{format, vec};

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::wire::smart::Warnings;

#[test]
fn storage_is_as_readers_expect() {
    let root = FileSystemRow {
        mount_point: "/",
        device: Some("/dev/nvme0n1p3"),
        fs_type: Some("ext4"),
        size_bytes: Some(4000),
        used_bytes: Some(3000),
        used_pct: Some(Hundredths(8525)),
        inodes: Some(0),
        inodes_used: Some(0),
        inodes_used_pct: None,
        read_only: Some(false),
        error: None,
    };
    let hung = FileSystemRow { mount_point: "/a", error: Some("timed out"), ..Default::default() };
    let pool = ThinPoolRow {
        name: "pool",
        size_bytes: Some(9),
        data_pct: Some(Hundredths(10_000)),
        metadata_pct: Some(Hundredths(1)),
    };
    let group = VolumeGroupRow {
        name: "vg0",
        size_bytes: Some(10),
        free_bytes: Some(1),
        thin_pools: Some(&[pool]),
        error: None,
    };
    assert_eq!(
        text(|out| write_storage(out, &HEADER, [root, hung], [group])),
        concat!(
            r#"{"updatedAt":"2026-11-30T21:21:27Z","role":"worker","filesystems":["#,
            r#"{"mountPoint":"/","device":"/dev/nvme0n1p3","type":"ext4","sizeBytes":4000,"#,
            r#""usedBytes":3000,"usedPct":85.25,"inodes":0,"inodesUsed":0,"inodesUsedPct":null,"#,
            r#""readOnly":false},"#,
            r#"{"mountPoint":"/a","device":null,"type":null,"sizeBytes":null,"usedBytes":null,"#,
            r#""usedPct":null,"inodes":null,"inodesUsed":null,"inodesUsedPct":null,"#,
            r#""readOnly":null,"error":"timed out"}],"volumeGroups":["#,
            r#"{"name":"vg0","sizeBytes":10,"freeBytes":1,"thinPools":[{"name":"pool","#,
            r#""sizeBytes":9,"dataPct":100,"metadataPct":0.01}]}],"omitted":0}"#,
        )
    );
}

#[test]
fn evidence_is_as_readers_expect() {
    let since = Some(HEADER.updated_at);
    let condition = ConditionRow {
        name: "ReadonlyFilesystem",
        status: "True",
        reason: "FilesystemIsReadOnly",
        message: "a \"b\"",
        since,
    };
    let record = RecordRow { at: since, sequence: 7, text: "EXT4-fs (sda1): \u{1b}[31mx" };
    assert_eq!(
        text(|out| write_evidence(out, &HEADER, [condition], [record])),
        concat!(
            r#"{"updatedAt":"2026-11-30T21:21:27Z","role":"worker","conditions":["#,
            r#"{"type":"ReadonlyFilesystem","status":"True","reason":"FilesystemIsReadOnly","#,
            r#""message":"a \"b\"","since":"2026-11-30T21:21:27Z"}],"records":["#,
            r#"{"at":"2026-11-30T21:21:27Z","sequence":7,"text":"EXT4-fs (sda1): \u001B[31mx"}],"#,
            r#""omitted":0}"#,
        )
    );
}

#[test]
fn evidence_keeps_to_its_room_and_counts_what_it_leaves_out() {
    let long = "x".repeat(600);
    let row = ConditionRow { name: "C", status: "True", reason: "R", message: &long, since: None };
    let records = (0..200).map(|sequence| RecordRow { at: None, sequence, text: &long });
    let mut out = vec![0; 2 * EVIDENCE_MAX];
    let written = write_evidence(&mut out, &HEADER, [row; 25], records);
    assert!(written.bytes <= EVIDENCE_MAX && written.bytes > EVIDENCE_MAX - 1024);
    let value: Value = serde_json::from_slice(&out[..written.bytes]).unwrap();
    let count = |list: &str| u32::try_from(value[list].as_array().unwrap().len()).unwrap();
    assert!(count("conditions") >= 20);
    assert_eq!(count("conditions") + count("records") + written.omitted, 225);
}

#[test]
fn tamper_is_as_readers_expect() {
    assert_eq!(
        text(|out| write_tamper(out, &HEADER, TAMPER)),
        concat!(
            r#"{"updatedAt":"2026-11-30T21:21:27Z","role":"worker","tamper":{"#,
            r#""baselineAt":"1970-01-01T00:00:00Z","protectedFiles":12,"error":"half was read","#,
            r#""layers":[{"name":"root","device":"dm-0","mode":"panic_on_corruption","#,
            r#""enforcedRootHash":"ab","recordedRootHash":"ac","matches":false,"#,
            r#""corrupted":true}],"added":["/new"],"removed":["/old"],"changed":["/a","/b"]},"#,
            r#""omitted":0}"#,
        )
    );
}

#[test]
fn what_is_unknown_of_tampering_is_null() {
    let unknown = TamperReport { layers: None, changes: None, error: None, ..TAMPER };
    let document = json(&text(|out| write_tamper(out, &HEADER, unknown)));
    for key in ["layers", "added", "removed", "changed"] {
        assert_eq!(document["tamper"].get(key), Some(&Value::Null), "{key}");
    }
    assert_eq!(document["tamper"].get("error"), None);
}

#[test]
fn disks_certs_and_services_are_as_readers_expect() {
    let role = Header { role: Role::ControlPlane, ..HEADER };
    assert_eq!(
        text(|out| write_services(out, &role, [SERVICE])),
        concat!(
            r#"{"updatedAt":"2026-11-30T21:21:27Z","role":"controlplane","services":["#,
            r#"{"unit":"kubelet.service","activeState":"active","subState":"running","#,
            r#""result":"success","restarts":3,"ownRestarts":1,"#,
            r#""lastStartAt":"1970-01-01T00:00:00Z","probe":{"ok":false,"latencyMs":5000,"#,
            r#""at":"1970-01-01T00:00:00Z","error":"timed out"}}],"omitted":0}"#,
        )
    );
    let certs = json(&text(|out| write_certs(out, &HEADER, [CERT])));
    assert_eq!(certs["certs"][0]["secondsLeft"], -1);
    assert_eq!(certs["certs"][0]["notAfter"], Value::Null, "the year 10000 has no RFC 3339");
    let disks = json(&text(|out| write_disks(out, &HEADER, [DISK])));
    assert_eq!(disks["disks"][0]["criticalWarning"], 0x85);
    let names: Vec<&str> = Warnings::from_bits(0x85).names().collect();
    assert_eq!(names.len(), 3);
    assert_eq!(disks["disks"][0]["criticalWarnings"], Value::from(names));
}

/// Decisions, "Fields of the five documents": `?` marks what stands only where there is one.
#[test]
fn rows_have_the_fields_of_the_decision_and_no_other() {
    let storage = |system, group| json(&text(|out| write_storage(out, &HEADER, [system], [group])));
    let pools = [ThinPoolRow::default()];
    let group = VolumeGroupRow { thin_pools: Some(&pools), error: Some(""), ..Default::default() };
    let system = FileSystemRow { error: Some(""), ..Default::default() };
    let whole = storage(system, group);
    let bare = storage(FileSystemRow::default(), VolumeGroupRow::default());
    fields(
        [&whole["filesystems"][0], &bare["filesystems"][0]],
        "mountPoint device type sizeBytes usedBytes usedPct inodes inodesUsed inodesUsedPct \
         readOnly error?",
    );
    fields(
        [&whole["volumeGroups"][0], &bare["volumeGroups"][0]],
        "name sizeBytes freeBytes thinPools error?",
    );
    let pool = &whole["volumeGroups"][0]["thinPools"][0];
    fields([pool, pool], "name sizeBytes dataPct metadataPct");
    fields([&whole, &bare], "updatedAt role filesystems volumeGroups omitted");

    let disks = |row| json(&text(|out| write_disks(out, &HEADER, [row])));
    let (whole, bare) = (disks(DISK), disks(DiskRow::default()));
    fields(
        [&whole["disks"][0], &bare["disks"][0]],
        "name model serial firmware sizeBytes criticalWarning criticalWarnings \
         temperatureCelsius temperatureLimitCelsius percentageUsed availableSparePct \
         availableSpareThresholdPct mediaErrors powerOnHours unsafeShutdowns dataUnitsRead \
         dataUnitsWritten ioErrorsLast10m error?",
    );
    fields([&whole, &bare], "updatedAt role disks omitted");

    let certs = |row| json(&text(|out| write_certs(out, &HEADER, [row])));
    let (whole, bare) = (certs(CERT), certs(CertRow::default()));
    fields(
        [&whole["certs"][0], &bare["certs"][0]],
        "path subject issuer serial notBefore notAfter secondsLeft renewalDue error?",
    );
    fields([&whole, &bare], "updatedAt role certs omitted");

    let services = |row| json(&text(|out| write_services(out, &HEADER, [row])));
    let probe = Some(ProbeRow::default());
    let whole = services(SERVICE);
    let bare = services(ServiceRow { probe, ..Default::default() });
    fields(
        [&whole["services"][0], &bare["services"][0]],
        "unit activeState subState result restarts ownRestarts lastStartAt probe",
    );
    fields(
        [&whole["services"][0]["probe"], &bare["services"][0]["probe"]],
        "ok latencyMs at error?",
    );
    assert_eq!(services(ServiceRow::default())["services"][0]["probe"], Value::Null);
    fields([&whole, &bare], "updatedAt role services omitted");

    let tamper = |report| json(&text(|out| write_tamper(out, &HEADER, report)));
    let (whole, bare) = (tamper(TAMPER), tamper(TamperReport { error: None, ..TAMPER }));
    fields(
        [&whole["tamper"], &bare["tamper"]],
        "layers baselineAt protectedFiles added removed changed error?",
    );
    let layer = &whole["tamper"]["layers"][0];
    fields([layer, layer], "name device mode enforcedRootHash recordedRootHash matches corrupted");
    fields([&whole, &bare], "updatedAt role tamper omitted");
}

#[test]
fn a_row_without_readings_is_null_but_for_its_name() {
    let document = json(&text(|out| write_disks(out, &HEADER, [DiskRow::default()])));
    let row = document["disks"][0].as_object().unwrap();
    assert!(row.iter().all(|(key, value)| (key == "name") != value.is_null()));
}

#[test]
fn a_share_is_a_short_number() {
    for (hundredths, want) in [
        (0, "0"),
        (1, "0.01"),
        (10, "0.1"),
        (8525, "85.25"),
        (9999, "99.99"),
        (10_000, "100"),
        (u32::MAX, "42949672.95"),
    ] {
        let mut out = [0; 16];
        let len = serde_json_core::to_slice(&Hundredths(hundredths), &mut out).unwrap();
        assert_eq!(&out[..len], want.as_bytes());
    }
    for (part, whole, want) in [
        (1, 3, Some(3333)),
        (2, 3, Some(6666)),
        (0, 0, None),
        (1, 0, None),
        (u64::MAX, u64::MAX, Some(10_000)),
        (u64::MAX, 1, Some(u32::MAX)),
    ] {
        assert_eq!(Hundredths::of(part, whole), want.map(Hundredths), "{part} of {whole}");
    }
}

#[test]
fn each_character_reads_back_and_none_is_obeyed() {
    // What is not here is neither hidden nor in need of an escape.
    let ranges = [
        '\0'..='\u{30ff}',
        '\u{fe00}'..='\u{10100}',
        '\u{dff00}'..='\u{e0200}',
        '\u{10ff00}'..=char::MAX,
    ];
    for c in ranges.into_iter().flatten() {
        let mut utf8 = [0; 4];
        let name = &*c.encode_utf8(&mut utf8);
        let document = text(|out| write_disks(out, &HEADER, [disk(name)]));
        assert!(!document.chars().any(is_hidden), "{c:?}");
        let row = document.split_once('[').unwrap().1;
        assert!(row.starts_with(&format!(r#"{{"name":"{}","#, escaped(c))), "{document}");
        assert_eq!(json(&document)["disks"][0]["name"], name);
    }
}

#[test]
fn ten_thousand_file_systems_fit_by_leaving_some_out() {
    let names: Vec<String> = (0..10_000).map(|n| format!("/var/lib/kubelet/pods/{n}")).collect();
    let rows = || names.iter().map(|name| FileSystemRow { mount_point: name, ..EXT4 });
    let group = VolumeGroupRow { name: "vg0", ..Default::default() };
    let (document, kept) = kept(|out| write_storage(out, &HEADER, rows(), [group]), 10_001);
    assert!(document.len() > REPORT_MAX - 300, "{} bytes", document.len());
    assert!(kept > 150, "{kept} rows");
    assert_eq!(json(&document)["volumeGroups"][0]["name"], "vg0");
    assert_eq!(json(&document)["filesystems"][0]["mountPoint"], "/var/lib/kubelet/pods/0");
}

#[test]
fn five_hundred_disks_fit_by_leaving_some_out() {
    let (document, kept) = kept(|out| write_disks(out, &HEADER, [DISK; 500]), 500);
    assert!(document.len() > REPORT_MAX - 500, "{} bytes", document.len());
    assert!(kept > 50, "{kept} rows");
}

#[test]
fn many_added_files_do_not_hide_a_changed_one() {
    let names: Vec<String> = (0..10_000).map(|n| format!("/etc/kubernetes/{n}")).collect();
    let added = names.iter().map(|path| ProtectedFile { path, change: FileChange::Added });
    let changed = ProtectedFile { path: "/kubelet", change: FileChange::Changed };
    let files: Vec<_> = added.chain([changed]).collect();
    let changes = Some(files.iter().copied());
    let report = TamperReport { layers: Some([LAYER]), changes, ..unknown_tamper() };
    let (document, _) = kept(|out| write_tamper(out, &HEADER, report), 10_002);
    assert_eq!(json(&document)["tamper"]["changed"][0], "/kubelet");
}

#[test]
fn a_row_longer_than_a_document_hides_only_itself() {
    let long = "x".repeat(REPORT_MAX);
    let (document, _) = kept(|out| write_disks(out, &HEADER, [disk(&long), disk("b")]), 2);
    assert_eq!(json(&document)["disks"][0]["name"], "b");
    assert_eq!(json(&document)["omitted"], 1);

    // 3 bytes as they are, 6 escaped.
    let grows = "\u{2028}".repeat(REPORT_MAX / 4);
    let (document, _) = kept(|out| write_disks(out, &HEADER, [disk(&grows), disk("b")]), 2);
    assert_eq!(json(&document)["disks"][0]["name"], "b");

    let report = TamperReport { error: Some(&long), ..unknown_tamper::<[ProtectedFile<'_>; 0]>() };
    let (document, _) = kept(|out| write_tamper(out, &HEADER, report), 0);
    assert!(json(&document)["tamper"]["error"].as_str().unwrap().ends_with('…'));
}

#[test]
fn a_buffer_of_any_size_holds_a_document_or_nothing() {
    let empty = text(|out| write_disks(out, &HEADER, [])).len();
    for size in 0..600 {
        let mut out = vec![0; size];
        let written = write_disks(&mut out, &HEADER, [disk("a"), disk("b")]);
        let rows = count(&out, written);
        assert_eq!(rows + written.omitted, 2, "{size}");
        // Room is kept for the largest count, which has nine digits more, and for an unknown list.
        let is_written = written.bytes > 0;
        assert!(if is_written { size >= empty } else { size < empty + 16 }, "{size}");
    }
}

proptest! {
    #[test]
    fn invariants_hold_for_storage(
        size in 0..48 * 1024_usize,
        systems in vec((hostile(), any::<u64>(), hostile()), 0..24),
        groups in vec((hostile(), vec(hostile(), 0..3)), 0..24),
    ) {
        let pools: Vec<Vec<ThinPoolRow<'_>>> = groups
            .iter()
            .map(|(_, names)| names.iter().map(|name| pool(name)).collect())
            .collect();
        let group_rows = groups.iter().zip(&pools).map(|((name, _), pools)| VolumeGroupRow {
            name,
            thin_pools: Some(pools),
            ..Default::default()
        });
        let system_rows = systems.iter().map(|(name, used, error)| FileSystemRow {
            mount_point: name,
            used_bytes: Some(*used),
            used_pct: Hundredths::of(*used, u64::MAX / 7),
            error: Some(error),
            ..Default::default()
        });
        let mut out = vec![0; size];
        let written = write_storage(&mut out, &HEADER, system_rows, group_rows);
        check(&out, written, systems.len() + groups.len())?;
        let given: Vec<&str> = systems.iter().map(|(name, ..)| name.as_str()).collect();
        in_order(&out, written, |d| d["filesystems"].clone(), "mountPoint", &given)?;
    }

    #[test]
    fn invariants_hold_for_tamper(
        size in 0..48 * 1024_usize,
        layers in vec(hostile(), 0..12),
        paths in vec((hostile(), 0..3_u8), 0..48),
        error in hostile(),
        is_known: bool,
    ) {
        let files = paths.iter().map(|(path, change)| ProtectedFile {
            path,
            change: match change {
                0 => FileChange::Added,
                1 => FileChange::Changed,
                _ => FileChange::Removed,
            },
        });
        let report = TamperReport {
            layers: Some(layers.iter().map(|name| LayerRow { name, mode: Some(name), ..LAYER })),
            changes: is_known.then_some(files),
            error: Some(&error),
            baseline_at: None,
            protected_files: None,
        };
        let mut out = vec![0; size];
        let written = write_tamper(&mut out, &HEADER, report);
        let given = layers.len() + if is_known { paths.len() } else { 0 };
        check(&out, written, given)?;
    }

    #[test]
    fn invariants_hold_for_certs(
        size in 0..48 * 1024_usize,
        unix_s: i64,
        certs in vec((hostile(), hostile(), hostile()), 0..24),
    ) {
        let rows = certs.iter().map(|(path, subject, serial)| CertRow {
            path,
            subject: Some(subject),
            serial: Some(serial),
            not_before: Some(Timestamp::from_unix_secs(unix_s)),
            seconds_left: Some(unix_s),
            ..Default::default()
        });
        let header = Header { updated_at: Timestamp::from_unix_secs(unix_s), ..HEADER };
        let mut out = vec![0; size];
        let written = write_certs(&mut out, &header, rows);
        check(&out, written, certs.len())?;
        let given: Vec<&str> = certs.iter().map(|(path, ..)| path.as_str()).collect();
        in_order(&out, written, |d| d["certs"].clone(), "path", &given)?;
    }

    #[test]
    fn invariants_hold_for_disks_and_services(
        size in 0..48 * 1024_usize,
        names in vec(hostile(), 0..60),
        number: i64,
    ) {
        let small = number.unsigned_abs();
        let mut out = vec![0; size];
        let disks = names.iter().map(|name| DiskRow { power_on_hours: Some(small), ..disk(name) });
        let written = write_disks(&mut out, &HEADER, disks);
        check(&out, written, names.len())?;
        let services = names.iter().map(|unit| ServiceRow { unit, result: Some(unit), ..SERVICE });
        let written = write_services(&mut out, &HEADER, services);
        check(&out, written, names.len())?;
    }
}

/// Makes text of what needs an escape and what does not; now and then longer than a document.
fn hostile() -> impl Strategy<Value = String> {
    let part = |len| vec(proptest::sample::select(PIECES), len).prop_map(|parts| parts.concat());
    let repeated = |times| (part(1..6), times).prop_map(|(part, times)| part.repeat(times));
    prop_oneof![6 => part(0..20), 2 => repeated(0..200), 1 => repeated(0..9000_usize)]
}

const PIECES: &[&str] = &[
    "/",
    "a",
    "bc",
    "é",
    "…",
    "💣",
    "\"",
    "\\",
    "\\u",
    "\0",
    "\u{1f}",
    "\n",
    "\t",
    "\u{7f}",
    "\u{9b}",
    "\u{2028}",
    "\u{202e}",
    "\u{feff}",
    "\u{e0001}",
    "\u{10ffff}",
    "null",
    "}",
    "]",
    ",",
    "<",
    "\u{fffd}",
];

fn check(out: &[u8], written: Written, given: usize) -> Result<(), TestCaseError> {
    prop_assert!(written.bytes <= out.len().min(REPORT_MAX), "bounded");
    let rows = count(out, written);
    prop_assert_eq!(u32::try_from(given), Ok(rows + written.omitted), "counted");
    Ok(())
}

/// Returns how many rows were kept, of a document that holds its invariants.
fn count(out: &[u8], written: Written) -> u32 {
    if written.bytes == 0 {
        return 0;
    }
    let text = str::from_utf8(&out[..written.bytes]).unwrap();
    assert!(!text.chars().any(is_hidden), "seen");
    let document: Value = serde_json::from_str(text).expect("valid");
    assert_eq!(document["omitted"], written.omitted, "counted");
    let lists = ["filesystems", "volumeGroups", "disks", "certs", "services"];
    let of_tamper = ["layers", "added", "removed", "changed"];
    let of_tamper = of_tamper.iter().filter_map(|key| document.get("tamper")?.get(key));
    let lists = lists.iter().filter_map(|key| document.get(key)).chain(of_tamper);
    let rows = lists.map(|list| list.as_array().map_or(0, Vec::len)).sum::<usize>();
    u32::try_from(rows).unwrap()
}

/// Shows that the rows that were kept hold what was given, in its order.
fn in_order(
    out: &[u8],
    written: Written,
    list: impl Fn(&Value) -> Value,
    key: &str,
    given: &[&str],
) -> Result<(), TestCaseError> {
    if written.bytes == 0 {
        return Ok(());
    }
    let mut given = given.iter();
    let document = serde_json::from_slice(&out[..written.bytes]).unwrap();
    for row in list(&document).as_array().unwrap() {
        prop_assert!(given.any(|given| row[key] == **given), "{row}");
    }
    Ok(())
}

/// Returns what is written where there is room, and how many of the `given` rows it has.
fn kept(write: impl FnOnce(&mut [u8]) -> Written, given: u32) -> (String, u32) {
    let mut out = vec![0; REPORT_MAX + 99];
    let written = write(&mut out);
    assert!((1..=REPORT_MAX).contains(&written.bytes), "bounded: {written:?}");
    let rows = count(&out, written);
    assert_eq!(rows + written.omitted, given, "counted");
    out.truncate(written.bytes);
    (String::from_utf8(out).unwrap(), rows)
}

fn text(write: impl FnOnce(&mut [u8]) -> Written) -> String {
    let mut out = vec![0; 2048];
    let written = write(&mut out);
    out.truncate(written.bytes);
    String::from_utf8(out).unwrap()
}

fn json(document: &str) -> Value {
    serde_json::from_str(document).unwrap()
}

/// Checks a row with everything and one without an error for their `keys`.
fn fields([whole, bare]: [&Value; 2], keys: &str) {
    let of = |row: &Value| {
        let mut keys: Vec<_> = row.as_object().unwrap().keys().cloned().collect();
        keys.sort();
        keys
    };
    let mut all: Vec<String> =
        keys.split_whitespace().map(|key| key.trim_end_matches('?').to_string()).collect();
    let mut always: Vec<String> =
        keys.split_whitespace().filter(|key| !key.ends_with('?')).map(str::to_string).collect();
    all.sort();
    always.sort();
    if whole != bare {
        assert_eq!(of(bare), always);
    }
    assert_eq!(of(whole), all);
}

fn escaped(c: char) -> String {
    match c {
        '"' => "\\\"".to_string(),
        '\\' => "\\\\".to_string(),
        '\u{8}' => "\\b".to_string(),
        '\t' => "\\t".to_string(),
        '\n' => "\\n".to_string(),
        '\u{c}' => "\\f".to_string(),
        '\r' => "\\r".to_string(),
        c if is_hidden(c) => {
            c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04X}")).collect()
        }
        c => c.to_string(),
    }
}

fn disk(name: &str) -> DiskRow<'_> {
    DiskRow { name, ..Default::default() }
}

fn pool(name: &str) -> ThinPoolRow<'_> {
    ThinPoolRow { name, ..Default::default() }
}

/// Returns a report that knows nothing, for rows of any type.
fn unknown_tamper<C>() -> TamperReport<'static, [LayerRow<'static>; 1], C> {
    TamperReport {
        layers: None,
        baseline_at: None,
        protected_files: None,
        changes: None,
        error: None,
    }
}

const HEADER: Header =
    Header { updated_at: Timestamp::from_unix_secs(1_796_073_687), role: Role::Worker };
const EPOCH: Option<Timestamp> = Some(Timestamp::from_unix_secs(0));

const EXT4: FileSystemRow<'_> = FileSystemRow {
    mount_point: "",
    device: Some("/dev/sda1"),
    fs_type: Some("ext4"),
    size_bytes: Some(1 << 40),
    used_bytes: Some(1 << 39),
    used_pct: Some(Hundredths(5000)),
    inodes: Some(1 << 20),
    inodes_used: Some(1 << 10),
    inodes_used_pct: Some(Hundredths(9)),
    read_only: Some(false),
    error: None,
};

const DISK: DiskRow<'_> = DiskRow {
    name: "nvme0",
    model: Some("SAMSUNG MZQL21T9HCJR-00A07"),
    serial: Some("S64GNE0R000001"),
    firmware: Some("GDC5602Q"),
    size_bytes: Some(1_920_383_410_176),
    critical_warning: Some(0x85),
    critical_warnings: Some(Warnings::from_bits(0x85)),
    temperature_celsius: Some(-1),
    temperature_limit_celsius: Some(80),
    percentage_used: Some(255),
    available_spare_pct: Some(100),
    available_spare_threshold_pct: Some(10),
    media_errors: Some(u64::MAX),
    power_on_hours: Some(12_345),
    unsafe_shutdowns: Some(7),
    data_units_read: Some(1),
    data_units_written: Some(2),
    io_errors_last10m: Some(5),
    error: Some("one page of two"),
};

const CERT: CertRow<'_> = CertRow {
    path: "/var/lib/kubelet/pki/kubelet.crt",
    subject: Some("CN=a"),
    issuer: Some("CN=b"),
    serial: Some("0A"),
    not_before: EPOCH,
    not_after: Some(Timestamp::from_unix_secs(253_402_300_800)),
    seconds_left: Some(-1),
    renewal_due: Some(true),
    error: Some("the second block is no certificate"),
};

const SERVICE: ServiceRow<'_> = ServiceRow {
    unit: "kubelet.service",
    active_state: Some("active"),
    sub_state: Some("running"),
    result: Some("success"),
    restarts: Some(3),
    own_restarts: Some(1),
    last_start_at: EPOCH,
    probe: Some(ProbeRow {
        ok: Some(false),
        latency_ms: Some(5000),
        at: EPOCH,
        error: Some("timed out"),
    }),
};

const LAYER: LayerRow<'_> = LayerRow {
    name: "root",
    device: Some("dm-0"),
    mode: Some("panic_on_corruption"),
    enforced_root_hash: Some("ab"),
    recorded_root_hash: Some("ac"),
    matches: Some(false),
    corrupted: Some(true),
};

const TAMPER: TamperReport<'_, [LayerRow<'_>; 1], [ProtectedFile<'_>; 4]> = TamperReport {
    layers: Some([LAYER]),
    baseline_at: EPOCH,
    protected_files: Some(12),
    changes: Some([
        ProtectedFile { path: "/a", change: FileChange::Changed },
        ProtectedFile { path: "/new", change: FileChange::Added },
        ProtectedFile { path: "/old", change: FileChange::Removed },
        ProtectedFile { path: "/b", change: FileChange::Changed },
    ]),
    error: Some("half was read"),
};
