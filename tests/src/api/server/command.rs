//! The command lines of the API server and its store.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::programs::Programs;
use super::{Options, authority, port};

/// Where the processes listen, on the loopback address.
#[derive(Debug)]
pub(super) struct Ports {
    pub(super) api: u16,
    pub(super) etcd: u16,
    etcd_peer: u16,
}

impl Ports {
    /// Takes ports that are free.
    ///
    /// # Errors
    ///
    /// There are not enough.
    pub(super) fn free() -> Result<Self> {
        Ok(Self { api: port::free()?, etcd: port::free()?, etcd_peer: port::free()? })
    }
}

/// Returns the command of the store, which keeps its data in `folder`.
pub(super) fn etcd(programs: &Programs, folder: &Path, ports: &Ports) -> Command {
    let client = format!("http://127.0.0.1:{}", ports.etcd);
    let peer = format!("http://127.0.0.1:{}", ports.etcd_peer);
    let mut command = Command::new(&programs.etcd);
    command.arg("--unsafe-no-fsync").arg("--data-dir").arg(folder.join("etcd"));
    command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
    command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
    command.args(["--initial-cluster", &format!("default={peer}"), "--log-level", "warn"]);
    command
}

/// Returns the command of the API server, which reads its certificates in `folder`.
pub(super) fn api(programs: &Programs, folder: &Path, ports: &Ports, options: &Options) -> Command {
    let file = |name: &str| folder.join(name).display().to_string();
    let (key, certificate) = (file(authority::SERVER_KEY), file(authority::SERVER_CERTIFICATE));
    let mut command = Command::new(&programs.kube_apiserver);
    command.args(FIXED_FLAGS).args(mode_flags(options.node_restriction)).args(&options.flags);
    command.args([
        format!("--etcd-servers=http://127.0.0.1:{}", ports.etcd),
        format!("--secure-port={}", ports.api),
        format!("--cert-dir={}", folder.display()),
        format!("--tls-cert-file={certificate}"),
        format!("--tls-private-key-file={key}"),
        format!("--client-ca-file={}", file(authority::AUTHORITY)),
        // The server's own key will do for tokens too; its public half is in the certificate.
        format!("--service-account-key-file={certificate}"),
        format!("--service-account-signing-key-file={key}"),
    ]);
    command
}

fn mode_flags(node_restriction: bool) -> &'static [&'static str] {
    if node_restriction {
        &["--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction"]
    } else {
        &["--authorization-mode=RBAC"]
    }
}

/// What every API server here is started with.
const FIXED_FLAGS: &[&str] = &[
    "--advertise-address=127.0.0.1",
    "--allow-privileged=true",
    "--bind-address=127.0.0.1",
    // There is no controller that makes service accounts, so pods must do without.
    "--disable-admission-plugins=ServiceAccount",
    "--endpoint-reconciler-type=none",
    "--service-account-issuer=https://kubernetes.default.svc",
    "--service-cluster-ip-range=10.0.0.0/24",
];
