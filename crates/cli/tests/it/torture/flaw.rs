//! What is wrong with a record that a load leaves out, and where such records can come.

use super::data::Record;
use super::mode::{Arrival, OnError};
use super::scenario::Scenario;
use super::shape::Shape;
use super::written::{Charset, Format};
use fastrand::Rng;

/// Stands for a byte that is no character in UTF-8. No other value has it.
pub(super) const NO_CHARACTER: char = '\u{10FFFF}';

/// No note is longer but where that is what is wrong, and where all are wide.
const NOTE_CHARS_MAX: usize = 200;

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flaw {
    /// A CHECK refuses it.
    Check,
    /// NOT NULL refuses it.
    NoPart,
    /// An exclusion constraint refuses it beside a row that was there before.
    Excluded,
    /// More characters than the type has room for.
    TooLong,
    /// No integer where one must be.
    Type,
    /// More digits than the type has.
    Range,
    /// A day that no calendar has.
    Day,
    /// No label of an enum.
    NoLabel,
    /// The CHECK of a domain refuses it.
    Domain,
    /// No day, and so no partition.
    NoPartition,
    /// The last field is missing.
    Short,
    /// There is a field too many.
    Long,
    /// The key of a row that was there before.
    OldKey,
    /// The same record as another one, which comes first where one session reads both.
    Repeat,
    /// The foreign key leads nowhere.
    Orphan,
    /// A policy of row-level security refuses it.
    Forbidden,
    /// A trigger raises an error before the row is stored.
    RaisedBefore,
    /// A trigger raises one behind it.
    RaisedAfter,
    /// A byte that is no character.
    BadByte,
    /// A NUL byte.
    Nul,
}

impl Flaw {
    const ALL: [Flaw; 20] = [
        Flaw::Check,
        Flaw::NoPart,
        Flaw::Excluded,
        Flaw::TooLong,
        Flaw::Type,
        Flaw::Range,
        Flaw::Day,
        Flaw::NoLabel,
        Flaw::Domain,
        Flaw::NoPartition,
        Flaw::Short,
        Flaw::Long,
        Flaw::OldKey,
        Flaw::Repeat,
        Flaw::Orphan,
        Flaw::Forbidden,
        Flaw::RaisedBefore,
        Flaw::RaisedAfter,
        Flaw::BadByte,
        Flaw::Nul,
    ];

    /// Those of a load, one to four kinds; none where nothing may be left out.
    pub(super) fn draw(scenario: &Scenario, random: &mut Rng) -> Vec<Flaw> {
        if scenario.mode.on_error == OnError::Stop {
            return Vec::new();
        }
        let mut flaws: Vec<Flaw> = Flaw::ALL.into_iter().filter(|flaw| flaw.can_come(scenario)).collect();
        random.shuffle(&mut flaws);
        flaws.truncate(random.usize(1..5));
        // The condition of a trigger keeps its column's type.
        if flaws.iter().any(|flaw| matches!(flaw, Flaw::RaisedBefore | Flaw::RaisedAfter)) {
            flaws.retain(|flaw| *flaw != Flaw::TooLong);
        }
        // That makes a column of characters of the domain.
        if flaws.contains(&Flaw::TooLong) {
            flaws.retain(|flaw| *flaw != Flaw::Domain);
        }
        flaws
    }

    fn can_come(self, scenario: &Scenario) -> bool {
        let Scenario { shape, mode, knobs, written, .. } = scenario;
        if mode.on_error == OnError::Lenient {
            // What only the server refuses ends the load.
            return matches!(self, Flaw::Short | Flaw::Long);
        }
        let has_keys = shape.key().is_some() && (mode.is_staged() || knobs.indexes != "rebuild");
        let fires = knobs.triggers == "keep";
        match self {
            Flaw::Check | Flaw::NoPart | Flaw::Type | Flaw::Range | Flaw::Day | Flaw::Short | Flaw::Long => {
                true
            }
            Flaw::NoPartition => shape.is_dated(),
            Flaw::NoLabel | Flaw::Domain => *shape == Shape::Typed,
            // A column that a generated one is made of keeps its type.
            Flaw::TooLong => !matches!(shape, Shape::Wide | Shape::Filled),
            // Partitioned tables have none before PostgreSQL 17.
            Flaw::Excluded => {
                mode.arrival == Arrival::Append
                    && !shape.is_partitioned()
                    && (mode.is_staged() || knobs.indexes != "rebuild")
            }
            Flaw::OldKey => has_keys && mode.arrival == Arrival::Append,
            Flaw::Repeat => has_keys,
            Flaw::Orphan => shape.has_foreign_key() && has_keys && fires,
            Flaw::Forbidden => scenario.guarded,
            // What a trigger does, no query tells.
            Flaw::RaisedBefore | Flaw::RaisedAfter => {
                mode.arrival == Arrival::Append && !mode.is_staged() && fires
            }
            Flaw::BadByte => written.is_told() && written.charset == Charset::Utf8,
            Flaw::Nul => written.format != Format::Text && written.charset == Charset::Utf8,
        }
    }

    /// Only storing the row tells, in a load with these flaws: what a trigger raises, and whether one that
    /// comes before fills the column.
    pub(super) fn is_hidden(self, among: &[Flaw]) -> bool {
        match self {
            Flaw::RaisedBefore | Flaw::RaisedAfter => true,
            Flaw::NoPart => among.contains(&Flaw::RaisedBefore),
            _ => false,
        }
    }

    /// Codes of the server's by which it is refused: a row without a value of the key may have no partition
    /// to go to.
    pub(super) fn sqlstates(self) -> &'static [&'static str] {
        match self {
            Flaw::Check | Flaw::NoPartition | Flaw::Domain => &["23514"],
            Flaw::NoPart => &["23502", "23514"],
            Flaw::Type | Flaw::NoLabel => &["22P02"],
            Flaw::Range => &["22003"],
            Flaw::TooLong => &["22001"],
            Flaw::Excluded => &["23P01"],
            Flaw::Day => &["22008"],
            Flaw::Short | Flaw::Long => &["22P04"],
            Flaw::OldKey | Flaw::Repeat => &["23505"],
            Flaw::Orphan => &["23503"],
            Flaw::Forbidden => &["42501"],
            Flaw::RaisedBefore | Flaw::RaisedAfter => &["P0001"],
            Flaw::BadByte | Flaw::Nul => &["22021"],
        }
    }

    /// Makes the fields of a good record bad.
    pub(super) fn spoil(self, fields: &mut Vec<Option<String>>, id: u64) {
        let (no, value) = match self {
            Flaw::Check => (2, "99999".to_owned()),
            Flaw::Excluded => (2, "88888".to_owned()),
            Flaw::TooLong => (5, "x".repeat(NOTE_CHARS_MAX + 1)),
            Flaw::Type => (2, "many".to_owned()),
            Flaw::Range => (3, "99999999999.00".to_owned()),
            Flaw::Day => (4, "2024-02-30".to_owned()),
            Flaw::Orphan | Flaw::NoLabel => (1, "300".to_owned()),
            Flaw::Domain => (5, "never".to_owned()),
            Flaw::Forbidden => (0, "-1".to_owned()),
            Flaw::RaisedBefore => (5, "raise before".to_owned()),
            Flaw::RaisedAfter => (5, "raise after".to_owned()),
            Flaw::BadByte => (5, format!("bad {NO_CHARACTER}")),
            Flaw::Nul => (5, "nul \0".to_owned()),
            Flaw::NoPart => return fields[1] = None,
            Flaw::NoPartition => return fields[4] = None,
            Flaw::Short => return drop(fields.pop()),
            Flaw::Long => {
                // An empty field among them might be the surplus one.
                for (no, value) in [(4, "2024-01-01"), (5, "long")] {
                    let field = fields[no].take().filter(|field| !field.trim().is_empty());
                    fields[no] = field.or_else(|| Some(value.to_owned()));
                }
                return fields.push(Some("more".to_owned()));
            }
            Flaw::OldKey => {
                let old = id % super::mode::OLD_ROWS + 1;
                fields[1] = Some((old % 256).to_string());
                (0, old.to_string())
            }
            Flaw::Repeat => return,
        };
        fields[no] = Some(value);
    }

    /// Makes the server refuse it, where the table would not.
    pub(super) fn sql(self) -> &'static str {
        match self {
            Flaw::Check => "ALTER TABLE t ADD CONSTRAINT refuses CHECK (score < 99999);",
            Flaw::Excluded => {
                "UPDATE t SET score = 88888 WHERE id = 1; UPDATE wanted SET score = 88888 WHERE id = 1; \
                 ALTER TABLE t ADD CONSTRAINT apart EXCLUDE USING btree (score WITH =) WHERE (score = 88888);"
            }
            Flaw::TooLong => "ALTER TABLE t ALTER note TYPE varchar(200);",
            Flaw::NoPart => "ALTER TABLE t ALTER part SET NOT NULL;",
            Flaw::RaisedBefore => {
                "CREATE FUNCTION raise_before() RETURNS trigger LANGUAGE plpgsql AS \
                     'BEGIN RAISE EXCEPTION USING MESSAGE = ''no''; END'; \
                 CREATE TRIGGER raise_before BEFORE INSERT ON t FOR EACH ROW WHEN (NEW.note = 'raise before') \
                     EXECUTE FUNCTION raise_before();"
            }
            Flaw::RaisedAfter => {
                "CREATE FUNCTION raise_after() RETURNS trigger LANGUAGE plpgsql AS \
                     'BEGIN RAISE EXCEPTION USING MESSAGE = ''no''; END'; \
                 CREATE TRIGGER raise_after AFTER INSERT ON t FOR EACH ROW WHEN (NEW.note = 'raise after') \
                     EXECUTE FUNCTION raise_after();"
            }
            _ => "",
        }
    }
}

/// Spoils about one record in `every`, and one at least. The first and the last ones of a file stay: by them
/// it is found how it is written.
pub(super) fn spoil(random: &mut Rng, files: &mut [Vec<Record>], scenario: &Scenario) {
    const EDGE: usize = 5;
    let Scenario { flaws, flaw_every: every, mode, knobs, .. } = scenario;
    let mut must = !flaws.is_empty();
    for file in files {
        for no in EDGE..file.len().saturating_sub(EDGE) {
            if flaws.is_empty() || !(must || random.u64(..*every) == 0) {
                continue;
            }
            must = false;
            let flaw = flaws[random.usize(..flaws.len())];
            if flaw == Flaw::Repeat {
                let Some(of) = (0..no).rev().find(|before| file[*before].flaw.is_none()) else { continue };
                file[no] = file[of].clone();
                // Nor may the other one be anything but good.
                file[of].flaw = Some(Flaw::Repeat);
            }
            let record = &mut file[no];
            record.flaw = Some(flaw);
            record.is_stored = false;
            if flaw == Flaw::Short && mode.on_error == OnError::Lenient {
                record.is_stored = true;
                record.lose_note();
            }
            let instead = match knobs.nul {
                "strip" => "",
                "replace" => "\u{FFFD}",
                _ => continue,
            };
            if flaw == Flaw::Nul {
                record.is_stored = true;
                record.take_nul(instead);
            }
        }
    }
}
