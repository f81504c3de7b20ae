//! What is installed in a cluster, rendered by the real kubectl and applied to a real API server.

use core::time::Duration;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::LazyLock;

use fettle_tests::api::server::{ApiServer, Identity, shared};
use fettle_tests::clock::wait_for;
use http::Request;
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::{Value, json};

pub(crate) const NAMESPACE: &str = "fettle-system";
pub(crate) const ACCOUNT: &str = "fettle-agent";

/// Returns the shared server, with `base` applied and its admission policy in force.
pub(crate) fn installed() -> &'static ApiServer {
    static DONE: LazyLock<()> = LazyLock::new(|| {
        let server = shared();
        apply(server, &render(server, &deployed("base")));
        server.create_node("install").unwrap();
        let identity = server.service_account(NAMESPACE, ACCOUNT, 3600).unwrap();
        // Informers tell roles and policies to the server's own parts: that takes a moment.
        let body = json!({"metadata": {"annotations": {"fettle.dev/x": "1"}}});
        let ask = || ask(&identity, "PATCH", "/api/v1/nodes/install?dryRun=All", &body);
        let is_in_force = || ask().1.contains("ValidatingAdmissionPolicy").then_some(());
        assert!(wait_for(LIMIT, is_in_force).is_some(), "{:?}", ask());
    });
    LazyLock::force(&DONE);
    shared()
}

/// Returns the identity that the DaemonSet's pod has on `node`.
pub(crate) fn agent_on(server: &ApiServer, node: &str) -> Identity {
    server.service_account_on(node, NAMESPACE, ACCOUNT).unwrap()
}

/// Returns what kubectl makes of a kustomization.
pub(crate) fn render(server: &ApiServer, folder: &Path) -> String {
    let folder = folder.to_str().unwrap();
    let output = server.kubectl(&server.admin().unwrap(), &["kustomize", folder], "").unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{folder}: {}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Applies manifests as an administrator, who is to see neither error nor warning.
pub(crate) fn apply(server: &ApiServer, manifests: &str) {
    let output = try_apply(server, manifests);
    assert!(output.status.success() && output.stderr.is_empty(), "{}", said(&output));
}

/// Applies manifests as far as the server takes them; it refuses what it does not know.
pub(crate) fn try_apply(server: &ApiServer, manifests: &str) -> Output {
    let arguments = ["apply", "--validate=strict", "-f", "-"];
    server.kubectl(&server.admin().unwrap(), &arguments, manifests).unwrap()
}

/// Returns what a program printed.
pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&*output.stdout, &*output.stderr].concat()).into_owned()
}

/// Sends one request as `identity`, and returns the code and the words of the answer.
pub(crate) fn ask(identity: &Identity, method: &str, path: &str, body: &Value) -> (u16, String) {
    let kind = match method {
        "PATCH" if path.contains("fieldManager") => "application/apply-patch+yaml",
        "PATCH" if path.contains("events") => "application/merge-patch+json",
        "PATCH" => "application/strategic-merge-patch+json",
        _ => "application/json",
    };
    let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = Request::builder().method(method).uri(path).header("Content-Type", kind);
    let request = request.body(Body::from(bytes)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let answer = identity.client().await.unwrap().send(request).await.unwrap();
        let code = answer.status().as_u16();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        (code, body["message"].as_str().unwrap_or_default().to_owned())
    })
}

/// Returns a file or folder of what is installed.
pub(crate) fn deployed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../shell-linux/deploy").join(name)
}

const LIMIT: Duration = Duration::from_secs(30);
