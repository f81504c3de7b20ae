//! A front before an API server that numbers, logs and breaks what passes through it.

use core::fmt;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures_util::FutureExt as _;
use http::{HeaderMap, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use kube::config::AuthInfo;
use kube::{Client, Config, client};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::sleep;

use super::broken;
use super::faults::{Asked, Entry, Fault, Faults, Phase};
use super::listen::{self, Answer, Dropped, Listener};

/// Who the front is to the server behind it.
#[derive(Clone)]
pub enum Identity {
    /// Whoever asks the front: its `Authorization` is passed on.
    Caller,
    /// The bearer of a client certificate.
    Certificate {
        /// The certificate, in PEM.
        certificate: Vec<u8>,
        /// Its key, in PEM.
        key: Vec<u8>,
    },
    /// The bearer of a token.
    Token(String),
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Caller => "Caller",
            Self::Certificate { .. } => "Certificate",
            Self::Token(_) => "Token",
        })
    }
}

/// The server behind a front.
#[derive(Debug, Clone)]
pub struct Upstream {
    /// Where it is, such as `https://127.0.0.1:6443`.
    pub url: String,
    /// The certificate of its authority, in PEM.
    pub authority: Option<Vec<u8>>,
    /// Who asks it.
    pub identity: Identity,
}

impl Upstream {
    /// A server without TLS that is asked by whoever asks the front.
    #[must_use]
    pub fn plain(url: impl Into<String>) -> Self {
        Self { url: url.into(), authority: None, identity: Identity::Caller }
    }

    /// Returns how a client finds it.
    ///
    /// # Errors
    ///
    /// If the address or a certificate is none.
    pub fn config(&self) -> Result<Config> {
        let mut config = Config::new(self.url.parse().context("no address")?);
        // Each request that comes is to go on once.
        config.default_retry = false;
        config.read_timeout = None;
        if let Some(pem) = &self.authority {
            let certificates =
                CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>()?;
            config.root_cert = Some(certificates.iter().map(|der| der.to_vec()).collect());
        }
        let text = |bytes: &[u8]| BASE64_STANDARD.encode(bytes);
        let auth = match &self.identity {
            Identity::Caller => json!({}),
            Identity::Certificate { certificate, key } => json!({
                "client-certificate-data": text(certificate), "client-key-data": text(key),
            }),
            Identity::Token(token) => json!({ "token": token }),
        };
        config.auth_info = serde_json::from_value::<AuthInfo>(auth)?;
        Ok(config)
    }
}

/// A front on a port of loopback; dropping it ends it and all connections through it.
#[derive(Debug)]
pub struct Front {
    shared: Arc<Shared>,
    listener: Listener,
}

#[derive(Debug)]
struct Shared {
    faults: Mutex<Faults>,
    frozen: watch::Sender<bool>,
    is_caller: bool,
}

impl Front {
    /// Starts a front before `upstream`.
    ///
    /// # Errors
    ///
    /// If the upstream is none, or this machine gives no port or thread.
    pub fn start(upstream: &Upstream) -> Result<Self> {
        let config = upstream.config()?;
        let shared = Arc::new(Shared {
            faults: Mutex::new(Faults::new()),
            frozen: watch::Sender::new(false),
            is_caller: matches!(upstream.identity, Identity::Caller),
        });
        let state = Arc::clone(&shared);
        let listener = Listener::start(move || {
            let client = Client::try_from(config)?;
            Ok(Box::new(move |request| pass(Arc::clone(&state), client.clone(), request).boxed()))
        })?;
        Ok(Self { shared, listener })
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

    /// Does `fault` to the next `times` requests that `which` picks; `None` is for ever.
    ///
    /// The first rule that picks a request and is not used up is the one that counts.
    pub fn inject(
        &self,
        times: Option<u64>,
        which: impl FnMut(&Asked) -> bool + Send + 'static,
        fault: Fault,
    ) {
        self.shared.faults().add(Box::new(which), fault, times);
    }

    /// Calls `hook` at the write with this number, and then drops the write's connection.
    ///
    /// Nothing passes the front while the hook runs.
    pub fn on_write(&self, write: u64, phase: Phase, hook: impl FnOnce(&Asked) + Send + 'static) {
        self.shared.faults().hook(write, phase, Box::new(hook));
    }

    /// Forgets all rules and hooks, and lets go what is frozen.
    pub fn heal(&self) {
        self.shared.faults().heal();
        self.freeze(false);
    }

    /// Holds back all answers, also of watches under way, or lets them go.
    ///
    /// The connections stay: this is a network that swallows what is sent.
    pub fn freeze(&self, frozen: bool) {
        self.shared.frozen.send_replace(frozen);
    }

    /// Closes the port and all connections: whoever connects is refused.
    pub fn shut(&self) {
        self.listener.shut();
    }

    /// Opens the same port again.
    pub fn open(&self) {
        self.listener.open();
    }

    /// Returns the requests so far, the last 20,000 of them.
    #[must_use]
    pub fn log(&self) -> Vec<Entry> {
        self.shared.faults().log()
    }

    /// Returns how many requests there were of each kind, watches apart from reads.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<String, u64> {
        self.shared.faults().counts()
    }

    /// Returns how many writes there were.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.shared.faults().writes()
    }
}

impl Shared {
    /// Locks the rules; a hook that panicked leaves them whole.
    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls the hook of this write, if there is one.
    fn call_hook(&self, asked: &Asked, phase: Phase) -> Result<(), Dropped> {
        let Some(hook) = self.faults().take_hook(asked, phase) else { return Ok(()) };
        hook(asked);
        Err(Dropped)
    }

    async fn thawed(&self) {
        let mut frozen = self.frozen.subscribe();
        // The sender lives as long as `self`.
        let _ = frozen.wait_for(|frozen| !frozen).await;
    }
}

/// Takes one request through the front.
async fn pass(
    shared: Arc<Shared>,
    client: Client,
    request: Request<Incoming>,
) -> Result<Answer, Dropped> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, BODY_MAX).collect().await.map_err(|_| Dropped)?.to_bytes();
    let path = head.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
    let kind = head.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let json = serde_json::from_slice(&body).unwrap_or_default();
    let kind = kind.unwrap_or_default().to_owned();
    let (asked, fault) = shared.faults().ask((head.method.clone(), path), kind, json);
    shared.thawed().await;
    shared.call_hook(&asked, Phase::BeforeForward)?;
    match &fault {
        Some(Fault::BlackHole) => core::future::pending().await,
        Some(Fault::Delay(time)) => sleep(*time).await,
        Some(Fault::LoseRequest) => return Err(Dropped),
        Some(Fault::Refuse { code, retry_after_s }) => {
            shared.faults().answered(asked.number, *code);
            return Ok(refusal(*code, *retry_after_s));
        }
        Some(Fault::Break { .. } | Fault::LoseReply) | None => {}
    }
    let request = forwarded(&asked, &head.headers, body.to_vec(), shared.is_caller)?;
    let answer = client.send(request).await.map_err(|_| Dropped)?;
    shared.call_hook(&asked, Phase::AfterForwardBeforeReply)?;
    if fault == Some(Fault::LoseReply) {
        return Err(Dropped);
    }
    shared.faults().answered(asked.number, answer.status().as_u16());
    Ok(returned(answer, fault.as_ref(), &shared))
}

fn forwarded(
    asked: &Asked,
    headers: &HeaderMap,
    body: Vec<u8>,
    is_caller: bool,
) -> Result<Request<client::Body>, Dropped> {
    let request = Request::builder().method(asked.method.clone()).uri(&asked.path);
    let mut request = request.body(client::Body::from(body)).map_err(|_| Dropped)?;
    *request.headers_mut() = headers.clone();
    let own = (!is_caller).then_some(header::AUTHORIZATION);
    for name in OF_CONNECTIONS.into_iter().chain(own) {
        request.headers_mut().remove(name);
    }
    Ok(request)
}

fn returned(answer: Response<client::Body>, fault: Option<&Fault>, shared: &Arc<Shared>) -> Answer {
    let (mut head, body) = answer.into_parts();
    for name in OF_CONNECTIONS {
        head.headers.remove(name);
    }
    let end = match fault {
        Some(Fault::Break { lines, end }) => Some((*lines, *end)),
        _ => None,
    };
    Response::from_parts(head, broken::body(body, end, shared.frozen.subscribe()))
}

/// Returns the `Status` that an API server would refuse with.
fn refusal(code: u16, retry_after_s: Option<u32>) -> Answer {
    let reason = match code {
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        409 => "Conflict",
        410 => "Expired",
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "",
    };
    let mut status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "refused by a test", "reason": reason, "code": code,
    });
    if let Some(seconds) = retry_after_s {
        status["details"] = json!({ "retryAfterSeconds": seconds });
    }
    let mut answer = Response::new(listen::whole(Value::to_string(&status)));
    *answer.status_mut() = StatusCode::from_u16(code).unwrap_or_default();
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    if let Some(seconds) = retry_after_s {
        headers.insert(header::RETRY_AFTER, seconds.into());
    }
    answer
}

/// Headers that are about one connection, or about a body as it was.
const OF_CONNECTIONS: [header::HeaderName; 4] =
    [header::CONNECTION, header::CONTENT_LENGTH, header::HOST, header::TRANSFER_ENCODING];

/// As much as an API server reads.
const BODY_MAX: usize = 3 << 20;
