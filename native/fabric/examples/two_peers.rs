//! Two peers of one fabric, in one process: connect, write, send a message, read back.
//!
//! `cargo run -p faro-fabric --example two_peers [-- tcp|shm]`
//!
//! A fabric does nothing by itself: its owner calls `poll`, which sends what was queued, receives
//! what came and reports it as events. Here one thread polls both peers in turn.

use faro_fabric::shm::{ShmConfig, ShmFabric};
use faro_fabric::tcp::{TcpConfig, TcpFabric};
use faro_fabric::{
    Event, Exposure, Fabric, Identity, Message, OwnIdentity, Read, RemoteRange, Write, WriteSource,
};
use faro_pool::{Pool, Purpose, MIN_LIMIT_BYTES};
use faro_secure::Protection;
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A fabric, and the pool that all memory it touches comes from.
type Peer = (Box<dyn Fabric>, Arc<Pool>);

fn peer(kind: &str, endpoint: u128) -> Result<Peer, Box<dyn Error>> {
    let pool = Pool::new(MIN_LIMIT_BYTES)?;
    let fabric: Box<dyn Fabric> = if kind == "shm" {
        let pool = pool.clone();
        Box::new(ShmFabric::new(ShmConfig {
            identity: OwnIdentity::public(endpoint),
            protection: Protection::Clear,
            pool,
        })?)
    } else {
        Box::new(TcpFabric::new(TcpConfig {
            bind: ([127, 0, 0, 1], 0).into(),
            advertise: String::new(),
            identity: OwnIdentity::public(endpoint),
            protection: Protection::Clear,
            pool: pool.clone(),
        })?)
    };
    Ok((fabric, pool))
}

/// Polls both peers until one of them reports an event that `wanted` takes.
fn until<T>(
    one: &mut dyn Fabric,
    other: &mut dyn Fabric,
    mut wanted: impl FnMut(Event) -> Option<T>,
) -> Result<T, Box<dyn Error>> {
    let mut events = Vec::new();
    loop {
        one.poll(&mut events, Duration::from_millis(1))?;
        other.poll(&mut events, Duration::from_millis(1))?;
        for event in events.drain(..) {
            if let Event::Closed { reason, .. } = &event {
                return Err(format!("the connection ended: {reason}").into());
            }
            if let Some(found) = wanted(event) {
                return Ok(found);
            }
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let kind = std::env::args().nth(1).unwrap_or("tcp".to_owned());
    let (mut client, client_pool) = peer(&kind, 1)?;
    let (mut server, server_pool) = peer(&kind, 2)?;

    // Connect. The client says which endpoint it expects; any other is refused.
    println!("{kind}: the server is at {}", server.location());
    let deadline = Instant::now() + Duration::from_secs(5);
    let to_server = client.connect(&server.location(), &Identity::public(2), deadline)?;
    let (mut connected, mut accepted) = (false, None);
    let to_client = until(&mut *server, &mut *client, |event| {
        match event {
            Event::Connected { .. } => connected = true,
            Event::Accepted { connection, .. } => accepted = Some(connection),
            _ => {}
        }
        accepted.filter(|_| connected)
    })?;
    println!("connected: each side knows the other by a number of its own");

    // Expose: the server lets this client write into one lease, and read another.
    let target = server_pool.try_lease(4096, Purpose::Read)?;
    let mut source = server_pool.try_lease(4096, Purpose::Serve)?;
    source.bytes_mut()[..5].copy_from_slice(b"world");
    let refused = "the server cannot expose more";
    let writable = server
        .expose(to_client, Exposure::Writable(target))
        .map_err(|_| refused)?;
    let readable = server
        .expose(to_client, Exposure::Readable(Arc::new(source)))
        .map_err(|_| refused)?;

    // Write. In an application the two ranges travel in a message; here they are at hand.
    let mut hello = client_pool.try_lease(4096, Purpose::Serve)?;
    hello.bytes_mut()[..5].copy_from_slice(b"hello");
    let write = Write {
        token: 1,
        source: WriteSource::part(Arc::new(hello), 0, 5),
        target: writable,
        // Two bytes that the server sees with the write.
        immediate: Some(7),
        // The server can take its memory back without asking this client.
        last: true,
    };
    client.write(to_server, write).map_err(|_| "no room")?;
    // A message after a write arrives after its bytes.
    let message = Message {
        kind: faro_wire::kind::FIRST_MESSAGE,
        id: 42,
        body: b"I wrote 5 bytes".to_vec(),
    };
    client.send(to_server, message).map_err(|_| "no room")?;
    let message = until(&mut *server, &mut *client, |event| match event {
        Event::Written {
            immediate, length, ..
        } => {
            println!("the server was written to: {length} bytes, immediate {immediate}");
            None
        }
        Event::Message { message, .. } => Some(message),
        _ => None,
    })?;
    let text = String::from_utf8_lossy(&message.body).into_owned();
    println!("the server got message {}: {text:?}", message.id);

    // Revoke: from here on no peer can change the lease, so its bytes may be used.
    let exposure = match server.revoke(writable.key) {
        faro_fabric::RevokeStatus::Now(exposure) => exposure,
        _ => return Err("after a last write, a revocation is complete at once".into()),
    };
    let bytes = &exposure.lease().bytes()[..5];
    println!("the server's lease: {:?}", String::from_utf8_lossy(bytes));

    // Read, into a lease of the client's; it comes back in the event.
    let read = Read {
        token: 2,
        source: RemoteRange {
            length: 5,
            ..readable
        },
        target: client_pool.try_lease(4096, Purpose::Read)?,
    };
    client.read(to_server, read).map_err(|_| "no room")?;
    let (outcome, target) = until(&mut *client, &mut *server, |event| match event {
        Event::ReadEnded {
            outcome, target, ..
        } => Some((outcome, target)),
        _ => None,
    })?;
    let bytes = String::from_utf8_lossy(&target.bytes()[..5]).into_owned();
    println!("the client read {bytes:?}: {outcome:?}");
    Ok(())
}
