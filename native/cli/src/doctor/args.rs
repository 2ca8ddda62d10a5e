//! Options of `faro doctor`.

use crate::perf::args::FabricName;
use crate::units;
use clap::ValueEnum;
use faro_fabric::verbs::DeviceSelection;
use serde::Serialize;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

/// Smallest arena, in bytes; the lower bound of `spark.faro.memory.limit`.
const MIN_LIMIT: u64 = 32 << 20;

/// `spark.faro.fabric`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FabricSetting {
    /// RDMA if it works, otherwise TCP
    Auto,
    /// RDMA only; without RDMA, executors fail
    Verbs,
    /// TCP only; RDMA is not needed
    Tcp,
}

#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Exit codes:
  0   works: over RDMA, or over TCP on a host without an RDMA device
  1   works, but with less: its RDMA device cannot be used, blocks go over TCP; or no node service keeps map
      outputs (--socket-dir)
  2   cannot work with these settings
  64  wrong usage
  70  the doctor itself failed

On two hosts:
  host-a$ faro doctor --serve
  host-b$ faro doctor --peer host-a:7600")]
pub struct DoctorArgs {
    /// The executors' spark.faro.fabric
    #[arg(long, default_value = "auto", value_name = "FABRIC")]
    pub fabric: FabricSetting,

    /// The executors' spark.faro.memory.limit [the default here: of an executor of 1g with Spark's
    /// default overhead; an executor's log names its own]
    #[arg(long, default_value = "128m", value_parser = limit, value_name = "SIZE")]
    pub memory_limit: u64,

    /// The executors' spark.faro.verbs.device [default: the device that has --address]
    #[arg(long, value_name = "LIST")]
    pub device: Option<DeviceSelection>,

    /// The executors' spark.faro.verbs.gidIndex [default: RoCE v2 with --address]
    #[arg(long, value_name = "N")]
    pub gid_index: Option<u32>,

    /// Address of the executors on this host [default: as Spark finds it]
    #[arg(long, value_name = "IP")]
    pub address: Option<IpAddr>,

    /// Exchange blocks with another host: HOST:PORT of its `faro doctor --serve`, or tcp=HOST:PORT
    /// or verbs=HOST:PORT of its `faro perf server`
    #[arg(long, value_parser = peer, value_name = "PEER")]
    pub peer: Vec<ExchangePeer>,

    /// Serve the --peer of another host until interrupted: TCP on PORT, RDMA on PORT + 1
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "7600",
          value_parser = clap::value_parser!(u16).range(1..=65_534), conflicts_with = "peer")]
    pub serve: Option<u16>,

    /// Ask the node service whose --socket-dir this is what it keeps; the executors'
    /// spark.faro.service.directory
    #[arg(long, env = "FARO_SERVE_SOCKET_DIR", value_name = "DIR")]
    pub socket_dir: Option<PathBuf>,

    /// Longest wait for an exchange of blocks, and for the node service
    #[arg(long, default_value = "5s", value_parser = crate::perf::args::seconds,
          value_name = "TIME")]
    pub timeout: Duration,

    /// Write one file for a report of a problem: versions, this result, settings and log lines without
    /// secrets
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "serve"])]
    pub bundle: Option<PathBuf>,

    /// For --bundle: a file with Spark's settings [default: spark-defaults.conf of SPARK_CONF_DIR or
    /// SPARK_HOME]
    #[arg(long, value_name = "FILE", requires = "bundle")]
    pub settings: Vec<PathBuf>,

    /// For --bundle: a log of a driver or executor, or a directory with such
    #[arg(long, value_name = "PATH", requires = "bundle")]
    pub log: Vec<PathBuf>,

    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,

    /// Read /proc, /sys and /dev below this directory, and the addresses of interfaces from its file
    /// `addresses` (`ip -o address`); test no fabric
    #[arg(long, hide = true, default_value = "/", value_name = "DIR")]
    pub root: PathBuf,
}

/// The other side of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExchangePeer {
    /// `faro doctor --serve`: TCP on this port, RDMA on the next.
    Doctor(SocketAddr),
    /// `faro perf server`, which has one fabric.
    Server(FabricName, SocketAddr),
}

impl ExchangePeer {
    /// The fabrics to test with it, and their addresses.
    pub fn targets(&self) -> Vec<(FabricName, SocketAddr)> {
        match *self {
            Self::Doctor(tcp) => {
                let verbs = SocketAddr::new(tcp.ip(), pairing_port(tcp.port()));
                vec![(FabricName::Tcp, tcp), (FabricName::Verbs, verbs)]
            }
            Self::Server(fabric, location) => vec![(fabric, location)],
        }
    }
}

/// The TCP port on which a serving doctor sets up RDMA connections.
pub fn pairing_port(port: u16) -> u16 {
    port.saturating_add(1)
}

/// `spark.faro.memory.limit` and the like.
pub(crate) fn limit(text: &str) -> Result<u64, String> {
    units::size(text, MIN_LIMIT..=u64::MAX, "256m or 1g")
}

fn peer(text: &str) -> Result<ExchangePeer, String> {
    let (fabric, location) = match text.split_once('=') {
        Some(("tcp", location)) => (Some(FabricName::Tcp), location),
        Some(("verbs", location)) => (Some(FabricName::Verbs), location),
        Some((other, _)) => {
            return Err(format!(
                "{other} is not a fabric between hosts; allowed are tcp, verbs"
            ))
        }
        None => (None, text),
    };
    let found = location.to_socket_addrs().map_err(|error| {
        format!("{location} is not a HOST:PORT that resolves, such as 10.0.0.1:7600: {error}")
    })?;
    let found: Vec<SocketAddr> = found.collect();
    // A name often has IPv4 and IPv6 addresses; endpoint cards list IPv4 first.
    let address = found.iter().find(|a| a.is_ipv4()).or(found.first());
    let address = *address.ok_or_else(|| format!("{location} resolves to no address"))?;
    Ok(match fabric {
        Some(fabric) => ExchangePeer::Server(fabric, address),
        None => ExchangePeer::Doctor(address),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_has_a_lower_bound() {
        assert_eq!(limit("32m"), Ok(32 << 20));
        assert!(limit("31m").is_err_and(|e| e.contains("32 MiB")));
    }

    #[test]
    fn a_doctor_serves_two_fabrics() {
        let tcp: SocketAddr = "10.0.0.1:7600".parse().unwrap();
        let verbs: SocketAddr = "10.0.0.1:7601".parse().unwrap();
        let both = [(FabricName::Tcp, tcp), (FabricName::Verbs, verbs)];
        assert_eq!(peer("10.0.0.1:7600").unwrap().targets(), both);
        assert_eq!(peer("verbs=10.0.0.1:7601").unwrap().targets(), both[1..]);
        assert!(peer("shm=h:1").is_err_and(|e| e.contains("tcp, verbs")));
        assert!(peer("10.0.0.1").is_err_and(|e| e.contains("HOST:PORT")));
    }
}
