//! One-sided reads against an owner that revokes and re-uses at any moment, on two threads: no
//! read may end `Done` with a byte of the next use. (The conformance suite is single-threaded, so
//! it cannot see a copy in the middle.)

#![allow(clippy::unwrap_used, reason = "a test may panic, also in its helpers")]

use faro_fabric::shm::{ShmConfig, ShmFabric};
use faro_fabric::{
    Event, Exposure, Fabric, Identity, Outcome, OwnIdentity, Read, RemoteRange, RevokeStatus,
};
use faro_pool::{Pool, Purpose};
use faro_secure::Protection;
use std::sync::mpsc::{
    channel, sync_channel, Receiver, Sender, SyncSender, TryRecvError, TrySendError,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

const BYTES: usize = 64 << 10;
const USES: u32 = 3_000;

fn fabric(endpoint: u128) -> (ShmFabric, Arc<Pool>) {
    let pool = Pool::new(faro_pool::MIN_LIMIT_BYTES).unwrap();
    let config = ShmConfig {
        identity: OwnIdentity::public(endpoint),
        protection: Protection::Clear,
        pool: pool.clone(),
    };
    (ShmFabric::new(config).unwrap(), pool)
}

/// Exposes the same memory again and again, each time filled with another byte, and revokes it
/// whenever it happens to.
fn owner(location: Sender<String>, uses: SyncSender<(RemoteRange, u8)>, reader: Receiver<()>) {
    let (mut fabric, pool) = fabric(2);
    location.send(fabric.location()).unwrap();
    let mut events = Vec::new();
    let connection = loop {
        fabric.poll(&mut events, Duration::from_millis(1)).unwrap();
        if let Some(connection) = events.iter().find_map(|event| match event {
            Event::Accepted { connection, .. } => Some(*connection),
            _ => None,
        }) {
            break connection;
        }
    };
    let mut lease = pool.try_lease(BYTES, Purpose::Serve).unwrap();
    for turn in 0..USES {
        let byte = turn as u8;
        lease.bytes_mut().fill(byte);
        let exposure = Exposure::Readable(Arc::new(lease));
        let range = fabric.expose(connection, exposure).map_err(drop).unwrap();
        // The reader takes the next use when it has seen the end of the one before. It needs us
        // meanwhile for its first read's mappings only.
        loop {
            match uses.try_send((range, byte)) {
                Ok(()) => break,
                Err(TrySendError::Full(_)) => fabric.poll(&mut events, Duration::ZERO).unwrap(),
                // It failed, and says so itself.
                Err(TrySendError::Disconnected(_)) => return,
            }
        }
        // The moment of the revocation varies.
        for _ in 0..turn % 40 {
            fabric.poll(&mut events, Duration::ZERO).unwrap();
        }
        lease = match fabric.revoke(range.key) {
            RevokeStatus::Now(Exposure::Readable(lease)) => Arc::try_unwrap(lease).unwrap(),
            _ => panic!("not revoked at once"),
        };
    }
    drop(uses);
    while reader.try_recv() != Err(TryRecvError::Disconnected) {
        fabric.poll(&mut events, Duration::from_millis(1)).unwrap();
    }
}

#[test]
fn no_read_is_done_with_bytes_of_the_next_use() {
    let (location_to, location) = channel();
    let (uses_to, uses) = sync_channel(0);
    // Nothing is ever sent: that it is dropped tells the owner that the reader is through.
    let (reading, reader) = channel::<()>();
    let owner = std::thread::spawn(move || owner(location_to, uses_to, reader));
    {
        let _reading = reading;
        let (mut fabric, pool) = fabric(1);
        let location: String = location.recv().unwrap();
        let deadline = Instant::now() + Duration::from_secs(3_600);
        let connection = fabric
            .connect(&location, &Identity::public(2), deadline)
            .unwrap();
        let mut events = Vec::new();
        while !events
            .iter()
            .any(|event| matches!(event, Event::Connected { .. }))
        {
            fabric.poll(&mut events, Duration::from_millis(1)).unwrap();
        }
        let mut target = Some(pool.try_lease(BYTES, Purpose::Read).unwrap());
        let (mut done, mut refused) = (0, 0);
        while let Ok((range, byte)) = uses.recv() {
            // Again and again, until the owner has gone on to the next use.
            let mut gone = false;
            while !gone {
                let read = Read {
                    token: 1,
                    source: range,
                    target: target.take().unwrap(),
                };
                fabric.read(connection, read).map_err(drop).unwrap();
                while target.is_none() {
                    fabric.poll(&mut events, Duration::from_millis(1)).unwrap();
                    for event in events.drain(..) {
                        if let Event::ReadEnded {
                            target: back,
                            outcome,
                            ..
                        } = event
                        {
                            match outcome {
                                Outcome::Done => {
                                    done += 1;
                                    let good = back.bytes().iter().all(|got| *got == byte);
                                    assert!(good, "bytes of another use");
                                }
                                Outcome::Refused => {
                                    refused += 1;
                                    gone = true;
                                }
                                Outcome::Flushed => panic!("the connection broke"),
                            }
                            target = Some(back);
                        }
                    }
                }
            }
        }
        println!("{done} reads done, {refused} refused");
        assert_eq!(refused, USES, "each use ends in one refusal");
    }
    owner.join().unwrap();
}
