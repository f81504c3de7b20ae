//! The manifests and the unit, held against the agent that they start and the catalogue that it has.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use fettle_core::catalog::CONDITIONS;
use fettle_tests::program::finish;
use serde_json::Value;

#[test]
fn every_configuration_is_one_that_the_agent_takes() {
    let files = files("agent.yaml");
    assert!(files.len() >= 4, "{files:?}");
    for file in files {
        let ended = finish(&["config", "check", file.to_str().expect("UTF-8")], b"");
        assert!(ended.status.success(), "{}: {}", file.display(), ended.log);
    }
}

#[test]
fn every_flag_is_one_that_the_agent_knows() {
    let container = container();
    let in_pod: Vec<_> = strings(&container["args"]);
    let unit = fs::read_to_string(deployed("fettle-agent.service")).expect("it can be read");
    let started =
        unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/fettle-agent "));
    let in_unit: Vec<_> =
        started.expect("the unit starts it").split(' ').map(str::to_owned).collect();
    for mut arguments in [in_pod, in_unit] {
        assert_eq!(arguments.first().map(String::as_str), Some("run"));
        // What comes before is parsed, and then nothing is run.
        arguments.push("--help".to_owned());
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let ended = finish(&arguments, b"");
        assert!(ended.status.success(), "{arguments:?}: {}", ended.log);
    }
}

#[test]
fn what_the_arguments_name_is_mounted() {
    let container = container();
    let mounts = container["volumeMounts"].as_array().expect("a list");
    let mounted = |path: &str| mounts.iter().any(|mount| mount["mountPath"] == path);
    for argument in strings(&container["args"]) {
        if let Some((_, path)) = argument.split_once('=') {
            let at = Path::new(path).ancestors().any(|path| mounted(path.to_str().expect("UTF-8")));
            assert!(at, "nothing is mounted at {path}");
        }
    }
    // The agent's defaults for its state, and for what outlives a boot.
    assert!(mounted("/run/fettle") && mounted("/var/lib/fettle"));
    let ports = &container["ports"][0];
    assert_eq!((&ports["name"], &ports["containerPort"]), (&"metrics".into(), &20257.into()));
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
        assert_eq!(container[probe]["httpGet"]["port"], "metrics", "{probe}");
    }
}

#[test]
fn the_admission_policy_knows_the_agent_and_its_conditions() {
    let policy = object("base/admission.yaml", "ValidatingAdmissionPolicy");
    let variables = policy["spec"]["variables"].as_array().expect("a list");
    let variable = |name: &str| {
        let found = variables.iter().find(|variable| variable["name"] == name);
        found.and_then(|found| found["expression"].as_str()).expect("it is there").to_owned()
    };
    let quoted: BTreeSet<_> =
        variable("types").split('\'').skip(1).step_by(2).map(str::to_owned).collect();
    let known: BTreeSet<_> = CONDITIONS.iter().map(|row| row.name.to_owned()).collect();
    assert_eq!(quoted, known);
    assert!(variable("prefixes").contains("'autopilot.syself.com/', 'fettle.dev/'"));
    let account = object("base/rbac.yaml", "ServiceAccount");
    let name = |key: &str| account["metadata"][key].as_str().expect("text").to_owned();
    let user = format!("'system:serviceaccount:{}:{}'", name("namespace"), name("name"));
    let condition = policy["spec"]["matchConditions"][0]["expression"].as_str().expect("text");
    assert!(condition.ends_with(&user), "{condition}");
    let binding = object("base/admission.yaml", "ValidatingAdmissionPolicyBinding");
    assert_eq!(binding["spec"]["policyName"], policy["metadata"]["name"]);
}

#[test]
fn the_rights_are_those_that_the_agent_uses() {
    let cluster = object("base/rbac.yaml", "ClusterRole");
    let events = object("base/rbac.yaml", "Role");
    let rules: Vec<_> = [&cluster, &events]
        .into_iter()
        .flat_map(|role| role["rules"].as_array().expect("a list"))
        .map(|rule| {
            let join = |key: &str| strings(&rule[key]).join(",");
            format!("{}/{}: {}", join("apiGroups"), join("resources"), join("verbs"))
        })
        .collect();
    let want = [
        "/nodes: get,list,watch,patch",
        "/nodes/status: patch",
        "events.k8s.io/events: create,patch",
    ];
    assert_eq!(rules, want);
    assert_eq!(events["metadata"]["namespace"], "default");
}

#[test]
fn every_file_parses_and_no_kustomization_names_what_is_not_there() {
    for file in files(".yaml") {
        for object in objects(&file) {
            let named = ["resources", "components"].iter().flat_map(|key| strings(&object[*key]));
            for name in named.filter(|_| file.ends_with("kustomization.yaml")) {
                let path = file.parent().expect("it has one").join(&name);
                let is_there = path.is_file() || path.join("kustomization.yaml").is_file();
                assert!(is_there, "{} names {name}", file.display());
            }
        }
    }
}

fn container() -> Value {
    object("base/daemonset.yaml", "DaemonSet")["spec"]["template"]["spec"]["containers"][0].clone()
}

/// Returns the only object of a kind in a file.
fn object(name: &str, kind: &str) -> Value {
    let mut found = objects(&deployed(name));
    found.retain(|object| object["kind"] == kind);
    assert_eq!(found.len(), 1, "{kind} in {name}");
    found.remove(0)
}

fn objects(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).expect("it can be read");
    serde_saphyr::from_multiple(&text)
        .unwrap_or_else(|problem| panic!("{}: {problem}", file.display()))
}

fn strings(list: &Value) -> Vec<String> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(|text| Some(text.as_str()?.to_owned()))
        .collect()
}

/// Returns every file of what is installed whose name ends in `end`.
fn files(end: &str) -> Vec<PathBuf> {
    let (mut folders, mut files) = (vec![deployed("")], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_str().is_some_and(|path| path.ends_with(end)) {
                files.push(path);
            }
        }
    }
    files
}

fn deployed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../shell-linux/deploy").join(name)
}
