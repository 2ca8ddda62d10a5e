//! The record of an application, by which a restarted service knows it: one small file in its directory.
//!
//! ```text
//!  "faro app" | u16 version | u32 user id | 36 boot id | u16 length, application | u32 CRC-32C of all before
//! ```
//! It is written beside its place and renamed: a crash leaves the old file, the new one, or none. A torn one does not have
//! its CRC. Nothing is synced, because only a crash of the machine could tear it. The outputs need no record: the names of their links say what they are, a link is there or
//! not, and each is checked when it is found again (`store`).
//!
//! A machine that goes down may leave a part of its last writes on the disk, and Spark syncs none. So a record is
//! good for one boot of the machine only.

use faro_wire::crc32c;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

const MAGIC: &[u8; 8] = b"faro app";
const VERSION: u16 = 1;
const BOOT_BYTES: usize = 36;
const FIXED: usize = 8 + 2 + 4 + BOOT_BYTES + 2;
/// The file, and where it is written.
const NAME: &str = "application";
const NEW: &str = "application.new";
/// A name of an application is shorter than this.
const MAX_FILE: u64 = 4 << 10;

/// One boot of this machine, as the kernel names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boot([u8; BOOT_BYTES]);

impl Boot {
    /// # Errors
    /// The kernel does not say it.
    pub fn current() -> io::Result<Self> {
        let text = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
        let bytes = text.trim().as_bytes();
        let boot = <[u8; BOOT_BYTES]>::try_from(bytes)
            .map_err(|_| io::Error::other(format!("a boot id of {} bytes", bytes.len())))?;
        Ok(Self(boot))
    }
}

/// An application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Spark's id.
    pub application: String,
    /// User id of its executors.
    pub owner: u32,
    /// The boot of the machine in which it was written.
    pub boot: Boot,
}

impl Record {
    /// The file's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let name = self.application.as_bytes();
        let mut out = Vec::with_capacity(FIXED + name.len() + 4);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&self.owner.to_le_bytes());
        out.extend_from_slice(&self.boot.0);
        out.extend_from_slice(&(name.len() as u16).to_le_bytes());
        out.extend_from_slice(name);
        out.extend_from_slice(&crc32c(&out).to_le_bytes());
        out
    }

    /// `None`: the bytes are no record, or not all of one.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (body, crc) = bytes.split_last_chunk::<4>()?;
        if crc32c(body) != u32::from_le_bytes(*crc) {
            return None;
        }
        let rest = body.strip_prefix(MAGIC)?;
        let (version, rest) = rest.split_first_chunk()?;
        let (owner, rest) = rest.split_first_chunk()?;
        let (boot, rest) = rest.split_first_chunk()?;
        let (length, name) = rest.split_first_chunk()?;
        if u16::from_le_bytes(*version) != VERSION
            || usize::from(u16::from_le_bytes(*length)) != name.len()
        {
            return None;
        }
        Some(Self {
            application: String::from_utf8(name.to_vec()).ok()?,
            owner: u32::from_le_bytes(*owner),
            boot: Boot(*boot),
        })
    }

    /// Writes it into the directory, so that it survives a crash of this process.
    ///
    /// # Errors
    /// The error of the system.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        let new = directory.join(NEW);
        let mut file = File::create(&new)?;
        file.write_all(&self.encode())?;
        fs::rename(&new, directory.join(NAME))
    }

    /// The record in a directory; `None`: there is none, or it is damaged.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(directory: &Path) -> io::Result<Option<Self>> {
        let path = directory.join(NAME);
        match fs::symlink_metadata(&path) {
            Ok(file) if file.is_file() && file.len() <= MAX_FILE => {}
            Ok(_) => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        }
        Ok(Self::decode(&fs::read(&path)?))
    }

    /// Returns whether a name in the directory is the record's.
    #[must_use]
    pub fn is_name(name: &str) -> bool {
        name == NAME
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        Record {
            application: "app-20261124-0001".to_owned(),
            owner: 1000,
            boot: Boot(*b"01234567-89ab-cdef-0123-456789abcdef"),
        }
    }

    #[test]
    fn a_record_is_read_back() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Record::read(dir.path()).unwrap(), None);
        record().write(dir.path()).unwrap();
        assert_eq!(Record::read(dir.path()).unwrap(), Some(record()));
        let renamed = Record {
            application: "another".to_owned(),
            ..record()
        };
        renamed.write(dir.path()).unwrap();
        assert_eq!(Record::read(dir.path()).unwrap(), Some(renamed));
    }

    #[test]
    fn a_write_that_is_torn_at_any_byte_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let whole = record().encode();
        for end in 0..whole.len() {
            fs::write(dir.path().join(NAME), &whole[..end]).unwrap();
            assert_eq!(Record::read(dir.path()).unwrap(), None, "{end} bytes");
            // A file system may leave this if it had the length but not the bytes.
            let mut zeros = whole[..end].to_vec();
            zeros.resize(whole.len(), 0);
            assert_eq!(Record::decode(&zeros), None, "zeros from {end}");
        }
    }

    #[test]
    fn a_crash_before_the_rename_leaves_the_old_record() {
        let dir = tempfile::tempdir().unwrap();
        record().write(dir.path()).unwrap();
        let next = Record {
            owner: 7,
            ..record()
        }
        .encode();
        for end in 0..=next.len() {
            fs::write(dir.path().join(NEW), &next[..end]).unwrap();
            assert_eq!(Record::read(dir.path()).unwrap(), Some(record()));
        }
    }

    #[test]
    fn every_bit_counts() {
        let whole = record().encode();
        for bit in 0..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Record::decode(&flipped), None, "bit {bit}");
        }
    }

    #[test]
    fn a_link_in_its_place_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        record().write(other.path()).unwrap();
        let link = dir.path().join(NAME);
        std::os::unix::fs::symlink(other.path().join(NAME), link).unwrap();
        assert_eq!(Record::read(dir.path()).unwrap(), None);
    }
}
