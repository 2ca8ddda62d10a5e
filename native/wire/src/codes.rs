//! Codes of a finished fetch: the fabric that carried it, and why it failed. Java has the same numbers.

/// Fabric that carried the bytes, by its number in `FabricKind`'s table (native/fabric). Java has the
/// enum `Fabric`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FabricCode(pub u32);

impl FabricCode {
    /// None: the request failed before any bytes came.
    pub const NONE: Self = Self(0);
}

/// Reason why a fetch failed. Java has the enum `FetchError`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum FetchErrorCode {
    /// No fabric reaches the peer.
    Unreachable = 1,
    /// The connection was lost, and so was that of the retry.
    ConnectionLost = 2,
    /// The request's deadline passed.
    TimedOut = 3,
    /// Bytes arrived with a wrong CRC.
    Corrupt = 4,
    /// The arena had no free memory before the wait's deadline.
    PoolExhausted = 5,
    /// The peer refused or failed the request.
    Refused = 6,
    /// The peer broke the protocol.
    Protocol = 7,
    /// This endpoint is closing.
    Closing = 8,
    /// The caller cancelled.
    Cancelled = 9,
}
