//! Watches the agent's own Node, and nothing else.

use std::pin::pin;
use std::sync::Arc;

use futures_util::StreamExt as _;
use kube::Api;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{Config, Event, watcher};
use tokio::sync::mpsc;

use super::access::Access;
use super::node::NodeObject;
use super::requests::Asked;
use crate::errors::chain;

/// Hands on every sight of the Node `name`, until nobody takes them.
pub(super) async fn follow(access: Arc<Access>, name: String, sender: mpsc::Sender<Asked>) {
    loop {
        let client = access.wait_client().await;
        let mut renewals = access.renewals();
        renewals.mark_unchanged();
        let nodes: Api<NodeObject> = Api::all(client);
        let config = Config::default().fields(&format!("metadata.name={name}"));
        let mut events = pin!(watcher(nodes, config).default_backoff());
        let mut is_there = false;
        loop {
            let event = tokio::select! {
                event = events.next() => event,
                // There is another client: whoever the old one is may not be known any more.
                _ = renewals.changed() => break,
            };
            let Some(event) = event else { break };
            let asked = match event {
                Ok(Event::Init) => {
                    is_there = false;
                    continue;
                }
                Ok(Event::InitApply(node)) => {
                    is_there = true;
                    Asked::Seen { node: Box::new(node), is_listed: true }
                }
                Ok(Event::Apply(node)) => Asked::Seen { node: Box::new(node), is_listed: false },
                Ok(Event::InitDone) if is_there => continue,
                Ok(Event::InitDone | Event::Delete(_)) => Asked::Missing,
                Err(problem) => {
                    // A certificate may have been rotated: then there is a new client.
                    let _ = access.client().await;
                    Asked::Unwatched(chain(&problem))
                }
            };
            if sender.send(asked).await.is_err() {
                return;
            }
        }
    }
}
