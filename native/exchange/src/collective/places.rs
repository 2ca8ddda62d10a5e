//! Where ranks are: what the groups of a round and the order of a grid or ring depend on.

/// The rack of each rank, and the ranks that are kept apart. All members have the same value for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RankPlaces {
    /// The number of each rank's rack: the position of its name among all racks' names, by their
    /// bytes.
    pub(super) racks: Vec<u32>,
    /// The ranks that are apart, see [`slow_ranks`](super::slow_ranks()).
    pub(super) apart: Vec<bool>,
}

impl RankPlaces {
    /// Returns the places of ranks in these racks. Ranks whose rack has no name are in one together.
    pub fn of_racks<S: AsRef<str>>(racks: &[S]) -> Self {
        let mut names: Vec<&str> = racks.iter().map(AsRef::as_ref).collect();
        names.sort_unstable();
        names.dedup();
        let number = |rack: &S| names.partition_point(|name| *name < rack.as_ref()) as u32;
        RankPlaces {
            racks: racks.iter().map(number).collect(),
            apart: vec![false; racks.len()],
        }
    }

    /// Returns the number of ranks.
    pub fn ranks(&self) -> usize {
        self.racks.len()
    }

    /// Sets which ranks are apart.
    ///
    /// # Panics
    /// In a debug build, if it is not one value for each rank.
    pub fn set_apart(&mut self, apart: Vec<bool>) {
        debug_assert_eq!(apart.len(), self.racks.len());
        self.apart = apart;
        self.apart.resize(self.racks.len(), false);
    }

    /// Returns the ranks in the order of racks, those of a rack by number; `None` if that is the order of
    /// their numbers.
    pub(super) fn order(&self) -> Option<Vec<u32>> {
        if self.racks.is_sorted() {
            return None;
        }
        let mut order: Vec<u32> = (0..self.racks.len() as u32).collect();
        order.sort_by_key(|rank| self.racks[*rank as usize]);
        Some(order)
    }
}
