//! What happens in a simulation, one thing at a time.

/// The number of a connection in the network.
pub(crate) type LinkId = u64;

/// One thing that happens. It takes no virtual time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// In the network.
    Network(NetworkStep),
    /// A progress thread takes a turn.
    Turn { site: usize },
    /// An I/O thread of a node does a task.
    Files { node: usize },
    /// A node's Java side says where map outputs are.
    Questions { node: usize },
    /// A node's caller takes completions.
    Completions { node: usize },
    /// A node's caller drops the blocks that it has held for long enough.
    Release { node: usize },
    /// What the plan has for this time.
    Plan(Action),
}

/// What happens in the network by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NetworkStep {
    /// A connection that a peer begins reaches its other end.
    Dialled(LinkId),
    /// The dialler waits no longer.
    GivenUp(LinkId),
    /// There was nobody.
    Refused(LinkId, Refusal),
    /// A packet from that end arrives.
    Arrived(LinkId, End),
    /// An end notices that its connection is lost.
    Noticed(LinkId, End),
    /// A device has taken away what a peer could write.
    LetGo { site: usize, key: u64 },
}

/// Why there is no connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Nobody,
    AnotherEndpoint,
}

/// A side of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The one that has begun it.
    Dialler,
    /// The other one.
    Acceptor,
}

impl End {
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Dialler => Self::Acceptor,
            Self::Acceptor => Self::Dialler,
        }
    }
}

/// Something that a person or a machine does at a certain time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// A caller makes a request, by its number.
    Ask(usize),
    /// It cancels it.
    Cancel(usize),
    /// A process stops, as by SIGSTOP; its kernel and its device do not.
    Sleep(usize),
    Wake(usize),
    /// The connections of two processes are lost.
    Cut(usize, usize),
    /// Others take most of an arena.
    Hog {
        node: usize,
        pages: usize,
    },
    Unhog(usize),
    /// A process ends without a word, and another one comes in its place.
    Restart(usize),
    /// The device of a process is gone.
    LoseDevice(usize),
    /// A map output was written.
    Commit {
        node: usize,
        shuffle: u32,
        map: i64,
    },
    /// A shuffle is over, everywhere.
    Forget(u32),
    /// Nothing goes wrong any more, and all that sleep wake up.
    Calm,
}
