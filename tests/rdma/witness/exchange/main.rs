//! SEND and RECV between the crate `ibverbs` and Faro's device layer, on one RDMA device.
//!
//! Each case has a queue pair of either side, connected to each other. Faro's own tests on a device
//! have Faro at both ends, so what both ends get wrong in the same way shows only here.

// The sources themselves: the fabric shows its device layer to nobody.
#[allow(dead_code, unused_imports)]
#[path = "../../../../native/fabric/src/verbs/device/mod.rs"]
mod device;
mod sides;

use device::{CompletionKind, CompletionStatus, WorkCompletion};
use ibverbs::{ibv_wc, ibv_wc_opcode};
use sides::{their_context, Bench, BYTES};
use std::ffi::CStr;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::process::ExitCode;

/// An RDMA packet has 4,096 bytes at most.
const LENGTHS: [usize; 7] = [0, 1, 64, 4096, 4097, 65_536, 100_000];
/// What memory holds that nothing was received into.
const UNTOUCHED: u8 = 0xee;
/// Messages of each side that are under way at a time; their greatest distance in memory.
const BURST: usize = 16;
const PIECE: usize = 8 << 10;
/// Ids of requests to receive begin here.
const RECEIVES: u64 = 1000;

/// A byte that depends on the message and on its place there.
fn byte(message: usize, at: usize) -> u8 {
    (at * 31 + (at >> 8) + message * 7) as u8
}

fn fill(memory: &mut [u8], message: usize) {
    for (at, to) in memory.iter_mut().enumerate() {
        *to = byte(message, at);
    }
}

/// The message is there as it was sent, and behind it nothing has changed.
fn has_message(memory: &[u8], message: usize, length: usize) {
    let wanted = |at| {
        if at < length {
            byte(message, at)
        } else {
            UNTOUCHED
        }
    };
    let wrong = (0..memory.len()).find(|at| memory[*at] != wanted(*at));
    assert_eq!(wrong, None, "the first byte that is wrong");
}

fn ours_sent(got: &WorkCompletion, id: u64) {
    let wanted = (id, &CompletionStatus::Done, CompletionKind::Sent);
    assert_eq!((got.id, &got.status, got.kind), wanted, "Faro");
}

fn ours_received(got: &WorkCompletion, id: u64, length: usize) {
    let wanted = (
        id,
        &CompletionStatus::Done,
        CompletionKind::Received,
        length,
    );
    let found = (got.id, &got.status, got.kind, got.bytes as usize);
    assert_eq!(found, wanted, "Faro");
}

fn theirs_sent(got: &ibv_wc, id: u64) {
    let wanted = (id, None, ibv_wc_opcode::IBV_WC_SEND);
    assert_eq!((got.wr_id(), got.error(), got.opcode()), wanted, "ibverbs");
}

fn theirs_received(got: &ibv_wc, id: u64, length: usize) {
    let wanted = (id, None, ibv_wc_opcode::IBV_WC_RECV, length);
    let found = (got.wr_id(), got.error(), got.opcode(), got.len());
    assert_eq!(found, wanted, "ibverbs");
}

fn faro_sends(bench: &Bench<'_>, length: usize, inline: bool) {
    let mut pair = bench.pair();
    assert!(
        !inline || length <= pair.inline_bytes(),
        "{}",
        pair.inline_bytes()
    );
    fill(&mut pair.our_memory()[..length], 1);
    pair.their_memory().fill(UNTOUCHED);
    pair.they_receive(0..BYTES, RECEIVES);
    pair.we_send(0..length, 1, inline);
    let (ours, theirs) = bench.completions(1, 1);
    ours_sent(&ours[0], 1);
    theirs_received(&theirs[0], RECEIVES, length);
    has_message(pair.their_memory(), 1, length);
}

fn ibverbs_sends(bench: &Bench<'_>, length: usize) {
    let mut pair = bench.pair();
    fill(&mut pair.their_memory()[..length], 2);
    pair.our_memory().fill(UNTOUCHED);
    pair.we_receive(0..BYTES, RECEIVES);
    pair.they_send(0..length, 2);
    let (ours, theirs) = bench.completions(1, 1);
    theirs_sent(&theirs[0], 2);
    ours_received(&ours[0], RECEIVES, length);
    has_message(pair.our_memory(), 2, length);
}

/// Messages of different lengths in both directions at a time; each arrives in its own turn.
fn both_send(bench: &Bench<'_>) {
    let mut pair = bench.pair();
    let length = |number| number * 500;
    // Sent from the first half of the memory, received into the other one.
    let from = |number| number * PIECE..number * PIECE + length(number);
    let into = |number| BYTES / 2 + number * PIECE..BYTES / 2 + (number + 1) * PIECE;
    pair.our_memory().fill(UNTOUCHED);
    pair.their_memory().fill(UNTOUCHED);
    for number in 0..BURST {
        fill(&mut pair.our_memory()[from(number)], number);
        fill(&mut pair.their_memory()[from(number)], BURST + number);
        pair.we_receive(into(number), RECEIVES + number as u64);
        pair.they_receive(into(number), RECEIVES + number as u64);
    }
    for number in 0..BURST {
        pair.we_send(from(number), number as u64, false);
        pair.they_send(from(number), number as u64);
    }
    let (mut ours, mut theirs) = bench.completions(2 * BURST, 2 * BURST);
    // A stable sort: those of one kind are in the order of the requests by themselves.
    ours.sort_by_key(|got| got.id >= RECEIVES);
    theirs.sort_by_key(|got| got.wr_id() >= RECEIVES);
    for number in 0..BURST {
        let id = number as u64;
        ours_sent(&ours[number], id);
        theirs_sent(&theirs[number], id);
        ours_received(&ours[BURST + number], RECEIVES + id, length(number));
        theirs_received(&theirs[BURST + number], RECEIVES + id, length(number));
        has_message(
            &pair.our_memory()[into(number)],
            BURST + number,
            length(number),
        );
        has_message(&pair.their_memory()[into(number)], number, length(number));
    }
}

/// A message that is longer than what it is received into is an error at both ends. Which one is the
/// device's to say: Faro names the one that the crate has at the same end.
fn both_send_too_much(bench: &Bench<'_>) {
    let mut pair = bench.pair();
    pair.they_receive(0..100, RECEIVES);
    pair.we_send(0..101, 1, false);
    let (our_send, their_receive) = bench.completions(1, 1);
    // Both ends of that pair are broken.
    let mut pair = bench.pair();
    pair.we_receive(0..100, RECEIVES);
    pair.they_send(0..101, 1);
    let (our_receive, their_send) = bench.completions(1, 1);
    have_failed(&our_send[0], &their_send[0], 1);
    have_failed(&our_receive[0], &their_receive[0], RECEIVES);
}

fn have_failed(ours: &WorkCompletion, theirs: &ibv_wc, id: u64) {
    assert_eq!((ours.id, theirs.wr_id()), (id, id));
    let Some((status, their_vendor)) = theirs.error() else {
        panic!("ibverbs: {theirs:?}");
    };
    let CompletionStatus::Failed { what, vendor } = &ours.status else {
        panic!("Faro: {ours:?}");
    };
    // SAFETY: the function takes any number, and returns null or a text that lives as long as the
    // library, which this program is linked with.
    let name = unsafe { ibverbs_sys::ibv_wc_status_str(status) };
    assert!(!name.is_null(), "{status}");
    // SAFETY: as above, and it is not null.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    assert!(what.contains(&*name), "Faro: {what}, ibverbs: {name}");
    assert_eq!(*vendor, their_vendor);
    println!("  {name}");
}

/// Runs a case on a device that is opened for it, and says how it ended: a panic fails this case
/// alone.
fn passes(name: &str, case: impl FnOnce(&Bench<'_>)) -> bool {
    let context = their_context();
    let run = AssertUnwindSafe(|| case(&Bench::new(&context)));
    let passed = catch_unwind(run).is_ok();
    println!("{name}: {}", if passed { "ok" } else { "FAILED" });
    passed
}

fn main() -> ExitCode {
    let mut results = Vec::new();
    for length in LENGTHS {
        let (ours, theirs) = (
            format!("Faro sends {length} bytes"),
            format!("ibverbs sends {length} bytes"),
        );
        results.push(passes(&ours, |bench| faro_sends(bench, length, false)));
        results.push(passes(&theirs, |bench| ibverbs_sends(bench, length)));
    }
    results.extend([
        passes("Faro sends 32 bytes inline", |bench| {
            faro_sends(bench, 32, true)
        }),
        passes("both send at a time", both_send),
        passes("both send too much", both_send_too_much),
    ]);
    let failed = results.iter().filter(|passed| !**passed).count();
    println!("{} passed, {failed} failed", results.len() - failed);
    ExitCode::from(u8::from(failed > 0))
}
