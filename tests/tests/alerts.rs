//! The alert rules that are shipped: one for each condition of the catalogue, written by this test.
//!
//! `FETTLE_WRITE=1 cargo test -p fettle-tests --test alerts` writes them anew.

use core::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use fettle_core::catalog::{CONDITIONS, ConditionRow, Disposition};

#[test]
fn the_rules_say_what_the_catalogue_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    let want = rules();
    if env::var_os("FETTLE_WRITE").is_some() {
        fs::write(&path, &want).expect("it can be written");
    }
    let got = fs::read_to_string(&path).expect("it can be read");
    assert!(
        got == want,
        "the rules are old: FETTLE_WRITE=1 cargo test -p fettle-tests --test alerts"
    );
}

fn rules() -> String {
    let mut text = HEAD.to_owned();
    for disposition in
        [Disposition::Alert, Disposition::Security, Disposition::Repair, Disposition::Operability]
    {
        let name = format!("{disposition:?}").to_lowercase();
        let _ = write!(text, "    - name: fettle-{name}\n      rules:\n");
        for row in CONDITIONS.iter().filter(|row| row.disposition == disposition) {
            condition(&mut text, row);
        }
    }
    text
}

fn condition(text: &mut String, row: &ConditionRow) {
    let (severity, hold) = urgency(row.disposition);
    let expr =
        format!("kube_node_status_condition{{condition=\"{}\",status=\"true\"}} == 1", row.name);
    let summary = format!("{{{{ $labels.node }}}}: {}", row.trigger);
    let description = format!(
        "{} is True. The likely cause: {}. What to do: {}. The condition's message names what is \
         wrong: kubectl describe node {{{{ $labels.node }}}}",
        row.name, row.cause, row.advice
    );
    let disposition = format!("{:?}", row.disposition).to_lowercase();
    let hold = hold.map_or_else(String::new, |hold| format!("          for: {hold}\n"));
    let _ = write!(
        text,
        "        - alert: Fettle{}\n          expr: {expr}\n{hold}          labels:\n            \
         severity: {severity}\n            disposition: {disposition}\n          annotations:\n            \
         summary: {}\n            description: {}\n",
        row.name,
        quoted(&summary),
        quoted(&description),
    );
}

/// Says how loud an alert is, and how long its condition must hold.
///
/// A condition that is `True` has been judged already, so no wait is needed, but where somebody else
/// acts first, or where it is no matter of minutes.
const fn urgency(disposition: Disposition) -> (&'static str, Option<&'static str>) {
    match disposition {
        Disposition::Alert => ("critical", None),
        Disposition::Security => ("warning", None),
        Disposition::Repair => ("warning", Some("5m")),
        Disposition::Operability => ("info", Some("15m")),
    }
}

/// A string of JSON is one of YAML.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("text is JSON")
}

const FILE: &str = "../shell-linux/deploy/components/prometheus-operator/alerts.yaml";

/// Everything that does not come from the catalogue.
const HEAD: &str = include_str!("../data/alerts-head.yaml");
