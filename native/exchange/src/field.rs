//! Finite fields GF(p^k) of up to 257 elements.
//!
//! An element is a number below q = p^k; its base-p digits are the coefficients of a polynomial,
//! lowest first. The modulus is x^k + c(x) with the smallest number c for which x runs through all
//! q - 1 nonzero elements (a primitive polynomial; for k = 1 this makes x = -c a primitive root).
//! So one search yields logarithms, and multiplication and division are table lookups. The rule is
//! part of the format: another choice of c would yield another, equally good, schedule.

use crate::ExchangeError;

/// Maximum order. 256 is the smallest prime power whose square holds [`crate::MAX_MEMBERS`].
const MAX_ORDER: u32 = 257;

#[derive(Debug, Clone)]
pub struct Field {
    /// Number of elements, p^k.
    q: u32,
    /// Characteristic, a prime.
    p: u32,
    /// `exp[i] = x^i` for `i < q - 1`.
    exp: Vec<u16>,
    /// `log[exp[i]] = i`; `log[0]` is never read.
    log: Vec<u16>,
}

impl Field {
    pub fn new(q: u32) -> Result<Self, ExchangeError> {
        let p = match prime_of(q) {
            Some(p) if q <= MAX_ORDER => p,
            _ => return Err(ExchangeError::NoSuchField(q)),
        };
        // Every finite field has a primitive polynomial, so the search ends.
        (1..q)
            .find_map(|c| powers(q, p, c))
            .map(|exp| {
                let mut log = vec![0u16; q as usize];
                for (i, &e) in exp.iter().enumerate() {
                    log[e as usize] = i as u16;
                }
                Field { q, p, exp, log }
            })
            .ok_or(ExchangeError::NoSuchField(q))
    }

    pub fn order(&self) -> u32 {
        self.q
    }

    /// Returns x^0, x^1, …: each nonzero element once.
    pub fn powers(&self) -> impl Iterator<Item = u32> + '_ {
        self.exp.iter().map(|&e| u32::from(e))
    }

    pub fn add(&self, a: u32, b: u32) -> u32 {
        digits(self.p, a, b, |x, y| x + y)
    }

    pub fn sub(&self, a: u32, b: u32) -> u32 {
        digits(self.p, a, b, |x, y| x + self.p - y)
    }

    pub fn mul(&self, a: u32, b: u32) -> u32 {
        if a == 0 || b == 0 {
            return 0;
        }
        let sum = self.log(a) + self.log(b);
        u32::from(self.exp[sum % (self.q as usize - 1)])
    }

    /// Returns a / b; `None` if b is zero.
    pub fn div(&self, a: u32, b: u32) -> Option<u32> {
        if b == 0 {
            return None;
        }
        if a == 0 {
            return Some(0);
        }
        let n = self.q as usize - 1;
        Some(u32::from(self.exp[(self.log(a) + n - self.log(b)) % n]))
    }

    fn log(&self, a: u32) -> usize {
        self.log[a as usize] as usize
    }
}

/// Returns the smallest prime power that is at least `n`.
pub(crate) fn prime_power_from(n: u32) -> u32 {
    let mut q = n.max(2);
    while prime_of(q).is_none() {
        q += 1;
    }
    q
}

/// Returns the prime p if q = p^k.
fn prime_of(q: u32) -> Option<u32> {
    let p = (2..).take_while(|d| d * d <= q).find(|d| q % d == 0);
    let p = p.unwrap_or(q);
    let mut rest = q;
    while rest > 1 && rest % p == 0 {
        rest /= p;
    }
    (q > 1 && rest == 1).then_some(p)
}

/// Returns 1, x, x^2, … modulo x^k + c(x) if they are all q - 1 nonzero elements.
fn powers(q: u32, p: u32, c: u32) -> Option<Vec<u16>> {
    let top_digit = q / p;
    let mut exp = Vec::with_capacity(q as usize - 1);
    let mut e = 1;
    loop {
        exp.push(e as u16);
        let top = e / top_digit;
        let shifted = (e % top_digit) * p;
        e = digits(p, shifted, c, |x, y| x + (p - top) * y);
        if e == 1 || e == 0 || exp.len() as u32 >= q {
            break;
        }
    }
    (e == 1 && exp.len() as u32 == q - 1).then_some(exp)
}

/// Applies `f` to each pair of base-p digits, modulo p.
fn digits(p: u32, mut a: u32, mut b: u32, f: impl Fn(u32, u32) -> u32) -> u32 {
    let (mut out, mut place) = (0, 1);
    while a > 0 || b > 0 {
        out += f(a % p, b % p) % p * place;
        (a, b, place) = (a / p, b / p, place * p);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_axioms() {
        for q in [2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 25, 27] {
            let f = Field::new(q).unwrap();
            for a in 0..q {
                assert_eq!(f.add(a, 0), a);
                assert_eq!(f.mul(a, 1), a);
                assert_eq!(f.sub(a, a), 0);
                for b in 0..q {
                    assert_eq!(f.add(a, b), f.add(b, a));
                    assert_eq!(f.mul(a, b), f.mul(b, a));
                    assert_eq!(f.sub(f.add(a, b), b), a);
                    if b > 0 {
                        assert_eq!(f.div(f.mul(a, b), b), Some(a));
                    }
                    for c in 0..q {
                        assert_eq!(f.mul(a, f.mul(b, c)), f.mul(f.mul(a, b), c));
                        assert_eq!(f.mul(a, f.add(b, c)), f.add(f.mul(a, b), f.mul(a, c)));
                    }
                }
            }
            assert_eq!(f.div(1, 0), None);
        }
    }

    #[test]
    fn all_orders_up_to_the_largest() {
        let orders: Vec<u32> = (0..=257).filter(|&q| Field::new(q).is_ok()).collect();
        // All prime powers up to 64 are listed, and those up to 257 are counted.
        let small = [
            2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31, 32, 37, 41, 43, 47, 49,
            53, 59, 61, 64,
        ];
        assert_eq!(orders[..small.len()], small);
        assert_eq!(orders.len(), 71);
        assert!(Field::new(1 << 20).is_err());
    }

    #[test]
    fn distributive_in_large_fields() {
        for q in [49, 64, 121, 125, 128, 169, 243, 256, 257] {
            let f = Field::new(q).unwrap();
            for a in 0..q {
                for b in 0..q {
                    let c = (a * 7 + b * 3 + 1) % q;
                    assert_eq!(f.mul(a, f.add(b, c)), f.add(f.mul(a, b), f.mul(a, c)));
                }
            }
        }
    }
}
