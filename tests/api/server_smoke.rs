//! The server of the tests itself: it starts, crashes, comes back, and tells identities apart.

use core::time::Duration;
use std::process::Output;

use fettle_tests::api::server::{ApiServer, Options, shared};
use fettle_tests::clock::{now, wait_for};
use k8s_openapi::api::core::v1::Node;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, Error, ResourceExt as _};
use serde_json::Value;

#[test]
#[ignore = "needs a Kubernetes API server"]
fn a_killed_server_comes_back_with_its_objects() {
    let server = ApiServer::start(&Options::default()).unwrap();
    let before = server.create_node("smoke-restart").unwrap();
    let url = server.url();
    server.kill();
    assert!(server.node("smoke-restart").is_err(), "a killed server answers");
    let start = now();
    server.restart().unwrap();
    println!("from the start after a crash to ready: {:?}", start.elapsed());
    let after = server.node("smoke-restart").unwrap();
    assert_eq!((server.url(), after.metadata.uid), (url, before.metadata.uid));
}

#[test]
#[ignore = "needs a Kubernetes API server"]
fn a_server_without_its_store_cannot_read_until_that_is_back() {
    let start = now();
    let server = ApiServer::start(&Options::default()).unwrap();
    println!("from nothing to ready: {:?}", start.elapsed());
    server.kill_etcd();
    let lost = server.block_on(async |client| {
        let limit = Duration::from_secs(5);
        let listed = tokio::time::timeout(limit, Api::<Node>::all(client).get("none")).await;
        Ok(!matches!(listed, Ok(Err(Error::Api(status))) if status.code == 404))
    });
    assert!(lost.unwrap(), "a server without a store knows what it does not have");
    server.start_etcd().unwrap();
    server.restart().unwrap();
    server.create_node("smoke-etcd").unwrap();
}

#[test]
#[ignore = "needs a Kubernetes API server"]
fn a_kubelet_has_no_rights_where_only_roles_give_them() {
    let options = Options { node_restriction: false, flags: Vec::new() };
    let server = ApiServer::start(&options).unwrap();
    server.create_node("smoke-roles").unwrap();
    let kubelet = server.kubelet("smoke-roles").unwrap();
    let refused = server.kubectl(&kubelet, &["get", "node", "smoke-roles"], "").unwrap();
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(why.contains("\"system:node:smoke-roles\" cannot get"), "{why}");
}

#[test]
#[ignore = "needs a Kubernetes API server"]
fn a_server_that_does_not_start_shows_why() {
    let flags = vec!["--no-such-flag".to_owned()];
    let error = ApiServer::start(&Options { flags, ..Options::default() }).unwrap_err();
    let error = format!("{error:#}");
    assert!(error.contains("kube-apiserver ended with exit status: 1"), "{error}");
    assert!(error.contains("unknown flag: --no-such-flag"), "{error}");
}

#[test]
#[ignore = "needs a Kubernetes API server"]
fn kubectl_applies_and_reads() {
    let server = shared();
    let admin = server.admin().unwrap();
    let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: smoke}\ndata: {a: b}\n";
    let applied = server.kubectl(&admin, &["apply", "-f", "-"], manifest).unwrap();
    assert_eq!(printed(&applied), "configmap/smoke created\n");
    let read = server.kubectl(&admin, &["get", "configmap", "smoke", "-o", "json"], "").unwrap();
    let read: Value = serde_json::from_str(&printed(&read)).unwrap();
    assert_eq!(read["data"]["a"], "b");
    let version = server.kubectl(&admin, &["version", "-o", "json"], "").unwrap();
    let version: Value = serde_json::from_str(&printed(&version)).unwrap();
    assert_eq!(version["clientVersion"]["gitVersion"], version["serverVersion"]["gitVersion"]);
}

#[test]
#[ignore = "needs a Kubernetes API server"]
fn a_service_account_may_nothing_until_it_is_given_rights() {
    let server = shared();
    let account = server.service_account("default", "smoke", 600).unwrap();
    server.create_node("smoke-account").unwrap();
    let read = ["get", "node", "smoke-account", "-o", "name"];
    let refused = server.kubectl(&account, &read, "").unwrap();
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(why.contains("\"system:serviceaccount:default:smoke\" cannot get"), "{why}");
    let admin = server.admin().unwrap();
    let user = "--serviceaccount=default:smoke";
    let grant = ["create", "clusterrolebinding", "smoke", "--clusterrole=system:node", user];
    printed(&server.kubectl(&admin, &grant, "").unwrap());
    // The authorizer learns of a binding by a watch, a moment later.
    let allowed = wait_for(Duration::from_secs(10), || {
        Some(server.kubectl(&account, &read, "").unwrap()).filter(|output| output.status.success())
    });
    assert_eq!(printed(&allowed.expect("it may read")), "node/smoke-account\n");
}

#[test]
#[ignore = "needs a Kubernetes API server"]
fn a_certificate_is_refused_from_its_end_on() {
    let server = shared();
    let whoami = ["auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"];
    let day = Duration::from_hours(24);
    let valid = server.client_cert("smoke-user", None, day).unwrap();
    assert_eq!(printed(&server.kubectl(&valid, &whoami, "").unwrap()), "smoke-user");
    let ended = server.client_cert("smoke-user", None, Duration::ZERO).unwrap();
    let refused = server.kubectl(&ended, &whoami, "").unwrap();
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && why.contains("must be logged in"), "{why}");
}

#[test]
#[ignore = "needs a Kubernetes API server"]
fn a_credential_in_files_can_be_rotated() {
    let server = shared();
    let folder = tempfile::tempdir().unwrap();
    let whoami = ["auth", "whoami", "-o", "jsonpath={.status.userInfo.username}", "--kubeconfig"];
    let nobody = server.client_cert("nobody", None, Duration::ZERO).unwrap();
    let ask = || {
        let path = folder.path().join("kubeconfig").display().to_string();
        let arguments: Vec<&str> = whoami.into_iter().chain([path.as_str()]).collect();
        printed(&server.kubectl(&nobody, &arguments, "").unwrap())
    };
    let day = Duration::from_hours(24);
    for user in ["smoke-first", "smoke-second"] {
        server.client_cert(user, None, day).unwrap().write_to(folder.path()).unwrap();
        assert_eq!(ask(), user);
    }
    let account = server.service_account("default", "smoke-files", 600).unwrap();
    account.write_to(folder.path()).unwrap();
    assert_eq!(ask(), "system:serviceaccount:default:smoke-files");
}

#[tokio::test]
#[ignore = "needs a Kubernetes API server"]
async fn a_client_reads_certificate_and_key_from_one_file_as_kubelets_keep_them() {
    let folder = tempfile::tempdir().unwrap();
    shared().create_node("smoke-pem").unwrap();
    let path = shared().kubelet("smoke-pem").unwrap().write_to(folder.path()).unwrap();
    let kubeconfig = Kubeconfig::read_from(path).unwrap();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    let nodes = Api::<Node>::all(Client::try_from(config).unwrap());
    assert_eq!(nodes.get("smoke-pem").await.unwrap().name_any(), "smoke-pem");
}

/// Returns what a program printed that must have succeeded.
fn printed(output: &Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {error}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}
