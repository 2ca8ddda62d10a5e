//! Bytes that arrive, and what completions say of them.

use super::super::CompletionKind::{Received, ReceivedImmediate, Sent};
use super::super::CompletionStatus::Done;
use super::*;
use crate::MAX_PARTS;

#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn a_message_arrives() {
    let bench = DeviceBench::new();
    let [mut a, mut b] = bench.pair();
    let (from, to) = (bench.memory(1), bench.memory(0));
    b.post_receive(&[bench.receive(10, &to, 4096)]).unwrap();
    a.post_send(&[bench.request(1, WorkOperation::Send, &from, 1000)])
        .unwrap();
    let got = bench.completions(2);
    assert_eq!(ends(&got), [(1, &Done, Sent), (10, &Done, Received)]);
    assert_eq!(got[1].bytes, 1000);
    assert!(to.bytes()[..1000].iter().all(|byte| *byte == 1));
    assert!(to.bytes()[1000..].iter().all(|byte| *byte == 0));
}

#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn inline_bytes_are_taken_at_once() {
    let bench = DeviceBench::new();
    let [mut a, mut b] = bench.pair();
    let (mut from, to) = (bench.memory(5), bench.memory(0));
    let length = a.inline_bytes();
    assert!(length >= 32, "{length}");
    let request = WorkRequest {
        inline: true,
        // Whoever copies needs no key.
        memory: MemoryPieces::one(bench.address(&from), length, 0),
        ..bench.request(1, WorkOperation::Send, &from, length)
    };
    // Nobody can receive it yet, so the bytes have to be somewhere else than in `from`.
    a.post_send(&[request]).unwrap();
    from.bytes_mut().fill(6);
    b.post_receive(&[bench.receive(10, &to, 4096)]).unwrap();
    bench.completions(2);
    assert!(to.bytes()[..length as usize].iter().all(|byte| *byte == 5));
}

#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn a_message_may_be_empty() {
    let bench = DeviceBench::new();
    let [mut a, mut b] = bench.pair();
    let memory = bench.memory(0);
    b.post_receive(&[bench.receive(10, &memory, 64)]).unwrap();
    a.post_send(&[bench.request(1, WorkOperation::Send, &memory, 0)])
        .unwrap();
    let got = bench.completions(2);
    assert_eq!(ends(&got), [(1, &Done, Sent), (10, &Done, Received)]);
    assert_eq!(got[1].bytes, 0);
}

#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn more_than_a_chain_keeps_its_order_and_one_completion_stands_for_all() {
    let bench = DeviceBench::new();
    let [mut a, mut b] = bench.pair();
    let (mut from, to) = (bench.memory(0), bench.memory(0xff));
    let count = 100;
    for at in 0..count as usize {
        from.bytes_mut()[at * 8] = at as u8;
    }
    let place = |memory, at: u64| bench.piece(memory, at * 8, 8);
    let receives: Vec<_> = (0..count)
        .map(|at| ReceiveRequest {
            memory: place(&to, at),
            ..bench.receive(1000 + at, &to, 8)
        })
        .collect();
    b.post_receive(&receives).unwrap();
    let sends: Vec<_> = (0..count)
        .map(|at| WorkRequest {
            memory: place(&from, at),
            signaled: at == count - 1,
            ..bench.request(at, WorkOperation::Send, &from, 8)
        })
        .collect();
    a.post_send(&sends).unwrap();
    let got = bench.completions(1 + count as usize);
    assert_eq!((got[0].id, got[0].kind), (count - 1, Sent));
    for at in 0..count as usize {
        assert_eq!(got[1 + at].id, 1000 + at as u64);
        assert_eq!(to.bytes()[at * 8], at as u8);
    }
}

#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn a_write_lands_without_a_word_to_the_target() {
    let bench = DeviceBench::new();
    let [mut a, _b] = bench.pair();
    let (from, to) = (bench.memory(2), bench.memory(0));
    a.post_send(&[bench.request(1, bench.write(&to, None), &from, 100_000)])
        .unwrap();
    let got = bench.completions(1);
    assert_eq!(ends(&got), [(1, &Done, Sent)]);
    assert!(to.bytes()[..100_000].iter().all(|byte| *byte == 2));
    assert!(to.bytes()[100_000..].iter().all(|byte| *byte == 0));
}

#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn a_write_has_the_bytes_of_all_its_pieces() {
    let bench = DeviceBench::new();
    let [mut a, _b] = bench.pair();
    let from: Vec<Lease> = (0..MAX_PARTS as u8)
        .map(|byte| bench.memory(byte))
        .collect();
    let to = bench.memory(0xff);
    assert_eq!(a.pieces(), MAX_PARTS);
    let mut request = bench.request(1, bench.write(&to, None), &from[0], 0);
    for lease in &from {
        request
            .memory
            .add(bench.address(lease) + 3, 10_000, bench.region.lkey());
    }
    a.post_send(&[request]).unwrap();
    assert_eq!(ends(&bench.completions(1)), [(1, &Done, Sent)]);
    let (written, rest) = to.bytes().split_at(MAX_PARTS * 10_000);
    let expected = written.chunks(10_000).zip(0..);
    assert!(expected
        .into_iter()
        .all(|(piece, byte)| piece.iter().all(|is| *is == byte)));
    assert!(rest.iter().all(|byte| *byte == 0xff));
}

#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn a_write_with_immediate_tells_the_target() {
    let bench = DeviceBench::new();
    let [mut a, mut b] = bench.pair();
    let (from, to, unused) = (bench.memory(3), bench.memory(0), bench.memory(0));
    b.post_receive(&[
        bench.receive(10, &unused, 64),
        bench.receive(11, &unused, 64),
    ])
    .unwrap();
    let word = 0x0102_0304;
    a.post_send(&[
        bench.request(1, bench.write(&to, Some(word)), &from, 70_000),
        bench.request(2, bench.write(&to, Some(u32::MAX)), &from, 0),
    ])
    .unwrap();
    let got = bench.completions(4);
    assert_eq!(
        ends(&got),
        [
            (1, &Done, Sent),
            (2, &Done, Sent),
            (10, &Done, ReceivedImmediate(word)),
            (11, &Done, ReceivedImmediate(u32::MAX)),
        ]
    );
    assert_eq!((got[2].bytes, got[3].bytes), (70_000, 0));
    assert!(to.bytes()[..70_000].iter().all(|byte| *byte == 3));
    assert!(unused.bytes().iter().all(|byte| *byte == 0));
}

#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn a_read_fetches() {
    let bench = DeviceBench::new();
    let [mut a, _b] = bench.pair();
    let (to, from) = (bench.memory(0), bench.memory(4));
    // There are more reads than may be in flight at once, so the rest waits in the queue.
    let reads: Vec<_> = (0..16)
        .map(|at| WorkRequest {
            memory: bench.piece(&to, at * 5000, 5000),
            ..bench.request(at, bench.read(&from), &to, 5000)
        })
        .collect();
    a.post_send(&reads).unwrap();
    let got = bench.completions(16);
    assert!(got.iter().all(|one| one.status == Done && one.kind == Sent));
    assert!(to.bytes()[..80_000].iter().all(|byte| *byte == 4));
    assert!(to.bytes()[80_000..].iter().all(|byte| *byte == 0));
}

#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn only_an_armed_queue_wakes_and_only_once() {
    let bench = DeviceBench::new();
    let [mut a, _b] = bench.pair();
    let (from, to) = (bench.memory(1), bench.memory(0));
    let mut write = || {
        a.post_send(&[bench.request(1, bench.write(&to, None), &from, 64)])
            .unwrap();
    };
    let mut got = Vec::new();
    let mut taken = || while bench.queue.poll(&mut got).unwrap() == 0 {};
    write();
    taken();
    assert!(!readable(bench.channel.fd(), false), "not armed");
    assert_eq!(bench.channel.drain(), 0);
    bench.queue.arm().unwrap();
    write();
    assert!(readable(bench.channel.fd(), true));
    assert_eq!(bench.channel.drain(), 1);
    assert!(!readable(bench.channel.fd(), false));
    taken();
    write();
    taken();
    assert_eq!(bench.channel.drain(), 0, "armed for one");
}
