//! A fake API server: what a client of a real one would see, without its processes.
//!
//! It answers by HTTP/1.1 in JSON on a port of loopback. That it does as a real server does is
//! stated in [`semantics`](super::semantics), which runs against both.
//!
//! # What the fake does not do
//!
//! It has no types: it keeps fields that a real server drops, and accepts values that a real
//! server cannot decode. It has no admission, so a new Node gets no taint, and no authorization.
//! It lists what there is now whatever the version; it deletes no collections. It knows neither
//! JSON patches nor sets in label selectors.

mod call;
mod check;
mod failure;
mod fields;
mod owners;
mod patch;
mod resource;
mod store;
mod verbs;
mod watch;

use core::time::Duration;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use futures_util::FutureExt as _;
use http::{HeaderMap, Method, Request, Response, Uri, header};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::{Bytes, Incoming};
use kube::{Client, Config};
use serde_json::{Value, json};

use call::Call;
use failure::Failure;
pub use resource::{Form, Resource};
use store::Store;

use super::listen::{self, Answer, Dropped, Listener};

/// What a fake is like.
#[derive(Debug, Clone)]
pub struct Options {
    /// How often a watch gets a bookmark, beside the one before its end.
    pub bookmark_every: Duration,
    /// How many changes are kept; a watch from before gets 410.
    pub history_max: usize,
    /// What is served.
    pub resources: Vec<Resource>,
    /// Whether a watch may ask for what is there (`sendInitialEvents`); older servers refuse it.
    pub streaming_lists: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            bookmark_every: Duration::from_secs(60),
            history_max: 1000,
            resources: Fake::RESOURCES.to_vec(),
            streaming_lists: true,
        }
    }
}

/// A running fake; dropping it ends it.
#[derive(Debug)]
pub struct Fake {
    server: Arc<Mutex<Server>>,
    listener: Listener,
}

/// What the connections share.
#[derive(Debug)]
struct Server {
    store: Store,
    names: u64,
    tokens: Option<BTreeSet<String>>,
    bookmark_every: Duration,
    resources: Arc<[Resource]>,
    streaming_lists: bool,
}

impl Fake {
    /// Starts one as most tests want it.
    ///
    /// # Errors
    ///
    /// If this machine gives it no port or no thread.
    pub fn start() -> Result<Self> {
        Self::start_with(Options::default())
    }

    /// Starts one.
    ///
    /// # Errors
    ///
    /// If this machine gives it no port or no thread.
    pub fn start_with(options: Options) -> Result<Self> {
        let server = Arc::new(Mutex::new(Server::new(options)));
        let shared = Arc::clone(&server);
        let listener = Listener::start(move || {
            Ok(Box::new(move |request| serve(Arc::clone(&shared), request).boxed()))
        })?;
        let fake = Self { server, listener };
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            let namespace = json!({"metadata": {"name": name}});
            let _ = fake.ask(&Method::POST, "/api/v1/namespaces", "application/json", &namespace);
        }
        Ok(fake)
    }

    /// Returns its address, such as `http://127.0.0.1:4321`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.listener.address())
    }

    /// Returns the text of a kubeconfig that names it.
    #[must_use]
    pub fn kubeconfig(&self, token: Option<&str>) -> String {
        listen::kubeconfig(&self.url(), token)
    }

    /// Returns a client, to be used in the caller's runtime.
    ///
    /// # Errors
    ///
    /// If there is no runtime.
    pub fn client(&self) -> Result<Client> {
        Ok(Client::try_from(Config::new(self.url().parse()?))?)
    }

    /// Asks for one thing without HTTP and without a token, and returns code and body.
    ///
    /// # Panics
    ///
    /// If `path` is none.
    #[must_use]
    pub fn ask(&self, method: &Method, path: &str, kind: &str, body: &Value) -> (u16, Value) {
        let uri: Uri = path.parse().unwrap_or_else(|error| panic!("{path}: {error}"));
        let mut headers = HeaderMap::new();
        let kind = kind.parse().unwrap_or_else(|error| panic!("{kind}: {error}"));
        headers.insert(header::CONTENT_TYPE, kind);
        headers.insert(header::USER_AGENT, header::HeaderValue::from_static("test"));
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut server = locked(&self.server);
        let call = Call::read(&server.resources, (method.clone(), &uri, &headers), body.into());
        let done = call.and_then(|call| server.answer(&call));
        done.unwrap_or_else(|failure| (failure.code(), failure.0))
    }

    /// Lets in only who bears one of these tokens; `None` lets in everybody.
    pub fn set_tokens<T: Into<String>>(&self, tokens: Option<impl IntoIterator<Item = T>>) {
        let tokens = tokens.map(|tokens| tokens.into_iter().map(T::into).collect());
        locked(&self.server).tokens = tokens;
    }

    /// Forgets all changes so far: a watch from before is told 410.
    pub fn compact(&self) {
        locked(&self.server).store.compact();
    }

    /// Closes the port and all connections: whoever connects is refused.
    pub fn shut(&self) {
        self.listener.shut();
    }

    /// Opens the same port again; nothing was forgotten.
    pub fn open(&self) {
        self.listener.open();
    }
}

/// Locks what the connections share; a test that panicked meanwhile changes nothing.
fn locked(server: &Mutex<Server>) -> MutexGuard<'_, Server> {
    server.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(server: Arc<Mutex<Server>>, request: Request<Incoming>) -> Result<Answer, Dropped> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, BODY_MAX).collect().await.map_err(|_| Dropped)?.to_bytes();
    let answer = answer(&server, (head.method, &head.uri, &head.headers), body);
    Ok(answer.unwrap_or_else(|failure| as_json(failure.code(), &failure.0)))
}

fn answer(
    shared: &Arc<Mutex<Server>>,
    (method, uri, headers): (Method, &Uri, &HeaderMap),
    body: Bytes,
) -> Result<Answer, Failure> {
    let mut server = locked(shared);
    server.authenticate(headers)?;
    if let Some(text) = server.about(uri.path()) {
        return Ok(text);
    }
    let call = Call::read(&server.resources, (method, uri, headers), body)?;
    if call.method == Method::GET && call.says("watch") {
        drop(server);
        let mut answer = Response::new(watch::begin(shared, call)?);
        let kind = header::HeaderValue::from_static("application/json");
        answer.headers_mut().insert(header::CONTENT_TYPE, kind);
        return Ok(answer);
    }
    let (code, body) = server.answer(&call)?;
    Ok(as_json(code, &body))
}

impl Server {
    fn new(options: Options) -> Self {
        Self {
            store: Store::new(options.history_max),
            names: 0,
            tokens: None,
            bookmark_every: options.bookmark_every,
            resources: options.resources.into(),
            streaming_lists: options.streaming_lists,
        }
    }

    fn authenticate(&self, headers: &HeaderMap) -> Result<(), Failure> {
        let Some(tokens) = &self.tokens else { return Ok(()) };
        let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        match given.and_then(|value| value.strip_prefix("Bearer ")) {
            Some(token) if tokens.contains(token) => Ok(()),
            _ => Err(Failure::new(401, "Unauthorized", "Unauthorized")),
        }
    }

    /// Answers what is asked about the server itself.
    fn about(&self, path: &str) -> Option<Answer> {
        match path.trim_end_matches('/') {
            "/healthz" | "/livez" | "/readyz" => Some(Response::new(listen::whole("ok"))),
            "/version" => Some(as_json(
                200,
                &json!({
                    "major": "1", "minor": "36", "gitVersion": "v1.36.3", "gitCommit": "",
                    "gitTreeState": "", "buildDate": "", "goVersion": "", "compiler": "",
                    "platform": "linux/amd64",
                }),
            )),
            path => self.discovery(path),
        }
    }

    /// Lists the resources of the group and version at `path`.
    fn discovery(&self, path: &str) -> Option<Answer> {
        let of = |resource: &&Resource| match resource.group {
            "" => path == format!("/api/{}", resource.version),
            group => path == format!("/apis/{group}/{}", resource.version),
        };
        let group_version = self.resources.iter().find(of)?.api_version();
        let resources: Vec<_> = self
            .resources
            .iter()
            .filter(of)
            .map(|resource| {
                json!({
                    "name": resource.plural, "singularName": resource.kind.to_lowercase(),
                    "namespaced": resource.namespaced, "kind": resource.kind,
                    "verbs": ["create", "delete", "get", "list", "patch", "update", "watch"],
                })
            })
            .collect();
        Some(as_json(
            200,
            &json!({
                "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version,
                "resources": resources,
            }),
        ))
    }
}

/// Returns an answer in JSON.
fn as_json(code: u16, body: &Value) -> Answer {
    let mut answer = Response::new(listen::whole(body.to_string()));
    *answer.status_mut() = http::StatusCode::from_u16(code).unwrap_or_default();
    let kind = header::HeaderValue::from_static("application/json");
    answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    answer
}

/// As much as a real server reads of one object.
const BODY_MAX: usize = 3 << 20;
