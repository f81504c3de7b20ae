//! An agent with a kernel log of the test's own, and its Node at a real API server.

use core::time::Duration;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use fettle_tests::api::proxy::{self, Front, Upstream};
use fettle_tests::api::server::{ApiServer, Credential, Identity, Pair};
use fettle_tests::clock::{since_boot_us, wait_every};
use fettle_tests::kmsg::FakeLog;
use fettle_tests::program::{self, Agent};
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};
use tempfile::TempDir;

/// How long something may take on a machine that does much else.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// A node of which only the kernel log is made up.
pub(crate) struct Rig {
    pub(crate) server: &'static ApiServer,
    pub(crate) name: String,
    pub(crate) folder: TempDir,
    kubeconfig: PathBuf,
    log: FakeLog,
    /// All that the kernel has said: an agent that starts reads it again.
    said: Vec<String>,
}

impl Rig {
    /// Makes the Node `name`, and an identity for its agent.
    pub(crate) fn new(
        server: &'static ApiServer,
        name: &str,
        identity: impl FnOnce(&ApiServer) -> Identity,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = identity(server).write_to(folder.path()).unwrap();
        Self::with(server, name, folder, kubeconfig)
    }

    /// Makes the Node `name`, whose agent reaches the API server by a front, as its kubelet.
    pub(crate) fn behind(server: &'static ApiServer, name: &str) -> (Self, Front) {
        let Credential::Certificate(Pair { certificate, key }) =
            server.kubelet(name).unwrap().credential().clone()
        else {
            panic!("a kubelet has a certificate");
        };
        let identity = proxy::Identity::Certificate {
            certificate: certificate.into_bytes(),
            key: key.into_bytes(),
        };
        let authority = Some(server.authority_pem().as_bytes().to_vec());
        let front = Front::start(&Upstream { url: server.url(), authority, identity }).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        fs::write(&kubeconfig, front.kubeconfig(None)).unwrap();
        (Self::with(server, name, folder, kubeconfig), front)
    }

    fn with(server: &'static ApiServer, name: &str, folder: TempDir, kubeconfig: PathBuf) -> Self {
        server.create_node(name).unwrap();
        let name = name.to_owned();
        Self { server, name, folder, kubeconfig, log: FakeLog::new(), said: Vec::new() }
    }

    /// Returns the command that starts the agent.
    pub(crate) fn command(&self) -> Command {
        let mut command = program::command(&["run", "-o", "json", "--metrics-listen"]);
        command.args(["127.0.0.1:0", "--node-name", &self.name]);
        command.arg("--state-dir").arg(self.state_dir());
        command.arg("--kubeconfig").arg(&self.kubeconfig).arg("--kmsg").arg(self.log.path());
        command
    }

    pub(crate) fn state_dir(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// Writes the agent's configuration and returns its path.
    pub(crate) fn configure(&self, text: &str) -> PathBuf {
        let path = self.folder.path().join("agent.yaml");
        fs::write(&path, text).unwrap();
        path
    }

    /// Starts the agent; it reads all that the kernel has said.
    pub(crate) fn start(&mut self) -> Agent {
        self.start_with(&[])
    }

    /// Starts the agent with further arguments.
    pub(crate) fn start_with(&mut self, more: &[&str]) -> Agent {
        self.start_as(|rig| {
            let mut command = rig.command();
            command.args(more);
            command
        })
    }

    /// Starts the agent by the command that `make` makes.
    pub(crate) fn start_as(&mut self, make: impl FnOnce(&Self) -> Command) -> Agent {
        // What an agent that was killed has not read stands in its log no longer.
        self.log = FakeLog::new();
        let agent = Agent::start(&mut make(self));
        for record in &self.said {
            self.log.write(record);
        }
        agent
    }

    /// Lets the kernel say `text`.
    pub(crate) fn say(&mut self, text: &str) {
        let record = format!("3,{},{},-;{text}", self.said.len(), since_boot_us());
        self.log.write(&record);
        self.said.push(record);
    }

    /// Returns the Node as it is.
    pub(crate) fn node(&self) -> Value {
        serde_json::to_value(self.server.node(&self.name).unwrap()).unwrap()
    }

    /// Returns a condition of the Node; `Null` where it has none of that type.
    pub(crate) fn condition(&self, name: &str) -> Value {
        let node = self.node();
        let conditions = node["status"]["conditions"].as_array();
        let found = conditions.into_iter().flatten().find(|one| one["type"] == name);
        found.cloned().unwrap_or_default()
    }

    /// Waits until a condition of the Node has a status, and returns it.
    pub(crate) fn wait_condition(&self, name: &str, status: &str) -> Value {
        let is = |condition: Value| (condition["status"] == status).then_some(condition);
        wait_every(PAUSE, LIMIT, || is(self.condition(name))).unwrap_or_else(|| {
            panic!("{name} does not become {status} on {}: {}", self.name, self.condition(name))
        })
    }

    /// Waits until the Node is as `is` says.
    pub(crate) fn wait_node(&self, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        let seen = wait_every(PAUSE, LIMIT, || Some(self.node()).filter(&is));
        seen.unwrap_or_else(|| panic!("{} never has {what}: {}", self.name, self.node()))
    }

    /// Returns the events about the Node with a reason.
    pub(crate) fn events(&self, reason: &str) -> Vec<Value> {
        let events = self.all_events();
        events.into_iter().filter(|event| event["reason"] == reason).collect()
    }

    /// Returns every event about the Node.
    pub(crate) fn all_events(&self) -> Vec<Value> {
        let listed = self.server.block_on(async |client| {
            let events: Api<Event> = Api::namespaced(client, "default");
            let about = ListParams::default().fields(&format!("regarding.name={}", self.name));
            Ok(events.list(&about).await?.items)
        });
        let events = listed.unwrap().into_iter();
        events.map(|event| serde_json::to_value(event).unwrap()).collect()
    }

    /// Waits until `count` happenings are told under a reason.
    pub(crate) fn wait_events(&self, reason: &str, count: u64) -> Vec<Value> {
        let told = |events: &[Value]| events.iter().map(happenings).sum::<u64>();
        let seen =
            wait_every(PAUSE, LIMIT, || Some(self.events(reason)).filter(|e| told(e) == count));
        seen.unwrap_or_else(|| panic!("not {count} of {reason}: {:#?}", self.events(reason)))
    }

    /// Ends the agent, and others after it, until `count` happenings are told under a reason.
    ///
    /// The end of an agent tells what is held back, as far as it can within a second.
    pub(crate) fn end_until_told(&mut self, mut agent: Agent, reason: &str, count: u64) {
        for _ in 0..10 {
            agent.terminate().assert_no_crash();
            if self.events(reason).iter().map(happenings).sum::<u64>() >= count {
                break;
            }
            agent = self.start();
            agent.wait_following();
        }
        self.wait_events(reason, count);
    }

    /// Writes an annotation of the Node, as a person does.
    pub(crate) fn annotate(&self, annotation: &str) {
        let admin = self.server.admin().unwrap();
        let arguments = ["annotate", "--overwrite", "node", &self.name, annotation];
        let output = self.server.kubectl(&admin, &arguments, "").unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    /// Writes a condition of the Node, as somebody else does.
    pub(crate) fn write_by(&self, manager: &str, name: &str, status: &str) {
        let admin = self.server.admin().unwrap();
        let condition = json!({
            "type": name, "status": status, "reason": "Theirs", "message": "theirs",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "lastHeartbeatTime": "2026-01-01T00:00:00Z",
        });
        let patch = json!({"status": {"conditions": [condition]}}).to_string();
        let manager = format!("--field-manager={manager}");
        let arguments = [
            "patch",
            "node",
            &self.name,
            "--subresource=status",
            "--type=strategic",
            &manager,
            "-p",
            &patch,
        ];
        let output = self.server.kubectl(&admin, &arguments, "").unwrap();
        assert!(output.status.success(), "{output:?}");
    }
}

/// Returns how many happenings an event stands for.
pub(crate) fn happenings(event: &Value) -> u64 {
    event["series"]["count"].as_u64().unwrap_or(1)
}

/// Between two looks at the API server, which are not for nothing.
const PAUSE: Duration = Duration::from_millis(40);
