//! Inboxes by which other threads reach a progress thread: a queue for each service, and one wake-up for all.

use crossbeam_channel::{Receiver, Sender};
use faro_fabric::Waker;
use std::sync::atomic::{fence, AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;

/// Wakes one progress thread, and tells it what concerns no service alone.
pub(crate) struct Doorbell {
    waker: Waker,
    /// Set by the first sender after the thread looked; saves the others a system call.
    rung: AtomicBool,
    /// The arena has memory again that a lease was refused before.
    memory: AtomicBool,
    closing: AtomicBool,
    /// The thread, once its fabric is gone and it waits without one.
    parked: OnceLock<Thread>,
}

impl Doorbell {
    pub(crate) fn new(waker: Waker) -> Arc<Self> {
        Arc::new(Self {
            waker,
            rung: AtomicBool::new(false),
            memory: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            parked: OnceLock::new(),
        })
    }

    /// Wakes the thread.
    pub(crate) fn ring(&self) {
        if !self.rung.swap(true, Ordering::AcqRel) {
            (self.waker)();
            // Against the fence in `wait`: either this thread sees `parked`, or that one sees `rung`.
            fence(Ordering::SeqCst);
            if let Some(thread) = self.parked.get() {
                thread.unpark();
            }
        }
    }

    /// Tells the thread that the arena has memory again.
    pub(crate) fn memory_returned(&self) {
        self.memory.store(true, Ordering::Release);
        self.ring();
    }

    /// Tells the thread to end.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Release);
        self.ring();
    }

    /// Must be called before queues are read: a message that is sent later rings again. It is a
    /// swap and not a store, because reading a sender's `true` makes the sender's command visible.
    pub(crate) fn answer(&self) {
        self.rung.swap(false, Ordering::AcqRel);
    }

    /// Returns whether memory has returned since the last call.
    pub(crate) fn take_memory(&self) -> bool {
        self.memory.swap(false, Ordering::AcqRel)
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Waits for the next ring without a fabric; may return early.
    pub(crate) fn wait(&self) {
        self.parked.get_or_init(std::thread::current);
        fence(Ordering::SeqCst);
        if !self.rung.load(Ordering::Acquire) {
            std::thread::park();
        }
    }
}

/// The way to one service of a progress thread. The channel has no bound of its own; it is bounded
/// by what it carries: requests, jobs (each at most once), parts of collectives.
pub(crate) struct Inbox<T> {
    sender: Sender<T>,
    doorbell: Arc<Doorbell>,
}

impl<T> Clone for Inbox<T> {
    fn clone(&self) -> Self {
        Self {
            sender: self.sender.clone(),
            doorbell: Arc::clone(&self.doorbell),
        }
    }
}

impl<T> Inbox<T> {
    /// Returns an inbox, and the receiver, which is the service's end.
    pub(crate) fn new(doorbell: &Arc<Doorbell>) -> (Self, Receiver<T>) {
        let (sender, receiver) = crossbeam_channel::unbounded();
        let doorbell = Arc::clone(doorbell);
        (Self { sender, doorbell }, receiver)
    }

    pub(crate) fn send(&self, command: T) {
        // An error means that the thread has ended, and with it everything it had.
        if self.sender.send(command).is_ok() {
            self.doorbell.ring();
        }
    }
}
