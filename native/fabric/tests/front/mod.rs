//! A port that endpoints share, with a thread that accepts at it.

use faro_fabric::tcp::{Bounds, SharedPort};
use faro_fabric::Waker;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

pub struct Front {
    pub port: SharedPort,
    stop: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl Front {
    pub fn on(host: IpAddr) -> Self {
        let opened = SharedPort::open((host, 0).into(), "", Bounds::default());
        let (port, mut acceptor) = opened.unwrap();
        let (stop, waker) = (Arc::<AtomicBool>::default(), acceptor.waker());
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Acquire) {
                acceptor.poll(Duration::from_secs(60)).unwrap();
            }
        });
        Self {
            port,
            stop,
            waker,
            thread: Some(thread),
        }
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        (self.waker)();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}
