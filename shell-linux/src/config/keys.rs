//! Every key, one row each, and the walk over a document by these rows.

use std::collections::{BTreeMap, BTreeSet};

use fettle_core::catalog::{CONDITIONS, Clear, ConditionType};

use super::document::{Node, Value};
use super::nearest::did_you_mean;
use super::problem::{Place, Problem, Problems};
use super::value::{
    AGE, BOOL, CIDR, CLEAR, DEADLINE, EXPECTED, GAUGE, GLOB, INTERVAL, Kind, LISTEN, PATH, PERCENT,
    POINTS, PREFIX, ROLE, SOCKET, UNIT, URL, clear_rule, short, show, text,
};
use super::{ConditionConfig, Config};

/// A key that holds a value.
struct Key {
    /// The dotted name.
    name: &'static str,
    /// Puts the value into the configuration.
    read: fn(&mut Config, &mut Leaf<'_>),
}

/// Every key, by name (decisions, "Configuration keys and defaults").
static KEYS: [Key; 32] = [
    Key { name: "annotationPrefix", read: |c, v| v.value(&PREFIX, &mut c.annotation_prefix) },
    Key { name: "audit.path", read: |c, v| v.value(&PATH, &mut c.audit.path) },
    Key { name: "audit.proxyCIDRs", read: |c, v| v.some_list(&CIDR, &mut c.audit.proxy_cidrs) },
    Key { name: "certificates", read: |c, v| v.list(&GLOB, &mut c.certificates) },
    Key { name: "cilium.socket", read: |c, v| v.value(&SOCKET, &mut c.cilium_socket) },
    Key { name: "conditions", read: conditions },
    Key { name: "cri.deadline", read: |c, v| v.value(&DEADLINE, &mut c.cri.deadline) },
    Key { name: "cri.socket", read: |c, v| v.only(&SOCKET, &mut c.cri.sockets) },
    Key { name: "disk.clearBelow", read: |c, v| v.value(&POINTS, &mut c.disk.clear_below) },
    Key { name: "disk.inodePct", read: |c, v| v.value(&PERCENT, &mut c.disk.inode_pct) },
    Key { name: "disk.usagePct", read: |c, v| v.value(&PERCENT, &mut c.disk.usage_pct) },
    Key { name: "expect", read: |c, v| v.list(&EXPECTED, &mut c.expect) },
    Key { name: "gpu.cdi", read: |c, v| v.list(&PATH, &mut c.gpu.cdi) },
    Key { name: "gpu.marker", read: |c, v| v.value(&PATH, &mut c.gpu.marker) },
    Key { name: "kmsg.trustUserspace", read: |c, v| v.value(&BOOL, &mut c.trust_userspace) },
    Key { name: "kubelet.deadline", read: |c, v| v.value(&DEADLINE, &mut c.kubelet.deadline) },
    Key { name: "kubelet.healthz", read: |c, v| v.value(&URL, &mut c.kubelet.healthz) },
    Key { name: "lvm.vgFree", read: |c, v| v.value(&BOOL, &mut c.vg_free) },
    Key { name: "metrics.listen", read: |c, v| v.value(&LISTEN, &mut c.listen) },
    Key { name: "nodesJson.maxAge", read: |c, v| v.value(&AGE, &mut c.nodes_json.max_age) },
    Key { name: "nodesJson.path", read: |c, v| v.value(&PATH, &mut c.nodes_json.path) },
    Key { name: "protected", read: |c, v| v.list(&GLOB, &mut c.protected) },
    Key { name: "proxy.metrics", read: |c, v| v.value(&URL, &mut c.proxy_metrics) },
    Key { name: "reboot.enabled", read: |c, v| v.value(&BOOL, &mut c.reboot) },
    Key { name: "repair.dryRun", read: |c, v| v.value(&BOOL, &mut c.repair.dry_run) },
    Key { name: "repair.enabled", read: |c, v| v.value(&BOOL, &mut c.repair.enabled) },
    Key { name: "role", read: |c, v| v.some(&ROLE, &mut c.role) },
    Key { name: "sealed.recorded", read: |c, v| v.value(&PATH, &mut c.sealed_recorded) },
    Key { name: "tunnel.gauge", read: |c, v| v.value(&GAUGE, &mut c.tunnel.gauge) },
    Key { name: "tunnel.metrics", read: |c, v| v.value(&URL, &mut c.tunnel.metrics) },
    Key { name: "units.critical", read: |c, v| v.some_list(&UNIT, &mut c.units.critical) },
    Key { name: "units.operability", read: |c, v| v.list(&UNIT, &mut c.units.operability) },
];

/// Returns the dotted names of all keys.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    KEYS.iter().map(|key| key.name)
}

/// Reads a document into the defaults, and finds everything that is wrong with it.
pub(super) fn read(document: &Node) -> Result<Config, Problems> {
    let mut walk = Walk::default();
    walk.section(document, "");
    walk.relations();
    let Walk { mut config, places, problems } = walk;
    if problems.is_empty() {
        config.set = places.into_keys().collect();
        Ok(config)
    } else {
        Err(problems.sorted())
    }
}

#[derive(Default)]
struct Walk {
    config: Config,
    /// Where each key that is given has its value.
    places: BTreeMap<&'static str, Place>,
    problems: Problems,
}

impl Walk {
    fn section(&mut self, node: &Node, path: &str) {
        let Some(entries) = entries(node, path, &mut self.problems) else { return };
        for Entry { at, name, value } in entries {
            let dotted = join(path, name);
            let below = format!("{dotted}.");
            if let Some(key) = KEYS.iter().find(|key| key.name == dotted) {
                self.places.insert(key.name, value.place);
                let mut leaf = Leaf { key: dotted, node: value, problems: &mut self.problems };
                (key.read)(&mut self.config, &mut leaf);
            } else if KEYS.iter().any(|key| key.name.starts_with(&below)) {
                self.section(value, &dotted);
            } else {
                let known = KEYS.iter().filter_map(|key| child(key.name, path));
                self.problems.push(|| unknown_key(at, path, name, known));
            }
        }
    }

    /// Looks at what no value alone can say.
    fn relations(&mut self) {
        let disk = &self.config.disk;
        let least = disk.usage_pct.min(disk.inode_pct);
        if disk.clear_below < least {
            return;
        }
        let given = ["disk.clearBelow", "disk.usagePct", "disk.inodePct"]
            .into_iter()
            .find_map(|key| self.places.get(key).map(|place| (key, *place)));
        if let Some((key, place)) = given {
            let message = format!(
                "{} points below {least} % is never reached; \
                 let disk.clearBelow be less than disk.usagePct and disk.inodePct",
                disk.clear_below
            );
            self.problems.push(|| Problem::new(place, key, message));
        }
    }
}

/// A key's value, while it is read.
struct Leaf<'a> {
    key: String,
    node: &'a Node,
    problems: &'a mut Problems,
}

impl Leaf<'_> {
    fn value<T>(&mut self, kind: &Kind<T>, slot: &mut T) {
        if let Some(value) = self.item(kind, self.node) {
            *slot = value;
        }
    }

    fn some<T>(&mut self, kind: &Kind<T>, slot: &mut Option<T>) {
        if let Some(value) = self.item(kind, self.node) {
            *slot = Some(value);
        }
    }

    /// Reads one value in place of a list of candidates.
    fn only<T>(&mut self, kind: &Kind<T>, slot: &mut Vec<T>) {
        if let Some(value) = self.item(kind, self.node) {
            *slot = vec![value];
        }
    }

    fn list<T: PartialEq>(&mut self, kind: &Kind<T>, slot: &mut Vec<T>) {
        let Value::List(items) = &self.node.value else {
            let message =
                format!("{} is no list; {}, one in each item", show(self.node), kind.want);
            self.tell(self.node.place, message);
            return;
        };
        if items.len() > ITEMS_MAX {
            let message = format!("has {} items; give at most {ITEMS_MAX}", items.len());
            self.tell(self.node.place, message);
            return;
        }
        let mut list = Vec::new();
        for node in items {
            match self.item(kind, node) {
                Some(value) if list.contains(&value) => {
                    let message = format!("{} is there twice; take one out", show(node));
                    self.tell(node.place, message);
                }
                Some(value) => list.push(value),
                None => {}
            }
        }
        *slot = list;
    }

    fn some_list<T: PartialEq>(&mut self, kind: &Kind<T>, slot: &mut Option<Vec<T>>) {
        let mut list = Vec::new();
        self.list(kind, &mut list);
        *slot = Some(list);
    }

    fn item<T>(&mut self, kind: &Kind<T>, node: &Node) -> Option<T> {
        let wrong = match (kind.read)(node) {
            Ok(value) => return Some(value),
            Err(wrong) => wrong,
        };
        self.tell(node.place, format!("{wrong}; {}", kind.want));
        None
    }

    fn tell(&mut self, place: Place, message: String) {
        self.problems.push(|| Problem::new(place, &self.key, message));
    }
}

/// Reads `conditions: {NAME: {interval, clear, enabled}}`.
fn conditions(config: &mut Config, leaf: &mut Leaf<'_>) {
    let Some(names) = entries(leaf.node, &leaf.key, leaf.problems) else { return };
    for Entry { at, name, value } in names {
        let path = join(&leaf.key, name);
        let Some(condition) = ConditionType::by_name(name) else {
            leaf.problems.push(|| no_such_condition(at, &path, name));
            continue;
        };
        if let Some(slot) = config.conditions.get_mut(condition.index()) {
            read_condition(
                condition,
                slot,
                Leaf { key: path, node: value, problems: leaf.problems },
            );
        }
    }
}

fn read_condition(condition: ConditionType, slot: &mut ConditionConfig, section: Leaf<'_>) {
    let Some(keys) = entries(section.node, &section.key, section.problems) else { return };
    for Entry { at, name, value } in keys {
        let key = join(&section.key, name);
        let mut leaf = Leaf { key, node: value, problems: section.problems };
        match name {
            "clear" => read_clear(condition, &mut slot.clear, &mut leaf),
            "enabled" => leaf.value(&BOOL, &mut slot.enabled),
            "interval" if slot.interval.is_none() => {
                let name = condition.row().name;
                leaf.tell(at, format!("{name} is not checked at an interval; take the key out"));
            }
            "interval" => leaf.some(&INTERVAL, &mut slot.interval),
            _ => {
                let known = ["clear", "enabled", "interval"].into_iter();
                section.problems.push(|| unknown_key(at, &section.key, name, known));
            }
        }
    }
}

fn read_clear(condition: ConditionType, slot: &mut Clear, leaf: &mut Leaf<'_>) {
    let Some(word) = leaf.item(&CLEAR, leaf.node) else { return };
    match clear_rule(condition, &word) {
        Ok(clear) => *slot = clear,
        Err(wrong) => {
            let advice = match condition.clear_choices() {
                [] => "take the key out",
                [Clear::Held] => "give held, or take the key out",
                _ => "give held or proof",
            };
            leaf.tell(leaf.node.place, format!("{wrong}; {advice}"));
        }
    }
}

/// A key of a map and its value.
struct Entry<'n> {
    at: Place,
    name: &'n str,
    value: &'n Node,
}

/// Returns a map's entries without those that are there twice; an empty section has none.
fn entries<'n>(node: &'n Node, path: &str, problems: &mut Problems) -> Option<Vec<Entry<'n>>> {
    let map = match &node.value {
        Value::Map(map) => map,
        Value::Null => return None,
        Value::Bool(_) | Value::Float | Value::Integer(_) | Value::List(_) | Value::Text(_) => {
            let message = format!("{} is no map; give keys and values", show(node));
            problems.push(|| Problem::new(node.place, path, message));
            return None;
        }
    };
    let mut lines: BTreeMap<&str, u64> = BTreeMap::new();
    let mut entries = Vec::new();
    for (key, value) in map {
        let at = key.place;
        match text(key) {
            Err(_) => {
                let message = format!("{} is no key; give a name", show(key));
                problems.push(|| Problem::new(at, path, message));
            }
            Ok(name) => match lines.get(name) {
                Some(line) => {
                    let message = format!("is there twice, first on line {line}; take one out");
                    problems.push(|| Problem::new(at, &join(path, name), message));
                }
                None => {
                    lines.insert(name, at.line);
                    entries.push(Entry { at, name, value });
                }
            },
        }
    }
    Some(entries)
}

fn no_such_condition(at: Place, path: &str, name: &str) -> Problem {
    let nearest = did_you_mean(name, CONDITIONS.iter().map(|row| row.name));
    let advice = "`fettle-agent catalog` lists those that there are";
    Problem::new(at, path, format!("there is no such condition{nearest}; {advice}"))
}

fn unknown_key<'n>(
    at: Place,
    path: &str,
    name: &str,
    known: impl Iterator<Item = &'n str>,
) -> Problem {
    let known: BTreeSet<&str> = known.collect();
    let nearest = did_you_mean(name, known.iter().copied());
    let known = Vec::from_iter(known).join(", ");
    Problem::new(at, &join(path, name), format!("unknown key{nearest}; known here: {known}"))
}

/// Returns the next part of a dotted name below `path`.
fn child<'n>(name: &'n str, path: &str) -> Option<&'n str> {
    let below = if path.is_empty() { name } else { name.strip_prefix(path)?.strip_prefix('.')? };
    below.split('.').next()
}

/// Returns the dotted name of a key; what no key has is quoted.
fn join(path: &str, name: &str) -> String {
    let is_plain = name.len() <= 60 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let name = if is_plain { name.to_owned() } else { short(name) };
    if path.is_empty() { name } else { format!("{path}.{name}") }
}

/// Most items of a list: each is compared with all before it, and a pattern stands for many files.
const ITEMS_MAX: usize = 1000;
