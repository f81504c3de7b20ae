//! A real API server and its store, as processes of the test's own: started, killed, started again.
//!
//! # What this does not do
//!
//! There is no controller, scheduler or kubelet: what no test creates is not there, and what is
//! deleted with a finalizer stays.

mod account;
mod authority;
mod command;
mod folder;
mod identity;
mod port;
mod process;
mod programs;

use core::fmt;
use core::time::Duration;
use std::net::TcpStream;
use std::process::{Command, Output, Stdio};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::{fs, thread};

use anyhow::{Context as _, Result, anyhow, bail};
use http::Request;
use k8s_openapi::api::core::v1::{Namespace, Node};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::{Api, Client};

use crate::clock::now;
use account::Account;
use authority::Authority;
pub use authority::Pair;
use command::Ports;
use folder::Folder;
pub use identity::{Credential, Identity};
use process::Process;
use programs::Programs;

/// How to start a server.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether kubelets are held to their own node, by the Node authorizer and NodeRestriction.
    pub node_restriction: bool,
    /// Further flags of `kube-apiserver`.
    pub flags: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { node_restriction: true, flags: Vec::new() }
    }
}

/// A running API server with its store; dropping it ends both.
pub struct ApiServer {
    authority: Authority,
    programs: Programs,
    ports: Ports,
    options: Options,
    running: Mutex<Running>,
    // Removed when the processes have ended.
    folder: Folder,
}

/// The processes; one that was killed is not there.
#[derive(Default)]
struct Running {
    api: Option<Process>,
    etcd: Option<Process>,
}

/// Returns the server that all tests of one program share.
///
/// It ends with the program. A test that kills a server starts one for itself.
///
/// # Panics
///
/// If it does not start; the message says why.
#[must_use]
pub fn shared() -> &'static ApiServer {
    static SERVER: LazyLock<Result<ApiServer>> =
        LazyLock::new(|| ApiServer::start(&Options::default()));
    match &*SERVER {
        Ok(server) => server,
        Err(error) => panic!("{error:#}"),
    }
}

impl ApiServer {
    /// Starts an empty one and waits until it is ready.
    ///
    /// # Errors
    ///
    /// There is no server's program, or it does not get ready; the error holds the end of its log.
    pub fn start(options: &Options) -> Result<Self> {
        let programs = Programs::find()?;
        let folder = Folder::new()?;
        let authority = Authority::new()?;
        authority.write_server_files(folder.path())?;
        let server = Self {
            authority,
            programs,
            ports: Ports::free()?,
            options: options.clone(),
            running: Mutex::default(),
            folder,
        };
        server.start_etcd()?;
        server.restart()?;
        Ok(server)
    }

    /// Returns the server's URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.ports.api)
    }

    /// Returns the certificate by which clients know the server, in PEM form.
    #[must_use]
    pub fn authority_pem(&self) -> &str {
        self.authority.pem()
    }

    /// Ends the API server at once, as a crash does; its store goes on.
    pub fn kill(&self) {
        self.running().api = None;
    }

    /// Starts the API server again, on the same port and the same data, and waits until it is ready.
    ///
    /// # Errors
    ///
    /// It does not get ready; the error holds the end of its log.
    pub fn restart(&self) -> Result<()> {
        self.kill();
        let folder = self.folder.path();
        let command = command::api(&self.programs, folder, &self.ports, &self.options);
        let process = Process::start(command, &folder.join(API_LOG))?;
        self.running().api = Some(process);
        self.block_on(|admin| self.wait_ready(admin))
    }

    /// Ends the store at once; the API server answers, but can neither read nor write.
    pub fn kill_etcd(&self) {
        self.running().etcd = None;
    }

    /// Starts the store again on the same data, and waits until it listens.
    ///
    /// # Errors
    ///
    /// It does not listen; the error holds the end of its log.
    pub fn start_etcd(&self) -> Result<()> {
        self.kill_etcd();
        let folder = self.folder.path();
        let command = command::etcd(&self.programs, folder, &self.ports);
        let mut process = Process::start(command, &folder.join(ETCD_LOG))?;
        let start = now();
        while TcpStream::connect(("127.0.0.1", self.ports.etcd)).is_err() {
            process.check("etcd", start.elapsed() < READY_LIMIT)?;
            thread::sleep(PAUSE);
        }
        self.running().etcd = Some(process);
        Ok(())
    }

    /// Returns an identity that may do everything.
    ///
    /// # Errors
    ///
    /// No certificate can be made.
    pub fn admin(&self) -> Result<Identity> {
        self.client_cert("admin", Some("system:masters"), DAY)
    }

    /// Returns the identity of the kubelet of node `name`.
    ///
    /// # Errors
    ///
    /// No certificate can be made.
    pub fn kubelet(&self, name: &str) -> Result<Identity> {
        self.client_cert(&format!("system:node:{name}"), Some("system:nodes"), DAY)
    }

    /// Returns an identity by a client certificate that ends `lifetime` from here.
    ///
    /// With no lifetime it has ended: it was valid for an hour.
    ///
    /// # Errors
    ///
    /// No certificate can be made.
    pub fn client_cert(
        &self,
        user: &str,
        group: Option<&str>,
        lifetime: Duration,
    ) -> Result<Identity> {
        let pair = self.authority.client(user, group, lifetime)?;
        Ok(self.identity(Credential::Certificate(pair)))
    }

    /// Returns the identity of a service account by a token that ends after `seconds`.
    ///
    /// Creates the account where it is missing. The server refuses less than 600 s.
    ///
    /// # Errors
    ///
    /// The server refuses the account or the token.
    pub fn service_account(&self, namespace: &str, name: &str, seconds: u32) -> Result<Identity> {
        let account = Account::new(namespace, name);
        let token = self.block_on(async |client| account.token(client, None, seconds).await);
        Ok(self.identity(Credential::Token(token?)))
    }

    /// Returns the identity of a service account as a pod of it on `node` has it.
    ///
    /// Makes the pod, which nothing runs; the token names the pod and the node.
    ///
    /// # Errors
    ///
    /// The server refuses the account, the pod or the token.
    pub fn service_account_on(&self, node: &str, namespace: &str, name: &str) -> Result<Identity> {
        let account = Account::new(namespace, name);
        let token = self.block_on(async |client| {
            let pod = account.pod(client.clone(), node).await?;
            account.token(client, Some(pod), HOUR_S).await
        });
        Ok(self.identity(Credential::Token(token?)))
    }

    /// Creates a node that has only a name and its host name's label.
    ///
    /// # Errors
    ///
    /// The server refuses it.
    pub fn create_node(&self, name: &str) -> Result<Node> {
        let label = ("kubernetes.io/hostname".to_owned(), name.to_owned());
        let metadata = ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some([label].into()),
            ..ObjectMeta::default()
        };
        let node = Node { metadata, ..Node::default() };
        self.block_on(async |client| {
            Ok(Api::all(client).create(&PostParams::default(), &node).await?)
        })
    }

    /// Returns the node `name` as the server has it.
    ///
    /// # Errors
    ///
    /// The server has none.
    pub fn node(&self, name: &str) -> Result<Node> {
        self.block_on(async |client| Ok(Api::all(client).get(name).await?))
    }

    /// Runs the real kubectl as `identity`, with `stdin` as its standard input.
    ///
    /// # Errors
    ///
    /// It cannot be run; one that fails is no error.
    pub fn kubectl(&self, identity: &Identity, arguments: &[&str], stdin: &str) -> Result<Output> {
        let home = tempfile::tempdir_in(self.folder.path())?;
        let input = home.path().join("stdin");
        fs::write(&input, stdin)?;
        let kubeconfig = home.path().join("kubeconfig");
        fs::write(&kubeconfig, identity.kubeconfig())?;
        let mut command = Command::new(&self.programs.kubectl);
        command.arg("--kubeconfig").arg(&kubeconfig).args(arguments).env("HOME", home.path());
        command.stdin(fs::File::open(&input)?).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.output().with_context(|| format!("cannot run {}", self.programs.kubectl.display()))
    }

    /// Runs `work` as the administrator until it ends, whether or not the caller is in a runtime.
    ///
    /// # Errors
    ///
    /// Those of `work`.
    pub fn block_on<T: Send>(
        &self,
        work: impl AsyncFnOnce(Client) -> Result<T> + Send,
    ) -> Result<T> {
        let admin = self.admin()?;
        // A runtime cannot wait for another on its own thread.
        thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let mut runtime = tokio::runtime::Builder::new_current_thread();
                let runtime = runtime.enable_all().build()?;
                runtime.block_on(async { work(admin.client().await?).await })
            });
            thread.join().unwrap_or_else(|_| Err(anyhow!("a call of the API server panicked")))
        })
    }

    async fn wait_ready(&self, client: Client) -> Result<()> {
        let start = now();
        loop {
            let why = match is_ready(&client).await {
                Ok(()) => return Ok(()),
                Err(why) => why,
            };
            self.check_api(start.elapsed() < READY_LIMIT).with_context(|| format!("{why:#}"))?;
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Fails if the API server has ended, or is not `in_time`.
    fn check_api(&self, in_time: bool) -> Result<()> {
        match &mut self.running().api {
            Some(process) => process.check("kube-apiserver", in_time),
            None => bail!("another thread killed the API server that this one waits for"),
        }
    }

    fn identity(&self, credential: Credential) -> Identity {
        Identity::new(self.url(), self.authority.pem().to_owned(), credential)
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        // A test that failed with it leaves processes, which is all that matters.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (url, folder) = (self.url(), self.folder.path());
        f.debug_struct("ApiServer")
            .field("url", &url)
            .field("folder", &folder)
            .finish_non_exhaustive()
    }
}

/// Tells whether the server says that it is ready and has made the namespace that tests use.
async fn is_ready(client: &Client) -> Result<()> {
    client.request_text(Request::get("/readyz").body(Vec::new())?).await?;
    Api::<Namespace>::all(client.clone()).get("default").await?;
    Ok(())
}

const API_LOG: &str = "kube-apiserver.log";
const ETCD_LOG: &str = "etcd.log";

/// A process that is not ready after this time will not be; a busy machine takes a third of it.
const READY_LIMIT: Duration = Duration::from_secs(60);

/// Between two questions to a process that starts.
const PAUSE: Duration = Duration::from_millis(50);

/// How long the token of a pod is good for, as kubelets ask for it.
const HOUR_S: u32 = 3600;

const DAY: Duration = Duration::from_hours(24);
