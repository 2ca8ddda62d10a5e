//! The engine against cases that can be computed by hand.

use super::args::{Overflow, PolicyName, SimArgs};
use super::engine::Engine;
use super::model::Model;
use super::policy::{PolicyFetch, SimRequest};
use super::stats::SimStats;
use super::units::{Picos, SECOND};
use crate::{Cli, Command};
use clap::Parser;

const MIB: u64 = 1 << 20;

fn args(endpoints: usize, more: &[&str]) -> SimArgs {
    let n = endpoints.to_string();
    let mut line = vec!["faro", "sim", "--endpoints", &n, "--jitter", "0ms"];
    line.extend(more);
    let Command::Sim(args) = Cli::try_parse_from(line).unwrap().command else {
        panic!("not faro sim");
    };
    *args
}

/// Bytes of (client, server) pairs; all others have none and are not asked for.
fn run(args: &SimArgs, pairs: &[(usize, usize, u64)], max_peers: u32) -> SimStats {
    let n = args.endpoints as usize;
    let mut bytes = vec![0; n * n];
    let mut orders = vec![Vec::new(); n];
    for &(client, server, b) in pairs {
        bytes[client * n + server] = b;
        let parts = b.div_ceil(args.in_flight) as u16;
        orders[client].extend((0..parts).map(|part| SimRequest {
            server: server as u16,
            part,
        }));
    }
    let model = Model::new(args).with_bytes(bytes);
    let fetch = PolicyFetch {
        orders,
        in_flight: args.in_flight,
        request: args.in_flight,
        max_peers,
    };
    Engine::new(&model, &fetch).run(|_| ())
}

fn completion(stats: &SimStats) -> Picos {
    stats.completions.iter().copied().max().unwrap()
}

/// 80 ps per byte: 100 Gbit/s.
fn wire(bytes: u64) -> Picos {
    bytes * 80
}

const LATENCY: Picos = SECOND / 200_000;
#[test]
fn one_flow_takes_bytes_by_rate() {
    let stats = run(&args(2, &[]), &[(0, 1, 40 * MIB)], u32::MAX);
    assert_eq!(completion(&stats), LATENCY + wire(40 * MIB));
    assert_eq!(stats.peak_buffer_bytes, 0);
    assert_eq!((stats.peak_fan_in, stats.peak_active_peers), (1, 1));
}

#[test]
fn many_to_one_without_overflow_takes_the_sum_by_rate() {
    let pairs: Vec<_> = (1..9).map(|o| (0, o, 4 * MIB)).collect();
    let stats = run(&args(9, &["--overflow", "never"]), &pairs, u32::MAX);
    assert_eq!(completion(&stats), LATENCY + wire(32 * MIB));
    assert_eq!(stats.buffer_overflows, 0);
    assert_eq!((stats.peak_fan_in, stats.peak_active_peers), (8, 8));
    // All but the one that drains, each with a window.
    assert!(
        stats.peak_buffer_bytes <= 7 * 65536,
        "{}",
        stats.peak_buffer_bytes
    );
    assert!(
        stats.peak_buffer_bytes > 6 * 65536,
        "{}",
        stats.peak_buffer_bytes
    );
}

#[test]
fn two_flows_share_the_servers_link() {
    let pairs = [(0, 2, 10 * MIB), (1, 2, 10 * MIB)];
    let stats = run(&args(3, &[]), &pairs, u32::MAX);
    let [a, b] = [stats.completions[0], stats.completions[1]];
    assert_eq!(a.max(b), LATENCY + wire(20 * MIB));
    // In turn, so both end within one window of each other.
    assert_eq!(a.abs_diff(b), wire(65536));
}

#[test]
fn two_flows_share_the_clients_link() {
    let pairs = [(0, 1, 10 * MIB), (0, 2, 10 * MIB)];
    let stats = run(&args(3, &[]), &pairs, u32::MAX);
    assert_eq!(completion(&stats), LATENCY + wire(20 * MIB));
}

#[test]
fn both_directions_of_a_link_are_independent() {
    let pairs = [(0, 1, 10 * MIB), (1, 0, 10 * MIB)];
    let stats = run(&args(2, &[]), &pairs, u32::MAX);
    assert_eq!(completion(&stats), LATENCY + wire(10 * MIB));
    assert_eq!(stats.peak_queue_pair_peers, 1);
}

#[test]
fn incast_beyond_the_buffer_costs_a_timeout() {
    // 40 windows of 64 KiB towards a buffer of 1 MiB: 17 find the backlog within it.
    let pairs: Vec<_> = (1..=40).map(|o| (0, o, 65536)).collect();
    let stats = run(&args(41, &["--post", "0ns"]), &pairs, u32::MAX);
    assert_eq!(stats.buffer_overflows, 23);
    // After the timeout 23 start again with a packet each, which fits, and keep the port busy.
    let last = 67 * SECOND / 1000 + LATENCY + wire(23 * 65536);
    assert_eq!(completion(&stats), last);
    assert_eq!(stats.received_bytes, 40 * 65536);
}

#[test]
fn a_bound_on_peers_avoids_the_same_incast() {
    let pairs: Vec<_> = (1..=40).map(|o| (0, o, 65536)).collect();
    let stats = run(&args(41, &["--post", "0ns"]), &pairs, 8);
    assert_eq!(stats.buffer_overflows, 0);
    assert_eq!(stats.peak_active_peers, 8);
    // The next request is posted when a window is drained, 7 others hide its latency.
    assert_eq!(completion(&stats), LATENCY + wire(40 * 65536));
}

#[test]
fn pause_loses_nothing_and_takes_the_sum_by_rate() {
    let pairs: Vec<_> = (1..=40).map(|o| (0, o, 4 * 65536)).collect();
    let stats = run(&args(41, &["--overflow", "pause"]), &pairs, u32::MAX);
    assert_eq!((stats.buffer_overflows, stats.lost_bytes), (0, 0));
    assert!(stats.pauses > 0);
    assert_eq!(completion(&stats), LATENCY + wire(160 * 65536));
}

#[test]
fn pause_blocks_others_behind_the_paused_link() {
    // Server 40 sends in turn to client 0, whose port is full, and to client 41, whose port is idle.
    let mut pairs: Vec<_> = (1..=40).map(|o| (0, o, 8 * 65536)).collect();
    pairs.push((41, 40, 32 * 65536));
    let paused = run(&args(42, &["--overflow", "pause"]), &pairs, u32::MAX).completions[41];
    let free = run(&args(42, &["--overflow", "never"]), &pairs, u32::MAX).completions[41];
    assert!(paused > 2 * free, "{paused} {free}");
}

#[test]
fn bytes_in_flight_bound_what_is_open() {
    let pairs: Vec<_> = (1..=40).map(|o| (0, o, MIB)).collect();
    let stats = run(
        &args(41, &["--in-flight", "5MiB", "--overflow", "never"]),
        &pairs,
        u32::MAX,
    );
    // Half-received servers stay open, so more than 5 but not all.
    assert!(
        (5..=12).contains(&stats.peak_active_peers),
        "{}",
        stats.peak_active_peers
    );
}

#[test]
fn a_slow_link_is_slow_in_both_directions() {
    let slow = args(2, &["--stragglers", "0.5"]);
    for pair in [(0, 1, 8 * MIB), (1, 0, 8 * MIB)] {
        let stats = run(&slow, &[pair], u32::MAX);
        assert_eq!(completion(&stats), LATENCY + 4 * wire(8 * MIB));
    }
}

#[test]
fn queue_pairs_limit_small_operations_only() {
    // 21 Mops/s at 4096 queue pairs: 1.5 us per 64 operations of 1 KiB are hidden behind the link,
    // 8192 operations of 8 bytes are not.
    let time = |op: &str| {
        let a = args(
            128,
            &[
                "--op-size",
                op,
                "--qps-per-peer",
                "64",
                "--overflow",
                "never",
            ],
        );
        Model::new(&a).service(0, 65536, 64)
    };
    assert_eq!(time("1KiB"), wire(65536));
    assert_eq!(time("8B"), (8192.0 * 1e6 / 21.0_f64).round() as Picos);
}

#[test]
fn every_policy_delivers_every_byte_and_keeps_its_bounds() {
    for overflow in [Overflow::Drop, Overflow::Pause, Overflow::Never] {
        for skew in ["0", "0.8"] {
            for n in [2, 3, 9, 30] {
                let mut a = args(n, &["--pair-skew", skew, "--bytes-per-endpoint", "60MiB"]);
                a.overflow = overflow;
                a.buffer = 200_000;
                let model = Model::new(&a);
                let total: u64 = (0..n * n)
                    .filter(|p| p / n != p % n)
                    .map(|p| model.bytes(p / n, p % n))
                    .sum();
                for policy in a.policies.clone() {
                    let fetch = PolicyFetch::new(policy, &a, &model).unwrap();
                    let stats = Engine::new(&model, &fetch).run(|_| ());
                    assert_eq!(stats.received_bytes, total, "{policy:?} {n}");
                    assert!(completion(&stats) > model.ideal());
                    if overflow != Overflow::Drop {
                        assert_eq!(stats.lost_bytes, 0);
                    }
                    if policy == PolicyName::Grouped {
                        let bound = n.isqrt() as u32 + 1;
                        assert!(stats.peak_active_peers <= bound);
                        assert!(stats.peak_serving <= bound);
                    }
                }
            }
        }
    }
}
