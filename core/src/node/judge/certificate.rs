//! Whether a certificate is renewed in time.

use super::{Judgement, Limits, Memory, note};
use crate::node::reading::Reading;
use crate::time::Instant;

/// Judges `CertRenewalFailing`.
///
/// The seed's 7 days would hold for ever where certificates live for a day, so the limit is 7 days
/// or a tenth of the lifetime, whichever is less (decisions, H16).
pub fn renewal(_: Instant, reading: &Reading<'_>, _: &Limits, _: &mut Memory) -> Judgement {
    let Reading::Certificate(certificate) = reading else {
        return Judgement::NotMine;
    };
    let (from, until) = (certificate.not_before.unix_secs(), certificate.not_after.unix_secs());
    let lifetime_s = until.saturating_sub(from);
    if lifetime_s <= 0 {
        return Judgement::Unknown(note(format_args!(
            "{}: valid from {from} to {until} (Unix seconds), which is never",
            certificate.path
        )));
    }
    let left_s = until.saturating_sub(certificate.now.unix_secs());
    let limit_s = (lifetime_s / 10).min(WEEK_S);
    if left_s <= 0 {
        let ago_s = left_s.saturating_neg();
        return Judgement::Problem(note(format_args!("expired {ago_s} s ago")));
    }
    if left_s <= limit_s {
        return Judgement::Problem(note(format_args!(
            "expires in {left_s} s, and should have been renewed {limit_s} s before its end"
        )));
    }
    Judgement::Healthy
}

const WEEK_S: i64 = 7 * 24 * 3600;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::reading::Certificate;
    use crate::time::Timestamp;

    #[test]
    fn a_week_or_a_tenth_of_the_lifetime_is_the_limit() {
        const H: i64 = 3600;
        const D: i64 = 24 * H;
        // valid from, valid until (relative to now), problem
        for (from, until, problem) in [
            (-10 * H, 14 * H, Some(false)), // H16: half of a day is left
            (-23 * H, H, Some(true)),       // H16: less than a tenth is left
            (-100 * D, 265 * D, Some(false)),
            (-358 * D, 7 * D, Some(true)),
            (-357 * D, 8 * D, Some(false)),
            (-30 * D, -1, Some(true)),
            (D, 0, None),
        ] {
            let certificate = Certificate {
                path: "a.pem",
                subject: "CN=a",
                not_before: Timestamp::from_unix_secs(NOW + from),
                not_after: Timestamp::from_unix_secs(NOW + until),
                now: Timestamp::from_unix_secs(NOW),
            };
            let reading = Reading::Certificate(certificate);
            let judgement =
                renewal(Instant::from_millis(0), &reading, &Limits::default(), &mut Memory::None);
            let got = match judgement {
                Judgement::Problem(_) => Some(true),
                Judgement::Healthy => Some(false),
                Judgement::NotMine | Judgement::NotYet(_) | Judgement::Unknown(_) => None,
            };
            assert_eq!(got, problem, "{from} {until}");
        }
    }

    const NOW: i64 = 1_800_000_000;
}
