//! Two-sided messages.

use crate::{Bench, Rig, Xorshift};
use faro_fabric::{Message, RejectedPost};
use faro_wire::header::MAX_MESSAGE_BYTES;

/// Kind, id and body arrive, in order.
pub fn arrive_in_order_and_whole(bench: &dyn Bench) {
    let (mut rig, link) = Rig::pair(bench);
    for id in 0..500u64 {
        rig.say(link.from, id, &id.to_le_bytes());
    }
    for id in 0..500u64 {
        let message = rig.hear(link.to);
        assert_eq!(message.id, id);
        assert_eq!(message.body, id.to_le_bytes());
    }
    let odd = Message {
        kind: 0xff,
        id: u64::MAX,
        body: Vec::new(),
    };
    rig.fabric(1)
        .send(link.to.1, odd.clone())
        .expect("there is room");
    assert_eq!(rig.hear(link.from), odd);
}

/// Tests bodies from empty to the largest, around every boundary of the buffers in between.
pub fn of_every_size(bench: &dyn Bench) {
    let (mut rig, link) = Rig::pair(bench);
    let max = MAX_MESSAGE_BYTES as usize;
    let mut sizes: Vec<usize> = (0..64).collect();
    for power in 6..=20 {
        sizes.extend((1 << power) - 33..(1 << power) - 30);
        sizes.extend((1 << power) - 1..(1 << power) + 2);
    }
    sizes.extend([max - 1, max]);
    for size in sizes {
        let mut body = vec![0; size];
        super::fill(&mut body, size as u8);
        rig.say(link.from, size as u64, &body);
        let message = rig.hear(link.to);
        assert_eq!(message.id, size as u64);
        assert!(message.body == body, "{size} bytes");
    }
}

/// A body that is one byte too long is returned, without harm.
pub fn too_large_is_handed_back(bench: &dyn Bench) {
    let (mut rig, link) = Rig::pair(bench);
    let message = Message {
        kind: faro_wire::kind::FIRST_MESSAGE,
        id: 3,
        body: vec![1; MAX_MESSAGE_BYTES as usize + 1],
    };
    match rig.fabric(0).send(link.from.1, message) {
        Err(RejectedPost::TooLarge(message, limit)) => {
            assert_eq!(message.id, 3);
            assert_eq!(limit, u64::from(MAX_MESSAGE_BYTES));
        }
        other => panic!("{other:?}"),
    }
    rig.fence(link);
}

/// Sends in both directions at once, in random sizes and at random moments.
pub fn flow_both_ways_at_once(bench: &dyn Bench) {
    let (mut rig, link) = Rig::pair(bench);
    let mut dice = Xorshift::new(0x5eed);
    let ends = [(link.from, link.to), (link.to, link.from)];
    let (mut said, mut heard) = ([0u64; 2], [0u64; 2]);
    const EACH: u64 = 1_000;
    rig.drive_until("all messages of both sides", |rig| {
        for (way, (from, to)) in ends.iter().enumerate() {
            for _ in 0..dice.below(8) {
                if said[way] == EACH {
                    break;
                }
                let size = 1 << dice.below(15);
                let message = Message {
                    kind: faro_wire::kind::FIRST_MESSAGE,
                    id: said[way],
                    body: vec![said[way] as u8; size],
                };
                match rig.fabric(from.0).send(from.1, message) {
                    Ok(()) => said[way] += 1,
                    Err(RejectedPost::Full(_)) => break,
                    Err(other) => panic!("{other:?}"),
                }
            }
            let station = to.0;
            while let Some((message, _)) = rig.take(station, |event| match event {
                faro_fabric::Event::Message { message, .. } => Some(message.clone()),
                _ => None,
            }) {
                assert_eq!(message.id, heard[way]);
                assert!(message.body.iter().all(|byte| *byte == heard[way] as u8));
                heard[way] += 1;
            }
        }
        (heard == [EACH; 2]).then_some(())
    });
}
