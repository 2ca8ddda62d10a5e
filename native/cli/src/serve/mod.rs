//! `faro serve`: the daemon of a host that keeps map outputs.

mod args;
mod logger;
mod signals;
mod status;

pub use args::{ServeArgs, ServeCommand, ServedFabric, StatusArgs, User};

use crate::{host, units, CliError};
use faro_endpoint::FabricChoice;
use faro_service::{
    ClientError, Listener, Metrics, Options, Service, ServiceError, Users, CONNECTIONS,
};
use signals::Signals;
use std::io::Write;
use std::net::IpAddr;
use std::path::Path;

/// An error that ends the daemon.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("{0}")]
    Service(#[from] ServiceError),
    #[error("signals cannot be waited for: {0}")]
    Signals(std::io::Error),
    #[error("no --data-dir: the directory of the links to map outputs")]
    NoDataDirectory,
    #[error("{0}")]
    Status(#[from] ClientError),
}

/// Serves until SIGTERM or SIGINT, or shows what the daemon of this host keeps.
///
/// # Errors
/// Fails if the daemon cannot start or its line cannot be written.
pub fn run(args: &ServeArgs, out: &mut impl Write) -> Result<u8, CliError> {
    match (&args.command, &args.data_dir) {
        (Some(ServeCommand::Status(status)), _) => status::run(status, out),
        (None, Some(data)) => serve(args, data, out),
        (None, None) => Err(ServeError::NoDataDirectory.into()),
    }
}

fn serve(args: &ServeArgs, data: &Path, out: &mut impl Write) -> Result<u8, CliError> {
    logger::install();
    // Blocked before any thread starts, so that only this thread receives signals.
    let signals = Signals::block().map_err(ServeError::Signals)?;
    let options = options(args, data);
    let users = options.users.clone();
    let service = Service::open(options).map_err(ServeError::Service)?;
    let listener = Listener::start(&service).map_err(ServeError::Service)?;
    let metrics = args
        .metrics_port
        .map(|port| Metrics::start(service.clone(), (args.metrics_address, port).into()));
    let metrics = metrics.transpose().map_err(ServeError::Service)?;
    if let Some(metrics) = &metrics {
        log::info!("metrics at http://{}/metrics", metrics.address());
    }
    log::info!(
        "faro serve {}: socket {}, data {}, readers at {}, {} applications with {} of memory together, \
         {}",
        env!("CARGO_PKG_VERSION"),
        listener.path().display(),
        data.display(),
        service.address(),
        args.applications,
        units::show(args.memory),
        served(&users)
    );
    writeln!(out, "ready {}", listener.path().display())?;
    out.flush()?;
    let signal = signals.wait().map_err(ServeError::Signals)?;
    log::info!("{signal}: the service ends");
    drop(listener);
    let figures = service.figures();
    service.close();
    let figures = figures
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    log::info!(
        "faro serve summary: {}",
        figures.collect::<Vec<_>>().join(" ")
    );
    Ok(0)
}

fn options(args: &ServeArgs, data: &Path) -> Options {
    let address = host::address(args.address, None);
    let users: Vec<u32> = args.users.iter().filter_map(id).collect();
    Options {
        socket_directory: args.socket_dir.clone(),
        data_directory: data.to_owned(),
        bind: bind(address),
        advertise: address,
        port: args.port,
        fabric: match args.fabric {
            ServedFabric::Auto => FabricChoice::Auto,
            ServedFabric::Tcp => FabricChoice::Tcp,
        },
        memory: args.memory,
        connections: CONNECTIONS,
        applications: args.applications.into(),
        quota: args.quota,
        idle: args.idle,
        replica_bandwidth: args.replica_bandwidth,
        users: match users.is_empty() {
            _ if args.users.contains(&User::Any) => Users::Any,
            true => Users::Own,
            false => Users::These(users),
        },
    }
}

/// The users whose executors are served, for the log.
fn served(users: &Users) -> String {
    match users {
        Users::Any => "executors of all users".to_owned(),
        Users::Own => "executors of the daemon's own user".to_owned(),
        Users::These(ids) => {
            let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
            format!("executors of users {}", ids.join(", "))
        }
    }
}

fn id(user: &User) -> Option<u32> {
    match user {
        User::Any => None,
        User::Id(id) => Some(*id),
    }
}

/// Returns the address to listen on: all addresses if the announced one is not local (address
/// translation).
fn bind(address: IpAddr) -> IpAddr {
    match std::net::UdpSocket::bind((address, 0)) {
        Ok(_) => address,
        Err(_) => match address {
            IpAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
        },
    }
}
