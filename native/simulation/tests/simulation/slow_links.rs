//! Tests requests that wait for memory while another one's large block arrives slowly.

use super::outputs;
use faro_fabric::FabricKind;
use faro_simulation::SlowLinks;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

/// Returns how many requests got their blocks, and how many failed.
fn run(
    servers: &[FabricKind],
    bandwidth: u64,
    timeout: Duration,
    all_arrive: bool,
) -> (usize, usize) {
    let links = SlowLinks {
        servers,
        bandwidth,
        timeout,
        all_arrive,
    };
    let report = links.run(outputs()).unwrap();
    (report.right, report.failed)
}

/// Returns a bandwidth with which a block takes that time.
fn bandwidth_for(block: Duration) -> u64 {
    let bytes = SlowLinks::block_bytes(outputs()) as u64;
    assert!(
        bytes > (8 << 20),
        "one block of {bytes} fits beside another"
    );
    bytes / block.as_secs()
}

/// Each block takes twice as long as a request waits without any progress of others.
#[test]
fn blocks_that_take_long_are_waited_for() {
    let bandwidth = bandwidth_for(Duration::from_secs(10));
    // With the shorter timeout each request that waits is put back and asked again.
    for timeout in [12, 60].map(Duration::from_secs) {
        for kind in [FabricKind::Tcp, FabricKind::Verbs] {
            let ends = run(&[kind; 3], bandwidth, timeout, true);
            assert_eq!(ends, (3, 0), "{kind:?}");
        }
    }
}

/// The block that holds the memory arrives on another fabric, and so in another thread.
#[test]
fn blocks_on_another_fabric_are_waited_for() {
    let bandwidth = bandwidth_for(Duration::from_secs(10));
    let servers = [FabricKind::Tcp, FabricKind::Verbs, FabricKind::Tcp];
    let ends = run(&servers, bandwidth, MINUTE, true);
    assert_eq!(ends, (3, 0));
}

/// So slow a block would keep the memory for several minutes. The others are left to Spark at once.
#[test]
fn blocks_that_trickle_are_not_waited_for() {
    let bandwidth = bandwidth_for(Duration::from_secs(300));
    for kind in [FabricKind::Tcp, FabricKind::Verbs] {
        let ends = run(&[kind; 3], bandwidth, MINUTE, false);
        assert_eq!(ends, (1, 2), "{kind:?}");
    }
}

/// No request waits for memory longer than its own timeout, or 5 s if that is more.
#[test]
fn a_request_waits_for_memory_no_longer_than_its_timeout() {
    let bandwidth = bandwidth_for(Duration::from_secs(10));
    for timeout in [2, 6] {
        let timeout = Duration::from_secs(timeout);
        let ends = run(&[FabricKind::Tcp; 3], bandwidth, timeout, false);
        assert_eq!(ends, (1, 2), "{timeout:?}");
    }
}
