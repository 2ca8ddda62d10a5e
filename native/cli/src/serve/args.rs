//! Options of `faro serve`. Each is also a variable of the environment, for units and containers.

use crate::doctor::args::limit;
use crate::units;
use clap::{Subcommand, ValueEnum};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Fabrics of the endpoints that readers connect to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ServedFabric {
    /// Shared memory, RDMA and TCP, as far as they work here
    Auto,
    /// TCP only
    Tcp,
}

/// What to do in place of serving.
#[derive(Debug, Clone, Subcommand)]
pub enum ServeCommand {
    /// Show what the daemon of this host keeps: applications, map outputs, memory, loans
    Status(StatusArgs),
}

#[derive(Debug, Clone, clap::Args)]
pub struct StatusArgs {
    /// The daemon's --socket-dir
    #[arg(
        long,
        env = "FARO_SERVE_SOCKET_DIR",
        default_value = "/run/faro",
        value_name = "DIR"
    )]
    pub socket_dir: PathBuf,

    /// Print JSON
    #[arg(long)]
    pub json: bool,

    /// Time that the daemon has for its answer
    #[arg(long, default_value = "5s", value_parser = duration, value_name = "TIME")]
    pub timeout: Duration,
}

#[derive(Debug, Clone, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Executors find the service by spark.faro.service.directory, which is its --socket-dir. SIGTERM and
SIGINT end it; what it keeps stays in --data-dir for the next one, until the machine starts anew."
)]
pub struct ServeArgs {
    #[command(subcommand)]
    pub command: Option<ServeCommand>,

    /// Directory of the Unix socket that executors connect to; made if it is missing
    #[arg(
        long,
        env = "FARO_SERVE_SOCKET_DIR",
        default_value = "/run/faro",
        value_name = "DIR"
    )]
    pub socket_dir: PathBuf,

    /// Directory of the links to map outputs, on the file system of spark.local.dir; made if it is
    /// missing
    #[arg(long, env = "FARO_SERVE_DATA_DIR", required = true, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,

    /// Address that readers connect to [default: as Spark finds it]
    #[arg(long, env = "FARO_SERVE_ADDRESS", value_name = "IP")]
    pub address: Option<IpAddr>,

    /// TCP port for readers of all applications, by RDMA too; 0: any that is free
    #[arg(
        long,
        env = "FARO_SERVE_PORT",
        default_value_t = 0,
        value_name = "PORT"
    )]
    pub port: u16,

    /// How readers reach it
    #[arg(
        long,
        env = "FARO_SERVE_FABRIC",
        default_value = "auto",
        value_name = "FABRIC"
    )]
    pub fabric: ServedFabric,

    /// Most memory for blocks in transfer, of all applications together; at least 32m for each
    #[arg(long, env = "FARO_SERVE_MEMORY", default_value = "1g", value_parser = limit,
          value_name = "SIZE")]
    pub memory: u64,

    /// Most applications at a time; executors of a further one serve by themselves
    #[arg(long, env = "FARO_SERVE_APPLICATIONS", default_value_t = 16, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=256))]
    pub applications: u16,

    /// Most bytes of map outputs of each application
    #[arg(long, env = "FARO_SERVE_QUOTA", default_value = "1t", value_parser = quota,
          value_name = "SIZE")]
    pub quota: u64,

    /// Time without an executor and without a reader after which an application's outputs are
    /// removed
    #[arg(long, env = "FARO_SERVE_IDLE", default_value = "1h", value_parser = duration,
          value_name = "TIME")]
    pub idle: Duration,

    /// Most bytes a second that are copied from the services of other hosts, of all applications
    /// together
    #[arg(long, env = "FARO_SERVE_REPLICA_BANDWIDTH", default_value = "200m", value_parser = bandwidth,
          value_name = "SIZE")]
    pub replica_bandwidth: u64,

    /// User id whose executors are served, or `any` [default: the service's own]
    #[arg(long = "user", env = "FARO_SERVE_USERS", value_delimiter = ',', value_parser = user,
          value_name = "UID")]
    pub users: Vec<User>,

    /// Port for Prometheus, which asks for /metrics [default: none]
    #[arg(long, env = "FARO_SERVE_METRICS_PORT", value_name = "PORT")]
    pub metrics_port: Option<u16>,

    /// Address of that port, such as the pod's; anyone who can connect to it reads the figures
    #[arg(
        long,
        env = "FARO_SERVE_METRICS_ADDRESS",
        default_value = "127.0.0.1",
        value_name = "IP"
    )]
    pub metrics_address: IpAddr,
}

/// The user or users whose executors are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    Any,
    Id(u32),
}

fn user(text: &str) -> Result<User, String> {
    match text {
        "any" => Ok(User::Any),
        _ => text
            .parse()
            .map(User::Id)
            .map_err(|_| format!("{text} is not a user id, such as 1000, and not 'any'")),
    }
}

fn quota(text: &str) -> Result<u64, String> {
    units::size(text, 1..=u64::MAX, "500g or 1t")
}

/// Bytes each second.
fn bandwidth(text: &str) -> Result<u64, String> {
    units::size(text, 1 << 20..=u64::MAX, "200m, each second")
}

/// From a second to thirty days.
fn duration(text: &str) -> Result<Duration, String> {
    const MAX: Duration = Duration::from_secs(2_592_000);
    units::duration(text, Duration::from_secs(1)..=MAX, "90s, 10min or 1h")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_applications_stay_a_second_to_thirty_days() {
        assert_eq!(duration("10min"), Ok(Duration::from_secs(600)));
        assert_eq!(duration("30d"), Ok(Duration::from_secs(2_592_000)));
        for wrong in ["0s", "721h", "31d"] {
            assert!(duration(wrong).is_err_and(|e| e.contains("90s")), "{wrong}");
        }
    }

    #[test]
    fn users_are_ids_or_any() {
        assert_eq!(user("any"), Ok(User::Any));
        assert_eq!(user("1000"), Ok(User::Id(1000)));
        assert!(user("spark").is_err_and(|e| e.contains("1000")));
    }
}
