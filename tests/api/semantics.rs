//! The table that the fake is held to, against a real server.

use fettle_tests::api::proxy::{Front, Identity, Upstream};
use fettle_tests::api::semantics;
use fettle_tests::api::server::{Credential, Pair, shared};
use kube::{Client, Config};

#[test]
#[ignore = "needs a Kubernetes API server"]
fn a_real_server_does_as_the_table_says() {
    let failures =
        shared().block_on(async |client| Ok(semantics::failures(&client, "table").await));
    let failures = failures.unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
#[ignore = "needs a Kubernetes API server"]
fn the_front_changes_nothing_that_it_is_not_told_to() {
    let server = shared();
    let Credential::Certificate(Pair { certificate, key }) =
        server.admin().unwrap().credential().clone()
    else {
        panic!("an administrator has a certificate");
    };
    let identity = Identity::Certificate { certificate: certificate.into(), key: key.into() };
    let authority = Some(server.authority_pem().as_bytes().to_vec());
    let front = Front::start(&Upstream { url: server.url(), authority, identity }).unwrap();
    let failures = server.block_on(async |_| {
        let client = Client::try_from(Config::new(front.url().parse()?))?;
        Ok(semantics::failures(&client, "front").await)
    });
    let failures = failures.unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
