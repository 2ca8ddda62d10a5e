//! Posts that the fabric has no room for yet.
//!
//! A fabric bounds its queue per connection and returns what does not fit. The order of one
//! connection's posts is the protocol's (`DATA_WRITTEN` after its writes), so once one waits, all
//! later ones wait behind it. What may wait is bounded by what may be posted at all: requests, and
//! the window of writes of each job.

use faro_fabric::{ConnectionId, Fabric, Message, RejectedPost, Write};
use faro_sync::HashMap;
use std::collections::VecDeque;

/// A message or a write.
pub(super) enum Post {
    Write(Write),
    Message(Message),
}

/// The waiting posts of one progress thread, by connection.
#[derive(Default)]
pub(super) struct Outbox {
    waiting: HashMap<ConnectionId, VecDeque<Post>>,
}

impl Outbox {
    /// Posts now or as soon as there is room. Posts to a closed connection vanish: `Event::Closed` follows.
    pub(super) fn post(&mut self, fabric: &mut dyn Fabric, connection: ConnectionId, post: Post) {
        if let Some(queue) = self.waiting.get_mut(&connection) {
            queue.push_back(post);
            return;
        }
        if let Some(post) = try_post(fabric, connection, post) {
            self.waiting.insert(connection, VecDeque::from([post]));
        }
    }

    /// Tries all connections' posts again.
    pub(super) fn retry(&mut self, fabric: &mut dyn Fabric) {
        self.waiting.retain(|connection, queue| {
            while let Some(post) = queue.pop_front() {
                if let Some(post) = try_post(fabric, *connection, post) {
                    queue.push_front(post);
                    return true;
                }
            }
            false
        });
    }

    pub(super) fn closed(&mut self, connection: ConnectionId) {
        self.waiting.remove(&connection);
    }

    pub(super) fn has_waiting(&self, connection: ConnectionId) -> bool {
        self.waiting.contains_key(&connection)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// Returns the post if it has to wait.
fn try_post(fabric: &mut dyn Fabric, connection: ConnectionId, post: Post) -> Option<Post> {
    match post {
        Post::Write(write) => match fabric.write(connection, write) {
            Err(RejectedPost::Full(write)) => Some(Post::Write(write)),
            Ok(()) | Err(RejectedPost::NotConnected(..)) => None,
            Err(RejectedPost::TooLarge(write, limit)) => {
                let (bytes, parts) = (write.source.length(), write.source.parts().len());
                log::error!(
                    "a write of {bytes} bytes in {parts} parts is above the bound of {limit}"
                );
                None
            }
        },
        Post::Message(message) => match fabric.send(connection, message) {
            Err(RejectedPost::Full(message)) => Some(Post::Message(message)),
            Ok(()) | Err(RejectedPost::NotConnected(..)) => None,
            Err(RejectedPost::TooLarge(message, limit)) => {
                let (kind, bytes) = (message.kind, message.body.len());
                log::error!("message {kind:#04x} of {bytes} bytes is above the bound of {limit}");
                None
            }
        },
    }
}
