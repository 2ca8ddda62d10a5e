//! Options of `faro perf`.

use super::PerfError;
use clap::{Subcommand, ValueEnum};
use faro_pool::PAGE_BYTES;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::time::Duration;

/// Largest transfer: with the deepest pipeline, its reads still fit the arena.
pub const MAX_TRANSFER: usize = 64 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FabricName {
    /// RDMA
    Verbs,
    /// TCP sockets
    Tcp,
    /// Shared memory of one host
    Shm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// One-sided writes into the server's memory
    Write,
    /// One-sided reads of the server's memory
    Read,
    /// Two-sided messages
    Message,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// As many transfers as --depth at once
    Bandwidth,
    /// One at a time: half of the time there and back; of a read all of it
    Latency,
}

#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "  faro perf server --fabric tcp --port 7001\n  \
    faro perf client 127.0.0.1:7001 --fabric tcp --operation write,read --mode bandwidth,latency")]
pub struct Args {
    #[command(subcommand)]
    pub side: Side,
}

#[derive(Debug, Clone, Subcommand)]
pub enum Side {
    /// Wait for clients and do what they ask for
    Server(ServerArgs),
    /// Measure against a server
    Client(ClientArgs),
}

#[derive(Debug, Clone, clap::Args)]
pub struct FabricArgs {
    /// The fabric; the same at both sides
    #[arg(long, value_name = "FABRIC")]
    pub fabric: FabricName,

    /// RDMA device, with or without a port: `mlx5_0:1` [default: the one with our address]
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,

    /// Index in the RDMA port's GID table [default: RoCE v2 with our address]
    #[arg(long, value_name = "N")]
    pub gid_index: Option<u32>,

    /// Most bytes of the memory that is registered
    #[arg(long, default_value = "256MiB", value_parser = bytes, value_name = "BYTES")]
    pub memory: u64,

    /// Do not sleep between events: lower latency, one processor
    #[arg(long)]
    pub spin: bool,
}

#[derive(Debug, Clone, clap::Args)]
pub struct ServerArgs {
    #[command(flatten)]
    pub fabric: FabricArgs,

    /// Address that clients reach (tcp, verbs)
    #[arg(long, default_value = "127.0.0.1", value_name = "IP")]
    pub bind: IpAddr,

    /// Port to listen on (tcp, verbs); 0 takes a free one
    #[arg(long, default_value = "0", value_name = "PORT")]
    pub port: u16,

    /// End after the first client instead of serving on
    #[arg(long)]
    pub once: bool,
}

#[derive(Debug, Clone, clap::Args)]
pub struct ClientArgs {
    /// What the server printed: IP:PORT, or for shm HOST/NAME
    #[arg(value_name = "LOCATION")]
    pub location: String,

    #[command(flatten)]
    pub fabric: FabricArgs,

    /// What to do
    #[arg(long, value_delimiter = ',', default_values = ["write"], value_name = "LIST")]
    pub operation: Vec<Operation>,

    /// What to measure
    #[arg(long, value_delimiter = ',', default_values = ["bandwidth"], value_name = "LIST")]
    pub mode: Vec<Mode>,

    /// Bytes of a transfer; one of more than 256 KiB is several operations
    #[arg(long, value_delimiter = ',', default_values = ["4096", "65536", "1048576"],
          value_parser = size, value_name = "LIST")]
    pub size: Vec<usize>,

    /// Transfers under way at once, for bandwidth; fewer if they are more than 64 MiB
    #[arg(long, default_value = "64", value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub depth: u32,

    /// Clients at once, each with a connection and a thread of its own; their rates are added
    #[arg(long, default_value = "1", value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=64))]
    pub clients: u32,

    /// Length of a round
    #[arg(long, default_value = "1", value_parser = seconds, value_name = "SECONDS")]
    pub seconds: Duration,

    /// Rounds of each measurement
    #[arg(long, default_value = "3", value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,

    /// Longest wait for the server
    #[arg(long, default_value = "10", value_parser = seconds, value_name = "SECONDS")]
    pub timeout: Duration,

    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

impl ClientArgs {
    /// # Errors
    /// `TooDeep`: reads that would not fit the arena.
    pub fn check(&self) -> Result<(), PerfError> {
        if !self.operation.contains(&Operation::Read) {
            return Ok(());
        }
        for &size in &self.size {
            let depth = match self.mode.contains(&Mode::Bandwidth) {
                true => deepest(size).min(self.depth as usize),
                false => 1,
            };
            // The smallest lease is a page.
            let need = (depth * size.next_multiple_of(4 << 10)) as u64;
            let memory = self.fabric.memory;
            if need > memory / 2 {
                return Err(PerfError::TooDeep {
                    size,
                    depth,
                    need,
                    memory,
                });
            }
        }
        Ok(())
    }
}

/// Operations of a transfer.
pub fn chunks(size: usize) -> usize {
    size.div_ceil(PAGE_BYTES)
}

/// Transfers of that size that a connection takes at once: a fabric's bounds on operations and on
/// bytes of one peer.
pub fn deepest(size: usize) -> usize {
    (1024 / chunks(size)).min((64 << 20) / size).max(1)
}

/// Lengths of a transfer's operations.
pub fn lengths(size: usize) -> impl Iterator<Item = usize> {
    (0..chunks(size)).map(move |at| (size - at * PAGE_BYTES).min(PAGE_BYTES))
}

/// `4096`, `64KiB`, `256MiB`.
fn bytes(text: &str) -> Result<u64, String> {
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("", 0)];
    units
        .iter()
        .find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, shift)))
        .and_then(|(number, shift)| number.parse::<u64>().ok()?.checked_mul(1 << shift))
        .ok_or_else(|| format!("{text} is no size: such as 4096, 64KiB or 256MiB"))
}

fn size(text: &str) -> Result<usize, String> {
    let bytes = bytes(text)?;
    match usize::try_from(bytes) {
        Ok(bytes) if (1..=MAX_TRANSFER).contains(&bytes) => Ok(bytes),
        _ => Err(format!("{text}: 1 to {MAX_TRANSFER} bytes are possible")),
    }
}

pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let allowed = 0.01..=3600.0;
    match text.parse::<f64>() {
        Ok(number) if allowed.contains(&number) => Ok(Duration::from_secs_f64(number)),
        _ => Err(format!("{text}: 0.01 to 3600 seconds are possible")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_is_cut_into_frames() {
        let cut = |size| lengths(size).collect::<Vec<_>>();
        assert_eq!(cut(1), [1]);
        assert_eq!(cut(PAGE_BYTES), [PAGE_BYTES]);
        assert_eq!(cut(PAGE_BYTES + 1), [PAGE_BYTES, 1]);
        assert_eq!(cut(1 << 20), [PAGE_BYTES; 4]);
    }

    #[test]
    fn sizes_and_seconds_have_bounds() {
        assert_eq!(size("64KiB"), Ok(65_536));
        assert!(size("0").is_err());
        assert!(size("65MiB").is_err_and(|error| error.contains("67108864")));
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        assert!(seconds("-1").is_err());
    }
}
