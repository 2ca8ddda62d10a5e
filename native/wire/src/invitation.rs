//! The invitation: what the members of a team tell each other before they can reach each other.
//!
//! One line before the endpoint's card, as text for the same reasons (`card.rs`): two languages
//! pass it on, and Spark's rendezvous carries strings.
//!
//! ```text
//! faro-seat=1:0123456789abcdef      version of this line, seat
//! faro-card=1
//! ...
//! ```

use crate::{Card, WireError};

/// Version of the first line.
pub const INVITATION_VERSION: u32 = 1;

/// A seat and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootstrapId {
    /// Random, and so known to the team's members only.
    pub seat: u64,
    /// The endpoint that the seat is on.
    pub card: Card,
}

impl BootstrapId {
    /// The invitation's bytes: UTF-8.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = format!("faro-seat={INVITATION_VERSION}:{:016x}\n", self.seat).into_bytes();
        bytes.extend(self.card.encode());
        bytes
    }

    /// Reads an invitation.
    ///
    /// # Errors
    /// Those of [`Card::decode`]; `Truncated` without a first line, `BadValue` for another version
    /// or a seat that is not 16 lower-case hex digits.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let end = bytes
            .iter()
            .position(|byte| *byte == b'\n')
            .ok_or(WireError::Truncated {
                what: "invitation",
                needed: 1,
                got: 0,
            })?;
        let line = std::str::from_utf8(&bytes[..end])
            .map_err(|_| WireError::NotUtf8 { what: "invitation" })?;
        let (version, seat) = line
            .strip_prefix("faro-seat=")
            .and_then(|rest| rest.split_once(':'))
            .ok_or(WireError::BadValue {
                what: "first line of an invitation, with its length",
                got: end as u64,
            })?;
        if version != INVITATION_VERSION.to_string() {
            return Err(WireError::BadValue {
                what: "version of an invitation, with its length",
                got: version.len() as u64,
            });
        }
        let seat = u64::from_str_radix(seat, 16)
            .ok()
            .filter(|value| format!("{value:016x}") == seat)
            .ok_or(WireError::BadValue {
                what: "seat of an invitation, with its length",
                got: seat.len() as u64,
            })?;
        let card = Card::decode(&bytes[end + 1..])?;
        Ok(Self { seat, card })
    }
}
