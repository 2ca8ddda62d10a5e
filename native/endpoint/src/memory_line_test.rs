use super::*;
use std::sync::atomic::AtomicUsize;
use std::sync::Arc;
use FabricKind::{Shm, Tcp, Verbs};

/// A line, and how often each fabric was woken.
fn line() -> (MemoryLine, [Arc<AtomicUsize>; KINDS]) {
    let (line, woken) = (MemoryLine::new(), <[Arc<AtomicUsize>; KINDS]>::default());
    let wakers = [Tcp, Shm, Verbs].map(|kind| {
        let woken = Arc::clone(&woken[kind as usize]);
        let wake: WakeFabric = Box::new(move || {
            woken.fetch_add(1, Ordering::Relaxed);
        });
        (kind, wake)
    });
    line.set_wakers(wakers.into());
    (line, woken)
}

fn counts(woken: &[Arc<AtomicUsize>; KINDS]) -> [usize; KINDS] {
    [Tcp, Shm, Verbs].map(|kind| woken[kind as usize].load(Ordering::Relaxed))
}

#[test]
fn the_oldest_of_all_others_is_known() {
    let (line, _) = line();
    assert_eq!(line.oldest_elsewhere(Tcp), None);
    line.publish(Tcp, Some(7));
    line.publish(Shm, Some(5));
    assert_eq!(line.oldest_elsewhere(Tcp), Some(5));
    assert_eq!(line.oldest_elsewhere(Shm), Some(7));
    assert_eq!(line.oldest_elsewhere(Verbs), Some(5));
    assert!(line.has_older(6) && !line.has_older(5));
    line.publish(Shm, None);
    assert_eq!(line.oldest_elsewhere(Tcp), None);
    assert!(line.has_older(8) && !line.has_older(7));
}

#[test]
fn others_are_woken_when_an_older_request_is_through() {
    let (line, woken) = line();
    line.publish(Tcp, Some(3));
    line.publish(Tcp, Some(3));
    line.publish(Tcp, Some(2));
    assert_eq!(counts(&woken), [0, 0, 0], "nobody waits less than before");
    line.publish(Tcp, Some(9));
    assert_eq!(counts(&woken), [0, 1, 1]);
    line.publish(Tcp, None);
    assert_eq!(counts(&woken), [0, 2, 2]);
}
