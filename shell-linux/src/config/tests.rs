//! Tests of the configuration: every key, every error with its place, and hostile files.

use super::*;

/// Returns what is wrong with `text`, one line each.
fn wrong(text: &str) -> String {
    Config::parse(text).expect_err(text).to_string()
}

fn right(text: &str) -> Config {
    match Config::parse(text) {
        Ok(config) => config,
        Err(problems) => panic!("{text}: {problems}"),
    }
}

#[test]
fn the_example_gives_every_key_its_default() {
    let example = include_str!("../../agent.example.yaml");
    let unset = |config: Config| Config { set: BTreeSet::new(), ..config };
    let mut want = Config::default();
    assert_eq!(unset(right(example)), want);

    let example = uncommented(example);
    let config = right(&example);
    for key in keys::names() {
        assert!(config.is_set(key), "the example lacks {key}");
    }
    want.audit.proxy_cidrs = config.audit.proxy_cidrs.clone();
    want.cri.sockets.truncate(1);
    want.role = Some(Role::Worker);
    let critical = want.units.critical(Role::Worker);
    want.units.critical = Some(critical.into_iter().map(str::to_owned).collect());
    assert_eq!(unset(config), want);
}

/// Takes the mark from settings that are commented out; comments have a space behind it.
fn uncommented(example: &str) -> String {
    let line = |line: &str| match line.split_once('#') {
        Some((indent, setting)) if indent.trim().is_empty() && !setting.starts_with(' ') => {
            format!("{indent}{setting}\n")
        }
        _ => format!("{line}\n"),
    };
    example.lines().map(line).collect()
}

#[test]
fn the_core_gets_what_it_has_to_know() {
    assert_eq!(Config::default().settings(), Settings::default());
    let config = right(
        "disk: {usagePct: 80, inodePct: 81, clearBelow: 2}
kubelet: {deadline: 4s}
cri: {deadline: 1m}
repair: {dryRun: true}
lvm: {vgFree: true}
kmsg: {trustUserspace: true}
conditions: {DiskUsageHigh: {interval: 1m30s, enabled: false}, KernelDeadlock: {clear: proof}}",
    );
    let mut want = Settings { trust_userspace: true, ..Settings::default() };
    want.limits = Limits {
        cri_deadline_ms: 60_000,
        kubelet_deadline_ms: 4_000,
        usage_pct: 80,
        inode_pct: 81,
        clear_below_pct: 2,
        volume_group_free: true,
    };
    want.repair.mode = Mode::DryRun;
    want.schedule.enabled[ConditionType::DiskUsageHigh.index()] = false;
    want.schedule.intervals_s[ConditionType::DiskUsageHigh.index()] = 90;
    want.clear[ConditionType::KernelDeadlock.index()] = Clear::Proof;
    assert_eq!(config.settings(), want);
    for (text, mode) in
        [("{enabled: false}", Mode::Off), ("{enabled: false, dryRun: true}", Mode::Off)]
    {
        assert_eq!(right(&format!("repair: {text}")).settings().repair.mode, mode, "{text}");
    }
}

#[test]
fn nothing_said_is_the_defaults() {
    for text in ["", "\n", "# nothing\n", "---\n", "{}", "disk:\nconditions: {}\n", "\u{feff}"] {
        let config = Config { set: BTreeSet::new(), ..right(text) };
        assert_eq!(config, Config::default(), "{text:?}");
    }
}

#[test]
fn keys_take_what_they_are_meant_for() {
    // text, how the configuration shows what it holds afterwards
    type Show = fn(&Config) -> String;
    let rows: &[(&str, Show, &str)] = &[
        ("annotationPrefix: a-1.example", |c| c.annotation_prefix.clone(), "a-1.example"),
        ("audit: {path: /a}", |c| c.audit.path.display().to_string(), "/a"),
        ("audit: {proxyCIDRs: []}", |c| format!("{:?}", c.audit.proxy_cidrs), "Some([])"),
        ("audit: {proxyCIDRs: [10.0.0.0/8, ::/0]}", cidrs, "10.0.0.0/8 ::/0"),
        ("certificates: ['/a/[!b]?/**']", |c| c.certificates[0].to_string(), "/a/[!b]?/**"),
        ("cilium: {socket: /a}", |c| c.cilium_socket.display().to_string(), "/a"),
        ("cri: {socket: /a}", |c| format!("{:?}", c.cri.sockets), "[\"/a\"]"),
        ("cri: {deadline: 1m}", |c| format!("{:?}", c.cri.deadline), "60s"),
        ("disk: {usagePct: 1, clearBelow: 1}", |c| c.disk.usage_pct.to_string(), ""),
        ("disk: {usagePct: 100}", |c| c.disk.usage_pct.to_string(), "100"),
        ("disk: {inodePct: 4}", |c| c.disk.inode_pct.to_string(), "4"),
        ("disk: {clearBelow: 84}", |c| c.disk.clear_below.to_string(), "84"),
        ("expect: [lvm, audit]", |c| format!("{:?}", c.expect), "[Lvm, Audit]"),
        ("gpu: {cdi: [/a], marker: /b}", |c| format!("{:?}", c.gpu.cdi), "[\"/a\"]"),
        ("kmsg: {trustUserspace: true}", |c| c.trust_userspace.to_string(), "true"),
        (
            "kubelet: {healthz: 'http://[::1]:1'}",
            |c| c.kubelet.healthz.to_string(),
            "http://[::1]:1/",
        ),
        (
            "kubelet: {healthz: 'http://localhost:80/x?y=1'}",
            |c| c.kubelet.healthz.to_string(),
            "http://127.0.0.1:80/x?y=1",
        ),
        ("kubelet: {deadline: .1s}", |c| format!("{:?}", c.kubelet.deadline), "100ms"),
        ("lvm: {vgFree: true}", |c| c.vg_free.to_string(), "true"),
        ("metrics: {listen: '[::]:0'}", |c| c.listen.to_string(), "[::]:0"),
        ("nodesJson: {maxAge: 1h30m}", |c| format!("{:?}", c.nodes_json.max_age), "5400s"),
        ("protected: []", |c| c.protected.len().to_string(), "0"),
        ("reboot: {enabled: true}", |c| c.reboot.to_string(), "true"),
        ("repair: {dryRun: true}", |c| c.repair.dry_run.to_string(), "true"),
        ("role: controlPlane", |c| format!("{:?}", c.role), "Some(ControlPlane)"),
        ("tunnel: {gauge: 'a:b_1'}", |c| c.tunnel.gauge.clone(), "a:b_1"),
        ("units: {critical: ['a@b\\x2d.service']}", critical, "a@b\\x2d.service"),
        ("units: {critical: &a [a.timer], operability: *a}", critical, "a.timer"),
        (
            "conditions: {DiskUsageHigh: {interval: 10s}}",
            |c| format!("{:?}", c.condition(ConditionType::DiskUsageHigh).interval),
            "Some(10s)",
        ),
        (
            "conditions: {KernelDeadlock: {clear: proof}}",
            |c| format!("{:?}", c.settings().clear[ConditionType::KernelDeadlock.index()]),
            "Proof",
        ),
        (
            "conditions: {NodeTampered: {enabled: false}}",
            |c| c.condition(ConditionType::NodeTampered).enabled.to_string(),
            "false",
        ),
    ];
    for (text, show, want) in rows {
        if want.is_empty() {
            assert!(Config::parse(text).is_err(), "{text}");
        } else {
            assert_eq!(show(&right(text)), *want, "{text}");
        }
    }
}

fn cidrs(config: &Config) -> String {
    let cidrs = config.audit.proxy_cidrs.iter().flatten().map(Cidr::to_string);
    Vec::from_iter(cidrs).join(" ")
}

fn critical(config: &Config) -> String {
    config.units.critical(Role::Worker).join(" ")
}

#[test]
fn a_bad_value_is_named_with_its_place_and_what_would_do() {
    let (_, rows) = include_str!("bad-values.txt").split_once("\n\n").expect("a head");
    let rows: Vec<&str> = rows.trim_end().split("\n\n").collect();
    assert!(rows.len() >= 40, "{}", rows.len());
    for row in rows {
        let (text, want) = row.split_once("\n----\n").expect(row);
        assert_eq!(wrong(text), want, "{text}");
    }
}

#[test]
fn every_problem_is_told_in_the_order_of_the_file() {
    let text = "disk: {usagepct: 85, clearBelow: 99}\nkubelet:\n  healthz: x\n  deadline: 1\n\
                kubelet: {}\n1: 2\nröle: worker\n\"a\\nb\": 1\n";
    let want = "1:8: disk.usagepct: unknown key (did you mean usagePct?); known here: clearBelow, inodePct, usagePct
1:34: disk.clearBelow: 99 points below 85 % is never reached; let disk.clearBelow be less than disk.usagePct and disk.inodePct
3:12: kubelet.healthz: \"x\" does not begin with http://; give an address such as http://127.0.0.1:10248/healthz
4:13: kubelet.deadline: 1 has no unit; give a time from 100ms to 1m
5:1: kubelet: is there twice, first on line 2; take one out
6:1: 1 is no key; give a name
7:1: \"röle\": unknown key (did you mean role?); known here: annotationPrefix, audit, certificates, cilium, conditions, cri, disk, expect, gpu, kmsg, kubelet, lvm, metrics, nodesJson, protected, proxy, reboot, repair, role, sealed, tunnel, units
8:1: \"a\\nb\": unknown key; known here: annotationPrefix, audit, certificates, cilium, conditions, cri, disk, expect, gpu, kmsg, kubelet, lvm, metrics, nodesJson, protected, proxy, reboot, repair, role, sealed, tunnel, units";
    assert_eq!(wrong(text), want);
    let many: String = (0..60).map(|n| format!("key{n}: 1\n")).collect();
    assert!(wrong(&many).ends_with("\nand 10 more"));
}

#[test]
fn what_is_no_yaml_is_refused_at_its_place() {
    let too_much = "more or deeper nested than a configuration can be; is this the right file?";
    let bomb = |fan: usize| {
        let item = |name: char| format!("{name},").repeat(fan);
        let (a, b) = (format!("*{}", item('a')), format!("*{}", item('b')));
        let (a, b) = (a.replace(",a", ",*a"), b.replace(",b", ",*b"));
        format!("a: &a [{}]\nb: &b [{a}]\nc: &c [{b}]", item('1'))
    };
    for (text, place, what) in [
        ("role: [", "1:7", "unclosed bracket"),
        ("role: a: b", "1:8", "mapping values are not allowed"),
        ("disk:\n\tusagePct: 1", "2:2", "tabs disallowed"),
        ("role: \0", "1:7", "unexpected character"),
        ("role: worker\0", "1:13", "unexpected character"),
        ("role: \"\\q\"", "1:7", "unknown escape character"),
        ("role: *a", "1:7", "unknown anchor"),
        ("role: !mine worker", "1:13", "unsupported tag"),
        ("role: worker\n---\nrole: worker\n", "3:1", "a second document begins; keep one"),
        (&"- ".repeat(1000), "1:33", too_much),
        (&"a: {".repeat(1000), "1:64", too_much),
        (&"[".repeat(1000), "", "recursion limit exceeded"),
        (&"a: 1\n".repeat(50_000), "10000:4", too_much),
        (&bomb(90), "3:11", too_much),
        (&bomb(200), "", too_much),
    ] {
        let start: String = text.chars().take(40).collect();
        let problems = wrong(text);
        assert!(problems.starts_with(place), "{start}: {problems}");
        assert!(problems.contains(what), "{start}: {problems}");
        assert!(!problems.contains('\n'), "{start}: {problems}");
    }
}

#[test]
fn a_mebibyte_of_junk_is_an_error_and_soon() {
    for unit in [
        "x",
        "[",
        "{",
        "- ",
        "? ",
        "a: ",
        "&a ",
        "*a ",
        "!a ",
        "\"",
        "'",
        "\n",
        " ",
        "#",
        "|\n",
        "- a\n",
        "é",
        "\u{feff}",
        "\r",
        "%",
        "---\n",
        "a:\n ",
        "[a, ",
        "\"a\": ",
        "\t",
        "\\",
        "a: &a [*a]\n",
        ": ",
        ", ",
    ] {
        let text = unit.repeat(FILE_MAX / unit.len());
        match Config::parse(&text) {
            Err(problems) => assert!(!problems.to_string().is_empty()),
            Ok(_) => assert!("\n #\t\r\u{feff}".contains(unit), "{unit:?}"),
        }
    }
    let larger = "#".repeat(FILE_MAX + 1);
    assert_eq!(wrong(&larger), "1:1: larger than 1024 KiB; is this the right file?");
}

#[test]
fn networks_hold_their_addresses() {
    for (network, address, want) in [
        ("10.0.0.0/8", "10.255.0.1", true),
        ("10.0.0.0/8", "11.0.0.0", false),
        ("10.0.0.0/8", "::ffff:10.0.0.1", true),
        ("0.0.0.0/0", "255.1.2.3", true),
        ("0.0.0.0/0", "::1", false),
        ("192.0.2.1/32", "192.0.2.1", true),
        ("192.0.2.1/32", "192.0.2.0", false),
        ("::/0", "ffff::", true),
        ("fd00::/8", "fdff::1", true),
        ("fd00::/8", "fe80::1", false),
    ] {
        let config = right(&format!("audit: {{proxyCIDRs: [\"{network}\"]}}"));
        let cidr = config.audit.proxy_cidrs.expect("set")[0];
        assert_eq!(cidr.contains(address.parse().expect(address)), want, "{network} {address}");
    }
}
