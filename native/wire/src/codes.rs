//! Codes of a finished fetch: the fabric that carried it, and why it failed. Java has the same numbers.

/// Fabric that carried the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum FabricCode {
    /// None: the request failed before any bytes came.
    None = 0,
    /// TCP.
    Tcp = 1,
    /// Shared memory of one host.
    Shm = 2,
    /// RDMA.
    Verbs = 3,
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
