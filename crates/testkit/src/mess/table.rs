//! Clean random tables: columns of numbers, days, codes and text with made-up but likely values.

use super::{percent, pick};
use crate::database::Row;
use fastrand::Rng;

/// A table.
#[derive(Debug, Clone)]
pub(super) struct Clean {
    pub(super) names: Vec<String>,
    pub(super) kinds: Vec<Kind>,
    pub(super) rows: Vec<Row>,
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Number,
    Fraction,
    Day,
    Time,
    Moment,
    Truth,
    Code,
    Word,
    /// Several words.
    Phrase,
    /// Words with punctuation; may hold delimiters, quotes and line endings.
    Remark,
}

const KINDS: [Kind; 14] = [
    Kind::Number,
    Kind::Number,
    Kind::Number,
    Kind::Fraction,
    Kind::Fraction,
    Kind::Day,
    Kind::Time,
    Kind::Moment,
    Kind::Truth,
    Kind::Code,
    Kind::Word,
    Kind::Word,
    Kind::Phrase,
    Kind::Remark,
];

/// Stands where the dialect's delimiter, quote or line ending may stand in a remark.
pub(super) const DELIMITER: char = '\u{e001}';
pub(super) const QUOTE: char = '\u{e002}';
pub(super) const LINE_ENDING: char = '\u{e003}';

const WORDS: [&str; 36] = [
    "alder", "amber", "barley", "basalt", "birch", "brook", "cedar", "chalk", "clay", "clover", "copper",
    "fern", "flint", "gorse", "granite", "gravel", "hazel", "heather", "juniper", "larch", "lichen",
    "marble", "meadow", "mica", "moss", "oak", "peat", "quartz", "reed", "rowan", "sedge", "slate", "thyme",
    "willow", "yarrow", "zinc",
];

const ACCENTED: [&str; 18] = [
    "Tromsø",
    "Malmö",
    "Zürich",
    "Besançon",
    "Nîmes",
    "Málaga",
    "Logroño",
    "Köln",
    "Århus",
    "Évora",
    "Gävle",
    "Genève",
    "Würzburg",
    "Coruña",
    "Bodø",
    "Béthune",
    "Jönköping",
    "Sète",
];

impl Kind {
    pub(super) fn is_text(self) -> bool {
        matches!(self, Kind::Code | Kind::Word | Kind::Phrase | Kind::Remark)
    }

    pub(super) fn is_number(self) -> bool {
        matches!(self, Kind::Number | Kind::Fraction)
    }

    fn names(self) -> &'static [&'static str] {
        match self {
            Kind::Number => {
                &["count", "quantity", "depth_cm", "number", "Height", "stock", "girth mm", "rank"]
            }
            Kind::Fraction => &["price", "ph", "density", "Length m", "latitude", "share", "rainfall"],
            Kind::Day => &["day", "sampled", "DATE", "opened", "measured on"],
            Kind::Time => &["time", "leaves", "TIME", "due"],
            Kind::Moment => &["at", "measured_at", "seen", "Timestamp"],
            Kind::Truth => &["active", "open", "hardy", "Checked"],
            Kind::Code => &["code", "plot", "sku", "PartNo", "sensor"],
            Kind::Word => &["species", "material", "plant", "Mineral", "habitat"],
            Kind::Phrase => &["place", "description", "Product", "station name"],
            Kind::Remark => &["remark", "note", "Comments", "observation"],
        }
    }

    fn value(self, rng: &mut Rng, accents: bool) -> String {
        let day =
            |rng: &mut Rng| format!("20{:02}-{:02}-{:02}", rng.u8(10..25), rng.u8(1..=12), rng.u8(1..=28));
        let time = |rng: &mut Rng| format!("{:02}:{:02}:{:02}", rng.u8(..24), rng.u8(..60), rng.u8(..60));
        match self {
            Kind::Number => match rng.u8(..10) {
                0 => "0".to_owned(),
                1 => format!("-{}", rng.u32(1..90)),
                _ => rng.u32(1..4000).to_string(),
            },
            Kind::Fraction => {
                let sign = if percent(rng, 10) { "-" } else { "" };
                format!("{sign}{}.{:02}", rng.u32(..300), rng.u32(..100))
            }
            Kind::Day => day(rng),
            Kind::Time => time(rng),
            Kind::Moment => format!("{} {}", day(rng), time(rng)),
            Kind::Truth => if rng.bool() { "true" } else { "false" }.to_owned(),
            Kind::Code => format!("{}-{}", pick(rng, &["A", "B", "KX", "N", "WS"]), rng.u32(10..9999)),
            Kind::Word => word(rng, accents).to_owned(),
            Kind::Phrase => phrase(rng, accents),
            Kind::Remark => remark(rng, accents),
        }
    }
}

fn word(rng: &mut Rng, accents: bool) -> &'static str {
    if accents && percent(rng, 50) { pick(rng, &ACCENTED) } else { pick(rng, &WORDS) }
}

fn phrase(rng: &mut Rng, accents: bool) -> String {
    let words: Vec<&str> = (0..rng.usize(2..=4)).map(|_| word(rng, accents)).collect();
    words.join(" ")
}

fn remark(rng: &mut Rng, accents: bool) -> String {
    let (front, back) = (phrase(rng, accents), phrase(rng, accents));
    match rng.u8(..10) {
        0..=2 => format!("{front}{DELIMITER} {back}"),
        3 => format!("{front}{LINE_ENDING}{back}"),
        4 => format!("the {QUOTE}{}{QUOTE} {back}", word(rng, accents)),
        5 => format!("{front}{DELIMITER}{back}{DELIMITER} {}", word(rng, accents)),
        6 => format!("{front} 1/2{QUOTE} {back}"),
        7 => format!("{front} - {back}."),
        _ => front,
    }
}

impl Clean {
    /// Two to ten columns, one of them at least neither text nor like it, and 5 to 40 rows.
    pub(super) fn draw(rng: &mut Rng) -> Clean {
        let accents = percent(rng, 35);
        let mut kinds: Vec<Kind> = (0..rng.usize(2..=10)).map(|_| KINDS[rng.usize(..KINDS.len())]).collect();
        if kinds.iter().all(|kind| kind.is_text()) {
            kinds[0] = Kind::Number;
        }
        let mut names: Vec<String> = Vec::new();
        for kind in &kinds {
            let name = pick(rng, kind.names()).to_owned();
            let doubled = names.iter().any(|known| known.eq_ignore_ascii_case(&name));
            let name = if doubled { format!("{name} {}", names.len() + 1) } else { name };
            names.push(name);
        }
        let gaps: Vec<u32> = kinds.iter().map(|_| *pick(rng, &[&0, &0, &0, &8, &25])).collect();
        let row = |rng: &mut Rng| {
            let value = |rng: &mut Rng, (kind, gap): (&Kind, &u32)| {
                (!percent(rng, *gap)).then(|| kind.value(rng, accents))
            };
            kinds.iter().zip(&gaps).map(|column| value(rng, column)).collect::<Row>()
        };
        let mut rows: Vec<Row> = (0..rng.usize(5..=40)).map(|_| row(rng)).collect();
        // A row of gaps alone is a blank line.
        rows.retain(|row| row.iter().flatten().count() >= 2);
        while rows.len() < 5 {
            rows.push(kinds.iter().map(|kind| Some(kind.value(rng, accents))).collect());
        }
        Clean { names, kinds, rows }
    }

    pub(super) fn width(&self) -> usize {
        self.names.len()
    }

    /// The table has at least so many characters beyond ASCII.
    pub(super) fn has_accents(&self, count: usize) -> bool {
        let values = self.rows.iter().flatten().flatten();
        values.flat_map(|value| value.chars()).filter(|character| !character.is_ascii()).nth(count).is_some()
    }
}
