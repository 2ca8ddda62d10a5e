//! Numbers with units on the command line, such as `100Gbps`. Kept as integers.

use crate::units;
use std::time::Duration;

/// Picoseconds: one byte at 1.6 Tb/s is five of them, and 2^64 of them are 213 days.
pub type Picos = u64;

pub const SECOND: Picos = 1_000_000_000_000;

const RATES: &[(&str, f64)] = &[("Mbps", 1e6), ("Gbps", 1e9), ("Tbps", 1e12)];

/// Bytes, from `1B` to 16 TiB.
pub fn bytes(text: &str) -> Result<u64, String> {
    units::size(text, 1..=16 << 40, "256MiB")
}

/// Bytes that one connection sends at once, from 64 B to 1 GiB.
pub fn window(text: &str) -> Result<u64, String> {
    units::size(text, 64..=1 << 30, "64KiB")
}

/// Bits per second, from 1 Mb/s to 2 Tb/s.
pub fn rate(text: &str) -> Result<u64, String> {
    within(text, RATES, 1e6, 2e12, "1Mbps to 2Tbps")
}

/// Picoseconds, up to 100 s.
pub fn time(text: &str) -> Result<Picos, String> {
    let time = units::duration(
        text,
        Duration::ZERO..=Duration::from_secs(100),
        "5us or 67ms",
    )?;
    let picos = time.as_nanos().saturating_mul(1_000);
    Picos::try_from(picos).map_err(|error| error.to_string())
}

fn within(
    text: &str,
    units: &[(&str, f64)],
    low: f64,
    high: f64,
    allowed: &str,
) -> Result<u64, String> {
    let names: Vec<&str> = units.iter().map(|u| u.0).collect();
    let names = names.join(", ");
    let at = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .ok_or_else(|| format!("a unit is missing; allowed are {names}"))?;
    let (number, unit) = text.split_at(at);
    let scale = units.iter().find(|u| u.0 == unit.trim());
    let (_, scale) = scale.ok_or_else(|| format!("unknown unit {unit:?}; allowed are {names}"))?;
    let number: f64 = number.parse().map_err(|_| {
        format!(
            "{number:?} is not a number; write for example 1.5{}",
            units[0].0
        )
    })?;
    let value = number * scale;
    if value < low || value > high {
        return Err(format!("out of range; allowed is {allowed}"));
    }
    Ok(value.round() as u64)
}

/// A fraction from 0 to 1.
pub fn fraction(text: &str) -> Result<f64, String> {
    number(text, 0.0, 1.0)
}

/// Sigma of a lognormal distribution, 0 to 3.
pub fn sigma(text: &str) -> Result<f64, String> {
    number(text, 0.0, 3.0)
}

/// A factor from 1 to 1000.
pub fn factor(text: &str) -> Result<f64, String> {
    number(text, 1.0, 1000.0)
}

fn number(text: &str, low: f64, high: f64) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(v) if (low..=high).contains(&v) => Ok(v),
        _ => Err(format!("allowed is a number from {low} to {high}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read() {
        assert_eq!(bytes("1.5KiB"), Ok(1536));
        assert_eq!(rate("100Gbps"), Ok(100_000_000_000));
        assert_eq!(time("5us"), Ok(5_000_000));
        assert_eq!(time("0ns"), Ok(0));
    }

    #[test]
    fn bad_values_say_what_is_allowed() {
        for (error, hint) in [
            (bytes("0B").unwrap_err(), "1 B to 16 TiB"),
            (window("1B").unwrap_err(), "64 B to 1 GiB"),
            (rate("12").unwrap_err(), "Gbps"),
            (rate("1Kbps").unwrap_err(), "Gbps"),
            (rate("9Tbps").unwrap_err(), "2Tbps"),
            (time("101s").unwrap_err(), "1m 40s"),
            (fraction("2").unwrap_err(), "0 to 1"),
        ] {
            assert!(error.contains(hint), "{error}");
        }
    }
}
