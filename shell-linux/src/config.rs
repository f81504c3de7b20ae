//! The agent's configuration: defaults compiled in, and a YAML file over them.

mod document;
pub mod duration;
mod file;
mod keys;
mod nearest;
mod problem;
mod value;

use core::net::{Ipv4Addr, SocketAddr};
use core::time::Duration;
use std::collections::BTreeSet;
use std::path::PathBuf;

use fettle_core::catalog::{CONDITIONS, Clear, ConditionType};
use fettle_core::node::agent::Settings;
use fettle_core::node::checks::Schedule;
use fettle_core::node::judge::Limits;
use fettle_core::node::repair::{Mode, RepairSettings};
use glob::Pattern;

pub use file::{ConfigError, ConfigFile, DEFAULT_FILE};
pub use problem::{Place, Problem, Problems};
pub use value::{Cidr, Expected, HttpUrl, Role, clear_rule};

/// Everything that a person may set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// What the agent's annotations on the Node are named after.
    pub annotation_prefix: String,
    /// The API server's audit log.
    pub audit: Audit,
    /// Certificates to watch, those that exist.
    pub certificates: Vec<Pattern>,
    /// The local Cilium agent's socket.
    pub cilium_socket: PathBuf,
    /// Each condition's, in the order of [`ConditionType`].
    pub conditions: [ConditionConfig; ConditionType::COUNT],
    /// The container runtime.
    pub cri: Cri,
    /// When a file system is too full.
    pub disk: Disk,
    /// What has to be here: its absence is a fault.
    pub expect: Vec<Expected>,
    /// Activated GPUs.
    pub gpu: Gpu,
    /// The kubelet.
    pub kubelet: Kubelet,
    /// Where the agent's own metrics are served.
    pub listen: SocketAddr,
    /// The list of nodes.
    pub nodes_json: NodesJson,
    /// Files that nobody may change, where the file system is writable.
    pub protected: Vec<Pattern>,
    /// The local proxy's metrics.
    pub proxy_metrics: HttpUrl,
    /// Whether the agent reboots its node when it is asked to.
    pub reboot: bool,
    /// Restarts of units.
    pub repair: Repair,
    /// What this node is; where `None`, it is to be found out.
    pub role: Option<Role>,
    /// The root hashes that were recorded when the node was provisioned.
    pub sealed_recorded: PathBuf,
    /// Whether records that user space wrote count as the kernel's: for tests.
    pub trust_userspace: bool,
    /// The tunnel.
    pub tunnel: Tunnel,
    /// Units to watch.
    pub units: Units,
    /// Whether a volume group without free extents counts.
    pub vg_free: bool,
    /// The dotted keys that the file gives.
    set: BTreeSet<&'static str>,
}

/// The API server's audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audit {
    /// The log.
    pub path: PathBuf,
    /// Networks of proxies; where `None`, the node's own addresses.
    pub proxy_cidrs: Option<Vec<Cidr>>,
}

/// What may be set of one condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConditionConfig {
    /// How it is cleared.
    pub clear: Clear,
    /// Whether it is judged at all.
    pub enabled: bool,
    /// How often it is checked; `None` where something else says when.
    pub interval: Option<Duration>,
}

/// The container runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cri {
    /// How long an answer may take.
    pub deadline: Duration,
    /// Its socket: the first of these that exists.
    pub sockets: Vec<PathBuf>,
}

/// When a file system is too full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disk {
    /// How many points lower it counts as good again.
    pub clear_below: u8,
    /// Percent of the inodes.
    pub inode_pct: u8,
    /// Percent of the space.
    pub usage_pct: u8,
}

/// Activated GPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gpu {
    /// Directories of CDI specs.
    pub cdi: Vec<PathBuf>,
    /// The file that says that the GPUs are activated.
    pub marker: PathBuf,
}

/// The kubelet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kubelet {
    /// How long an answer may take.
    pub deadline: Duration,
    /// Whom to ask.
    pub healthz: HttpUrl,
}

/// The list of nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodesJson {
    /// How old it may become.
    pub max_age: Duration,
    /// The file.
    pub path: PathBuf,
}

/// Restarts of units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repair {
    /// Whether a restart is only told, not ordered.
    pub dry_run: bool,
    /// Whether units are restarted.
    pub enabled: bool,
}

impl Repair {
    const fn mode(self) -> Mode {
        match (self.enabled, self.dry_run) {
            (false, _) => Mode::Off,
            (true, true) => Mode::DryRun,
            (true, false) => Mode::Act,
        }
    }
}

/// The tunnel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tunnel {
    /// The gauge that counts its connections.
    pub gauge: String,
    /// Its metrics.
    pub metrics: HttpUrl,
}

/// Units to watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Units {
    /// Those without which the node is of no use; where `None`, what the role says.
    pub critical: Option<Vec<String>>,
    /// Those that operate the platform.
    pub operability: Vec<String>,
}

impl Units {
    /// Returns the critical units of a node of this role.
    #[must_use]
    pub fn critical(&self, role: Role) -> Vec<&str> {
        match (&self.critical, role) {
            (Some(units), _) => units.iter().map(String::as_str).collect(),
            (None, Role::ControlPlane) => vec!["kubelet.service", "containerd.service"],
            (None, Role::Worker) => {
                vec!["kubelet.service", "containerd.service", "syself-proxy.service"]
            }
        }
    }
}

impl Config {
    /// Returns whether the two look at different things.
    #[must_use]
    pub fn probes_differ(&self, other: &Self) -> bool {
        self.certificates != other.certificates
            || self.expect != other.expect
            || self.gpu != other.gpu
            || self.nodes_json != other.nodes_json
            || self.protected != other.protected
            || self.sealed_recorded != other.sealed_recorded
    }

    /// Reads a configuration: YAML over the defaults.
    ///
    /// # Errors
    ///
    /// Returns all that is wrong with `text`, or only the first thing where it is no YAML.
    pub fn parse(text: &str) -> Result<Self, Problems> {
        if text.len() > FILE_MAX {
            return Err(too_large().into());
        }
        keys::read(&document::parse(text)?)
    }

    /// Returns what the core has to know; which probes there are, the shell adds.
    #[must_use]
    pub fn settings(&self) -> Settings {
        let deadline_ms =
            |deadline: Duration| u32::try_from(deadline.as_millis()).unwrap_or(u32::MAX);
        let limits = Limits {
            cri_deadline_ms: deadline_ms(self.cri.deadline),
            kubelet_deadline_ms: deadline_ms(self.kubelet.deadline),
            clear_below_pct: self.disk.clear_below,
            inode_pct: self.disk.inode_pct,
            usage_pct: self.disk.usage_pct,
            volume_group_free: self.vg_free,
        };
        let interval_s = |condition: ConditionConfig| {
            let seconds = condition.interval.map_or(0, |interval| interval.as_secs());
            u32::try_from(seconds).unwrap_or(u32::MAX)
        };
        let schedule = Schedule {
            enabled: self.conditions.map(|condition| condition.enabled),
            intervals_s: self.conditions.map(interval_s),
            ..Schedule::default()
        };
        Settings {
            clear: self.conditions.map(|condition| condition.clear),
            limits,
            repair: RepairSettings { mode: self.repair.mode(), ..RepairSettings::default() },
            schedule,
            trust_userspace: self.trust_userspace,
            ..Settings::default()
        }
    }

    /// Returns what is set of one condition.
    #[must_use]
    pub fn condition(&self, condition: ConditionType) -> ConditionConfig {
        self.conditions.get(condition.index()).copied().unwrap_or_else(|| by_default(condition))
    }

    /// Returns whether the file gives the dotted `key`, so that what it names has to be there.
    #[must_use]
    pub fn is_set(&self, key: &str) -> bool {
        self.set.contains(key)
    }
}

impl Default for Config {
    fn default() -> Self {
        let mut conditions = [by_default(ConditionType::KubeletUnhealthy); ConditionType::COUNT];
        for (slot, row) in conditions.iter_mut().zip(&CONDITIONS) {
            *slot = by_default(row.condition);
        }
        Self {
            annotation_prefix: "autopilot.syself.com".to_owned(),
            audit: Audit { path: "/var/log/kubernetes/audit.log".into(), proxy_cidrs: None },
            certificates: patterns(&[
                "/var/lib/kubelet/pki/*.pem",
                "/etc/kubernetes/pki/*.crt",
                "/etc/kubernetes/pki/etcd/*.crt",
                "/var/lib/syself/tunnel/*.crt",
            ]),
            cilium_socket: "/var/run/cilium/cilium.sock".into(),
            conditions,
            cri: Cri {
                deadline: Duration::from_secs(15),
                sockets: owned(&["/run/containerd/containerd.sock", "/run/crio/crio.sock"]),
            },
            disk: Disk { clear_below: 3, inode_pct: 90, usage_pct: 85 },
            expect: Vec::new(),
            gpu: Gpu {
                cdi: owned(&["/etc/cdi", "/var/run/cdi"]),
                marker: "/run/syself/gpu-activated".into(),
            },
            kubelet: Kubelet {
                deadline: Duration::from_secs(5),
                healthz: local(10248, "/healthz"),
            },
            listen: (Ipv4Addr::UNSPECIFIED, 20257).into(),
            nodes_json: NodesJson {
                max_age: Duration::from_secs(5 * 60),
                path: "/var/lib/syself/nodes.json".into(),
            },
            protected: patterns(&[
                "/var/lib/kubelet/config.yaml",
                "/var/lib/kubelet/kubeadm-flags.env",
                "/var/lib/syself/**",
                "/etc/kubernetes/manifests/**",
            ]),
            proxy_metrics: local(9587, "/metrics"),
            reboot: false,
            repair: Repair { dry_run: false, enabled: true },
            role: None,
            sealed_recorded: "/var/lib/syself/sealed.json".into(),
            trust_userspace: false,
            tunnel: Tunnel {
                gauge: "tunnel_connections".to_owned(),
                metrics: local(9588, "/metrics"),
            },
            units: Units {
                critical: None,
                operability: owned(&[
                    "syself-tunnel-agent.service",
                    "syself-tunnel-server.service",
                    "syself-source-ip.service",
                ]),
            },
            vg_free: false,
            set: BTreeSet::new(),
        }
    }
}

fn by_default(condition: ConditionType) -> ConditionConfig {
    let row = condition.row();
    ConditionConfig { clear: row.clear, enabled: true, interval: row.interval }
}

fn local(port: u16, path: &str) -> HttpUrl {
    HttpUrl { address: (Ipv4Addr::LOCALHOST, port).into(), path: path.to_owned() }
}

fn owned<T: for<'a> From<&'a str>>(texts: &[&str]) -> Vec<T> {
    texts.iter().map(|text| T::from(text)).collect()
}

fn patterns(texts: &[&str]) -> Vec<Pattern> {
    texts.iter().map(|text| Pattern::new(text).expect("a test reads the defaults")).collect()
}

fn too_large() -> Problem {
    let message = format!("larger than {} KiB; is this the right file?", FILE_MAX / 1024);
    Problem::new(Place::START, "", message)
}

/// Most bytes of a file: a hundred times what the longest lists need.
const FILE_MAX: usize = 1024 * 1024;

#[cfg(test)]
mod tests;
