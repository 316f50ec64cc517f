//! Random tables with fields of many lines must come back in the dialect in which they were written, however
//! few of their records the sample holds.
//!
//! `HOWDAH_MESS_FILES` files are tried from the seed `HOWDAH_MESS_SEED` on.

use crate::whole_way::find;
use fastrand::Rng;
use howdah_model::{Dialect, Eol};
use howdah_testkit::asked;
use howdah_transcode::dialect::Finding;

const WORDS: [&str; 20] = [
    "the", "of", "and", "to", "in", "is", "you", "that", "it", "was", "for", "on", "are", "as", "with",
    "his", "they", "at", "be", "this",
];

/// Tables are no longer than about this.
const TABLE_BYTES: usize = 800_000;

/// Above this chance a finding is taken for sure.
const SURE: f64 = 0.95;

/// The lines of a long field.
#[derive(Debug, Clone, Copy)]
enum Style {
    Prose,
    /// As many commas in each line.
    Commas(usize),
    /// The same line again and again.
    Same,
    /// Words in quotes, at the ends of lines too.
    Quoted,
    /// A table of its own, by this delimiter.
    Table(char),
    /// Paragraphs between blank lines.
    Paragraphs,
    Code,
    Mixed,
}

const STYLES: [Style; 10] = [
    Style::Prose,
    Style::Commas(1),
    Style::Commas(2),
    Style::Same,
    Style::Quoted,
    Style::Table(','),
    Style::Table(';'),
    Style::Paragraphs,
    Style::Code,
    Style::Mixed,
];

struct Table {
    dialect: Dialect,
    names: Vec<&'static str>,
    has_header: bool,
    style: Style,
    records: usize,
    field_bytes: usize,
    text: String,
}

fn words(rng: &mut Rng, count: usize) -> String {
    (0..count).map(|_| WORDS[rng.usize(..WORDS.len())]).collect::<Vec<_>>().join(" ")
}

impl Style {
    fn line(self, rng: &mut Rng, no: usize) -> String {
        let count = rng.usize(3..11);
        match self {
            Style::Prose => words(rng, count),
            Style::Commas(commas) => {
                let parts: Vec<String> = (0..=commas).map(|_| words(rng, 3)).collect();
                format!("{} number {no}", parts.join(", "))
            }
            Style::Same => "abc ".to_owned(),
            Style::Quoted => match rng.u32(..4) {
                0 => format!("\"{}\" {}", words(rng, 2), words(rng, count)),
                1 => format!("{} \"{}\"", words(rng, count), words(rng, 2)),
                2 => format!("\"{}\", {}", words(rng, count), words(rng, 2)),
                _ => words(rng, count),
            },
            Style::Table(delimiter) => {
                let cells = [no.to_string(), words(rng, 1), rng.u32(..100).to_string(), words(rng, 2)];
                cells.join(&delimiter.to_string())
            }
            Style::Paragraphs if rng.u32(..4) == 0 => String::new(),
            Style::Paragraphs => format!("{}, {}.", words(rng, count), words(rng, 2)),
            Style::Code => match rng.u32(..4) {
                0 => format!("    if (a[{no}] == b) {{ return \"{}\"; }}", words(rng, 1)),
                1 => format!("    int x{no} = f(a, b, {no});"),
                2 => "}".to_owned(),
                _ => format!("    // {}", words(rng, count)),
            },
            Style::Mixed => {
                let other = STYLES[rng.usize(..STYLES.len() - 1)];
                other.line(rng, no)
            }
        }
    }

    fn text(self, rng: &mut Rng, bytes: usize) -> String {
        let mut text = String::new();
        let mut no = 0;
        while text.len() < bytes {
            if no > 0 {
                text.push('\n');
            }
            text.push_str(&self.line(rng, no));
            no += 1;
        }
        text
    }
}

impl Table {
    fn draw(rng: &mut Rng) -> Table {
        let eol = if rng.u32(..4) == 0 { Eol::CrLf } else { Eol::Lf };
        let delimiter = [",", ",", ",", ";", "\t", "|"][rng.usize(..6)].to_owned();
        let dialect = Dialect { delimiter, eol: Some(eol), ..Dialect::csv() };
        let mut names = vec!["id", "title", "sent"];
        rng.shuffle(&mut names);
        names.truncate(rng.usize(1..=3));
        names.insert(rng.usize(..=names.len()), "body");
        let has_header = rng.u32(..4) > 0;
        let style = STYLES[rng.usize(..STYLES.len())];
        let field_bytes = (100.0 * 2_000_f64.powf(rng.f64())) as usize;
        let records = rng.usize(3..=(TABLE_BYTES / field_bytes).clamp(4, 500));
        let mut table =
            Table { dialect, names, has_header, style, records, field_bytes, text: String::new() };
        table.write(rng);
        table
    }

    fn write(&mut self, rng: &mut Rng) {
        if self.has_header {
            let names: Vec<String> = self.names.iter().map(|name| (*name).to_owned()).collect();
            self.push(&names);
        }
        let varied = rng.bool();
        for no in 0..self.records {
            let bytes = if varied { rng.usize(..self.field_bytes * 2) } else { self.field_bytes };
            let value = |name: &&'static str| match *name {
                "id" => (no * 7 + 1).to_string(),
                "title" => format!("title {} {no}", words(rng, 2)),
                "sent" => format!("2024-{:02}-{:02}", no % 12 + 1, no % 28 + 1),
                _ => self.style.text(rng, bytes),
            };
            let names = self.names.clone();
            let values: Vec<String> = names.iter().map(value).collect();
            self.push(&values);
        }
    }

    /// Quotes what needs it, as PostgreSQL does.
    fn push(&mut self, values: &[String]) {
        for (no, value) in values.iter().enumerate() {
            if no > 0 {
                self.text.push_str(&self.dialect.delimiter);
            }
            if value.contains(['"', '\n', '\r']) || value.contains(&self.dialect.delimiter) {
                self.text.push_str(&format!("\"{}\"", value.replace('"', "\"\"")));
            } else {
                self.text.push_str(value);
            }
        }
        self.text.push_str(if self.dialect.eol == Some(Eol::CrLf) { "\r\n" } else { "\n" });
    }

    fn is_found(&self, finding: &Finding) -> bool {
        let Dialect { delimiter, quote, escape, .. } = &finding.dialect;
        let wanted = &self.dialect;
        // Text alone does not tell whether a record is a header.
        let is_typed = self.names.len() > 2 || !self.names.contains(&"title");
        (delimiter, quote, escape) == (&wanted.delimiter, &wanted.quote, &wanted.escape)
            && finding.width == self.names.len()
            && (!is_typed || finding.header_rows == u32::from(self.has_header))
            && (finding.preamble_records, finding.plain.end_byte, finding.second_table) == (0, None, None)
    }
}

#[test]
fn tables_of_long_fields_come_back() {
    let (files, seed) = (asked("HOWDAH_MESS_FILES", 60), asked("HOWDAH_MESS_SEED", 0));
    let (mut wrong, mut unsure) = (Vec::new(), 0);
    for seed in seed..seed + files {
        let table = Table::draw(&mut Rng::with_seed(seed));
        let finding = find(table.text.as_bytes()).unwrap();
        if table.is_found(&finding) {
            continue;
        }
        let Table { names, style, records, field_bytes, .. } = &table;
        let what = format!(
            "seed {seed}: {:?} by {:?}, header {}, {records} records, {style:?} of {field_bytes}, {} bytes: {}, second {:?} end {:?} {:?}",
            names,
            table.dialect.delimiter,
            table.has_header,
            table.text.len(),
            finding.describe(),
            finding.second_table,
            finding.plain.end_byte,
            finding.unsure,
        );
        if finding.unsure.is_empty() && finding.probability > SURE {
            wrong.push(what);
        } else {
            eprintln!("unsure: {what}");
            unsure += 1;
        }
    }
    assert!(wrong.is_empty(), "{} of {files} files, {unsure} unsure:\n{}", wrong.len(), wrong.join("\n"));
}
