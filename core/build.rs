//! Builds the literal automaton of the kernel rule table.
//!
//! Input: the fragments in `src/node/rules/table.rs`. Output: `automaton.rs` in `OUT_DIR`, the
//! tables that `src/node/rules/automaton.rs` walks. The construction is Aho and Corasick's: a
//! trie of the fragments, with the failure links resolved into a full next-state table.

use core::fmt::{Debug, Write as _};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::{env, fs};

#[expect(dead_code, unreachable_pub, reason = "the library uses the rest, and shows it")]
#[path = "src/node/rules/table.rs"]
mod table;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/node/rules/table.rs");
    let fragments: Vec<&str> = table::RULES
        .iter()
        .flat_map(|rule| rule.fragments.iter().copied())
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    assert!(fragments.len() <= FRAGMENTS_MAX, "a set of fragments must fit into a u64");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let source = Automaton::build(&fragments).render(&fragments);
    fs::write(out.join("automaton.rs"), source).expect("OUT_DIR can be written to");
}

/// A complete automaton: every state has a next state for every class of bytes.
struct Automaton {
    /// The class of each byte; bytes that are in no fragment share class 0.
    classes: Vec<u8>,
    class_count: usize,
    /// `next[state][class]`.
    next: Vec<Vec<usize>>,
    /// The set of fragments that end in each state.
    found: Vec<u64>,
}

impl Automaton {
    fn build(fragments: &[&str]) -> Self {
        let (classes, class_count) = byte_classes(fragments);
        let mut trie = Trie::new();
        for (index, fragment) in fragments.iter().enumerate() {
            trie.insert(fragment.as_bytes(), 1 << index);
        }
        let (next, found) = trie.complete(&classes, class_count);
        Self { classes, class_count, next, found }.accepting_last()
    }

    /// Renumbers the states so that those in which a fragment ends come last: then one
    /// comparison tells whether there is anything to note.
    fn accepting_last(self) -> Self {
        let mut order: Vec<usize> = (0..self.next.len()).collect();
        order.sort_by_key(|state| (self.found[*state] != 0, *state));
        let mut place = vec![0; order.len()];
        for (new, old) in order.iter().enumerate() {
            place[*old] = new;
        }
        let renumbered = |row: &Vec<usize>| row.iter().map(|to| place[*to]).collect();
        Self {
            next: order.iter().map(|old| renumbered(&self.next[*old])).collect(),
            found: order.iter().map(|old| self.found[*old]).collect(),
            ..self
        }
    }

    fn render(&self, fragments: &[&str]) -> String {
        let quiet = self.found.iter().filter(|found| **found == 0).count();
        let rows: Vec<u16> = self
            .next
            .iter()
            .flatten()
            .map(|to| u16::try_from(to * self.class_count).expect("state numbers fit into a u16"))
            .collect();
        let masks: Vec<u64> = table::RULES.iter().map(|rule| mask(rule, fragments)).collect();
        let mut source = String::new();
        constant(&mut source, "CLASSES", "[u8; 256]", &self.classes);
        constant(&mut source, "NEXT", &format!("[u16; {}]", rows.len()), &rows);
        let noisy = &self.found[quiet..];
        constant(&mut source, "FOUND", &format!("[u64; {}]", noisy.len()), &noisy);
        constant(&mut source, "RULE_MASKS", &format!("[u64; {}]", masks.len()), &masks);
        let names = format!("[&str; {}]", fragments.len());
        constant(&mut source, "FRAGMENTS", &names, &fragments);
        let first = quiet * self.class_count;
        constant(&mut source, "FIRST_FOUND", "u16", &first);
        constant(&mut source, "CLASS_COUNT", "u16", &self.class_count);
        source
    }
}

/// Appends one item of the generated file.
fn constant(source: &mut String, name: &str, kind: &str, value: &impl Debug) {
    let keyword = if kind.starts_with('[') { "static" } else { "const" };
    writeln!(source, "{keyword} {name}: {kind} = {value:?};").expect("a String takes everything");
}

fn mask(rule: &table::Rule, fragments: &[&str]) -> u64 {
    rule.fragments.iter().fold(0, |mask, fragment| {
        let index = fragments.binary_search(fragment).expect("collected from the same rules");
        mask | 1 << index
    })
}

fn byte_classes(fragments: &[&str]) -> (Vec<u8>, usize) {
    let used: BTreeSet<u8> = fragments.iter().flat_map(|fragment| fragment.bytes()).collect();
    let mut classes = vec![0; 256];
    for (index, byte) in used.iter().enumerate() {
        classes[usize::from(*byte)] =
            u8::try_from(index + 1).expect("fewer than 256 bytes are used");
    }
    (classes, used.len() + 1)
}

/// The fragments as a tree of bytes; state 0 is the root.
struct Trie {
    children: Vec<BTreeMap<u8, usize>>,
    found: Vec<u64>,
}

impl Trie {
    fn new() -> Self {
        Self { children: vec![BTreeMap::new()], found: vec![0] }
    }

    fn insert(&mut self, fragment: &[u8], bit: u64) {
        let mut state = 0;
        for byte in fragment {
            state = match self.children[state].get(byte) {
                Some(child) => *child,
                None => self.add_child(state, *byte),
            };
        }
        self.found[state] |= bit;
    }

    fn add_child(&mut self, parent: usize, byte: u8) -> usize {
        let child = self.children.len();
        self.children.push(BTreeMap::new());
        self.found.push(0);
        self.children[parent].insert(byte, child);
        child
    }

    /// Follows the failure links breadth first, so that each row is built from complete ones.
    fn complete(mut self, classes: &[u8], class_count: usize) -> (Vec<Vec<usize>>, Vec<u64>) {
        let mut next = vec![vec![0; class_count]; self.children.len()];
        let mut fail = vec![0; self.children.len()];
        let mut queue = VecDeque::from([0]);
        while let Some(state) = queue.pop_front() {
            if state != 0 {
                next[state] = next[fail[state]].clone();
                self.found[state] |= self.found[fail[state]];
            }
            for (byte, child) in &self.children[state] {
                let class = usize::from(classes[usize::from(*byte)]);
                fail[*child] = if state == 0 { 0 } else { next[state][class] };
                next[state][class] = *child;
                queue.push_back(*child);
            }
        }
        (next, self.found)
    }
}

/// Bits of the set in which the automaton collects fragments.
const FRAGMENTS_MAX: usize = 64;
