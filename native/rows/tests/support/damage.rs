//! Damages the bytes of a part.

use proptest::prelude::*;

#[derive(Clone, Debug)]
pub enum Damage {
    /// Changes the byte `at` (modulo the length). In a part of LZ4 blocks `near` is the distance
    /// from a block's start, so that headers are hit as often as bodies.
    Change {
        at: usize,
        near: Option<usize>,
        mask: u8,
    },
    Truncate {
        at: usize,
    },
    Repeat {
        from: usize,
        to: usize,
    },
}

pub fn changed() -> impl Strategy<Value = Damage> {
    let near = prop_oneof![Just(None), (0..24_usize).prop_map(Some)];
    (any::<u16>(), near, 1..=u8::MAX).prop_map(|(at, near, mask)| Damage::Change {
        at: at.into(),
        near,
        mask,
    })
}

pub fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        4 => changed(),
        1 => any::<u16>().prop_map(|at| Damage::Truncate { at: at.into() }),
        1 => any::<(u16, u16)>().prop_map(|(a, b)| Damage::Repeat {
            from: a.min(b).into(),
            to: a.max(b).into(),
        }),
    ]
}

impl Damage {
    pub fn apply(&self, bytes: &mut Vec<u8>) {
        self.apply_near(bytes, &[]);
    }

    pub fn apply_near(&self, bytes: &mut Vec<u8>, starts: &[usize]) {
        if bytes.is_empty() {
            return;
        }
        let length = bytes.len();
        match *self {
            Self::Change { at, near, mask } => {
                let at = match near {
                    Some(near) if !starts.is_empty() => starts[at % starts.len()] + near,
                    _ => at,
                };
                bytes[at % length] ^= mask;
            }
            Self::Truncate { at } => bytes.truncate(at % length),
            Self::Repeat { from, to } => {
                let (from, to) = (from.min(length), to.min(length));
                let repeated = bytes[from..to].to_vec();
                bytes.splice(to..to, repeated);
            }
        }
    }
}
