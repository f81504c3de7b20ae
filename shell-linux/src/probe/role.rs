//! What the node is in its cluster, as far as its own files say.

use std::path::Path;

use fettle_core::node::report::Role;
use log::warn;

use crate::config;
use crate::sys::root::{Root, is_absent};

/// Returns what was `set`; else what the kubelet's static pods below `root` make of the node.
#[must_use]
pub fn read(set: Option<config::Role>, root: &Path) -> Role {
    match set {
        Some(config::Role::ControlPlane) => Role::ControlPlane,
        Some(config::Role::Worker) => Role::Worker,
        None => by_manifest(&Root::new(root.to_owned())),
    }
}

fn by_manifest(root: &Root) -> Role {
    match root.kind(Path::new(API_SERVER)) {
        Ok(_) => Role::ControlPlane,
        Err(problem) if is_absent(&problem) => Role::Worker,
        Err(problem) => {
            warn!("cannot look for {API_SERVER}, so this node counts as a worker: {problem}");
            Role::Worker
        }
    }
}

/// A node that runs the API server is one of the control plane.
const API_SERVER: &str = "/etc/kubernetes/manifests/kube-apiserver.yaml";

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_is_set_outweighs_the_manifest_of_an_api_server() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(read(None, root.path()), Role::Worker);
        let manifests = root.path().join("etc/kubernetes/manifests");
        fs::create_dir_all(&manifests).unwrap();
        assert_eq!(read(None, root.path()), Role::Worker);
        fs::write(manifests.join("kube-apiserver.yaml"), "").unwrap();
        assert_eq!(read(None, root.path()), Role::ControlPlane);
        assert_eq!(read(Some(config::Role::Worker), root.path()), Role::Worker);
    }
}
