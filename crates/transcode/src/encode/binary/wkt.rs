//! Well-known text, as PostGIS writes it with a reference system before it or without: written in well-known
//! binary, which `LWGEOM_recv` and `geography_recv` check as input checks the text.
//!
//! Certain are points, lines, polygons and collections of these, none empty, with plain decimal numbers;
//! lines of two points at least and rings that end where they begin. PostGIS reads numbers with `atof`, which
//! rounds as Rust does. Rules: `lwin_wkt_lex.l`, `lwin_wkt_parse.y` and `lwin_wkt.c` in PostGIS.

use super::geometry::{
    COLLECTION, DEPTH_MAX, FLAG_M, FLAG_SRID, FLAG_Z, LINE, LINE_POINTS_MIN, MULTI_LINE, MULTI_POINT,
    MULTI_POLYGON, POINT, POLYGON, RING_POINTS_MIN, SRID_MAX,
};
use super::{float, out::Out};

const TAGS: [(&[u8], u32); 7] = [
    (b"POINT", POINT),
    (b"LINESTRING", LINE),
    (b"POLYGON", POLYGON),
    (b"MULTIPOINT", MULTI_POINT),
    (b"MULTILINESTRING", MULTI_LINE),
    (b"MULTIPOLYGON", MULTI_POLYGON),
    (b"GEOMETRYCOLLECTION", COLLECTION),
];

/// Writes the value without its length.
pub(super) fn write(value: &[u8], out: &mut Out) -> Option<()> {
    let mut text = Text { rest: value };
    let srid = text.srid()?;
    text.tagged(srid, DEPTH_MAX, out)?;
    text.rest.is_empty().then_some(())
}

/// What is left of it.
struct Text<'a> {
    rest: &'a [u8],
}

impl Text<'_> {
    fn srid(&mut self) -> Option<Option<u32>> {
        let Some(behind) = self.rest.strip_prefix(b"SRID=") else { return Some(None) };
        let digits = behind.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, rest) = behind.split_at(digits);
        self.rest = rest.strip_prefix(b";")?;
        let number = str::from_utf8(number).ok()?.parse().ok()?;
        (1..=SRID_MAX).contains(&number).then_some(Some(number))
    }

    /// A shape behind its name; returns which coordinates it has beside two.
    fn tagged(&mut self, srid: Option<u32>, depth: u32, out: &mut Out) -> Option<u32> {
        let (kind, rest) =
            TAGS.iter().find_map(|(tag, kind)| Some((*kind, self.rest.strip_prefix(*tag)?)))?;
        self.rest = rest;
        self.spaces();
        let said = self.said();
        if kind == COLLECTION {
            return self.collection(said, srid, depth, out);
        }
        let coordinates = self.coordinates(said)?;
        self.shape(kind, coordinates, srid, out)?;
        Some(coordinates)
    }

    /// `Z`, `M` or `ZM`.
    fn said(&mut self) -> u32 {
        let mut said = 0;
        for (letter, flag) in [(b'Z', FLAG_Z), (b'M', FLAG_M)] {
            if let Some(rest) = self.rest.strip_prefix(&[letter]) {
                (self.rest, said) = (rest, said | flag);
            }
        }
        self.spaces();
        said
    }

    /// What is said must fit the first point, and is told by its numbers where nothing is.
    fn coordinates(&self, said: u32) -> Option<u32> {
        let start = self.rest.iter().position(|byte| !matches!(byte, b'(' | b' '))?;
        let point = self.rest.get(start..)?;
        let end = point.iter().position(|byte| matches!(byte, b',' | b')'))?;
        let numbers = point.get(..end)?.split(|byte| *byte == b' ').filter(|number| !number.is_empty());
        match (numbers.count(), said) {
            (2, 0) => Some(0),
            (3, 0 | FLAG_Z) => Some(FLAG_Z),
            (3, FLAG_M) => Some(FLAG_M),
            (4, _) if said == 0 || said == FLAG_Z | FLAG_M => Some(FLAG_Z | FLAG_M),
            _ => None,
        }
    }

    fn collection(&mut self, said: u32, srid: Option<u32>, depth: u32, out: &mut Out) -> Option<u32> {
        let depth = depth.checked_sub(1)?;
        let at = out.length();
        head(COLLECTION, srid, out)?;
        let mut all = None;
        self.list(1, out, |text, out| {
            let coordinates = text.tagged(None, depth, out)?;
            (*all.get_or_insert(coordinates) == coordinates).then_some(())
        })?;
        let coordinates = all.filter(|all| said == 0 || said == *all)?;
        flag(at, COLLECTION, coordinates, srid, out)?;
        Some(coordinates)
    }

    /// What stands behind the name of a shape.
    fn shape(&mut self, kind: u32, coordinates: u32, srid: Option<u32>, out: &mut Out) -> Option<()> {
        let at = out.length();
        head(kind, srid, out)?;
        flag(at, kind, coordinates, srid, out)?;
        match kind {
            POINT => {
                self.open()?;
                self.point(coordinates, out)?;
                self.close()
            }
            LINE => self.list(LINE_POINTS_MIN, out, |text, out| text.point(coordinates, out)),
            POLYGON => self.list(1, out, |text, out| text.ring(coordinates, out)),
            // Points of many stand in parentheses of their own or not.
            MULTI_POINT => self.list(1, out, |text, out| match text.rest.first()? {
                b'(' => text.shape(POINT, coordinates, None, out),
                _ => {
                    let at = out.length();
                    head(POINT, None, out)?;
                    flag(at, POINT, coordinates, None, out)?;
                    text.point(coordinates, out)
                }
            }),
            MULTI_LINE => self.list(1, out, |text, out| text.shape(LINE, coordinates, None, out)),
            MULTI_POLYGON => self.list(1, out, |text, out| text.shape(POLYGON, coordinates, None, out)),
            _ => None,
        }
    }

    /// Things with commas between, in parentheses; their count before them.
    fn list(
        &mut self,
        least: u32,
        out: &mut Out,
        mut thing: impl FnMut(&mut Self, &mut Out) -> Option<()>,
    ) -> Option<()> {
        self.open()?;
        let at = out.length();
        out.put([0; 4])?;
        let mut count = 0_u32;
        loop {
            thing(self, out)?;
            count += 1;
            self.spaces();
            match self.rest.strip_prefix(b",") {
                Some(rest) => self.rest = rest,
                None => break,
            }
            self.spaces();
        }
        self.close()?;
        if count < least {
            return None;
        }
        out.put_at(at, count.to_le_bytes())
    }

    fn ring(&mut self, coordinates: u32, out: &mut Out) -> Option<()> {
        let start = out.length() + size_of::<u32>();
        self.list(RING_POINTS_MIN, out, |text, out| text.point(coordinates, out))?;
        let points = out.since(start)?;
        let point_bytes = 8 * (2 + coordinates.count_ones() as usize);
        let (first, last) = (points.get(..point_bytes)?, points.get(points.len() - point_bytes..)?);
        (first == last).then_some(())
    }

    fn point(&mut self, coordinates: u32, out: &mut Out) -> Option<()> {
        for no in 0..2 + coordinates.count_ones() {
            if no > 0 {
                self.rest = self.rest.strip_prefix(b" ")?;
                self.spaces();
            }
            let end = self.rest.iter().position(|byte| matches!(byte, b' ' | b',' | b')'))?;
            let (number, rest) = self.rest.split_at(end);
            out.put(parse(number)?.to_le_bytes())?;
            self.rest = rest;
        }
        Some(())
    }

    fn open(&mut self) -> Option<()> {
        self.rest = self.rest.strip_prefix(b"(")?;
        self.spaces();
        Some(())
    }

    fn close(&mut self) -> Option<()> {
        self.spaces();
        self.rest = self.rest.strip_prefix(b")")?;
        Some(())
    }

    fn spaces(&mut self) {
        while let Some(rest) = self.rest.strip_prefix(b" ") {
            self.rest = rest;
        }
    }
}

/// Little-endian, the kind, the reference system.
fn head(kind: u32, srid: Option<u32>, out: &mut Out) -> Option<()> {
    out.put([1])?;
    out.put(kind.to_le_bytes())?;
    srid.map_or(Some(()), |srid| out.put(srid.to_le_bytes()))
}

/// Says in a head which coordinates there are.
fn flag(at: usize, kind: u32, coordinates: u32, srid: Option<u32>, out: &mut Out) -> Option<()> {
    let with_srid = if srid.is_some() { FLAG_SRID } else { 0 };
    out.put_at(at + 1, (kind | coordinates | with_srid).to_le_bytes())
}

/// Digits on both sides of a point, if there is one.
fn parse(number: &[u8]) -> Option<f64> {
    let unsigned = number.strip_prefix(b"-").unwrap_or(number);
    let digit = |at: usize| unsigned.get(at).is_some_and(u8::is_ascii_digit);
    let point = unsigned.iter().position(|byte| *byte == b'.');
    (digit(0) && point.is_none_or(|point| digit(point + 1))).then_some(())?;
    float::parse_8(number)
}

#[cfg(test)]
mod tests {
    use super::super::geometry;
    use super::super::out::written;
    use super::*;

    fn same(text: &str, hex: &str) {
        let of_text = written(|out| write(text.as_bytes(), out));
        let of_hex = written(|out| geometry::write(hex.as_bytes(), out));
        assert!(of_text.is_some(), "{text}");
        assert_eq!(of_text, of_hex, "{text}");
    }

    #[test]
    fn words_and_binary_are_the_same_shape() {
        let (one, two) = ("000000000000f03f", "0000000000000040");
        same("POINT(1 2)", &format!("0101000000{one}{two}"));
        same("SRID=4326;POINT (1.0 2e0)", &format!("0101000020e6100000{one}{two}"));
        same("POINTM(1 2 1)", &format!("0101000040{one}{two}{one}"));
        same("POINT M (1 2 1)", &format!("0101000040{one}{two}{one}"));
        same(
            "LINESTRING(1 2 1 2,2 1 2 1)",
            &format!("01020000c002000000{one}{two}{one}{two}{two}{one}{two}{one}"),
        );
        let points = format!("0101000000{one}{two}0101000000{two}{one}");
        same("MULTIPOINT((1 2), 2 1)", &format!("010400000002000000{points}"));
        same("GEOMETRYCOLLECTION(POINT(1 2),POINT(2 1))", &format!("010700000002000000{points}"));
        let ring = [one, one, one, two, two, two, one, one].concat();
        same("POLYGON((1 1,1 2,2 2,1 1))", &format!("01030000000100000004000000{ring}"));
    }

    #[test]
    fn anything_else_is_left_to_the_server() {
        for uncertain in [
            "",
            "POINT",
            "POINT EMPTY",
            "POINT()",
            "POINT(1)",
            "POINT(1 2",
            "POINT(1 2))",
            "POINT(1 2,3 4)",
            "POINT(+1 2)",
            "POINT(1. 2)",
            "POINT(.5 2)",
            "POINT(nan 2)",
            "POINT(1e400 2)",
            "POINT Z (1 2)",
            "POINT(1 2 3 4 5)",
            "LINESTRING(1 2)",
            "LINESTRING(1 2,3 4 5)",
            "POLYGON((1 1,1 2,2 2,2 1))",
            "POLYGON((1 1,1 2,1 1))",
            "MULTIPOINT(1 2,(1 2 3))",
            "CIRCULARSTRING(1 2,3 4,5 6)",
            "GEOMETRYCOLLECTION(POINT(1 2),POINT(1 2 3))",
            "GEOMETRYCOLLECTION M (POINT(1 2 3))",
            "SRID=0;POINT(1 2)",
            "SRID=4326 ;POINT(1 2)",
            "SRID=999999;POINT(1 2)",
        ] {
            assert_eq!(written(|out| write(uncertain.as_bytes(), out)), None, "{uncertain}");
        }
        let deep = format!("{}POINT(1 2){}", "GEOMETRYCOLLECTION(".repeat(60), ")".repeat(60));
        assert_eq!(written(|out| write(deep.as_bytes(), out)), None);
    }
}
