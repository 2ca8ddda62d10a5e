//! The I/O threads: the only ones that wait for a disk.

use super::job::{JobTurn, ServeJob};
use super::lookup::{look_up, LookedUp};
use super::work::{ReturnedWork, ServeShared, Task, Work};
use crate::files::{Catalog, Output};
use crate::limits::{AT_ONCE_BLOCKS, AT_ONCE_BYTES, MAX_PREFETCHES};
use crate::memory::Memory;
use crate::net::Inbox;
use crossbeam_channel::Receiver;
use faro_region::{ChunkCache, Sleep, CHUNK_BYTES};
use faro_sync::{lock, panic_message};
use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// A handle to the threads; dropping it lets them finish.
pub(crate) struct IoPool {
    shared: Arc<ServeShared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    count: usize,
}

impl IoPool {
    /// # Errors
    /// A thread cannot be started.
    pub(crate) fn start(
        count: usize,
        memory: Arc<Memory>,
        catalog: Arc<Catalog>,
    ) -> std::io::Result<Self> {
        let (mut pool, worker) = Self::without_threads(memory, catalog);
        let mut threads = Vec::with_capacity(count);
        for number in 0..count {
            let worker = worker.clone();
            let name = format!("faro-io-{number}");
            let thread = std::thread::Builder::new().name(name);
            threads.push(thread.spawn(move || worker.run())?);
        }
        pool.threads = Mutex::new(threads);
        pool.count = count;
        Ok(pool)
    }

    /// Returns a pool without threads: the caller does its tasks by the worker.
    pub(crate) fn without_threads(memory: Arc<Memory>, catalog: Arc<Catalog>) -> (Self, Worker) {
        let (queue, tasks) = crossbeam_channel::unbounded();
        let shared = Arc::new(ServeShared {
            memory,
            catalog,
            queue,
        });
        let pool = Self {
            shared: Arc::clone(&shared),
            threads: Mutex::default(),
            count: 0,
        };
        (pool, Worker { shared, tasks })
    }

    /// Runs a turn of a small job whose bytes are in memory, on the caller's thread. Any other job
    /// is returned, to be queued.
    pub(super) fn at_once(&self, job: Box<ServeJob>) -> Result<ReturnedWork, Box<ServeJob>> {
        let serial = job.serial;
        let turn = AssertUnwindSafe(|| self.turn_at_once(job));
        std::panic::catch_unwind(turn).unwrap_or_else(|panic| Ok(lost(serial, &*panic)))
    }

    fn turn_at_once(&self, mut job: Box<ServeJob>) -> Result<ReturnedWork, Box<ServeJob>> {
        if job.is_new() {
            let wanted = match job.block_count() <= AT_ONCE_BLOCKS {
                true => job.wanted(),
                false => return Err(job),
            };
            for id in wanted {
                match self.shared.catalog.ready(id) {
                    Some(output) => job.answers.insert(id, Ok(output)),
                    None => {
                        // Answers are all there or none is: an I/O thread asks for all of them.
                        job.answers.clear();
                        return Err(job);
                    }
                };
            }
            if job.prepare(Sleep::Never).is_some() {
                return Err(job);
            }
        }
        if job.remaining() > AT_ONCE_BYTES {
            return Err(job);
        }
        match job.turn(&self.shared.memory, Sleep::Never) {
            JobTurn::Cold => Err(job),
            turn => Ok(ReturnedWork::Turned(job, turn)),
        }
    }

    /// Queues a turn of `job`, which then returns to `home`.
    pub(super) fn submit(&self, job: Box<ServeJob>, home: &Inbox<ReturnedWork>) {
        let home = home.clone();
        self.shared.submit(Work { job, home });
    }

    /// Brings an output into the chunk cache, as far as there is room without evicting others.
    pub(crate) fn prefetch(&self, output: Arc<Output>) {
        if self.shared.queue.len() < MAX_PREFETCHES {
            // Sending fails only after the threads have ended.
            let _ = self.shared.queue.send(Task::Prefetch(output));
        }
    }

    /// Ends the threads once the queue is empty.
    pub(crate) fn stop(&self) {
        let mut threads = lock(&self.threads);
        if !threads.is_empty() {
            for _ in 0..self.count {
                let _ = self.shared.queue.send(Task::Stop);
            }
        }
        for thread in threads.drain(..) {
            if thread.join().is_err() {
                log::error!("an I/O thread panicked");
            }
        }
    }
}

/// Does the tasks of a pool: each of its threads has one.
#[derive(Clone)]
pub(crate) struct Worker {
    shared: Arc<ServeShared>,
    tasks: Receiver<Task>,
}

impl Worker {
    fn run(&self) {
        while let Ok(task) = self.tasks.recv() {
            if !self.perform(task) {
                return;
            }
        }
    }

    /// Does the next task, if there is one.
    #[cfg(feature = "simulation")]
    pub(crate) fn step(&self) {
        if let Ok(task) = self.tasks.try_recv() {
            self.perform(task);
        }
    }

    /// Returns whether there is a task.
    #[cfg(feature = "simulation")]
    pub(crate) fn has_task(&self) -> bool {
        !self.tasks.is_empty()
    }

    /// Does a task. Returns false if the thread must end.
    fn perform(&self, task: Task) -> bool {
        let Work { job, home } = match task {
            Task::JobTurn(work) => work,
            Task::Prefetch(output) => {
                prefetch(&self.shared.memory.cache, &output);
                return true;
            }
            Task::Stop => return false,
        };
        let serial = job.serial;
        let turn = AssertUnwindSafe(|| turn(&self.shared, job, &home));
        match std::panic::catch_unwind(turn) {
            Ok(Some(returned)) => home.send(returned),
            Ok(None) => {}
            Err(panic) => home.send(lost(serial, &*panic)),
        }
        true
    }
}

/// Returns what is left of a job whose turn panicked.
fn lost(serial: u64, panic: &(dyn Any + Send)) -> ReturnedWork {
    let detail = panic_message(panic);
    log::error!("a thread that reads map outputs panicked ({detail}); the request fails");
    ReturnedWork::Lost(serial)
}

/// Runs a turn of a job, after looking up its files. Returns `None` if it waits for answers from
/// Java.
fn turn(
    shared: &Arc<ServeShared>,
    mut job: Box<ServeJob>,
    home: &Inbox<ReturnedWork>,
) -> Option<ReturnedWork> {
    loop {
        if job.wants_files() {
            job = match look_up(shared, job, home) {
                LookedUp::Known(job) => job,
                LookedUp::Waiting => return None,
                LookedUp::Full(job) => return Some(ReturnedWork::Turned(job, JobTurn::Busy)),
            };
        }
        match job.turn(&shared.memory, Sleep::May) {
            // Files were replaced. This ends, because a job looks its files up a few times only.
            JobTurn::Cold if job.wants_files() => {}
            turn => return Some(ReturnedWork::Turned(job, turn)),
        }
    }
}

fn prefetch(cache: &Arc<ChunkCache>, output: &Output) {
    let Some(region) = output.region() else {
        return;
    };
    for chunk in 0..region.bytes().div_ceil(CHUNK_BYTES) {
        match cache.prefetch(region, chunk) {
            Ok(true) => {}
            Ok(false) if cache.has(region.id(), chunk) => {}
            Ok(false) => return,
            Err(error) => return log::warn!("a map output cannot be prefetched: {error}"),
        }
    }
}
