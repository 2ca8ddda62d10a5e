//! The fabric and memory of a client or a server.

use super::args::{FabricArgs, FabricName};
use super::PerfError;
use faro_fabric::shm::{ShmConfig, ShmFabric};
use faro_fabric::tcp::{TcpConfig, TcpFabric};
use faro_fabric::verbs::{VerbsConfig, VerbsFabric, VerbsOptions};
use faro_fabric::{
    ConnectionId, EndpointId, Exposure, Fabric, OwnIdentity, RejectedPost, RemoteRange,
};
use faro_pool::{Lease, Pool, Purpose, PAGE_BYTES};
use faro_secure::Protection;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

/// Longest wait of one `poll`; deadlines are checked after it.
const POLL_WAIT: Duration = Duration::from_millis(100);

pub struct PerfSite {
    pub fabric: Box<dyn Fabric>,
    pub pool: Arc<Pool>,
    /// Longest wait of one `poll`.
    pub poll_wait: Duration,
}

impl PerfSite {
    pub fn open(
        args: &FabricArgs,
        bind: SocketAddr,
        endpoint: EndpointId,
    ) -> Result<Self, PerfError> {
        let pool = Pool::new(args.memory)?;
        let owned = Arc::clone(&pool);
        let advertise = String::new();
        let fabric: Box<dyn Fabric> = match args.fabric {
            FabricName::Shm => Box::new(ShmFabric::new(ShmConfig {
                identity: OwnIdentity::public(endpoint),
                protection: Protection::Clear,
                pool: owned,
            })?),
            FabricName::Tcp => Box::new(TcpFabric::new(TcpConfig {
                bind,
                advertise,
                identity: OwnIdentity::public(endpoint),
                protection: Protection::Clear,
                pool: owned,
            })?),
            FabricName::Verbs => Box::new(VerbsFabric::new(VerbsConfig {
                bind,
                advertise,
                identity: OwnIdentity::public(endpoint),
                protection: Protection::Clear,
                pool: owned,
                options: VerbsOptions {
                    device: args.device.clone(),
                    gid_index: args.gid_index,
                    ..VerbsOptions::default()
                },
            })?),
        };
        let poll_wait = if args.spin { Duration::ZERO } else { POLL_WAIT };
        Ok(Self {
            fabric,
            pool,
            poll_wait,
        })
    }

    /// A lease of at most a page; every byte of it is written once.
    pub fn lease(&self, bytes: usize) -> Result<Lease, PerfError> {
        let mut lease = self.pool.try_lease(bytes.min(PAGE_BYTES), Purpose::Read)?;
        lease.bytes_mut().fill(0x5a);
        Ok(lease)
    }

    pub fn expose(
        &mut self,
        connection: ConnectionId,
        exposure: Exposure,
    ) -> Result<RemoteRange, PerfError> {
        self.fabric
            .expose(connection, exposure)
            .map_err(|rejected| not_accepted("an exposure", &rejected))
    }
}

pub fn not_accepted<T>(what: &'static str, rejected: &RejectedPost<T>) -> PerfError {
    let why = match rejected {
        RejectedPost::Full(_) => "the queue is full".to_owned(),
        RejectedPost::NotConnected(_, connection) => {
            format!("connection {} is not open", connection.0)
        }
        RejectedPost::TooLarge(_, max) => format!("it is longer than {max} bytes"),
    };
    PerfError::Rejected { what, why }
}

/// Returns this host's address on the route to `location`, which also selects the RDMA device.
pub fn local_address(fabric: FabricName, location: &str) -> Result<SocketAddr, PerfError> {
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    if fabric == FabricName::Shm {
        return Ok(loopback);
    }
    let bad = || PerfError::Location {
        location: location.to_owned(),
    };
    let target: SocketAddr = location.parse().map_err(|_| bad())?;
    let any: IpAddr = match target {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    let route = |source| PerfError::Route { target, source };
    let socket = UdpSocket::bind((any, 0)).map_err(route)?;
    socket.connect(target).map_err(route)?;
    let address = socket.local_addr().map_err(route)?;
    Ok(SocketAddr::new(address.ip(), 0))
}
