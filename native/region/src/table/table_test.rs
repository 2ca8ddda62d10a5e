//! Tests of the table that need its fields.

use super::clock::SCAN;
use super::*;

fn chunk(number: usize) -> Chunk {
    let id = RegionId {
        group: 0,
        member: 0,
    };
    (id, number as u64)
}

/// Returns a table whose slots all hold a chunk: slot `i` holds chunk `i`.
fn full(slots: usize) -> Table {
    let mut table = Table::new(slots);
    for number in 0..slots {
        table.add_page();
        assert_eq!(fill(&mut table, number), number);
    }
    table
}

fn fill(table: &mut Table, number: usize) -> Slot {
    let slot = table.begin_fill(chunk(number)).unwrap();
    table.publish(slot, 1);
    table.release(slot);
    table.check();
    slot
}

#[test]
fn the_hand_stays_where_it_stopped() {
    let slots = 3 * SCAN;
    let mut table = full(slots);
    // All were used. Each eviction checks the next `SCAN` slots and takes the first of them.
    for (round, number) in (slots..slots + 3).enumerate() {
        assert_eq!(fill(&mut table, number), round * SCAN);
        assert_eq!(table.clock.hand, (round + 1) * SCAN % slots);
    }
    // Now the slots that it passed over are found at once.
    assert_eq!(fill(&mut table, slots + 3), 1, "slot 0 was just filled");
    assert_eq!(table.clock.hand, 2);
    assert_eq!(table.evictions(), 4);
}

#[test]
fn slots_with_readers_do_not_count_as_scanned() {
    let slots = 4 * SCAN;
    let mut table = full(slots);
    for number in 0..slots - 1 {
        assert_eq!(table.acquire(chunk(number)), Some(number));
    }
    assert_eq!(fill(&mut table, slots), slots - 1, "the only one without");
    table.acquire(chunk(slots)).unwrap();
    assert_eq!(table.begin_fill(chunk(slots + 1)), Err(NoSlot::AllHeld));
}

#[test]
fn chunks_that_are_used_in_turn_do_not_evict_each_other() {
    let mut table = full(4);
    // Six chunks are used in turn: the four that are resident stay, however often this repeats.
    for round in 1..=300_u16 {
        for number in 0..4 {
            table.acquire(chunk(number)).unwrap();
            table.release(number);
        }
        for number in 4..6 {
            let refused = table.begin_fill_if_worth(chunk(number), round + 1);
            assert_eq!(refused, Err(NoSlot::NotWorth), "round {round}");
        }
    }
    assert_eq!(table.evictions(), 0);
}

#[test]
fn chunks_that_are_no_longer_used_make_room() {
    let mut table = full(4);
    for _ in 0..200 {
        table.acquire(chunk(0)).unwrap();
        table.release(0);
    }
    for number in [1, 2, 3] {
        table.acquire(chunk(number)).unwrap();
    }
    let mut halved = 0;
    while table.begin_fill_if_worth(chunk(9), 10).is_err() {
        table.halve_accesses();
        halved += 1;
    }
    assert_eq!(halved, 6, "201 accesses are 3 by then");
}

#[test]
fn an_empty_slot_is_filled_before_a_chunk_is_evicted() {
    let mut table = full(4);
    table
        .begin_fill(chunk(9))
        .map(|slot| table.abandon(slot))
        .unwrap();
    assert!(table.has_room());
    assert_eq!(table.evictions(), 1);
    fill(&mut table, 9);
    assert_eq!(table.evictions(), 1, "the slot that was abandoned");
    assert!(!table.has_room());
}

#[test]
fn pages_are_taken_from_empty_slots_then_from_unused_ones() {
    let mut table = full(6);
    // This evicts slot 0 and clears the marks of all; then slots 1 and 3 are used.
    let empty = table.begin_fill(chunk(9)).unwrap();
    table.abandon(empty);
    for used in [1, 3] {
        table.acquire(chunk(used)).unwrap();
        table.release(used);
    }
    table.acquire(chunk(5)).unwrap();
    assert_eq!(table.take_pages(2, |slot| slot != 2), [empty, 4]);
    table.check();
    assert_eq!(table.take_pages(9, |_| true), [2, 1, 3], "5 has a reader");
    table.check();
    assert_eq!(table.residents(), 1);
    assert_eq!(table.slot_without_page(), Some(3));
}
