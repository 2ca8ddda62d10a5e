//! Counters of one fabric instance. Plain integers: one thread owns them.

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counters since the fabric was made.
        #[derive(Debug, Default, Clone)]
        pub(crate) struct FabricCounters { $($(#[$doc])* pub(crate) $name: u64,)* }
        impl FabricCounters {
            pub(crate) fn named(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)*]
            }
        }
    };
}

counters! {
    /// Bytes received, headers included; for shm also those copied out of peers' slabs.
    bytes_in,
    /// Bytes handed to the kernel, headers included; for shm also those that peers took from slabs
    /// of this side.
    bytes_out,
    /// Those of `bytes_out` that went from a pipe, which no thread has copied.
    piped_bytes,
    /// Complete frames received.
    frames_in,
    /// Complete frames handed to the kernel.
    frames_out,
    /// Connections that reached `Connected`.
    connected,
    /// Connections that reached `Accepted`.
    accepted,
    /// Connections that ended, in whatever phase.
    closed,
    /// Connections that ended before they were usable.
    handshakes_failed,
    /// Connections refused: at the bound, or of another user.
    connections_refused,
    /// Messages delivered.
    messages_in,
    /// Writes of peers that were taken.
    writes_in,
    /// Bytes of these writes.
    write_bytes_in,
    /// Writes of peers that were refused; their bytes were discarded.
    writes_refused,
    /// Posted writes that a peer said it refused.
    writes_refused_by_peer,
    /// Reads of peers that were served (shm serves none: its reads are one-sided).
    reads_served,
    /// Reads of peers that were refused.
    reads_refused,
    /// Operations rejected because a queue was full.
    rejected_full,
    /// Connections closed because the peer broke the protocol or a bound.
    protocol_errors,
    /// Receiving system calls.
    receive_calls,
    /// Sending system calls.
    send_calls,
    /// Waiting system calls.
    poll_calls,
    /// Slabs of peers mapped (shm).
    slabs_mapped,
}
