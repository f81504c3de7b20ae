//! Who a client of the server is: its credential, as a kubeconfig, as files and as a client.

use core::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use super::authority::Pair;

/// How a client shows who it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    /// By a client certificate.
    Certificate(Pair),
    /// By a bearer token.
    Token(String),
}

/// A client of one server.
#[derive(Clone)]
pub struct Identity {
    url: String,
    authority: String,
    credential: Credential,
}

impl Identity {
    /// Makes the identity that `credential` stands for at the server of `url`.
    pub(super) fn new(url: String, authority: String, credential: Credential) -> Self {
        Self { url, authority, credential }
    }

    /// Returns how it shows who it is.
    #[must_use]
    pub fn credential(&self) -> &Credential {
        &self.credential
    }

    /// Returns the text of a kubeconfig file that holds everything.
    #[must_use]
    pub fn kubeconfig(&self) -> String {
        let user = match &self.credential {
            Credential::Certificate(Pair { certificate, key }) => format!(
                "client-certificate-data: {}\n    client-key-data: {}",
                STANDARD.encode(certificate),
                STANDARD.encode(key)
            ),
            Credential::Token(token) => format!("token: {token}"),
        };
        let authority = STANDARD.encode(&self.authority);
        self.document(&format!("certificate-authority-data: {authority}"), &user)
    }

    /// Writes a kubeconfig file and the files that it names to `folder`, and returns its path.
    ///
    /// A client certificate and its key are in one file, `client.pem`, as a kubelet keeps them.
    /// Each file is replaced whole: to rotate a credential, write another identity to the folder.
    ///
    /// # Errors
    ///
    /// The folder cannot be written.
    pub fn write_to(&self, folder: &Path) -> Result<PathBuf> {
        let authority = replace(folder, "ca.crt", &self.authority)?;
        let user = match &self.credential {
            Credential::Certificate(Pair { certificate, key }) => {
                let file = replace(folder, "client.pem", &format!("{certificate}{key}"))?;
                let file = file.display();
                format!("client-certificate: {file}\n    client-key: {file}")
            }
            Credential::Token(token) => {
                format!("tokenFile: {}", replace(folder, "token", token)?.display())
            }
        };
        let cluster = format!("certificate-authority: {}", authority.display());
        replace(folder, "kubeconfig", &self.document(&cluster, &user))
    }

    /// Returns a client, which lives no longer than the runtime it is made in.
    ///
    /// # Errors
    ///
    /// The credential is none.
    pub async fn client(&self) -> Result<Client> {
        let kubeconfig = Kubeconfig::from_yaml(&self.kubeconfig())?;
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        Ok(Client::try_from(config)?)
    }

    fn document(&self, cluster: &str, user: &str) -> String {
        let url = &self.url;
        format!(
            "apiVersion: v1
kind: Config
current-context: test
contexts:
- name: test
  context:
    cluster: test
    user: test
clusters:
- name: test
  cluster:
    server: {url}
    {cluster}
users:
- name: test
  user:
    {user}
"
        )
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("url", &self.url).finish_non_exhaustive()
    }
}

fn replace(folder: &Path, name: &str, text: &str) -> Result<PathBuf> {
    let (path, part) = (folder.join(name), folder.join(format!(".{name}.part")));
    fs::write(&part, text)
        .and_then(|()| fs::rename(&part, &path))
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}
