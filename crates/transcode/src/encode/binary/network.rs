//! `inet`, `cidr`, `macaddr` and `macaddr8`: `network_recv` takes the family, the length of the mask, whether
//! it is a `cidr`, the count of the address's bytes, and these; `macaddr_recv` and `macaddr8_recv` take the
//! bytes.
//!
//! Certain are whole addresses, of four decimal or eight hexadecimal parts or with `::`, and the mask's
//! length behind a slash: `network_in` in PostgreSQL's `network.c` (and `inet_net_pton.c`) reads these as
//! everybody does. Hardware addresses are certain as pairs of digits with colons or hyphens (`macaddr.c`,
//! `macaddr8.c`).

use super::out::Out;
use super::words::hex_byte;
use core::net::{Ipv4Addr, Ipv6Addr};

/// `PGSQL_AF_INET` and `PGSQL_AF_INET6`, which are the same on every system.
const FAMILY_4: u8 = 2;
const FAMILY_6: u8 = 3;

/// Writes an `inet` or a `cidr` without its length.
pub(super) fn write(value: &[u8], is_cidr: bool, out: &mut Out) -> Option<()> {
    let (address, mask) = match memchr::memchr(b'/', value) {
        Some(at) => (value.get(..at)?, Some(value.get(at + 1..)?)),
        None => (value, None),
    };
    let text = std::str::from_utf8(address).ok()?;
    if address.contains(&b':') {
        // Of these, the last four bytes may be written as four decimal parts: nobody's data.
        let address = text.parse::<Ipv6Addr>().ok().filter(|_| !address.contains(&b'.'))?;
        let bits = mask_bits(mask, 128)?;
        let is_network = address.to_bits().checked_shl(u32::from(bits)).unwrap_or(0) == 0;
        if is_cidr && !is_network {
            return None;
        }
        out.put([FAMILY_6, bits, u8::from(is_cidr), 16])?;
        out.put(address.octets())
    } else {
        let address = text.parse::<Ipv4Addr>().ok()?;
        let bits = mask_bits(mask, 32)?;
        let is_network = address.to_bits().checked_shl(u32::from(bits)).unwrap_or(0) == 0;
        if is_cidr && !is_network {
            return None;
        }
        out.put([FAMILY_4, bits, u8::from(is_cidr), 4])?;
        out.put(address.octets())
    }
}

/// The length of the mask, which is everything where none is written.
fn mask_bits(mask: Option<&[u8]>, most: u8) -> Option<u8> {
    let digit = |byte: u8| byte.checked_sub(b'0').filter(|digit| *digit <= 9);
    let bits = match *mask.unwrap_or_default() {
        [] if mask.is_none() => most,
        [ones] => digit(ones)?,
        [tens @ b'1'..=b'9', ones] => digit(tens)? * 10 + digit(ones)?,
        [b'1', tens, ones] => digit(tens)?.checked_mul(10)?.checked_add(digit(ones)?)?.checked_add(100)?,
        _ => return None,
    };
    (bits <= most).then_some(bits)
}

/// `08:00:2b:01:02:03` or the same with hyphens.
pub(super) fn hardware_6(value: &[u8]) -> Option<[u8; 6]> {
    hardware(value)
}

/// The same of eight bytes; of six, input puts two in their middle.
pub(super) fn hardware_8(value: &[u8]) -> Option<[u8; 8]> {
    match hardware_6(value) {
        Some([a, b, c, d, e, f]) => Some([a, b, c, 0xff, 0xfe, d, e, f]),
        None => hardware(value),
    }
}

fn hardware<const N: usize>(value: &[u8]) -> Option<[u8; N]> {
    let separator = value.get(2).copied().filter(|byte| matches!(byte, b':' | b'-'))?;
    let mut bytes = [0; N];
    let mut rest = value;
    for (at, byte) in bytes.iter_mut().enumerate() {
        if at > 0 {
            rest = rest.strip_prefix(&[separator])?;
        }
        let (pair, after) = rest.split_first_chunk()?;
        *byte = hex_byte(*pair)?;
        rest = after;
    }
    rest.is_empty().then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(value: &str, is_cidr: bool) -> Option<Vec<u8>> {
        let mut bytes = [0; 32];
        let mut out = Out::new(&mut bytes);
        write(value.as_bytes(), is_cidr, &mut out)?;
        let length = out.length();
        Some(bytes[..length].to_vec())
    }

    #[test]
    fn addresses_have_a_family_and_a_mask() {
        assert_eq!(written("192.168.0.1", false), Some(vec![2, 32, 0, 4, 192, 168, 0, 1]));
        assert_eq!(written("10.0.0.0/8", true), Some(vec![2, 8, 1, 4, 10, 0, 0, 0]));
        assert_eq!(written("0.0.0.0/0", true), Some(vec![2, 0, 1, 4, 0, 0, 0, 0]));
        assert_eq!(
            written("::1/127", false),
            Some(vec![3, 127, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])
        );
        assert!(written("2001:db8::/32", true).is_some());
        for uncertain in [
            "",
            "10",
            "10.0.0",
            "10.0.0.0/",
            "10.0.0.0/33",
            "10.0.0.0/08",
            "010.0.0.0",
            "::/129",
            "::/999",
            "fe80::1%eth0",
            "::ffff:1.2.3.4",
            " ::",
            "1.2.3.4 ",
            "::/-1",
            "::/1/1",
            "10.0.0.0/255.0.0.0",
        ] {
            assert_eq!(written(uncertain, false), None, "{uncertain}");
        }
        for not_a_network in ["10.0.0.1/8", "::1/127", "0.0.0.1/0", "::1/0"] {
            assert_eq!(written(not_a_network, true), None, "{not_a_network}");
        }
    }

    #[test]
    fn hardware_addresses_are_pairs_of_digits() {
        assert_eq!(hardware_6(b"08:00:2b:01:02:FF"), Some([8, 0, 0x2b, 1, 2, 0xff]));
        assert_eq!(hardware_6(b"08-00-2b-01-02-03"), Some([8, 0, 0x2b, 1, 2, 3]));
        assert_eq!(hardware_8(b"08:00:2b:01:02:03"), Some([8, 0, 0x2b, 0xff, 0xfe, 1, 2, 3]));
        assert_eq!(hardware_8(b"08:00:2b:01:02:03:04:05"), Some([8, 0, 0x2b, 1, 2, 3, 4, 5]));
        for uncertain in
            ["", "08:00:2b:01:02", "08002b:010203", "08:00-2b:01:02:03", "8:0:2b:1:2:3", "08:00:2b:01:02:0g"]
        {
            assert_eq!((hardware_6(uncertain.as_bytes()), hardware_8(uncertain.as_bytes())), (None, None));
        }
        assert_eq!(hardware_6(b"08:00:2b:01:02:03:04:05"), None);
    }
}
