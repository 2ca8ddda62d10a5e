//! Writes that must not change a byte, because their range is not exposed to the writer.

use crate::writes::writing;
use crate::{assert_filled, Bench, ConnectedPair, Rig};
use faro_fabric::{Event, Outcome, RemoteRange, RevokeStatus, Write};
use faro_pool::PAGE_BYTES;
use std::sync::Arc;

/// Posts a write that must be refused, and checks that only the counters show it.
fn refused(bench: &dyn Bench, rig: &mut Rig, link: ConnectedPair, target: RemoteRange) {
    let source = Arc::new(rig.lease(link.from.0, 4096, 0xee));
    let before = rig.counter(link.to.0, "writes_refused");
    let write = Write {
        immediate: Some(1),
        ..writing(&source, 99, target)
    };
    rig.write(link.from, write);
    let outcome = rig.write_end(link.from, 99);
    if bench.learns_refusals() {
        assert_eq!(outcome, Outcome::Refused, "{target:?}");
    } else {
        assert_ne!(outcome, Outcome::Flushed, "{target:?}");
    }
    rig.fence(link);
    let after = rig.counter(link.to.0, "writes_refused");
    assert_eq!(after, before + 1, "{target:?}");
    let noticed = |event: &Event| matches!(event, Event::Written { .. }).then_some(());
    assert!(rig.take(link.to.0, noticed).is_none(), "{target:?}");
}

/// No byte may change, not even those within the bounds.
pub fn out_of_bounds_touch_nothing(bench: &dyn Bench) {
    let (mut rig, link) = Rig::pair(bench);
    let range = rig.writable(link.to, 4096, 0x11);
    for (offset, length) in [
        (1, 4096),
        (4096, 1),
        (4095, 2),
        (u64::MAX, 1),
        (u64::MAX - range.offset, 2),
        (u64::MAX, 0),
        (1 << 32, 1),
        (1 << 63, 4096),
    ] {
        let target = RemoteRange {
            key: range.key,
            offset: range.offset.wrapping_add(offset),
            length,
        };
        refused(bench, &mut rig, link, target);
    }
    assert_filled(rig.revoke(1, range.key).lease().bytes(), 0x11, "target");
}

/// Keys that were never given out.
pub fn under_an_unknown_key_touch_nothing(bench: &dyn Bench) {
    let (mut rig, link) = Rig::pair(bench);
    let range = rig.writable(link.to, 4096, 0x11);
    for key in [0, 1, u64::MAX, range.key ^ 1, range.key.wrapping_add(1)] {
        let target = RemoteRange {
            key,
            length: 100,
            ..range
        };
        refused(bench, &mut rig, link, target);
    }
    assert_filled(rig.revoke(1, range.key).lease().bytes(), 0x11, "target");
}

/// A key works only for the peer that it was given to.
pub fn under_anothers_key_touch_nothing(bench: &dyn Bench) {
    let mut rig = Rig::new(bench, 3);
    let (friend, outsider) = (rig.link(0, 1), rig.link(2, 1));
    let range = rig.writable(friend.to, 4096, 0x11);
    refused(bench, &mut rig, outsider, range);
    assert_filled(rig.revoke(1, range.key).lease().bytes(), 0x11, "target");
}

/// Readable memory is not writable.
pub fn to_what_may_only_be_read_touch_nothing(bench: &dyn Bench) {
    let (mut rig, link) = Rig::pair(bench);
    let range = rig.readable(link.to, 4096, 0x11);
    refused(bench, &mut rig, link, range);
    assert_filled(rig.revoke(1, range.key).lease().bytes(), 0x11, "target");
}

/// Revoked memory may be used for something else at once.
pub fn after_revocation_touch_nothing(bench: &dyn Bench) {
    let (mut rig, link) = Rig::pair(bench);
    let range = rig.writable(link.to, 4096, 0x11);
    let exposure = rig.revoke(1, range.key);
    assert!(matches!(
        rig.fabric(1).revoke(range.key),
        RevokeStatus::Unknown
    ));
    refused(bench, &mut rig, link, range);
    assert_filled(exposure.lease().bytes(), 0x11, "target");
    // The same memory under a new key must not accept the old key.
    let again = rig
        .fabric(1)
        .expose(link.to.1, exposure)
        .map_err(drop)
        .expect("there is room");
    assert_ne!(again.key, range.key);
    refused(bench, &mut rig, link, range);
    assert_filled(rig.revoke(1, again.key).lease().bytes(), 0x11, "target");
}

/// After `revoke` has returned, no byte changes, however much is in flight.
pub fn revoked_in_mid_transfer_stop(bench: &dyn Bench) {
    let (mut rig, link) = Rig::pair(bench);
    const COUNT: u64 = 200;
    let ranges: Vec<_> = (0..COUNT)
        .map(|_| rig.writable(link.to, PAGE_BYTES, 0))
        .collect();
    let source = Arc::new(rig.lease(0, PAGE_BYTES, 0x3c));
    for (token, range) in ranges.iter().enumerate() {
        rig.write(link.from, writing(&source, token as u64, *range));
    }
    // Some of it arrives; where exactly it stops is the kernel's choice.
    for _ in 0..2 {
        rig.step(0);
        rig.step(1);
    }
    let revoked: Vec<_> = ranges
        .iter()
        .map(|range| match rig.fabric(1).revoke(range.key) {
            RevokeStatus::Now(exposure) => Some((exposure.lease().bytes().to_vec(), exposure)),
            RevokeStatus::Later => None,
            RevokeStatus::Unknown => panic!("{range:?} is exposed"),
        })
        .collect();
    let taken: Vec<_> = revoked
        .into_iter()
        .zip(&ranges)
        .map(|(taken, range)| {
            taken.unwrap_or_else(|| {
                let exposure = rig.revoked(1, range.key);
                (exposure.lease().bytes().to_vec(), exposure)
            })
        })
        .collect();
    for token in 0..COUNT {
        assert_ne!(rig.write_end(link.from, token), Outcome::Flushed);
    }
    rig.fence(link);
    for (at, (bytes, exposure)) in taken.iter().enumerate() {
        assert!(exposure.lease().bytes() == bytes, "write {at}");
    }
    let (taken, refused) = (
        rig.counter(1, "writes_in"),
        rig.counter(1, "writes_refused"),
    );
    assert_eq!(taken + refused, COUNT);
    assert!(refused > 0, "nothing was under way");
}
