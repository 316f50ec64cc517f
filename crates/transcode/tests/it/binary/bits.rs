//! `bit(n)` and `varbit`.

use super::{near, same_as_csv};
use fastrand::Rng;
use howdah_model::BinaryType;

fn bits(rng: &mut Rng, count: usize) -> String {
    (0..count).map(|_| rng.choice(['0', '1']).unwrap()).collect()
}

/// More or fewer than the column has, once in a while.
fn about(rng: &mut Rng, count: usize) -> usize {
    if rng.u16(0..2000) == 0 { rng.usize(0..2 * count) } else { count }
}

#[test]
fn bits_of_fixed_length() {
    for count in [1, 8, 19] {
        same_as_csv(&format!("bit({count})"), &BinaryType::Bit, |rng| {
            let count = about(rng, count);
            bits(rng, count)
        });
    }
}

#[test]
fn bits_of_any_length() {
    same_as_csv("varbit", &BinaryType::Bit, |rng| {
        let most = rng.choice([0, 1, 9, 300]).unwrap();
        let count = rng.usize(0..=most);
        let written = bits(rng, count);
        near(rng, written, "01 bBxXfF2")
    });
    same_as_csv("varbit(12)", &BinaryType::Bit, |rng| {
        let count = rng.usize(0..=12);
        let count = if rng.u16(0..2000) == 0 { 13 } else { count };
        bits(rng, count)
    });
}
