//! Packets of RoCE v2: Ethernet, IPv4, UDP, the base transport header, a payload and its checksum (InfiniBand Architecture
//! Specification 1.4, chapter 9 and annex A17).

use std::ops::Range;

const PORT: u16 = 4791;
const IP_AT: usize = 14;
const UDP_AT: usize = IP_AT + 20;
const TRANSPORT_AT: usize = UDP_AT + 8;
const TRANSPORT_BYTES: usize = 12;
const CHECKSUM_BYTES: usize = 4;
/// The checksum so far, of the bytes of an InfiniBand header that RoCE does not have.
const SEED: u32 = 0xdebb_20e3;

/// A device's use of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carries {
    Send,
    Write,
}

fn number(bytes: &[u8], at: usize) -> Option<u16> {
    let pair = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes(pair.try_into().unwrap()))
}

/// Returns the range of the transport header, the payload and the checksum, if it is such a packet.
pub fn whole(frame: &[u8]) -> Option<Range<usize>> {
    let is_udp =
        number(frame, 12)? == 0x0800 && frame.get(IP_AT)? == &0x45 && frame.get(IP_AT + 9)? == &17;
    if !is_udp || number(frame, UDP_AT + 2)? != PORT {
        return None;
    }
    let end = UDP_AT + usize::from(number(frame, UDP_AT + 4)?);
    (end <= frame.len()).then_some(TRANSPORT_AT..end)
}

/// Returns the range of the payload of a SEND or a WRITE, and which of them it is.
pub fn payload(frame: &[u8]) -> Option<(Carries, Range<usize>)> {
    let whole = whole(frame)?;
    // Opcodes of a reliable connection: SEND and WRITE, as first, middle, last or only packet, the last two with an
    // immediate too.
    let (carries, more) = match frame[whole.start] {
        0x00 | 0x01 | 0x02 | 0x04 => (Carries::Send, 0),
        0x03 | 0x05 => (Carries::Send, 4),
        0x07 | 0x08 => (Carries::Write, 0),
        0x09 => (Carries::Write, 4),
        0x06 | 0x0a => (Carries::Write, 16),
        0x0b => (Carries::Write, 20),
        _ => return None,
    };
    let start = whole.start + TRANSPORT_BYTES + more;
    Some((carries, start..whole.end - CHECKSUM_BYTES))
}

/// Returns the checksum over the fields that a switch must not change.
pub fn checksum(frame: &[u8]) -> [u8; 4] {
    let end = whole(frame).unwrap().end - CHECKSUM_BYTES;
    let mut bytes = frame[IP_AT..end].to_vec();
    // Type of service, time to live and checksum of IP; checksum of UDP; congestion bits of the transport header.
    for at in [1, 8, 10, 11, 26, 27, 32] {
        bytes[at] = 0xff;
    }
    let crc = bytes.iter().fold(SEED, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    });
    (!crc).to_le_bytes()
}

/// Lets a device take a changed payload for what was sent.
pub fn set_checksum(frame: &mut [u8]) {
    let end = whole(frame).unwrap().end;
    let checksum = checksum(frame);
    frame[end - CHECKSUM_BYTES..end].copy_from_slice(&checksum);
}
