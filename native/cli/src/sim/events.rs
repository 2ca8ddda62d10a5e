//! Future events, in order of time.
//!
//! Latency and timeout are constant, so requests on their way and timeouts come in order and need no
//! heap: it holds only links, posts and windows in the network, not the many requests and timeouts.

use super::units::Picos;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

#[derive(Clone, Copy)]
pub enum SimEvent {
    /// The client may post its next request.
    Post { client: usize },
    /// A request for so many bytes has reached its server.
    Arrived { flow: u32, bytes: u64 },
    /// The server's link is free.
    LinkFree { server: usize },
    /// The client's port has drained a flow's window.
    Drained { flow: u32 },
    /// The timeout of a flow's lost window is over.
    Retry { flow: u32 },
}

/// The kinds of events in the heap, in the order of those that come at one time.
#[derive(Clone, Copy)]
enum HeapEvent {
    Post = 0,
    LinkFree = 1,
    Drained = 2,
}

#[derive(Default)]
pub struct EventQueue {
    /// (time << 64) | (kind << 32) | index: ties are broken in the same way in every run.
    heap: BinaryHeap<Reverse<u128>>,
    /// Requests on their way, in order of time.
    arrivals: VecDeque<(Picos, u32, u64)>,
    /// Flows that wait for the timeout, in order of time.
    retries: VecDeque<(Picos, u32)>,
}

impl EventQueue {
    pub fn post(&mut self, at: Picos, client: usize) {
        self.push(at, HeapEvent::Post, client as u32);
    }

    pub fn link_free(&mut self, at: Picos, server: usize) {
        self.push(at, HeapEvent::LinkFree, server as u32);
    }

    pub fn drained(&mut self, at: Picos, flow: u32) {
        self.push(at, HeapEvent::Drained, flow);
    }

    /// `at` is not before the time of an earlier call.
    pub fn arrived(&mut self, at: Picos, flow: u32, bytes: u64) {
        self.arrivals.push_back((at, flow, bytes));
    }

    /// `at` is not before the time of an earlier call.
    pub fn retry(&mut self, at: Picos, flow: u32) {
        self.retries.push_back((at, flow));
    }

    fn push(&mut self, at: Picos, event: HeapEvent, index: u32) {
        let key = (u128::from(at) << 64) | ((event as u128) << 32) | u128::from(index);
        self.heap.push(Reverse(key));
    }

    /// Removes the earliest event. Of those at one time, requests that reach their servers come
    /// first, then timeouts.
    pub fn pop(&mut self) -> Option<(Picos, SimEvent)> {
        let heap = self.heap.peek();
        let heap = heap.map_or(Picos::MAX, |Reverse(key)| (key >> 64) as Picos);
        let arrival = self.arrivals.front().map_or(Picos::MAX, |a| a.0);
        let retry = self.retries.front().map_or(Picos::MAX, |r| r.0);
        if arrival <= heap && arrival <= retry {
            let (at, flow, bytes) = self.arrivals.pop_front()?;
            return Some((at, SimEvent::Arrived { flow, bytes }));
        }
        if retry <= heap {
            let (at, flow) = self.retries.pop_front()?;
            return Some((at, SimEvent::Retry { flow }));
        }
        let Reverse(key) = self.heap.pop()?;
        let index = key as u32;
        let event = match (key >> 32) as u32 {
            k if k == HeapEvent::Post as u32 => SimEvent::Post {
                client: index as usize,
            },
            k if k == HeapEvent::LinkFree as u32 => SimEvent::LinkFree {
                server: index as usize,
            },
            _ => SimEvent::Drained { flow: index },
        };
        Some(((key >> 64) as Picos, event))
    }
}
