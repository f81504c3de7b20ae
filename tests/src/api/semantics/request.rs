//! Requests whose answers are kept as they came, errors too.

use anyhow::{Context as _, Result, ensure};
use http::{Method, Request, header};
use kube::Client;
use kube::client::Body;
use serde_json::Value;

/// An API server to ask.
#[derive(Clone)]
pub struct Requests {
    client: Client,
}

impl core::fmt::Debug for Requests {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Requests").finish_non_exhaustive()
    }
}

/// What the server answered.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The HTTP status code.
    pub code: u16,
    /// The body; `Null` where it is not JSON.
    pub body: Value,
}

impl Answer {
    /// Returns the body of an answer that says yes.
    ///
    /// # Errors
    ///
    /// If it says no.
    pub fn ok(self) -> Result<Value> {
        ensure!((200..300).contains(&self.code), "refused with {}: {}", self.code, self.body);
        Ok(self.body)
    }

    /// Checks that the server refused with `code` and `reason`, in a `Status`.
    ///
    /// # Errors
    ///
    /// If it did not.
    pub fn refused(self, code: u16, reason: &str) -> Result<Value> {
        ensure!(self.code == code, "wanted {code}, got {}: {}", self.code, self.body);
        ensure!(self.body["kind"] == "Status", "no Status: {}", self.body);
        ensure!(self.body["code"] == code, "another code within: {}", self.body);
        let why = self.body["reason"].as_str().unwrap_or_default();
        ensure!(why == reason, "wanted {reason}: {}", self.body);
        Ok(self.body)
    }
}

impl Requests {
    /// Asks through `client`.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// Sends one request and returns its answer, whatever it is.
    ///
    /// # Errors
    ///
    /// If there is no answer.
    pub async fn send(&self, method: Method, path: &str, kind: &str, body: &str) -> Result<Answer> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::CONTENT_TYPE, kind)
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, USER_AGENT)
            .body(Body::from(body.as_bytes().to_vec()))?;
        let response =
            self.client.send(request).await.with_context(|| format!("no answer to {path}"))?;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect_bytes().await?;
        Ok(Answer { code, body: serde_json::from_slice(&bytes).unwrap_or_default() })
    }

    /// Reads an object or a list.
    ///
    /// # Errors
    ///
    /// If there is no answer; so for all below.
    pub async fn get(&self, path: &str) -> Result<Answer> {
        self.send(Method::GET, path, JSON, "").await
    }

    /// Creates an object in a collection.
    pub async fn create(&self, path: &str, object: &Value) -> Result<Answer> {
        self.send(Method::POST, path, JSON, &object.to_string()).await
    }

    /// Replaces an object.
    pub async fn replace(&self, path: &str, object: &Value) -> Result<Answer> {
        self.send(Method::PUT, path, JSON, &object.to_string()).await
    }

    /// Deletes an object.
    pub async fn delete(&self, path: &str) -> Result<Answer> {
        self.send(Method::DELETE, path, JSON, "").await
    }

    /// Patches an object by RFC 7386.
    pub async fn merge(&self, path: &str, patch: &Value) -> Result<Answer> {
        let kind = "application/merge-patch+json";
        self.send(Method::PATCH, path, kind, &patch.to_string()).await
    }

    /// Patches an object so that list items are found by their keys.
    pub async fn strategic(&self, path: &str, patch: &Value) -> Result<Answer> {
        let kind = "application/strategic-merge-patch+json";
        self.send(Method::PATCH, path, kind, &patch.to_string()).await
    }

    /// Applies a part of an object on the server.
    pub async fn apply(&self, path: &str, part: &Value) -> Result<Answer> {
        let kind = "application/apply-patch+yaml";
        self.send(Method::PATCH, path, kind, &part.to_string()).await
    }

    /// Reads a watch to its end.
    ///
    /// # Errors
    ///
    /// If it is refused, or sends anything but JSON lines.
    pub async fn watch(&self, path: &str) -> Result<Vec<Value>> {
        let request = Request::get(path).header(header::USER_AGENT, USER_AGENT);
        let response = self.client.send(request.body(Body::empty())?).await?;
        let code = response.status();
        let bytes = response.into_body().collect_bytes().await?;
        ensure!(code.is_success(), "refused with {code}: {}", String::from_utf8_lossy(&bytes));
        let lines = bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        Ok(lines.map(serde_json::from_slice).collect::<Result<_, _>>()?)
    }
}

/// What the requests say they come from.
pub(super) const USER_AGENT: &str = "semantics/1.0 (test)";

const JSON: &str = "application/json";
