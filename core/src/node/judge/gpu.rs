//! Whether containers can use the node's GPUs.

use core::time::Duration;

use super::{Judgement, Limits, Memory, note};
use crate::node::reading::Reading;
use crate::time::Instant;

/// Judges `GpuActivationFailed`.
///
/// A spec without device nodes is none (H21); a node that has just booted is still activating its
/// GPUs (H22). A node without a GPU makes no reading, unless one was there or is expected.
pub fn activation(
    now: Instant,
    reading: &Reading<'_>,
    _: &Limits,
    memory: &mut Memory,
) -> Judgement {
    let Reading::Gpus(gpus) = reading else {
        return Judgement::NotMine;
    };
    let count = gpus.count;
    if count > 0 {
        // From now on their absence is a fault.
        *memory = Memory::Present;
    }
    let problem = match (gpus.marker, gpus.cdi_device_nodes) {
        _ if count == 0 => note(format_args!("no GPU on the bus, where one was or should be")),
        (true, Some(nodes)) if nodes > 0 => return Judgement::Healthy,
        (false, _) => note(format_args!("{count} GPUs on the bus, but no activation marker")),
        (true, None) => note(format_args!("{count} GPUs on the bus, but no CDI spec")),
        (true, Some(_)) => {
            note(format_args!("{count} GPUs on the bus, but the CDI spec lists no device nodes"))
        }
    };
    if now.since(Instant::from_millis(0)) < BOOT_GRACE {
        return Judgement::Healthy;
    }
    Judgement::Problem(problem)
}

/// How long after boot the activation may take (decisions, `GpuActivationFailed`).
const BOOT_GRACE: Duration = Duration::from_secs(600);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::reading::Gpus;

    #[test]
    fn a_gpu_needs_its_marker_and_a_spec_with_devices() {
        // seconds since boot, count, marker, device nodes, problem
        for (at_s, count, marker, cdi_device_nodes, problem) in [
            (3600, 0, true, Some(4), true), // gone, or expected and never there
            (60, 0, false, None, false),
            (3600, 2, true, Some(4), false),
            (3600, 2, true, Some(0), true), // H21
            (3600, 2, true, None, true),
            (3600, 2, false, Some(4), true),
            (60, 1, false, None, false), // H22
            (599, 1, false, None, false),
            (600, 1, false, None, true),
        ] {
            let reading = Reading::Gpus(Gpus { count, marker, cdi_device_nodes });
            let now = Instant::from_millis(at_s * 1000);
            let judgement = activation(now, &reading, &Limits::default(), &mut Memory::None);
            assert_eq!(matches!(judgement, Judgement::Problem(_)), problem, "{reading:?} {at_s}");
        }
    }
}
