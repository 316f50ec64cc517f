//! Types of extensions, where these are installed: `citext`, pgvector's `vector`, PostGIS's `geometry` and
//! `geography`.

use super::{near, same_as_csv_in, same_as_csv_where, words::text};
use fastrand::Rng;
use howdah_model::BinaryType;
use howdah_testkit::Database;

#[test]
fn words_whose_case_is_kept_and_does_not_count() {
    let prepare = |database: &Database| database.has_extension("citext");
    same_as_csv_where(prepare, "citext", &BinaryType::Text, text);
}

fn vector(rng: &mut Rng, count: usize) -> String {
    let numbers: Vec<String> = (0..count)
        .map(|_| {
            let number = match rng.u8(0..6) {
                0 => format!("{}", f32::from_bits(rng.u32(..))),
                1 => format!("{:e}", f32::from_bits(rng.u32(..))),
                2 => rng.i32(-9..9).to_string(),
                _ => (rng.f64() - 0.5).to_string(),
            };
            // Not every number is one, or near enough to zero.
            let number = if number.contains(['N', 'i']) { "-0".to_owned() } else { number };
            format!("{}{number}", rng.choice(["", "", "", " ", "+"]).unwrap())
        })
        .collect();
    near(rng, format!("[{}]", numbers.join(",")), "0123456789.,[] -+e")
}

#[test]
fn vectors() {
    let prepare = |database: &Database| database.has_extension("vector");
    same_as_csv_where(prepare, "vector", &BinaryType::Vector, |rng| {
        let count = rng.usize(0..20);
        vector(rng, count)
    });
    same_as_csv_where(prepare, "vector(3)", &BinaryType::Vector, |rng| {
        let count = if rng.u16(0..2000) == 0 { 4 } else { 3 };
        // Near misses have more or fewer.
        let numbers: Vec<String> = (0..count).map(|_| rng.f32().to_string()).collect();
        format!("[{}]", numbers.join(","))
    });
}

/// Well-known binary in the making.
struct Shape {
    bytes: Vec<u8>,
    is_little: bool,
    flags: u32,
}

impl Shape {
    fn number(&mut self, number: u32) {
        let bytes = if self.is_little { number.to_le_bytes() } else { number.to_be_bytes() };
        self.bytes.extend(bytes);
    }

    fn point(&mut self, rng: &mut Rng) {
        for _ in 0..2 + self.flags.count_ones() {
            let number = match rng.u16(0..1000) {
                0 => f64::NAN,
                1..300 => f64::from(rng.i16(-80..80)),
                _ => (rng.f64() - 0.5) * 170.0,
            };
            self.bytes.extend(if self.is_little { number.to_le_bytes() } else { number.to_be_bytes() });
        }
    }

    /// A line, which a ring begins as, too.
    fn line(&mut self, rng: &mut Rng, count: u32) {
        self.number(count);
        (0..count).for_each(|_| self.point(rng));
    }

    fn ring(&mut self, rng: &mut Rng) {
        let count = rng.u32(4..8);
        let start = self.bytes.len() + 4;
        self.line(rng, count);
        let point_bytes = 8 * (2 + self.flags.count_ones() as usize);
        let first = self.bytes[start..start + point_bytes].to_vec();
        let is_closed = rng.u8(0..30) > 0;
        if is_closed {
            let end = self.bytes.len();
            self.bytes.splice(end - point_bytes..end, first);
        }
    }

    fn shape(&mut self, rng: &mut Rng, kind: u32, srid: Option<u32>, depth: u32) {
        self.is_little = rng.bool();
        self.bytes.push(u8::from(self.is_little));
        self.number(kind | self.flags | if srid.is_some() { 0x2000_0000 } else { 0 });
        srid.into_iter().for_each(|srid| self.number(srid));
        let count = if rng.u8(0..20) == 0 { rng.u32(0..2) } else { rng.u32(2..5) };
        match kind {
            1 => self.point(rng),
            2 | 8 => self.line(rng, count),
            3 => {
                self.number(count);
                (0..count).for_each(|_| self.ring(rng));
            }
            _ => {
                self.number(count);
                for _ in 0..count {
                    let inside = match kind {
                        7 if depth == 0 => 1,
                        7 => rng.u32(1..8),
                        _ => kind - 3,
                    };
                    self.shape(rng, inside, None, depth.saturating_sub(1));
                }
            }
        }
    }
}

/// None, Z, M or both.
fn flags(rng: &mut Rng) -> u32 {
    rng.choice([0, 0, 0x8000_0000, 0x4000_0000, 0xc000_0000]).unwrap()
}

fn geometry(rng: &mut Rng, kind: u32, flags: u32, srid: Option<u32>) -> String {
    let mut shape = Shape { bytes: Vec::new(), is_little: true, flags };
    shape.shape(rng, kind, srid, 2);
    let hex: String = shape.bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    let hex = if rng.u8(0..4) == 0 { hex.to_lowercase() } else { hex };
    if rng.u8(0..8) == 0 { near(rng, hex, "01234567fg") } else { hex }
}

/// Well-known text in the making.
struct Words {
    dimensions: u8,
    /// What stands between the parts.
    space: &'static str,
}

impl Words {
    fn point(&self, rng: &mut Rng) -> String {
        let number = |rng: &mut Rng| match rng.u16(0..500) {
            0 => rng
                .choice(["nan", "+1", ".5", "1.", "1.e2", "1e5", "-0", "1e400", "4e-320"])
                .unwrap()
                .to_owned(),
            1..200 => rng.i16(-80..80).to_string(),
            200..300 => format!("{:e}", (rng.f64() - 0.5) * 170.0),
            _ => ((rng.f64() - 0.5) * 170.0).to_string(),
        };
        let numbers: Vec<String> = (0..self.dimensions).map(|_| number(rng)).collect();
        numbers.join(rng.choice([" ", " ", " ", "  "]).unwrap())
    }

    fn list(&self, rng: &mut Rng, least: u32, thing: impl Fn(&mut Rng) -> String) -> String {
        let least = if rng.u8(0..60) == 0 { 1 } else { least };
        let things: Vec<String> = (0..rng.u32(least..least + 3)).map(|_| thing(rng)).collect();
        self.around(&things.join(&format!(",{}", self.space)))
    }

    fn around(&self, inside: &str) -> String {
        format!("({}{inside}{})", self.space, self.space)
    }

    fn ring(&self, rng: &mut Rng) -> String {
        let first = self.point(rng);
        let points = self.list(rng, 3, |rng| self.point(rng));
        let last = if rng.u8(0..30) == 0 { self.point(rng) } else { first.clone() };
        points.replacen('(', &format!("({first},"), 1).replacen(')', &format!(",{last})"), 1)
    }

    fn shape(&self, rng: &mut Rng, kind: u32, said: &str, depth: u32) -> String {
        let line = |rng: &mut Rng| self.list(rng, 2, |rng| self.point(rng));
        let polygon = |rng: &mut Rng| self.list(rng, 1, |rng| self.ring(rng));
        let (name, inside) = match kind {
            1 => ("POINT", self.around(&self.point(rng))),
            2 => ("LINESTRING", line(rng)),
            3 => ("POLYGON", polygon(rng)),
            4 => {
                let point = |rng: &mut Rng| match rng.bool() {
                    true => self.point(rng),
                    false => self.around(&self.point(rng)),
                };
                ("MULTIPOINT", self.list(rng, 1, point))
            }
            5 => ("MULTILINESTRING", self.list(rng, 1, line)),
            6 => ("MULTIPOLYGON", self.list(rng, 1, polygon)),
            7 => {
                let member = |rng: &mut Rng| {
                    let kind = if depth == 0 { 1 } else { rng.u32(1..8) };
                    let said = if rng.u8(0..9) == 0 { "M" } else { said };
                    self.shape(rng, kind, said, depth.saturating_sub(1))
                };
                ("GEOMETRYCOLLECTION", self.list(rng, 1, member))
            }
            _ => (["CIRCULARSTRING", "TRIANGLE", "point", "TIN"][rng.usize(..4)], line(rng)),
        };
        format!("{name}{}{said}{}{inside}", self.space, self.space)
    }
}

fn words(rng: &mut Rng, srids: &[&str]) -> String {
    let (dimensions, said) = rng
        .choice([(2, ""), (2, ""), (3, ""), (3, "Z"), (3, "M"), (4, ""), (4, "ZM"), (2, "Z"), (3, "ZM")])
        .unwrap();
    let space = rng.choice(["", "", " ", " ", "  ", "\u{c}"]).unwrap();
    let kind = if rng.u8(0..60) == 0 { 8 } else { rng.u32(1..8) };
    let srid = rng.choice(srids).unwrap();
    let shape = Words { dimensions, space }.shape(rng, kind, said, 2);
    let shape = if rng.u8(0..60) == 0 { "POINT EMPTY".to_owned() } else { shape };
    let value = format!("{srid}{shape}");
    if rng.u8(0..8) == 0 { near(rng, value, "0123456789.,() -+eEzZmM;=") } else { value }
}

#[test]
fn shapes_in_words() {
    let prepare = |database: &Database| database.has_extension("postgis");
    for sql_type in ["geometry", "geography"] {
        same_as_csv_where(prepare, sql_type, &BinaryType::Geometry, |rng| {
            words(rng, &["", "", "SRID=4326;", "SRID=04326;", "SRID=999999;", "SRID=-1;"])
        });
    }
    same_as_csv_where(prepare, "geometry(LineStringZ, 3857)", &BinaryType::Geometry, |rng| {
        let shape = Words { dimensions: if rng.u16(0..2000) == 0 { 2 } else { 3 }, space: "" };
        let srid = rng.choice(["", "SRID=3857;"]).unwrap();
        let kind = if rng.u16(0..2000) == 0 { 1 } else { 2 };
        format!("{srid}{}", shape.shape(rng, kind, "Z", 0))
    });
}

#[test]
fn shapes() {
    let prepare = |database: &Database| database.has_extension("postgis");
    for sql_type in ["geometry", "geography"] {
        same_as_csv_where(prepare, sql_type, &BinaryType::Geometry, |rng| {
            let srid = rng.choice([None, Some(4326), Some(4326)]).unwrap();
            let (kind, flags) = (rng.u32(1..9), flags(rng));
            geometry(rng, kind, flags, srid)
        });
    }
    same_as_csv_where(prepare, "geometry(LineStringZ, 3857)", &BinaryType::Geometry, |rng| {
        let mut shape = Shape { bytes: Vec::new(), is_little: true, flags: 0x8000_0000 };
        let srid = rng.choice([None, Some(3857)]).unwrap();
        let kind = if rng.u16(0..2000) == 0 { 1 } else { 2 };
        shape.shape(rng, kind, srid, 0);
        shape.bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    });
}

#[test]
fn arrays_of_shapes() {
    for (element, sql_type) in [
        ("geometry", "geometry[]"),
        ("geography", "geography[]"),
        ("geometry", "geometry(Point, 4326)[]"),
        ("shape", "shape[]"),
    ] {
        let prepare = |database: &Database| {
            if !database.has_extension("postgis") {
                return None;
            }
            database.sql("CREATE DOMAIN shape AS geometry");
            let oid = database.value(&format!("SELECT '{element}'::regtype::oid"));
            let element = Box::new(BinaryType::Geometry);
            Some(BinaryType::Array { element_oid: oid.parse().unwrap(), element })
        };
        let is_point = sql_type.contains("Point");
        same_as_csv_in(prepare, sql_type, |rng| {
            let shape = |rng: &mut Rng| {
                // A column of points refuses others, and an array of them with the first: few are enough.
                let is_plain = is_point && rng.u16(0..2000) > 0;
                let (kind, flags) = if is_plain { (1, 0) } else { (rng.u32(1..8), flags(rng)) };
                let words = Words { dimensions: 2, space: "" };
                match rng.u8(0..8) {
                    0 => "NULL".to_owned(),
                    1 | 2 => format!("SRID=4326;{}", words.shape(rng, kind, "", 1)),
                    3 => format!("\"SRID=4326;{}\"", words.shape(rng, kind, "", 1)),
                    _ => geometry(rng, kind, flags, Some(4326)),
                }
            };
            let count = rng.usize(0..6);
            let shapes: Vec<String> = (0..count).map(|_| shape(rng)).collect();
            let between = rng.choice([":", ":", ":", " : ", ","]).unwrap();
            near(rng, format!("{{{}}}", shapes.join(between)), "{}\",:; 0N")
        });
    }
}
