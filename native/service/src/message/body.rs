//! The fields of a message: how each is written and read, which values it may have, and the error of any other.

use faro_wire::{VersionGap, VersionRange};
use thiserror::Error;

/// The versions of the layouts of requests and answers that this build speaks: its own and the one before, from the first one on
/// that another version works with.
pub const VERSIONS: VersionRange = VersionRange::new(4, 4);
/// The longest message; a card takes up to 4 KiB.
pub const MAX_MESSAGE: usize = 8 << 10;
/// Most map outputs of a LEND.
pub const MAX_LEND: usize = 1_000;
/// The longest id of an application or an executor.
const MAX_NAME: usize = 255;
const MAGIC: &[u8; 4] = b"faro";
/// The first version whose hello names a range.
const FIRST_RANGE: u16 = 4;

/// Why bytes are no message.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MessageError {
    #[error("a message of kind {got}, which version {VERSIONS} does not have")]
    Kind { got: u8 },
    #[error(
        "the executor's jar speaks version {} of the node service's protocol and this daemon {}: upgrade the {} first",
        .0.peer, .0.own, if .0.is_peer_older() { "jar" } else { "daemon" }
    )]
    Version(VersionGap),
    #[error("a hello that does not begin with 'faro'")]
    Magic,
    #[error("a message that ends within '{what}'")]
    Short { what: &'static str },
    #[error("{what} of {got} bytes, allowed: {allowed}")]
    Length {
        what: &'static str,
        got: usize,
        allowed: &'static str,
    },
    #[error("{what} is {got}, allowed: {allowed}")]
    Value {
        what: &'static str,
        got: u64,
        allowed: &'static str,
    },
    #[error("{what} is not text")]
    NotText { what: &'static str },
    #[error("{got} bytes after the end of a message")]
    Long { got: usize },
}

/// Appends a text or bytes: the length, then as many bytes.
pub(crate) fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    // A message that is too long is refused when it is sent.
    let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&bytes[..usize::from(length)]);
}

pub(super) fn put_versions(out: &mut Vec<u8>, offered: VersionRange) {
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&offered.oldest.to_le_bytes());
    out.extend_from_slice(&offered.newest.to_le_bytes());
}

/// The rest of a message that is not read yet.
pub(crate) struct Body<'a>(pub(crate) &'a [u8]);

impl<'a> Body<'a> {
    fn take(&mut self, what: &'static str, bytes: usize) -> Result<&'a [u8], MessageError> {
        let (front, rest) = self
            .0
            .split_at_checked(bytes)
            .ok_or(MessageError::Short { what })?;
        self.0 = rest;
        Ok(front)
    }

    pub(super) fn array<const N: usize>(
        &mut self,
        what: &'static str,
    ) -> Result<[u8; N], MessageError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(what, N)?);
        Ok(array)
    }

    pub(crate) fn u8(&mut self, what: &'static str) -> Result<u8, MessageError> {
        Ok(self.array::<1>(what)?[0])
    }

    pub(super) fn flag(&mut self, what: &'static str) -> Result<bool, MessageError> {
        match self.u8(what)? {
            0 => Ok(false),
            1 => Ok(true),
            got => Err(MessageError::Value {
                what,
                got: got.into(),
                allowed: "0 or 1",
            }),
        }
    }

    /// Spark counts shuffles from 0 as an `Int`.
    pub(super) fn shuffle(&mut self) -> Result<u32, MessageError> {
        let got = u32::from_le_bytes(self.array("shuffle")?);
        match i32::try_from(got) {
            Ok(_) => Ok(got),
            Err(_) => Err(MessageError::Value {
                what: "shuffle",
                got: got.into(),
                allowed: "0 to 2147483647",
            }),
        }
    }

    /// Spark takes the attempt's id, which counts from 0.
    pub(super) fn map(&mut self) -> Result<i64, MessageError> {
        let got = i64::from_le_bytes(self.array("map")?);
        match got {
            0.. => Ok(got),
            _ => Err(MessageError::Value {
                what: "map",
                got: got as u64,
                allowed: "0 to 9223372036854775807",
            }),
        }
    }

    pub(super) fn count(
        &mut self,
        max: usize,
        allowed: &'static str,
    ) -> Result<usize, MessageError> {
        let got = usize::from(u16::from_le_bytes(self.array("count")?));
        match got {
            got if (1..=max).contains(&got) => Ok(got),
            got => Err(MessageError::Value {
                what: "the number of map outputs",
                got: got as u64,
                allowed,
            }),
        }
    }

    pub(super) fn bytes(
        &mut self,
        what: &'static str,
        max: usize,
        allowed: &'static str,
    ) -> Result<&'a [u8], MessageError> {
        let got = usize::from(u16::from_le_bytes(self.array(what)?));
        if got > max {
            return Err(MessageError::Length { what, got, allowed });
        }
        self.take(what, got)
    }

    pub(crate) fn u16(&mut self, what: &'static str) -> Result<u16, MessageError> {
        Ok(u16::from_le_bytes(self.array(what)?))
    }

    pub(crate) fn u32(&mut self, what: &'static str) -> Result<u32, MessageError> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    pub(crate) fn u64(&mut self, what: &'static str) -> Result<u64, MessageError> {
        Ok(u64::from_le_bytes(self.array(what)?))
    }

    pub(crate) fn name(&mut self, what: &'static str) -> Result<String, MessageError> {
        let bytes = self.bytes(what, MAX_NAME, "1 to 255")?;
        let text = std::str::from_utf8(bytes).map_err(|_| MessageError::NotText { what })?;
        if text.is_empty() {
            let got = 0;
            let allowed = "1 to 255";
            return Err(MessageError::Length { what, got, allowed });
        }
        if text.chars().any(char::is_control) {
            return Err(MessageError::NotText { what });
        }
        Ok(text.to_owned())
    }

    /// Returns the versions that the other side speaks; one of them is this side's.
    pub(super) fn versions(&mut self) -> Result<VersionRange, MessageError> {
        if &self.array::<4>("hello")? != MAGIC {
            return Err(MessageError::Magic);
        }
        let oldest = self.u16("version")?;
        // Before version 4 a hello had one version only.
        let newest = match oldest {
            ..FIRST_RANGE => oldest,
            _ => self.u16("version")?,
        };
        let offered = VersionRange::new(oldest, newest);
        let common = VERSIONS.spoken().common(offered);
        common.map_err(MessageError::Version)?;
        Ok(offered)
    }

    /// Returns the version that the service has chosen.
    pub(super) fn version(&mut self) -> Result<u16, MessageError> {
        let got = self.u16("version")?;
        match VERSIONS.spoken().has(got) {
            true => Ok(got),
            false => Err(MessageError::Value {
                what: "the version of the service",
                got: got.into(),
                allowed: "one that was offered",
            }),
        }
    }

    pub(crate) fn end(&self) -> Result<(), MessageError> {
        match self.0.len() {
            0 => Ok(()),
            got => Err(MessageError::Long { got }),
        }
    }
}
