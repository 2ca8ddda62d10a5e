//! A bounded queue of log lines. Native threads put lines in and never wait; one Java thread takes
//! them out. If that is too slow, lines are dropped and their number is logged.

use crossbeam_queue::ArrayQueue;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Lines that may wait.
pub const CAPACITY: usize = 1_024;
/// Longest text of a line, in bytes.
const MAX_TEXT_BYTES: usize = 4_096;

/// The queue.
pub struct LogQueue {
    lines: ArrayQueue<String>,
    /// Lines that found the queue full since the last `drain`.
    dropped: AtomicU64,
    /// The reader waits or is about to wait: a writer must wake it.
    waiting: AtomicBool,
    mutex: Mutex<()>,
    wake: Condvar,
}

impl LogQueue {
    pub fn new() -> Self {
        Self {
            lines: ArrayQueue::new(CAPACITY),
            dropped: AtomicU64::new(0),
            waiting: AtomicBool::new(false),
            mutex: Mutex::new(()),
            wake: Condvar::new(),
        }
    }

    /// Adds a line of level (1 error to 5 trace), target and text.
    pub fn push(&self, level: u32, target: &str, text: &str) {
        let mut end = text.len().min(MAX_TEXT_BYTES);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let mut line = String::with_capacity(target.len() + end + 4);
        line.push_str(&format!("{level}\t{target}\t"));
        for character in text[..end].chars() {
            match character {
                '\n' => line.push_str("\\n"),
                '\r' => line.push_str("\\r"),
                other => line.push(other),
            }
        }
        if self.lines.push(line).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        // Pairs with the reader's store and then load (both SeqCst): either the reader sees the line,
        // or this thread sees that the reader waits.
        if self.waiting.load(Ordering::SeqCst) {
            let _guard = self.mutex.lock().unwrap_or_else(PoisonError::into_inner);
            self.wake.notify_one();
        }
    }

    /// Waits up to `timeout` for a line and takes all lines, each ended by `
    /// `; `None` if none came.
    pub fn drain(&self, timeout: Duration) -> Option<String> {
        if self.lines.is_empty() {
            let guard = self.mutex.lock().unwrap_or_else(PoisonError::into_inner);
            self.waiting.store(true, Ordering::SeqCst);
            std::sync::atomic::fence(Ordering::SeqCst);
            let waited = self
                .wake
                .wait_timeout_while(guard, timeout, |()| self.lines.is_empty());
            self.waiting.store(false, Ordering::SeqCst);
            drop(waited);
        }
        let mut text = String::new();
        // Bounded, so that a busy writer cannot keep the reader here.
        for _ in 0..CAPACITY {
            let Some(line) = self.lines.pop() else { break };
            text.push_str(&line);
            text.push('\n');
        }
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            text.push_str(&format!(
                "2\tfaro_jni::log\t{dropped} log lines were dropped, the queue of {CAPACITY} was full\n"
            ));
        }
        (!text.is_empty()).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::ZERO;

    #[test]
    fn lines_come_out_in_order_with_line_breaks_escaped() {
        let queue = LogQueue::new();
        queue.push(1, "a::b", "one\ntwo");
        queue.push(5, "c", "three");
        assert_eq!(
            queue.drain(NOW).as_deref(),
            Some("1\ta::b\tone\\ntwo\n5\tc\tthree\n")
        );
        assert_eq!(queue.drain(NOW), None);
    }

    #[test]
    fn overflow_is_counted_and_logged_once() {
        let queue = LogQueue::new();
        for _ in 0..CAPACITY + 7 {
            queue.push(3, "t", "x");
        }
        let text = queue.drain(NOW).unwrap();
        assert_eq!(text.lines().count(), CAPACITY + 1);
        assert!(text.lines().last().unwrap().contains("7 log lines"));
        assert_eq!(queue.drain(NOW), None);
    }

    #[test]
    fn long_lines_are_cut_between_characters() {
        let queue = LogQueue::new();
        queue.push(1, "t", &"ä".repeat(MAX_TEXT_BYTES));
        let text = queue.drain(NOW).unwrap();
        assert!(text.len() <= MAX_TEXT_BYTES + 8, "{}", text.len());
    }

    #[test]
    fn a_waiting_reader_is_woken() {
        let queue = LogQueue::new();
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| queue.drain(Duration::from_secs(60)));
            queue.push(1, "t", "x");
            assert!(reader.join().unwrap().is_some());
        });
    }
}
