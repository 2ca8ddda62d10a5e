//! The endpoint card: the addresses of an endpoint, for its peers.
//!
//! Encoded as text, one `key=value` per line, because two languages read it, it travels only once per
//! pair of executors, and people see it in bug reports:
//!
//! ```text
//! faro-card=2
//! endpoint=5f0c...32 hex digits
//! name=executor-3
//! address=shm://<host identity>/<socket name>
//! address=tcp://10.0.0.7:41234
//! secret=64 hex digits
//! crc=9ab3f00d
//! ```
//! The first line is the version. It is checked first, because another version may change the rest.
//! `crc` is the CRC-32C of everything before its line, eight lower-case digits: only one spelling is
//! accepted, so that a flipped bit of the checksum itself is an error too. Addresses are in order of
//! preference. Unknown keys are skipped, so that later builds can add keys without a new version. The secret is what
//! proves to the endpoint that a peer belongs to its application: a card is shown to members only.

use crate::{crc32c, WireError};
use faro_secure::{Secret, SECRET_BYTES};

/// The card's version, the first line's value.
pub const CARD_VERSION: u32 = 2;
/// Longest card, in bytes.
pub const MAX_CARD_BYTES: usize = 4_096;
/// Longest name, in bytes; `encode` cuts longer ones.
pub const MAX_NAME_BYTES: usize = 256;

/// One way to reach an endpoint: a scheme (`tcp`, `shm`, `verbs`) and the fabric's own text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CardAddress {
    /// Fabric name; without `://`.
    pub scheme: String,
    /// The part after `scheme://`.
    pub location: String,
}

/// A decoded card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    /// Id of the endpoint, a hash of its static key; a restarted executor has a new one.
    pub endpoint: u128,
    /// Executor id, for logs.
    pub name: String,
    /// The addresses in order of preference.
    pub addresses: Vec<CardAddress>,
    /// Known to members of the application only.
    pub secret: Secret,
}

/// Replaces line breaks, which would end the line, by spaces.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

fn missing(what: &'static str) -> WireError {
    WireError::Truncated {
        what,
        needed: 1,
        got: 0,
    }
}

impl Card {
    /// Returns the card's bytes. Line breaks become spaces.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut name_end = self.name.len().min(MAX_NAME_BYTES);
        while !self.name.is_char_boundary(name_end) {
            name_end -= 1;
        }
        let mut text = format!(
            "faro-card={CARD_VERSION}\nendpoint={:032x}\nname={}\n",
            self.endpoint,
            one_line(&self.name[..name_end])
        );
        for address in &self.addresses {
            text.push_str(&format!(
                "address={}://{}\n",
                one_line(&address.scheme),
                one_line(&address.location)
            ));
        }
        text.push_str("secret=");
        for byte in self.secret.expose() {
            text.push_str(&format!("{byte:02x}"));
        }
        text.push('\n');
        let crc = crc32c(text.as_bytes());
        text.push_str(&crc_line(crc));
        text.into_bytes()
    }

    /// Reads a card.
    ///
    /// # Errors
    /// `TooLarge`, `NotUtf8`, `Truncated` (a line is missing), `BadValue`, `BadChecksum`.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        WireError::check_limit("endpoint card", bytes.len() as u64, MAX_CARD_BYTES as u64)?;
        let text = std::str::from_utf8(bytes).map_err(|_| WireError::NotUtf8 {
            what: "endpoint card",
        })?;
        check_version(text)?;
        let signed = check_crc(text)?;
        let (mut endpoint, mut name, mut secret) = (None, None, None);
        let mut addresses = Vec::new();
        for (key, value) in signed.lines().filter_map(|line| line.split_once('=')) {
            match key {
                "endpoint" => endpoint = Some(parse_endpoint(value)?),
                "name" => name = Some(parse_name(value)?),
                "secret" => secret = Some(parse_secret(value)?),
                "address" => {
                    // This build can use no address without a scheme.
                    if let Some((scheme, location)) = value.split_once("://") {
                        addresses.push(CardAddress {
                            scheme: scheme.to_owned(),
                            location: location.to_owned(),
                        });
                    }
                }
                _ => {}
            }
        }
        Ok(Self {
            endpoint: endpoint.ok_or_else(|| missing("endpoint card's endpoint line"))?,
            name: name.ok_or_else(|| missing("endpoint card's name line"))?,
            addresses,
            secret: secret.ok_or_else(|| missing("endpoint card's secret line"))?,
        })
    }
}

fn crc_line(crc: u32) -> String {
    format!("crc={crc:08x}\n")
}

fn check_version(text: &str) -> Result<(), WireError> {
    let version = text
        .lines()
        .next()
        .and_then(|line| line.strip_prefix("faro-card="))
        .and_then(|value| value.parse::<u32>().ok())
        .ok_or_else(|| missing("endpoint card's version line"))?;
    if version != CARD_VERSION {
        return Err(WireError::BadValue {
            what: "endpoint card version",
            got: u64::from(version),
        });
    }
    Ok(())
}

/// Returns the text before the last line, which must be its checksum.
fn check_crc(text: &str) -> Result<&str, WireError> {
    let crc_at = text
        .rfind("\ncrc=")
        .map(|line_break| line_break + 1)
        .ok_or_else(|| missing("endpoint card's crc line"))?;
    let (signed, line) = text.split_at(crc_at);
    let got = line
        .strip_prefix("crc=")
        .and_then(|digits| u32::from_str_radix(digits.trim_end(), 16).ok())
        .filter(|got| crc_line(*got) == line)
        .ok_or(WireError::BadValue {
            what: "endpoint card's crc line, with its length",
            got: line.len() as u64,
        })?;
    let expected = crc32c(signed.as_bytes());
    if got != expected {
        return Err(WireError::BadChecksum {
            what: "endpoint card",
            expected,
            got,
        });
    }
    if signed.contains('\r') {
        return Err(WireError::BadValue {
            what: "carriage return in an endpoint card",
            got: u64::from(b'\r'),
        });
    }
    Ok(signed)
}

fn parse_endpoint(value: &str) -> Result<u128, WireError> {
    u128::from_str_radix(value, 16)
        .ok()
        .filter(|endpoint| format!("{endpoint:032x}") == value)
        .ok_or(WireError::BadValue {
            what: "endpoint card's endpoint line, with its length",
            got: value.len() as u64,
        })
}

fn parse_secret(value: &str) -> Result<Secret, WireError> {
    let bad = || WireError::BadValue {
        what: "endpoint card's secret line, with its length",
        got: value.len() as u64,
    };
    let digits = value.as_bytes();
    if digits.len() != 2 * SECRET_BYTES {
        return Err(bad());
    }
    // The secret is filled in place, so that no copy is left on the stack.
    Secret::try_fill(|bytes| {
        for (byte, digits) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |at: usize| match digits[at] {
                digit @ b'0'..=b'9' => Ok(digit - b'0'),
                digit @ b'a'..=b'f' => Ok(digit - b'a' + 10),
                _ => Err(bad()),
            };
            *byte = digit(0)? << 4 | digit(1)?;
        }
        Ok(())
    })
}

fn parse_name(value: &str) -> Result<String, WireError> {
    let got = value.len() as u64;
    WireError::check_limit("endpoint card's name", got, MAX_NAME_BYTES as u64)?;
    Ok(value.to_owned())
}
