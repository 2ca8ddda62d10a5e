//! Options of `faro sim`, with defaults and units.

use super::units;
use clap::ValueEnum;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PolicyName {
    /// Groups of an affine plane, at most about √N peers at once
    Grouped,
    /// A ring: each round another distance to the server; as many peers at once as grouped
    Rotated,
    /// Stock Spark: a random order for each client, bounded only by bytes in flight
    Random,
    /// The same order for all clients, bounded only by bytes in flight
    Sequential,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Overflow {
    /// The window is lost and sent again after the retransmission timeout (incast collapse)
    Drop,
    /// The sender's whole port pauses until the buffer has room, as with priority flow control
    Pause,
    /// Buffers are unbounded: no incast
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    Read,
    Write,
}

#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "The model, its limits and results: docs/design/scaling.md")]
pub struct SimArgs {
    /// Number of endpoints (executors), each reading from every other one
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=4096))]
    pub endpoints: u32,

    /// Policies to compare
    #[arg(long, value_delimiter = ',', value_name = "LIST",
          default_values = ["grouped", "rotated", "random", "sequential"])]
    pub policies: Vec<PolicyName>,

    /// Bytes that each endpoint reads from all others together, on average
    #[arg(long, default_value = "256MiB", value_parser = units::bytes, value_name = "SIZE")]
    pub bytes_per_endpoint: u64,

    /// Rate of each endpoint's link, in each direction
    #[arg(long, default_value = "100Gbps", value_parser = units::rate, value_name = "RATE")]
    pub link: u64,

    /// Time from a request to the first byte of the answer on an idle network
    #[arg(long, default_value = "5us", value_parser = units::time, value_name = "TIME")]
    pub latency: u64,

    /// Window of a connection: bytes that one server may have in the network towards one client
    #[arg(long, default_value = "64KiB", value_parser = units::window, value_name = "SIZE")]
    pub window: u64,

    /// Window of a connection after a timeout; it doubles with each window that arrives
    #[arg(long, default_value = "4KiB", value_parser = units::window, value_name = "SIZE")]
    pub packet: u64,

    /// Buffer of one output port of the switch
    #[arg(long, default_value = "1MiB", value_parser = units::bytes, value_name = "SIZE")]
    pub buffer: u64,

    /// Behaviour when a port's buffer is full
    #[arg(long, default_value = "drop", value_name = "WHAT")]
    pub overflow: Overflow,

    /// Retransmission timeout after a lost window; verbs: 4.096 us x 2^14, Linux TCP: 200 ms or less
    #[arg(long, default_value = "67ms", value_parser = units::time, value_name = "TIME")]
    pub rto: u64,

    /// Bytes that one client may have requested and not received, for all policies: Spark's
    /// spark.reducer.maxSizeInFlight times the tasks that fetch at once
    #[arg(long, default_value = "48MiB", value_parser = units::bytes, value_name = "SIZE")]
    pub in_flight: u64,

    /// Peers that a client of grouped or rotated reads from at once [default: the schedule's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4095))]
    pub max_peers: Option<u32>,

    /// Time to post one request
    #[arg(long, default_value = "200ns", value_parser = units::time, value_name = "TIME")]
    pub post: u64,

    /// Bytes of one NIC operation; the NIC's rate depends on operations and active queue pairs
    #[arg(long, default_value = "4KiB", value_parser = units::bytes, value_name = "SIZE")]
    pub op_size: u64,

    /// The published ConnectX-6 curve that limits the rate of operations
    #[arg(long, default_value = "read", value_name = "VERB")]
    pub verb: Verb,

    /// Queue pairs (connections) to each peer
    #[arg(long, default_value = "1", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub qps_per_peer: u32,

    /// Share of endpoints with a slower link
    #[arg(long, default_value = "0", value_parser = units::fraction, value_name = "SHARE")]
    pub stragglers: f64,

    /// Factor by which a straggler's link is slower
    #[arg(long, default_value = "4", value_parser = units::factor, value_name = "FACTOR")]
    pub slowdown: f64,

    /// Skew of the bytes of each pair: sigma of a lognormal distribution
    #[arg(long, default_value = "0", value_parser = units::sigma, value_name = "SIGMA")]
    pub pair_skew: f64,

    /// Skew of the bytes that each client reads (hot partitions): sigma of a lognormal distribution
    #[arg(long, default_value = "0", value_parser = units::sigma, value_name = "SIGMA")]
    pub reader_skew: f64,

    /// Clients start at random times within this time
    #[arg(long, default_value = "1ms", value_parser = units::time, value_name = "TIME")]
    pub jitter: u64,

    /// Seed of all random choices; the same seed gives the same result
    #[arg(long, default_value = "1", value_name = "N")]
    pub seed: u64,

    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,

    /// Print the groups of each round instead of simulating
    #[arg(long, conflicts_with = "policies")]
    pub groups: bool,
}
