//! The front passes what an API server says, and breaks what a test wants broken.

use core::time::Duration;
use std::sync::mpsc;

use anyhow::Result;
use fettle_tests::api::fake::Fake;
use fettle_tests::api::faults::{Asked, End, Fault, Phase};
use fettle_tests::api::proxy::{Front, Upstream};
use fettle_tests::api::semantics::{self, Requests};
use http::Method;
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::time::timeout;

struct Rig {
    fake: Fake,
    front: Front,
    requests: Requests,
}

fn rig() -> Rig {
    let fake = Fake::start().expect("a fake");
    let front = Front::start(&Upstream::plain(fake.url())).expect("a front");
    let requests = Requests::new(client(&front));
    Rig { fake, front, requests }
}

fn client(front: &Front) -> Client {
    let mut config = Config::new(front.url().parse().expect("an address"));
    config.default_retry = false;
    Client::try_from(config).expect("a client")
}

fn node(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
}

fn is_write(asked: &Asked) -> bool {
    asked.write.is_some()
}

impl Rig {
    async fn create(&self, name: &str) -> Result<u16> {
        Ok(self.requests.create(NODES, &node(name)).await?.code)
    }

    /// Tells whether the server behind the front has this Node.
    fn has(&self, name: &str) -> bool {
        self.fake.ask(&Method::GET, &format!("{NODES}/{name}"), "", &Value::Null).0 == 200
    }
}

#[tokio::test]
async fn the_front_passes_what_the_server_does() {
    let rig = rig();
    let failures = semantics::failures(&client(&rig.front), "front").await;
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    let (log, counts) = (rig.front.log(), rig.front.counts());
    assert!(log.iter().all(|entry| entry.code.is_some()), "an answer is missing");
    assert_eq!(counts.values().sum::<u64>(), u64::try_from(log.len()).expect("few"));
    assert!(counts["WATCH"] > 5 && counts["PATCH"] > 20, "{counts:?}");
}

#[tokio::test]
async fn a_refusal_is_answered_by_the_front() {
    let rig = rig();
    for code in [401, 409, 410, 429, 500, 503] {
        rig.front.inject(Some(1), is_write, Fault::Refuse { code, retry_after_s: Some(7) });
        assert_eq!(rig.create("refused").await.expect("an answer"), code);
        assert!(!rig.has("refused"));
    }
    assert_eq!(rig.create("refused").await.expect("an answer"), 201);
    assert_eq!(rig.front.writes(), 7);
    let bodies = rig.front.log().into_iter().map(|entry| entry.asked.body);
    assert!(bodies.into_iter().all(|body| body == node("refused")));
}

#[tokio::test]
async fn a_lost_request_is_not_done_and_a_lost_reply_is() {
    let rig = rig();
    rig.front.inject(Some(1), is_write, Fault::LoseRequest);
    rig.create("request").await.expect_err("no answer");
    assert!(!rig.has("request"));
    rig.front.inject(Some(1), is_write, Fault::LoseReply);
    rig.create("reply").await.expect_err("no answer");
    assert!(rig.has("reply"));
}

#[tokio::test]
async fn a_hook_is_called_at_its_write_and_at_its_phase() {
    let rig = rig();
    let (tell, told) = mpsc::channel();
    let other = tell.clone();
    rig.front.on_write(2, Phase::BeforeForward, move |asked| {
        tell.send(asked.number).expect("a listener");
    });
    rig.front.on_write(3, Phase::AfterForwardBeforeReply, move |asked| {
        other.send(asked.number).expect("a listener");
    });
    assert_eq!(rig.create("first").await.expect("an answer"), 201);
    rig.create("before").await.expect_err("no answer");
    rig.create("after").await.expect_err("no answer");
    assert!(!rig.has("before") && rig.has("after"));
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [2, 3]);
}

#[tokio::test]
async fn a_black_hole_takes_a_request_and_never_answers() {
    let rig = rig();
    rig.front.inject(Some(1), is_write, Fault::BlackHole);
    timeout(SHORT, rig.create("hole")).await.expect_err("an answer came");
    assert!(!rig.has("hole"));
    rig.front.inject(Some(1), is_write, Fault::Delay(SHORT));
    timeout(SHORT, rig.create("late")).await.expect_err("an answer came too early");
    assert_eq!(rig.create("later").await.expect("an answer"), 201);
}

#[tokio::test]
async fn a_frozen_front_holds_back_what_it_has() {
    let rig = rig();
    rig.front.freeze(true);
    timeout(SHORT, rig.create("frozen")).await.expect_err("an answer came");
    rig.front.freeze(false);
    assert_eq!(rig.create("thawed").await.expect("an answer"), 201);
}

#[tokio::test]
async fn a_watch_breaks_after_its_lines() {
    let rig = rig();
    for name in ["a", "b", "c"] {
        assert_eq!(rig.create(name).await.expect("an answer"), 201);
    }
    let watch = format!("{NODES}?watch=true&timeoutSeconds=1");
    let broken = |end| {
        rig.front.inject(Some(1), Asked::is_watch, Fault::Break { lines: 2, end });
        timeout(4 * SHORT, rig.requests.watch(&watch))
    };
    let expired = broken(End::Expired).await.expect("an end").expect("JSON");
    let kinds: Vec<_> =
        expired.iter().map(|event| event["type"].as_str().expect("a type")).collect();
    assert_eq!(kinds, ["ADDED", "ADDED", "ERROR"]);
    assert_eq!(expired[2]["object"]["code"], 410);
    let closed = broken(End::Close).await.expect("an end").expect("JSON");
    assert_eq!(closed.len(), 2);
    for end in [End::Cut, End::Garbage, End::HalfLine] {
        broken(end).await.expect("an end").expect_err("no JSON");
    }
    broken(End::Stall).await.expect_err("an end came");
    assert_eq!(rig.requests.watch(&watch).await.expect("a watch").len(), 3);
}

#[tokio::test]
async fn a_shut_front_refuses_and_opens_on_the_same_port() {
    let rig = rig();
    assert_eq!(rig.create("first").await.expect("an answer"), 201);
    rig.front.shut();
    rig.create("second").await.expect_err("refused");
    rig.front.open();
    assert_eq!(rig.create("third").await.expect("an answer"), 201);
    assert!(!rig.has("second") && rig.has("third"));
}

#[tokio::test]
async fn a_token_passes_the_front_and_expires() {
    let rig = rig();
    rig.fake.set_tokens(Some(["good"]));
    assert_eq!(rig.create("nobody").await.expect("an answer"), 401);
    let kubeconfig = kube::config::Kubeconfig::from_yaml(&rig.front.kubeconfig(Some("good")));
    let kubeconfig = kubeconfig.expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await;
    let requests = Requests::new(Client::try_from(config.expect("a config")).expect("a client"));
    assert_eq!(requests.create(NODES, &node("bearer")).await.expect("an answer").code, 201);
    rig.fake.set_tokens(Some(["newer"]));
    let answer = requests.get(NODES).await.expect("an answer");
    answer.refused(401, "Unauthorized").expect("expired");
}

const NODES: &str = "/api/v1/nodes";

/// Longer than an answer takes, as far as one can tell.
const SHORT: Duration = Duration::from_millis(500);
