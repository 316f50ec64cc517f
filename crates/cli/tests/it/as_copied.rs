//! Random small files of the values that people keep in files, loaded into columns of text: without options
//! or with some, the table holds what COPY reads from the same bytes when it is told all, or the load says
//! what it was unsure of.
//!
//! `HOWDAH_COPIED_FILES` files are tried from the seed `HOWDAH_COPIED_SEED` on.

use crate::scene::{Files, PATIENCE, howdah};
use fastrand::Rng;
use howdah_testkit::{Database, Finished, Server, asked};
use std::fmt::Write as _;

/// Above this share of files that are read otherwise, though told to be unsure, the finding of dialects is of
/// no use.
const UNSURE_AND_OTHER_MAX: f64 = 0.12;

/// What the values of a column are. None is a word for NULL, which howdah finds and COPY does not.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Integer,
    Zeros,
    Amount,
    DecimalComma,
    Grouped,
    Day,
    GermanDay,
    Moment,
    Word,
    Words,
    Capitals,
    Apostrophes,
    Inches,
    Hashes,
    Paths,
    WindowsPaths,
    Addresses,
    List,
    Json,
    Code,
    Blanks,
    Empty,
    Quotes,
    Lines,
    Umlauts,
    Truth,
    Phone,
    Formula,
    Dashes,
}

const KINDS: [Kind; 29] = [
    Kind::Integer,
    Kind::Zeros,
    Kind::Amount,
    Kind::DecimalComma,
    Kind::Grouped,
    Kind::Day,
    Kind::GermanDay,
    Kind::Moment,
    Kind::Word,
    Kind::Words,
    Kind::Capitals,
    Kind::Apostrophes,
    Kind::Inches,
    Kind::Hashes,
    Kind::Paths,
    Kind::WindowsPaths,
    Kind::Addresses,
    Kind::List,
    Kind::Json,
    Kind::Code,
    Kind::Blanks,
    Kind::Empty,
    Kind::Quotes,
    Kind::Lines,
    Kind::Umlauts,
    Kind::Truth,
    Kind::Phone,
    Kind::Formula,
    Kind::Dashes,
];

const WORDS: [&str; 24] = [
    "river", "stone", "amber", "lamp", "north", "copper", "glass", "winter", "paper", "harbour", "fern",
    "engine", "the", "of", "a", "with", "red", "small", "old", "sum", "cable", "valve", "bridge", "salt",
];

fn words(random: &mut Rng, least: usize, most: usize) -> String {
    let count = random.usize(least..=most);
    (0..count).map(|_| WORDS[random.usize(..WORDS.len())]).collect::<Vec<_>>().join(" ")
}

impl Kind {
    /// No value is a number, a day or the like, whatever it looks like.
    fn is_text(self) -> bool {
        use Kind::*;
        !matches!(
            self,
            Integer
                | Amount
                | DecimalComma
                | Grouped
                | Day
                | GermanDay
                | Moment
                | Truth
                | Empty
                | Blanks
                | Json
        )
    }

    fn value(self, random: &mut Rng) -> String {
        let (one, two) = (words(random, 1, 1), words(random, 1, 2));
        let (small, big) = (random.u32(..100), random.u32(..2_000_000));
        let (day, month) = (random.u32(1..=28), random.u32(1..=12));
        match self {
            Kind::Integer => big.to_string(),
            Kind::Zeros => format!("{small:05}"),
            Kind::Amount => format!("{big}.{small:02}"),
            Kind::DecimalComma => format!("{big},{small:02}"),
            Kind::Grouped => format!("{},{:03}", small + 1, random.u32(..1000)),
            Kind::Day => format!("2023-{month:02}-{day:02}"),
            Kind::GermanDay => format!("{day:02}.{month:02}.2023"),
            Kind::Moment => format!("2023-{month:02}-{day:02} {:02}:{:02}:00", small % 24, small % 60),
            Kind::Word => one,
            Kind::Words => words(random, 1, 8),
            Kind::Capitals => format!("{}{}", &one[..1].to_uppercase(), &one[1..]),
            Kind::Apostrophes => {
                [format!("'{one}'"), format!("'t{one}"), format!("{one}'s"), format!("O'{one} {two}")]
                    [random.usize(..4)]
                .clone()
            }
            Kind::Inches => format!("{small}\" {one}"),
            Kind::Hashes => [format!("#{small}"), format!("# {two}"), format!("{one} #{small}")]
                [random.usize(..3)]
            .clone(),
            Kind::Paths => format!("/{one}/{small}.txt"),
            Kind::WindowsPaths => format!("C:\\{one}\\new\\{small}"),
            Kind::Addresses => format!("{small} {two} Lane, {one}"),
            Kind::List => {
                [format!("{one};{two}"), format!("{one}|{small}|{two}"), format!("{one}, {two}, {small}")]
                    [random.usize(..3)]
                .clone()
            }
            Kind::Json => [
                format!("{{\"{one}\": {small}}}"),
                format!("[{small},{big},\"{two}\"]"),
                format!("{{\"a\":\"{two}\",\"b\":[{small},null]}}"),
            ][random.usize(..3)]
            .clone(),
            Kind::Code => format!("if (x[{small}] == \"{one}\") {{ return; }}"),
            Kind::Blanks => [format!(" {one}"), format!("{one}  "), "  ".to_owned(), format!("{one}\t{two}")]
                [random.usize(..4)]
            .clone(),
            Kind::Empty => {
                if random.bool() {
                    String::new()
                } else {
                    one
                }
            }
            Kind::Quotes => {
                [format!("\"{one}\""), format!("a \"{two}\" b"), "\"".to_owned(), format!("\"{one}\", {two}")]
                    [random.usize(..4)]
                .clone()
            }
            Kind::Lines => {
                [format!("{one}\n{two}"), format!("{one}\n\n{two}\n"), one][random.usize(..3)].clone()
            }
            Kind::Umlauts => format!("{one} Zürich Łódź {small}€"),
            Kind::Truth => ["true", "false", "t", "f", "yes", "no"][random.usize(..6)].to_owned(),
            Kind::Phone => format!("+49 ({small}) {big}-{day}"),
            Kind::Formula => format!("={one}!A{small}"),
            Kind::Dashes => format!("{one} -- {two}"),
        }
    }
}

/// Which fields stand in quotes that need none.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Quoting {
    Minimal,
    All,
    Text,
    AtRandom,
}

#[derive(Debug)]
struct Draft {
    kinds: Vec<Kind>,
    delimiter: &'static str,
    quoting: Quoting,
    has_header: bool,
    eol: &'static str,
    ends_with_eol: bool,
    options: Vec<String>,
    text: String,
}

impl Draft {
    fn draw(random: &mut Rng) -> Draft {
        let width = [1, 2, 2, 3, 3, 4, 5, 7][random.usize(..8)];
        let mut draft = Draft {
            kinds: (0..width).map(|_| KINDS[random.usize(..KINDS.len())]).collect(),
            delimiter: [",", ",", ",", ";", "\t", "|"][random.usize(..6)],
            quoting: [Quoting::Minimal, Quoting::Minimal, Quoting::All, Quoting::Text, Quoting::AtRandom]
                [random.usize(..5)],
            has_header: random.u8(..3) > 0,
            eol: if random.u8(..4) == 0 { "\r\n" } else { "\n" },
            ends_with_eol: random.u8(..6) > 0,
            options: Vec::new(),
            text: String::new(),
        };
        // COPY takes a record of one empty field for one, but a csv writer puts quotes there.
        let records = [0, 1, 2, 3, 5, 8, 20, 60, 200][random.usize(..9)].max(usize::from(!draft.has_header));
        draft.draw_options(random);
        draft.text = draft.write(random, records);
        draft
    }

    fn draw_options(&mut self, random: &mut Rng) {
        if random.u8(..3) == 0 {
            self.options.push(format!("--header={}", self.has_header));
        }
        if random.u8(..3) == 0 {
            self.options.extend(["--delimiter".to_owned(), self.delimiter.to_owned()]);
        }
        // With a format nothing is looked for that is not told.
        if self.options.len() == 3 && random.bool() {
            self.options.extend(["--format".to_owned(), "csv".to_owned()]);
        }
    }

    fn write(&self, random: &mut Rng, records: usize) -> String {
        let mut lines = Vec::new();
        if self.has_header {
            let names: Vec<String> = (0..self.kinds.len()).map(|no| self.name(no)).collect();
            let quoted = |name: &String| {
                if self.quoting == Quoting::All { format!("\"{name}\"") } else { name.clone() }
            };
            lines.push(names.iter().map(quoted).collect::<Vec<_>>().join(self.delimiter));
        }
        for _ in 0..records {
            let fields: Vec<String> = self.kinds.iter().map(|kind| self.field(random, *kind)).collect();
            lines.push(fields.join(self.delimiter));
        }
        let end = if self.ends_with_eol { self.eol } else { "" };
        lines.join(self.eol) + end
    }

    fn name(&self, no: usize) -> String {
        format!("{}_{no}", ["id", "title", "note", "kind", "stamp", "place", "extra"][no])
    }

    fn field(&self, random: &mut Rng, kind: Kind) -> String {
        let value = kind.value(random);
        let special = value.contains(['"', '\n', '\r']) || value.contains(self.delimiter);
        let is_number = matches!(kind, Kind::Integer | Kind::Amount);
        let by_choice = match self.quoting {
            Quoting::Minimal => false,
            Quoting::All => true,
            Quoting::Text => !is_number,
            Quoting::AtRandom => random.bool(),
        };
        let is_only_blank = self.kinds.len() == 1 && value.trim().is_empty();
        if special || by_choice || is_only_blank || value == "\\." {
            format!("\"{}\"", value.replace('"', "\"\""))
        } else {
            value
        }
    }

    fn columns(&self) -> String {
        (0..self.kinds.len()).map(|no| self.name(no)).collect::<Vec<_>>().join(" text, ") + " text"
    }
}

/// What a load has come to.
enum End {
    Same,
    /// Refused with a hint, or other rows, and the load said that something is unsure.
    Unsure,
    /// Other rows, without a word; or an error.
    Wrong(String),
}

fn copy(database: &Database, table: &str, draft: &Draft) {
    let columns = draft.columns();
    database.sql(&format!("CREATE TABLE {table} ({columns})"));
    let Draft { has_header, delimiter, text, .. } = draft;
    let copy = format!("COPY {table} FROM STDIN (FORMAT csv, HEADER {has_header}, DELIMITER '{delimiter}')");
    database.copy_in(&copy, text.clone().into_bytes()).unwrap();
}

fn load(database: &Database, files: &Files, no: usize, draft: &Draft, options: &[&str]) -> Finished {
    let source = files.put(&format!("{no}.csv"), draft.text.as_bytes());
    let load = howdah("load").args(["--to", &database.conninfo()]).args(options).args(&draft.options);
    load.arg(source).run(PATIENCE)
}

/// A load that has ended with an error: before it began it may ask what it cannot know.
fn refused(run: &Finished) -> End {
    let tells = |words: &str| run.stderr.contains(words);
    let has_begun = tells("\njob ");
    if matches!(run.code, Some(1 | 2)) && tells("\nhint: ") && (tells("unsure ") || !has_begun) {
        return End::Unsure;
    }
    End::Wrong(format!("exit code {:?}: {}", run.code, run.stderr))
}

/// A load that has stored something else.
fn other(run: &Finished, what: &str) -> End {
    if run.stderr.contains("unsure ") || run.stderr.contains("being taken for titles") {
        return End::Unsure;
    }
    End::Wrong(format!("{what}: {}", run.stderr))
}

fn compare(database: &Database, run: &Finished, expected_sql: &str, got_sql: &str) -> End {
    let differ = format!(
        "SELECT count(*) FROM (({expected_sql} EXCEPT ALL {got_sql}) UNION ALL \
         ({got_sql} EXCEPT ALL {expected_sql})) AS d"
    );
    match database.value(&differ).as_str() {
        "0" => End::Same,
        rows => other(run, &format!("{rows} rows differ")),
    }
}

fn try_one(database: &Database, files: &Files, no: usize, draft: &Draft) -> End {
    let (copied, loaded) = (format!("copied_{no}"), format!("loaded_{no}"));
    copy(database, &copied, draft);
    database.sql(&format!("CREATE TABLE {loaded} (LIKE {copied})"));
    let run = load(database, files, no, draft, &["--table", &loaded]);
    if run.code != Some(0) {
        return refused(&run);
    }
    compare(database, &run, &format!("TABLE {copied}"), &format!("TABLE {loaded}"))
}

/// The columns of a table that the load has made, with their types.
fn shape(database: &Database, table: &str) -> Vec<(String, String)> {
    let rows = database.rows(&format!(
        "SELECT quote_ident(attname), format_type(atttypid, atttypmod) FROM pg_attribute \
         WHERE attrelid = '{table}'::regclass AND attnum > 0 ORDER BY attnum"
    ));
    rows.into_iter().map(|row| (row[0].clone().unwrap(), row[1].clone().unwrap())).collect()
}

/// Loads the file into a table that is made for it, whose values are to be those that the server reads in the
/// texts of the file.
fn try_made(database: &Database, files: &Files, no: usize, draft: &Draft) -> End {
    let (copied, made) = (format!("texts_{no}"), format!("made_{no}"));
    let run = load(database, files, no, draft, &["--create", "--table", &made]);
    if run.code != Some(0) {
        return refused(&run);
    }
    copy(database, &copied, draft);
    let columns = shape(database, &made);
    if columns.len() != draft.kinds.len() {
        return other(&run, &format!("{} columns", columns.len()));
    }
    let (mut texts, mut values) = (Vec::new(), Vec::new());
    for (no, (kind, (name, type_name))) in draft.kinds.iter().zip(&columns).enumerate() {
        let text = draft.name(no);
        if kind.is_text() && type_name != "text" {
            return other(&run, &format!("{kind:?} is {type_name}"));
        }
        let read_otherwise = matches!(kind, Kind::DecimalComma | Kind::Grouped | Kind::GermanDay);
        if type_name == "text" {
            texts.push(text);
            values.push(name.clone());
        } else if !read_otherwise {
            texts.push(format!("nullif({text}, '')::{type_name}::text"));
            values.push(format!("{name}::text"));
        }
    }
    let (texts, values) = (texts.join(", "), values.join(", "));
    compare(database, &run, &format!("SELECT {texts} FROM {copied}"), &format!("SELECT {values} FROM {made}"))
}

/// Tries random files; panics where some are read otherwise without a word, or too many with one.
fn try_all(what: impl Fn(&Database, &Files, usize, &Draft) -> End) {
    let (files, database) = (Files::new(), Server::shared(15).database());
    let (count, seed) = (asked("HOWDAH_COPIED_FILES", 40), asked("HOWDAH_COPIED_SEED", 20_261_129));
    let (mut wrong, mut told, mut unsure) = (String::new(), 0, 0);
    for no in 0..count {
        let draft = Draft::draw(&mut Rng::with_seed(seed + no));
        match what(&database, &files, usize::try_from(no).unwrap(), &draft) {
            End::Same => {}
            End::Unsure => unsure += 1,
            End::Wrong(why) => {
                told += 1;
                let Draft { kinds, delimiter, quoting, options, text, .. } = &draft;
                let begin: String = text.chars().take(600).collect();
                let _ = writeln!(
                    wrong,
                    "== seed {}: {kinds:?} by {delimiter:?}, {quoting:?}, {options:?}\n{why}\n{begin}",
                    seed + no
                );
            }
        }
    }
    assert!(told == 0, "{told} of {count} ({unsure} told as unsure):\n{wrong}");
    let bound = (count as f64 * UNSURE_AND_OTHER_MAX).max(6.0);
    assert!(f64::from(unsure) <= bound, "{unsure} of {count} are read otherwise and told to be unsure");
}

#[test]
fn random_files_hold_what_copy_reads() {
    try_all(try_one);
}

#[test]
fn tables_that_are_made_for_random_files_hold_what_the_server_reads() {
    try_all(try_made);
}
