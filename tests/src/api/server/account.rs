//! A service account, and the tokens that it and its pods have.

use anyhow::{Context as _, Result};
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::{Api, Client};

/// Which account.
pub(super) struct Account {
    namespace: String,
    name: String,
}

impl Account {
    pub(super) fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// Returns a token that ends after `seconds`, and with `pod` if it is a pod's.
    ///
    /// Creates the account where it is missing.
    pub(super) async fn token(
        &self,
        client: Client,
        pod: Option<BoundObjectReference>,
        seconds: u32,
    ) -> Result<String> {
        let accounts = Api::<ServiceAccount>::namespaced(client, &self.namespace);
        if accounts.get_opt(&self.name).await?.is_none() {
            let account = ServiceAccount { metadata: named(&self.name), ..Default::default() };
            accounts.create(&PostParams::default(), &account).await?;
        }
        let spec = TokenRequestSpec {
            bound_object_ref: pod,
            expiration_seconds: Some(seconds.into()),
            ..TokenRequestSpec::default()
        };
        let request = TokenRequest { spec, ..TokenRequest::default() };
        let params = PostParams::default();
        let answer = accounts.create_token_request(&self.name, &params, &request).await?;
        Ok(answer.status.context("the server gave no token")?.token)
    }

    /// Makes a pod of the account on `node`, and returns what a token of it names.
    pub(super) async fn pod(&self, client: Client, node: &str) -> Result<BoundObjectReference> {
        let container = Container {
            name: "none".to_owned(),
            image: Some("none".to_owned()),
            ..Container::default()
        };
        let spec = PodSpec {
            containers: vec![container],
            node_name: Some(node.to_owned()),
            service_account_name: Some(self.name.clone()),
            ..PodSpec::default()
        };
        let metadata = named(&format!("{}-{node}", self.name));
        let pod = Pod { metadata, spec: Some(spec), ..Pod::default() };
        let pods = Api::<Pod>::namespaced(client, &self.namespace);
        let pod = pods.create(&PostParams::default(), &pod).await?;
        Ok(BoundObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            name: pod.metadata.name,
            uid: pod.metadata.uid,
        })
    }
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}
