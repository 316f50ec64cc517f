//! The spelling that all values of a column share, and the SQL that gives each back as it was.
//!
//! PostgreSQL writes a timestamp in one way. A column whose values were all written in the same other way
//! (`2024-01-31T10:00:00Z`) has lost nothing by becoming timestamps, if that way is remembered.

/// How a date, a time of day or both are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    /// Between year, month and day, which have four, two and two digits; `None`: a time of day alone.
    pub(super) separator: Option<u8>,
    /// How the time of day is written, if there is one.
    pub(super) clock: Option<ClockLayout>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ClockLayout {
    /// Between date and time: a space or `T`.
    pub(super) joint: u8,
    pub(super) seconds: bool,
    pub(super) suffix: Suffix,
}

/// What says that a time is one of UTC, by its place in [`SUFFIXES`]. (Comparing numbers, not texts: this is
/// done for every value, and comparing empty texts was seen to cost 400 ns.)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Suffix(u8);

/// Nothing, and the ways to say UTC that are remembered.
const SUFFIXES: [&str; 7] = ["", "Z", "+00", "+00:00", "+0000", " UTC", " GMT"];

impl Suffix {
    /// Nothing says so.
    pub(super) const NONE: Suffix = Suffix(0);

    /// What is written behind the time.
    pub(super) fn of(written: &[u8]) -> Option<Suffix> {
        let at = SUFFIXES.iter().position(|suffix| suffix.as_bytes() == written)?;
        u8::try_from(at).ok().map(Suffix)
    }

    fn text(self) -> &'static str {
        SUFFIXES.get(usize::from(self.0)).copied().unwrap_or_default()
    }
}

/// The layouts seen: none, one, or more than one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Common {
    #[default]
    None,
    One(Layout),
    Several,
}

/// What is common to the spelling of dates and times.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Spelling {
    layout: Common,
    /// Ways to write fractions of a second that some value was not written in: bit `n`, with `n` digits;
    /// [`TRIMMED`], with as many as are needed.
    refused_fractions: u8,
}

const TRIMMED: u8 = 1 << 7;

impl Spelling {
    /// Takes in a layout and the digits of the fraction, at most six.
    pub(super) fn observe(&mut self, layout: Layout, fraction: &[u8]) {
        let trimmed = if fraction.ends_with(b"0") { 0 } else { TRIMMED };
        let written = 1 << fraction.len().min(6) | trimmed;
        self.join(&Spelling { layout: Common::One(layout), refused_fractions: !written });
    }

    /// A value was written in a way that is not remembered.
    pub(super) fn observe_other(&mut self) {
        self.layout = Common::Several;
        self.refused_fractions = u8::MAX;
    }

    pub(super) fn join(&mut self, other: &Spelling) {
        self.refused_fractions |= other.refused_fractions;
        self.layout = match (&self.layout, &other.layout) {
            (Common::None, one) | (one, Common::None) => one.clone(),
            (Common::One(one), Common::One(same)) if one == same => Common::One(*one),
            _ => Common::Several,
        };
    }

    /// SQL for the text of the column `{}` as it was written, with DateStyle ISO; `None` if the values share
    /// no spelling.
    pub(super) fn sql(&self) -> Option<String> {
        let Common::One(layout) = self.layout else { return None };
        let date_bytes = if layout.separator.is_some() { 11 } else { 0 };
        let Some(clock) = layout.clock else {
            return Some(with_separator(layout.separator, "{}::text".to_owned()));
        };
        let moment = if clock.suffix == Suffix::NONE { "{}" } else { "({} AT TIME ZONE 'UTC')" };
        let mut sql = match !self.refused_fractions {
            0 => return None,
            left if left & TRIMMED != 0 => format!("{moment}::text"),
            left => {
                let date = if layout.separator.is_some() { "YYYY-MM-DD " } else { "" };
                format!("to_char({moment}, '{date}HH24:MI:SS.FF{}')", left.trailing_zeros())
            }
        };
        if !clock.seconds {
            sql = format!("left({sql}, {})", date_bytes + 5);
        }
        sql = with_separator(layout.separator, sql);
        if clock.joint == b'T' {
            sql = format!("replace({sql}, ' ', 'T')");
        }
        Some(match clock.suffix.text() {
            "" => sql,
            suffix => format!("({sql} || '{suffix}')"),
        })
    }
}

fn with_separator(separator: Option<u8>, sql: String) -> String {
    match separator.map(char::from) {
        None | Some('-') => sql,
        Some(other) => format!("replace({sql}, '-', '{other}')"),
    }
}

/// Casing of words, as flags: each has one SQL function that makes it of small letters.
pub(super) mod casing {
    pub(in super::super) const LOWER: u8 = 1;
    pub(in super::super) const UPPER: u8 = 2;
    pub(in super::super) const CAPITAL: u8 = 4;
    /// Anything else.
    pub(in super::super) const OTHER: u8 = 8;
}

/// The casing of an ASCII word; digits and hyphens have none.
pub(super) fn casing_of(word: &[u8]) -> u8 {
    let has_lower = word.iter().any(u8::is_ascii_lowercase);
    let has_upper = word.iter().any(u8::is_ascii_uppercase);
    match (has_lower, has_upper) {
        (false, false) => 0,
        (true, false) => casing::LOWER,
        (false, true) => casing::UPPER,
        _ => match word.split_first() {
            Some((first, rest)) if first.is_ascii_uppercase() && !rest.iter().any(u8::is_ascii_uppercase) => {
                casing::CAPITAL
            }
            _ => casing::OTHER,
        },
    }
}

/// The casing of a UUID, whose digits are all small or all capital: `initcap` would lift the first letter of
/// each of its groups.
pub(super) fn uuid_casing_of(uuid: &[u8]) -> u8 {
    match casing_of(uuid) {
        casing::CAPITAL => casing::OTHER,
        other => other,
    }
}

/// SQL for the text of the column `{}` if all its words have one of these casings.
pub(super) fn casing_sql(seen: u8) -> Option<String> {
    let sql = match seen {
        0 | casing::LOWER => "{}::text",
        casing::UPPER => "upper({}::text)",
        casing::CAPITAL => "initcap({}::text)",
        _ => return None,
    };
    Some(sql.to_owned())
}
