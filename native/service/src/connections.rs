//! Counts connected executors, in all and of each user: where several users are served, none takes all connections.
//! Users who are not served are not counted here (`listener`).

use crate::options::Users;
use crate::shares::share_of_user;
use faro_sync::lock;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use thiserror::Error;

/// The reason that one more connection is refused.
#[derive(Debug, PartialEq, Eq, Error)]
pub(crate) enum TooMany {
    #[error("{max} executors are connected, as many as may be")]
    All { max: usize },
    #[error("{max} executors of user {user} are connected, as many as one user may have now")]
    OfUser { user: u32, max: usize },
}

#[derive(Debug, Default)]
struct OpenCounts {
    all: usize,
    by_user: HashMap<u32, usize>,
}

/// The connections that are open.
#[derive(Debug)]
pub(crate) struct Connections {
    max: usize,
    users: Users,
    open: Mutex<OpenCounts>,
}

impl Connections {
    pub(crate) fn new(users: &Users, max: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            users: users.clone(),
            open: Mutex::default(),
        })
    }

    /// Counts one more, until what is returned is dropped.
    pub(crate) fn take(self: &Arc<Self>, user: u32) -> Result<ConnectionPermit, TooMany> {
        let mut open = lock(&self.open);
        if open.all >= self.max {
            return Err(TooMany::All { max: self.max });
        }
        let of_user = open.by_user.get(&user).copied().unwrap_or(0);
        if of_user >= share_of_user(&self.users, self.max, open.all) {
            let max = of_user;
            return Err(TooMany::OfUser { user, max });
        }
        open.all += 1;
        open.by_user.insert(user, of_user + 1);
        let of = Arc::clone(self);
        Ok(ConnectionPermit { user, of })
    }

    pub(crate) fn are_none(&self) -> bool {
        lock(&self.open).all == 0
    }
}

/// One of the connections.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    user: u32,
    of: Arc<Connections>,
}

impl Drop for ConnectionPermit {
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
    fn one_user_of_several_leaves_as_many_as_it_has() {
        let connections = Connections::new(&Users::Any, 6);
        let mut first: Vec<_> = (0..3).map(|_| connections.take(1).unwrap()).collect();
        let refused = connections.take(1).unwrap_err();
        assert_eq!(refused, TooMany::OfUser { user: 1, max: 3 });
        let second: Vec<_> = (0..2).map(|_| connections.take(2).unwrap()).collect();
        let refused = connections.take(2).unwrap_err();
        assert_eq!(refused, TooMany::OfUser { user: 2, max: 2 });
        let third = connections.take(3).unwrap();
        assert_eq!(connections.take(4).unwrap_err(), TooMany::All { max: 6 });
        first.pop();
        let again = connections.take(4).unwrap();
        drop((first, second, third, again));
        assert!(connections.are_none() && lock(&connections.open).by_user.is_empty());
    }

    #[test]
    fn the_only_user_has_all() {
        let connections = Connections::new(&Users::Own, 2);
        let _both = [connections.take(1).unwrap(), connections.take(1).unwrap()];
        assert_eq!(connections.take(1).unwrap_err(), TooMany::All { max: 2 });
    }
}
