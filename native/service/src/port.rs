//! The TCP port that the endpoints of all applications share, and the thread that accepts at it.

use crate::options::Options;
use faro_fabric::tcp::{Bounds, PortAcceptor, SharedPort};
use faro_fabric::{FabricError, Waker};
use faro_sync::lock;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use thiserror::Error;

/// Most time for which the thread waits in one call; its end wakes it.
const WAIT: Duration = Duration::from_secs(3_600);

/// Why readers cannot connect.
#[derive(Debug, Error)]
pub enum PortError {
    #[error("readers cannot be listened for: {0}; --port gives the port")]
    Listen(FabricError),
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

/// Accepts connections of readers until it is closed or dropped.
pub(crate) struct Port {
    shared: SharedPort,
    closing: Arc<AtomicBool>,
    waker: Waker,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Port {
    /// # Errors
    /// `Listen`, `Thread`.
    pub(crate) fn open(options: &Options) -> Result<Self, PortError> {
        let bind = SocketAddr::new(options.bind, options.port);
        let advertise = options.advertise.to_string();
        let opened = SharedPort::open(bind, &advertise, Bounds::default());
        let (shared, acceptor) = opened.map_err(PortError::Listen)?;
        let (waker, closing) = (acceptor.waker(), Arc::<AtomicBool>::default());
        let accepts = {
            let closing = Arc::clone(&closing);
            move || accept(acceptor, &closing)
        };
        let thread = std::thread::Builder::new()
            .name("faro-port".to_owned())
            .spawn(accepts)
            .map_err(PortError::Thread)?;
        Ok(Self {
            shared,
            closing,
            waker,
            thread: Mutex::new(Some(thread)),
        })
    }

    pub(crate) fn shared(&self) -> SharedPort {
        self.shared.clone()
    }

    /// Stops listening. Idempotent.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Release);
        (self.waker)();
        if let Some(thread) = lock(&self.thread).take() {
            if thread.join().is_err() {
                log::error!("a thread of the service panicked");
            }
        }
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.close();
    }
}

fn accept(mut acceptor: PortAcceptor, closing: &AtomicBool) {
    while !closing.load(Ordering::Acquire) {
        if let Err(error) = acceptor.poll(WAIT) {
            log::error!("no reader can connect over TCP or RDMA any more: {error}");
            return;
        }
    }
}
