//! PostGIS's `geometry` and `geography`: `LWGEOM_recv` and `geography_recv` take well-known binary with
//! PostGIS's flags for further coordinates and a reference system. Both check the column's type as input
//! does.
//!
//! Certain are hexadecimal digits of that binary, as PostGIS itself writes it. Input (`LWGEOM_in`) takes
//! shapes that the receive function refuses: lines of one point, rings that are not closed. So the shape is
//! walked: points, lines, polygons and collections of these, of which nothing is empty. Words are for
//! [`wkt`]; anything else is left to the server. Rules: `lwin_wkb.c` and `liblwgeom.h` in PostGIS.

use super::out::Out;
use super::wkt;
use super::words::hex_byte;

pub(super) const FLAG_Z: u32 = 0x8000_0000;
pub(super) const FLAG_M: u32 = 0x4000_0000;
pub(super) const FLAG_SRID: u32 = 0x2000_0000;
pub(super) const POINT: u32 = 1;
pub(super) const LINE: u32 = 2;
pub(super) const POLYGON: u32 = 3;
pub(super) const MULTI_POINT: u32 = 4;
pub(super) const MULTI_LINE: u32 = 5;
pub(super) const MULTI_POLYGON: u32 = 6;
pub(super) const COLLECTION: u32 = 7;
/// A ring ends where it begins.
pub(super) const RING_POINTS_MIN: u32 = 4;
pub(super) const LINE_POINTS_MIN: u32 = 2;
/// Of collections inside collections.
pub(super) const DEPTH_MAX: u32 = 8;
/// `SRID_USER_MAXIMUM`: larger ones are changed.
pub(super) const SRID_MAX: u32 = 998_999;

/// Writes the value without its length.
pub(super) fn write(value: &[u8], out: &mut Out) -> Option<()> {
    if !value.starts_with(b"0") {
        return wkt::write(value, out);
    }
    let (pairs, odd) = value.as_chunks::<2>();
    if !odd.is_empty() {
        return None;
    }
    let start = out.length();
    pairs.iter().try_for_each(|pair| out.put([hex_byte(*pair)?]))?;
    let mut shape = Shape { rest: out.since(start)?, is_little: true };
    shape.walk(Allowed { any: true, kind: 0 }, None, DEPTH_MAX)?;
    shape.rest.is_empty().then_some(())
}

/// What may stand in a collection.
#[derive(Clone, Copy)]
struct Allowed {
    any: bool,
    kind: u32,
}

/// What is left of the binary.
struct Shape<'a> {
    rest: &'a [u8],
    is_little: bool,
}

impl Shape<'_> {
    /// One shape, with as many coordinates as the one around it.
    fn walk(&mut self, allowed: Allowed, around: Option<u32>, depth: u32) -> Option<()> {
        self.is_little = match self.bytes::<1>()? {
            [0] => false,
            [1] => true,
            _ => return None,
        };
        let word = self.number()?;
        let (coordinates, kind) = (word & (FLAG_Z | FLAG_M), word & !(FLAG_Z | FLAG_M | FLAG_SRID));
        if around.is_some_and(|around| around != coordinates) || !(allowed.any || allowed.kind == kind) {
            return None;
        }
        // A reference system stands at the outermost, and is none where it is 0.
        if word & FLAG_SRID != 0 && (around.is_some() || !(1..=SRID_MAX).contains(&self.number()?)) {
            return None;
        }
        let point_bytes = 8 * (2 + (word & FLAG_Z).count_ones() + (word & FLAG_M).count_ones());
        match kind {
            POINT => self.points(1, point_bytes).map(drop),
            LINE => {
                let count = self.number().filter(|count| *count >= LINE_POINTS_MIN)?;
                self.points(count, point_bytes).map(drop)
            }
            POLYGON => {
                let rings = self.number().filter(|rings| *rings > 0)?;
                (0..rings).try_for_each(|_| self.ring(point_bytes))
            }
            MULTI_POINT..=COLLECTION => {
                let inside = Allowed { any: kind == COLLECTION, kind: kind - (MULTI_POINT - POINT) };
                let (count, depth) = (self.number().filter(|count| *count > 0)?, depth.checked_sub(1)?);
                (0..count).try_for_each(|_| self.walk(inside, Some(coordinates), depth))
            }
            _ => None,
        }
    }

    fn ring(&mut self, point_bytes: u32) -> Option<()> {
        let count = self.number().filter(|count| *count >= RING_POINTS_MIN)?;
        let points = self.points(count, point_bytes)?;
        let point_bytes = usize::try_from(point_bytes).ok()?;
        let (first, last) = (points.get(..point_bytes)?, points.get(points.len() - point_bytes..)?);
        (first == last).then_some(())
    }

    /// The bytes of so many points, each of whose coordinates is a number.
    fn points(&mut self, count: u32, point_bytes: u32) -> Option<&[u8]> {
        let bytes = usize::try_from(count.checked_mul(point_bytes)?).ok()?;
        let (points, rest) = self.rest.split_at_checked(bytes)?;
        self.rest = rest;
        let (numbers, _) = points.as_chunks::<8>();
        let number = |bytes: [u8; 8]| {
            if self.is_little { f64::from_le_bytes(bytes) } else { f64::from_be_bytes(bytes) }
        };
        numbers.iter().all(|bytes| number(*bytes).is_finite()).then_some(points)
    }

    fn number(&mut self) -> Option<u32> {
        let bytes = self.bytes()?;
        Some(if self.is_little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
    }

    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_certain(value: &str) -> bool {
        let mut bytes = [0; 512];
        write(value.as_bytes(), &mut Out::new(&mut bytes)).is_some()
    }

    /// Little-endian, of a kind without flags, and behind it so many points.
    fn written(kind: u8, count: &str, points: &[f64]) -> String {
        let numbers = points.iter().flat_map(|number| number.to_le_bytes());
        let hex: String = numbers.map(|byte| format!("{byte:02x}")).collect();
        format!("01{kind:02x}000000{count}{hex}")
    }

    #[test]
    fn only_whole_shapes_are_certain() {
        let ring = [0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0];
        let point = written(1, "", &[1.0, 2.0]);
        assert!(is_certain(&point));
        assert!(is_certain("0020000001000010E63FF00000000000004000000000000000"));
        assert!(is_certain(&written(2, "02000000", &[0.0, 0.0, 1.0, 1.0])));
        assert!(is_certain(&written(3, "0100000004000000", &ring)));
        assert!(is_certain(&format!("010400000001000000{point}")));
        for uncertain in [
            String::new(),
            "0".to_owned(),
            "POINT EMPTY".to_owned(),
            "02".to_owned() + &point[2..],
            point[..40].to_owned(),
            format!("{point}00"),
            format!("{point}0"),
            format!("010500000001000000{point}"),
            format!("010400000002000000{point}"),
            written(1, "", &[1.0, f64::NAN]),
            written(2, "01000000", &[0.0, 0.0]),
            written(2, "ffffffff", &[0.0, 0.0]),
            written(3, "0100000004000000", &[0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.5]),
            written(3, "00000000", &[]),
            written(8, "02000000", &[0.0, 0.0, 1.0, 1.0]),
        ] {
            assert!(!is_certain(&uncertain), "{uncertain}");
        }
    }
}
