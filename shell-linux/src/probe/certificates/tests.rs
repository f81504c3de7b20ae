//! The probe of certificates, on real files and recorded output.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::thread;

use fettle_core::node::judge::certificate::renewal;
use fettle_core::node::judge::{Judgement, Limits, Memory};
use fettle_core::time::Instant;
use jiff::Timestamp as Calendar;
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

use super::*;

#[test]
fn every_certificate_of_a_bundle_is_read_as_openssl_made_it() {
    let node = Node::new();
    node.write("pki/node.pem", [NODE, CA].concat().as_bytes());
    let mut probe = node.probe(&["/pki/*.pem"]);
    assert_eq!(
        read(&mut probe),
        [
            "/pki/node.pem 1796075183..1827611183 CN=system:node:worker-1,O=system:nodes",
            "/pki/node.pem#2 1796075182..2111435182 CN=kubernetes",
        ]
    );
    let [row, ca] = probe.rows() else { panic!("{:?}", probe.rows()) };
    let of = |text: &Option<String>| text.clone().unwrap();
    assert_eq!((of(&row.issuer), of(&row.serial)), ("CN=kubernetes".into(), "4a5b6c7d8e9f".into()));
    assert_eq!((of(&ca.subject), of(&ca.serial)), ("CN=kubernetes".into(), "01".into()));
    assert_eq!((row.target.as_deref(), row.error.as_deref()), (None, None));
}

#[test]
fn rotated_out_files_are_history() {
    // H15
    let node = Node::new();
    node.write("pki/kubelet-client-2023-04-18.pem", &pem(&expires(-20 * D)));
    node.write("pki/kubelet-client-2024-01-04.pem", &pem(&expires(265 * D)));
    node.write("pki/kubelet-client-x.crt", &pem(&expires(D)));
    node.write("pki/other-2020.pem", &pem(&expires(2 * D)));
    symlink("kubelet-client-2024-01-04.pem", node.at("pki/kubelet-client-current.pem")).unwrap();
    let mut probe = node.probe(&["/pki/*.pem", "/pki/*.crt"]);
    assert_eq!(
        objects(&read(&mut probe)),
        ["/pki/kubelet-client-current.pem", "/pki/kubelet-client-x.crt", "/pki/other-2020.pem"]
    );
    let current = &probe.rows()[0];
    assert_eq!(current.target.as_deref(), Some("kubelet-client-2024-01-04.pem"));
    assert_eq!(current.not_after, Some(Timestamp::from_unix_secs(NOW + 265 * D)));
}

#[test]
fn without_a_current_link_nothing_is_history() {
    let node = Node::new();
    node.write("pki/a-2023.pem", &pem(&expires(D)));
    node.write("pki/a-current.pem", &pem(&expires(D)));
    node.write("pki/b-2023.pem", &pem(&expires(D)));
    symlink("b-2024.pem", node.at("pki/b-current.pem")).unwrap();
    let read = read(&mut node.probe(&["/pki/*.pem"]));
    assert_eq!(objects(&read), ["/pki/a-2023.pem", "/pki/a-current.pem", "/pki/b-current.pem"]);
    assert_eq!(read[2], "/pki/b-current.pem ! the link leads nowhere");
}

#[test]
fn what_is_due_is_told_by_the_lifetime() {
    // H16, and one that has expired among good ones.
    for (from_s, until_s, want) in [
        (-10 * H, 14 * H, "healthy"),
        (-23 * H, H, "problem"),
        (-300 * D, -D, "problem"),
        (-300 * D, 65 * D, "healthy"),
    ] {
        let node = Node::new();
        node.write("a.pem", &pem(&certificate(&name(b"a"), &[1], [NOW + from_s, NOW + until_s])));
        let mut batch = Batch::default();
        assert_eq!(node.probe(&["/a.pem"]).read(&mut batch), Outcome::Complete);
        let (at, limits) = (Instant::from_millis(0), Limits::default());
        let reading = batch.readings().next().unwrap();
        let got = match renewal(at, &reading, &limits, &mut Memory::None) {
            Judgement::Healthy => "healthy",
            Judgement::Problem(_) => "problem",
            Judgement::NotMine | Judgement::NotYet(_) | Judgement::Unknown(_) => "neither",
        };
        assert_eq!(got, want, "{from_s} {until_s}");
    }
}

#[test]
fn what_holds_no_certificate_is_unknown_and_a_key_is_not() {
    let (good, key) = (pem(&expires(D)), KEY.as_bytes());
    let with_key = [&good, key].concat();
    let holds_key = "holds a key and no certificate";
    let rows: [(&str, &[u8], &str); 12] = [
        ("a.crt", b"", "is empty"),
        ("a.crt", b"\xff\x00 garbage \n", "holds no certificate"),
        ("a.crt", b"# a comment\n", "holds no certificate"),
        ("a.crt", key, holds_key),
        ("a.pem", key, holds_key),
        ("a.key", key, ""),
        ("a.key", b"garbage", "holds no certificate"),
        ("a.pem", &with_key, "CN=a"),
        ("a.crt", &expires(D), "CN=a"),
        ("a.crt", &[0x30], "is no certificate: "),
        ("a.crt", &expires(D)[..99], "is no certificate: "),
        ("a.crt", &pem(b"\x30\x03\x02\x01\x00"), "is no certificate: "),
    ];
    for (file, bytes, want) in rows {
        let node = Node::new();
        node.write(file, bytes);
        let read = read(&mut node.probe(&["/a.*"]));
        match want {
            "" => assert!(read.is_empty(), "{file} {read:?}"),
            want => assert!(read.len() == 1 && read[0].contains(want), "{file} {read:?} {want}"),
        }
        assert!(!read.concat().contains("c2VjcmV0"), "a key is printed: {read:?}");
    }
}

#[test]
fn a_broken_block_hides_none_of_its_neighbours() {
    let good = String::from_utf8(pem(&expires(D))).unwrap();
    let no_base64 = good.replace("MHM", "M\u{fffd}!");
    let trusted = good.replace(" CERT", " TRUSTED CERT");
    let with_mark = format!("\u{feff}{good}");
    let not_whole = "! 1 certificates are not whole";
    for (parts, want) in [
        (vec![good.as_str(), &no_base64, &good], vec!["CN=a", "! the block is no base64", "CN=a"]),
        (vec![&good, "text between\n", KEY, &good], vec!["CN=a", "CN=a"]),
        (vec![&good, &trusted], vec!["CN=a", not_whole]),
        (vec![&with_mark, &good], vec!["CN=a", not_whole]),
        (vec![&good, "-----BEGIN CERT"], vec!["CN=a", "! the block has no proper beginning"]),
        (vec![&good, "-----BEGIN CERTIFICATE-----\nMII"], vec!["CN=a", "! the block has no end"]),
        (vec![&good[..100], "\n", &good], vec!["! is no certificate: ", not_whole]),
    ] {
        let node = Node::new();
        node.write("a.crt", parts.concat().as_bytes());
        let read = read(&mut node.probe(&["/a.crt"]));
        assert_eq!(read.len(), want.len(), "{read:?}");
        for (line, want) in read.iter().zip(&want) {
            assert!(line.contains(want), "{line:?} {want:?}");
        }
    }
}

#[test]
fn a_file_that_is_cut_anywhere_is_never_quite_healthy() {
    let node = Node::new();
    let whole = pem(&expires(D));
    let length = whole.trim_ascii_end().len();
    for cut in 0..length {
        node.write("a.crt", &whole[..cut]);
        let read = read(&mut node.probe(&["/a.crt"]));
        // The last dashes may be missing: the certificate before them is whole.
        assert!(
            read.len() == 1 && (read[0].contains(" ! ") || cut + 5 >= length),
            "{cut} {read:?}"
        );
    }
}

#[test]
fn no_byte_of_a_certificate_can_upset_the_probe() {
    let node = Node::new();
    let good = expires(D);
    for at in 0..good.len() {
        for byte in [0, 0x7f, 0x80, 0xff, good[at] ^ 1] {
            let mut bad = good.clone();
            bad[at] = byte;
            node.write("a.crt", &pem(&bad));
            assert_eq!(read(&mut node.probe(&["/a.crt"])).len(), 1, "{at} {byte}");
        }
    }
}

#[test]
fn hostile_names_are_one_short_line() {
    let long = "x".repeat(10_000);
    for (common_name, want) in [
        (&b"two\nlines\x1b[31m\0"[..], "CN=two\\0alines\\1b[31m\\00"),
        (b"\xff\xfe", "=#0c02fffe"),
        ("\u{202e}gnp.exe".as_bytes(), "CN=\u{fffd}gnp.exe"),
        (long.as_bytes(), "xxx…"),
        (b"", "CN="),
        (b"a,O=b", "CN=a\\,O=b"),
    ] {
        let node = Node::new();
        let serial = [0xab; 40];
        node.write("a.crt", &pem(&certificate(&name(common_name), &serial, [NOW, NOW + D])));
        let mut probe = node.probe(&["/a.crt"]);
        let read = read(&mut probe);
        assert!(read.len() == 1 && read[0].contains(want), "{read:?}");
        assert!(read[0].len() < 400 && !read[0].contains('\n'));
        assert_eq!(probe.rows()[0].serial, Some("ab".repeat(40)));
    }
}

#[test]
fn long_and_odd_paths_stay_apart() {
    let folder = "f".repeat(120);
    let node = Node::new();
    for file in ["a.crt", "b.crt", "b\n.crt"] {
        node.write(&format!("{folder}/{file}"), &[pem(&expires(D)), pem(&expires(D))].concat());
    }
    let read = read(&mut node.probe(&["/*/*.crt"]));
    let objects = objects(&read);
    assert_eq!(objects.iter().collect::<BTreeSet<_>>().len(), 6);
    assert!(objects.iter().all(|object| object.len() <= SUBJECT_MAX), "{objects:?}");
}

#[test]
fn what_may_not_be_read_is_unknown() {
    let node = Node::new();
    node.write("a/a.crt", &pem(&expires(D)));
    node.write("b/b.crt", &pem(&expires(D)));
    fs::set_permissions(node.at("b/b.crt"), fs::Permissions::from_mode(0o000)).unwrap();
    let unprivileged = |patterns: &[&str]| {
        let mut probe = node.probe(patterns);
        thread::scope(|scope| scope.spawn(|| unprivileged(&mut probe)).join().unwrap())
    };
    let (outcome, read) = unprivileged(&["/a/*.crt", "/b/*.crt"]);
    assert_eq!((outcome, read.len()), (Outcome::Complete, 2));
    assert_eq!(read[1], "/b/b.crt ! Permission denied (os error 13)");
    fs::set_permissions(node.at("b"), fs::Permissions::from_mode(0o000)).unwrap();
    let (outcome, read) = unprivileged(&["/a/*.crt", "/b/*.crt"]);
    assert_eq!((outcome, read.len()), (Outcome::Complete, 2));
    assert_eq!(read[0], "/b ! Permission denied (os error 13)");
    let (outcome, read) = unprivileged(&["/b/*.crt"]);
    assert!(matches!(outcome, Outcome::Failed { .. }) && read.is_empty(), "{outcome:?}");
}

#[test]
fn a_folder_or_a_pipe_is_no_certificate() {
    let node = Node::new();
    fs::create_dir_all(node.at("pki/a.crt")).unwrap();
    let pipe = node.at("pki/b.crt");
    let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).unwrap();
    node.write("pki/c.crt", &vec![b'#'; 1024 * 1024 + 1]);
    let read = read(&mut node.probe(&["/pki/*.crt"]));
    assert_eq!(
        read,
        [
            "/pki/a.crt ! is a directory",
            "/pki/b.crt ! invalid input parameter",
            "/pki/c.crt ! file too large"
        ]
    );
}

#[test]
fn nothing_outside_the_root_is_read() {
    let (node, outside) = (Node::new(), Node::new());
    outside.write("secret.crt", &pem(&expires(D)));
    fs::create_dir(node.at("pki")).unwrap();
    symlink(outside.at("secret.crt"), node.at("pki/a.crt")).unwrap();
    assert_eq!(read(&mut node.probe(&["/pki/*.crt"])), ["/pki/a.crt ! the link leads nowhere"]);
}

#[test]
fn certificates_that_vanish_are_missed() {
    let node = Node::new();
    let mut probe = node.probe(&["/pki/*.crt", "/other/*.crt"]);
    assert_eq!(probe.read(&mut Batch::default()), Outcome::NotApplicable);
    node.write("pki/a.crt", &pem(&expires(D)));
    assert_eq!(read(&mut probe).len(), 1);
    fs::remove_dir_all(node.at("pki")).unwrap();
    assert_eq!(read(&mut probe), ["/pki/*.crt ! no file is there that matches"]);
    let patterns = vec![Pattern::new("/pki/*.crt").unwrap()];
    let root = node.folder.path().to_owned();
    let mut expected = Certificates::new(root, patterns, true, wall);
    assert_eq!(read(&mut expected), ["/pki/*.crt ! no file is there that matches"]);
}

#[test]
fn what_is_left_out_is_counted() {
    let node = Node::new();
    for number in 0..FILES_MAX + 3 {
        node.write(&format!("many/{number}.crt"), &pem(&expires(D)));
    }
    node.write("one/a.crt", &pem(&expires(D)).repeat(ROWS_MAX + 5));
    for (pattern, rows, want) in [("/many/*", FILES_MAX, 3), ("/one/*", ROWS_MAX, 5)] {
        let mut probe = node.probe(&[pattern]);
        let read = read(&mut probe);
        assert_eq!((probe.rows().len(), read.len()), (rows + 1, rows + 1), "the last one says so");
        let want = format!("certificates ! {want} more files or certificates are not read");
        assert_eq!(read.last(), Some(&want));
    }
}

#[test]
fn a_folder_too_full_to_look_through_is_told() {
    let node = Node::new();
    fs::create_dir(node.at("full")).unwrap();
    for number in 0..=NAMES_MAX {
        fs::hard_link(node.empty(), node.at(&format!("full/{number}"))).unwrap();
    }
    let want = "certificates ! 1 more files or certificates are not read";
    assert_eq!(read(&mut node.probe(&["/full/*.crt"])), [want]);
}

/// Reads as a thread that must respect permissions, whoever runs the tests.
fn unprivileged(probe: &mut Certificates) -> (Outcome, Vec<String>) {
    let mut sets = capabilities(None).unwrap();
    sets.effective -= CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
    set_capabilities(None, sets).unwrap();
    let mut batch = Batch::default();
    let outcome = probe.read(&mut batch);
    (outcome, lines(&batch))
}

/// Returns a line for each reading.
fn read(probe: &mut Certificates) -> Vec<String> {
    let mut batch = Batch::default();
    let outcome = probe.read(&mut batch);
    assert_eq!(outcome, Outcome::Complete);
    lines(&batch)
}

fn lines(batch: &Batch) -> Vec<String> {
    let line = |reading| {
        if let Reading::Unreadable(unreadable) = reading {
            return format!("{} ! {}", unreadable.object, unreadable.why);
        }
        let Reading::Certificate(certificate) = reading else { panic!("{reading:?}") };
        let Certificate { path, subject, not_before, not_after, .. } = certificate;
        format!("{path} {}..{} {subject}", not_before.unix_secs(), not_after.unix_secs())
    };
    batch.readings().map(line).collect()
}

fn objects(lines: &[String]) -> Vec<&str> {
    lines.iter().map(|line| line.split(' ').next().unwrap()).collect()
}

struct Node {
    folder: tempfile::TempDir,
}

impl Node {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn empty(&self) -> PathBuf {
        let path = self.at("empty");
        fs::write(&path, "").unwrap();
        path
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn probe(&self, patterns: &[&str]) -> Certificates {
        let patterns = patterns.iter().map(|pattern| Pattern::new(pattern).unwrap()).collect();
        Certificates::new(self.folder.path().to_owned(), patterns, false, wall)
    }
}

fn wall() -> Timestamp {
    Timestamp::from_unix_secs(NOW)
}

/// Returns a certificate for `a` that expires in `in_s` seconds.
fn expires(in_s: i64) -> Vec<u8> {
    certificate(&name(b"a"), &[1], [NOW - 365 * D, NOW + in_s])
}

/// Returns a certificate whose signature nobody would accept; nobody looks at it.
fn certificate(name: &[u8], serial: &[u8], validity: [i64; 2]) -> Vec<u8> {
    let time = |at_s| Calendar::from_second(at_s).unwrap().strftime("%Y%m%d%H%M%SZ").to_string();
    let [from, until] = validity.map(|at_s| tlv(0x18, &[time(at_s).as_bytes()]));
    let algorithm = tlv(0x30, &[b"\x06\x08\x2a\x86\x48\xce\x3d\x04\x03\x02"]);
    let key = tlv(0x30, &[&algorithm, b"\x03\x02\x00\x04"]);
    let (serial, validity) = (tlv(2, &[serial]), tlv(0x30, &[&from, &until]));
    let body = tlv(0x30, &[&serial, &algorithm, name, &validity, name, &key]);
    tlv(0x30, &[&body, &algorithm, b"\x03\x02\x00\x04"])
}

/// Returns a name of one common name, which is called UTF-8 whatever it holds.
fn name(common_name: &[u8]) -> Vec<u8> {
    let text = tlv(0x0c, &[common_name]);
    tlv(0x30, &[&tlv(0x31, &[&tlv(0x30, &[b"\x06\x03\x55\x04\x03", &text])])])
}

fn tlv(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let value = parts.concat();
    let length = u16::try_from(value.len()).unwrap().to_be_bytes();
    let header = match value.len() {
        0..0x80 => vec![tag, length[1]],
        0x80..0x100 => vec![tag, 0x81, length[1]],
        _ => vec![tag, 0x82, length[0], length[1]],
    };
    [header, value].concat()
}

fn pem(der: &[u8]) -> Vec<u8> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = b"-----BEGIN CERTIFICATE-----\n".to_vec();
    for (number, chunk) in der.chunks(3).enumerate() {
        let at = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for digit in 0..4 {
            let value = usize::try_from(bits >> (18 - 6 * digit) & 63).unwrap();
            text.push(if digit <= chunk.len() { DIGITS[value] } else { b'=' });
        }
        if number % 16 == 15 {
            text.push(b'\n');
        }
    }
    text.extend_from_slice(b"\n-----END CERTIFICATE-----\n");
    text
}

const H: i64 = 3600;
const D: i64 = 24 * H;
const NOW: i64 = 1_800_000_000;

/// The word "secret", marked as a key.
const KEY: &str = "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n";

/// Made by OpenSSL 3.0: signed by the next one, 30 November 2026 21:46:23 to the same day of 2027.
const NODE: &str = "\
-----BEGIN CERTIFICATE-----
MIIBNzCB3gIGSltsfY6fMAoGCCqGSM49BAMCMBUxEzARBgNVBAMMCmt1YmVybmV0
ZXMwHhcNMjYxMTMwMjE0NjIzWhcNMjcxMTMwMjE0NjIzWjA2MRUwEwYDVQQKDAxz
eXN0ZW06bm9kZXMxHTAbBgNVBAMMFHN5c3RlbTpub2RlOndvcmtlci0xMFkwEwYH
KoZIzj0CAQYIKoZIzj0DAQcDQgAEBVBnpAYLZvlFF8AXn7kUvmm8Og8gHMebcoUY
OWVVJ1QoSGp1ZO98vtDW7Hq9q49S5HfEjDaowy5+0Qe4Q1IKjjAKBggqhkjOPQQD
AgNIADBFAiAetcvWoF9IjuKppiwISwu0WC6fhOMrb3QX9h2f6rwzkgIhAORR9xpY
2y+uSGRJlFt65Bi7dMiIr/07UQMc5CfYs9o4
-----END CERTIFICATE-----
";

/// 30 November 2026 21:46:22 to 27 November 2036.
const CA: &str = "\
-----BEGIN CERTIFICATE-----
MIIBbDCCARKgAwIBAgIBATAKBggqhkjOPQQDAjAVMRMwEQYDVQQDDAprdWJlcm5l
dGVzMB4XDTI2MTEzMDIxNDYyMloXDTM2MTEyNzIxNDYyMlowFTETMBEGA1UEAwwK
a3ViZXJuZXRlczBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABLHHoQy2+gnm8fJA
dB7uP3pyhoSgTNYbh9dY6vixHxv96yLALlsUTXce9OpTbzfh6mQTh7lmdG7Es/x5
kmPnU3WjUzBRMB0GA1UdDgQWBBQaA3DPtFHayVv99nhJogttgKh9oDAfBgNVHSME
GDAWgBQaA3DPtFHayVv99nhJogttgKh9oDAPBgNVHRMBAf8EBTADAQH/MAoGCCqG
SM49BAMCA0gAMEUCIQCkGiQ4Mf2kjl4EAWvQh3Nd6pRHT2/sSDOJqqWwz8H3qQIg
fRrGgPJJO8sxD/OitvmJexY/V1DAk1vOiB6XG0Fq3iQ=
-----END CERTIFICATE-----
";
