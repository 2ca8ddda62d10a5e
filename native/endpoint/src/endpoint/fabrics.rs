//! Opening an endpoint's fabrics.

use super::EndpointError;
use crate::config::{Config, FabricChoice};
use faro_fabric::diagnose::{Host, SettingNames};
use faro_fabric::shm::{ShmConfig, ShmFabric};
use faro_fabric::tcp::{Bounds, TcpConfig, TcpFabric};
use faro_fabric::verbs::{VerbsConfig, VerbsFabric};
use faro_fabric::{Fabric, FabricError, FabricKind, OwnIdentity};
use faro_pool::Pool;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

/// Fabrics of an endpoint, best first.
pub(crate) type Fabrics = Vec<Box<dyn Fabric>>;

/// Ports after the configured one that RDMA's control channel tries.
const CONTROL_PORTS: u16 = 32;

/// Opens the fabrics, the best first. With `Auto`, a fabric that does not work on this host is left
/// out; TCP must work.
pub(super) fn open_fabrics(
    config: &Config,
    identity: &OwnIdentity,
    pool: &Arc<Pool>,
) -> Result<Fabrics, EndpointError> {
    let mut fabrics: Fabrics = Vec::new();
    for kind in FabricKind::BEST_FIRST {
        if !config.fabric.opens(kind) {
            continue;
        }
        match open_fabric(kind, config, identity, pool) {
            Ok(fabric) => fabrics.push(fabric),
            Err(error) if config.fabric == FabricChoice::Auto && kind != FabricKind::Tcp => {
                tell_left_out(kind, config, &error);
            }
            Err(error) => return Err(fault(kind.name(), &error)),
        }
    }
    #[cfg(feature = "faults")]
    let fabrics = fabrics
        .into_iter()
        .map(|fabric| crate::faults::wrap(fabric, pool))
        .collect();
    Ok(fabrics)
}

fn open_fabric(
    kind: FabricKind,
    config: &Config,
    identity: &OwnIdentity,
    pool: &Arc<Pool>,
) -> Result<Box<dyn Fabric>, FabricError> {
    let protection = config.security.protection;
    Ok(match kind {
        FabricKind::Shm => Box::new(ShmFabric::new(ShmConfig {
            identity: identity.clone(),
            protection,
            pool: Arc::clone(pool),
        })?),
        FabricKind::Verbs => Box::new(open_verbs(config, identity, pool)?),
        FabricKind::Tcp => Box::new(open_tcp(config, identity, pool)?),
    })
}

fn open_tcp(
    config: &Config,
    identity: &OwnIdentity,
    pool: &Arc<Pool>,
) -> Result<TcpFabric, FabricError> {
    let tcp = TcpConfig {
        bind: SocketAddr::new(config.bind, config.port),
        advertise: config.advertise.to_string(),
        identity: identity.clone(),
        protection: config.security.protection,
        pool: Arc::clone(pool),
    };
    match &config.shared_port {
        Some(port) => TcpFabric::behind(port, tcp, Bounds::default()),
        None => TcpFabric::new(tcp),
    }
}

/// Writes the log line of a fabric that does not work on this host.
fn tell_left_out(kind: FabricKind, config: &Config, error: &FabricError) {
    match error {
        _ if kind != FabricKind::Verbs => {
            log::info!("{} fabric is not available: {error}", kind.name());
        }
        FabricError::Unavailable { absent: true, .. } => log::info!("{error}; TCP is used"),
        // There is a device, and the user will wonder why it is idle.
        _ => {
            let error = error.to_string();
            let also = host(config).also(&error);
            log::warn!("{error}{also}; TCP is used until then, `faro doctor` tells more");
        }
    }
}

/// Describes this host for the checks that `faro doctor` makes too.
fn host(config: &Config) -> Host<'_> {
    Host {
        root: Path::new("/"),
        options: &config.verbs,
        near: config.advertise,
        memory_limit: config.memory_limit,
        // For commands, which the log does not print.
        names: SettingNames::default(),
    }
}

/// Opens the RDMA fabric. TCP has the configured port, so RDMA's control channel takes the next
/// free one; behind a shared port both have the same.
fn open_verbs(
    config: &Config,
    identity: &OwnIdentity,
    pool: &Arc<Pool>,
) -> Result<VerbsFabric, FabricError> {
    let verbs = |port| VerbsConfig {
        bind: SocketAddr::new(config.bind, port),
        advertise: config.advertise.to_string(),
        identity: identity.clone(),
        protection: config.security.protection,
        pool: Arc::clone(pool),
        options: config.verbs.clone(),
    };
    if let Some(port) = &config.shared_port {
        return VerbsFabric::behind(port, verbs(0));
    }
    let open = |port| VerbsFabric::new(verbs(port));
    if config.port == 0 {
        return open(0);
    }
    let last = config.port.saturating_add(CONTROL_PORTS);
    let mut port = config.port.saturating_add(1);
    loop {
        match open(port) {
            Err(FabricError::Io { source, .. })
                if source.kind() == ErrorKind::AddrInUse && port < last =>
            {
                port += 1;
            }
            result => return result,
        }
    }
}

fn fault(fabric: &'static str, error: &FabricError) -> EndpointError {
    EndpointError::Fabric {
        fabric,
        reason: error.to_string(),
    }
}
