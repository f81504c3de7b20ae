//! The table of semantics against the server that `KUBECONFIG` names.

use anyhow::Result;
use fettle_tests::api::semantics::{self, Requests};
use kube::{Client, Config};
use serde_json::json;

#[tokio::test]
#[ignore = "needs KUBECONFIG"]
async fn the_given_server_does_as_the_table_says() {
    let client = Client::try_default().await.expect("KUBECONFIG names a server");
    let failures = semantics::failures(&client, &format!("given-{}", std::process::id())).await;
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[tokio::test]
#[ignore = "needs KUBECONFIG and ETCD, the address of its etcd"]
async fn the_given_server_answers_410_for_what_etcd_forgot() {
    let client = Client::try_default().await.expect("KUBECONFIG names a server");
    let prefix = format!("given-{}-compaction", std::process::id());
    semantics::compaction(&client, &prefix, compact).await.expect("410");
}

async fn compact(version: u64) -> Result<()> {
    let etcd = Config::new(std::env::var("ETCD")?.parse()?);
    let etcd = Requests::new(Client::try_from(etcd)?);
    let body = json!({"revision": version.to_string(), "physical": true});
    etcd.create("/v3/kv/compaction", &body).await?.ok()?;
    Ok(())
}
