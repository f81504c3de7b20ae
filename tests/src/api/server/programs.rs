//! Where the programs of the API server are.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

/// The programs that tests run.
pub(super) struct Programs {
    pub(super) etcd: PathBuf,
    pub(super) kube_apiserver: PathBuf,
    pub(super) kubectl: PathBuf,
}

impl Programs {
    /// Looks for them where envtest does.
    ///
    /// # Errors
    ///
    /// One is missing; the error says how to get it.
    pub(super) fn find() -> Result<Self> {
        let folder = env::var_os(ASSETS).filter(|folder| !folder.is_empty());
        let folder =
            PathBuf::from(folder.with_context(|| format!("{ASSETS} is not set: {ADVICE}"))?);
        let program = |name: &str| {
            let path = folder.join(name);
            ensure!(path.is_file(), "there is no {}: {ADVICE}", path.display());
            Ok(path)
        };
        let kubectl = env::var_os(KUBECTL).filter(|path| !path.is_empty()).map(PathBuf::from);
        Ok(Self {
            etcd: program("etcd")?,
            kube_apiserver: program("kube-apiserver")?,
            kubectl: kubectl.unwrap_or_else(|| kubectl_beside(&folder)),
        })
    }
}

/// Returns the folder's kubectl, or else the name by which PATH has it.
fn kubectl_beside(folder: &Path) -> PathBuf {
    Some(folder.join("kubectl")).filter(|path| path.is_file()).unwrap_or_else(|| "kubectl".into())
}

const ASSETS: &str = "KUBEBUILDER_ASSETS";
const KUBECTL: &str = "TEST_ASSET_KUBECTL";

const ADVICE: &str =
    "run `cargo ci apiserver` and set KUBEBUILDER_ASSETS to the directory it prints";
