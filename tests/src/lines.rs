//! Kernel log lines to measure with: such as mean nothing, near misses, and faults.

use fettle_core::node::rules::RULES;

/// Lines as kernels print them at boot and while all is well.
pub const QUIET: &[&str] = &[
    "Linux version 6.12.41-cloud-amd64 (build@host) (gcc-14 (GCC) 14.2.0, GNU ld 2.44) #1 SMP PREEMPT_DYNAMIC",
    "BIOS-e820: [mem 0x0000000000100000-0x000000007ffdbfff] usable",
    "ACPI: PM-Timer IO Port: 0x608",
    "PCI host bridge to bus 0000:00",
    "pci 0000:00:1f.2: [8086:2922] type 00 class 0x010601 conventional PCI endpoint",
    "pci 0000:00:03.0: BAR 4 [mem 0xfe000000-0xfe003fff 64bit pref]",
    "pci_bus 0000:01: resource 1 [mem 0xfe600000-0xfe7fffff]",
    "rcu: RCU calculated value of scheduler-enlistment delay is 25 jiffies.",
    "Dentry cache hash table entries: 1048576 (order: 11, 8388608 bytes, linear)",
    "clocksource: Switched to clocksource kvm-clock",
    "SCSI subsystem initialized",
    "scsi host2: ahci",
    "ata3: SATA max UDMA/133 abar m4096@0xfea10000 port 0xfea10200 irq 49 lpm-pol 0",
    "ata3: SATA link up 6.0 Gbps (SStatus 133 SControl 300)",
    "ata3.00: ATA-11: EXAMPLE 960G, 1.02, max UDMA/133",
    "sd 2:0:0:0: [sda] 1875385008 512-byte logical blocks: (960 GB/894 GiB)",
    "sd 2:0:0:0: [sda] Write cache: enabled, read cache: enabled, doesn't support DPO or FUA",
    " sda: sda1 sda2 sda3",
    "nvme nvme0: pci function 0000:01:00.0",
    "nvme nvme0: 8/0/0 default/read/poll queues",
    " nvme0n1: p1 p2 p3",
    "EXT4-fs (sda2): mounted filesystem 6f1f7d0e-6a3c-4a52-93b1-0e1c7b1d9a55 r/w with ordered data mode. Quota mode: none.",
    "XFS (nvme0n1p3): Mounting V5 Filesystem 0d5f9a44-7b0e-4d0b-8a38-f3a1c7de1f02",
    "XFS (nvme0n1p3): Ending clean mount",
    "device-mapper: ioctl: 4.48.0-ioctl (2023-03-01) initialised: dm-devel@lists.linux.dev",
    "usb 1-2: new high-speed USB device number 4 using xhci_hcd",
    "usb 1-2: New USB device found, idVendor=0781, idProduct=5581, bcdDevice= 1.00",
    "usb 1-2: New USB device strings: Mfr=1, Product=2, SerialNumber=3",
    "input: Power Button as /devices/LNXSYSTM:00/LNXPWRBN:00/input/input0",
    "systemd[1]: Hostname set to <node-17>.",
    "systemd[1]: Mounting dev-hugepages.mount - Huge Pages File System...",
    "systemd[1]: Starting systemd-journald.service - Journal Service...",
    "systemd-journald[412]: Received client request to flush runtime journal.",
    "e1000e 0000:00:19.0 eno1: NIC Link is Up 1000 Mbps Full Duplex, Flow Control: Rx/Tx",
    "mlx5_core 0000:65:00.0 ens5f0np0: Link up",
    "IPv6: ADDRCONF(NETDEV_CHANGE): veth5a1c2d3: link becomes ready",
    "cni0: port 7(veth5a1c2d3) entered blocking state",
    "cni0: port 7(veth5a1c2d3) entered forwarding state",
    "device veth5a1c2d3 entered promiscuous mode",
    "nf_conntrack: default automatic helper assignment has been turned off",
    "TCP: request_sock_TCP: Possible SYN flooding on port 8443. Sending cookies.",
    "audit: type=1400 audit(1760000000.123:456): apparmor=\"STATUS\" operation=\"profile_load\" profile=\"unconfined\" name=\"cri-containerd.apparmor.d\" pid=2211 comm=\"apparmor_parser\"",
    "audit: type=1334 audit(1760000000.456:457): prog-id=41 op=LOAD",
    "overlayfs: fs on '/var/lib/containerd/l/AB' does not support file handles, falling back to xino=off.",
    "Memory cgroup out of memory: Killed process 31337 (java) total-vm:8123456kB, anon-rss:4123456kB, file-rss:0kB, shmem-rss:0kB, UID:1000 pgtables:9120kB oom_score_adj:985",
    "oom_reaper: reaped process 31337 (java), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB",
    "perf: interrupt took too long (2510 > 2500), lowering kernel.perf_event_max_sample_rate to 79500",
    "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.124.06",
];

/// Returns the corpus's lines that mean nothing: most of them only just.
#[must_use]
pub fn near_misses() -> Vec<&'static str> {
    corpus().filter(|(want, _)| *want == "NONE").map(|(_, line)| line).collect()
}

/// Returns the corpus's lines that report a fault.
#[must_use]
pub fn faults() -> Vec<&'static str> {
    corpus().filter(|(want, _)| *want != "NONE").map(|(_, line)| line).collect()
}

/// Returns `count` quiet lines of which `matching_pct` of each hundred report a fault.
///
/// The faults are the examples of the rule table, in turn.
pub fn mixed(count: usize, matching_pct: usize) -> impl Iterator<Item = &'static str> {
    let mut faults = RULES.iter().map(|rule| rule.example).cycle();
    let mut quiet = QUIET.iter().copied().cycle();
    (0..count).filter_map(move |index| {
        if is_fault(index % 100, matching_pct) { faults.next() } else { quiet.next() }
    })
}

/// Spreads `pct` faults evenly over each hundred lines.
fn is_fault(place: usize, pct: usize) -> bool {
    (place + 1) * pct / 100 > place * pct / 100
}

/// Returns `text` as one read of `/dev/kmsg` returns it.
#[must_use]
pub fn record(sequence: u64, text: &str) -> String {
    format!("6,{sequence},{},-;{text}\n", FIRST_US + sequence * 100)
}

fn corpus() -> impl Iterator<Item = (&'static str, &'static str)> {
    CORPUS.lines().skip(1).filter_map(|row| {
        let (want, rest) = row.split_once('\t')?;
        Some((want, rest.split('\t').next()?))
    })
}

const CORPUS: &str = include_str!("../data/kmsg-corpus.tsv");

/// Three weeks of uptime, so that a record's time has as many digits as on a running node.
const FIRST_US: u64 = 1_814_400_000_000;

#[cfg(test)]
mod tests {
    use fettle_core::node::rules::classify;
    use fettle_core::wire::kmsg::Record;

    use super::*;

    #[test]
    fn lines_mean_what_their_list_says() {
        let means_something = |line: &&str| !classify(&Record::bare(line.as_bytes())).is_empty();
        assert!(!QUIET.iter().any(means_something));
        assert!(!near_misses().iter().any(means_something));
        assert!(faults().iter().all(means_something));
        assert_eq!((near_misses().len(), faults().len()), (130, 176));
    }

    #[test]
    fn a_mix_has_as_many_faults_as_asked_for() {
        for (pct, want) in [(0, 0), (1, 10), (10, 100), (100, 1000)] {
            let faults = mixed(1000, pct)
                .filter(|line| !classify(&Record::bare(line.as_bytes())).is_empty())
                .count();
            assert_eq!(faults, want, "{pct} %");
        }
    }
}
