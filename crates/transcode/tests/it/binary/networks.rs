//! `inet`, `cidr`, `macaddr`, `macaddr8`.

use super::{near, same_as_csv};
use fastrand::Rng;
use howdah_model::BinaryType;
use std::net::{Ipv4Addr, Ipv6Addr};

const NEAR: &str = "0123456789abcfF:./ %-";

fn address_6(rng: &mut Rng) -> u128 {
    let mut bits = rng.u128(..);
    // Groups of zeros, to be left out.
    for group in 0..8 {
        if rng.bool() {
            bits &= !(0xffff_u128 << (16 * group));
        }
    }
    bits
}

/// Of eight parts, some with `::` where the standard would not have it.
fn written_6(rng: &mut Rng, bits: u128) -> String {
    let address = Ipv6Addr::from_bits(bits);
    let groups = address.segments().map(|group| format!("{group:x}"));
    match rng.u8(0..4) {
        0 => groups.join(":"),
        1 => address.to_string().to_uppercase(),
        2 => {
            let from = rng.usize(0..8);
            let to = rng.usize(from..=8);
            format!("{}::{}", groups[..from].join(":"), groups[to..].join(":"))
        }
        _ => address.to_string(),
    }
}

fn inet(rng: &mut Rng) -> String {
    let (address, most) = if rng.bool() {
        (Ipv4Addr::from_bits(rng.u32(..) >> rng.u32(0..32)).to_string(), 32)
    } else {
        let bits = address_6(rng);
        (written_6(rng, bits), 128)
    };
    let written = match rng.u8(0..3) {
        0 => address,
        1 => format!("{address}/{}", rng.u8(0..=most)),
        _ => format!("{address}/{most}"),
    };
    near(rng, written, NEAR)
}

fn cidr(rng: &mut Rng) -> String {
    let (address, bits) = if rng.bool() {
        let bits = rng.u32(0..=32);
        let network = rng.u32(..).checked_shl(32 - bits).unwrap_or(0);
        (Ipv4Addr::from_bits(network).to_string(), bits)
    } else {
        let bits = rng.u32(0..=128);
        let network = address_6(rng).checked_shl(128 - bits).unwrap_or(0);
        (written_6(rng, network), bits)
    };
    let written = if rng.u8(0..4) == 0 { address } else { format!("{address}/{bits}") };
    near(rng, written, NEAR)
}

#[test]
fn addresses_and_networks() {
    same_as_csv("inet", &BinaryType::Inet, inet);
    same_as_csv("cidr", &BinaryType::Cidr, cidr);
}

fn hardware(rng: &mut Rng, bytes: usize) -> String {
    let separator = rng.choice([":", "-", ":", "."]).unwrap();
    let pairs: Vec<String> = (0..bytes).map(|_| format!("{:02x}", rng.u8(..))).collect();
    let written = pairs.join(separator);
    let written = if rng.bool() { written } else { written.to_uppercase() };
    near(rng, written, "0aAgF:-. ")
}

#[test]
fn hardware_addresses() {
    same_as_csv("macaddr", &BinaryType::Macaddr, |rng| hardware(rng, 6));
    same_as_csv("macaddr8", &BinaryType::Macaddr8, |rng| {
        let bytes = rng.choice([6, 8]).unwrap();
        hardware(rng, bytes)
    });
}
