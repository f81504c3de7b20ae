//! The agent's own Node, as the API server has it.

use std::borrow::Cow;

use fettle_core::catalog::CONDITIONS;
use fettle_core::node::publisher::view::{Mark, NodeView, SeenCondition};
use fettle_core::time::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use kube::Resource;
use serde::Deserialize;

/// The name under which the agent writes (`metadata.managedFields`).
pub const MANAGER: &str = "fettle-agent";

/// Asks to clear a held condition.
pub const CLEAR_MARK: &str = "fettle.dev/clear-condition";

/// Orders a reboot.
pub const REBOOT_MARK: &str = "fettle.dev/reboot";

/// As much of a Node as the agent looks at.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct NodeObject {
    /// Names, annotations and who wrote what.
    #[serde(default)]
    pub metadata: ObjectMeta,
    #[serde(default)]
    status: Option<NodeStatus>,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct NodeStatus {
    #[serde(default)]
    conditions: Option<Vec<Condition>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Condition {
    #[serde(rename = "type")]
    type_: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    last_transition_time: Option<String>,
}

impl NodeObject {
    /// Hands what matters of the Node to `look`; `now` is the wall clock, and `is_listed` says
    /// whether a watch begins with it.
    pub fn view<T>(
        &self,
        now: Timestamp,
        is_listed: bool,
        look: impl FnOnce(NodeView<'_>) -> T,
    ) -> T {
        let conditions = self.status.as_ref().and_then(|status| status.conditions.as_ref());
        let conditions = conditions.into_iter().flatten();
        let conditions: Vec<_> = conditions.map(|condition| self.seen(condition)).collect();
        look(NodeView {
            uid: self.metadata.uid.as_deref().unwrap_or_default(),
            version: self.metadata.resource_version.as_ref().and_then(|v| v.parse().ok()),
            is_listed,
            conditions: &conditions,
            clear: self.mark(now, CLEAR_MARK),
            reboot: self.mark(now, REBOOT_MARK),
        })
    }

    /// Takes away what anybody orders by it.
    pub fn forget_marks(&mut self) {
        self.metadata.annotations = None;
    }

    /// Returns whether the Node's label makes it one of the control plane.
    #[must_use]
    pub fn is_control_plane(&self) -> bool {
        let labels = self.metadata.labels.as_ref();
        labels.is_some_and(|labels| labels.contains_key(CONTROL_PLANE_LABEL))
    }

    fn seen<'a>(&'a self, condition: &'a Condition) -> SeenCondition<'a> {
        let name = &*condition.type_;
        let writers = || {
            let key = format!("k:{{\"type\":\"{name}\"}}");
            let path = ["f:status", "f:conditions"].map(str::to_owned);
            self.entries().filter(move |entry| owns(entry, &path, &key))
        };
        let is_ours = |entry: &&ManagedFieldsEntry| entry.manager.as_deref() == Some(MANAGER);
        let is_own = writers().any(|entry| is_ours(&entry));
        // Who else writes a condition is asked only of the agent's own.
        let is_asked = is_own || CONDITIONS.iter().any(|row| row.name == name);
        let others = writers().filter(|entry| is_asked && !is_ours(entry));
        let other = others.max_by_key(|entry| entry.time.as_ref().map(|time| time.0));
        SeenCondition {
            name,
            status: &condition.status,
            reason: condition.reason.as_deref().unwrap_or_default(),
            message: condition.message.as_deref().unwrap_or_default(),
            transition: condition.last_transition_time.as_deref().and_then(timestamp),
            writer: other.and_then(|entry| entry.manager.as_deref()),
            written: other.and_then(|entry| entry.time.as_ref()).map(|time| seconds(time.0)),
            is_own,
        }
    }

    fn mark(&self, now: Timestamp, name: &str) -> Option<Mark<'_>> {
        let value = self.metadata.annotations.as_ref()?.get(name)?;
        let path = ["f:metadata", "f:annotations"].map(str::to_owned);
        let key = format!("f:{name}");
        let by = self.entries().find(|entry| owns(entry, &path, &key));
        let written = by.and_then(|entry| entry.time.as_ref()).map(|time| seconds(time.0));
        let by = by.and_then(|entry| entry.manager.as_deref()).unwrap_or_default();
        Some(Mark { value, by, age: written.map(|written| now.since(written)) })
    }

    fn entries(&self) -> impl Iterator<Item = &ManagedFieldsEntry> {
        self.metadata.managed_fields.iter().flatten()
    }
}

/// Returns whether `key` stands in an entry's fields below `path`.
fn owns(entry: &ManagedFieldsEntry, path: &[String], key: &str) -> bool {
    let fields = entry.fields_v1.as_ref().map(|fields| &fields.0);
    let below = path.iter().try_fold(fields, |fields, name| Some(fields?.get(name)));
    below.flatten().is_some_and(|fields| fields.get(key).is_some())
}

fn timestamp(text: &str) -> Option<Timestamp> {
    text.parse::<jiff::Timestamp>().ok().map(seconds)
}

fn seconds(time: jiff::Timestamp) -> Timestamp {
    Timestamp::from_unix_secs(time.as_second())
}

impl Resource for NodeObject {
    type DynamicType = ();
    type Scope = k8s_openapi::ClusterResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Node".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "nodes".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// kubeadm's label of control planes.
const CONTROL_PLANE_LABEL: &str = "node-role.kubernetes.io/control-plane";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node() -> NodeObject {
        let entry = |manager: &str, time: &str, fields: serde_json::Value| json!({"manager": manager, "operation": "Update", "time": time, "fieldsV1": fields});
        let condition = |name: &str| json!({"f:status": {"f:conditions": {format!("k:{{\"type\":\"{name}\"}}"): {".": {}}}}});
        let marks = json!({"f:metadata": {"f:annotations": {"f:fettle.dev/reboot": {}}}});
        let node = json!({
            "metadata": {
                "name": "n1", "uid": "u1", "resourceVersion": "17",
                "labels": {"node-role.kubernetes.io/control-plane": ""},
                "annotations": {"fettle.dev/reboot": "op-1", "other": "x"},
                "managedFields": [
                    entry("kubelet", "2026-11-30T20:00:00Z", condition("Ready")),
                    entry(MANAGER, "2026-11-30T20:00:00Z", condition("KernelDeadlock")),
                    entry("npd", "2026-11-30T20:00:05Z", condition("KernelDeadlock")),
                    entry("older", "2026-11-30T20:00:01Z", condition("KernelDeadlock")),
                    entry("kubectl-annotate", "2026-11-30T20:00:01Z", marks),
                ],
            },
            "spec": {"providerID": "x"},
            "status": {"images": [], "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-30T19:00:00Z"},
                {"type": "KernelDeadlock", "status": "False", "reason": "R", "message": "m",
                 "lastTransitionTime": "nonsense"},
            ]},
        });
        serde_json::from_value(node).unwrap()
    }

    #[test]
    fn what_matters_of_a_node_is_read() {
        let node = node();
        assert!(node.is_control_plane());
        let now = Timestamp::from_unix_secs(1_796_068_810);
        node.view(now, false, |view| {
            assert_eq!((view.uid, view.version, view.clear), ("u1", Some(17), None));
            let age = Some(core::time::Duration::from_secs(9));
            assert_eq!(view.reboot, Some(Mark { value: "op-1", by: "kubectl-annotate", age }));
            let [ready, deadlock] = view.conditions else { panic!("two") };
            let since = Timestamp::from_unix_secs(1_796_065_200);
            assert_eq!((ready.writer, ready.transition, ready.is_own), (None, Some(since), false));
            assert_eq!((deadlock.writer, deadlock.is_own), (Some("npd"), true));
            assert_eq!(deadlock.written, Some(Timestamp::from_unix_secs(1_796_068_805)));
            assert_eq!((deadlock.reason, deadlock.message, deadlock.transition), ("R", "m", None));
        });
    }

    #[test]
    fn a_node_that_says_nothing_is_a_node() {
        for text in
            ["{}", r#"{"metadata":{}}"#, r#"{"status":{}}"#, r#"{"status":{"conditions":null}}"#]
        {
            let node: NodeObject = serde_json::from_str(text).unwrap();
            let now = Timestamp::default();
            node.view(now, true, |view| {
                assert_eq!((view.version, view.conditions.len()), (None, 0));
            });
        }
    }
}
