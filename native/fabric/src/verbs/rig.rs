//! The open device with all that connections share: regions, completion queues, the wake-up.
//! Can be lost (the device goes away) and opened again.

use super::device::{
    check_memlock, Channel, CompletionQueue, Depth, Device, QueuePair, VerbsError, VerbsOptions,
};
use super::pair::{READS, RECEIVES, SEND_DEPTH};
use super::registrations::{Keys, Registrations};
use crate::stream::hub::CARRIER;
use faro_pool::{Lease, Pool};
use mio::unix::SourceFd;
use mio::Interest;
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Instant;

/// Completions that a queue holds, if the device can: those of 42 connections.
const QUEUE_DEPTH: u32 = 8 << 10;

struct Completions {
    queue: Arc<CompletionQueue>,
    /// Completions that the connections on it cannot cause.
    free: u32,
}

/// See the module's comment. Fields drop in order: registrations and queues before the device.
pub(super) struct Rig {
    pub(super) registrations: Registrations,
    queues: Vec<Completions>,
    pub(super) channel: Arc<Channel>,
    /// Every queue is armed, and no wake-up of any was taken since.
    armed: bool,
    pub(super) device: Arc<Device>,
    /// When the device was seen to be there.
    pub(super) looked: Instant,
}

impl Rig {
    /// Opens the device.
    ///
    /// # Errors
    /// What is missing, and what to do.
    pub(super) fn open(
        wishes: &VerbsOptions,
        near: IpAddr,
        pool: &Arc<Pool>,
    ) -> Result<Self, VerbsError> {
        let device = Device::open(wishes, near)?;
        check_memlock(pool.counters().limit_bytes)?;
        let mut rig = Self {
            registrations: Registrations::new(&device, pool),
            queues: Vec::new(),
            armed: false,
            channel: Channel::new(&device)?,
            device,
            looked: Instant::now(),
        };
        // What cannot be registered is better known now than at the first block.
        rig.registrations.follow()?;
        rig.add_queue()?;
        Ok(rig)
    }

    /// Has the hub woken by the device.
    pub(super) fn watch(&self, registry: &mio::Registry) -> std::io::Result<()> {
        let fds = [self.channel.fd(), self.device.async_fd()];
        for (fd, token) in fds.iter().zip(CARRIER) {
            registry.register(&mut SourceFd(&fd.as_raw_fd()), token, Interest::READABLE)?;
        }
        Ok(())
    }

    /// The reverse; the descriptors are about to be closed.
    pub(super) fn unwatch(&self, registry: &mio::Registry) {
        for fd in [self.channel.fd(), self.device.async_fd()] {
            if let Err(error) = registry.deregister(&mut SourceFd(&fd.as_raw_fd())) {
                log::debug!("cannot unwatch the device: {error}");
            }
        }
    }

    /// How the device calls a lease.
    pub(super) fn keys(&mut self, lease: &Lease) -> Result<Keys, VerbsError> {
        self.registrations.keys(lease)
    }

    fn add_queue(&mut self) -> Result<(), VerbsError> {
        let depth = QUEUE_DEPTH.min(self.device.limits().cqe);
        let queue = CompletionQueue::new(&self.device, &self.channel, depth)?;
        let free = queue.depth();
        self.queues.push(Completions { queue, free });
        self.armed = false;
        Ok(())
    }

    /// A queue pair whose completions fit, and which of the completion queues that is.
    pub(super) fn queue_pair(&mut self) -> Result<(QueuePair, usize), VerbsError> {
        let need = SEND_DEPTH + RECEIVES;
        let at = match self.queues.iter().position(|queue| queue.free >= need) {
            Some(at) => at,
            None => {
                self.add_queue()?;
                self.queues.len() - 1
            }
        };
        let depth = Depth {
            send: SEND_DEPTH,
            receive: RECEIVES,
            reads: READS,
        };
        let place = &mut self.queues[at];
        let queue = QueuePair::new(&self.device, &place.queue, depth)?;
        place.free = place.free.saturating_sub(need);
        Ok((queue, at))
    }

    /// A queue pair of that completion queue is gone.
    pub(super) fn give_back(&mut self, at: usize) {
        if let Some(place) = self.queues.get_mut(at) {
            place.free += SEND_DEPTH + RECEIVES;
        }
    }

    pub(super) fn queues(&self) -> impl Iterator<Item = Arc<CompletionQueue>> + '_ {
        self.queues.iter().map(|place| Arc::clone(&place.queue))
    }

    /// Asks for a wake-up by the next completion of any queue, unless that is asked already.
    pub(super) fn arm(&mut self) -> Result<(), VerbsError> {
        if !self.armed {
            self.queues.iter().try_for_each(|place| place.queue.arm())?;
            self.armed = true;
        }
        Ok(())
    }

    /// Takes the wake-ups that came.
    pub(super) fn drain(&mut self) {
        self.armed &= self.channel.drain() == 0;
    }
}
