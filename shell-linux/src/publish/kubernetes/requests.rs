//! Requests to the API server: sent on tasks of their own, answered to the one loop.

use core::time::Duration;
use std::sync::Arc;

use http_body_util::BodyExt as _;
use kube::client::Body;
use log::debug;
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::access::{Access, AccessError, Source};
use super::node::NodeObject;
use super::watch;
use crate::errors::chain;

/// Which of the core's lanes a request belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// Annotations of the Node.
    Annotations,
    /// Events.
    Events,
    /// Conditions of the Node.
    Status,
}

/// A request.
#[derive(Debug, Clone)]
pub struct Request {
    /// Which lane it belongs to.
    pub lane: Lane,
    /// The HTTP method.
    pub method: http::Method,
    /// The path, with what follows its `?`.
    pub path: String,
    /// What the body is.
    pub content_type: &'static str,
    /// The body.
    pub body: Vec<u8>,
}

/// What came from the API server.
#[derive(Debug)]
pub enum Asked {
    /// A request was answered, or will not be.
    Answered {
        /// Its lane.
        lane: Lane,
        /// The answer.
        reply: Reply,
    },
    /// The Node is gone, or was never there.
    Missing,
    /// The Node was read.
    Seen {
        /// The Node.
        node: Box<NodeObject>,
        /// Whether the watch begins with it.
        is_listed: bool,
    },
    /// The Node cannot be watched.
    Unwatched(String),
}

/// How a request ended.
#[derive(Debug)]
pub enum Reply {
    /// It was done; the Node as it is then, where the request was about it.
    Accepted(Option<Box<NodeObject>>),
    /// It was not done, or nobody knows.
    Refused {
        /// The HTTP status code; `None` where there was no answer.
        code: Option<u16>,
        /// The reason in the API server's `Status`, such as `AlreadyExists`.
        reason: String,
        /// Why, in words.
        message: String,
        /// How long the API server wants to be left alone.
        retry_after: Option<Duration>,
    },
}

/// The API server, as the one loop uses it.
#[derive(Debug)]
pub struct Api {
    access: Arc<Access>,
    sender: mpsc::Sender<Asked>,
    receiver: mpsc::Receiver<Asked>,
}

impl Api {
    /// Starts to watch the Node `name`.
    #[must_use]
    pub fn start(source: Source, name: &str) -> Self {
        let access = Access::new(source);
        let (sender, receiver) = mpsc::channel(ASKED_MAX);
        // Ends with the process.
        tokio::spawn(watch::follow(Arc::clone(&access), name.to_owned(), sender.clone()));
        Self { access, sender, receiver }
    }

    /// Sends a request; the answer comes by [`next`](Self::next).
    pub fn send(&self, request: Request) {
        let (access, sender) = (Arc::clone(&self.access), self.sender.clone());
        tokio::spawn(async move {
            let lane = request.lane;
            let reply = match timeout(ANSWER_WITHIN, send(&access, request)).await {
                Ok(reply) => reply,
                Err(_) => Reply::lost(format!("no answer within {} s", ANSWER_WITHIN.as_secs())),
            };
            // The loop may have ended.
            let _ = sender.send(Asked::Answered { lane, reply }).await;
        });
    }

    /// Waits for what comes next from the API server.
    pub async fn next(&mut self) -> Option<Asked> {
        self.receiver.recv().await
    }
}

impl Reply {
    fn lost(message: String) -> Self {
        Self::Refused { code: None, reason: String::new(), message, retry_after: None }
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
enum SendError {
    #[error("no credentials")]
    Access(#[source] AccessError),
    #[error("cannot make the request")]
    Make(#[source] http::Error),
    #[error("no answer")]
    Send(#[source] kube::Error),
    #[error("the answer broke off")]
    Read(#[source] kube::Error),
}

async fn send(access: &Access, request: Request) -> Reply {
    match exchange(access, request).await {
        Ok(reply) => reply,
        Err(problem) => Reply::lost(chain(&problem)),
    }
}

async fn exchange(access: &Access, request: Request) -> Result<Reply, SendError> {
    let Request { lane, method, path, content_type, body } = request;
    let client = access.client().await.map_err(SendError::Access)?;
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header(http::header::CONTENT_TYPE, content_type)
        .header(http::header::ACCEPT, "application/json")
        .body(Body::from(body))
        .map_err(SendError::Make)?;
    let response = client.send(request).await.map_err(SendError::Send)?;
    let (head, body) = response.into_parts();
    let body = body.collect().await.map_err(SendError::Read)?.to_bytes();
    if head.status.is_success() {
        // An answer that cannot be read is no failure of the request: the watch reads the Node.
        let node = (lane != Lane::Events).then(|| serde_json::from_slice(&body).ok()).flatten();
        return Ok(Reply::Accepted(node));
    }
    Ok(refused(&head, &body))
}

fn refused(head: &http::response::Parts, body: &[u8]) -> Reply {
    let status: Status = serde_json::from_slice(body).unwrap_or_default();
    let code = head.status.as_u16();
    let message = if status.message.is_empty() {
        String::from_utf8_lossy(body.get(..MESSAGE_SHOWN).unwrap_or(body)).into_owned()
    } else {
        status.message
    };
    debug!("the API server refuses with {code} {}: {message}", status.reason);
    let retry_after = head.headers.get(http::header::RETRY_AFTER);
    // The date form (RFC 9110, section 10.2.3) is not what API servers send.
    let seconds = retry_after.and_then(|value| value.to_str().ok()?.trim().parse().ok());
    let retry_after = seconds.map(Duration::from_secs);
    Reply::Refused { code: Some(code), reason: status.reason, message, retry_after }
}

/// What an API server says of a request that it does not do (`meta/v1`, `Status`).
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    reason: String,
    message: String,
}

/// Most answers that wait for the loop: one of each lane, and some of the watch.
const ASKED_MAX: usize = 8;

/// How long a request may take: longer than an API server under load takes.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// Most bytes of an answer that is no `Status`, as a log line shows it.
const MESSAGE_SHOWN: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_read_as_far_as_it_can_be() {
        let status = br#"{"kind":"Status","reason":"AlreadyExists","message":"it is there"}"#;
        // body, Retry-After, reason, message, wait
        for (body, after, reason, message, wait) in [
            (&status[..], None, "AlreadyExists", "it is there", None),
            (b"busy\n", Some("3"), "", "busy\n", Some(3)),
            (b"", Some("Tue, 01 Dec 2026 00:00:00 GMT"), "", "", None),
            (b"\xff", Some("-1"), "", "\u{fffd}", None),
        ] {
            let mut response = http::Response::builder().status(429);
            if let Some(after) = after {
                response = response.header("Retry-After", after);
            }
            let (head, ()) = response.body(()).unwrap().into_parts();
            let Reply::Refused { code, reason: got, message: said, retry_after } =
                refused(&head, body)
            else {
                panic!("it was refused");
            };
            let wait = wait.map(Duration::from_secs);
            assert_eq!((code, &*got, &*said, retry_after), (Some(429), reason, message, wait));
        }
    }
}
