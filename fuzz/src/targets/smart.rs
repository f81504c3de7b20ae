//! The parsers of an NVMe drive's pages read any bytes, and again what they read.

use fettle_core::wire::smart::{
    HEALTH_BYTES, Health, HealthError, IDENTITY_BYTES, Identity, IdentityError, celsius,
};

/// Takes `data` as a health log page, and as the identity of a controller.
pub fn target(data: &[u8]) {
    health(data);
    identity(data);
}

fn health(data: &[u8]) {
    let parsed = Health::parse(data);
    assert_eq!(parsed == Err(HealthError::Short), data.len() < HEALTH_BYTES);
    let Ok(health) = parsed else {
        return;
    };
    assert!(health.temperature_k != 0, "nothing is at 0 K");
    assert!(celsius(health.temperature_k) > -273);
    let warnings = health.warnings;
    assert_eq!(
        warnings.names().count(),
        usize::try_from(warnings.bits().count_ones()).expect("at most 8")
    );
    assert_eq!(warnings.to_string().is_empty(), warnings.is_empty());
    assert!(!warnings.failures().temperature(), "heat is no failure");
    assert_eq!(Health::parse(&written(&health)), Ok(health));
}

/// Returns the page on which `health` stands.
fn written(health: &Health) -> Vec<u8> {
    let mut page = vec![health.warnings.bits()];
    page.extend(health.temperature_k.to_le_bytes());
    page.extend([health.spare_pct, health.spare_threshold_pct, health.used_pct]);
    page.push(health.endurance_group_warnings.bits());
    page.resize(32, 0);
    for counter in [
        health.units_read,
        health.units_written,
        health.host_reads,
        health.host_writes,
        health.busy_min,
        health.power_cycles,
        health.power_on_hours,
        health.unsafe_shutdowns,
        health.media_errors,
        health.error_log_entries,
    ] {
        page.extend(u128::from(counter).to_le_bytes());
    }
    page.extend(health.warning_temperature_min.to_le_bytes());
    page.extend(health.critical_temperature_min.to_le_bytes());
    health.sensors_k.iter().for_each(|kelvins| page.extend(kelvins.to_le_bytes()));
    let [light, heavy] = health.throttling;
    for number in [light.count, heavy.count, light.total_s, heavy.total_s] {
        page.extend(number.to_le_bytes());
    }
    page.resize(HEALTH_BYTES, 0);
    page
}

fn identity(data: &[u8]) {
    let parsed = Identity::parse(data);
    assert_eq!(parsed == Err(IdentityError::Short), data.len() < IDENTITY_BYTES);
    let Ok(identity) = parsed else {
        return;
    };
    assert!(!identity.serial.is_empty() || !identity.model.is_empty(), "it is somebody");
    for text in [identity.serial, identity.model, identity.firmware] {
        let is_padding = |byte: Option<&u8>| matches!(byte, Some(b' ' | 0));
        assert!(!is_padding(text.first()) && !is_padding(text.last()), "{text:?}");
    }
    let kelvins = [identity.warning_temperature_k, identity.critical_temperature_k];
    assert!(!kelvins.contains(&Some(0)), "a threshold of zero is none");
}
