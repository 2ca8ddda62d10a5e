//! Objects that come and go.

use super::*;
use std::process::Command;

/// Returns the kernel's counts for all processes: `pd 1 cq 2 qp 3 cm_id 0 mr 4 ctx 1 srq 0`.
fn held() -> String {
    let output = Command::new("rdma").arg("resource").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("qp") && text.contains("mr"), "{text}");
    text
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn a_thousand_lives_leave_nothing() {
    let bench = DeviceBench::new();
    let live = |device: &Arc<Device>| {
        let channel = Channel::new(device).unwrap();
        let queue = CompletionQueue::new(device, &channel, 64).unwrap();
        let pair = QueuePair::new(device, &queue, DEPTH).unwrap();
        let region = Registration::of_slab(device, bench.pool.slab(0).unwrap()).unwrap();
        (pair, queue, channel, region)
    };
    let (before, files) = (held(), descriptors());
    let one = live(&bench.device);
    assert_ne!(held(), before, "what is counted is what is made");
    assert_ne!(descriptors(), files);
    drop(one);
    for _ in 0..1000 {
        live(&bench.device);
    }
    for _ in 0..100 {
        open();
    }
    assert_eq!(held(), before);
    assert_eq!(descriptors(), files);
}

#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn objects_hold_what_they_are_made_from() {
    let before = {
        let _alone = alone();
        held()
    };
    let bench = DeviceBench::new();
    let [mut a, _b] = bench.pair();
    let (from, to) = (bench.memory(1), bench.memory(0));
    a.post_send(&[bench.request(1, bench.write(&to, None), &from, 64)])
        .unwrap();
    let DeviceBench {
        queue,
        channel,
        region,
        pool,
        device,
        _alone,
    } = bench;
    drop((device, channel, pool));
    // Its last owner but the queue pair is gone as well: polled through what is left.
    let mut got = Vec::new();
    while queue.poll(&mut got).unwrap() == 0 {}
    assert_eq!(got[0].status, CompletionStatus::Done);
    drop(queue);
    assert_ne!(held(), before);
    drop((region, from, to, _b));
    assert_ne!(held(), before, "the queue pair still is");
    drop(a);
    assert_eq!(held(), before);
}

#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn wake_ups_that_were_not_taken_do_not_delay_the_end() {
    let bench = DeviceBench::new();
    let [mut a, b] = bench.pair();
    let (from, to) = (bench.memory(1), bench.memory(0));
    bench.queue.arm().unwrap();
    a.post_send(&[bench.request(1, bench.write(&to, None), &from, 64)])
        .unwrap();
    assert!(readable(bench.channel.fd(), true));
    let before = held();
    drop((a, b, from, to));
    let channel = Arc::clone(&bench.channel);
    let _alone = bench.end();
    // No event of a queue that is gone is left.
    assert_eq!(channel.drain(), 0);
    drop(channel);
    assert_ne!(held(), before);
}

#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn a_queue_pair_that_is_gone_touches_no_memory() {
    let bench = DeviceBench::new();
    let (mut to, from, other) = (bench.memory(0), bench.memory(4), bench.memory(0));
    let [mut probe, _b] = bench.pair();
    let mut cut_short = 0;
    for _ in 0..100 {
        let [mut a, b] = bench.pair();
        let reads: Vec<_> = (0..32)
            .map(|at| bench.request(at, bench.read(&from), &to, BYTES as u32))
            .collect();
        a.post_send(&reads).unwrap();
        // Until the first bytes came, so that the end is in the middle.
        // SAFETY: a byte of the lease; volatile, because the device writes it.
        while unsafe { to.bytes().as_ptr().read_volatile() } == 0 {
            std::hint::spin_loop();
        }
        drop(a);
        to.bytes_mut().fill(0);
        drop(b);
        // After a round trip on the device, every operation that was in flight has ended.
        probe
            .post_send(&[bench.request(u64::MAX, bench.read(&from), &other, 64)])
            .unwrap();
        let mut got = Vec::new();
        while !got.iter().any(|one: &WorkCompletion| one.id == u64::MAX) {
            bench.queue.poll(&mut got).unwrap();
        }
        cut_short += usize::from(
            got.iter()
                .filter(|one| one.status == CompletionStatus::Done)
                .count()
                < 33,
        );
        assert!(to.bytes().iter().all(|byte| *byte == 0));
    }
    assert!(cut_short > 0, "no read was still under way");
}

#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn depths_are_cut_to_what_the_device_has() {
    let bench = DeviceBench::new();
    let limits = bench.device.limits();
    let wanted = Depth {
        send: u32::MAX,
        receive: 8,
        reads: u8::MAX,
    };
    // The device may have less memory than its limit says; the limit is what is looked at.
    match QueuePair::new(&bench.device, &bench.queue, wanted) {
        Ok(pair) => {
            assert_eq!(pair.depth().send, limits.work_requests);
            assert_eq!(pair.depth().reads, limits.reads_in.min(limits.reads_out));
        }
        Err(error) => assert!(error.to_string().contains("memory"), "{error}"),
    }
}
