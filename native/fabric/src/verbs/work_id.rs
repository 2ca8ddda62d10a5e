//! The ids of work requests. An id names the connection and not the queue pair, whose number the
//! device may use again while completions of the old one are still in the queue.

/// Bits of a work request's number in its id; the connection is above them.
const NUMBER_BITS: u32 = 24;
const RECEIVE_BIT: u64 = 1 << (NUMBER_BITS - 1);

pub(super) fn send_id(connection: u64, number: u32) -> u64 {
    connection << NUMBER_BITS | (u64::from(number) & (RECEIVE_BIT - 1))
}

pub(super) fn receive_id(connection: u64, segment: u32) -> u64 {
    connection << NUMBER_BITS | RECEIVE_BIT | u64::from(segment)
}

/// The work that a request's id names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkId {
    Send { number: u32 },
    Receive { segment: u32 },
}

/// Splits an id into the connection and the kind of work request.
pub(super) fn parse_id(id: u64) -> (u64, WorkId) {
    let number = (id & (RECEIVE_BIT - 1)) as u32;
    let parsed = match id & RECEIVE_BIT {
        0 => WorkId::Send { number },
        _ => WorkId::Receive { segment: number },
    };
    (id >> NUMBER_BITS, parsed)
}

/// Returns how many of the posted requests, from the one with number `first` on, are complete when
/// the one with `number` is.
pub(super) fn completed_by(first: u32, number: u32) -> usize {
    (number.wrapping_sub(first) & (RECEIVE_BIT as u32 - 1)) as usize + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_survive() {
        for connection in [1, 77, u64::from(u32::MAX)] {
            for number in [0, 1, (1 << 23) - 1] {
                assert_eq!(
                    parse_id(send_id(connection, number)),
                    (connection, WorkId::Send { number })
                );
                let segment = number;
                assert_eq!(
                    parse_id(receive_id(connection, segment)),
                    (connection, WorkId::Receive { segment })
                );
            }
        }
    }

    #[test]
    fn numbers_wrap() {
        assert_eq!(completed_by(5, 5), 1);
        assert_eq!(completed_by(5, 9), 5);
        assert_eq!(completed_by((1 << 23) - 1, 0), 2);
        assert_eq!(completed_by(1 << 23, 3), 4);
    }
}
