//! `FAILED`: the end of a request that did not succeed.
//!
//! ```text
//!  0 u32 code
//!  4 u32 retry_ms     when to ask again; 0 unless the code is BUSY
//!  8 u32 length of the detail, in bytes
//! 12 detail, UTF-8
//! ```

use super::body::{put_detail, put_u32, BodyReader};
use super::MAX_DETAIL_BYTES;
use crate::WireError;

coded! {
    /// Reason why a server ended a request.
    pub enum FailureCode: "failure code" {
        /// The client sent `CANCEL`.
        Cancelled = 1,
        /// The server holds as many requests as it can. The client asks again after `retry_ms`.
        Busy = 2,
        /// The request's deadline passed at the server.
        DeadlinePassed = 3,
        /// A fault of the server, named in the detail.
        Internal = 4,
        /// The server is shutting down.
        Closing = 5,
    }
}

/// `FAILED`: 12-byte head (code, retry, detail length), detail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// Cause.
    pub code: FailureCode,
    /// Milliseconds after which the client should ask again; zero: it should not.
    pub retry_ms: u32,
    /// Text for people; `encode` cuts it at [`MAX_DETAIL_BYTES`].
    pub detail: String,
}

impl Failed {
    /// Returns the body's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(12 + self.detail.len().min(MAX_DETAIL_BYTES));
        put_u32(&mut out, self.code as usize);
        put_u32(&mut out, self.retry_ms as usize);
        put_detail(&mut out, &self.detail);
        out
    }

    /// Reads a body.
    ///
    /// # Errors
    /// `Truncated`, `Trailing`, `TooLarge`, `NotUtf8`; `BadValue` for an unknown code.
    pub fn decode(body: &[u8]) -> Result<Self, WireError> {
        let mut body = BodyReader::new("FAILED", body);
        let code = FailureCode::try_from(body.u32()?)?;
        let retry_ms = body.u32()?;
        if retry_ms > 0 && code != FailureCode::Busy {
            return Err(WireError::BadValue {
                what: "retry of FAILED (its code is not BUSY)",
                got: u64::from(retry_ms),
            });
        }
        let detail = body.detail("FAILED detail")?;
        body.end()?;
        Ok(Self {
            code,
            retry_ms,
            detail,
        })
    }
}
