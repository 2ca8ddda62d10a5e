//! The steps of a simulation.

/// The number of a connection in the network.
pub(crate) type LinkId = u64;

/// One step of a run. It takes no virtual time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RunStep {
    /// The network does something.
    Network(NetworkStep),
    /// A progress thread takes a turn.
    Turn { site: usize },
    /// An I/O thread of a node reads files.
    Files { node: usize },
    /// A node's Java side answers where map outputs are.
    Questions { node: usize },
    /// A node's caller takes completions.
    Completions { node: usize },
    /// A node's caller drops the blocks that it has kept for long enough.
    Release { node: usize },
    /// The plan takes an action.
    Plan(PlannedAction),
}

/// A step of the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NetworkStep {
    /// A connection that a peer begins reaches its other end.
    Dialled(LinkId),
    /// The dialler gives up.
    GivenUp(LinkId),
    /// The dialler learns that the connection was refused.
    Refused(LinkId, ConnectRefusal),
    /// A packet from that end arrives.
    Arrived(LinkId, ConnectionEnd),
    /// An end notices that its connection is lost.
    Noticed(LinkId, ConnectionEnd),
    /// A device returns revoked memory to its owner.
    LetGo { site: usize, key: u64 },
}

/// The reason that a connection was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectRefusal {
    Nobody,
    AnotherEndpoint,
}

/// An end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionEnd {
    /// The end that has begun the connection.
    Dialler,
    /// The end that accepts it.
    Acceptor,
}

impl ConnectionEnd {
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Dialler => Self::Acceptor,
            Self::Acceptor => Self::Dialler,
        }
    }
}

/// An action of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PlannedAction {
    /// A caller makes the request with this number.
    Ask(usize),
    /// A caller cancels the request with this number.
    Cancel(usize),
    /// A process stops, as by SIGSTOP; its kernel and its device go on.
    Sleep(usize),
    Wake(usize),
    /// All connections between two nodes are lost.
    Cut(usize, usize),
    /// Other users take pages of a node's arena.
    Hog {
        node: usize,
        pages: usize,
    },
    Unhog(usize),
    /// A process is killed, and another one starts in its place.
    Restart(usize),
    /// A process loses its device.
    LoseDevice(usize),
    /// A process commits a map output.
    Commit {
        node: usize,
        shuffle: u32,
        map: i64,
    },
    /// All nodes forget a shuffle.
    Forget(u32),
    /// No fault happens any more, and all sleeping processes wake up.
    Calm,
}
