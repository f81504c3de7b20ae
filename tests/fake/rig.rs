//! An agent with a kernel log of the test's own, and its Node at a fake API server.

use core::time::Duration;
use std::fs;
use std::path::{Path, PathBuf};

use fettle_tests::api::fake::Fake;
use fettle_tests::api::proxy::{Front, Upstream};
use fettle_tests::clock::{since_boot_us, wait_for};
use fettle_tests::kmsg::FakeLog;
use fettle_tests::program::{self, Agent};
use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

/// How long something may take on a machine that does much else.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// The name of the Node.
pub(crate) const NAME: &str = "n1";

/// A node of which only the kernel log is made up.
pub(crate) struct Rig {
    pub(crate) fake: Fake,
    pub(crate) front: Front,
    folder: TempDir,
    log: FakeLog,
    said: u64,
}

impl Rig {
    /// Makes a cluster without a Node, and no kubeconfig.
    pub(crate) fn new() -> Self {
        let fake = Fake::start().unwrap();
        let front = Front::start(&Upstream::plain(fake.url())).unwrap();
        let folder = tempfile::tempdir().unwrap();
        Self { fake, front, folder, log: FakeLog::new(), said: 0 }
    }

    /// Makes a cluster with the Node, and a kubeconfig that names its front.
    pub(crate) fn with_node() -> Self {
        let rig = Self::new();
        rig.make_node(&json!({}));
        rig.give_access();
        rig
    }

    /// Makes the Node with this `status`.
    pub(crate) fn make_node(&self, status: &Value) {
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NAME}});
        let kind = "application/json";
        let (code, body) = self.fake.ask(&Method::POST, "/api/v1/nodes", kind, &node);
        assert_eq!(code, 201, "{body}");
        self.patch("/status", &json!({ "status": status }));
    }

    /// Changes the Node, or a part of it, as somebody else.
    pub(crate) fn patch(&self, part: &str, patch: &Value) {
        let kind = "application/merge-patch+json";
        let path = format!("/api/v1/nodes/{NAME}{part}");
        let (code, body) = self.fake.ask(&Method::PATCH, &path, kind, patch);
        assert_eq!(code, 200, "{body}");
    }

    /// Writes the kubeconfig.
    pub(crate) fn give_access(&self) {
        fs::write(self.kubeconfig(), self.front.kubeconfig(None)).unwrap();
    }

    /// Returns the path of the kubeconfig.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.path().join("kubeconfig")
    }

    /// Returns the folder of what the test makes.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Starts the agent.
    pub(crate) fn start(&self) -> Agent {
        let mut command = program::command(&["run", "-o", "json", "--log-level", "debug"]);
        command.args(["--metrics-listen", "127.0.0.1:0", "--node-name", NAME, "--kubeconfig"]);
        command.arg(self.kubeconfig()).arg("--state-dir").arg(self.path().join("state"));
        // What the checks would find on this machine is not what the test is about.
        command.arg("--host-root").arg(self.path()).arg("--kmsg").arg(self.log.path());
        Agent::start(&mut command)
    }

    /// Lets the kernel say `text`, escaped as it escapes.
    pub(crate) fn say(&mut self, text: &str) {
        self.log.write(&format!("3,{},{},-;{text}", self.said, since_boot_us()));
        self.said += 1;
    }

    /// Returns the Node as it is.
    pub(crate) fn node(&self) -> Value {
        let path = format!("/api/v1/nodes/{NAME}");
        self.fake.ask(&Method::GET, &path, "", &Value::Null).1
    }

    /// Returns a condition of the Node; `Null` where it has none of that type.
    pub(crate) fn condition(&self, name: &str) -> Value {
        let node = self.node();
        let conditions = node["status"]["conditions"].as_array();
        let found = conditions.into_iter().flatten().find(|one| one["type"] == name);
        found.cloned().unwrap_or_default()
    }

    /// Waits until a condition of the Node has a status, and returns it.
    pub(crate) fn wait_condition(&self, agent: &Agent, name: &str, status: &str) -> Value {
        let is = |condition: Value| (condition["status"] == status).then_some(condition);
        wait_for(LIMIT, || is(self.condition(name)))
            .unwrap_or_else(|| panic!("{name} does not become {status}: {}", agent.log()))
    }

    /// Waits for an annotation of the Node, and returns it.
    pub(crate) fn wait_annotation(&self, agent: &Agent, name: &str) -> String {
        let text = || Some(self.node()["metadata"]["annotations"][name].as_str()?.to_owned());
        wait_for(LIMIT, text).unwrap_or_else(|| panic!("there is no {name}: {}", agent.log()))
    }

    /// Waits for an event with this reason, and returns it.
    pub(crate) fn wait_event(&self, agent: &Agent, reason: &str) -> Value {
        let path = "/apis/events.k8s.io/v1/namespaces/default/events";
        let find = || {
            let (_, list) = self.fake.ask(&Method::GET, path, "", &Value::Null);
            let items = list["items"].as_array().cloned().unwrap_or_default();
            items.into_iter().find(|event| event["reason"] == reason)
        };
        wait_for(LIMIT, find).unwrap_or_else(|| panic!("there is no {reason}: {}", agent.log()))
    }
}
