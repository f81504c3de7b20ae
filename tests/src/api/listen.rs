//! A bounded HTTP server on a port of loopback, with a thread of its own that ends with it.

use core::convert::Infallible;
use core::fmt;
use core::net::{Ipv4Addr, SocketAddr};
use core::time::Duration;
use std::net::TcpListener as StdListener;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use anyhow::{Context as _, Result};
use futures_util::future::BoxFuture;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// What answers; an error drops the connection without an answer.
pub(super) type Handler =
    Box<dyn Fn(Request<Incoming>) -> BoxFuture<'static, Result<Answer, Dropped>> + Send + Sync>;

/// An answer whose body may take its time.
pub(super) type Answer = Response<Body>;

/// The body of an answer.
pub(super) type Body = UnsyncBoxBody<Bytes, Box<dyn core::error::Error + Send + Sync>>;

/// Returns a body that is there at once.
pub(super) fn whole(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never: Infallible| match never {}).boxed_unsync()
}

/// Returns the text of a kubeconfig for a server without TLS.
pub(super) fn kubeconfig(url: &str, token: Option<&str>) -> String {
    let mut user = json!({});
    if let Some(token) = token {
        user["token"] = json!(token);
    }
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": url}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "users": [{"name": "test", "user": user}],
    });
    config.to_string()
}

/// The connection ends without an answer.
#[derive(Debug)]
pub(super) struct Dropped;

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("dropped on purpose")
    }
}

impl core::error::Error for Dropped {}

/// A port that is listened on; dropping it ends all its connections and its thread.
#[derive(Debug)]
pub(super) struct Listener {
    address: SocketAddr,
    door: watch::Sender<Door>,
    stands: watch::Receiver<Door>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Door {
    Gone,
    Open,
    Shut,
}

impl Listener {
    /// Listens on a free port and answers by what `make` makes in the thread's runtime.
    pub(super) fn start<M>(make: M) -> Result<Self>
    where
        M: FnOnce() -> Result<Handler> + Send + 'static,
    {
        let socket = StdListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port is free")?;
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        let (door, wanted) = watch::channel(Door::Open);
        let (stand, stands) = watch::channel(Door::Open);
        let (made, told) = mpsc::channel();
        let thread = thread::Builder::new().name("api".into()).spawn(move || {
            let run = run(socket, make, &made, Serving { address, wanted, stand });
            if let Err(error) = run {
                let _ = made.send(Err(error));
            }
        })?;
        let started = told.recv().context("the server's thread is gone")?;
        let listener = Self { address, door, stands, thread: Some(thread) };
        started.map(|()| listener)
    }

    /// Returns where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes the port and every connection, and returns once that is so.
    pub(super) fn shut(&self) {
        self.set(Door::Shut);
    }

    /// Listens again on the same port.
    pub(super) fn open(&self) {
        self.set(Door::Open);
    }

    fn set(&self, door: Door) {
        self.door.send_replace(door);
        let stands = || (*self.stands.borrow() == door).then_some(());
        let stood = crate::clock::wait_for(DOOR_MAX, stands);
        assert!(stood.is_some(), "the port {} did not become {door:?}", self.address);
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.door.send_replace(Door::Gone);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Builds the runtime and what answers, says so, and serves until the end.
fn run<M>(
    socket: StdListener,
    make: M,
    made: &mpsc::Sender<Result<()>>,
    serving: Serving,
) -> Result<()>
where
    M: FnOnce() -> Result<Handler>,
{
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let handler = Arc::new(make()?);
        let listener = TcpListener::from_std(socket)?;
        let _ = made.send(Ok(()));
        serving.serve(listener, &handler).await
    })
}

struct Serving {
    address: SocketAddr,
    wanted: watch::Receiver<Door>,
    stand: watch::Sender<Door>,
}

impl Serving {
    async fn serve(mut self, first: TcpListener, handler: &Arc<Handler>) -> Result<()> {
        let mut listener = Some(first);
        let mut connections = JoinSet::new();
        loop {
            let wanted = *self.wanted.borrow_and_update();
            match (wanted, listener.take()) {
                (Door::Gone, _) => return Ok(()),
                (Door::Shut, open) => {
                    drop(open);
                    connections.shutdown().await;
                    self.stand.send_replace(Door::Shut);
                    self.wanted.changed().await?;
                }
                (Door::Open, None) => listener = Some(TcpListener::bind(self.address).await?),
                (Door::Open, Some(open)) => {
                    self.stand.send_replace(Door::Open);
                    self.accept(&open, &mut connections, handler).await;
                    listener = Some(open);
                }
            }
        }
    }

    /// Waits for one connection, the end of one, or another wish.
    async fn accept(
        &mut self,
        listener: &TcpListener,
        connections: &mut JoinSet<()>,
        handler: &Arc<Handler>,
    ) {
        tokio::select! {
            _ = self.wanted.changed() => {}
            Some(_) = connections.join_next() => {}
            Ok((stream, _)) = listener.accept(), if connections.len() < CONNECTIONS_MAX => {
                connections.spawn(converse(stream, Arc::clone(handler)));
            }
        }
    }
}

async fn converse(stream: TcpStream, handler: Arc<Handler>) {
    // Small answers in several writes would wait for each other's acknowledgement.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| handler(request));
    // How a connection ends is seen by whoever made it.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// More at once than any test has agents; the rest waits to be accepted.
const CONNECTIONS_MAX: usize = 256;

/// How long a port may take to close or to open.
const DOOR_MAX: Duration = Duration::from_secs(10);
