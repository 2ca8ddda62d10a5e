//! Numbers with units on the command line: `256MiB`, `100Gbps`, `5us`. Kept as integers.

/// Picoseconds: one byte at 1.6 Tb/s is five of them, and 2^64 of them are 213 days.
pub type Picos = u64;

pub const SECOND: Picos = 1_000_000_000_000;

const BYTES: &[(&str, f64)] = &[
    ("B", 1.0),
    ("KiB", 1024.0),
    ("MiB", 1048576.0),
    ("GiB", 1073741824.0),
    ("TiB", 1099511627776.0),
];
const RATES: &[(&str, f64)] = &[("Mbps", 1e6), ("Gbps", 1e9), ("Tbps", 1e12)];
const TIMES: &[(&str, f64)] = &[("ns", 1e3), ("us", 1e6), ("ms", 1e9), ("s", 1e12)];

/// Bytes, from `1B` to 16 TiB.
pub fn bytes(text: &str) -> Result<u64, String> {
    within(text, BYTES, 1.0, 16.0 * 1099511627776.0, "1B to 16TiB")
}

/// Bytes that one connection sends at once, from 64 B to 1 GiB.
pub fn window(text: &str) -> Result<u64, String> {
    within(text, BYTES, 64.0, 1073741824.0, "64B to 1GiB")
}

/// Bits per second, from 1 Mb/s to 2 Tb/s.
pub fn rate(text: &str) -> Result<u64, String> {
    within(text, RATES, 1e6, 2e12, "1Mbps to 2Tbps")
}

/// Picoseconds, up to 100 s.
pub fn time(text: &str) -> Result<Picos, String> {
    within(text, TIMES, 0.0, 1e14, "0ns to 100s")
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

pub fn show_bytes(bytes: u64) -> String {
    let fits = |u: &&(&str, f64)| bytes as f64 >= u.1;
    let (name, scale) = BYTES.iter().rev().find(fits).unwrap_or(&BYTES[0]);
    let value = bytes as f64 / scale;
    if value.fract() == 0.0 {
        format!("{value} {name}")
    } else {
        format!("{value:.1} {name}")
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
        assert_eq!(show_bytes(256 << 20), "256 MiB");
    }

    #[test]
    fn bad_values_say_what_is_allowed() {
        for (error, hint) in [
            (bytes("12").unwrap_err(), "KiB"),
            (bytes("12MB").unwrap_err(), "\"MB\""),
            (bytes("1.2.3KiB").unwrap_err(), "1.2.3"),
            (bytes("0B").unwrap_err(), "1B to 16TiB"),
            (rate("1Kbps").unwrap_err(), "Gbps"),
            (rate("9Tbps").unwrap_err(), "2Tbps"),
            (time("-1s").unwrap_err(), "ns, us, ms, s"),
            (fraction("2").unwrap_err(), "0 to 1"),
        ] {
            assert!(error.contains(hint), "{error}");
        }
    }
}
