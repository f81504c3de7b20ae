//! Time for one kernel record: the automaton, the classifier, the agent's step and the journal.
//!
//! Every benchmark takes 1,000 records at a time, so that its microseconds are nanoseconds for one
//! record. Peers' ways to the same answer stand beside ours, measured in the same run.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use fettle_core::node::rules::classify;
use fettle_core::wire::kmsg::Record;
use fettle_tests::lines;

fn main() {
    divan::main();
}

/// Records that a benchmark takes at a time.
const RECORDS: usize = 1000;

/// Which lines a benchmark takes.
#[derive(Debug, Clone, Copy)]
enum Lines {
    /// Lines that report a fault.
    Faults,
    /// Lines that almost do.
    NearMisses,
    /// Lines of a node that is well.
    Quiet,
}

impl Lines {
    const ALL: [Self; 3] = [Self::Quiet, Self::NearMisses, Self::Faults];

    fn take(self) -> Vec<&'static str> {
        let lines = match self {
            Self::Faults => lines::faults(),
            Self::NearMisses => lines::near_misses(),
            Self::Quiet => lines::QUIET.to_vec(),
        };
        lines.into_iter().cycle().take(RECORDS).collect()
    }
}

/// Which fragments stand in a record: ours beside two peers' ways.
mod scan {
    use aho_corasick::AhoCorasick;
    use fettle_core::node::rules::{fragments, scan};

    use super::*;

    #[divan::bench(args = Lines::ALL)]
    fn automaton(bencher: Bencher<'_, '_>, lines: Lines) {
        each_line(bencher, lines, |line| scan(line.as_bytes()));
    }

    #[divan::bench(args = Lines::ALL)]
    fn aho_corasick(bencher: Bencher<'_, '_>, lines: Lines) {
        let automaton = AhoCorasick::new(fragments()).expect("the fragments are few");
        each_line(bencher, lines, |line| {
            let matches = automaton.find_overlapping_iter(line);
            matches.fold(0, |found, one| found | 1_u64 << one.pattern().as_u64())
        });
    }

    #[divan::bench(args = Lines::ALL)]
    fn regex_of_fragments(bencher: Bencher<'_, '_>, lines: Lines) {
        let escaped: Vec<String> = fragments().iter().map(|one| regex::escape(one)).collect();
        let set = regex::RegexSet::new(escaped).expect("the fragments are few");
        each_line(bencher, lines, |line| set.matches(line).iter().count());
    }
}

/// What a record means: ours beside node-problem-detector's rules.
///
/// Its rules read less: one name for each line, without device, task or number.
mod classify_record {
    use regex::{Regex, RegexSet};

    use super::*;

    #[divan::bench(args = Lines::ALL)]
    fn ours(bencher: Bencher<'_, '_>, lines: Lines) {
        each_line(bencher, lines, |line| classify(&Record::bare(line.as_bytes())));
    }

    #[divan::bench(args = Lines::ALL)]
    fn npd_rules_at_once(bencher: Bencher<'_, '_>, lines: Lines) {
        let set = RegexSet::new(NPD_RULES).expect("the rules are fixed");
        each_line(bencher, lines, |line| set.matches(line).iter().count());
    }

    /// As node-problem-detector does, but in Rust.
    #[divan::bench(args = Lines::ALL)]
    fn npd_rules_in_turn(bencher: Bencher<'_, '_>, lines: Lines) {
        let rules = NPD_RULES.map(|rule| Regex::new(rule).expect("the rules are fixed"));
        each_line(bencher, lines, |line| rules.iter().filter(|rule| rule.is_match(line)).count());
    }

    /// `config/kernel-monitor.json` and `config/readonly-monitor.json` of node-problem-detector.
    const NPD_RULES: [&str; 15] = [
        r"Killed process \d+ (.+) total-vm:\d+kB, anon-rss:\d+kB, file-rss:\d+kB.*",
        r"task [\S ]+:\w+ blocked for more than \w+ seconds\.",
        r"unregister_netdevice: waiting for \w+ to become free. Usage count = \d+",
        r"BUG: unable to handle kernel NULL pointer dereference at .*",
        r"divide error: 0000 \[#\d+\] SMP",
        r"EXT4-fs error .*",
        r"EXT4-fs warning .*",
        r"Buffer I/O error .*",
        r"CE memory read error .*",
        r".*\[Hardware Error\]: event severity: corrected$",
        r".*\[Hardware Error\]: event severity: recoverable$",
        r".*\[Hardware Error\]: event severity: fatal$",
        r"XFS .* Shutting down filesystem.?",
        r"task docker:\w+ blocked for more than \w+ seconds\.",
        r"Remounting filesystem read-only",
    ];
}

/// All that the agent does with a record: parse, follow, classify, judge, fold.
mod step {
    use fettle_core::node::agent::{Agent, Input, Settings};
    use fettle_core::time::Instant;

    use super::*;

    #[divan::bench(args = Lines::ALL)]
    fn parse(bencher: Bencher<'_, '_>, lines: Lines) {
        let records = Numbered::new(lines.take()).next_batch();
        bencher.counter(ItemsCount::new(RECORDS)).bench_local(|| {
            for record in &records {
                let _ = black_box(Record::parse(black_box(record.as_bytes())));
            }
        });
    }

    #[divan::bench(args = [0, 1, 10])]
    fn matching_pct(bencher: Bencher<'_, '_>, matching_pct: usize) {
        steps(bencher, lines::mixed(RECORDS, matching_pct).collect());
    }

    #[divan::bench]
    fn storm_of_one_object(bencher: Bencher<'_, '_>) {
        let line = "EXT4-fs error (device sdq1): ext4_lookup:1855: inode #2: comm ls: bad inode";
        steps(bencher, vec![line; RECORDS]);
    }

    fn steps(bencher: Bencher<'_, '_>, lines: Vec<&'static str>) {
        let mut agent = Agent::new(Settings::default());
        let _ = agent.step(Instant::default(), Input::LogCaughtUp);
        let mut numbered = Numbered::new(lines);
        let mut now_ms = 0;
        bencher
            .counter(ItemsCount::new(RECORDS))
            .with_inputs(|| numbered.next_batch())
            .bench_local_refs(|records| {
                for record in records {
                    now_ms += 1;
                    let now = Instant::from_millis(now_ms);
                    black_box(&agent.step(now, Input::Record(black_box(record.as_bytes()))));
                }
            });
    }

    /// Lines as records that are numbered on and on, since a number read before is skipped.
    struct Numbered {
        lines: Vec<&'static str>,
        sequence: u64,
    }

    impl Numbered {
        fn new(lines: Vec<&'static str>) -> Self {
            Self { lines, sequence: 0 }
        }

        fn next_batch(&mut self) -> Vec<String> {
            let numbered = self.lines.iter().zip(self.sequence..);
            let batch = numbered.map(|(line, sequence)| lines::record(sequence, line)).collect();
            self.sequence += u64::try_from(self.lines.len()).unwrap_or(u64::MAX);
            batch
        }
    }
}

/// One frame of the journal for one record.
mod journal {
    use fettle_core::journal::{Stamp, Step, write_step};
    use fettle_core::node::agent::Input;

    use super::*;

    #[divan::bench(args = Lines::ALL)]
    fn frame(bencher: Bencher<'_, '_>, lines: Lines) {
        let mut buffer = vec![0; 16 * 1024];
        let stamp = Stamp::default();
        each_line(bencher, lines, |line| {
            let step = Step { stamp, input: Input::Record(line.as_bytes()) };
            write_step(&step, &mut buffer).map(<[u8]>::len)
        });
    }
}

fn each_line<T>(bencher: Bencher<'_, '_>, lines: Lines, mut read: impl FnMut(&str) -> T) {
    let lines = lines.take();
    bencher.counter(ItemsCount::new(RECORDS)).bench_local(|| {
        for line in &lines {
            black_box(&read(black_box(line)));
        }
    });
}
