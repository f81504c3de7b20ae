//! Who the agent is at the API server: a kubeconfig, or the token of its pod.

use core::time::Duration;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kube::config::{InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError as ConfigError};
use kube::{Client, Config};
use log::{info, warn};
use tokio::sync::{Mutex, watch};

use crate::errors::chain;

/// Where credentials come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A kubeconfig.
    File(PathBuf),
    /// The token of the agent's own pod.
    Pod,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The client cannot be made of what was read.
    #[error("cannot make a client of the credentials")]
    Client(#[source] kube::Error),
    /// The kubeconfig is none. What is wrong is not told: it would quote lines, and so secrets.
    #[error("{} is no kubeconfig: it is not the YAML that one has", path.display())]
    Content {
        /// The file.
        path: PathBuf,
    },
    /// The kubeconfig cannot be used.
    #[error("cannot use the kubeconfig {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: ConfigError,
    },
    /// The pod has no usable token.
    #[error("cannot use the service account of this pod")]
    Pod(#[source] InClusterError),
}

impl AccessError {
    fn of_file(path: &Path, source: ConfigError) -> Self {
        let path = path.to_owned();
        if matches!(source, ConfigError::Parse(_)) {
            return Self::Content { path };
        }
        Self::File { path, source }
    }
}

impl Source {
    /// Returns what was `named`; else the pod's token, else the first kubelet's kubeconfig that
    /// exists.
    ///
    /// # Errors
    ///
    /// Returns where it looked, if there is none.
    pub fn find(named: Option<PathBuf>) -> Result<Self, String> {
        if let Some(path) = named {
            return Ok(Self::File(path));
        }
        if std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() && Path::new(POD_TOKEN).exists() {
            return Ok(Self::Pod);
        }
        let found = KUBELETS.iter().map(Path::new).find(|path| path.exists());
        found.map(|path| Self::File(path.to_owned())).ok_or_else(|| {
            format!(
                "no credentials for the API server: not in a pod, and none of {} exists; name a \
                 kubeconfig with --kubeconfig, or say `run --standalone`",
                KUBELETS.join(", ")
            )
        })
    }

    /// Reads the credentials, after the stamps of the files that they are in: what changes
    /// meanwhile is read again.
    async fn config(&self) -> Result<(Config, Stamps), AccessError> {
        match self {
            Self::Pod => {
                // The token is read again by itself.
                let stamps = stamps([PathBuf::from(POD_CA)]);
                Ok((Config::incluster().map_err(AccessError::Pod)?, stamps))
            }
            Self::File(path) => {
                let wrong = |source| AccessError::of_file(path, source);
                let own = stamp(path);
                let kubeconfig = Kubeconfig::read_from(path).map_err(wrong)?;
                let mut stamps = stamps(files(path, &kubeconfig));
                stamps.insert(path.clone(), own);
                let options = KubeConfigOptions::default();
                let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
                Ok((config.map_err(wrong)?, stamps))
            }
        }
    }
}

/// A client that is made again when what it was made of changes: certificates are rotated.
#[derive(Debug)]
pub(super) struct Access {
    source: Source,
    made: Mutex<Option<Made>>,
    /// Counts the clients, so that a watch on an old one ends.
    made_count: watch::Sender<u64>,
}

struct Made {
    client: Client,
    stamps: Stamps,
}

impl core::fmt::Debug for Made {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Made").field("stamps", &self.stamps).finish_non_exhaustive()
    }
}

/// What tells one content of a file from the next.
type FileStamp = Option<(u64, u64, i64, i64)>;

/// The files that credentials were read from.
type Stamps = BTreeMap<PathBuf, FileStamp>;

impl Access {
    pub(super) fn new(source: Source) -> Arc<Self> {
        let (made_count, _) = watch::channel(0);
        Arc::new(Self { source, made: Mutex::new(None), made_count })
    }

    /// Returns the client, made anew if a file that it was made of has changed.
    pub(super) async fn client(&self) -> Result<Client, AccessError> {
        let mut made = self.made.lock().await;
        if let Some(made) = &*made
            && made.stamps.iter().all(|(path, known)| stamp(path) == *known)
        {
            return Ok(made.client.clone());
        }
        let (config, stamps) = self.source.config().await?;
        let url = config.cluster_url.to_string();
        let client = client_of(config)?;
        info!("{} the API server {url}", if made.is_some() { "again at" } else { "at" });
        *made = Some(Made { client: client.clone(), stamps });
        self.made_count.send_modify(|count| *count = count.wrapping_add(1));
        Ok(client)
    }

    /// Returns where it is told that there is a new client.
    pub(super) fn renewals(&self) -> watch::Receiver<u64> {
        self.made_count.subscribe()
    }

    /// Waits for a client however long that takes.
    pub(super) async fn wait_client(&self) -> Client {
        let mut is_told = false;
        loop {
            match self.client().await {
                Ok(client) => return client,
                Err(problem) => {
                    if !is_told {
                        warn!("{}; trying again", chain(&problem));
                        is_told = true;
                    }
                    tokio::time::sleep(TRY_AGAIN).await;
                }
            }
        }
    }
}

fn client_of(mut config: Config) -> Result<Client, AccessError> {
    config.connect_timeout = Some(CONNECT_WITHIN);
    Client::try_from(config).map_err(AccessError::Client)
}

/// Returns the files that a kubeconfig is made of.
fn files(path: &Path, kubeconfig: &Kubeconfig) -> Vec<PathBuf> {
    let clusters = kubeconfig.clusters.iter().filter_map(|named| named.cluster.as_ref());
    let authorities = clusters.filter_map(|cluster| cluster.certificate_authority.clone());
    let users = kubeconfig.auth_infos.iter().filter_map(|named| named.auth_info.as_ref());
    let users = users.flat_map(|user| {
        [user.client_certificate.clone(), user.client_key.clone(), user.token_file.clone()]
    });
    let named = authorities.chain(users.flatten()).map(PathBuf::from);
    core::iter::once(path.to_owned()).chain(named).collect()
}

fn stamps(paths: impl IntoIterator<Item = PathBuf>) -> Stamps {
    let stamps = paths.into_iter().map(|path| {
        let stamp = stamp(&path);
        (path, stamp)
    });
    stamps.collect()
}

fn stamp(path: &Path) -> FileStamp {
    let data = fs::metadata(path).ok()?;
    Some((data.ino(), data.size(), data.mtime(), data.mtime_nsec()))
}

/// Where a pod's token stands (Kubernetes, "Configure Service Accounts for Pods").
const POD_TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";
const POD_CA: &str = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";

/// Where kubelets have their kubeconfig: kubeadm, Talos, Bottlerocket, others, k3s, RKE2.
const KUBELETS: [&str; 6] = [
    "/etc/kubernetes/kubelet.conf",
    "/etc/kubernetes/kubeconfig-kubelet",
    "/etc/kubernetes/kubelet/kubeconfig",
    "/var/lib/kubelet/kubeconfig",
    "/var/lib/rancher/k3s/agent/kubelet.kubeconfig",
    "/var/lib/rancher/rke2/agent/kubelet.kubeconfig",
];

const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// How long until credentials that cannot be used are read again.
const TRY_AGAIN: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_a_kubeconfig_is_watched() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kubelet.conf");
        let text = "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
                    clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1', \
                    certificate-authority: ca.crt}}]\n\
                    contexts: [{name: c, context: {cluster: c, user: u}}]\n\
                    users: [{name: u, user: {client-certificate: /pki/c.pem, client-key: k.pem}}]\n";
        fs::write(&path, text).unwrap();
        let kubeconfig = Kubeconfig::read_from(&path).unwrap();
        let beside = |name: &str| directory.path().join(name);
        let want = [path.clone(), beside("ca.crt"), PathBuf::from("/pki/c.pem"), beside("k.pem")];
        assert_eq!(files(&path, &kubeconfig), want);
    }

    #[tokio::test]
    async fn a_client_is_made_again_when_a_file_changes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config");
        let text = |port: u16| {
            format!(
                "clusters: [{{name: c, cluster: {{server: 'http://127.0.0.1:{port}'}}}}]\n\
                 contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
                 current-context: c\nusers: [{{name: u, user: {{}}}}]\n"
            )
        };
        fs::write(&path, text(1)).unwrap();
        let access = Access::new(Source::File(path.clone()));
        let made = access.renewals();
        let count = |made: &watch::Receiver<u64>| *made.borrow();
        access.client().await.unwrap();
        access.client().await.unwrap();
        assert_eq!(count(&made), 1);
        fs::write(&path, text(65_000)).unwrap();
        access.client().await.unwrap();
        assert_eq!(count(&made), 2);
        // A file that is being written is no reason to forget what works, but one to try again.
        fs::write(&path, "clusters: [").unwrap();
        let problem = access.client().await.err().expect("it is no kubeconfig");
        assert!(chain(&problem).contains(" is no kubeconfig"), "{}", chain(&problem));
        fs::write(&path, text(1)).unwrap();
        access.client().await.unwrap();
    }

    #[tokio::test]
    async fn a_broken_kubeconfig_does_not_show_its_secrets() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config");
        let access = Access::new(Source::File(path.clone()));
        for text in [
            "users:\n- name: u\n  user:\n    token: SECRET\n   bad indent: [\n",
            "clusters: []\nusers:\n- name: u\n  user: {token: SECRET, client-key-data: SECRET",
            "clusters: []\nusers:\n- name: u\n  user:\n    token: [SECRET]\n",
            "clusters: []\nusers:\n- name: u\n  user: {client-key-data: SECRET}\ncontexts: 7\n",
            "SECRET",
        ] {
            fs::write(&path, text).unwrap();
            let problem = access.client().await.err().expect("it is broken");
            let told = chain(&problem);
            assert!(!told.contains("SECRET") && told.contains("config"), "{told}");
        }
    }
}
