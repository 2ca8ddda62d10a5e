//! Sizes and durations on the command line, in one grammar for all commands.

use parse_size::{Config, Error};
use std::ops::RangeInclusive;
use std::time::Duration;

/// `4096`, `64k`, `64KiB`, `1.5g`: powers of 1024, as Spark's settings; a number alone is bytes. The message for
/// another text ends with `example`.
pub fn size(text: &str, allowed: RangeInclusive<u64>, example: &str) -> Result<u64, String> {
    let wrong = || format!("{text} is not a size such as {example}");
    let bytes = Config::new()
        .with_binary()
        .parse_size(text)
        .or_else(|error| match error {
            Error::PosOverflow => Ok(u64::MAX),
            _ => Err(wrong()),
        })?;
    if allowed.contains(&bytes) {
        return Ok(bytes);
    }
    let (low, high) = (show(*allowed.start()), show(*allowed.end()));
    Err(match *allowed.end() {
        u64::MAX => format!("{text}: allowed is a size from {low} on, such as {example}"),
        _ => format!("{text}: allowed are {low} to {high}, such as {example}"),
    })
}

/// `90s`, `10min`, `1h`, `67ms`, `5us`, `1h 30min`; a number alone is seconds.
pub fn duration(
    text: &str,
    allowed: RangeInclusive<Duration>,
    example: &str,
) -> Result<Duration, String> {
    let seconds = text.trim().parse::<f64>().ok();
    let found = match seconds {
        Some(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        None => humantime::parse_duration(text).ok(),
    };
    let found = found.ok_or_else(|| format!("{text} is not a time such as {example}"))?;
    match allowed.contains(&found) {
        true => Ok(found),
        false => Err(format!(
            "{text}: allowed are {} to {}, such as {example}",
            humantime::format_duration(*allowed.start()),
            humantime::format_duration(*allowed.end())
        )),
    }
}

/// Formats a size exactly if that is short (`256 MiB`), otherwise rounded (`1.5 GiB`).
pub fn show(bytes: u64) -> String {
    const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let fits = UNITS.iter().find(|(_, shift)| bytes >> shift > 0);
    let Some((name, shift)) = fits else {
        return format!("{bytes} B");
    };
    let value = bytes as f64 / (1_u64 << shift) as f64;
    match value.fract() == 0.0 {
        true => format!("{value} {name}"),
        false => format!("{value:.1} {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn any(text: &str) -> Result<u64, String> {
        size(text, 0..=u64::MAX, "256m")
    }

    #[test]
    fn sizes_are_powers_of_1024_in_any_spelling() {
        for (text, bytes) in [
            ("4096", 4096),
            ("1B", 1),
            ("64k", 64 << 10),
            ("64KiB", 64 << 10),
            ("64 KB", 64 << 10),
            ("1.5g", 3 << 29),
            ("1G", 1 << 30),
            ("1t", 1 << 40),
        ] {
            assert_eq!(any(text), Ok(bytes), "{text}");
        }
        for wrong in ["", "m", "256x", "-1", "1.2.3KiB", "5s"] {
            assert!(any(wrong).is_err_and(|e| e.contains("256m")), "{wrong}");
        }
    }

    #[test]
    fn a_size_that_is_not_allowed_names_what_is() {
        let bounds = |text| size(text, 32 << 20..=1 << 40, "256m").unwrap_err();
        assert_eq!(
            bounds("31m"),
            "31m: allowed are 32 MiB to 1 TiB, such as 256m"
        );
        assert_eq!(
            bounds("99999999999t"),
            "99999999999t: allowed are 32 MiB to 1 TiB, such as 256m"
        );
        let open = size("1k", 1 << 20..=u64::MAX, "200m").unwrap_err();
        assert_eq!(open, "1k: allowed is a size from 1 MiB on, such as 200m");
    }

    #[test]
    fn durations_have_a_unit_or_are_seconds() {
        let any = |text| duration(text, Duration::ZERO..=Duration::from_secs(2_592_000), "90s");
        for (text, nanos) in [
            ("90s", 90_000_000_000_u64),
            ("10min", 600_000_000_000),
            ("1h", 3_600_000_000_000),
            ("1h 30min", 5_400_000_000_000),
            ("67ms", 67_000_000),
            ("5us", 5_000),
            ("200ns", 200),
            ("0.25", 250_000_000),
            ("5", 5_000_000_000),
        ] {
            assert_eq!(any(text), Ok(Duration::from_nanos(nanos)), "{text}");
        }
        for wrong in ["", "s", "-1s", "-1", "5 parsecs", "NaN", "inf"] {
            assert!(any(wrong).is_err_and(|e| e.contains("90s")), "{wrong}");
        }
        let hour = Duration::from_secs(1)..=Duration::from_secs(3_600);
        assert_eq!(
            duration("2h", hour, "90s").unwrap_err(),
            "2h: allowed are 1s to 1h, such as 90s"
        );
    }

    #[test]
    fn sizes_are_shown_with_their_unit() {
        assert_eq!(show(1023), "1023 B");
        assert_eq!(show(256 << 20), "256 MiB");
        assert_eq!(show(3 << 29), "1.5 GiB");
        assert_eq!(show(5 << 40), "5 TiB");
    }
}
