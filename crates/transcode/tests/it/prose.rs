//! Random tables with addresses and sentences must come back with their delimiter and their header, however
//! many blanks their values have.

use crate::whole_way::load;
use fastrand::Rng;
use howdah_testkit::asked;

const WORDS: [&str; 16] = [
    "Oak", "Maple", "Lane", "Avenue", "San", "Jose", "the", "quick", "of", "Berkeley", "CA", "North", "with",
    "old", "green", "Hill",
];

/// Names of columns as files have them.
const NAMES: [&str; 8] = ["id", "name", "address", "city", "remarks", "opened_on", "phone", "description"];

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Number,
    Day,
    Word,
    /// A number and so many words.
    Address(usize),
    /// So many words, or 2 to 8.
    Sentence(Option<usize>),
}

struct Prose {
    delimiter: char,
    kinds: Vec<Kind>,
    names: Option<Vec<String>>,
    rows: Vec<Vec<String>>,
}

impl Prose {
    fn draw(rng: &mut Rng) -> Prose {
        let width = rng.usize(2..=6);
        let mut kinds: Vec<Kind> = (0..width).map(|_| kind(rng)).collect();
        let words = rng.usize(2..=8);
        kinds[rng.usize(..width)] =
            if rng.bool() { Kind::Address(words) } else { Kind::Sentence(rng.bool().then_some(words)) };
        let mut names = NAMES.map(str::to_owned);
        rng.shuffle(&mut names);
        let delimiter = [',', '\t', ';', '|'][rng.usize(..4)];
        // `65907,29 Oak Hill` alone may as well begin with a fraction.
        let is_fraction =
            delimiter == ',' && kinds[0] == Kind::Number && matches!(kinds[1..], [Kind::Address(_)]);
        let names = (is_fraction || rng.bool()).then(|| names[..width].to_vec());
        let records = if rng.bool() { rng.usize(5..60) } else { rng.usize(5..=3000) };
        let rows = (0..records).map(|_| kinds.iter().map(|kind| kind.value(rng)).collect()).collect();
        Prose { delimiter, kinds, names, rows }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut text = String::new();
        for row in self.names.iter().chain(&self.rows) {
            for (no, value) in row.iter().enumerate() {
                if no > 0 {
                    text.push(self.delimiter);
                }
                let quoted = value.contains(self.delimiter);
                text.push_str(&if quoted { format!("\"{value}\"") } else { value.clone() });
            }
            text.push('\n');
        }
        text.into_bytes()
    }

    /// Text alone does not tell whether a record is a header, unless one of its values comes again soon.
    fn is_header_told(&self) -> bool {
        let typed = self.kinds.iter().any(|kind| matches!(kind, Kind::Number | Kind::Day));
        let first = &self.rows[0];
        let again = |row: &Vec<String>| row.iter().zip(first).any(|(value, first)| value == first);
        self.names.is_some() || typed || self.rows[1..].iter().take(100).any(again)
    }

    /// What is wrong, if anything.
    fn wrong(&self) -> Option<String> {
        let loaded = match load(&self.bytes(), false) {
            Ok(loaded) => loaded,
            Err(error) => return Some(error.to_string()),
        };
        let finding = &loaded.finding;
        let header_told = self.is_header_told();
        let right = finding.dialect.delimiter == self.delimiter.to_string()
            && finding.width == self.kinds.len()
            && finding.preamble_records == 0
            && (!header_told || finding.names == self.names.clone().unwrap_or_default())
            && (!header_told || loaded.rows.len() == self.rows.len());
        (!right).then(|| finding.describe())
    }
}

impl Kind {
    fn value(self, rng: &mut Rng) -> String {
        let words = |rng: &mut Rng, count: usize| -> String {
            (0..count).map(|_| WORDS[rng.usize(..WORDS.len())]).collect::<Vec<_>>().join(" ")
        };
        match self {
            Kind::Number => rng.u32(1..100_000).to_string(),
            Kind::Day => format!("20{:02}-{:02}-{:02}", rng.u32(0..30), rng.u32(1..=12), rng.u32(1..=28)),
            Kind::Word => words(rng, 1),
            Kind::Address(count) => format!("{} {}", rng.u32(1..999), words(rng, count - 1)),
            Kind::Sentence(Some(count)) => words(rng, count),
            Kind::Sentence(None) => {
                let (count, text) = (rng.usize(2..=8), words(rng, 1));
                let comma = if rng.u32(..6) == 0 { "," } else { "" };
                format!("{text}{comma} {}", words(rng, count - 1))
            }
        }
    }
}

fn kind(rng: &mut Rng) -> Kind {
    match rng.u32(..6) {
        0 => Kind::Number,
        1 => Kind::Day,
        2 => Kind::Word,
        3 => Kind::Address(rng.usize(2..=6)),
        4 => Kind::Sentence(Some(rng.usize(2..=8))),
        _ => Kind::Sentence(None),
    }
}

#[test]
fn tables_of_addresses_and_sentences_come_back() {
    let (files, seed) = (asked("HOWDAH_MESS_FILES", 400), asked("HOWDAH_MESS_SEED", 0));
    let mut wrong = Vec::new();
    for seed in seed..seed + files {
        let prose = Prose::draw(&mut Rng::with_seed(seed));
        if let Some(what) = prose.wrong() {
            let (header, records) = (prose.names.is_some(), prose.rows.len());
            wrong.push(format!(
                "seed {seed}, {records} records by {:?}, header {header}: {what}",
                prose.delimiter
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {files} files:\n{}", wrong.len(), wrong.join("\n"));
}

/// Values in which another usual delimiter stands once.
const PAIRS: [fn(&mut Rng) -> String; 6] = [
    |rng| format!("{}|{}", rng.u32(1..50), rng.u32(50..99)),
    |rng| format!("{:.4};{:.4}", rng.f64(), rng.f64()),
    |rng| format!("{}, {}", WORDS[rng.usize(..4)], WORDS[rng.usize(4..WORDS.len())]),
    |rng| format!("{:.4},{:.4}", rng.f64() * 90.0, rng.f64() * 90.0),
    |rng| format!("{};x", WORDS[rng.usize(..WORDS.len())]),
    |rng| format!("2024-01-{:02};2024-02-{:02}", rng.u32(1..=28), rng.u32(1..=28)),
];

#[test]
fn names_keep_pairs_of_values_whole() {
    let (files, seed) = (asked("HOWDAH_MESS_FILES", 400), asked("HOWDAH_MESS_SEED", 0));
    let mut wrong = Vec::new();
    for seed in seed..seed + files {
        let rng = &mut Rng::with_seed(seed);
        let delimiter = [",", "\t", ";", "|"][rng.usize(..4)];
        let mut names = NAMES.map(str::to_owned);
        rng.shuffle(&mut names);
        let names = &names[..rng.usize(2..=4)];
        let pairs: Vec<usize> = names.iter().map(|_| rng.usize(..PAIRS.len() * 2)).collect();
        let mut text = names.join(delimiter) + "\n";
        for no in 1..=[10, 50, 100][rng.usize(..3)] {
            let value = |(at, pair): (usize, &usize)| match PAIRS.get(*pair) {
                Some(pair) if at > 0 => pair(rng),
                _ => (no * (at + 1)).to_string(),
            };
            let values: Vec<String> = pairs.iter().enumerate().map(value).collect();
            let quoted = values.iter().map(|value| match value.contains(delimiter) {
                true => format!("\"{value}\""),
                false => value.clone(),
            });
            text += &(quoted.collect::<Vec<_>>().join(delimiter) + "\n");
        }
        let middle = text.match_indices('\n').nth(text.lines().count() / 2).unwrap().0;
        let mut with_odd = text.clone();
        with_odd.insert_str(middle, &format!("{delimiter}odd"));
        for (text, what) in [(text, "even"), (with_odd, "one odd")] {
            let found = crate::whole_way::find(text.as_bytes()).unwrap();
            if found.dialect.delimiter != delimiter || found.names != names {
                wrong.push(format!("seed {seed}, {what}, {delimiter:?}: {}", found.describe()));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {files} files:\n{}", wrong.len(), wrong.join("\n"));
}
