//! One endpoint of an all-to-all exchange, for measuring: every process reads its partition from all
//! others, as often as it is told. `tests/bench/exchange` starts them and adds up what they say.
//!
//! `alltoall rank=0 of=4 dir=/tmp/x bind=10.77.0.1 fabric=verbs policy=grouped slice_ms=20 bytes=1048576
//! maps=4 repeat=3 seed=1 ack_timeout=14 in_flight=50331648`: `bytes` for each pair, in as many requests
//! as there are `maps`, and at most `in_flight` bytes are asked for at a time; processes meet in `dir`.
//! The first exchange (turn 0) makes the connections and comes before the `repeat` others: after it
//! each process writes `connected.RANK` and waits for the file `go`, so that links can be changed while
//! none of them moves data. One line of JSON for each time: when it began and ended, in microseconds of
//! the clock that all share, and how many requests failed and were asked again; a last line has the
//! counters.

#![allow(clippy::unwrap_used)] // A measurement that goes wrong ends.

use faro_endpoint::{
    Completion, Config, Endpoint, ExchangeConfig, ExchangePolicy, FabricChoice, OutputFiles,
    VerbsOptions,
};
use faro_exchange::SplitMix64;
use faro_wire::{BlockId, OutputId};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

const TIMEOUT: Duration = Duration::from_secs(60);
/// Time that the others may take to come.
const MEETING: Duration = Duration::from_secs(120);
struct Options(HashMap<String, String>);

impl Options {
    fn text(&self, name: &str) -> &str {
        self.0
            .get(name)
            .unwrap_or_else(|| panic!("{name}=... is missing"))
    }
    fn number(&self, name: &str) -> u64 {
        let text = self.text(name);
        text.parse()
            .unwrap_or_else(|_| panic!("{name}={text} is not a number"))
    }
}

/// Returns the byte at `at` of the block that `server` has in `map` for `client`.
fn byte(server: u64, map: u64, client: u64, at: u64) -> u8 {
    (server * 31 + map * 17 + client * 7 + at + at / 251) as u8
}

/// Writes a map output as Spark would: a partition for each client.
fn write_output(dir: &Path, server: u64, map: u64, readers: u64, bytes: u64) -> OutputFiles {
    let files = OutputFiles {
        data: dir.join(format!("{server}-{map}.data")),
        index: dir.join(format!("{server}-{map}.index")),
    };
    let of = |client| (0..bytes).map(move |at| byte(server, map, client, at));
    let data: Vec<u8> = (0..readers).flat_map(of).collect();
    let index: Vec<u8> = (0..=readers)
        .flat_map(|n| (n * bytes).to_be_bytes())
        .collect();
    std::fs::write(&files.data, data).unwrap();
    std::fs::write(&files.index, index).unwrap();
    files
}

/// Where the processes meet.
struct Meeting {
    dir: PathBuf,
    rank: u64,
    of: u64,
    /// Time between two looks. Sixteen and more that look take the guest's only processor.
    pause: Duration,
}

impl Meeting {
    /// Says that this process is there and waits for all others.
    fn meet(&self, what: &str, say: &[u8]) -> Vec<Vec<u8>> {
        let name = |rank| format!("{what}.{rank}");
        let unfinished = self.dir.join(format!("{what}.{}.new", self.rank));
        std::fs::write(&unfinished, say).unwrap();
        std::fs::rename(unfinished, self.dir.join(name(self.rank))).unwrap();
        (0..self.of)
            .map(|rank| self.wait_for(&name(rank)))
            .collect()
    }

    /// Returns the file's content, once it is there.
    fn wait_for(&self, name: &str) -> Vec<u8> {
        let deadline = Instant::now() + MEETING;
        loop {
            match std::fs::read(self.dir.join(name)) {
                Ok(said) => return said,
                Err(_) => std::thread::sleep(self.pause),
            }
            assert!(Instant::now() < deadline, "no {name} after {MEETING:?}");
        }
    }
}

fn micros() -> u128 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap().as_micros()
}

/// One request, whose bytes must be those of `byte`.
struct WantedBlocks {
    server: u64,
    map: u64,
    got: u64,
}

/// Checks a completion. Returns false if its request failed.
fn check(completion: &Completion, wanted: &mut WantedBlocks, client: u64) -> bool {
    let delivery = match &completion.outcome {
        Ok(delivery) => delivery,
        Err(failure) => {
            eprintln!("server {}: {failure:?}", wanted.server);
            return false;
        }
    };
    assert!(delivery.blocks.iter().all(|block| block.status.get() == 0));
    for piece in &delivery.slices {
        let (from, length) = (piece.offset as usize, piece.length as usize);
        let bytes = &piece.lease.bytes()[from..from + length];
        // One byte of each packet: the endpoint has checked its sums.
        for at in (0..length).step_by(1_024) {
            let right = byte(wanted.server, wanted.map, client, wanted.got + at as u64);
            assert_eq!(
                bytes[at],
                right,
                "server {} at {}",
                wanted.server,
                wanted.got + at as u64
            );
        }
        wanted.got += length as u64;
    }
    true
}

struct Exchange {
    endpoint: Arc<Endpoint>,
    rank: u64,
    /// Handle by rank.
    peers: Vec<u64>,
    maps: u64,
    /// Bytes of one request.
    bytes: u64,
    /// Bytes asked for and not there.
    in_flight: u64,
}

impl Exchange {
    /// Reads everything once, in an order of its own; says how many requests failed meanwhile.
    fn run(&self, rng: &mut SplitMix64) -> u64 {
        let mut failed = 0;
        let others = (0..self.peers.len() as u64).filter(|server| *server != self.rank);
        let mut rest: Vec<(u64, u64)> = others
            .flat_map(|server| (0..self.maps).map(move |map| (server, map)))
            .collect();
        rng.shuffle(&mut rest);
        let mut open: HashMap<u64, WantedBlocks> = HashMap::new();
        let mut batch = Vec::new();
        while !rest.is_empty() || !open.is_empty() {
            while (open.len() as u64 + 1) * self.bytes <= self.in_flight.max(self.bytes) {
                let Some((server, map)) = rest.pop() else {
                    break;
                };
                let block = BlockId {
                    map_id: (map as i64 * self.peers.len() as i64 + server as i64).into(),
                    shuffle_id: 0.into(),
                    start_reduce: (self.rank as u32).into(),
                    end_reduce: (self.rank as u32 + 1).into(),
                    piece: 0.into(),
                };
                let peer = self.peers[server as usize];
                let request = self.endpoint.fetch(peer, &[block], TIMEOUT).unwrap();
                open.insert(
                    request,
                    WantedBlocks {
                        server,
                        map,
                        got: 0,
                    },
                );
            }
            self.endpoint
                .completions(64, Duration::from_millis(100), &mut batch);
            for completion in batch.drain(..) {
                let wanted = open.get_mut(&completion.request).unwrap();
                if !check(&completion, wanted, self.rank) {
                    failed += 1;
                    rest.push((wanted.server, wanted.map));
                    open.remove(&completion.request);
                } else if completion.last {
                    assert_eq!(wanted.got, self.bytes);
                    open.remove(&completion.request);
                }
            }
        }
        failed
    }
}

fn main() {
    let words = std::env::args().skip(1).filter(|word| word != "--bench");
    let pair = |word: String| match word.split_once('=') {
        Some((name, value)) => (name.to_owned(), value.to_owned()),
        None => panic!("{word} is not name=value"),
    };
    let options = Options(words.map(pair).collect());
    let (rank, of) = (options.number("rank"), options.number("of"));
    let dir = PathBuf::from(options.text("dir"));
    let meeting = Meeting {
        dir: dir.clone(),
        rank,
        of,
        pause: Duration::from_millis(if options.text("fabric") == "verbs" {
            50
        } else {
            1
        }),
    };
    let maps = options.number("maps");
    let bytes = options.number("bytes") / maps;
    let files: Vec<OutputFiles> = (0..maps)
        .map(|map| write_output(&dir, rank, map, of, bytes))
        .collect();
    let bind = options.text("bind").parse().unwrap();
    let endpoint = Endpoint::start(Config {
        name: format!("rank-{rank}"),
        fabric: match options.text("fabric") {
            "tcp" => FabricChoice::Tcp,
            "shm" => FabricChoice::Shm,
            "verbs" => FabricChoice::Verbs,
            other => panic!("fabric={other}; tcp, shm and verbs are possible"),
        },
        bind,
        advertise: bind,
        verbs: VerbsOptions {
            timeout: options.number("ack_timeout") as u8,
            ..VerbsOptions::default()
        },
        memory_limit: 256 << 20,
        memory_budget: None,
        beside_bytes: None,
        idle_release: Duration::ZERO,
        request_timeout: TIMEOUT,
        exchange: ExchangeConfig {
            policy: match options.text("policy") {
                "grouped" => ExchangePolicy::Grouped,
                "rotated" => ExchangePolicy::Rotated,
                "random" => ExchangePolicy::Random,
                "auto" => ExchangePolicy::Auto,
                other => panic!("policy={other}; auto, grouped, rotated and random are possible"),
            },
            slice: Duration::from_millis(options.number("slice_ms")),
        },
        ..Config::default()
    })
    .unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let resolver = std::thread::spawn({
        let (endpoint, stop) = (Arc::clone(&endpoint), Arc::clone(&stop));
        move || {
            while !stop.load(Ordering::Acquire) {
                for OutputId { shuffle_id, map_id } in
                    endpoint.unresolved(64, Duration::from_millis(50))
                {
                    let id = OutputId { shuffle_id, map_id };
                    endpoint.resolve(id, files.get(map_id as usize / of as usize).cloned());
                }
            }
        }
    });
    let cards = meeting.meet("card", &endpoint.card());
    let peers = cards
        .iter()
        .map(|card| endpoint.add_peer(card).unwrap())
        .collect();
    let exchange = Exchange {
        endpoint: Arc::clone(&endpoint),
        rank,
        peers,
        maps,
        bytes,
        in_flight: options.number("in_flight"),
    };
    let mut rng = SplitMix64::stream(options.number("seed"), rank);
    for turn in 0..=options.number("repeat") {
        meeting.meet(&format!("turn-{turn}"), b"");
        let began = micros();
        let failed = exchange.run(&mut rng);
        let ended = micros();
        println!(
            "{{\"turn\":{turn},\"rank\":{rank},\"failed\":{failed},\"began_us\":{began},\
             \"ended_us\":{ended}}}"
        );
        if turn == 0 {
            meeting.meet("connected", b"");
            meeting.wait_for("go");
        }
    }
    meeting.meet("end", b"");
    let counters = endpoint.counters().into_iter();
    let counters: Vec<String> = counters
        .map(|(name, n)| format!("\"{name}\":{n}"))
        .collect();
    println!(
        "{{\"rank\":{rank},\"counters\":{{{}}}}}",
        counters.join(",")
    );
    meeting.meet("gone", b"");
    stop.store(true, Ordering::Release);
    resolver.join().unwrap();
    endpoint.close();
}
