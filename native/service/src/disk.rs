//! Threads of one application for what its disk may keep waiting: a disk that hangs, or a file whose opening waits,
//! stops no other application. A caller waits for a bounded time.

use faro_sync::{clock, lock, panic_message, wait_timeout, Condvar, Mutex};
use std::collections::VecDeque;
use std::io;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// Less than the 5 s that an executor gives each message, so that it hears why.
pub(crate) const DISK_WAIT: Duration = Duration::from_secs(4);
/// Threads of an application. With fewer, one slow file would be waited for by all its executors.
pub(crate) const THREADS: usize = 4;

/// The reason that there is no answer.
#[derive(Debug, Error)]
pub(crate) enum DiskError {
    #[error("the disk has not answered for {} s", waited.as_secs())]
    Late { waited: Duration },
    #[error("there is no thread for the disk: {0}")]
    Thread(io::Error),
}

type DiskWork = Box<dyn FnOnce() + Send>;

struct DiskTask {
    number: u64,
    work: DiskWork,
}

#[derive(Default)]
struct DiskState {
    waiting: VecDeque<DiskTask>,
    next: u64,
    threads: usize,
    idle: usize,
    ended: bool,
}

#[derive(Default)]
struct DiskQueue {
    state: Mutex<DiskState>,
    changed: Condvar,
}

/// Its threads end when it is dropped and all is done. They are not waited for: one of them may wait for ever.
pub(crate) struct Disk {
    shared: Arc<DiskQueue>,
    wait: Duration,
}

impl Disk {
    /// `wait`: for each answer.
    pub(crate) fn new(wait: Duration) -> Arc<Self> {
        let shared = Arc::default();
        Arc::new(Self { shared, wait })
    }

    /// Does it at some time.
    ///
    /// # Errors
    /// `Thread`; then it is not done.
    pub(crate) fn put(&self, work: impl FnOnce() + Send + 'static) -> Result<(), DiskError> {
        self.add(Box::new(work)).map(|_| ())
    }

    /// Waits for the value of `work`. Work that has not begun in time is not done; work that has begun goes on, and its
    /// value is dropped.
    ///
    /// # Errors
    /// `Late`, `Thread`.
    pub(crate) fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, DiskError> {
        let answer = Arc::new((Mutex::new(None), Condvar::new()));
        let to = Arc::clone(&answer);
        let number = self.add(Box::new(move || {
            let value = work();
            *lock(&to.0) = Some(value);
            to.1.notify_all();
        }))?;
        let deadline = clock::now() + self.wait;
        let mut value = lock(&answer.0);
        loop {
            if let Some(value) = value.take() {
                return Ok(value);
            }
            let left = deadline.saturating_duration_since(clock::now());
            if left.is_zero() {
                break;
            }
            value = wait_timeout(&answer.1, value, left);
        }
        drop(value);
        let mut state = lock(&self.shared.state);
        let at = state.waiting.iter().position(|task| task.number == number);
        let never_begun = at.and_then(|at| state.waiting.remove(at));
        drop(state);
        // It may hold descriptors, whose closing may wait.
        drop(never_begun);
        Err(DiskError::Late { waited: self.wait })
    }

    fn add(&self, work: DiskWork) -> Result<u64, DiskError> {
        let mut state = lock(&self.shared.state);
        let number = state.next;
        state.next += 1;
        state.waiting.push_back(DiskTask { number, work });
        if state.waiting.len() > state.idle && state.threads < THREADS {
            let shared = Arc::clone(&self.shared);
            let thread = std::thread::Builder::new()
                .name("faro-disk".to_owned())
                .spawn(move || shared.work());
            match thread {
                Ok(_) => state.threads += 1,
                // The other threads will do it.
                Err(_) if state.threads > 0 => {}
                Err(error) => {
                    state.waiting.pop_back();
                    return Err(DiskError::Thread(error));
                }
            }
        }
        drop(state);
        self.shared.changed.notify_one();
        Ok(number)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        lock(&self.shared.state).ended = true;
        self.shared.changed.notify_all();
    }
}

impl DiskQueue {
    fn work(&self) {
        const LONG: Duration = Duration::from_secs(3_600);
        let mut state = lock(&self.state);
        loop {
            if let Some(task) = state.waiting.pop_front() {
                drop(state);
                if let Err(panic) = catch_unwind(AssertUnwindSafe(task.work)) {
                    log::error!("work on a disk panicked: {}", panic_message(&*panic));
                }
                state = lock(&self.state);
                continue;
            }
            if state.ended {
                state.threads -= 1;
                return;
            }
            state.idle += 1;
            state = wait_timeout(&self.changed, state, LONG);
            state.idle -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn one_that_waits_stops_none_that_is_asked_later() {
        let disk = Disk::new(DISK_WAIT * 15);
        let (release, hangs) = mpsc::channel::<()>();
        disk.put(move || hangs.recv().unwrap()).unwrap();
        assert_eq!(disk.ask(|| 7).unwrap(), 7);
        release.send(()).unwrap();
    }

    #[test]
    fn what_is_not_begun_in_time_is_not_done() {
        let disk = Disk::new(Duration::ZERO);
        let (release, hangs) = mpsc::channel::<()>();
        let hangs = Arc::new(Mutex::new(hangs));
        let (begun, begins) = mpsc::channel();
        for _ in 0..THREADS {
            let (hangs, begun) = (Arc::clone(&hangs), begun.clone());
            let waits = move || {
                begun.send(()).unwrap();
                let _ = lock(&hangs).recv();
            };
            disk.put(waits).unwrap();
            begins.recv().unwrap();
        }
        let held = Arc::new(());
        let of_work = Arc::clone(&held);
        let late = disk.ask(move || drop(of_work));
        assert!(matches!(late, Err(DiskError::Late { .. })));
        assert_eq!(Arc::strong_count(&held), 1, "it is not kept in the queue");
        assert!(lock(&disk.shared.state).waiting.is_empty());
        drop(release);
    }

    #[test]
    fn a_panic_ends_no_thread() {
        let disk = Disk::new(Duration::ZERO);
        for _ in 0..2 * THREADS {
            disk.put(|| panic!("this panic belongs to the test"))
                .unwrap();
        }
        let (done, is_done) = mpsc::channel();
        disk.put(move || done.send(()).unwrap()).unwrap();
        is_done.recv().unwrap();
    }
}
