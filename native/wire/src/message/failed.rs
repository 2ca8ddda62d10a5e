//! `FAILED`: the end of a request that did not succeed.
//!
//! ```text
//!  0 u32 code
//!  4 u32 length of the detail, in bytes
//!  8 detail, UTF-8
//! ```

use super::body::{put_u32, Body};
use super::MAX_DETAIL_BYTES;
use crate::WireError;

coded! {
    /// Why a server ended a request.
    pub enum FailureCode: "failure code" {
        /// The client sent `CANCEL`.
        Cancelled = 1,
        /// The server holds as many requests as it can; try again later.
        Busy = 2,
        /// The request's deadline passed at the server.
        DeadlinePassed = 3,
        /// A fault of the server, named in the detail.
        Internal = 4,
        /// The server is shutting down.
        Closing = 5,
    }
}

/// `FAILED`: 8-byte head (code, detail length), detail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// Cause.
    pub code: FailureCode,
    /// Text for people; `encode` cuts it at [`MAX_DETAIL_BYTES`].
    pub detail: String,
}

impl Failed {
    /// The body's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut end = self.detail.len().min(MAX_DETAIL_BYTES);
        while !self.detail.is_char_boundary(end) {
            end -= 1;
        }
        let detail = &self.detail[..end];
        let mut out = Vec::with_capacity(8 + detail.len());
        put_u32(&mut out, self.code as usize);
        put_u32(&mut out, detail.len());
        out.extend_from_slice(detail.as_bytes());
        out
    }

    /// Reads a body.
    ///
    /// # Errors
    /// `Truncated`, `Trailing`, `TooLarge`, `NotUtf8`; `BadValue` for an unknown code.
    pub fn decode(body: &[u8]) -> Result<Self, WireError> {
        let mut body = Body::new("FAILED", body);
        let code = FailureCode::try_from(body.u32()?)?;
        let length = body.count("FAILED detail", MAX_DETAIL_BYTES as u32)?;
        let detail = std::str::from_utf8(body.bytes(length)?)
            .map_err(|_| WireError::NotUtf8 {
                what: "FAILED detail",
            })?
            .to_owned();
        body.end()?;
        Ok(Self { code, detail })
    }
}
