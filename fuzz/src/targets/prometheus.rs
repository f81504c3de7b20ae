//! The reader of a gauge takes any text, and what it says of it adds up.

use fettle_core::wire::prom::{Gauge, GaugeError, gauge};

/// Takes the first line of `data` as the name of a gauge, and what follows as metrics.
pub fn target(data: &[u8]) {
    let mut parts = data.splitn(2, |byte| *byte == b'\n');
    let name = parts.next().unwrap_or_default();
    let text = parts.next().unwrap_or_default();
    let read = gauge(text, name);
    let is_cut = text.last().is_some_and(|byte| *byte != b'\n');
    assert_eq!(read == Err(GaugeError::Truncated), is_cut);
    if let Ok(read) = read {
        twice_is_twice(text, name, read);
    }
    if let Ok(Some(gauge)) = read {
        adds_up(&gauge, text);
    }
}

fn adds_up(gauge: &Gauge, text: &[u8]) {
    let lines = text.split(|byte| *byte == b'\n').count();
    assert!((1..=lines).contains(&usize::try_from(gauge.series).expect("a few")));
    let numbers = gauge.series.checked_sub(gauge.not_a_number).expect("a part of them");
    assert_eq!(gauge.numbers.is_some(), numbers > 0);
    if let Some(values) = gauge.numbers {
        assert!(numbers > 1 || values.min_milli == values.sum_milli, "one is its own sum");
        assert!(values.min_milli < 0 || values.sum_milli >= values.min_milli);
    }
}

fn twice_is_twice(text: &[u8], name: &[u8], once: Option<Gauge>) {
    let twice = gauge(&[text, text].concat(), name).expect("each line was read before");
    assert_eq!(twice.is_some(), once.is_some());
    if let (Some(once), Some(twice)) = (once, twice) {
        assert_eq!(twice.series, 2 * once.series);
        assert_eq!(twice.not_a_number, 2 * once.not_a_number);
        let least = |gauge: Gauge| gauge.numbers.map(|numbers| numbers.min_milli);
        assert_eq!(least(twice), least(once));
    }
}
