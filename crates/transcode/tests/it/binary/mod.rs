//! Values that the client writes in COPY's binary and text formats, against the server's own reading of csv.
//!
//! For every type, random values (edge values, every spelling that is accepted, and near misses) are written
//! as binary where the client is certain, and as COPY text, and loaded; the same values are loaded as csv.
//! The tables must be the same, bit for bit, or all loads be refused, in every version and under settings
//! that are nobody's defaults. What is read from text must be written as what is read from csv is.
//! `HOWDAH_BINARY_VALUES` says how many values of each type, `HOWDAH_BINARY_SEED` which; with
//! `HOWDAH_EVERY_TYPE=1` a type that no server has is a failure.

mod bits;
mod containers;
mod enums_and_domains;
mod extensions;
mod intervals;
mod networks;
mod numbers;
mod times;
mod words;

use fastrand::Rng;
use howdah_model::{BinaryType, Format};
use howdah_testkit::{Connection, Database, MAJORS, Server, asked};
use howdah_transcode::encode::{BinaryEncoder, Unquoter};
use std::io::{self, Write};

/// Loaded at once. More make fewer sessions, and rows of hundreds of digits take a hundred megabytes then.
const BATCH: usize = 20_000;
/// No value is written so, and a quoted one that is empty can be said in text.
const NULL: &str = "<null>";

/// Settings of sessions that must not matter, or that the encoder is told (TimeZone).
const SETTINGS: [(&str, &str, &str); 2] =
    [("UTC", "ISO, MDY", "postgres"), ("Asia/Kathmandu", "German, DMY", "sql_standard")];

/// Tries random values of a column of this SQL type.
///
/// # Panics
/// When the server and the client read a value differently, or hardly any value was certain.
fn same_as_csv(sql_type: &str, binary_type: &BinaryType, value: impl Fn(&mut Rng) -> String) {
    same_as_csv_where(|_| true, sql_type, binary_type, value);
}

/// The same on the servers whose databases can be prepared for the type.
fn same_as_csv_where(
    prepare: impl Fn(&Database) -> bool,
    sql_type: &str,
    binary_type: &BinaryType,
    value: impl Fn(&mut Rng) -> String,
) {
    same_as_csv_in(|database| prepare(database).then(|| binary_type.clone()), sql_type, value);
}

/// The same of types that are made of what each database has another number for.
fn same_as_csv_in(
    prepare: impl Fn(&Database) -> Option<BinaryType>,
    sql_type: &str,
    value: impl Fn(&mut Rng) -> String,
) {
    let mut are_tried = false;
    for major in MAJORS {
        let database = Server::shared(major).database();
        let Some(binary_type) = prepare(&database) else { continue };
        are_tried = true;
        for (time_zone, date_style, interval_style) in SETTINGS {
            let table = Tables::new(database.connect(), sql_type, &binary_type, time_zone);
            table.connection.sql(&format!(
                "SET datestyle = '{date_style}'; SET timezone = '{time_zone}'; SET intervalstyle = '{interval_style}'"
            ));
            let seed = asked("HOWDAH_BINARY_SEED", 0) * 1_000;
            let mut rng = Rng::with_seed(seed + u64::from(major) + time_zone.len() as u64);
            // Every combination has its share.
            let count = usize::try_from(asked("HOWDAH_BINARY_VALUES", 10_000)).unwrap()
                / (MAJORS.len() * SETTINGS.len());
            let mut certain = 0;
            for _ in 0..count.div_ceil(BATCH) {
                let values: Vec<String> = (0..BATCH.min(count)).map(|_| value(&mut rng)).collect();
                let values: Vec<&str> =
                    values.iter().map(String::as_str).filter(|value| table.is_certain(value)).collect();
                certain += values.len();
                table.compare(&values);
            }
            assert!(certain >= count / 20, "{sql_type}: only {certain} of {count} values were certain");
        }
    }
    if !are_tried {
        say_untried(sql_type);
    }
}

/// No server has the extension that the type is of. What is printed by a test that passes is not shown, this
/// is.
fn say_untried(sql_type: &str) {
    let message = format!(
        "NOT TRIED: {sql_type}, whose extension no server has (cargo xtask servers adds PostGIS as root)"
    );
    assert!(asked("HOWDAH_EVERY_TYPE", 0) == 0, "{message}");
    writeln!(io::stderr(), "{message}").expect("standard error is open");
}

/// A table for each way, with a column of one type. They go with the connection.
struct Tables {
    /// One for all: what an extension loads at its first value takes longer than the values.
    connection: Connection,
    sql_type: String,
    unquoter: Unquoter,
    from_csv: BinaryEncoder,
    from_text: BinaryEncoder,
}

impl Tables {
    fn new(connection: Connection, sql_type: &str, binary_type: &BinaryType, time_zone: &str) -> Tables {
        for table in ["as_csv", "as_text", "as_binary"] {
            connection.sql(&format!("CREATE TEMPORARY TABLE {table} (n int, v {sql_type})"));
        }
        let csv = Format { null: NULL.to_owned(), ..Format::csv() };
        let columns = [BinaryType::Int4, binary_type.clone()];
        let unquoter = Unquoter::new(&csv).unwrap();
        let encoder = |format: &Format| BinaryEncoder::new(format, None, &columns, time_zone).unwrap();
        let (from_csv, from_text) = (encoder(&csv), encoder(&unquoter.sent_format(&csv)));
        Tables { connection, sql_type: sql_type.to_owned(), unquoter, from_csv, from_text }
    }

    fn is_certain(&self, value: &str) -> bool {
        encode(&self.from_csv, csv(&[value]).as_bytes()).is_some()
    }

    fn text(&self, csv: &str) -> Vec<u8> {
        let mut text = vec![0; 64 + 2 * csv.len()];
        let length = self.unquoter.unquote(csv.as_bytes(), &mut text).expect("csv that text has words for");
        text.truncate(length);
        text
    }

    /// Loads the values in all ways. What is refused is looked for, and must be refused in all.
    fn compare(&self, values: &[&str]) {
        let Tables { connection, sql_type, .. } = self;
        let csv = csv(values);
        let text = self.text(&csv);
        let binary = encode(&self.from_csv, csv.as_bytes()).expect("each value was certain");
        let from_text = encode(&self.from_text, &text);
        assert!(
            from_text.as_ref() == Some(&binary),
            "{sql_type}: other rows from text than from csv: {values:?}"
        );
        let options = format!("DELIMITER ',', NULL '{NULL}'");
        let as_csv = connection.copy_in(&format!("COPY as_csv FROM STDIN (FORMAT csv, {options})"), csv);
        let as_text = connection.copy_in(&format!("COPY as_text FROM STDIN (FORMAT text, {options})"), text);
        let as_binary = connection.copy_in("COPY as_binary FROM STDIN (FORMAT binary)", binary);
        match (as_csv, as_text, as_binary) {
            (Ok(_), Ok(_), Ok(_)) => self.find_difference(values),
            (Err(_), Err(_), Err(_)) if values.len() == 1 => {}
            (as_csv, as_text, as_binary) if values.len() == 1 => panic!(
                "{sql_type}: {:?} gives {as_csv:?} as csv, {as_text:?} as text and {as_binary:?} as binary",
                values[0]
            ),
            (as_csv, ..) => {
                connection.sql("TRUNCATE as_csv, as_text, as_binary");
                let context = as_csv.err().and_then(|error| error.as_db_error()?.where_().map(str::to_owned));
                let (before, rest) = values.split_at(suspect(values, &context.unwrap_or_default()));
                let (refused, behind) = rest.split_at(1);
                let parts = [before, refused, behind].into_iter().filter(|part| !part.is_empty());
                parts.for_each(|part| self.compare(part));
            }
        }
        connection.sql("TRUNCATE as_csv, as_text, as_binary");
    }

    fn find_difference(&self, values: &[&str]) {
        let different = self.connection.rows(
            "SELECT n, c.v::text, t.v::text, b.v::text \
             FROM as_csv c FULL JOIN as_text t USING (n) FULL JOIN as_binary b USING (n) \
             WHERE NOT coalesce(record_image_eq(ROW(c.v), ROW(b.v)), false) \
                OR NOT coalesce(record_image_eq(ROW(c.v), ROW(t.v)), false) LIMIT 1",
        );
        if let Some(row) = different.first() {
            let no: usize = row[0].as_deref().unwrap().parse().unwrap();
            panic!(
                "{}: {:?} is {:?} as csv, {:?} as text and {:?} as binary",
                self.sql_type, values[no], row[1], row[2], row[3]
            );
        }
    }
}

/// The value that the server named by its line or, failing that, one in the middle.
fn suspect(values: &[&str], context: &str) -> usize {
    // What reads json has lines of its own before that.
    let digits = context.split_once("COPY as_csv, line ").map_or("", |(_, rest)| rest);
    let digits = digits.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    let line = digits.parse().unwrap_or(0);
    let mut lines = 0;
    let reached = values.iter().position(|value| {
        lines += 1 + value.matches('\n').count();
        lines >= line
    });
    reached.filter(|_| line > 0).unwrap_or(values.len() / 2)
}

/// All rows of these records; `None` where one is not certain.
fn encode(encoder: &BinaryEncoder, records: &[u8]) -> Option<Vec<u8>> {
    let (mut sent, mut from) = (Vec::new(), 0);
    loop {
        let mut buffer = vec![0; 256 + 8 * records.len()];
        let encoded = encoder.encode(records, from, &mut buffer)?;
        sent.extend_from_slice(&buffer[..encoded.length]);
        from = encoded.taken;
        if encoded.is_done {
            return Some(sent);
        }
    }
}

/// Rows of a number and a value, which is quoted: it is never NULL.
fn csv(values: &[&str]) -> String {
    let row = |(no, value): (usize, &&str)| format!("{no},\"{}\"\n", value.replace('"', "\"\""));
    values.iter().enumerate().map(row).collect()
}

/// Changes a few characters, most often to others that such values have: near misses.
fn near(rng: &mut Rng, value: String, characters: &str) -> String {
    if rng.u8(0..4) > 0 {
        return value;
    }
    let mut characters_of: Vec<char> = value.chars().collect();
    let others: Vec<char> = characters.chars().collect();
    for _ in 0..rng.usize(1..3) {
        let at = rng.usize(0..=characters_of.len());
        let other = *rng.choice(&others).unwrap();
        match rng.u8(0..3) {
            0 => characters_of.insert(at, other),
            1 if at < characters_of.len() => characters_of[at] = other,
            _ if at < characters_of.len() => drop(characters_of.remove(at)),
            _ => {}
        }
    }
    characters_of.into_iter().collect()
}
