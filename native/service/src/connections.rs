//! Counts connected executors, in all and of each user: where several users are served, none takes all connections.

use crate::options::Users;
use faro_sync::lock;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use thiserror::Error;

/// The reason that one more connection is refused.
#[derive(Debug, PartialEq, Eq, Error)]
pub(crate) enum TooMany {
    #[error("{max} executors are connected, as many as may be")]
    All { max: usize },
    #[error("{max} executors of user {user} are connected, as many as one user may have")]
    OfUser { user: u32, max: usize },
}

/// Returns one user's share of `max`: all of it where only one user is served, otherwise half.
pub(crate) fn share_of_user(users: &Users, max: usize) -> usize {
    match users {
        Users::Own => max,
        Users::These(_) | Users::Any => max.div_ceil(2),
    }
}

#[derive(Debug, Default)]
struct Open {
    all: usize,
    by_user: HashMap<u32, usize>,
}

/// The connections that are open.
#[derive(Debug)]
pub(crate) struct Connections {
    max: usize,
    max_of_user: usize,
    open: Mutex<Open>,
}

impl Connections {
    pub(crate) fn new(users: &Users, max: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            max_of_user: share_of_user(users, max),
            open: Mutex::default(),
        })
    }

    /// Counts one more, until what is returned is dropped.
    pub(crate) fn take(self: &Arc<Self>, user: u32) -> Result<Counted, TooMany> {
        let mut open = lock(&self.open);
        if open.all >= self.max {
            return Err(TooMany::All { max: self.max });
        }
        let of_user = open.by_user.get(&user).copied().unwrap_or(0);
        if of_user >= self.max_of_user {
            let max = self.max_of_user;
            return Err(TooMany::OfUser { user, max });
        }
        open.all += 1;
        open.by_user.insert(user, of_user + 1);
        let of = Arc::clone(self);
        Ok(Counted { user, of })
    }

    pub(crate) fn are_none(&self) -> bool {
        lock(&self.open).all == 0
    }
}

/// One of the connections.
#[derive(Debug)]
pub(crate) struct Counted {
    user: u32,
    of: Arc<Connections>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut open = lock(&self.of.open);
        open.all -= 1;
        if let Some(of_user) = open.by_user.get_mut(&self.user) {
            *of_user -= 1;
            if *of_user == 0 {
                open.by_user.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_of_several_has_half() {
        let connections = Connections::new(&Users::Any, 5);
        let mut first: Vec<_> = (0..3).map(|_| connections.take(1).unwrap()).collect();
        let refused = connections.take(1).unwrap_err();
        assert_eq!(refused, TooMany::OfUser { user: 1, max: 3 });
        let second: Vec<_> = (0..2).map(|_| connections.take(2).unwrap()).collect();
        assert_eq!(connections.take(2).unwrap_err(), TooMany::All { max: 5 });
        first.pop();
        let again = connections.take(1).unwrap();
        drop((first, second, again));
        assert!(connections.are_none() && lock(&connections.open).by_user.is_empty());
    }

    #[test]
    fn the_only_user_has_all() {
        let connections = Connections::new(&Users::Own, 2);
        let _both = [connections.take(1).unwrap(), connections.take(1).unwrap()];
        assert_eq!(connections.take(1).unwrap_err(), TooMany::All { max: 2 });
    }
}
