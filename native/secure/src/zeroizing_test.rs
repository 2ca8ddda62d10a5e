//! After a connection's end, no writable memory of the process contains its keys.

use crate::zeroizing::wipe_stack;
use crate::{
    Acceptor, Connector, Keys, Prologue, Protection, Psk, Secret, SharedSecret, StaticKey,
};
use crate::{HEADER_BYTES, TAG_BYTES};
use std::fs;
use std::os::unix::fs::FileExt as _;
use zeroize::Zeroize as _;

/// The search keeps keys masked, so that it never finds its own copy.
const MASK: u8 = 0xa5;
const CHUNK: usize = 1 << 20;

struct MaskedKey(&'static str, [u8; 32]);

impl MaskedKey {
    #[inline(never)]
    fn of(name: &'static str, key: &[u8; 32]) -> Self {
        let masked = std::array::from_fn(|at| std::hint::black_box(key[at]) ^ MASK);
        wipe_stack();
        Self(name, masked)
    }

    fn is_at(&self, bytes: &[u8]) -> bool {
        let mut pairs = bytes.iter().zip(&self.1);
        bytes.len() >= 32 && pairs.all(|(byte, masked)| byte ^ MASK == *masked)
    }
}

/// Returns the addresses of memory that may be written now.
fn writable() -> Vec<(u64, u64)> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let area = |line: &str| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let address = |text| u64::from_str_radix(text, 16).unwrap();
        rest.starts_with("rw")
            .then(|| (address(start), address(end)))
    };
    maps.lines().filter_map(area).collect()
}

/// Returns how many copies of each key there are.
#[inline(never)]
fn copies(keys: &[MaskedKey]) -> Vec<(&'static str, usize)> {
    let memory = fs::File::open("/proc/self/mem").unwrap();
    let mut found: Vec<_> = keys.iter().map(|key| (key.0, 0)).collect();
    let mut buffer = vec![0_u8; CHUNK + 31];
    for (start, end) in writable() {
        let mut at = start;
        while at < end {
            let wanted = buffer.len().min((end - at) as usize);
            // Another thread of the tests may have ended meanwhile, and its stack with it.
            let Ok(read) = memory.read_at(&mut buffer[..wanted], at) else {
                break;
            };
            for place in 0..read.saturating_sub(31) {
                for (key, found) in keys.iter().zip(&mut found) {
                    found.1 += usize::from(key.is_at(&buffer[place..place + 32]));
                }
            }
            // The search's own buffer does not count as a copy.
            buffer.zeroize();
            buffer.resize(CHUNK + 31, 0);
            at += CHUNK as u64;
        }
    }
    found
}

/// Both ends of a connection.
struct Pair {
    _own: [StaticKey; 2],
    _psk: Psk,
    keys: [Keys; 2],
}

fn handshake() -> Pair {
    let own = [(); 2].map(|()| StaticKey::random().unwrap());
    let shared = SharedSecret::new(b"spark's".to_vec());
    let psk = Psk::derive(&Secret::random().unwrap(), Some(&shared), "app").unwrap();
    let prologue = Prologue {
        versions: [3, 3],
        fabric: b't',
        protection: Protection::Sealed,
        acceptor: own[1].id(),
    };
    let (connector, hello) = Connector::hello(&own[0], &psk, &prologue).unwrap();
    let (acceptor, welcome) = Acceptor::welcome(&own[1], &psk, &prologue, 3, &hello).unwrap();
    let welcomed = connector.welcomed(&welcome).unwrap();
    let proven = acceptor.proven(&welcomed.proof).unwrap();
    Pair {
        _own: own,
        _psk: psk,
        keys: [welcomed.keys, proven.keys],
    }
}

fn carry(pair: &mut Pair) {
    let [near, far] = &mut pair.keys;
    let mut record = [&[0; HEADER_BYTES][..], b"a row", &[0; TAG_BYTES]].concat();
    near.sealer.seal(&mut record).unwrap();
    assert_eq!(far.opener.open(&mut record).unwrap(), b"a row");
}

#[test]
fn no_key_is_in_memory_after_the_end_of_a_connection() {
    let mut pair = handshake();
    carry(&mut pair);
    let [near, far] = &pair.keys;
    let keys = [
        MaskedKey::of("connector's records", near.sealer.secret().expose()),
        MaskedKey::of("acceptor's records", far.sealer.secret().expose()),
        MaskedKey::of("pre-shared key", pair._psk.bytes()),
        MaskedKey::of("connector's static key", pair._own[0].private()),
        MaskedKey::of("acceptor's static key", pair._own[1].private()),
    ];
    // The search finds the copies in use.
    for (name, copies) in copies(&keys) {
        let records = name.ends_with("records");
        // Expects from both ends: the key from which the next one follows, and `ring`'s.
        let expected = if records { 4 } else { 1 };
        assert_eq!(copies, expected, "{name}");
    }
    drop(pair);
    for (name, copies) in copies(&keys) {
        assert_eq!(copies, 0, "{name}");
    }
}
