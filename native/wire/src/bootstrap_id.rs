//! The bootstrap id: what the members of a team must know of each other before they can connect.
//!
//! It is one line before the endpoint's card, as text like the card: two languages pass it on, and
//! Spark's barrier carries strings.
//!
//! ```text
//! faro-seat=1:0123456789abcdef      version of this line, member
//! faro-card=1
//! ...
//! ```

use crate::{Card, WireError};

/// Version of the first line.
pub const BOOTSTRAP_VERSION: u32 = 1;

/// A member of a team and the endpoint that it is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootstrapId {
    /// Random number of the member. Only its team knows it, so only its team can address it.
    pub member: u64,
    /// The member's endpoint.
    pub card: Card,
}

impl BootstrapId {
    /// Returns the text's bytes in UTF-8.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes =
            format!("faro-seat={BOOTSTRAP_VERSION}:{:016x}\n", self.member).into_bytes();
        bytes.extend(self.card.encode());
        bytes
    }

    /// Reads the text.
    ///
    /// # Errors
    /// Those of [`Card::decode`]; `Truncated` without a first line, `BadValue` for another version
    /// or a member that is not 16 lower-case hex digits.
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
        let (version, member) = line
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
        let member = u64::from_str_radix(member, 16)
            .ok()
            .filter(|value| format!("{value:016x}") == member)
            .ok_or(WireError::BadValue {
                what: "member of a bootstrap id, with its length",
                got: member.len() as u64,
            })?;
        let card = Card::decode(&bytes[end + 1..])?;
        Ok(Self { member, card })
    }
}
