//! The other side of `--peer`.

use super::args::{pairing_port, Args, Choice};
use super::exchange::fabric_args;
use crate::perf::args::FabricName;
use crate::perf::protocol::SERVER;
use crate::perf::site::Site;
use crate::perf::{server, PerfError};
use crate::CliError;
use std::io::Write;
use std::net::SocketAddr;
use std::thread;

/// Serves TCP at `near` and RDMA, where it works, on the next port, until interrupted.
pub(super) fn run(args: &Args, near: SocketAddr, out: &mut impl Write) -> Result<(), CliError> {
    let open = |fabric, bind| Site::open(&fabric_args(args, fabric), bind, SERVER);
    let tcp = open(FabricName::Tcp, near)?;
    writeln!(out, "tcp {}", tcp.fabric.location())?;
    if args.fabric != Choice::Tcp {
        let pairing = SocketAddr::new(near.ip(), pairing_port(near.port()));
        match open(FabricName::Verbs, pairing) {
            Ok(verbs) => {
                writeln!(out, "verbs {}", verbs.fabric.location())?;
                thread::Builder::new()
                    .name("verbs".to_owned())
                    .spawn(move || {
                        if let Err(error) = server::serve(verbs, false, &|_, _| ()) {
                            eprintln!("faro doctor: verbs: {error}");
                        }
                    })
                    .map_err(PerfError::Thread)?;
            }
            // The other side finds that out; here is why.
            Err(error) => eprintln!("faro doctor: no RDMA is served: {error}"),
        }
    }
    out.flush()?;
    Ok(server::serve(tcp, false, &|_, _| ())?)
}
