//! Numbers for people.

pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 host`, `2 hosts`.
pub fn counted(number: u64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {what}{plural}", count(number))
}

pub fn time(millis: f64) -> String {
    match millis {
        m if m < 1_000.0 => format!("{m:.0} ms"),
        m if m < 100_000.0 => format!("{:.1} s", m / 1e3),
        m if m < 7_200_000.0 => format!("{:.0} min", m / 6e4),
        m => format!("{:.1} h", m / 3.6e6),
    }
}

/// The mean size of blocks.
pub fn mean(bytes_of_all: u64, blocks: u64) -> String {
    match blocks {
        0 => "–".to_owned(),
        blocks => bytes(bytes_of_all / blocks),
    }
}

pub fn percent(part: f64) -> String {
    let value = 100.0 * part;
    if value > 0.0 && value < 1.0 {
        return "<1 %".to_owned();
    }
    format!("{value:.0} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1 << 30), "1.0 GiB");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(counted(1, "host"), "1 host");
        assert_eq!(counted(2_000, "host"), "2,000 hosts");
        assert_eq!(time(999.0), "999 ms");
        assert_eq!(time(90_000.0), "90.0 s");
        assert_eq!(mean(10, 0), "–");
        assert_eq!(percent(0.005), "<1 %");
    }
}
