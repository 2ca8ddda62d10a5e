//! The exposure table: the only way from a number in a frame to memory of this process.
//!
//! Keys are a bijection of a counter under two random secrets, so they are unique in an instance and
//! cannot be guessed. A peer could pass its key on, so every use is checked against the connection
//! that received the key.

use crate::{ConnectionId, Exposure, FabricError};
use faro_pool::Lease;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

/// Hashes a key to itself, because keys are well mixed already.
#[derive(Default)]
pub(crate) struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

/// A map by 64-bit numbers that this process chose, well mixed or sequential.
pub(crate) type ByKey<T> = HashMap<u64, T, BuildHasherDefault<IdentityHasher>>;

struct ExposureEntry {
    connection: ConnectionId,
    exposure: Exposure,
}

/// All exposures of one fabric, by key.
pub(crate) struct Exposures {
    entries: ByKey<ExposureEntry>,
    /// Counts up; with `secrets` it makes the next key.
    next: u64,
    secrets: [u64; 2],
}

/// Mixes a number by SplitMix64's finalizer, a bijection (Steele, Lea, Flood 2014).
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Returns random bytes of the kernel, which cannot be guessed.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], FabricError> {
    let mut bytes = [0; N];
    let mut have = 0;
    while have < N {
        match rustix::rand::getrandom(&mut bytes[have..], rustix::rand::GetRandomFlags::empty()) {
            Ok(got) => have += got,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => {
                return Err(FabricError::Io {
                    what: "getrandom".to_owned(),
                    source: error.into(),
                });
            }
        }
    }
    Ok(bytes)
}

impl Exposures {
    pub(crate) fn new() -> Result<Self, FabricError> {
        Ok(Self {
            entries: ByKey::default(),
            next: 0,
            secrets: [u64::from_le_bytes(random()?), u64::from_le_bytes(random()?)],
        })
    }

    /// Returns a key that was never given out before. It is never 0.
    pub(crate) fn new_key(&mut self) -> u64 {
        loop {
            let key = mix(mix(self.next.wrapping_add(self.secrets[0])) ^ self.secrets[1]);
            self.next = self.next.wrapping_add(1);
            if key != 0 {
                return key;
            }
        }
    }

    pub(crate) fn insert(&mut self, key: u64, connection: ConnectionId, exposure: Exposure) {
        self.entries.insert(
            key,
            ExposureEntry {
                connection,
                exposure,
            },
        );
    }

    pub(crate) fn remove(&mut self, key: u64) -> Option<(ConnectionId, Exposure)> {
        let entry = self.entries.remove(&key)?;
        Some((entry.connection, entry.exposure))
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether `connection` may write that range under `key`. Makes no reference to the
    /// bytes, which a device may be writing.
    pub(crate) fn may_write(
        &self,
        connection: ConnectionId,
        key: u64,
        offset: u64,
        length: usize,
    ) -> bool {
        match self.entries.get(&key) {
            Some(ExposureEntry {
                connection: granted,
                exposure: Exposure::Writable(lease),
            }) => *granted == connection && lease.contains(offset, length as u64),
            _ => false,
        }
    }

    /// Returns the bytes that `connection` may write under `key`; `None` if it may not write all of
    /// them.
    pub(crate) fn writable(
        &mut self,
        connection: ConnectionId,
        key: u64,
        offset: u64,
        length: usize,
    ) -> Option<&mut [u8]> {
        match self.entries.get_mut(&key)? {
            ExposureEntry {
                connection: granted,
                exposure: Exposure::Writable(lease),
            } if *granted == connection => {
                let start = usize::try_from(offset).ok()?;
                lease.bytes_mut().get_mut(start..start.checked_add(length)?)
            }
            _ => None,
        }
    }

    /// Returns the lease, if `connection` may read that range of it under `key`.
    pub(crate) fn readable(
        &self,
        connection: ConnectionId,
        key: u64,
        offset: u64,
        length: usize,
    ) -> Option<&Arc<Lease>> {
        match self.entries.get(&key)? {
            ExposureEntry {
                connection: granted,
                exposure: Exposure::Readable(lease),
            } if *granted == connection => {
                let end = usize::try_from(offset).ok()?.checked_add(length)?;
                (end <= lease.capacity()).then_some(lease)
            }
            _ => None,
        }
    }
}
