//! `--serve`: the server for another host's `--peer`.

use super::args::{pairing_port, DoctorArgs, FabricSetting};
use super::exchange::fabric_args;
use crate::perf::args::FabricName;
use crate::perf::protocol::SERVER;
use crate::perf::site::PerfSite;
use crate::perf::{server, PerfError};
use crate::CliError;
use std::io::Write;
use std::net::SocketAddr;
use std::thread;

/// Serves TCP at `address` and, if RDMA works, RDMA on the next port, until interrupted.
pub(super) fn run(
    args: &DoctorArgs,
    address: SocketAddr,
    out: &mut impl Write,
) -> Result<(), CliError> {
    let open = |fabric, bind| PerfSite::open(&fabric_args(args, fabric), bind, SERVER);
    let tcp = open(FabricName::Tcp, address)?;
    writeln!(out, "tcp {}", tcp.fabric.location())?;
    if args.fabric != FabricSetting::Tcp {
        let pairing = SocketAddr::new(address.ip(), pairing_port(address.port()));
        match open(FabricName::Verbs, pairing) {
            Ok(verbs) => {
                writeln!(out, "verbs {}", verbs.fabric.location())?;
                thread::Builder::new()
                    .name("verbs".to_owned())
                    .spawn(move || {
                        if let Err(error) = server::serve(verbs, false, &|_, _| ()) {
                            eprintln!("faro doctor: serving RDMA failed: {error}");
                        }
                    })
                    .map_err(PerfError::Thread)?;
            }
            // The client reports that verbs fails; the reason is known only here.
            Err(error) => eprintln!("faro doctor: cannot serve RDMA: {error}"),
        }
    }
    out.flush()?;
    Ok(server::serve(tcp, false, &|_, _| ())?)
}
