//! Replays the corpus of every target.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, panic, thread};

use fettle_fuzz::targets::ALL;

#[test]
fn every_target_survives_its_corpus() {
    // Unoptimised code moves an agent many times, and each has its own place on the stack.
    let replay = thread::Builder::new().stack_size(STACK_BYTES).spawn(replay_all).unwrap();
    replay.join().expect("a target broke: its input is named above");
}

fn replay_all() {
    for (name, target) in ALL {
        let files = files(&folder("corpus").join(name));
        assert!(!files.is_empty(), "fuzz/corpus/{name} is empty");
        for file in files {
            let input = fs::read(&file).unwrap();
            let survives = panic::catch_unwind(|| target(&input)).is_ok();
            assert!(survives, "{name} breaks on {}", file.display());
        }
    }
}

#[test]
fn every_target_has_a_program_and_a_corpus_and_nothing_else_has() {
    let targets: BTreeSet<String> = ALL.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(targets, stems(&folder("src/bin")), "fuzz/src/bin");
    assert_eq!(targets, stems(&folder("corpus")), "fuzz/corpus");
}

#[test]
fn the_corpora_stay_small() {
    let bytes: u64 = ALL
        .iter()
        .flat_map(|(name, _)| files(&folder("corpus").join(name)))
        .map(|file| fs::metadata(file).unwrap().len())
        .sum();
    assert!(bytes < 1 << 20, "{bytes} bytes");
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn stems(folder: &Path) -> BTreeSet<String> {
    files(folder).iter().map(|file| file.file_stem().unwrap().display().to_string()).collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

const STACK_BYTES: usize = 64 << 20;
