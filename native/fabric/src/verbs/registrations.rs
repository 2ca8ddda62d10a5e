//! The registrations of slabs, and of memory outside them.
//!
//! A slab is registered as soon as the arena has it (eager), so that no operation waits for it. An
//! idle slab is de-registered, and registered again when a lease of it is next used. External
//! memory is registered when it is first used (lazy); its registration is attached to the memory
//! and ends with it, on whichever thread drops it.
//!
//! If the device refuses a slab, the arena is capped at those that are registered. Each later refusal,
//! such as that of a slab that was idle, caps it further.
//!
//! The progress thread decides, between operations: a posted operation keeps its lease, and a slab
//! is idle only without a lease, so no posted operation uses a registration that ends. The pool's
//! registration pins are the other side of this. A de-registration unpins 4,096 pages (40 ms were
//! seen with rxe), so a thread of its own does it ([`DeregistrationThread`]).

use super::device::{Device, Registration, VerbsError};
use crossbeam_channel::{bounded, Sender};
use faro_pool::{ExternalMemory, Lease, Pool, Purpose, RegistrationCount, RegistrationPin};
use faro_secure::Protection;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Maximum number of de-registrations that wait for the current one; the next is left to a later
/// turn.
const LEAVING: usize = 4;

/// Keys by which work requests name a lease.
#[derive(Debug, Clone, Copy)]
pub(super) struct LeaseKeys {
    pub(super) address: u64,
    pub(super) lkey: u32,
    pub(super) rkey: u32,
}

/// A slab's registration. Fields drop in order: the pin last.
struct RegisteredSlab {
    registration: Registration,
    _counted: RegistrationCount,
    _pin: RegistrationPin,
}

/// The thread that de-registers. The first idle slab starts it; dropping this value waits until all
/// that it was given is de-registered.
#[derive(Default)]
struct DeregistrationThread {
    thread: Option<(Sender<RegisteredSlab>, JoinHandle<()>)>,
}

impl DeregistrationThread {
    /// Takes a slab's registration, or returns it because others wait already. If the thread cannot
    /// be started, de-registers here.
    fn take(&mut self, registered: RegisteredSlab) -> Option<RegisteredSlab> {
        if self.thread.is_none() {
            let (sender, leaving) = bounded::<RegisteredSlab>(LEAVING);
            let body = move || leaving.iter().for_each(drop);
            let builder = std::thread::Builder::new().name("faro-mr".to_owned());
            match builder.spawn(body) {
                Ok(thread) => self.thread = Some((sender, thread)),
                Err(error) => {
                    log::warn!("cannot start the thread that de-registers memory: {error}")
                }
            }
        }
        let (sender, _) = self.thread.as_ref()?;
        sender.try_send(registered).err().map(|e| e.into_inner())
    }
}

impl Drop for DeregistrationThread {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.thread.take() {
            drop(sender);
            if thread.join().is_err() {
                log::error!("the thread that de-registers memory panicked");
            }
        }
    }
}

/// The registration of external memory, which owns it as an attachment.
struct ExternalRegistration {
    keys: LeaseKeys,
    memory: Weak<ExternalMemory>,
}

/// All registrations of one device.
pub(super) struct Registrations {
    device: Arc<Device>,
    pool: Arc<Pool>,
    /// Sealed: only slabs that segments lie in are registered.
    protection: Protection,
    /// Registered slabs, by number.
    slabs: HashMap<u32, RegisteredSlab>,
    /// De-registers idle slabs.
    deregistration: DeregistrationThread,
    /// Slabs with a smaller number were registered at least once, unless they were idle then.
    seen: u32,
    /// The pool's `rests` when no registered slab was idle.
    rests: u32,
    /// Entries by the memory's number; those of dropped memory are removed when the next one is added.
    outside: HashMap<u32, ExternalRegistration>,
    /// The number under which attachments are kept.
    instance: u64,
    /// Registrations made, and what they took.
    made: u64,
    time: Duration,
}

impl Registrations {
    pub(super) fn new(device: &Arc<Device>, pool: &Arc<Pool>, protection: Protection) -> Self {
        static INSTANCES: AtomicU64 = AtomicU64::new(0);
        Self {
            device: Arc::clone(device),
            pool: Arc::clone(pool),
            protection,
            slabs: HashMap::new(),
            deregistration: DeregistrationThread::default(),
            seen: 0,
            rests: pool.idle_epoch(),
            outside: HashMap::new(),
            instance: INSTANCES.fetch_add(1, Ordering::Relaxed),
            made: 0,
            time: Duration::ZERO,
        }
    }

    /// Registers slabs that are new in the arena, and lets one idle slab be de-registered.
    pub(super) fn follow(&mut self) -> Result<(), VerbsError> {
        let eager = self.protection == Protection::Clear;
        while eager && self.pool.slab(self.seen).is_some() {
            self.register_slab(self.seen)?;
            self.seen += 1;
        }
        let rests = self.pool.idle_epoch();
        if rests != self.rests {
            let resting = |index: &&u32| self.pool.is_idle(**index);
            match self.slabs.keys().find(resting).copied() {
                Some(index) => {
                    let leaves = self.slabs.remove(&index);
                    if let Some(stays) = leaves.and_then(|one| self.deregistration.take(one)) {
                        self.slabs.insert(index, stays);
                    }
                }
                None => self.rests = rests,
            }
        }
        Ok(())
    }

    /// Returns the address and keys of a lease; registers its memory if it is not registered.
    pub(super) fn keys(&mut self, lease: &Lease) -> Result<LeaseKeys, VerbsError> {
        if let Some(memory) = lease.external() {
            return self.outside_keys(memory);
        }
        let index = lease.slab();
        self.register_slab(index)?;
        let region = self
            .slabs
            .get(&index)
            .ok_or(VerbsError::UnregisteredSlab { slab: index })?;
        Ok(LeaseKeys {
            address: region.registration.address_of(lease.offset()),
            lkey: region.registration.lkey(),
            rkey: region.registration.rkey(),
        })
    }

    /// Registrations made, and nanoseconds that they took.
    pub(super) fn tally(&self) -> (u64, u64) {
        (self.made, self.time.as_nanos() as u64)
    }

    /// Registers a slab, unless it is registered, idle (then there is no lease of it) or absent.
    fn register_slab(&mut self, index: u32) -> Result<(), VerbsError> {
        if self.slabs.contains_key(&index) {
            return Ok(());
        }
        // Pinned first: its pages must not change between here and the device.
        let (Some(pin), Some(slab)) = (self.pool.pin(index), self.pool.slab(index)) else {
            return Ok(());
        };
        let bytes = slab.bytes();
        let arena = self.pool.share_bytes(Purpose::Serve);
        let start = Instant::now();
        let registration = match Registration::of_slab(&self.device, slab) {
            Ok(registration) => registration,
            // The arena stays as large as what is registered.
            Err(error) if self.pool.bar(index) => {
                let left = self.pool.share_bytes(Purpose::Serve);
                // Said once: a lease that is still in the slab asks for it again.
                if left < arena {
                    log::warn!(
                        "verbs: {error}; the arena stays at {left} bytes, and what is in the memory \
                         that was refused goes over TCP"
                    );
                }
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let registered = RegisteredSlab {
            registration,
            _counted: self.count(bytes, start.elapsed()),
            _pin: pin,
        };
        self.slabs.insert(index, registered);
        Ok(())
    }

    fn outside_keys(&mut self, memory: &Arc<ExternalMemory>) -> Result<LeaseKeys, VerbsError> {
        if let Some(attached) = self.outside.get(&memory.number()) {
            return Ok(attached.keys);
        }
        self.outside
            .retain(|_, attached| attached.memory.strong_count() > 0);
        let start = Instant::now();
        // SAFETY: the memory is valid until its clean-up, before which it drops its attachments,
        // and this registration is one.
        let registration = unsafe {
            Registration::of_range(
                &self.device,
                memory.start(),
                memory.bytes(),
                memory.access(),
            )
        }?;
        let keys = LeaseKeys {
            address: memory.start().as_ptr() as u64,
            lkey: registration.lkey(),
            rkey: registration.rkey(),
        };
        let counted = self.count(memory.bytes(), start.elapsed());
        memory.attach(self.instance, Box::new((registration, counted)));
        let attached = ExternalRegistration {
            keys,
            memory: Arc::downgrade(memory),
        };
        self.outside.insert(memory.number(), attached);
        Ok(keys)
    }

    fn count(&mut self, bytes: usize, took: Duration) -> RegistrationCount {
        self.made += 1;
        self.time += took;
        self.pool.count_registration(bytes, took)
    }
}

impl Drop for Registrations {
    /// Detaches the device's registrations from memory that lives on, because the device closes.
    fn drop(&mut self) {
        for attached in self.outside.values() {
            if let Some(memory) = attached.memory.upgrade() {
                drop(memory.detach(self.instance));
            }
        }
    }
}
