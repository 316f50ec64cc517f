//! PostgreSQL's hash functions for partition keys.
//!
//! Source: `hash_bytes_extended` and `hash_bytes_uint32_extended` in `src/common/hashfn.c` (Bob Jenkins'
//! lookup3, public domain), the `*extended` functions of the types, `compute_partition_hash_value` in
//! `partbounds.c` and `hash_combine64` in `hashfn.h`. All of them read numbers in the order of little-endian
//! machines, as servers do on every platform that PostgreSQL is still packaged for; a server that does
//! otherwise refuses the rows of the wrong leaf.

use super::key::{self, Numeric};
use howdah_model::route::KeyKind;

/// `HASH_PARTITION_SEED`
const SEED: u64 = 0x7A5B_2236_7996_DCFD;
/// What lookup3 begins with, and PostgreSQL adds to it.
const START: u32 = 0x9e37_79b9_u32.wrapping_add(3_923_095);

/// The hash value of a row, whose keys come one by one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RowHash(u64);

impl RowHash {
    /// Adds a key that is not NULL, in its binary form. `None` where its hash is not known.
    pub(super) fn add(&mut self, kind: KeyKind, binary: &[u8]) -> Option<()> {
        let hash = of_key(kind, binary)?;
        // hash_combine64
        let mixed =
            hash.wrapping_add(0x49a0_f4dd_15e5_a8e3).wrapping_add(self.0 << 54).wrapping_add(self.0 >> 7);
        self.0 ^= mixed;
        Some(())
    }

    pub(super) fn value(self) -> u64 {
        self.0
    }
}

fn of_key(kind: KeyKind, binary: &[u8]) -> Option<u64> {
    match kind {
        KeyKind::Int4 => Some(of_u32(signed(binary)? as i32 as u32)),
        KeyKind::Oid => Some(of_u32(u32::from_be_bytes(binary.try_into().ok()?))),
        KeyKind::Bool => Some(of_u32(u32::from(*binary.first()?))),
        KeyKind::Int8 => Some(of_i64(signed(binary)?)),
        KeyKind::Float => of_float(key::float(binary)?),
        KeyKind::Numeric => of_numeric(binary),
        KeyKind::Bytes => Some(of_bytes(binary)),
        KeyKind::Padded => Some(of_bytes(key::without_padding(binary))),
    }
}

/// A number in network order, of two, four or eight bytes.
pub(super) fn signed(binary: &[u8]) -> Option<i64> {
    Some(match binary.len() {
        2 => i64::from(i16::from_be_bytes(binary.try_into().ok()?)),
        4 => i64::from(i32::from_be_bytes(binary.try_into().ok()?)),
        _ => i64::from_be_bytes(binary.try_into().ok()?),
    })
}

/// `hashint8extended`: such that numbers hash alike whatever their width.
fn of_i64(number: i64) -> u64 {
    let (low, high) = (number as u32, (number >> 32) as u32);
    of_u32(low ^ if number >= 0 { high } else { !high })
}

/// `hashfloat8extended`: both zeros are one.
fn of_float(number: f64) -> Option<u64> {
    if number == 0.0 {
        return Some(SEED);
    }
    // Which NaN the server takes depends on its version.
    (!number.is_nan()).then(|| of_bytes(&number.to_le_bytes()))
}

/// `hash_numeric_extended`: of the digits that count, whatever the scale and the sign.
fn of_numeric(binary: &[u8]) -> Option<u64> {
    let Numeric { weight, digits, .. } = Numeric::of(binary)?;
    if digits.is_empty() {
        return Some(SEED.wrapping_sub(1));
    }
    let native: Vec<u8> = digits.iter().flat_map(|[high, low]| [*low, *high]).collect();
    Some(of_bytes(&native) ^ i64::from(weight) as u64)
}

/// `hash_bytes_uint32_extended`
fn of_u32(number: u32) -> u64 {
    let mut state = State::new(START.wrapping_add(4));
    state.a = state.a.wrapping_add(number);
    state.finish()
}

/// `hash_bytes_extended`
fn of_bytes(bytes: &[u8]) -> u64 {
    let mut state = State::new(START.wrapping_add(bytes.len() as u32));
    let (whole, rest) = bytes.as_chunks::<12>();
    for chunk in whole {
        state.add(chunk);
        state.mix();
    }
    let mut last = [0; 12];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    // The lowest byte of the last word is the length's.
    last.copy_within(8..11, 9);
    last[8] = 0;
    state.add(&last);
    state.finish()
}

/// The three words of lookup3.
struct State {
    a: u32,
    b: u32,
    c: u32,
}

impl State {
    fn new(start: u32) -> State {
        let (high, low) = ((SEED >> 32) as u32, SEED as u32);
        let mut state = State { a: start.wrapping_add(high), b: start.wrapping_add(low), c: start };
        state.mix();
        state
    }

    fn add(&mut self, chunk: &[u8; 12]) {
        let [a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3] = *chunk;
        self.a = self.a.wrapping_add(u32::from_le_bytes([a0, a1, a2, a3]));
        self.b = self.b.wrapping_add(u32::from_le_bytes([b0, b1, b2, b3]));
        self.c = self.c.wrapping_add(u32::from_le_bytes([c0, c1, c2, c3]));
    }

    fn mix(&mut self) {
        let State { mut a, mut b, mut c } = *self;
        a = a.wrapping_sub(c) ^ c.rotate_left(4);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(6);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(8);
        b = b.wrapping_add(a);
        a = a.wrapping_sub(c) ^ c.rotate_left(16);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(19);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(4);
        b = b.wrapping_add(a);
        *self = State { a, b, c };
    }

    fn finish(self) -> u64 {
        let State { mut a, mut b, mut c } = self;
        c = (c ^ b).wrapping_sub(b.rotate_left(14));
        a = (a ^ c).wrapping_sub(c.rotate_left(11));
        b = (b ^ a).wrapping_sub(a.rotate_left(25));
        c = (c ^ b).wrapping_sub(b.rotate_left(16));
        a = (a ^ c).wrapping_sub(c.rotate_left(4));
        b = (b ^ a).wrapping_sub(a.rotate_left(14));
        c = (c ^ b).wrapping_sub(b.rotate_left(24));
        u64::from(b) << 32 | u64::from(c)
    }
}
