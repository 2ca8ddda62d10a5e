//! Shares of a bound of which no user and no application may take all.

use crate::options::Users;

/// One user's share of `max`, of which `taken` are taken by all: all of it where only one user is served, otherwise one may
/// have no more than are left free. So one alone has half, two have a third each, and one that comes always finds some.
pub(crate) fn share_of_user(users: &Users, max: usize, taken: usize) -> usize {
    match users {
        Users::Own => max,
        Users::These(these) if these.len() <= 1 => max,
        Users::These(_) | Users::Any => max.saturating_sub(taken),
    }
}

/// Whether one that has `own` may take `more` of `max`, of which `all` are taken: it may then have no more than are left
/// free. So one alone has half, and one that comes always finds some.
pub(crate) fn fits(own: usize, more: usize, all: usize, max: usize) -> bool {
    own + more <= max.saturating_sub(all + more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_comes_finds_some() {
        for users in 1..20 {
            let (mut taken, mut of_user) = (0, vec![0; users]);
            // Each takes all that it gets, in turns.
            for turn in 0..200 * users {
                let user = turn % users;
                if of_user[user] < share_of_user(&Users::Any, 100, taken) {
                    of_user[user] += 1;
                    taken += 1;
                }
            }
            assert!(
                share_of_user(&Users::Any, 100, taken) > 0,
                "{users}: {taken}"
            );
        }
        assert_eq!(share_of_user(&Users::Own, 100, 99), 100);
        assert_eq!(share_of_user(&Users::These(vec![7]), 100, 99), 100);
    }
}
