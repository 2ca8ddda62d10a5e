//! Bounds and sizes that have no key of their own. Each says what it bounds.

use std::time::Duration;

/// Requests of this process in flight, over all peers.
pub const MAX_REQUESTS: usize = 65_536;
/// Commands of this process under way, over all peers.
pub const MAX_COMMANDS: usize = 1_024;
/// Chunks of map outputs that wait to be prefetched, over all fabrics.
pub const MAX_PREFETCHES: usize = 4_096;
/// First delay before a client that was refused with Busy asks again, unless it hears of the server before.
pub const BUSY_RETRY: Duration = Duration::from_millis(50);
/// Number of times that this delay doubles while the server refuses.
pub const MAX_BUSY_DOUBLINGS: u32 = 3;
/// Longest such time that a client accepts.
pub const MAX_BUSY_RETRY: Duration = Duration::from_secs(1);
/// Maximum number of exposed pages that a server revokes in one tick when the arena is short.
pub const RECALLED_PAGES: usize = 64;
/// Remote buffers a server keeps for one request.
pub const MAX_BUFFERS_HELD: usize = 8_192;
/// Bytes of buffers a client has outstanding for one request: enough to cover the
/// bandwidth-delay product of 100 Gb/s at 500 us, little enough that requests share an arena.
pub const BUFFER_WINDOW_BYTES: u64 = 8 << 20;
/// The part of the arena that pages on their way to one peer may take.
pub const PEER_SHARE: u64 = 32;
/// The part of what is free of the arena that they may take: the more peers take no bytes, the less each further
/// one may hold.
pub const PEER_SHARE_OF_FREE: u64 = 8;
/// Buffers filled in one turn of an I/O thread (1 MiB of pages: fits a core's cache).
pub const TURN_BUFFERS: usize = 4;
/// Maximum number of a request's posted writes; with more, its next turn waits.
pub const WRITE_WINDOW: usize = 8;
/// Blocks of a request that a progress thread serves by itself if their bytes are in memory:
/// less work than to hand the request to an I/O thread and back.
pub const AT_ONCE_BLOCKS: usize = 32;
/// Bytes of such a request.
pub const AT_ONCE_BYTES: u64 = 64 << 10;
/// Mean length, in bytes, from which on the blocks of a reply are sent from the page cache by a pipe.
pub const PIPED_MEAN_BYTES: u64 = 32 << 10;
/// Bytes in pipes that are on their way to one peer: a few turns, as they only wait for the socket.
pub const PIPED_SHARE: u64 = 2 << 20;
/// Fewer bytes of a page of the chunk cache are copied, which costs less than to hold the page until they have arrived.
pub const SENT_FROM_CACHE_BYTES: usize = 4 << 10;
/// Replies from this size on may be offered to the client to read, if the chunk cache has all of
/// it, in slices of `READ_OFFER_MEAN_BYTES` on average. A read takes one round trip more than a write.
pub const READ_OFFER_BYTES: u64 = 64 << 10;
/// Minimum mean length of the slices of a read offer, in bytes.
pub const READ_OFFER_MEAN_BYTES: u64 = 16 << 10;
/// Bytes that a client pulls at a time; their versions are read with one read.
pub const PULL_WINDOW_BYTES: u64 = 4 << 20;
/// Pages that one peer may read at most.
pub const MAX_EXPOSED: usize = 4_096;
/// Lines of the log in a minute about connections that have ended: a peer can end as many as it likes.
pub const ENDED_LINES: u32 = 16;
/// Interval at which deadlines are checked.
pub const TICK: Duration = Duration::from_millis(50);
/// Longest sleep of an idle progress thread.
pub const IDLE: Duration = Duration::from_secs(1);
/// Time that connecting may take where another fabric or another address is tried afterwards.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Time that it may take at the last or only address of the last or only fabric. Of TCP a lost first packet is sent
/// again after 1 s, 3 s and 7 s.
pub const LAST_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Addresses of one peer that are tried by one fabric.
pub const MAX_LOCATIONS: usize = 4;
/// Time for which a request without any buffer waits for the arena while no memory returns to it and fewer than
/// `MEMORY_WAIT_BYTES` arrive for others. While they do arrive, it waits until its timeout.
pub const MEMORY_WAIT: Duration = Duration::from_secs(5);
/// Bytes of blocks that must arrive in each `MEMORY_WAIT`: those that hold the arena are then about to return it.
pub const MEMORY_WAIT_BYTES: u64 = 4 << 20;
/// Time without memory returning to the arena until requests that hold parts of blocks, and wait for more memory, give
/// them up.
pub const RELIEF_WAIT: Duration = Duration::from_millis(500);
/// Time for which, in a shortage, a server with buffers to write into may be silent until they are taken from it.
pub const SILENCE_IN_SHORTAGE: Duration = Duration::from_secs(2);
/// Back-off of a route after its first failure; doubles up to `BACKOFF_MAX`.
pub const BACKOFF_MIN: Duration = Duration::from_secs(2);
/// Longest back-off of a route.
pub const BACKOFF_MAX: Duration = Duration::from_secs(60);
/// Back-off of a peer after a request to it failed on all its routes; doubles up to `PEER_BACKOFF_MAX`.
pub const PEER_BACKOFF_MIN: Duration = Duration::from_secs(10);
/// Longest back-off of a peer.
pub const PEER_BACKOFF_MAX: Duration = Duration::from_secs(60);
/// Time for which a peer is remembered that is asked for nothing.
pub const PEER_IDLE: Duration = Duration::from_secs(3_600);
/// Map outputs whose paths Java was asked for and has not answered.
pub const MAX_UNRESOLVED: usize = 65_536;
/// Maximum number of these questions that one peer asks: no peer takes the places of the others.
pub const MAX_UNRESOLVED_OF_PEER: usize = MAX_UNRESOLVED / 8;
/// Open connections of one fabric that one peer has made; it needs one.
pub const MAX_CONNECTIONS_OF_PEER: usize = 64;
/// Maximum number of connections of one fabric that were made by peers whose cards this endpoint does not have: half of
/// all that a fabric takes.
pub const MAX_UNKNOWN_PEER_CONNECTIONS: usize = 2_048;
/// Maximum bytes of memory for the paths and identities of map outputs, and, separately, for offset
/// tables. Each is also at most an eighth of the arena.
pub const MAX_KNOWN_BYTES: u64 = 64 << 20;
/// Index files up to this size are read as a whole; of larger ones the two offsets that are needed,
/// until they are needed often.
pub const SMALL_INDEX_BYTES: u64 = 8 << 10;
/// Open files of map outputs are at most a quarter of what the process may open (`RLIMIT_NOFILE`),
/// and between these.
pub const OPEN_FILES: std::ops::RangeInclusive<usize> = 64..=65_536;
/// Open files of map outputs that one sweep looks at, once per `TICK` at most.
pub const SWEPT_FILES: usize = 256;
/// Times that a request looks its files up again because one of them was replaced or deleted.
pub const MAX_LOOKUPS: u8 = 4;
