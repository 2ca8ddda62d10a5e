//! Faults, and the completions that report them.

use super::*;
use faro_pool::Access;
use faro_secure::Protection;

fn failed(completions: &[WorkCompletion], id: u64) -> &str {
    match completions.iter().find(|one| one.id == id) {
        Some(WorkCompletion {
            status: CompletionStatus::Failed { what, .. },
            ..
        }) => what,
        other => panic!("{other:?}"),
    }
}

#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn a_wrong_key_fails_and_flushes_the_rest() {
    let bench = DeviceBench::new();
    let [mut a, mut b] = bench.pair();
    let (from, to) = (bench.memory(1), bench.memory(0));
    b.post_receive(&[bench.receive(20, &to, 64)]).unwrap();
    a.post_receive(&[bench.receive(10, &to, 64)]).unwrap();
    let wrong = WorkOperation::Write {
        address: bench.address(&to),
        rkey: bench.region.rkey() ^ 0x55,
        immediate: None,
    };
    a.post_send(&[
        bench.request(1, wrong, &from, 64),
        bench.request(2, bench.write(&to, None), &from, 64),
    ])
    .unwrap();
    // Both queue pairs are in error: what was posted on either is flushed.
    let got = bench.completions(4);
    assert!(failed(&got, 1).contains("refused the address or key"));
    for one in &got[1..] {
        assert_eq!(one.status, CompletionStatus::Flushed, "{one:?}");
    }
    assert!(to.bytes().iter().all(|byte| *byte == 0));
    // And what is posted now is flushed at once.
    a.post_send(&[bench.request(3, bench.write(&to, None), &from, 64)])
        .unwrap();
    assert_eq!(bench.completions(1)[0].status, CompletionStatus::Flushed);
}

/// If bytes are sealed, a key that was seen or guessed gives access to nothing, and messages
/// continue.
#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn the_right_key_reaches_nothing_on_a_device_for_sealed_bytes() {
    let bench = DeviceBench::of(Protection::Sealed);
    let (from, to) = (bench.memory(1), bench.memory(0));
    for operation in [
        bench.write(&to, None),
        bench.write(&to, Some(7)),
        bench.read(&to),
    ] {
        let [mut a, mut b] = bench.pair();
        b.post_receive(&[bench.receive(20, &to, 64)]).unwrap();
        a.post_send(&[bench.request(1, operation, &from, 64)])
            .unwrap();
        let got = bench.completions(2);
        let refused = failed(&got, 1);
        // The peer's queue pair allows no operation at all, so its key is not even looked at.
        assert!(refused.contains("invalid request"), "{refused}");
        assert!(from.bytes().iter().all(|byte| *byte == 1));
        assert!(to.bytes().iter().all(|byte| *byte == 0));
    }
    let [mut a, mut b] = bench.pair();
    b.post_receive(&[bench.receive(20, &to, 64)]).unwrap();
    a.post_send(&[bench.request(1, WorkOperation::Send, &from, 64)])
        .unwrap();
    for one in bench.completions(2) {
        assert_eq!(one.status, CompletionStatus::Done, "{one:?}");
    }
    assert!(to.bytes()[..64].iter().all(|byte| *byte == 1));
}

#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn nothing_beyond_a_region_is_reached() {
    let bench = DeviceBench::new();
    let (from, to) = (bench.memory(1), bench.memory(0));
    let end = bench.region.address_of(0) + (16 << 20);
    let rkey = bench.region.rkey();
    let operations = [
        WorkOperation::Write {
            address: end - 63,
            rkey,
            immediate: None,
        },
        WorkOperation::Read {
            address: end - 63,
            rkey,
        },
    ];
    for operation in operations {
        let [mut a, _b] = bench.pair();
        a.post_send(&[bench.request(1, operation, &from, 64)])
            .unwrap();
        assert!(failed(&bench.completions(1), 1).contains("refused the address or key"));
    }
    // A wrong key of this side's own memory fails, too.
    let [mut a, _b] = bench.pair();
    let request = WorkRequest {
        memory: MemoryPieces::one(bench.address(&from), 64, bench.region.lkey() ^ 0x55),
        ..bench.request(1, bench.write(&to, None), &from, 64)
    };
    // Devices refuse at once, fail it, or (software RoCE) flush it with the rest.
    if a.post_send(&[request]).is_ok() {
        let got = bench.completions(1);
        assert_ne!(got[0].status, CompletionStatus::Done);
    }
    assert!(to.bytes().iter().all(|byte| *byte == 0));
}

#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn keys_end_with_their_registration() {
    let bench = DeviceBench::new();
    let [mut a, _b] = bench.pair();
    let (from, to) = (bench.memory(1), bench.memory(0));
    let second = Registration::of_slab(&bench.device, bench.pool.slab(0).unwrap()).unwrap();
    let write = |rkey| WorkOperation::Write {
        address: bench.address(&to),
        rkey,
        immediate: None,
    };
    let rkey = second.rkey();
    assert_ne!(rkey, bench.region.rkey());
    a.post_send(&[bench.request(1, write(rkey), &from, 64)])
        .unwrap();
    assert_eq!(bench.completions(1)[0].status, CompletionStatus::Done);
    drop(second);
    a.post_send(&[bench.request(2, write(rkey), &from, 64)])
        .unwrap();
    assert!(failed(&bench.completions(1), 2).contains("refused the address or key"));
}

#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn a_receiver_that_is_never_ready_is_given_up() {
    let bench = DeviceBench::new();
    let options = VerbsOptions {
        rnr_retry: 1,
        ..VerbsOptions::default()
    };
    let [mut a, _b] = bench.pair_with(&options);
    let from = bench.memory(1);
    a.post_send(&[bench.request(1, WorkOperation::Send, &from, 64)])
        .unwrap();
    assert!(failed(&bench.completions(1), 1).contains("no receive request"));
}

/// Times that a receiver was not ready, as software RoCE counts them; `None` on other devices.
fn not_ready() -> Option<u64> {
    let name = open().describe();
    let name = name.split(' ').next()?;
    let path = format!("/sys/class/infiniband/{name}/ports/1/hw_counters/rcvd_rnr_err");
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn a_receiver_that_gets_ready_later_is_waited_for() {
    let bench = DeviceBench::new();
    let [mut a, mut b] = bench.pair();
    let (from, to) = (bench.memory(1), bench.memory(0));
    let (before, counted) = (not_ready(), port_counters());
    a.post_send(&[bench.request(1, WorkOperation::Send, &from, 64)])
        .unwrap();
    while before.is_some() && not_ready() == before {
        std::thread::yield_now();
    }
    // As an executor's metrics tell it.
    assert_eq!(port_counters()[2] > counted[2], before.is_some());
    b.post_receive(&[bench.receive(10, &to, 64)]).unwrap();
    let got = bench.completions(2);
    assert!(
        got.iter().all(|one| one.status == CompletionStatus::Done),
        "{got:?}"
    );
}

#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn a_message_that_is_too_long_fails_on_both_sides() {
    let bench = DeviceBench::new();
    let [mut a, mut b] = bench.pair();
    let (from, to) = (bench.memory(1), bench.memory(0));
    b.post_receive(&[bench.receive(10, &to, 64)]).unwrap();
    a.post_send(&[bench.request(1, WorkOperation::Send, &from, 65)])
        .unwrap();
    let got = bench.completions(2);
    assert!(!failed(&got, 1).is_empty() && !failed(&got, 10).is_empty());
    assert!(to.bytes()[64..].iter().all(|byte| *byte == 0));
}

#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn a_peer_that_is_gone_is_noticed() {
    let bench = DeviceBench::new();
    let options = VerbsOptions {
        timeout: 8,
        retry_count: 1,
        ..VerbsOptions::default()
    };
    let [mut a, b] = bench.pair_with(&options);
    drop(b);
    let from = bench.memory(1);
    a.post_send(&[bench.request(1, WorkOperation::Send, &from, 64)])
        .unwrap();
    assert!(failed(&bench.completions(1), 1).contains("acknowledged nothing"));
}

#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn no_peer_is_reached_before_connecting_or_with_wrong_addresses() {
    let bench = DeviceBench::new();
    let memory = bench.memory(0);
    let (mut a, b) = (bench.queue_pair(), bench.queue_pair());
    let posted = a.post_send(&[bench.request(1, WorkOperation::Send, &memory, 64)]);
    assert!(posted.is_err(), "in INIT nothing is sent");
    let remote = bench.remote(&b, 1);
    let with_mtu = |mtu| Remote {
        address: PortAddress {
            mtu,
            ..remote.address
        },
        ..remote
    };
    for (nonsense, what) in [
        (with_mtu(0), "MTU code is 0, 1 to 5"),
        (with_mtu(6), "MTU code is 6, 1 to 5"),
        (
            Remote {
                qp: 1 << 24,
                ..remote
            },
            "queue pair is 16777216",
        ),
        (
            Remote {
                psn: 1 << 24,
                ..remote
            },
            "sequence number is 16777216",
        ),
    ] {
        let error = a
            .connect(1, &nonsense, &VerbsOptions::default())
            .unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
    }
    let unknown = Remote {
        address: PortAddress {
            gid: [0; 16],
            ..remote.address
        },
        ..remote
    };
    let error = a
        .connect(1, &unknown, &VerbsOptions::default())
        .unwrap_err();
    assert!(error.to_string().contains("RTR"), "{error}");
    a.connect(1, &remote, &VerbsOptions::default()).unwrap();
}

/// Software RoCE copies wrong bytes out of memory that it pages on demand if a READ begins within a page: the offset in
/// the page is lost. Fails where it copies the right ones, so that what is written about it can go (decision 009).
#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn software_roce_reads_wrong_bytes_of_memory_that_it_pages_on_demand() {
    let bench = DeviceBench::new();
    let mut from = bench.memory(0);
    for (at, byte) in from.bytes_mut().iter_mut().enumerate() {
        *byte = ((at * 31) >> 7) as u8;
    }
    // SAFETY: the lease, which is dropped after the registration, keeps its memory mapped.
    let paged =
        unsafe { Registration::of_range(&bench.device, from.start(), BYTES, Access::ReadOnDemand) };
    // Before Linux 6.15 it pages nothing on demand.
    let Ok(paged) = paged.map_err(|error| println!("{error}")) else {
        return;
    };
    let read = |offset: usize| {
        let [mut a, _b] = bench.pair();
        let to = bench.memory(0);
        let operation = WorkOperation::Read {
            address: from.start().as_ptr() as u64 + offset as u64,
            rkey: paged.rkey(),
        };
        a.post_send(&[bench.request(1, operation, &to, 10_000)])
            .unwrap();
        assert_eq!(bench.completions(1)[0].status, CompletionStatus::Done);
        to.bytes()[..10_000] == from.bytes()[offset..offset + 10_000]
    };
    assert!(read(0) && read(8_192));
    let is_software = bench.device.choice.device.starts_with("rxe");
    assert_eq!(read(100), !is_software);
}
