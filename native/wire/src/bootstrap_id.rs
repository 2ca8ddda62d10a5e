//! The bootstrap id: what the members of a team must know of each other before they can connect.
//!
//! It is one line before the endpoint's card, as text like the card: two languages pass it on, and
//! Spark's barrier carries strings.
//!
//! ```text
//! faro-seat=2:0123456789abcdef:/row-1      version of this line, member, rack
//! faro-card=1
//! ...
//! ```

use crate::{Card, WireError};

/// Version of the first line.
pub const BOOTSTRAP_VERSION: u32 = 2;
/// Longest rack, in bytes; `encode` cuts longer ones.
pub const MAX_RACK_BYTES: usize = 256;

/// A member of a team and the endpoint that it is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootstrapId {
    /// Random number of the member. Only its team knows it, so only its team can address it.
    pub member: u64,
    /// The rack that the member is in; empty if that is unknown. Line breaks are written as spaces.
    pub rack: String,
    /// The member's endpoint.
    pub card: Card,
}

impl BootstrapId {
    /// Returns the text's bytes in UTF-8.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut rack = self.rack.replace('\n', " ");
        let cut = (0..=MAX_RACK_BYTES.min(rack.len())).rfind(|end| rack.is_char_boundary(*end));
        rack.truncate(cut.unwrap_or(0));
        let mut bytes = format!(
            "faro-seat={BOOTSTRAP_VERSION}:{:016x}:{rack}\n",
            self.member
        )
        .into_bytes();
        bytes.extend(self.card.encode());
        bytes
    }

    /// Reads the text.
    ///
    /// # Errors
    /// Those of [`Card::decode`]; `Truncated` without a first line, `BadValue` for another version
    /// or a member that is not 16 lower-case hex digits; `TooLarge` for a rack.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let end = bytes
            .iter()
            .position(|byte| *byte == b'\n')
            .ok_or(WireError::Truncated {
                what: "bootstrap id",
                needed: 1,
                got: 0,
            })?;
        let line = std::str::from_utf8(&bytes[..end]).map_err(|_| WireError::NotUtf8 {
            what: "bootstrap id",
        })?;
        let (version, rest) = line
            .strip_prefix("faro-seat=")
            .and_then(|rest| rest.split_once(':'))
            .ok_or(WireError::BadValue {
                what: "first line of a bootstrap id, with its length",
                got: end as u64,
            })?;
        if version != BOOTSTRAP_VERSION.to_string() {
            return Err(WireError::BadValue {
                what: "version of a bootstrap id, with its length",
                got: version.len() as u64,
            });
        }
        let (member, rack) = rest.split_once(':').ok_or(WireError::BadValue {
            what: "first line of a bootstrap id, with its length",
            got: end as u64,
        })?;
        WireError::check_limit("rack", rack.len() as u64, MAX_RACK_BYTES as u64)?;
        let member = u64::from_str_radix(member, 16)
            .ok()
            .filter(|value| format!("{value:016x}") == member)
            .ok_or(WireError::BadValue {
                what: "member of a bootstrap id, with its length",
                got: member.len() as u64,
            })?;
        let card = Card::decode(&bytes[end + 1..])?;
        let rack = rack.to_owned();
        Ok(Self { member, rack, card })
    }
}
