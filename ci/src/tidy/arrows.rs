//! Keeps the arrows between the rooms of a crate to those of the design.

use std::collections::BTreeSet;

use super::Finding;
use super::imports::imports;
use super::source::{File, Rust, Tree};

/// A room that may use every other.
const ALL: &[&str] = &["*"];

/// What every room of the core stands on.
const GROUND: &[&str] = &["bounds", "text", "time", "window"];

/// The crates whose arrows are kept, with all that is allowed; what is not here is not.
const CRATES: &[Crate] = &[
    Crate {
        source: "core/src/",
        apart: &[],
        rooms: &[
            Room {
                modules: GROUND,
                may_use: GROUND,
                reason: "time, text, window and bounds stand on nothing but one another",
            },
            Room {
                modules: &["catalog"],
                may_use: GROUND,
                reason: "a row of the catalogue is data, and knows no policy and no reading",
            },
            Room {
                modules: &["disposition"],
                may_use: &["bounds", "text", "time", "window", "catalog"],
                reason: "a disposition follows from a condition's row and the pool's kind alone",
            },
            Room {
                modules: &["wire"],
                may_use: GROUND,
                reason: "wire turns bytes into meaning, and does not know what will be decided",
            },
            Room {
                modules: &["node"],
                may_use: &["bounds", "text", "time", "window", "catalog", "wire"],
                reason: "an agent decides by its node's readings, not by a policy",
            },
            Room {
                modules: &["remediation"],
                may_use: &["bounds", "text", "time", "window", "catalog", "disposition"],
                reason: "a plan sees conditions as API objects carry them, not as a node made them",
            },
            Room {
                modules: &["health", "notify"],
                may_use: &["bounds", "text", "time", "window", "catalog", "disposition"],
                reason: "health, notify and remediation are used one without the other",
            },
            Room {
                modules: &["journal"],
                may_use: ALL,
                reason: "it frames every input and output",
            },
        ],
    },
    Crate {
        source: "shell-linux/src/",
        apart: &[&["publish"]],
        rooms: &[
            Room {
                modules: &["clock", "config", "errors", "table"],
                may_use: &[],
                reason: "clock, configuration and the form of errors and tables are leaves",
            },
            Room {
                modules: &["sys"],
                may_use: &["clock", "config", "errors"],
                reason: "a kernel interface does not know which probe asks",
            },
            Room {
                modules: &["probe"],
                may_use: &["clock", "config", "errors", "store", "sys"],
                reason: "a probe makes one reading, and does not know who publishes it",
            },
            Room {
                modules: &["publish"],
                may_use: &["clock", "config", "errors", "table"],
                reason: "a publisher gets what the core gave out, and reads nothing itself",
            },
            Room {
                modules: &["store"],
                may_use: &["clock", "config", "errors"],
                reason: "a file that the agent keeps for itself does not know what is in it",
            },
            Room { modules: &["cmd", "run"], may_use: ALL, reason: "they put the parts together" },
        ],
    },
    Crate {
        source: "shell-controller/src/",
        apart: &[&["notify", "channel"], &["publish"], &["remediation", "reboot"]],
        rooms: &[
            Room {
                modules: &["clock", "config"],
                may_use: &[],
                reason: "the clock and the configuration are leaves",
            },
            Room {
                modules: &["api"],
                may_use: &["clock"],
                reason: "types of the API are data, and reach for no cluster",
            },
            Room {
                modules: &["cluster"],
                may_use: &["api", "clock", "config"],
                reason: "which clusters there are does not depend on what is done in them",
            },
            Room {
                modules: &["health", "notify", "publish", "remediation"],
                may_use: &["api", "clock", "cluster", "config"],
                reason: "each carries out the outputs of one machine of the core",
            },
            Room { modules: &["cmd", "run"], may_use: ALL, reason: "they put the parts together" },
        ],
    },
];

/// One crate's rooms.
struct Crate {
    /// Where its modules start.
    source: &'static str,
    /// Modules whose files never import one another.
    apart: &'static [&'static [&'static str]],
    rooms: &'static [Room],
}

impl Crate {
    fn room(&self, module: &str) -> Option<&'static Room> {
        self.rooms.iter().find(|room| room.modules.contains(&module))
    }
}

/// Modules that share what they may use; each may use itself.
struct Room {
    modules: &'static [&'static str],
    may_use: &'static [&'static str],
    reason: &'static str,
}

/// Names each import that no arrow of [`CRATES`] allows.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    CRATES.iter().flat_map(|of| check_crate(of, tree)).collect()
}

fn check_crate(of: &Crate, tree: &Tree) -> Vec<Finding> {
    let sources = [of.source];
    let files: Vec<_> = tree.rust(&sources).filter(|(file, _)| !file.is_test()).collect();
    let modules: BTreeSet<_> = files.iter().map(|(file, _)| module(of, file)).collect();
    files.iter().flat_map(|(file, rust)| check_file(of, &modules, file, rust)).collect()
}

fn check_file(of: &Crate, modules: &Modules, file: &File, rust: &Rust) -> Vec<Finding> {
    let module = module(of, file);
    let Some(first) = module.first().filter(|first| *first != "bin") else {
        return Vec::new();
    };
    let Some(room) = of.room(first) else {
        let text = format!("{first} has no room: give it one in ci/src/tidy/arrows.rs");
        return vec![Finding::new(&file.path, 1, text)];
    };
    let importer = Importer { of, module: &module, modules, room };
    imports(&rust.syntax, &module)
        .iter()
        .filter_map(|import| Some((import.line, importer.fault(&import.path)?)))
        .map(|(line, text)| Finding::new(&file.path, line, text))
        .collect()
}

/// Returns the path of a file's module: none for the crate's root.
fn module(of: &Crate, file: &File) -> Vec<String> {
    let path = file.path.trim_start_matches(of.source).trim_end_matches(".rs");
    let mut module: Vec<String> = path.split('/').map(str::to_owned).collect();
    let is_root = matches!(path, "lib" | "main");
    if is_root || module.last().is_some_and(|last| last == "mod") {
        module.pop();
    }
    module
}

/// The modules of a crate, each as its path from the root on.
type Modules = BTreeSet<Vec<String>>;

/// The file whose imports are judged.
struct Importer<'tree> {
    of: &'tree Crate,
    module: &'tree [String],
    modules: &'tree Modules,
    room: &'static Room,
}

impl Importer<'_> {
    /// Returns what is wrong with an import of `path`, if anything is.
    fn fault(&self, path: &[String]) -> Option<String> {
        if let Some(folder) = self.of.apart.iter().find(|folder| self.is_apart(folder, path)) {
            let folder = folder.join("/");
            return Some(format!(
                "files of {folder} never import one another: {}",
                path.join("::")
            ));
        }
        let (from, to) = (self.module.first()?, path.first()?);
        if from == to || self.room.may_use.iter().any(|name| *name == "*" || name == to) {
            return None;
        }
        if self.of.room(to).is_none() {
            return Some(format!("{to} is of the root, which sees all: name its own module"));
        }
        Some(format!("{from} may not use {to}: {}", self.room.reason))
    }

    /// Returns whether `path` is in another file of `folder` than the importer.
    fn is_apart(&self, folder: &[&str], path: &[String]) -> bool {
        let depth = folder.len() + 1;
        let (Some(own), Some(other)) = (self.module.get(..depth), path.get(..depth)) else {
            return false;
        };
        let is_inside = |names: &[String]| names.iter().zip(folder).all(|(a, b)| a == b);
        is_inside(own) && is_inside(other) && own != other && self.modules.contains(other)
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::tests::{lines, tree};
    use super::*;

    #[test]
    fn arrows_of_the_core_point_one_way() {
        let rows = [
            ("core/src/wire/kmsg.rs", "use crate::time::Instant;", true),
            ("core/src/wire/kmsg.rs", "use super::smart::Page;", true),
            ("core/src/wire/kmsg.rs", "use crate::node::Agent;", false),
            ("core/src/wire/kmsg.rs", "use crate::catalog::Row;", false),
            ("core/src/time.rs", "use crate::catalog::Row;", false),
            ("core/src/catalog.rs", "use crate::disposition::Route;", false),
            ("core/src/disposition.rs", "use crate::catalog::Disposition;", true),
            ("core/src/node/agent.rs", "use crate::{catalog::Row, wire::kmsg};", true),
            ("core/src/node/agent.rs", "use crate::remediation::plan;", false),
            ("core/src/remediation/plan.rs", "use crate::disposition::Disposition;", true),
            ("core/src/remediation/plan.rs", "fn a(b: crate::node::Agent) {}", false),
            ("core/src/notify/outbox.rs", "fn a() { b!(crate::health::flap::C) }", false),
            ("core/src/journal.rs", "use crate::{node, notify, wire};", true),
            ("core/src/lib.rs", "pub use crate::node::Agent;", true),
        ];
        for (path, text, is_allowed) in rows {
            assert_eq!(lines(check, path, text).is_empty(), is_allowed, "{path}: {text}");
        }
    }

    #[test]
    fn arrows_of_the_shells_point_one_way() {
        let rows = [
            ("shell-linux/src/probe/disk.rs", "use crate::sys::nvme;", true),
            ("shell-linux/src/sys/nvme.rs", "use crate::probe::disk;", false),
            ("shell-linux/src/clock.rs", "use crate::config::Config;", false),
            ("shell-linux/src/run.rs", "use crate::{probe, publish, sys};", true),
            ("shell-linux/src/main.rs", "use crate::cmd;", true),
            ("shell-controller/src/notify/evaluate.rs", "use crate::cluster::Client;", true),
            ("shell-controller/src/notify/evaluate.rs", "use crate::remediation::apply;", false),
            ("shell-controller/src/bin/kubectl-fettle.rs", "use crate::anything;", true),
        ];
        for (path, text, is_allowed) in rows {
            assert_eq!(lines(check, path, text).is_empty(), is_allowed, "{path}: {text}");
        }
    }

    #[test]
    fn files_that_are_apart_share_only_their_parent() {
        let check_import = |text: &str| {
            let files = [
                ("shell-controller/src/notify/channel.rs", "pub struct Message;"),
                ("shell-controller/src/notify/channel/slack.rs", text),
                ("shell-controller/src/notify/channel/smtp.rs", ""),
            ];
            check(&tree(&files)).len()
        };
        assert_eq!(check_import("use super::Message;"), 0);
        assert_eq!(check_import("use super::smtp::Mail;"), 1);
        assert_eq!(check_import("use crate::notify::channel::smtp;"), 1);
    }

    #[test]
    fn a_file_without_a_room_is_named() {
        assert_eq!(lines(check, "core/src/util.rs", ""), [1]);
    }

    #[test]
    fn what_the_root_exports_is_taken_from_its_own_module() {
        assert_eq!(lines(check, "core/src/wire/kmsg.rs", "use crate::Agent;"), [1]);
    }

    #[test]
    fn test_code_may_use_all() {
        let text = "#[cfg(test)]\nmod tests { use crate::node::Agent; }";
        assert!(lines(check, "core/src/wire/kmsg.rs", text).is_empty());
        assert!(lines(check, "core/src/wire/tests.rs", "use crate::node::Agent;").is_empty());
    }
}
