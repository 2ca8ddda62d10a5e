//! The modelled cluster: links, ports, the NIC's cache of queue pairs, and how many bytes each pair
//! exchanges. All random choices come from the seed.

use super::args::{Overflow, SimArgs, Verb};
use super::units::{Picos, SECOND};
use faro_exchange::SplitMix64;

/// Published ConnectX-6 rates, 32 threads: (active queue pairs, Mops/s). Linear in log2 of the queue
/// pairs in between, flat outside.
const READ_CURVE: [(f64, f64); 4] = [(32.0, 83.0), (64.0, 55.0), (512.0, 42.0), (4096.0, 21.0)];
const WRITE_CURVE: [(f64, f64); 4] = [
    (32.0, 123.0),
    (64.0, 121.0),
    (512.0, 122.0),
    (4096.0, 111.0),
];

pub struct Model {
    pub endpoints: usize,
    /// Picoseconds per byte of each endpoint's link.
    pub byte_time: Vec<f64>,
    pub latency: Picos,
    pub window: u64,
    pub packet: u64,
    pub buffer: u64,
    pub overflow: Overflow,
    pub rto: Picos,
    pub post: Picos,
    /// Start time of each client.
    pub starts: Vec<Picos>,
    pub op_size: u64,
    /// Picoseconds per operation, by active peers.
    op_time: Vec<f64>,
    bytes: Bytes,
}

enum Bytes {
    Drawn {
        mean: f64,
        pair_skew: f64,
        /// Factor of each client.
        clients: Vec<f64>,
        seed: u64,
    },
    /// client · endpoints + server; for tests.
    #[cfg(test)]
    Given(Vec<u64>),
}

impl Model {
    pub fn new(args: &SimArgs) -> Model {
        let n = args.endpoints as usize;
        let mut rng = SplitMix64::stream(args.seed, 1);
        let mut who: Vec<usize> = (0..n).collect();
        rng.shuffle(&mut who);
        let mut byte_time = vec![8.0 * SECOND as f64 / args.link as f64; n];
        for &slow in &who[..(args.stragglers * n as f64).round() as usize] {
            byte_time[slow] *= args.slowdown;
        }
        let mut rng = SplitMix64::stream(args.seed, 2);
        let starts = (0..n)
            .map(|_| (unit(rng.next()) * args.jitter as f64) as Picos)
            .collect();
        let clients = (0..n as u64)
            .map(|r| lognormal(args.reader_skew, SplitMix64::stream(args.seed ^ 3, r)))
            .collect();
        let curve = match args.verb {
            Verb::Read => &READ_CURVE,
            Verb::Write => &WRITE_CURVE,
        };
        let op_time = (0..n)
            .map(|peers| 1e6 / mops(curve, (peers as u32 * args.qps_per_peer) as f64))
            .collect();
        Model {
            endpoints: n,
            byte_time,
            latency: args.latency,
            window: args.window,
            packet: args.packet,
            buffer: args.buffer,
            overflow: args.overflow,
            rto: args.rto,
            post: args.post,
            starts,
            op_size: args.op_size,
            op_time,
            bytes: Bytes::Drawn {
                mean: args.bytes_per_endpoint as f64 / (n - 1) as f64,
                pair_skew: args.pair_skew,
                clients,
                seed: args.seed ^ 4,
            },
        }
    }

    #[cfg(test)]
    pub fn with_bytes(mut self, bytes: Vec<u64>) -> Model {
        self.bytes = Bytes::Given(bytes);
        self
    }

    /// Bytes that `client` has to get from `server`.
    pub fn bytes(&self, client: usize, server: usize) -> u64 {
        match &self.bytes {
            Bytes::Drawn {
                mean,
                pair_skew,
                clients,
                seed,
            } => {
                let mut bytes = mean * clients[client];
                if *pair_skew > 0.0 {
                    let pair = (client * self.endpoints + server) as u64;
                    bytes *= lognormal(*pair_skew, SplitMix64::stream(*seed, pair));
                }
                (bytes.round() as u64).max(1)
            }
            #[cfg(test)]
            Bytes::Given(all) => all[client * self.endpoints + server],
        }
    }

    /// Time of `bytes` on an endpoint's NIC and link while `peers` are active.
    pub fn service(&self, endpoint: usize, bytes: u64, peers: u32) -> Picos {
        let link = bytes as f64 * self.byte_time[endpoint];
        let peers = (peers as usize).min(self.op_time.len() - 1);
        let ops = bytes.div_ceil(self.op_size) as f64 * self.op_time[peers];
        link.max(ops).round() as Picos
    }

    /// Lower bound for any schedule: the busiest direction of any link at its rate.
    pub fn ideal(&self) -> Picos {
        let n = self.endpoints;
        let mut sent = vec![0u64; n];
        let mut received = vec![0u64; n];
        for (client, received) in received.iter_mut().enumerate() {
            for (server, sent) in sent.iter_mut().enumerate() {
                if server != client {
                    let bytes = self.bytes(client, server);
                    *sent += bytes;
                    *received += bytes;
                }
            }
        }
        let busiest = |e: usize| sent[e].max(received[e]) as f64 * self.byte_time[e];
        (0..n).map(busiest).fold(0.0, f64::max) as Picos
    }
}

fn mops(curve: &[(f64, f64)], qps: f64) -> f64 {
    let above = curve.iter().position(|p| p.0 >= qps);
    match above {
        Some(0) => curve[0].1,
        Some(i) => {
            let (a, b) = (curve[i - 1], curve[i]);
            let t = (qps / a.0).log2() / (b.0 / a.0).log2();
            a.1 + t * (b.1 - a.1)
        }
        None => curve[curve.len() - 1].1,
    }
}

/// A number from 0 to 1, without 1.
fn unit(value: u64) -> f64 {
    (value >> 11) as f64 / (1u64 << 53) as f64
}

/// A lognormal value of mean 1; exactly 1 for sigma 0.
fn lognormal(sigma: f64, mut rng: SplitMix64) -> f64 {
    let radius = (-2.0 * (1.0 - unit(rng.next())).ln()).sqrt();
    let normal = radius * (std::f64::consts::TAU * unit(rng.next())).cos();
    (sigma * normal - sigma * sigma / 2.0).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curve_passes_through_the_published_points() {
        for (qps, rate) in READ_CURVE {
            assert!((mops(&READ_CURVE, qps) - rate).abs() < 1e-9);
        }
        assert_eq!(mops(&READ_CURVE, 1.0), 83.0);
        assert_eq!(mops(&READ_CURVE, 1e6), 21.0);
        let between = mops(&READ_CURVE, 1024.0);
        assert!((between - 35.0).abs() < 1e-9, "{between}");
    }

    #[test]
    fn lognormal_has_mean_one() {
        let n = 20_000;
        let sum: f64 = (0..n)
            .map(|i| lognormal(0.5, SplitMix64::stream(1, i)))
            .sum();
        assert!((sum / n as f64 - 1.0).abs() < 0.02);
        assert_eq!(lognormal(0.0, SplitMix64::new(1)), 1.0);
    }
}
