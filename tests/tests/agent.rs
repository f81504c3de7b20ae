//! The agent's program against input of every kind, as any user.

use core::time::Duration;
use std::collections::BTreeSet;
use std::fs;
use std::io::{PipeWriter, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread::sleep;

use fettle_core::catalog::{CONDITIONS, EVENTS};
use fettle_tests::clock::wait_for;
use fettle_tests::kmsg::FakeLog;
use fettle_tests::program::{
    Agent, Ended, command, condition, condition_of, finish, path, standalone,
};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Signal, geteuid};
use serde_json::Value;
use tempfile::TempDir;

// What lines of the kernel log mean.

#[test]
fn every_row_of_the_corpus_means_what_it_says() {
    let corpus = data("kmsg-corpus.tsv");
    let rows: Vec<(&str, &str)> =
        corpus.lines().skip(1).filter_map(|row| row.split_once('\t')).collect();
    let lines: Vec<&str> =
        rows.iter().map(|(_, rest)| rest.split('\t').next().unwrap_or_default()).collect();
    let said = classify(&lines, &["--independent"]);
    let wrong: Vec<String> = rows
        .iter()
        .zip(&lines)
        .zip(&said)
        .filter(|(((want, _), _), got)| set(want) != names(got))
        .map(|(((want, _), line), got)| format!("want {want}, got {:?}: {line}", names(got)))
        .collect();
    assert!(rows.len() >= 306, "the corpus has only {} rows", rows.len());
    assert!(wrong.is_empty(), "{} wrong rows:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn raw_samples_are_read_without_error() {
    let samples = data("kmsg-raw-samples.txt");
    let lines: Vec<&str> =
        samples.lines().filter(|line| !line.starts_with('#') && *line != "%%").collect();
    let said = classify(&lines, &[]);
    for (words, want) in [
        ("12,40465,1358434106,-;EXT4-fs (vdz1): Remounting", "NONE"), // user space wrote it
        ("EXT4-fs error (device loop0): trigger_test_error", "Ext4Error"),
        ("INFO: task kubelet:13677", "KernelDeadlock,TaskHung"),
        ("INFO: task kubelet-foo:13678", "TaskHung"),
        ("INFO: task containerd-shim:13679", "KernelDeadlock,TaskHung"),
        ("INFO: task runc:[2:INIT]:13680", "KernelDeadlock,TaskHung"),
        ("nvme nvme0: controller is down", "NvmeError"),
        (",caller=T66;INFO: task kubelet:90685", "KernelDeadlock,TaskHung"),
        ("NVRM: The NVIDIA GPU 0000:b3:00.0", "GpuFallenOffBus"),
        (" SUBSYSTEM=nvme", "NONE"),
    ] {
        let at = lines.iter().position(|line| line.contains(words));
        let at = at.unwrap_or_else(|| panic!("no sample {words}"));
        assert_eq!(names(&said[at]), set(want), "{}", lines[at]);
    }
}

#[test]
fn field_cases_mean_what_their_records_say() {
    let title = "[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 162";
    let corrected = "[Hardware Error]: It has been corrected by h/w and requires no further action";
    // case, line, want
    for (case, line, want) in [
        ("K04", "INFO: task airflow schedul:4711 blocked for more than 120 seconds.", "TaskHung"),
        (
            "K04",
            "INFO: task qemu-system-x86:9012 blocked for more than 241 seconds.",
            "KernelDeadlock,TaskHung",
        ),
        ("K04", "INFO: task kworker/u64:3:77 blocked for more than 122 seconds.", "TaskHung"),
        ("K05", "12,900,1000,-;EXT4-fs (sda1): Remounting filesystem read-only", "NONE"),
        (
            "K05",
            "3,901,2000,-;EXT4-fs (sda1): Remounting filesystem read-only",
            "ReadonlyFilesystem",
        ),
        ("K12", &format!("{{37}}{title}"), "NONE"),
        ("K12", &format!("{{37}}{corrected}"), "NONE"),
        ("K12", "{37}[Hardware Error]: event severity: corrected", "CperHardwareErrorCorrected"),
        ("K12", "{3}[Hardware Error]: event severity: recoverable", "CperHardwareErrorRecoverable"),
        ("K12", "{4}[Hardware Error]: event severity: fatal", "CperHardwareErrorFatal"),
        ("K13", "{8}[Hardware Error]: event severity: recoverable", "CperHardwareErrorRecoverable"),
        ("K13", "{8}[Hardware Error]:  Error 0, type: fatal", "NONE"),
        ("K13", "{8}[Hardware Error]:   section_type: PCIe error", "NONE"),
        ("K15", "device-mapper: verity: 202:3: data block 0 is corrupted", "VerityCorruption"),
        (
            "K16",
            "device-mapper: verity: 253:0: metadata block 1044 is corrupted",
            "VerityCorruption",
        ),
    ] {
        let said = classify(&[line], &[]);
        assert_eq!(names(&said[0]), set(want), "{case}: {line}");
    }
}

#[test]
fn findings_name_what_they_are_about() {
    // line, object, what stands in the message
    for (line, object, words) in [
        (
            "INFO: task airflow schedul:4711 blocked for more than 120 seconds.",
            "airflow schedul:4711",
            "120",
        ),
        ("device-mapper: verity: 202:3: data block 0 is corrupted", "202:3", "block 0"),
        ("[   12.345678] EXT4-fs (sda1): Remounting filesystem read-only", "sda1", "read-only"),
        (
            "NVRM: Xid (PCI:0000:44:00): 79, pid=1234, name=python3, GPU has fallen off the bus.",
            "0000:44:00",
            "79",
        ),
    ] {
        let said = classify(&[line], &[]);
        let findings = said[0]["findings"].as_array().expect("findings are a list");
        assert!(!findings.is_empty(), "{line}");
        for finding in findings {
            let named = finding["object"].as_str().unwrap_or_default();
            assert!(named.contains(object), "{object} is not in {finding}");
            let message = finding["message"].as_str().unwrap_or_default();
            assert!(message.contains(words), "{words} is not in {finding}");
        }
    }
}

// Input that is no kernel log.

#[test]
fn junk_gives_valid_json_for_each_line() {
    let mut random = Random(0x5eed);
    let random: Vec<u8> = (0..64 * 1024).map(|_| random.next()).collect();
    for (what, junk) in [
        ("random bytes", &random[..]),
        ("invalid UTF-8", b"3,1,1,-;EXT4-fs (\xff\xfe\x80): Remounting filesystem read-only\n"),
        ("NUL bytes", b"\0\0\0\n3,1,1,-;\0EXT4-fs\0\n\0"),
        ("half a prefix", b"3,1\n3,1,1,-\n,,,;\n99999999999999999999,1,1,-;x\n;\n"),
        ("other line ends", b"a\r\nb\rc\r\n"),
        ("no line end", b"EXT4-fs (sda1): Remounting filesystem read-only"),
        ("escapes without an end", b"3,1,1,-;\\x\n3,1,1,-;\\xf\n3,1,1,-;\\xzz\\\n"),
    ] {
        let ended = finish(&["classify", "-o", "json", "-"], junk);
        assert!(ended.status.success(), "{what}: {}\n{}", ended.status, ended.log);
        let lines = junk.split_inclusive(|byte| *byte == b'\n').count();
        assert_eq!(ended.values().len(), lines, "{what}");
    }
}

#[test]
fn no_input_is_no_finding() {
    let ended = finish(&["classify", "-o", "json", "-"], b"");
    assert!(ended.status.success(), "{}", ended.log);
    assert_eq!(ended.printed(), "");
}

#[test]
fn a_huge_line_is_cut_in_bounded_memory() {
    const MIB: usize = 512;
    let mut agent = Agent::start(command(&["classify", "-o", "json", "-"]).stdin(Stdio::piped()));
    let mut stdin = agent.take_stdin();
    let chunk = vec![b'x'; 1 << 20];
    for _ in 0..MIB {
        stdin.write_all(&chunk).expect("the agent reads on");
    }
    stdin.write_all(b"\nEXT4-fs (sda1): Remounting filesystem read-only\n").expect("as before");
    let peak = agent.peak_kib();
    drop(stdin);
    let ended = agent.wait_end(LIMIT);
    let values = ended.values();
    assert_eq!(values[0]["omittedBytes"], MIB * (1 << 20) - 8192, "{}", values[0]);
    assert_eq!(names(values[1]), set("ReadonlyFilesystem"));
    assert!(peak < 16 * 1024, "it used {peak} KiB");
}

#[test]
fn a_line_at_the_limit_is_not_cut() {
    for (length, omitted) in [(8191, None), (8192, None), (8193, Some(1)), (20_000, Some(11_808))] {
        let line = "x".repeat(length);
        let said = classify(&[&line, "EXT4-fs (sda1): Remounting filesystem read-only"], &[]);
        assert_eq!(said[0].get("omittedBytes").and_then(Value::as_u64), omitted, "{length}");
        assert_eq!(names(&said[1]), set("ReadonlyFilesystem"), "after {length} bytes");
    }
}

// Mistakes.

#[test]
fn a_mistake_is_said_in_a_sentence() {
    // arguments, what the sentence names
    for (arguments, words) in [
        (&["classify", "/nonexistent/log"][..], "/nonexistent/log"),
        (&["classify", "/"], "/"),
        (&["replay", "/nonexistent/journal"], "/nonexistent/journal"),
        (&["replay", "/dev/null"], "/dev/null"),
        (&["run", "--nonsense"], "--nonsense"),
        (&["run", "--standalone", "--clear", "Nonsense=proof"], "Nonsense"),
        (&["run", "--standalone", "--clear", "KernelDeadlock=maybe"], "maybe"),
        (&["run", "--standalone", "--clear", "KernelDeadlock"], "KernelDeadlock"),
        (&["run", "--standalone", "--for", "soon"], "soon"),
        (&["classify", "-o", "xml", "-"], "xml"),
        (&["nonsense"], "nonsense"),
        (&[], "--standalone"),
    ] {
        let ended = finish(arguments, b"");
        ended.assert_no_crash();
        assert!(!ended.status.success(), "{arguments:?} succeeded");
        assert!(ended.log.contains(words), "{arguments:?} said: {}", ended.log);
        assert_eq!(ended.printed(), "", "{arguments:?}");
    }
}

#[test]
fn an_unwritable_state_or_journal_is_said_in_a_sentence() {
    // /proc takes no new files, not even from root.
    for flag in ["--state-dir", "--journal"] {
        let scratch = scratch();
        let log = FakeLog::new();
        let mut command = command(&["run", "--standalone", "-o", "json", "--for", "1s"]);
        command.arg("--kmsg").arg(log.path());
        if flag == "--journal" {
            command.arg("--state-dir").arg(scratch.path());
        }
        let ended = Agent::start(command.args([flag, "/proc/fettle/new"])).wait_end(LIMIT);
        ended.assert_no_crash();
        assert!(ended.log.contains("/proc/fettle"), "{flag}: {}", ended.log);
    }
}

// A kernel log that cannot be read.

#[test]
fn a_log_that_cannot_be_read_is_unknown() {
    for kmsg in ["/nonexistent", "/", "/dev/null"] {
        let scratch = scratch();
        let agent = Agent::start(&mut standalone(scratch.path(), Path::new(kmsg)));
        assert_unknown(agent, kmsg);
    }
}

#[test]
fn a_log_without_permission_is_unknown() {
    let scratch = scratch();
    let kmsg = scratch.path().join("kmsg");
    fs::write(&kmsg, "").expect("the directory is the test's");
    fs::set_permissions(&kmsg, fs::Permissions::from_mode(0o000)).expect("the file is the test's");
    let program = scratch.path().join("fettle-agent");
    fs::copy(path(), &program).expect("there is room for a copy");
    let state = scratch.path().join("state");
    fs::create_dir(&state).expect("the directory is the test's");
    let mut command = std::process::Command::new(&program);
    command.args(["run", "--standalone", "-o", "json"]);
    command.arg("--state-dir").arg(&state).arg("--kmsg").arg(&kmsg);
    if geteuid().is_root() {
        // Permissions do not stop root; so the agent runs as the user that owns nothing.
        for directory in [scratch.path(), &state] {
            let open = fs::Permissions::from_mode(0o777);
            fs::set_permissions(directory, open).expect("the directory is the test's");
        }
        command.uid(NOBODY).gid(NOBODY);
    }
    assert_unknown(Agent::start(&mut command), &kmsg.display().to_string());
}

#[test]
fn an_agent_is_ready_once_though_its_log_cannot_be_read() {
    let scratch = scratch();
    let kmsg = scratch.path().join("kmsg");
    let notify = scratch.path().join("notify");
    let manager = UnixDatagram::bind(&notify).expect("the directory is the test's");
    manager.set_nonblocking(true).expect("it is a socket");
    let mut command = standalone(&scratch.path().join("state"), &kmsg);
    let agent = Agent::start(command.env("NOTIFY_SOCKET", &notify));
    let told = || {
        let mut buffer = [0; 64];
        let length = manager.recv(&mut buffer).ok()?;
        Some(String::from_utf8_lossy(&buffer[..length]).into_owned())
    };
    assert_eq!(wait_for(Duration::from_secs(20), told).as_deref(), Some("READY=1"));
    let log = FakeLog::new();
    symlink(log.path(), &kmsg).expect("the directory is the test's");
    agent.wait_following();
    agent.terminate();
    assert_eq!(told().as_deref(), Some("STOPPING=1"));
}

#[test]
fn a_log_that_ends_is_opened_again_ever_more_rarely() {
    let scratch = scratch();
    let kmsg = scratch.path().join("kmsg");
    fs::write(&kmsg, "6,1,1,-;a record\n").expect("the directory is the test's");
    let agent = Agent::start(&mut standalone(&scratch.path().join("state"), &kmsg));
    sleep(Duration::from_secs(3));
    let said = agent.log();
    assert!(said.lines().count() < 10, "it floods its log:\n{said}");
    agent.terminate();
}

#[test]
fn a_log_that_appears_is_followed() {
    let scratch = scratch();
    let kmsg = scratch.path().join("kmsg");
    let agent = Agent::start(&mut standalone(&scratch.path().join("state"), &kmsg));
    let unknown = agent.wait_line("it", condition("KernelDeadlock", "Unknown"));
    let mut log = FakeLog::new();
    log.write("6,10,1,-;usb 1-1: new device");
    symlink(log.path(), &kmsg).expect("the directory is the test's");
    agent.wait_line_after(&unknown, "health", condition("KernelDeadlock", "False"));
    log.write("4,11,900000,-;INFO: task kubelet:812 blocked for more than 122 seconds.");
    agent.wait_line("K02", condition_of("KernelDeadlock", "True", "kubelet:812"));
    agent.terminate();
}

#[test]
fn a_single_check_without_a_log_is_unknown_and_never_healthy() {
    let scratch = scratch();
    let state = scratch.path().display().to_string();
    for name in KERNEL_CONDITIONS {
        let flags = ["check", name, "-o", "json", "--kmsg", "/nonexistent", "--state-dir", &state];
        let ended = finish(&flags, b"");
        assert_eq!(ended.status.code(), Some(2), "{name}: {}", ended.printed());
        assert_eq!(ended.values()[0]["status"], "Unknown");
    }
}

// A kernel log that the test writes.

#[test]
fn one_lost_gpu_is_one_transition() {
    let case = [
        "3,1,1,-;NVRM: Xid (PCI:0000:44:00): 79, pid=1234, name=python3, GPU has fallen off the bus.",
        "3,2,2,-;NVRM: GPU 0000:44:00.0: GPU has fallen off the bus.",
    ];
    let ended = follow(&case, &[]);
    let is_transition =
        |line: &&Value| condition("GpuFallenOffBus", "True")(line) && line["transition"] == true;
    let values = ended.values();
    assert_eq!(values.iter().copied().filter(is_transition).count(), 1, "{}", ended.printed());
    assert_eq!(count(&ended, "NvidiaXidError"), 1, "{}", ended.printed());
    assert!(ended.printed().contains("79"), "{}", ended.printed());
}

#[test]
fn a_gap_in_the_sequence_is_counted() {
    let case = [
        "6,100,1000000,-;eth0: renamed from veth1",
        "3,5100,2000000,-;EXT4-fs (sda1): Remounting filesystem read-only",
    ];
    let ended = follow(&case, &[]);
    let values = ended.values();
    let lost = values.iter().find(|line| line["kind"] == "lost").expect("a loss is said");
    assert_eq!((&lost["records"], &lost["total"]), (&4999.into(), &4999.into()));
    assert!(values.iter().any(|line| condition_of("ReadonlyFilesystem", "True", "sda1")(line)));
    let summary = ended.summary();
    assert_eq!((&summary["records"], &summary["lost"]), (&3.into(), &4999.into()), "{summary}");
}

#[test]
fn a_storm_is_folded_and_counted() {
    let storm: Vec<String> = (0..11_760)
        .map(|n| {
            let text = "NVRM: Xid (PCI:0000:dc:00): 45, pid=1818990, name=python3, Ch 00000001";
            format!("3,{n},{n},-;{text}")
        })
        .collect();
    let storm: Vec<&str> = storm.iter().map(String::as_str).collect();
    let ended = follow(&storm, &[]);
    let values = ended.values();
    let writes = values.iter().filter(|line| line["name"] == "NvidiaXidError").count();
    assert!((2..=4).contains(&writes), "{writes} lines:\n{}", ended.printed());
    assert_eq!(count(&ended, "NvidiaXidError"), 11_760);
    assert_eq!(ended.summary()["findings"]["NvidiaXidError"], 11_760);
    // The real clock and the real disks of this machine are judged as well.
    let problem = |name: &&&str| values.iter().any(|line| condition(name, "True")(line));
    assert_eq!(KERNEL_CONDITIONS.iter().find(problem), None, "{}", ended.printed());
}

#[test]
fn records_of_user_space_count_only_when_trusted() {
    let case = [
        "6,1,1,-;a record of the kernel's",
        "12,2,2,-;EXT4-fs (sda1): Remounting filesystem read-only",
        "8,3,3,-;EXT4-fs error (device sda1): ext4_lookup",
    ];
    for (flags, status, events) in
        [(&[][..], "False", 0), (&["--trust-userspace-kmsg"][..], "True", 1)]
    {
        let ended = follow(&case, flags);
        let is = condition("ReadonlyFilesystem", status);
        assert!(ended.values().iter().any(|line| is(line)), "{}", ended.printed());
        assert_eq!(count(&ended, "Ext4Error"), events, "{}", ended.printed());
        assert_eq!(ended.summary()["userspace"], 2, "{}", ended.printed());
    }
}

#[test]
fn malformed_records_are_counted_and_passed_over() {
    let case = ["garbage", "6,5,5,-;fine", "3,x,1,-;EXT4-fs error (device sda1): ext4_lookup", ";"];
    let ended = follow(&case, &[]);
    assert_eq!(ended.summary()["malformed"], 3, "{}", ended.printed());
    assert_eq!(count(&ended, "Ext4Error"), 0);
}

#[test]
fn a_restart_in_the_same_boot_repeats_nothing() {
    let case = [
        "2,500,10,-;EXT4-fs error (device sda1): ext4_lookup",
        "2,501,11,-;EXT4-fs (sda1): Remounting filesystem read-only",
    ];
    let scratch = scratch();
    let first = follow_in(scratch.path(), 0, &case, &[]);
    assert_eq!(count(&first, "Ext4Error"), 1, "{}", first.printed());
    let second = follow_in(scratch.path(), 1, &case, &[]);
    assert_eq!(count(&second, "Ext4Error"), 0, "{}", second.printed());
    let values = second.values();
    let level = values.iter().find(|line| line["name"] == "ReadonlyFilesystem");
    let level = level.expect("what holds is printed again");
    assert_eq!((&level["status"], &level["transition"]), (&"True".into(), &false.into()));
}

#[test]
fn a_garbage_state_is_ignored_with_a_warning() {
    let case = ["2,500,10,-;EXT4-fs error (device sda1): ext4_lookup"];
    let mut random = Random(0x57a7e);
    let random: Vec<u8> = (0..4096).map(|_| random.next()).collect();
    for garbage in [&random[..], b"", b"\0\0\0", b"\x01\0{}"] {
        let scratch = scratch();
        drop(follow_in(scratch.path(), 0, &case, &[]));
        let files = spoil(scratch.path(), |_| garbage.to_vec());
        let ended = follow_in(scratch.path(), 1, &case, &[]);
        assert_eq!(count(&ended, "Ext4Error"), 1, "{}", ended.printed());
        assert!(files.iter().any(|file| ended.log.contains(file)), "{files:?}: {}", ended.log);
    }
}

#[test]
fn a_state_of_another_boot_is_ignored_with_a_warning() {
    let case = ["2,500,10,-;EXT4-fs error (device sda1): ext4_lookup"];
    let boot = fs::read("/proc/sys/kernel/random/boot_id").expect("every kernel has one");
    let boot = boot.trim_ascii_end();
    let scratch = scratch();
    drop(follow_in(scratch.path(), 0, &case, &[]));
    let files = spoil(scratch.path(), |bytes| {
        let mut bytes = bytes.to_vec();
        let at = bytes.windows(boot.len()).position(|window| window == boot);
        let at = at.expect("the state names its boot");
        bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
        bytes
    });
    let ended = follow_in(scratch.path(), 1, &case, &[]);
    assert_eq!(count(&ended, "Ext4Error"), 1, "{}", ended.printed());
    assert!(files.iter().any(|file| ended.log.contains(file)), "{files:?}: {}", ended.log);
}

#[test]
fn a_replay_prints_what_the_run_printed() {
    let case = [
        "6,7,1,-;eth0: renamed from veth1",
        "2,500,10,-;EXT4-fs error (device sda1): ext4_lookup",
        "12,501,11,-;a record of user space",
        "2,502,12,-;EXT4-fs (sda1): Remounting filesystem read-only",
        "2,503,13,-;EXT4-fs error (device sda1): ext4_lookup",
    ];
    let scratch = scratch();
    let journal = scratch.path().join("journal");
    let flags = ["--journal", journal.to_str().expect("it is ASCII")];
    let printed = follow_in(&scratch.path().join("state"), 0, &case, &flags).printed();
    let whole = fs::read(&journal).expect("the run wrote a journal");
    assert_eq!(replay(&journal), printed);
    let step = (whole.len() / 40).max(1);
    for length in (0..whole.len()).step_by(step) {
        fs::write(&journal, &whole[..length]).expect("the directory is the test's");
        let part = replay_cut(&journal);
        assert!(printed.starts_with(&part), "cut at {length}: {part}\nis no part of {printed}");
    }
}

#[test]
fn a_single_check_finds_the_disk_that_fails_and_ends() {
    let minute_ago_us = uptime_us().saturating_sub(60_000_000);
    let mut log = FakeLog::new();
    for n in 0..6 {
        let at_us = minute_ago_us + n * 10_000_000;
        log.write(&format!("3,{n},{at_us},-;I/O error, dev sdzz, sector {n}"));
    }
    let (state, kmsg) = (scratch(), log.path().display().to_string());
    let directory = state.path().display().to_string();
    let flags = ["-o", "json", "--kmsg", &kmsg, "--state-dir", &directory];
    let ended = finish(&[&["check", "DisksFailure"], &flags[..]].concat(), b"");
    assert_eq!(ended.status.code(), Some(1), "{}", ended.printed());
    let message = ended.values()[0]["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("sdzz: 5 or more I/O errors"), "{message}");
    // So do all checks at once, whatever else they find on this machine.
    assert!(finish(&[&["check"], &flags[..]].concat(), b"").values().len() > 20);
}

#[test]
fn a_volume_below_the_named_kubelet_directory_is_none_of_the_nodes_file_systems() {
    let (state, node) = (scratch(), scratch());
    let at = |path: &str| node.path().join(path);
    for folder in ["proc/1", "data/kubelet", "var/lib"] {
        fs::create_dir_all(at(folder)).expect("the folder is the test's");
    }
    symlink("/data/kubelet", at("var/lib/kubelet")).expect("it is new");
    let table = "30 1 4095:77 / /data/kubelet/pods/u/v rw - ext4 /dev/sdzz9 rw\n";
    fs::write(at("proc/1/mountinfo"), table).expect("the folder is the test's");
    let record = "2,1,1,-;EXT4-fs (sdzz9): Remounting filesystem read-only";
    let root = node.path().display().to_string();
    for (directory, is_of_node) in
        [("/data/kubelet", false), ("/var/lib/kubelet", false), ("/data", true)]
    {
        let place = ["--host-root", &root, "--kubelet-dir", directory];
        let mut log = FakeLog::new();
        log.write(record);
        let (kmsg, state) = (log.path().display().to_string(), state.path().display().to_string());
        let flags = ["check", "ReadonlyFilesystem", "--kmsg", &kmsg, "--state-dir", &state];
        let checked = finish(&[&flags, &place[..]].concat(), b"");
        assert_eq!(checked.status.code(), Some(i32::from(is_of_node)), "{}", checked.printed());
        // The agent that runs says the same.
        let ran = follow(&[record], &place);
        let is_told = ran.values().into_iter().any(condition("ReadonlyFilesystem", "True"));
        assert_eq!(is_told, is_of_node, "{}", ran.printed());
    }
}

#[test]
fn a_person_clears_what_is_held_and_is_named() {
    let state = scratch();
    let mut log = FakeLog::new();
    let agent = Agent::start(&mut standalone(state.path(), &log.path()));
    log.write("2,1,1,-;EXT4-fs (dm-3): Remounting filesystem read-only");
    let raised = agent.wait_line("K11", condition_of("ReadonlyFilesystem", "True", "dm-3"));
    let directory = state.path().display().to_string();
    let flags = ["clear", "ReadonlyFilesystem", "--state-dir", &directory];
    assert!(finish(&flags, b"").status.success());
    agent.wait_line_after(&raised, "health", condition("ReadonlyFilesystem", "False"));
    let is_clearing = |line: &Value| line["name"] == "ConditionCleared";
    let cleared = agent.wait_line("an event that says who", is_clearing);
    let message = cleared.value["message"].as_str().unwrap_or_default();
    assert!(message.contains("ReadonlyFilesystem was cleared by"), "{message}");
    agent.terminate();
    let refused = finish(&["clear", "DiskUsageHigh", "--state-dir", &directory], b"");
    assert!(refused.log.contains("is not held"), "{}", refused.log);
}

#[test]
fn a_run_of_limited_time_ends_by_itself() {
    let scratch = scratch();
    let mut log = FakeLog::new();
    log.write("6,1,1,-;a record");
    let mut command = standalone(scratch.path(), &log.path());
    let ended = Agent::start(command.args(["--for", "1s"])).wait_end(LIMIT);
    assert!(ended.status.success(), "{}", ended.log);
    assert_eq!(ended.summary()["records"], 1);
}

#[test]
fn a_fatal_error_of_the_boot_before_is_read_from_the_nodes_table() {
    let (state, node) = (scratch(), scratch());
    let table = node.path().join("sys/firmware/acpi/tables/data/BERT");
    fs::create_dir_all(table.parent().expect("it has one")).expect("the folder is the test's");
    // One block of severity fatal, whose status the kernel has cleared.
    let block = [[0; 4], [0; 4], [0; 4], [4, 0, 0, 0], [1, 0, 0, 0], [0; 4]].concat();
    fs::write(table, block).expect("the folder is the test's");
    let mut log = FakeLog::new();
    log.write("6,1,1,-;BERT: Error records from previous boot:");
    log.write("6,2,1,-;BERT: Max print length exceeded, table data is available at:");
    let mut command = standalone(state.path(), &log.path());
    let agent = Agent::start(command.arg("--host-root").arg(node.path()));
    let is_fatal = condition_of("CperHardwareErrorFatal", "True", "previous boot");
    agent.wait_line("the error", is_fatal);
    agent.terminate();
}

#[test]
fn a_disk_on_usb_does_not_fail_the_node_and_its_own_disk_does() {
    let (state, node) = (scratch(), scratch());
    let sys = node.path().join("sys");
    fs::create_dir_all(sys.join("block")).expect("the folder is the test's");
    for (disk, place) in [("sda", "ata1/host0"), ("sdb", "usb1/1-1/host6")] {
        let place = format!("devices/{place}/block/{disk}");
        fs::create_dir_all(sys.join(&place)).expect("the folder is the test's");
        symlink(Path::new("..").join(place), sys.join("block").join(disk)).expect("it is new");
    }
    let minute_ago_us = uptime_us().saturating_sub(60_000_000);
    let mut log = FakeLog::new();
    let mut sequence = 0;
    for disk in ["sdb", "sda"] {
        for second in 1..=5 {
            sequence += 1;
            let at_us = minute_ago_us + second * 1_000_000;
            log.write(&format!("3,{sequence},{at_us},-;I/O error, dev {disk}, sector {second}"));
        }
    }
    let mut command = standalone(state.path(), &log.path());
    let agent = Agent::start(command.arg("--host-root").arg(node.path()));
    let failed = agent.wait_line("the disk", condition("DisksFailure", "True"));
    let message = failed.value["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains("sda") && !message.contains("sdb"), "{message}");
    agent.terminate();
}

// Others that go away.

#[test]
fn a_reader_that_goes_away_ends_classify() {
    let mut command = command(&["classify", "-o", "json", "-"]);
    let mut agent = Agent::start_into(command.stdin(Stdio::piped()), nobody_reads());
    let mut stdin = agent.take_stdin();
    let line = "EXT4-fs (sda1): Remounting filesystem read-only\n".repeat(1000);
    let refused = (0..1000).any(|_| stdin.write_all(line.as_bytes()).is_err());
    drop(stdin);
    let ended = agent.wait_end(LIMIT);
    assert!(refused, "it read on although nobody listens: {}", ended.log);
    ended.assert_no_crash();
}

#[test]
fn a_reader_that_goes_away_neither_crashes_nor_spins_a_run() {
    let scratch = scratch();
    let mut log = FakeLog::new();
    log.write("6,1,1,-;a record");
    let mut command = standalone(scratch.path(), &log.path());
    let agent = Agent::start_into(&mut command, nobody_reads());
    sleep(Duration::from_millis(500));
    let before = agent.cpu_ticks();
    sleep(Duration::from_secs(1));
    let used = agent.cpu_ticks().saturating_sub(before);
    let said = agent.log();
    assert!(used < 20, "it spins: {used} clock ticks of processor time in a second");
    assert!(!said.contains("panicked"), "{said}");
    assert!(said.lines().count() < 20, "it floods its log: {said}");
}

#[test]
fn a_reader_that_stalls_does_not_hold_the_end() {
    let scratch = scratch();
    let log = FakeLog::new();
    let (reader, writer) = std::io::pipe().expect("pipes are to be had");
    fill(&writer);
    let agent = Agent::start_into(&mut standalone(scratch.path(), &log.path()), writer);
    // Its first results find no room.
    sleep(Duration::from_secs(1));
    agent.signal(Signal::TERM);
    let ended = agent.wait_end(Duration::from_secs(2));
    ended.assert_no_crash();
    // What found no room is lost, so the end is no success.
    assert!(!ended.status.success(), "{}", ended.log);
    drop(reader);
}

// What it knows.

#[test]
fn the_catalogue_has_every_condition() {
    let ended = finish(&["catalog", "-o", "json"], b"");
    assert!(ended.status.success(), "{}", ended.log);
    let catalog: Value = serde_json::from_str(&ended.printed()).expect("it is one JSON object");
    let names = |kind: &str| -> BTreeSet<String> {
        let rows = catalog[kind].as_array().expect("it is a list");
        rows.iter().filter_map(|row| row["name"].as_str().map(str::to_owned)).collect()
    };
    let conditions = CONDITIONS.iter().map(|row| row.name.to_owned()).collect();
    let events = EVENTS.iter().map(|row| row.name.to_owned()).collect();
    assert_eq!(names("conditions"), conditions);
    assert_eq!(names("events"), events);
    assert!(conditions.len() >= SEED_CONDITIONS, "{conditions:?}");
    assert!(conditions.is_superset(&KERNEL_CONDITIONS.map(str::to_owned).into()));
    let table = finish(&["catalog", "-o", "table"], b"");
    assert!(table.printed().contains("KernelDeadlock"), "{}", table.printed());
}

// Helpers.

/// Random bytes that are the same in each run (xorshift64*).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u8 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d).to_be_bytes()[0]
    }
}

/// Returns a pipe whose reader is gone.
fn nobody_reads() -> PipeWriter {
    let (_, writer) = std::io::pipe().expect("pipes are to be had");
    writer
}

/// Fills a pipe, so that the next write to it waits.
fn fill(mut pipe: &PipeWriter) {
    let before = fcntl_getfl(pipe).expect("a pipe has flags");
    fcntl_setfl(pipe, before | OFlags::NONBLOCK).expect("a pipe need not wait");
    while pipe.write(&[b' '; 512]).is_ok() {}
    fcntl_setfl(pipe, before).expect("as before");
}

fn data(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// How long this machine has run, as the kernel log counts.
fn uptime_us() -> u64 {
    let uptime = fs::read_to_string("/proc/uptime").expect("Linux has it");
    let seconds: u64 = uptime.split('.').next().and_then(|s| s.parse().ok()).expect("a number");
    seconds * 1_000_000
}

fn scratch() -> TempDir {
    TempDir::with_prefix("fettle-test-").expect("there is room for temporary files")
}

/// Classifies `lines` and returns what it says of each.
fn classify(lines: &[&str], flags: &[&str]) -> Vec<Value> {
    let arguments = [&["classify", "-o", "json"], flags, &["-"]].concat();
    let ended = finish(&arguments, format!("{}\n", lines.join("\n")).as_bytes());
    assert!(ended.status.success(), "{}\n{}", ended.status, ended.log);
    let said: Vec<Value> = ended.values().into_iter().cloned().collect();
    assert_eq!(said.len(), lines.len(), "one line of output for each of input");
    for (line, number) in said.iter().zip(1_u64..) {
        assert_eq!(line["line"], number, "{line}");
    }
    said
}

fn names(line: &Value) -> BTreeSet<String> {
    let findings = line["findings"].as_array().expect("findings are a list");
    findings.iter().filter_map(|finding| finding["name"].as_str().map(str::to_owned)).collect()
}

fn set(names: &str) -> BTreeSet<String> {
    names.split(',').filter(|name| *name != "NONE").map(str::to_owned).collect()
}

/// Runs the agent over `records` of a log that the test writes, until it has told them all.
fn follow(records: &[&str], flags: &[&str]) -> Ended {
    follow_in(scratch().path(), 0, records, flags)
}

/// Like [`follow`], with a state that `run` agents before have left.
fn follow_in(state: &Path, run: u64, records: &[&str], flags: &[&str]) -> Ended {
    let mut log = FakeLog::new();
    let agent = Agent::start(standalone(state, &log.path()).args(flags));
    log.play(&agent, run, records);
    agent.wait_following();
    let ended = agent.terminate();
    ended.assert_no_crash();
    let _ = ended.summary();
    ended
}

/// Returns how many findings the events called `name` stand for.
fn count(ended: &Ended, name: &str) -> u64 {
    let values = ended.values();
    let events = values.iter().filter(|line| line["kind"] == "event" && line["name"] == name);
    events.filter_map(|line| line["count"].as_u64()).sum()
}

/// Puts other bytes in place of each file of a state, and returns the files' names.
fn spoil(state: &Path, new: impl Fn(&[u8]) -> Vec<u8>) -> Vec<String> {
    let files: Vec<PathBuf> = fs::read_dir(state)
        .expect("the state is a directory")
        .map(|entry| entry.expect("it can be listed").path())
        .filter(|path| path.is_file())
        .collect();
    assert!(!files.is_empty(), "the agent kept no state");
    for file in &files {
        let bytes = fs::read(file).expect("a state is a file");
        fs::write(file, new(&bytes)).expect("the directory is the test's");
    }
    files.iter().map(|file| file.display().to_string()).collect()
}

fn replay(journal: &Path) -> String {
    let ended = finish(&["replay", "-o", "json", journal.to_str().expect("it is ASCII")], b"");
    assert!(ended.status.success(), "{}\n{}", ended.status, ended.log);
    ended.printed()
}

/// Replays a journal that is not whole: whether that is an error is the agent's to say.
fn replay_cut(journal: &Path) -> String {
    let ended = finish(&["replay", "-o", "json", journal.to_str().expect("it is ASCII")], b"");
    ended.assert_no_crash();
    ended.printed()
}

/// Fails unless `agent` says that it cannot tell, says why, stays, and ends when asked to.
fn assert_unknown(mut agent: Agent, kmsg: &str) {
    for name in KERNEL_CONDITIONS {
        let line = agent.wait_line(name, condition(name, "Unknown"));
        assert_eq!(line.value["reason"], "KernelLogUnreadable", "{}", line.text);
    }
    agent.wait_log(kmsg);
    sleep(Duration::from_millis(500));
    assert!(agent.is_alive(), "{kmsg}: it ended\n{}", agent.log());
    let used = agent.cpu_ticks();
    assert!(used < 30, "{kmsg}: it spins, {used} clock ticks");
    let ended = agent.terminate();
    let _ = ended.summary();
    ended.assert_no_crash();
    let is_healthy =
        |line: &&Value| KERNEL_CONDITIONS.iter().any(|name| condition(name, "False")(line));
    let healthy = ended.values().into_iter().find(is_healthy);
    assert_eq!(healthy, None, "{kmsg}: healthy without a log");
    assert!(ended.log.lines().count() < 20, "{kmsg}: it floods its log\n{}", ended.log);
}

const KERNEL_CONDITIONS: [&str; 5] = [
    "ReadonlyFilesystem",
    "KernelDeadlock",
    "VerityCorruption",
    "CperHardwareErrorFatal",
    "GpuFallenOffBus",
];

/// The conditions that the product's description names; Fettle may have some of its own.
const SEED_CONDITIONS: usize = 24;

/// The user that owns nothing, by the kernel's convention (`overflowuid`).
const NOBODY: u32 = 65534;

const LIMIT: Duration = Duration::from_secs(30);
