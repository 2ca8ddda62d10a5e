//! The I/O threads: the only ones that wait for a disk.

use super::{Job, Turn};
use crate::config::limits::{AT_ONCE_BLOCKS, AT_ONCE_BYTES, MAX_SERVING};
use crate::files::{Answer, Catalog, Lookup, Output};
use crate::memory::Memory;
use crate::progress::{Command, Inbox};
use crossbeam_channel::{Receiver, Sender};
use faro_region::{ChunkCache, Sleep, CHUNK_BYTES};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// A job and where it goes back to.
struct Work {
    job: Box<Job>,
    home: Arc<Inbox>,
}

/// What a thread does next.
enum Task {
    Turn(Work),
    /// Bring chunks of an output into frames; whether others have to go for them.
    Stage(Arc<Output>, Range<u64>, bool),
    /// End.
    Stop,
}

/// What the threads share.
struct Shared {
    memory: Arc<Memory>,
    catalog: Arc<Catalog>,
    /// Also how parked work comes back. Bounded: every job is in it at most once, there are at most
    /// `MAX_SERVING` jobs per fabric, and what is to be staged is left out when it is full.
    queue: Sender<Task>,
}

/// A handle to the threads; dropping it lets them finish.
pub(crate) struct IoPool {
    shared: Arc<Shared>,
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
        let (queue, work) = crossbeam_channel::bounded(4 * MAX_SERVING + count);
        let shared = Arc::new(Shared {
            memory,
            catalog,
            queue,
        });
        let mut threads = Vec::with_capacity(count);
        for number in 0..count {
            let (shared, work) = (Arc::clone(&shared), work.clone());
            let name = format!("faro-io-{number}");
            threads.push(
                std::thread::Builder::new()
                    .name(name)
                    .spawn(move || run(&shared, &work))?,
            );
        }
        Ok(Self {
            shared,
            threads: Mutex::new(threads),
            count,
        })
    }

    /// A turn of a small job whose bytes are in memory, on the caller's thread; any other job comes
    /// back, to be queued.
    pub(crate) fn at_once(&self, mut job: Box<Job>) -> Result<(Box<Job>, Turn), Box<Job>> {
        if job.needs_layout() {
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
            job.lay_out();
        }
        if job.remaining() > AT_ONCE_BYTES {
            return Err(job);
        }
        match job.turn(&self.shared.memory, Sleep::Never) {
            Turn::Cold => Err(job),
            turn => Ok((job, turn)),
        }
    }

    /// Queues a turn of `job`; it comes back to `home` as `Command::Turn`.
    pub(crate) fn submit(&self, job: Box<Job>, home: &Arc<Inbox>) {
        submit(
            &self.shared,
            Work {
                job,
                home: Arc::clone(home),
            },
        );
    }

    /// Brings an output into frames, as far as there is room without sending others away.
    pub(crate) fn stage(&self, output: Arc<Output>) {
        if let Some(region) = output.region() {
            let chunks = 0..region.bytes().div_ceil(CHUNK_BYTES);
            self.queue_stage(output, chunks, false);
        }
    }

    /// Brings what a job will read into frames, as far as its outputs are known. Others have to go for
    /// it: they were of use, this will be.
    pub(crate) fn prepare(&self, job: &Job) {
        for (output, chunks) in job.chunks(|id| self.shared.catalog.ready(id)) {
            self.queue_stage(output, chunks, true);
        }
    }

    fn queue_stage(&self, output: Arc<Output>, chunks: Range<u64>, evict: bool) {
        if self.shared.queue.len() < MAX_SERVING {
            // Full: nobody misses what was not staged.
            let task = Task::Stage(output, chunks, evict);
            let _ = self.shared.queue.try_send(task);
        }
    }

    /// Ends the threads once the queue is empty.
    pub(crate) fn stop(&self) {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
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

fn submit(shared: &Shared, work: Work) {
    if let Err(error) = shared.queue.try_send(Task::Turn(work)) {
        if let Task::Turn(work) = error.into_inner() {
            let detail = "the I/O queue is full".to_owned();
            work.home
                .send(Command::Turn(work.job, Turn::Broken { detail }));
        }
    }
}

fn run(shared: &Arc<Shared>, queue: &Receiver<Task>) {
    while let Ok(task) = queue.recv() {
        let Work { mut job, home } = match task {
            Task::Turn(work) => work,
            Task::Stage(output, chunks, evict) => {
                stage(&shared.memory.cache, &output, chunks, evict);
                continue;
            }
            Task::Stop => return,
        };
        let turn = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            if job.needs_layout() && job.answers.is_empty() {
                look_up(shared, job, &home)
            } else {
                let turn = job.turn(&shared.memory, Sleep::May);
                Some((job, turn))
            }
        }));
        match turn {
            Ok(Some((job, turn))) => home.send(Command::Turn(job, turn)),
            Ok(None) => {}
            // The job went with the panic; its entry ends at its deadline.
            Err(_) => log::error!("a turn of a fetch panicked; the request is lost"),
        }
    }
}

fn stage(cache: &Arc<ChunkCache>, output: &Output, chunks: Range<u64>, evict: bool) {
    let Some(region) = output.region() else {
        return;
    };
    for chunk in chunks {
        match cache.prefetch(region, chunk, evict) {
            Ok(true) => {}
            Ok(false) if cache.has(region.id(), chunk) => {}
            Ok(false) => return,
            Err(error) => return log::warn!("a map output cannot be staged: {error}"),
        }
    }
}

/// A job that waits for answers.
struct Parked {
    work: Mutex<Option<Work>>,
    answers: Mutex<Vec<(faro_wire::OutputId, Answer)>>,
    /// Answers that are missing, plus one until the job is in `work`.
    missing: AtomicUsize,
}

/// Finds all outputs; a turn follows at once if they are known, else when the last answer is in.
fn look_up(shared: &Arc<Shared>, mut job: Box<Job>, home: &Arc<Inbox>) -> Option<(Box<Job>, Turn)> {
    let wanted = job.wanted();
    let mut parked: Option<Arc<Parked>> = None;
    for id in wanted {
        let lookup = shared.catalog.look_up(id, || {
            let parked = Arc::clone(parked.get_or_insert_with(|| {
                Arc::new(Parked {
                    work: Mutex::new(None),
                    answers: Mutex::default(),
                    missing: AtomicUsize::new(1),
                })
            }));
            parked.missing.fetch_add(1, Ordering::Relaxed);
            let shared = Arc::clone(shared);
            Box::new(move |answer| {
                lock(&parked.answers).push((id, answer));
                arrive(&shared, &parked);
            })
        });
        match lookup {
            Lookup::Ready(output) => {
                job.answers.insert(id, Ok(output));
            }
            Lookup::Waiting => {}
            Lookup::Full => {
                job.answers
                    .insert(id, Err(faro_wire::BlockStatus::UnknownOutput));
            }
        }
    }
    match parked {
        None => {
            let turn = job.turn(&shared.memory, Sleep::May);
            Some((job, turn))
        }
        Some(parked) => {
            *lock(&parked.work) = Some(Work {
                job,
                home: Arc::clone(home),
            });
            arrive(shared, &parked);
            None
        }
    }
}

/// Counts one arrival; the last one sends the job on.
fn arrive(shared: &Shared, parked: &Parked) {
    if parked.missing.fetch_sub(1, Ordering::AcqRel) != 1 {
        return;
    }
    if let Some(mut work) = lock(&parked.work).take() {
        work.job.answers.extend(lock(&parked.answers).drain(..));
        submit(shared, work);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
