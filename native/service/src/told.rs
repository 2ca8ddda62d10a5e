//! What members of an application, such as its driver, tell its service over the connections of
//! readers. They tell it where the application has no executor on the host that would tell it over
//! the Unix socket.
//!
//! It is told by a request for a block of an id that no map output has (`replica/names`), so it is
//! proven as a read is. The resolver only notes it, since to end an application ends its resolver
//! too; the next tick of the service does it. To be told twice is as to be told once. A service
//! that ends before its next tick has forgotten it; then `--idle` removes the outputs.

use crate::replica::Asked;
use faro_sync::lock;
use faro_wire::OutputId;
use std::collections::BTreeSet;
use std::sync::Mutex;

/// Most shuffles that are noted for one tick. Of more the lowest are noted.
const MAX_REMOVED: usize = 1 << 16;

/// The orders that were given and are not carried out yet.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct News {
    /// Shuffles that were removed.
    pub(crate) removed: BTreeSet<u32>,
    /// The application has ended.
    pub(crate) ended: bool,
}

/// The place where the resolver notes it.
#[derive(Debug, Default)]
pub(crate) struct Told(Mutex<News>);

impl Told {
    /// Notes what a question of that id tells, if it tells anything.
    pub(crate) fn hear(&self, id: OutputId) {
        match Asked::of(id) {
            Asked::Removed(shuffle) => {
                let removed = &mut lock(&self.0).removed;
                removed.insert(shuffle);
                if removed.len() > MAX_REMOVED {
                    removed.pop_last();
                }
            }
            Asked::Ended => lock(&self.0).ended = true,
            Asked::Output(_) | Asked::Index(_) | Asked::Page(_) => {}
        }
    }

    pub(crate) fn take(&self) -> News {
        std::mem::take(&mut lock(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_are_told_once_and_bounded() {
        let told = Told::default();
        told.hear(Asked::Page(7).id());
        assert_eq!(told.take(), News::default());
        for shuffle in (0..MAX_REMOVED as u32 + 5).chain([3]) {
            told.hear(Asked::Removed(shuffle).id());
        }
        told.hear(Asked::Ended.id());
        let news = told.take();
        assert_eq!((news.removed.len(), news.ended), (MAX_REMOVED, true));
        assert_eq!(told.take(), News::default());
    }
}
