//! What a step of a sort has brought.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SortProgress {
    More,
    /// The entries are in the first array.
    InFirst,
    InSecond,
}

impl SortProgress {
    pub fn of(is_done: bool, in_second: bool) -> Self {
        match (is_done, in_second) {
            (false, _) => Self::More,
            (true, false) => Self::InFirst,
            (true, true) => Self::InSecond,
        }
    }
}
