//! Measures what a megabyte costs a reader of the service's host: from lent files on the reader's thread, and over shared
//! memory and TCP from the service's endpoint. Service and reader are in this process, so the CPU time is that of both.
//! Prints for each way and size of blocks the milliseconds of time and of CPU time for a megabyte, the median of the
//! passes; the files are in the page cache. The first line of each size is of borrowing all map outputs once.
//!
//! `cargo bench -p faro-service --bench lent -- DIRECTORY [PASSES]`
//!
//! DIRECTORY gets 256 MiB of map outputs.

use faro_endpoint::{Config, Endpoint, FabricChoice};
use faro_service::{Client, Hello, Listener, Options, Service, Token, Users, CONNECTIONS};
use faro_wire::{BlockId, OutputId};
use rustix::time::{clock_gettime, ClockId};
use std::error::Error;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

type Attempt<T> = Result<T, Box<dyn Error>>;

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const TIMEOUT: Duration = Duration::from_secs(30);
const OUTPUTS: i64 = 64;
const OUTPUT_BYTES: usize = 4 << 20;
const BLOCK_BYTES: [usize; 3] = [4 << 10, 64 << 10, 1 << 20];
/// What a reader of Spark asks for at a time.
const REQUEST_BYTES: usize = 8 << 20;
const UNDER_WAY: usize = 5;
/// Bytes that one read takes from a file.
const READ_BYTES: usize = 64 << 10;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    Lent,
    Fabric(FabricChoice),
}

fn config(name: &str, fabric: FabricChoice) -> Config {
    Config {
        name: name.to_owned(),
        fabric,
        memory_limit: 512 << 20,
        request_timeout: TIMEOUT,
        ..Config::default()
    }
}

fn id(map_id: i64) -> OutputId {
    OutputId {
        shuffle_id: 0,
        map_id,
    }
}

/// Seconds of this process.
fn cpu() -> f64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

fn service(directory: &Path, fabric: FabricChoice) -> Attempt<(Arc<Service>, Listener)> {
    let service = Service::open(Options {
        socket_directory: directory.join("socket"),
        data_directory: directory.join("data"),
        bind: LOCALHOST,
        advertise: LOCALHOST,
        port: 0,
        fabric,
        memory: 128 << 20,
        connections: CONNECTIONS,
        applications: 1,
        quota: 1 << 40,
        idle: Duration::from_secs(3_600),
        users: Users::Own,
        replica_bandwidth: 1 << 30,
    })?;
    let listener = Listener::start(&service)?;
    Ok((service, listener))
}

fn hand_over(client: &Client, directory: &Path, block_bytes: usize) -> Attempt<u32> {
    let blocks = OUTPUT_BYTES / block_bytes;
    let index = (0..=blocks).flat_map(|at| ((at * block_bytes) as u64).to_be_bytes());
    let index: Vec<u8> = index.collect();
    let data: Vec<u8> = (0..OUTPUT_BYTES as u32)
        .map(|at| at.wrapping_mul(2_654_435_761) as u8)
        .collect();
    for map in 0..OUTPUTS {
        let [index_path, data_path] = ["map.index", "map.data"].map(|part| directory.join(part));
        std::fs::write(&index_path, &index)?;
        std::fs::write(&data_path, &data)?;
        client.hand_over(id(map), &index_path, &data_path)?;
        std::fs::remove_file(&index_path)?;
        std::fs::remove_file(&data_path)?;
    }
    Ok(blocks as u32)
}

fn from_files(reader: &Endpoint, blocks: u32, buffer: &mut [u8]) -> Attempt<()> {
    for partition in 0..blocks {
        for map in 0..OUTPUTS {
            let block = reader
                .local(id(map), partition, partition + 1)
                .map_err(|error| format!("{error:?}"))?;
            let mut position = 0;
            while position < block.length() {
                let left = (block.length() - position) as usize;
                let now = left.min(buffer.len());
                let read = block.read_at(position, &mut buffer[..now]);
                read.map_err(|error| format!("{error:?}"))?;
                position += now as u64;
            }
        }
    }
    Ok(())
}

fn from_fabric(reader: &Endpoint, peer: u64, blocks: u32, block_bytes: usize) -> Attempt<()> {
    let ids: Vec<BlockId> = (0..blocks)
        .flat_map(|partition| {
            (0..OUTPUTS).map(move |map| BlockId {
                map_id: map.into(),
                shuffle_id: 0.into(),
                start_reduce: partition.into(),
                end_reduce: (partition + 1).into(),
                piece: 0.into(),
            })
        })
        .collect();
    let (mut under_way, mut completions) = (0, Vec::new());
    let mut requests = ids.chunks((REQUEST_BYTES / block_bytes).max(1)).peekable();
    while under_way > 0 || requests.peek().is_some() {
        while under_way < UNDER_WAY {
            let Some(request) = requests.next() else {
                break;
            };
            reader.fetch(peer, request, TIMEOUT)?;
            under_way += 1;
        }
        reader.completions(64, TIMEOUT, &mut completions);
        for completion in completions.drain(..) {
            completion.outcome.map_err(|failure| failure.detail)?;
            under_way -= usize::from(completion.last);
        }
    }
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn measure(directory: &Path, way: Way, block_bytes: usize, passes: usize) -> Attempt<()> {
    let place = tempfile::tempdir_in(directory)?;
    let fabric = match way {
        Way::Lent => FabricChoice::Tcp,
        Way::Fabric(fabric) => fabric,
    };
    let (service, listener) = service(place.path(), fabric)?;
    let hello = Hello {
        application: "app".to_owned(),
        executor: "1".to_owned(),
        sealed: false,
        token: Token::new([1; 32]),
        secret: Default::default(),
    };
    let client = Client::connect(&place.path().join("socket"), hello, TIMEOUT)?;
    let blocks = hand_over(&client, place.path(), block_bytes)?;
    let mut security = config("reader", fabric);
    security.security.application = "app".to_owned();
    let reader = Endpoint::start(security)?;
    let peer = reader.add_peer(client.card())?;
    let megabytes = (OUTPUTS as usize * OUTPUT_BYTES) as f64 / f64::from(1 << 20);
    if way == Way::Lent {
        let start = Instant::now();
        let maps: Vec<i64> = (0..OUTPUTS).collect();
        let lent = client.borrow(&reader, 0, &maps)?;
        if lent.contains(&false) {
            return Err("not all map outputs are lent".into());
        }
        let each = start.elapsed().as_secs_f64() * 1e6 / OUTPUTS as f64;
        println!("borrowing: {each:.1} us for each map output");
    }
    let mut buffer = vec![0; READ_BYTES];
    let (mut times, mut cpus) = (Vec::new(), Vec::new());
    for pass in 0..=passes {
        let (start, used) = (Instant::now(), cpu());
        match way {
            Way::Lent => from_files(&reader, blocks, &mut buffer)?,
            Way::Fabric(_) => from_fabric(&reader, peer, blocks, block_bytes)?,
        }
        // The first pass makes the connection and opens the files.
        if pass > 0 {
            times.push(start.elapsed().as_secs_f64() * 1e3 / megabytes);
            cpus.push((cpu() - used) * 1e3 / megabytes);
        }
    }
    println!(
        "{way:?}, blocks of {} KB: {:.3} ms, {:.3} ms of CPU for a megabyte",
        block_bytes >> 10,
        median(times),
        median(cpus)
    );
    reader.close();
    drop(client);
    drop(listener);
    service.close();
    Ok(())
}

fn main() -> Attempt<()> {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let Some(directory) = arguments.first() else {
        return Err("a directory, and maybe a number of passes (9)".into());
    };
    let passes = arguments.get(1).map_or(Ok(9), |passes| passes.parse())?;
    for block_bytes in BLOCK_BYTES {
        for way in [
            Way::Lent,
            Way::Fabric(FabricChoice::Shm),
            Way::Fabric(FabricChoice::Tcp),
        ] {
            measure(Path::new(directory), way, block_bytes, passes)?;
        }
    }
    Ok(())
}
