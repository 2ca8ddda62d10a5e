//! What a fabric would not take yet.
//!
//! A fabric bounds its queue per peer and hands back what does not fit. The order of one peer's
//! posts is the protocol's (`DATA_WRITTEN` after its writes), so once one waits, all later ones wait
//! behind it. Bounded by what may be posted at all: requests, and the staged window of each job.

use faro_fabric::{ConnectionId, Fabric, Message, Rejected, Write};
use std::collections::{HashMap, VecDeque};

pub(crate) enum Post {
    Write(Write),
    Message(Message),
}

#[derive(Default)]
pub(crate) struct Outbox {
    waiting: HashMap<ConnectionId, VecDeque<Post>>,
}

impl Outbox {
    /// Posts now or as soon as there is room. Posts to a closed peer vanish: `Closed` tells.
    pub(crate) fn post(&mut self, fabric: &mut dyn Fabric, peer: ConnectionId, post: Post) {
        if let Some(queue) = self.waiting.get_mut(&peer) {
            queue.push_back(post);
            return;
        }
        if let Some(post) = try_post(fabric, peer, post) {
            self.waiting.insert(peer, VecDeque::from([post]));
        }
    }

    /// Tries again for everybody.
    pub(crate) fn retry(&mut self, fabric: &mut dyn Fabric) {
        self.waiting.retain(|peer, queue| {
            while let Some(post) = queue.pop_front() {
                if let Some(post) = try_post(fabric, *peer, post) {
                    queue.push_front(post);
                    return true;
                }
            }
            false
        });
    }

    pub(crate) fn closed(&mut self, peer: ConnectionId) {
        self.waiting.remove(&peer);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// Gives the post back if it has to wait.
fn try_post(fabric: &mut dyn Fabric, peer: ConnectionId, post: Post) -> Option<Post> {
    match post {
        Post::Write(write) => match fabric.write(peer, write) {
            Err(Rejected::Full(write)) => Some(Post::Write(write)),
            Ok(()) | Err(Rejected::NotConnected(..)) => None,
            Err(Rejected::TooLarge(write, limit)) => {
                log::error!(
                    "a write of {} bytes is above the bound of {limit}",
                    write.length
                );
                None
            }
        },
        Post::Message(message) => match fabric.send(peer, message) {
            Err(Rejected::Full(message)) => Some(Post::Message(message)),
            Ok(()) | Err(Rejected::NotConnected(..)) => None,
            Err(Rejected::TooLarge(message, limit)) => {
                let (kind, bytes) = (message.kind, message.body.len());
                log::error!("message {kind:#04x} of {bytes} bytes is above the bound of {limit}");
                None
            }
        },
    }
}
