//! Bytes a second that are copied here, of all applications.

use faro_sync::lock;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Grants bytes one after the other. Nothing is saved up while nothing is copied.
#[derive(Debug)]
pub(crate) struct Throttle {
    bytes_a_second: u64,
    /// When all granted bytes will have had their time.
    free_at: Mutex<Option<Instant>>,
}

impl Throttle {
    pub(crate) fn new(bytes_a_second: u64) -> Self {
        Self {
            bytes_a_second,
            free_at: Mutex::default(),
        }
    }

    /// Takes `bytes`, which may be copied when the time that it returns has passed.
    pub(crate) fn take(&self, bytes: u64, now: Instant) -> Duration {
        let mut free_at = lock(&self.free_at);
        let start = free_at.map_or(now, |at| at.max(now));
        let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(self.bytes_a_second.max(1));
        *free_at = Some(start + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)));
        start - now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_granted_than_its_time_allows() {
        let throttle = Throttle::new(1_000);
        let start = Instant::now();
        let (mut now, mut granted) = (start, 0);
        for bytes in [500, 10, 0, 2_000, 300, 700] {
            now += throttle.take(bytes, now);
            let allowed = now.duration_since(start).as_millis() as u64;
            assert!(
                granted <= allowed,
                "{granted} bytes before, {allowed} allowed"
            );
            granted += bytes;
        }
        assert_eq!(now.duration_since(start), Duration::from_millis(2_810));
    }

    #[test]
    fn nothing_is_saved_up() {
        let throttle = Throttle::new(1_000);
        let start = Instant::now();
        assert_eq!(throttle.take(1_000, start), Duration::ZERO);
        let later = start + Duration::from_secs(60);
        assert_eq!(throttle.take(1_000, later), Duration::ZERO);
        assert_eq!(throttle.take(1, later), Duration::from_secs(1));
    }
}
