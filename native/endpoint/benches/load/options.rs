//! The options of one cell.

use faro_endpoint::{Config, FabricChoice};
use std::collections::HashMap;
use std::time::Duration;

/// Longer than any cell takes.
pub const LONG: Duration = Duration::from_secs(300);

/// One cell; see `main`.
pub struct Options {
    pub fabric: FabricChoice,
    pub peers: u64,
    pub readers: u64,
    pub window: u64,
    pub block: u64,
    pub blocks: u64,
    pub outputs: u64,
    pub partitions: u64,
    pub requests: u64,
    pub limit: u64,
    /// Peers that ask for much and take nothing.
    pub stopped: u64,
    /// The server's card in hexadecimal digits: this process has the clients.
    pub card: Option<String>,
}

impl Options {
    pub fn parse(words: &[String]) -> Self {
        let pair = |word: &String| match word.split_once('=') {
            Some((name, value)) => (name.to_owned(), value.to_owned()),
            None => panic!("{word} is not name=value"),
        };
        let given: HashMap<String, String> = words.iter().map(pair).collect();
        let number = |name: &str, default: u64| match given.get(name) {
            None => default,
            Some(text) => text
                .parse()
                .unwrap_or_else(|_| panic!("{name}={text} is not a number")),
        };
        let fabric = given.get("fabric").map_or("tcp", String::as_str);
        Self {
            fabric: match fabric {
                "tcp" => FabricChoice::Tcp,
                "shm" => FabricChoice::Shm,
                "verbs" => FabricChoice::Verbs,
                other => panic!("fabric={other}; tcp, shm and verbs are possible"),
            },
            peers: number("peers", 1),
            readers: number("readers", 1),
            window: number("window", 1),
            block: number("block", 20 << 10),
            blocks: number("blocks", 1),
            outputs: number("outputs", 1),
            partitions: number("partitions", 200),
            requests: number("requests", 1_000),
            limit: number("limit", 256),
            stopped: number("stopped", 0),
            card: given.get("card").cloned(),
        }
    }

    pub fn config(&self, name: String) -> Config {
        Config {
            name,
            fabric: self.fabric,
            memory_limit: self.limit << 20,
            idle_release: Duration::ZERO,
            request_timeout: LONG,
            ..Config::default()
        }
    }
}
