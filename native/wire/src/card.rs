//! The endpoint card: what a peer must know to reach an endpoint (design.md section 7).
//!
//! Encoded as text, one `key=value` per line, because it is read by two languages, travels once per
//! pair of executors, and shows up in bug reports:
//!
//! ```text
//! faro-card=1
//! endpoint=5f0c...32 hex digits
//! name=executor-3
//! address=shm://<host identity>/<socket name>
//! address=tcp://10.0.0.7:41234
//! crc=9ab3f00d
//! ```
//! `crc` is the CRC-32C of everything before its line. Addresses stand in order of preference.
//! Unknown keys are skipped, so that later versions can add some.

use crate::{crc32c, WireError};

/// First line's value: the card's own version.
pub const CARD_VERSION: u32 = 1;
/// Longest card, in bytes.
pub const MAX_CARD_BYTES: usize = 4_096;

/// One way to reach an endpoint: a scheme (`tcp`, `shm`, `verbs`) and the fabric's own text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CardAddress {
    /// Fabric name.
    pub scheme: String,
    /// What follows `scheme://`.
    pub location: String,
}

/// A decoded card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    /// Random identity of the endpoint; a restarted executor has another.
    pub endpoint: u128,
    /// Executor id, for people.
    pub name: String,
    /// In order of preference.
    pub addresses: Vec<CardAddress>,
}

impl Card {
    /// The card's bytes. Line breaks in the name become spaces.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let name = self.name.replace(['\n', '\r'], " ");
        let mut text = format!(
            "faro-card={CARD_VERSION}\nendpoint={:032x}\nname={name}\n",
            self.endpoint
        );
        for address in &self.addresses {
            text.push_str(&format!(
                "address={}://{}\n",
                address.scheme, address.location
            ));
        }
        let crc = crc32c(text.as_bytes());
        text.push_str(&format!("crc={crc:08x}\n"));
        text.into_bytes()
    }

    /// Reads a card.
    ///
    /// # Errors
    /// `TooLarge`, `NotUtf8`, `Truncated` (a line is missing), `BadValue`, `BadChecksum`.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        if bytes.len() > MAX_CARD_BYTES {
            return Err(WireError::TooLarge {
                what: "endpoint card",
                got: bytes.len() as u64,
                limit: MAX_CARD_BYTES as u64,
            });
        }
        let text = std::str::from_utf8(bytes).map_err(|_| WireError::NotUtf8 {
            what: "endpoint card",
        })?;
        let missing = |what| WireError::Truncated {
            what,
            needed: 1,
            got: 0,
        };
        let crc_at = text
            .rfind("crc=")
            .ok_or_else(|| missing("endpoint card's crc line"))?;
        let (signed, crc_line) = text.split_at(crc_at);
        let got = u32::from_str_radix(crc_line["crc=".len()..].trim_end(), 16).map_err(|_| {
            WireError::BadValue {
                what: "endpoint card's crc line",
                got: 0,
            }
        })?;
        let expected = crc32c(signed.as_bytes());
        if got != expected {
            return Err(WireError::BadChecksum {
                what: "endpoint card",
                expected,
                got,
            });
        }
        let mut lines = signed.lines().filter_map(|line| line.split_once('='));
        let version = lines
            .next()
            .filter(|(key, _)| *key == "faro-card")
            .and_then(|(_, value)| value.parse::<u32>().ok())
            .ok_or_else(|| missing("endpoint card's version line"))?;
        if version != CARD_VERSION {
            return Err(WireError::BadValue {
                what: "endpoint card version",
                got: u64::from(version),
            });
        }
        let (mut endpoint, mut name, mut addresses) = (None, None, Vec::new());
        for (key, value) in lines {
            match key {
                "endpoint" => endpoint = u128::from_str_radix(value, 16).ok(),
                "name" => name = Some(value.to_owned()),
                "address" => {
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
        })
    }
}
