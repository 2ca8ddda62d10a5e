//! Shares of a bound: no user and no application may take all of it.

use crate::options::Users;

/// Returns how many of `max` places one user may have while all users together have `taken`. If only one user is served,
/// that is `max`. Otherwise it is the number of free places: one user alone gets half, two get a third each, and a new
/// user always finds a place.
pub(crate) fn share_of_user(users: &Users, max: usize, taken: usize) -> usize {
    match users {
        Users::Own => max,
        Users::These(these) if these.len() <= 1 => max,
        Users::These(_) | Users::Any => max.saturating_sub(taken),
    }
}

/// Returns whether an application that has `own` of `max` places may take `more` while all together have `all`.
/// Afterwards it must not have more than are free. So one application alone gets half, and a new one always finds some.
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
