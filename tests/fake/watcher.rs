//! A client's watcher goes on, whatever the server and the network do to it.

use core::time::Duration;

use fettle_tests::api::fake::{Fake, Options};
use fettle_tests::api::faults::{Asked, End, Fault};
use fettle_tests::api::proxy::{Front, Upstream};
use futures_util::{StreamExt as _, pin_mut};
use http::Method;
use k8s_openapi::api::core::v1::Node;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, Config, ResourceExt as _};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// A watcher's task, and the label `a` of each object that it tells of.
struct Seen {
    task: JoinHandle<()>,
    labels: mpsc::UnboundedReceiver<String>,
}

impl Seen {
    /// Watches Nodes through `front`.
    fn through(front: &Front, config: watcher::Config) -> Self {
        let server = Config::new(front.url().parse().expect("an address"));
        let api = Api::<Node>::all(Client::try_from(server).expect("a client"));
        let (tell, labels) = mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            let nodes = watcher(api, config).default_backoff().applied_objects();
            pin_mut!(nodes);
            while let Some(node) = nodes.next().await {
                let label = node.ok().and_then(|node| node.labels().get("a").cloned());
                label.map(|label| tell.send(label));
            }
        });
        Self { task, labels }
    }

    /// Waits until it tells of `label`.
    async fn sees(&mut self, label: &str) {
        let wait = async { while self.labels.recv().await.is_some_and(|seen| seen != label) {} };
        timeout(LIMIT, wait).await.unwrap_or_else(|_| panic!("{label} was not seen"));
    }
}

impl Drop for Seen {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn label(fake: &Fake, label: &str) {
    let kind = "application/merge-patch+json";
    let patch = json!({"metadata": {"labels": {"a": label}}});
    let (code, body) = fake.ask(&Method::PATCH, "/api/v1/nodes/n", kind, &patch);
    assert_eq!(code, 200, "{body}");
}

fn fake(streaming_lists: bool) -> Fake {
    let options = Options { streaming_lists, ..Options::default() };
    let fake = Fake::start_with(options).expect("a fake");
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}});
    let (code, body): (u16, Value) =
        fake.ask(&Method::POST, "/api/v1/nodes", "application/json", &node);
    assert_eq!(code, 201, "{body}");
    label(&fake, "first");
    fake
}

/// Breaks a watch in every way, and each time waits for the next change.
async fn survives(config: watcher::Config, fake: Fake) {
    let front = Front::start(&Upstream::plain(fake.url())).expect("a front");
    let ends = [End::Close, End::Cut, End::Expired, End::HalfLine];
    let mut last = "first".to_owned();
    for (number, end) in ends.into_iter().enumerate() {
        front.inject(Some(1), Asked::is_watch, Fault::Break { lines: 1, end });
        let mut seen = Seen::through(&front, config.clone());
        seen.sees(&last).await;
        for step in ["a", "b"] {
            label(&fake, &format!("{number}-{step}"));
            seen.sees(&format!("{number}-{step}")).await;
        }
        front.shut();
        label(&fake, &format!("{number}-unseen"));
        fake.compact();
        last = format!("{number}-last");
        label(&fake, &last);
        front.open();
        seen.sees(&last).await;
        front.heal();
    }
}

#[tokio::test]
async fn a_listing_watcher_survives_what_breaks() {
    survives(watcher::Config::default(), fake(false)).await;
}

#[tokio::test]
async fn a_streaming_watcher_survives_what_breaks() {
    survives(watcher::Config::default().streaming_lists(), fake(true)).await;
}

/// Longer than a client backs off after one failure.
const LIMIT: Duration = Duration::from_secs(30);
