//! Where the node and the agent's own files are, as the flags say.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use fettle_core::node::agent::Settings;
use fettle_core::text::Text;
use log::warn;

use crate::config::Config;
use crate::sys::root::{Root, is_absent};

/// Where the agent of a node keeps its state.
pub const STATE_DIR: &str = "/run/fettle";

/// The flags that every command has which makes readings.
#[derive(Debug, clap::Args)]
pub struct PlaceArgs {
    /// Where the node's file systems are mounted, for an agent in a container
    #[arg(long, default_value = "/", value_name = "DIR")]
    pub host_root: PathBuf,
    /// Where the running agent keeps its state across restarts; belongs on a tmpfs
    #[arg(long, default_value = STATE_DIR, value_name = "DIR")]
    pub state_dir: PathBuf,
    /// The kubelet's directory, as the node calls it; what is mounted in its pods/ and plugins/ is
    /// a workload's
    #[arg(long, default_value = "/var/lib/kubelet", value_name = "DIR")]
    pub kubelet_dir: PathBuf,
}

/// Where the node and the agent's own files are.
#[derive(Debug, Clone)]
pub struct Place {
    /// Where the node's file systems are mounted.
    pub root: PathBuf,
    /// Where the agent keeps what it must remember.
    pub state_dir: PathBuf,
    /// The kubelet's directory, as the node's mount table calls it: without links.
    pub kubelet_dir: PathBuf,
    /// Whether another process keeps the state, so that nothing of it may be changed.
    pub is_guest: bool,
}

impl PlaceArgs {
    /// Returns the place; a link on the way to the kubelet's directory counts as it leads now.
    #[must_use]
    pub fn place(&self, is_guest: bool) -> Place {
        let (root, state_dir) = (self.host_root.clone(), self.state_dir.clone());
        let kubelet_dir = without_links(&Root::new(root.clone()), &self.kubelet_dir);
        Place { root, state_dir, kubelet_dir, is_guest }
    }
}

impl Place {
    /// Returns the configuration's settings for an agent of this place.
    #[must_use]
    pub fn settings(&self, config: &Config) -> Settings {
        let directory = self.kubelet_dir.as_os_str().as_bytes();
        let directory = directory.strip_suffix(b"/").unwrap_or(directory);
        Settings { kubelet_dir: Text::from_bytes(directory), ..config.settings() }
    }
}

/// Returns `path` as the mount table has it; as it was given if that cannot be found out.
fn without_links(root: &Root, path: &Path) -> PathBuf {
    root.canonicalize(path).unwrap_or_else(|problem| {
        // Not every machine has a kubelet.
        if !is_absent(&problem) {
            warn!("taking {} as it is, with links if it has any: {problem}", path.display());
        }
        Path::new("/").join(path).components().collect()
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_kubelets_directory_is_found_as_the_node_finds_it() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let node = folder.path().join("node");
        fs::create_dir_all(node.join("var/lib")).unwrap();
        fs::create_dir_all(node.join("data/kubelet")).unwrap();
        symlink("/data/kubelet", node.join("var/lib/kubelet")).unwrap();
        symlink("../data", node.join("var/up")).unwrap();
        symlink(other.path(), node.join("out")).unwrap();
        symlink("node", folder.path().join("link")).unwrap();
        for root in ["node", "link"].map(|name| folder.path().join(name)) {
            for (given, want) in [
                ("/data/kubelet/", "/data/kubelet"),
                ("/var/lib/kubelet", "/data/kubelet"),
                ("/var/up/kubelet", "/data/kubelet"),
                ("/absent//kubelet/", "/absent/kubelet"),
                ("/out", "/out"),
                ("/", ""),
            ] {
                let (host_root, state_dir) = (root.clone(), PathBuf::new());
                let args = PlaceArgs { host_root, state_dir, kubelet_dir: given.into() };
                let settings = args.place(true).settings(&Config::default());
                assert_eq!(settings.kubelet_dir.as_str(), want, "{given} in {}", root.display());
            }
        }
    }

    #[test]
    fn on_the_node_itself_links_lead_where_they_lead() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap().join("real");
        fs::create_dir(&real).unwrap();
        symlink("real", folder.path().join("link")).unwrap();
        let (host_root, kubelet_dir) = ("/".into(), folder.path().join("link"));
        let args = PlaceArgs { host_root, state_dir: PathBuf::new(), kubelet_dir };
        assert_eq!(args.place(false).kubelet_dir, real);
    }
}
