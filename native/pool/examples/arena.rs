//! Shows the arena: leases memory, uses it, exhausts the arena, returns the memory, and reads the
//! counters.
//!
//! `cargo run -p faro-pool --example arena`

use faro_pool::{Pool, PoolError, Purpose, MIN_LIMIT_BYTES, PAGE_BYTES};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    // 32 MiB is the smallest arena: one slab of 16 MiB for reading and one for serving. Nothing is
    // mapped before the first lease.
    let pool = Pool::new(MIN_LIMIT_BYTES)?;
    println!("new:        {}", summary(&pool));

    // A lease has the smallest size class that holds the request: 2, 4, 16, 64 or 256 KiB. The
    // purpose decides which share of the arena it counts against.
    let mut page = pool.try_lease(PAGE_BYTES, Purpose::Read)?;
    let mut small = pool.try_lease(1000, Purpose::Serve)?;
    println!(
        "1000 bytes were asked for, {} were leased",
        small.capacity()
    );

    // Only the owner of a lease writes to it.
    page.bytes_mut()[..5].copy_from_slice(b"bytes");
    let (from, to) = (&page.bytes()[..5], &mut small.bytes_mut()[..5]);
    to.copy_from_slice(from);
    println!(
        "copied:     {}",
        String::from_utf8_lossy(&small.bytes()[..5])
    );
    // A fabric needs these values to name the bytes to a device or to a peer.
    println!(
        "they lie in slab {} at offset {}",
        small.slab(),
        small.offset()
    );

    // The limit is hard. Readers also leave a reserve for serving, so that two processes that read
    // from each other can always answer.
    let mut pages = vec![page];
    let refused = loop {
        match pool.try_lease(PAGE_BYTES, Purpose::Read) {
            Ok(page) => pages.push(page),
            Err(error) => break error,
        }
    };
    println!("exhausted:  {}", summary(&pool));
    println!("the error:  {refused}");
    assert!(matches!(refused, PoolError::Exhausted { .. }));
    drop(pool.try_lease(PAGE_BYTES, Purpose::Serve)?);

    // Dropping a lease returns it, on any thread. `Pool::lease_before` waits for that.
    drop(pages);
    drop(small);
    let again = pool.try_lease(PAGE_BYTES, Purpose::Read)?;
    println!("one again:  {}", summary(&pool));
    // Memory is recycled as it is: new pages are zero, used pages keep their bytes.
    drop(again);
    println!("{:#?}", pool.counters());
    Ok(())
}

fn summary(pool: &Pool) -> String {
    let counters = pool.counters();
    let kib = |bytes: u64| bytes >> 10;
    format!(
        "{} KiB leased of {} KiB, {} KiB mapped",
        kib(counters.leased_bytes),
        kib(counters.limit_bytes),
        kib(counters.mapped_bytes)
    )
}
