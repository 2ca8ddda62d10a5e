//! Options of `faro perf`.

use super::PerfError;
use crate::units;
use clap::{Subcommand, ValueEnum};
use faro_fabric::verbs::DeviceSelection;
use faro_pool::PAGE_BYTES;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::time::Duration;

/// Largest transfer, in bytes.
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
pub enum PerfOperation {
    /// One-sided writes into the server's memory
    Write,
    /// One-sided reads of the server's memory
    Read,
    /// Two-sided messages
    Message,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PerfMode {
    /// --depth transfers at once
    Bandwidth,
    /// One transfer at a time: half the round trip of a write or message, the whole time of a read
    Latency,
}

#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "  faro perf server --fabric tcp --port 7001\n  \
    faro perf client 127.0.0.1:7001 --fabric tcp --operation write,read --mode bandwidth,latency")]
pub struct PerfArgs {
    #[command(subcommand)]
    pub side: PerfSide,
}

#[derive(Debug, Clone, Subcommand)]
pub enum PerfSide {
    /// Serve clients
    Server(ServerArgs),
    /// Measure against a server
    Client(ClientArgs),
}

#[derive(Debug, Clone, clap::Args)]
pub struct FabricArgs {
    /// The fabric; the same for client and server
    #[arg(long, value_name = "FABRIC")]
    pub fabric: FabricName,

    /// RDMA devices, best first: `mlx5_0`, `mlx5_0:1` or a subnet [default: the device with the local
    /// address]
    #[arg(long, value_name = "LIST")]
    pub device: Option<DeviceSelection>,

    /// Index in the RDMA port's GID table [default: RoCE v2 with the local address]
    #[arg(long, value_name = "N")]
    pub gid_index: Option<u32>,

    /// Largest size of the registered memory
    #[arg(long, default_value = "256MiB", value_parser = bytes, value_name = "SIZE")]
    pub memory: u64,

    /// Poll without sleeping: lower latency, but it keeps one processor busy
    #[arg(long)]
    pub spin: bool,
}

#[derive(Debug, Clone, clap::Args)]
pub struct ServerArgs {
    #[command(flatten)]
    pub fabric: FabricArgs,

    /// Address to listen on (tcp, verbs)
    #[arg(long, default_value = "127.0.0.1", value_name = "IP")]
    pub bind: IpAddr,

    /// Port to listen on (tcp, verbs); 0 takes a free one
    #[arg(long, default_value = "0", value_name = "PORT")]
    pub port: u16,

    /// End when the first client, and all that came meanwhile, have left
    #[arg(long)]
    pub once: bool,
}

#[derive(Debug, Clone, clap::Args)]
pub struct ClientArgs {
    /// The location that the server printed: IP:PORT, or HOST/NAME for shm
    #[arg(value_name = "LOCATION")]
    pub location: String,

    #[command(flatten)]
    pub fabric: FabricArgs,

    /// Operations to measure
    #[arg(long, value_delimiter = ',', default_values = ["write"], value_name = "LIST")]
    pub operation: Vec<PerfOperation>,

    /// Measurements of each operation
    #[arg(long, value_delimiter = ',', default_values = ["bandwidth"], value_name = "LIST")]
    pub mode: Vec<PerfMode>,

    /// Bytes of a transfer; more than 256 KiB take several operations
    #[arg(long, value_delimiter = ',', default_values = ["4KiB", "64KiB", "1MiB"],
          value_parser = size, value_name = "LIST")]
    pub size: Vec<usize>,

    /// Transfers in flight in a bandwidth test; fewer if they exceed 64 MiB together
    #[arg(long, default_value = "64", value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub depth: u32,

    /// Number of clients, each with its own connection and thread; their rates are added
    #[arg(long, default_value = "1", value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=64))]
    pub clients: u32,

    /// Duration of a round
    #[arg(long, default_value = "1s", value_parser = seconds, value_name = "TIME")]
    pub seconds: Duration,

    /// Rounds of each measurement
    #[arg(long, default_value = "3", value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,

    /// Longest wait for the server
    #[arg(long, default_value = "10s", value_parser = seconds, value_name = "TIME")]
    pub timeout: Duration,

    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

impl ClientArgs {
    /// # Errors
    /// `TooDeep` for reads that need more than half of the memory.
    pub fn check(&self) -> Result<(), PerfError> {
        if !self.operation.contains(&PerfOperation::Read) {
            return Ok(());
        }
        for &size in &self.size {
            let depth = match self.mode.contains(&PerfMode::Bandwidth) {
                true => max_depth(size).min(self.depth as usize),
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

/// Number of operations of a transfer.
pub fn operations(size: usize) -> usize {
    size.div_ceil(PAGE_BYTES)
}

/// Most transfers of `size` bytes in flight on a connection: a fabric bounds operations and bytes of
/// each peer.
pub fn max_depth(size: usize) -> usize {
    (1024 / operations(size)).min((64 << 20) / size).max(1)
}

/// Lengths of a transfer's operations.
pub fn lengths(size: usize) -> impl Iterator<Item = usize> {
    (0..operations(size)).map(move |at| (size - at * PAGE_BYTES).min(PAGE_BYTES))
}

fn bytes(text: &str) -> Result<u64, String> {
    units::size(text, 0..=u64::MAX, "4096, 64KiB or 256MiB")
}

fn size(text: &str) -> Result<usize, String> {
    let bytes = units::size(text, 1..=MAX_TRANSFER as u64, "4096, 64KiB or 1MiB")?;
    usize::try_from(bytes).map_err(|error| error.to_string())
}

pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let allowed = Duration::from_millis(10)..=Duration::from_secs(3600);
    units::duration(text, allowed, "500ms or 10s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_is_cut_into_pages() {
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
        assert!(size("65MiB").is_err_and(|error| error.contains("64 MiB")));
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        assert!(seconds("-1").is_err());
    }
}
