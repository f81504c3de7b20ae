//! The table of semantics against the server that `KUBECONFIG` names.

use fettle_tests::api::semantics;
use kube::Client;

#[tokio::test]
#[ignore = "needs KUBECONFIG"]
async fn the_given_server_does_as_the_table_says() {
    let client = Client::try_default().await.expect("KUBECONFIG names a server");
    let failures = semantics::failures(&client, "given").await;
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
