//! Two endpoints in one process: one has a map output, the other fetches blocks of it.
//!
//! `cargo run -p faro-endpoint --example fetch_blocks [tcp|shm|verbs]`
//!
//! An executor of Spark has one endpoint. It plays both parts at once; here each plays one, so that
//! every step has a line of its own.

use faro_endpoint::{Completion, Config, Endpoint, FabricChoice, OutputFiles};
use faro_wire::BlockId;
use std::error::Error;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(10);

fn main() -> Result<(), Box<dyn Error>> {
    let fabric = match std::env::args().nth(1).as_deref() {
        None | Some("tcp") => FabricChoice::Tcp,
        Some("shm") => FabricChoice::Shm,
        Some("verbs") => FabricChoice::Verbs,
        Some(other) => return Err(format!("fabric '{other}': tcp, shm or verbs").into()),
    };
    let directory = tempfile::tempdir()?;

    // A map output is Spark's data file and index file: the offsets of its blocks, big-endian.
    let blocks = ["the first block", "", "the third one"];
    let mut index = vec![0u8; 8];
    for (n, _) in blocks.iter().enumerate() {
        let end: usize = blocks[..=n].iter().map(|block| block.len()).sum();
        index.extend((end as u64).to_be_bytes());
    }
    let files = OutputFiles {
        data: directory.path().join("shuffle_7_3_0.data"),
        index: directory.path().join("shuffle_7_3_0.index"),
    };
    fs::write(&files.data, blocks.concat())?;
    fs::write(&files.index, index)?;

    // Each endpoint opens its fabrics and starts their threads; nothing is connected yet.
    let server = start("server", fabric)?;
    let client = start("client", fabric)?;
    println!(
        "arena of the client: {} MiB at most",
        client.pool().counters().limit_bytes >> 20
    );

    // The client needs the server's card to reach it. In Spark the card is a block of its own.
    let peer = client.add_peer(&server.card())?;
    let wanted: Vec<BlockId> = (0..blocks.len() as u32).map(block).collect();
    let request = client.fetch(peer, &wanted, TIMEOUT)?;
    println!("request {request}: {} blocks", wanted.len());

    // The server does not know where map outputs lie. It asks, and in Spark Java answers.
    for output in server.unresolved(16, TIMEOUT) {
        println!("the server asks for map output {output:?}");
        server.resolve(output, Some(files.clone()));
    }

    // Blocks arrive in leases of the client's arena, in the order of the request.
    let mut completions = Vec::new();
    client.completions(16, TIMEOUT, &mut completions);
    for completion in &completions {
        print(completion)?;
    }
    // Dropping a completion returns its leases.
    drop(completions);
    client.close();
    server.close();
    Ok(())
}

fn start(name: &str, fabric: FabricChoice) -> Result<Arc<Endpoint>, Box<dyn Error>> {
    Ok(Endpoint::start(Config {
        name: name.to_owned(),
        fabric,
        memory_limit: 64 << 20,
        idle_release: Duration::ZERO,
        request_timeout: TIMEOUT,
        ..Config::default()
    })?)
}

fn block(reduce: u32) -> BlockId {
    BlockId {
        map_id: 3.into(),
        shuffle_id: 7.into(),
        start_reduce: reduce.into(),
        end_reduce: (reduce + 1).into(),
        piece: 0.into(),
    }
}

fn print(completion: &Completion) -> Result<(), Box<dyn Error>> {
    let delivery = match &completion.outcome {
        Ok(delivery) => delivery,
        Err(failure) => return Err(failure.detail.clone().into()),
    };
    // The slices, one after the other, are the blocks, one after the other.
    let mut bytes = Vec::new();
    for slice in &delivery.slices {
        let from = slice.offset as usize;
        bytes.extend_from_slice(&slice.lease.bytes()[from..from + slice.length as usize]);
    }
    let mut rest = bytes.as_slice();
    for (n, entry) in delivery.blocks.iter().enumerate() {
        let (block, others) = rest.split_at(entry.length.get() as usize);
        rest = others;
        let number = completion.first_block as usize + n;
        println!("block {number}: {:?}", String::from_utf8_lossy(block));
    }
    Ok(())
}
