//! The open device and what its connections share: registrations, completion queues, wake-ups.
//! The device can be lost and opened again.

use super::device::{
    check_memlock, Channel, CompletionQueue, Depth, Device, QueuePair, VerbsError, VerbsOptions,
    WorkCompletion,
};
use super::registrations::{LeaseKeys, Registrations};
use super::ring_share::{RingShare, LARGEST};
use crate::reactor::driver::DEVICE;
use faro_pool::{Lease, Pool};
use faro_secure::Protection;
use mio::unix::SourceFd;
use mio::Interest;
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Instant;

/// Work requests of one queue pair that have not completed.
const SEND_DEPTH: u32 = 128;
/// Maximum number of each side's reads in flight at the device (more wait there).
const READS: u8 = 16;
/// Completions that the first queue holds, if the device can: those of 42 connections. Each further
/// queue holds as many as all before it.
const FIRST_DEPTH: u32 = 8 << 10;
/// Completions of one connection that may be in a queue at once.
const PER_CONNECTION: u32 = SEND_DEPTH + LARGEST;

struct ContextCompletions {
    queue: Arc<CompletionQueue>,
    /// Connections on it.
    connections: u32,
    /// Entries that no connection on this queue can fill.
    free: u32,
}

/// An open device. Fields drop in order: registrations and queues before the device.
pub(super) struct RdmaContext {
    pub(super) registrations: Registrations,
    /// The pool that segments come from.
    pub(super) pool: Arc<Pool>,
    pub(super) share: Arc<RingShare>,
    queues: Vec<ContextCompletions>,
    pub(super) channel: Arc<Channel>,
    /// Every queue is armed, and no wake-up was taken since.
    armed: bool,
    pub(super) device: Arc<Device>,
    /// Time when the device was last found present.
    pub(super) checked: Instant,
    /// The LID that peers were told.
    lid: u16,
}

impl RdmaContext {
    /// Opens the device. Where bytes are sealed, memory is registered for the device's own sends
    /// and receives only.
    ///
    /// # Errors
    /// `VerbsError`, which says what is missing and what to do.
    pub(super) fn open(
        options: &VerbsOptions,
        near: IpAddr,
        pool: &Arc<Pool>,
        protection: Protection,
    ) -> Result<Self, VerbsError> {
        let device = Device::open_for(options, near, protection)?;
        let limit = pool.counters().limit_bytes;
        check_memlock(limit)?;
        let mut context = Self {
            registrations: Registrations::new(&device, pool, protection),
            pool: Arc::clone(pool),
            share: RingShare::of_arena(limit),
            queues: Vec::new(),
            armed: false,
            channel: Channel::new(&device)?,
            lid: device.address().lid,
            device,
            checked: Instant::now(),
        };
        // Registers what the arena has already, so that a refusal shows at the start and not at the
        // first block.
        context.registrations.follow()?;
        context.add_queue()?;
        Ok(context)
    }

    /// Returns the old and the new LID, if the port got another one since this was last asked.
    pub(super) fn new_lid(&mut self) -> Option<[u16; 2]> {
        let new = self.device.address().lid;
        let old = std::mem::replace(&mut self.lid, new);
        (old != new).then_some([old, new])
    }

    /// Registers the device's descriptors, so that it wakes the reactor.
    pub(super) fn watch(&self, registry: &mio::Registry) -> std::io::Result<()> {
        let fds = [self.channel.fd(), self.device.async_fd()];
        for (fd, token) in fds.iter().zip(DEVICE) {
            registry.register(&mut SourceFd(&fd.as_raw_fd()), token, Interest::READABLE)?;
        }
        Ok(())
    }

    /// Removes the descriptors, which are about to be closed.
    pub(super) fn unwatch(&self, registry: &mio::Registry) {
        for fd in [self.channel.fd(), self.device.async_fd()] {
            if let Err(error) = registry.deregister(&mut SourceFd(&fd.as_raw_fd())) {
                log::debug!("cannot unwatch the device: {error}");
            }
        }
    }

    /// Returns the address and keys of a lease at the device; registers its memory if that is
    /// needed.
    pub(super) fn keys(&mut self, lease: &Lease) -> Result<LeaseKeys, VerbsError> {
        self.registrations.keys(lease)
    }

    fn add_queue(&mut self) -> Result<(), VerbsError> {
        let have: u32 = self.queues.iter().map(|entry| entry.queue.depth()).sum();
        let depth = have.max(FIRST_DEPTH).min(self.device.limits().cqe);
        let queue = CompletionQueue::new(&self.device, &self.channel, depth)?;
        let free = queue.depth();
        self.queues.push(ContextCompletions {
            queue,
            connections: 0,
            free,
        });
        self.armed = false;
        Ok(())
    }

    /// Makes a queue pair whose completions fit, and returns it with the index of its completion
    /// queue.
    pub(super) fn queue_pair(&mut self) -> Result<(QueuePair, usize), VerbsError> {
        let fits = |entry: &ContextCompletions| entry.free >= PER_CONNECTION;
        let at = match self.queues.iter().position(fits) {
            Some(at) => at,
            None => {
                self.add_queue()?;
                self.queues.len() - 1
            }
        };
        let depth = Depth {
            send: SEND_DEPTH,
            receive: LARGEST,
            reads: READS,
        };
        let entry = &mut self.queues[at];
        let queue = QueuePair::new(&self.device, &entry.queue, depth)?;
        entry.free = entry.free.saturating_sub(PER_CONNECTION);
        entry.connections += 1;
        Ok((queue, at))
    }

    /// Notes that a queue pair of that completion queue was destroyed. The last queues are
    /// destroyed with their last connection.
    pub(super) fn give_back(&mut self, at: usize) {
        if let Some(entry) = self.queues.get_mut(at) {
            entry.connections -= 1;
            entry.free = (entry.free + PER_CONNECTION).min(entry.queue.depth());
        }
        while self.queues.len() > 1 && self.queues.last().is_some_and(|q| q.connections == 0) {
            self.queues.pop();
        }
    }

    pub(super) fn queues(&self) -> usize {
        self.queues.len()
    }

    /// Takes a batch of completions from a queue; none: it is empty, or is no more.
    pub(super) fn poll(
        &self,
        queue: usize,
        into: &mut Vec<WorkCompletion>,
    ) -> Result<(), VerbsError> {
        match self.queues.get(queue) {
            Some(entry) => entry.queue.poll(into).map(drop),
            None => Ok(()),
        }
    }

    /// Asks for a wake-up by the next completion of any queue, unless that is asked already.
    pub(super) fn arm(&mut self) -> Result<(), VerbsError> {
        if !self.armed {
            self.queues.iter().try_for_each(|entry| entry.queue.arm())?;
            self.armed = true;
        }
        Ok(())
    }

    /// Takes the wake-ups that came.
    pub(super) fn drain(&mut self) {
        self.armed &= self.channel.drain() == 0;
    }
}
