//! Makes CSV and text files that try to fool a splitter.
//!
//! Enters: a seed and what the server understands. Leaves: bytes, the dialect they are (more or less) written
//! in, and the same dialect as COPY options for the server, which is the oracle. Same seed, same file. Most
//! files are drawn from the few characters that mean something to COPY; many of them COPY refuses, and then
//! so must we, at the same record.

mod alphabet;
mod dialect;
mod records;

use alphabet::Alphabet;
use fastrand::Rng;
use howdah_model::{ColumnChoice, Eol, Format, FormatKind, Header};
use std::fmt::Write;

/// What a file may contain.
#[derive(Debug, Clone)]
pub struct NastyOptions {
    /// The server's major version: options it does not have are not used.
    pub major: u32,
    /// Of 100 files, how many get something that COPY probably refuses.
    pub broken_percent: u32,
    /// Of 100 files, how many are a soup of special characters rather than records.
    pub soup_percent: u32,
    /// Records per file, at most.
    pub records_max: usize,
}

impl NastyOptions {
    /// Some records, a few broken files.
    pub fn for_major(major: u32) -> NastyOptions {
        NastyOptions { major, broken_percent: 15, soup_percent: 15, records_max: 40 }
    }
}

/// A file and everything COPY must be told to read it.
#[derive(Debug, Clone)]
pub struct NastyFile {
    /// The seed it came from.
    pub seed: u64,
    /// Its bytes, header included.
    pub bytes: Vec<u8>,
    /// The dialect.
    pub format: Format,
    /// What ends its records; sometimes broken on purpose.
    pub eol: Eol,
    /// The table's columns, in the file's order; they need quoting.
    pub columns: Vec<String>,
    /// The damage done on purpose hit the header: its names need not be those of `columns` any more.
    pub header_is_damaged: bool,
}

impl NastyFile {
    /// Makes the file of this seed.
    pub fn new(seed: u64, options: &NastyOptions) -> NastyFile {
        let mut rng = Rng::with_seed(seed);
        let columns = dialect::columns(&mut rng);
        let format = dialect::format(&mut rng, options.major, &columns);
        let eol = *pick(&mut rng, &[Eol::Lf, Eol::Lf, Eol::Cr, Eol::CrLf]);
        let alphabet = Alphabet::new(&format, eol);
        let mut file = NastyFile { seed, bytes: Vec::new(), format, eol, columns, header_is_damaged: false };
        records::write(&mut rng, &mut file, &alphabet, options);
        file
    }

    /// `CREATE TABLE name (...)`: text columns, each with a default. The name is put in as it is.
    pub fn create_table(&self, name: &str) -> String {
        let columns: Vec<String> = self
            .columns
            .iter()
            .map(|column| format!("{} text DEFAULT 'the default'", identifier(column)))
            .collect();
        format!("CREATE TABLE {name} ({})", columns.join(", "))
    }

    /// The dialect in COPY's words: `(FORMAT csv, HEADER true, DELIMITER E';')`.
    pub fn copy_options(&self) -> String {
        let format = &self.format;
        let defaults = if format.kind == FormatKind::Csv { Format::csv() } else { Format::text() };
        let mut text =
            String::from(if format.kind == FormatKind::Csv { "(FORMAT csv" } else { "(FORMAT text" });
        let mut add = |name: &str, value: String| {
            let _ = write!(text, ", {name} {value}");
        };
        match format.header {
            Header::None => {}
            Header::Names => add("HEADER", "true".to_owned()),
            Header::Match => add("HEADER", "match".to_owned()),
        }
        let bytes = [
            ("DELIMITER", format.delimiter, defaults.delimiter),
            ("QUOTE", format.quote, defaults.quote),
            ("ESCAPE", format.escape, format.quote),
        ];
        for (name, value, default) in bytes {
            if value != default && (format.kind == FormatKind::Csv || name == "DELIMITER") {
                add(name, literal(&char::from(value).to_string()));
            }
        }
        if format.null != defaults.null {
            add("NULL", literal(&format.null));
        }
        for (name, value) in [("DEFAULT", &format.default), ("ENCODING", &format.encoding)] {
            if let Some(value) = value {
                add(name, literal(value));
            }
        }
        for (name, choice) in [("FORCE_NULL", &format.force_null), ("FORCE_NOT_NULL", &format.force_not_null)]
        {
            match choice {
                ColumnChoice::None => {}
                ColumnChoice::All => add(name, "*".to_owned()),
                ColumnChoice::Named(columns) => {
                    let columns: Vec<String> = columns.iter().map(|column| identifier(column)).collect();
                    add(name, format!("({})", columns.join(", ")));
                }
            }
        }
        text + ")"
    }

    /// `COPY name FROM STDIN (...)` with all options: the oracle's statement.
    pub fn copy_sql(&self, name: &str) -> String {
        format!("COPY {name} FROM STDIN WITH {}", self.copy_options())
    }
}

/// A quoted identifier.
fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// An `E''` literal; control characters are spelled out, so that a failing statement can be read.
fn literal(value: &str) -> String {
    let mut text = String::from("E'");
    for c in value.chars() {
        match c {
            '\'' | '\\' => text.extend(['\\', c]),
            c if c.is_ascii_control() => {
                let _ = write!(text, "\\x{:02x}", u32::from(c));
            }
            c => text.push(c),
        }
    }
    text + "'"
}

/// One of them.
fn pick<'a, T>(rng: &mut Rng, choices: &'a [T]) -> &'a T {
    &choices[rng.usize(..choices.len())]
}

/// True so many times of a hundred.
fn percent(rng: &mut Rng, percent: u32) -> bool {
    rng.u32(..100) < percent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_file() {
        let options = NastyOptions::for_major(18);
        let (one, two) = (NastyFile::new(7, &options), NastyFile::new(7, &options));
        assert_eq!((one.bytes, one.format), (two.bytes, two.format));
    }
}
