//! The services of an application, by their places in the driver's list. It only grows: a service that is started again
//! keeps its place and has another card there. An empty card is that of a place without a service: two places turned out
//! to be one service.

/// Most services of an application.
pub(crate) const MAX_HOSTS: u32 = 4_096;
/// Most copies of an output.
pub(crate) const MAX_REPLICAS: u8 = 3;

/// The hosts that executors have named so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hosts {
    /// Copies of each output.
    pub(crate) replicas: usize,
    /// How many there are, as the last message said.
    of: usize,
    cards: Vec<Option<Vec<u8>>>,
}

impl Hosts {
    /// The service at place `at` of `of` has that card.
    pub(crate) fn set(&mut self, replicas: usize, at: usize, of: usize, card: Vec<u8>) {
        self.replicas = replicas;
        self.of = self.of.max(of);
        if self.cards.len() <= at {
            self.cards.resize(at + 1, None);
        }
        self.cards[at] = Some(card);
    }

    /// All cards, if all are known: with some of them copies would be placed where no reader looks.
    pub(crate) fn all(&self) -> Option<Vec<&[u8]>> {
        let known: Vec<&[u8]> = self.cards.iter().flatten().map(Vec::as_slice).collect();
        (known.len() == self.of && self.of == self.cards.len()).then_some(known)
    }

    /// Places that have a service, of all cards.
    pub(crate) fn places(cards: &[&[u8]]) -> Vec<usize> {
        let places = (0..cards.len()).filter(|at| !cards[*at].is_empty());
        places.collect()
    }

    /// Copies that each output should have.
    pub(crate) fn wanted(&self) -> usize {
        let empty = |card: &&Option<Vec<u8>>| card.as_ref().is_some_and(Vec::is_empty);
        let services = self.of - self.cards.iter().filter(empty).count();
        self.replicas.min(services.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_placed_before_all_are_known() {
        let mut hosts = Hosts::default();
        hosts.set(2, 1, 3, b"b".to_vec());
        assert_eq!(hosts.all(), None);
        hosts.set(2, 0, 3, b"a".to_vec());
        hosts.set(2, 2, 3, b"c".to_vec());
        assert_eq!(hosts.all().unwrap(), [b"a", b"b", b"c"]);
        hosts.set(2, 3, 5, b"d".to_vec());
        assert_eq!(hosts.all(), None, "a fifth is not known");
        hosts.set(2, 4, 5, b"e".to_vec());
        hosts.set(2, 1, 5, b"B".to_vec());
        assert_eq!(hosts.all().unwrap()[1], b"B");
        assert_eq!(hosts.wanted(), 2);
        for gone in [0, 2, 4] {
            hosts.set(2, gone, 5, Vec::new());
        }
        assert_eq!(Hosts::places(&hosts.all().unwrap()), [1, 3]);
        assert_eq!(hosts.wanted(), 1);
    }
}
