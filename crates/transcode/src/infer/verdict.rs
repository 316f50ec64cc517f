//! The type of a column from what is known of its values.
//!
//! Two questions. With all values seen: the narrowest type that holds every one, after a [`Reading`] where
//! the data proves one. With a sample seen: the same, if the type is *text-exact*, that is, if SQL can give
//! every value back byte for byte as it was written ([`Inferred::text_sql`]); else text. So whatever comes
//! later, a column can be widened in place and no value stored so far has lost anything.

use super::column::ColumnState;
use super::facts::{Currency, DateFacts, Extent, SideFacts, dressed, timed};
use super::grouped::only_group;
use super::kinds::Kinds;
use super::layout::casing_sql;
use super::number::odd;
use super::words::{are_booleans, are_plain, prefix};
use howdah_model::{DateOrder, Reading, counted};

/// Significant digits up to which every decimal comes back from a double: C's `DBL_DIG`. With more, a double
/// may hold another number, as it does for 90071992547409931.
const DOUBLE_DIGITS_MAX: u16 = 15;

/// Decimals behind which a double could become zero.
const DOUBLE_DECIMALS_MAX: u16 = 300;

/// Why `12E3` is text.
const NAMES_WITH_EXPONENT: &str =
    "digits with an E among them, which need not be numbers: none has a point or a sign";

/// The type of a column, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inferred {
    /// As in CREATE TABLE: `bigint`, `numeric(12,2)`.
    pub type_name: String,
    /// How the values become what PostgreSQL reads; `None`: they are, as they stand.
    pub reading: Option<Reading>,
    /// What in the data says so, without its values.
    pub evidence: String,
    /// No further value can change the type: it is text, and not for want of values.
    pub settled: bool,
    /// SQL that gives every value back as it was written, with `{}` for the column: see
    /// [`Inferred::text_sql`]. `None`: nothing does.
    pub text_template: Option<String>,
}

impl Inferred {
    /// SQL for the text of every value of this column (an expression, quoted already) byte for byte as it
    /// was written, in a session with DateStyle ISO: what a column is widened with. `None`: the type is not
    /// text-exact.
    pub fn text_sql(&self, column_sql: &str) -> Option<String> {
        self.text_template.as_ref().map(|template| template.replace("{}", column_sql))
    }
}

/// A type that fits all values, before it is asked whether it may be used.
struct Candidate {
    kind: Kinds,
    type_name: String,
    reading: Option<Reading>,
    evidence: String,
}

impl Candidate {
    fn new(kind: Kinds, type_name: &str, evidence: &str) -> Candidate {
        Candidate { kind, type_name: type_name.to_owned(), reading: None, evidence: evidence.to_owned() }
    }
}

impl ColumnState {
    /// The type. `complete`: all values of the column were seen; else only a sample.
    pub fn finish(&self, complete: bool) -> Inferred {
        if !self.seen {
            return Inferred { settled: false, ..text("there is no value") };
        }
        match self.candidate() {
            Err(evidence) => text(&evidence),
            Ok(Candidate { kind, type_name, reading, evidence }) => {
                let text_template = self.text_template(kind);
                if complete || text_template.is_some() {
                    return Inferred { type_name, reading, evidence, settled: false, text_template };
                }
                text(&format!("{type_name} so far, in spellings that it would not give back"))
            }
        }
    }

    /// Why the column is one of text though all its values are written as numbers, days or the like, where
    /// that may surprise: what a code or a number of a telephone is like does not.
    pub fn doubt_of_text(&self, complete: bool) -> Option<String> {
        if !self.seen || self.possible.is_empty() || self.possible.meet(Kinds::BOOLEAN) {
            return None;
        }
        match self.candidate() {
            Ok(_) => Some(self.finish(complete))
                .filter(|found| found.type_name == "text")
                .map(|found| found.evidence),
            Err(_) if self.possible == Kinds::DIGITS => None,
            Err(why) => Some(why),
        }
    }

    /// What `--types` may say of days that are all written in numbers: a bare type would leave their order to
    /// the server.
    pub fn spelled_types(&self) -> Vec<String> {
        let (true, Ok(type_name)) =
            (self.possible.meet(Kinds::DATE) && self.dates.ordered, date_type(&self.dates))
        else {
            return Vec::new();
        };
        self.dates.orders_left().map(|order| format!("{type_name}:{}", order_name(order))).collect()
    }

    /// No value was seen yet.
    pub fn is_empty(&self) -> bool {
        !self.seen
    }

    /// The narrowest type that holds every value; else why it is text.
    fn candidate(&self) -> Result<Candidate, String> {
        let can_be = |kind: Kinds| self.possible.meet(kind);
        if can_be(Kinds::BOOLEAN) {
            return self.boolean();
        }
        if can_be(Kinds::INTEGER) {
            return Ok(self.integer());
        }
        if can_be(Kinds::DECIMAL) && (self.integers.were_seen() || self.decimals.were_seen()) {
            return Ok(self.decimal());
        }
        // Where no number has a point or an exponent, a zero with a minus is no reason for fractions.
        if can_be(Kinds::FLOAT) && (self.sure_float || self.bare_exponent) {
            return self.float();
        }
        if can_be(Kinds::DATE) {
            return self.date();
        }
        if can_be(Kinds::NAMED_DATE) {
            return self.named_date();
        }
        let (json_type, json_evidence) = match self.repeats_keys {
            false => ("jsonb", "JSON objects and arrays"),
            true => ("json", "JSON objects and arrays, some with a key twice, which jsonb would drop"),
        };
        for (kind, type_name, evidence) in [
            (Kinds::TIME, "time", "times of day"),
            (Kinds::UUID, "uuid", "32 hexadecimal digits in five groups"),
            (Kinds::JSON, json_type, json_evidence),
            (Kinds::INET, "inet", "addresses of hosts or networks"),
        ] {
            if can_be(kind) {
                return Ok(Candidate::new(kind, type_name, evidence));
            }
        }
        if can_be(Kinds::GROUPED) {
            return self.number_in_groups();
        }
        Err(self.why_text())
    }

    fn boolean(&self) -> Result<Candidate, String> {
        if are_booleans(self.booleans) {
            return Ok(Candidate::new(Kinds::BOOLEAN, "boolean", "words for true and false"));
        }
        Err("words that are true or false only with others beside them".to_owned())
    }

    fn integer(&self) -> Candidate {
        let small = self.integers.within(i64::from(i32::MIN), i64::from(i32::MAX));
        let type_name = if small { "int" } else { "bigint" };
        let evidence = format!("integers of up to {}", counted(self.integers.digits(), "digit"));
        Candidate::new(Kinds::INTEGER, type_name, &evidence)
    }

    fn decimal(&self) -> Candidate {
        let before = self.decimals.before_max.max(self.integers.digits()).max(1);
        let (type_name, decimals) = match self.decimals.same_decimals(&self.integers) {
            Some(same) => (numeric(before, same), format!("{same}")),
            None => ("numeric".to_owned(), format!("up to {}", self.decimals.decimals_max)),
        };
        let whole = counted(before, "digit");
        let nan = if self.has_nan { ", and NaN" } else { "" };
        let evidence = format!("numbers of up to {whole} before the point and {decimals} behind it{nan}");
        Candidate::new(Kinds::DECIMAL, &type_name, &evidence)
    }

    /// Numeric reads exponents, too, and keeps all digits. `12E3` among integers may be an article number.
    fn float(&self) -> Result<Candidate, String> {
        if self.bare_exponent && !self.sure_float {
            return Err(NAMES_WITH_EXPONENT.to_owned());
        }
        if self.keeps_double(&self.floats) {
            return Ok(Candidate::new(Kinds::FLOAT, "double precision", "numbers, some with an exponent"));
        }
        let evidence = "numbers, some with an exponent and some with more digits than double precision keeps";
        Ok(Candidate::new(Kinds::FLOAT, "numeric", evidence))
    }

    /// A double prints these numbers and the integers among them as they are.
    fn keeps_double(&self, extent: &Extent) -> bool {
        let digits = extent.significant_max.max(self.integers.digits());
        digits <= DOUBLE_DIGITS_MAX && extent.decimals_max <= DOUBLE_DECIMALS_MAX
    }

    fn date(&self) -> Result<Candidate, String> {
        let type_name = date_type(&self.dates)?;
        if !self.dates.ordered {
            return Ok(Candidate::new(Kinds::DATE, type_name, "dates with the year first"));
        }
        let Some(order) = self.dates.proven() else {
            let orders: Vec<&str> = self.dates.orders_left().map(order_name).collect();
            return Err(format!("dates that may be {}", orders.join(" or ")));
        };
        let evidence = format!("dates in the order {}, no other fits all", order_name(order));
        let reading = Some(Reading::Date(order));
        Ok(Candidate { reading, ..Candidate::new(Kinds::DATE, type_name, &evidence) })
    }

    fn named_date(&self) -> Result<Candidate, String> {
        let type_name = date_type(&self.named_dates)?;
        let reading = Some(Reading::MonthName);
        let evidence = "dates with English names of months";
        Ok(Candidate { reading, ..Candidate::new(Kinds::NAMED_DATE, type_name, evidence) })
    }

    /// Numbers in other people's spelling, if the values prove which.
    fn number_in_groups(&self) -> Result<Candidate, String> {
        let facts = &self.grouped;
        let has = |flag: u16| facts.dressed & flag != 0;
        let Some(decimal) = self.decimal_sign() else {
            let why = "numbers whose comma or point may stand before a fraction or between groups";
            return Err(why.to_owned());
        };
        let reading = self.number_reading(decimal)?;
        let side = self.side(decimal);
        let is_amount = has(dressed::PERCENT | dressed::AMOUNT) || side.extent.decimals_max > 0;
        if matches!(reading, Reading::Number { group: Some(_), .. }) && !is_amount {
            return Err("digits in groups of three, which need not be numbers".to_owned());
        }
        let all_in_parentheses = has(dressed::PARENTHESES) && !self.some(dressed::NO_PARENTHESES);
        // `(1,2)` everywhere is a pair.
        let is_open = !is_amount || decimal == ',' && self.may_be_lists();
        if all_in_parentheses && is_open {
            return Err("digits in parentheses, which need not be numbers".to_owned());
        }
        // As in `1990-`: from that year on.
        if has(dressed::MINUS_BEHIND) && !is_amount {
            return Err("digits with a hyphen behind, which need not be numbers".to_owned());
        }
        if has(dressed::BARE_EXPONENT) && !has(dressed::EXPONENT) && side.extent.decimals_max == 0 {
            return Err(NAMES_WITH_EXPONENT.to_owned());
        }
        let exponents =
            if has(dressed::EXPONENT | dressed::BARE_EXPONENT) { ", some with an exponent" } else { "" };
        let evidence = format!("numbers written like {}{exponents}", super::spelling(&reading));
        let type_name = self.grouped_type(side);
        Ok(Candidate { kind: Kinds::GROUPED, type_name, reading: Some(reading), evidence })
    }

    /// All values are numbers if a comma is their decimal sign, and nothing else says that they are numbers:
    /// no groups, no sign of a currency or of percent, no exponent. They may be pairs.
    pub fn may_be_lists(&self) -> bool {
        let is_grouped = self.seen
            && self.possible.meet(Kinds::GROUPED)
            && self.grouped.dressed & dressed::EXPONENT == 0
            && !self.possible.meet(Kinds::PLAIN_NUMBERS.or(Kinds::DATE));
        let reading = self.decimal_sign().filter(|_| is_grouped).map(|sign| self.number_reading(sign));
        matches!(
            reading,
            Some(Ok(Reading::Number { group: None, decimal: ',', currency: false, percent: false, .. }))
        )
    }

    /// All values are numbers, and the decimal sign of some is a point.
    pub fn has_points(&self) -> bool {
        self.seen && self.possible.meet(Kinds::DECIMAL) && self.decimals.were_seen()
    }

    /// The decimal sign of all numbers, where they leave one open or have none.
    pub(super) fn decimal_sign(&self) -> Option<char> {
        match self.grouped.groups() {
            (0, _) => Some(','),
            (_, 0) => Some('.'),
            _ => (self.grouped.dressed & dressed::POINT_OR_COMMA == 0).then_some('.'),
        }
    }

    /// The reading of all numbers with this decimal sign, which must be one that they can have.
    pub(super) fn number_reading(&self, decimal: char) -> Result<Reading, String> {
        let facts = &self.grouped;
        if facts.currency == Currency::Several {
            return Err("amounts in several currencies".to_owned());
        }
        let percent = facts.dressed & dressed::PERCENT != 0;
        if percent && self.some(dressed::NO_PERCENT) {
            return Err("numbers with a sign of percent and without".to_owned());
        }
        let (beside_dot, beside_comma) = facts.groups();
        let group = only_group(if decimal == '.' { beside_dot } else { beside_comma });
        if group.is_some() && facts.are_doubtful(&self.integers) {
            let why =
                "digits in groups of three, which may be addresses or stand beside numbers without groups";
            return Err(why.to_owned());
        }
        let sign = match facts.currency {
            _ if percent => Some('%'),
            Currency::One(sign) => Some(sign),
            Currency::None | Currency::Several => None,
        };
        Ok(Reading::Number {
            group,
            decimal,
            currency: facts.currency != Currency::None,
            parentheses: facts.dressed & dressed::PARENTHESES != 0,
            minus_behind: facts.dressed & dressed::MINUS_BEHIND != 0,
            percent,
            sign,
        })
    }

    /// Some number lacks a dress: this flag is there, or integers are, which have none.
    fn some(&self, undressed: u16) -> bool {
        self.grouped.dressed & undressed != 0 || self.integers.were_seen()
    }

    /// Numbers in other people's spelling, as seen with this decimal sign.
    pub(super) fn side(&self, decimal: char) -> &SideFacts {
        if decimal == '.' { &self.grouped.dot } else { &self.grouped.comma }
    }

    fn grouped_type(&self, side: &SideFacts) -> String {
        let before = side.extent.before_max.max(self.integers.digits()).max(1);
        if self.grouped.dressed & (dressed::EXPONENT | dressed::BARE_EXPONENT) != 0 {
            let type_name = if self.keeps_double(&side.extent) { "double precision" } else { "numeric" };
            return type_name.to_owned();
        }
        match (side.extent.same_decimals(&self.integers), before) {
            (Some(0), ..=9) => "int".to_owned(),
            (Some(0), ..=18) => "bigint".to_owned(),
            (Some(decimals), _) => numeric(before, decimals),
            (None, _) => "numeric".to_owned(),
        }
    }

    /// SQL that gives the values of this kind back as they were written, with `{}` for the column.
    fn text_template(&self, kind: Kinds) -> Option<String> {
        if self.inexact.meet(kind) {
            return None;
        }
        match kind {
            Kinds::DATE => self.dates.spelling.sql(),
            Kinds::NAMED_DATE => None,
            Kinds::TIME => self.times.sql(),
            Kinds::BOOLEAN if !are_plain(self.booleans) => None,
            Kinds::BOOLEAN => casing_sql(self.boolean_casings),
            Kinds::UUID => casing_sql(self.uuid_casings),
            Kinds::INET => match self.prefixes {
                prefix::NONE => Some("host({})".to_owned()),
                prefix::LENGTH => Some("{}::text".to_owned()),
                _ => None,
            },
            _ => Some("{}::text".to_owned()),
        }
    }

    fn why_text(&self) -> String {
        if self.possible.meet(Kinds::FLOAT) && !self.possible.meet(Kinds::DIGITS) {
            return "NaN without a number".to_owned();
        }
        if !self.possible.meet(Kinds::DIGITS) {
            return "no narrower type holds every value".to_owned();
        }
        let reasons = [
            (odd::LEADING_ZERO, "leading zeros"),
            (odd::PLUS, "signs of plus"),
            (odd::MINUS_ZERO, "a zero with a minus"),
            (odd::LONG, "more digits than bigint holds"),
        ];
        let found: Vec<&str> =
            reasons.iter().filter(|(flag, _)| self.odd & flag != 0).map(|(_, reason)| *reason).collect();
        format!("digits with {}, which a number would lose", found.join(", "))
    }
}

fn text(evidence: &str) -> Inferred {
    Inferred {
        type_name: "text".to_owned(),
        reading: None,
        evidence: evidence.to_owned(),
        settled: true,
        text_template: Some("{}".to_owned()),
    }
}

/// `numeric` of so many digits, as narrow as it can be declared.
fn numeric(before: u16, decimals: u16) -> String {
    match before.saturating_add(decimals) {
        digits @ ..=1000 => format!("numeric({digits},{decimals})"),
        _ => "numeric".to_owned(),
    }
}

/// A date without a time of day is midnight among times without an offset; among those with one it would
/// depend on the session's time zone, as would a time without.
fn date_type(facts: &DateFacts) -> Result<&'static str, String> {
    match facts.timed {
        timed::BARE => Ok("date"),
        timed::ZONED => Ok("timestamptz"),
        flags if flags & timed::ZONED == 0 => Ok("timestamp"),
        _ => Err("times with an offset from UTC and without".to_owned()),
    }
}

pub(super) fn order_name(order: DateOrder) -> &'static str {
    match order {
        DateOrder::Ymd => "y/m/d",
        DateOrder::Dmy => "d/m/y",
        DateOrder::Mdy => "m/d/y",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(values: &[&str]) -> ColumnState {
        let mut state = ColumnState::default();
        values.iter().for_each(|value| state.observe(value.as_bytes()));
        state
    }

    /// The type with all values seen, the spelling of its reading behind a colon.
    fn of(values: &[&str]) -> String {
        let inferred = state(values).finish(true);
        let spelled = inferred.reading.map(|reading| format!(":{}", super::super::spelling(&reading)));
        inferred.type_name + &spelled.unwrap_or_default()
    }

    fn of_sample(values: &[&str]) -> String {
        let inferred = state(values).finish(false);
        assert_eq!(inferred.reading, None);
        inferred.type_name
    }

    #[test]
    fn pairs_are_no_numbers() {
        assert_eq!(of(&["(1,2)", "(3,4)", "(10,20)"]), "text");
        assert!(of(&["(1.50)", "(3.25)"]).starts_with("numeric"));
        assert!(of(&["(1,50)", "3,25", "10,20"]).starts_with("numeric"));
        assert!(of(&["(1,50 €)", "(3,25 €)", "(10,20 €)"]).starts_with("numeric"));
        assert!(of(&["(1.234,50)", "(3,25)"]).starts_with("numeric"));
        for (values, are_lists, have_points) in [
            (&["1,7", "3,4", "10,20"][..], true, false),
            (&["1,7 €", "3,4 €"], false, false),
            (&["1.234,7", "3,4"], false, false),
            (&["1,234", "3,456"], false, false),
            (&["1.5", "3"], false, true),
            (&["1", "3"], false, false),
            (&["x", "1.5"], false, false),
        ] {
            let state = state(values);
            assert_eq!((state.may_be_lists(), state.has_points()), (are_lists, have_points), "{values:?}");
        }
    }

    #[test]
    fn a_column_has_the_narrowest_type_that_holds_every_value() {
        for (values, expected) in [
            (&["1", "-2", "0"][..], "int"),
            (&["1", "2147483647", "-2147483648"], "int"),
            (&["2147483648"], "bigint"),
            (&["-9223372036854775808", "1"], "bigint"),
            (&["1.50", "12.25"], "numeric(4,2)"),
            (&["1.50", "12.2"], "numeric"),
            (&["1.50", "1000"], "numeric"),
            (&[".5", "1.5"], "numeric(2,1)"),
            (&["0.3", "1e-05"], "double precision"),
            (&["123456789012.345", "1e5"], "double precision"),
            (&["6.123233995736766e-17", "1.2345678901234567E+16"], "double precision"),
            (&["1.234567890123456789E+20", "1"], "numeric"),
            (&["0.30000000000000004", "1e-05"], "numeric"),
            (&["90071992547409931", "1e+5"], "numeric"),
            (&["12E3", "0.5"], "double precision"),
            (&["12E3", "1e-05"], "double precision"),
            (&["12345678901234.567", "-0.0"], "numeric"),
            (&["1.5", "-0.0"], "double precision"),
            (&["1234567890.123456789", "1e5"], "numeric"),
            (&["true", "FALSE"], "boolean"),
            (&["Y", "n", "yes"], "boolean"),
            (&["0", "1"], "int"),
            (&["N"], "text"),
            (&["t", "no"], "text"),
            (&["2024-01-31"], "date"),
            (&["2024/1/31"], "date"),
            (&["2024-01-31", "2024-01-31 10:00"], "timestamp"),
            (&["2024-01-31T10:00:00.123"], "timestamp"),
            (&["2024-01-31T10:00:00Z", "2024-01-31 10:00:00+02"], "timestamptz"),
            (&["2024-01-31T10:00:00Z", "2024-01-31 10:00:00"], "text"),
            (&["2024-01-31T10:00:00Z", "2024-01-31"], "text"),
            (&["10:00", "23:59:59.5"], "time"),
            (&["9:05", "10:15"], "text"),
            (&["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"], "uuid"),
            (&["{\"a\": 1}", "[]"], "jsonb"),
            (&["{\"a\": 1}", "{\"a\": 1, \"a\": 2}"], "json"),
            (&["{1,2}"], "text"),
            (&["10.0.0.1", "::1", "10.0.0.0/8"], "inet"),
            (&["1.2.3"], "text"),
            (&["20240131"], "int"),
            (&["1706695445"], "int"),
            (&[" 12", "13 "], "int"),
            (&["x", "12"], "text"),
            (&["NaN", "1.5"], "numeric(2,1)"),
            (&[""], "text"),
            (&["12", ""], "text"),
            (&[], "text"),
        ] {
            assert_eq!(of(values), expected, "{values:?}");
        }
    }

    #[test]
    fn digits_that_are_names_stay_text() {
        for values in [
            &["007", "123"][..],
            &["+4930123456"],
            &["-0", "1"],
            &["9223372036854775808"],
            &["12345678901234567890", "1.5"],
            &["12E3", "45e1"],
            &["12E3", "1234"],
            &["555 123 456", "555 987 654"],
            &["123.456.789"],
            &["(1)", "(2)"],
            &["1990-", "1985"],
            &["555-", "12-34"],
            &["1.10.2", "1.2.10"],
            &["8", "10.160.130.149"],
            &["10.160.130.149", "1.234"],
            &["1000", "1.234.567"],
            &["1000", "1.234.567", "10.160.130.149"],
            &["1000", "1,234,567"],
            &[" 1000", "1 234"],
            &["12,5", "1.234.567", "1000"],
            &["1234,5", "1.234.567"],
            &["1234.50", "1,234,567"],
        ] {
            assert_eq!(of(values), "text", "{values:?}");
        }
        let evidence = state(&["007", "+5"]).finish(true).evidence;
        assert_eq!(evidence, "digits with leading zeros, signs of plus, which a number would lose");
    }

    #[test]
    fn the_data_proves_a_reading_or_the_column_is_text() {
        for (values, expected) in [
            (&["31/01/2024", "01/02/2024"][..], "date:d/m/y"),
            (&["01/31/2024", "01/02/2024"], "date:m/d/y"),
            (&["01/02/2024", "03/04/2024"], "text"),
            (&["31/01/2024", "01/31/2024"], "text"),
            (&["01/01/2024", "02/02/2024"], "date:m/d/y"),
            (&["31.01.2024 10:00"], "timestamp:d/m/y"),
            (&["31/12/24"], "text"),
            (&["31/12/24", "1/1/24"], "date:d/m/y"),
            (&["12/31/24"], "date:m/d/y"),
            (&["31/01/2024", "2024-02-01"], "date:d/m/y"),
            (&["Jan 31, 2024", "1 February 2024 10:00"], "timestamp:month"),
            (&["1,234"], "text"),
            (&["1,234", "12,345,678"], "int:1,234.56"),
            (&["1,234", "12,34"], "numeric:1234,56"),
            (&["1.234,56", "12,50"], "numeric(6,2):1.234,56"),
            (&["1.234", "1.234.567"], "int:1.234,56"),
            (&["1.234", "2.345"], "numeric(4,3)"),
            (&["1.234.567", "999"], "int:1.234,56"),
            (&["1.234.567.890", "1.100.200.100"], "bigint:1.234,56"),
            (&["1.000.000.000", "5"], "bigint:1.234,56"),
            (&["1000", "1.234,56"], "numeric:1.234,56"),
            (&["$3.459", "$3.299"], "text"),
            (&["1,759 €", "1,699 €"], "text"),
            (&["€1,759"], "text"),
            (&["1,459 $"], "text"),
            (&["$54,000", "$101,500"], "int:$1,234.56"),
            (&["£1,250", "£980"], "int:$1,234.56"),
            (&["-$1,250", "$3.459"], "numeric:$1,234.56"),
            (&["$1,250", "$12,50"], "text"),
            (&["1000", "$1,234"], "int:$1,234.56"),
            (&["1000", "$1,234", "$1,234,567"], "int:$1,234.56"),
            (&["$3.459", "$3.2999"], "numeric:$1234.56"),
            (&["$1,234", "$5.50"], "numeric:$1,234.56"),
            (&["$74.69"], "numeric(4,2):$1234.56"),
            (&["$1", "€1"], "text"),
            (&["1 234", "56"], "int:1 234.56"),
            (&["1.234,56-", "12,50"], "numeric(6,2):1.234,56-"),
            (&["12.00-", "3.50"], "numeric(4,2):1234.56-"),
            (&["(12.5)", "12.5-"], "numeric(3,1):(1234.56)-"),
            (&["12.5 CR", "12.5"], "text"),
            (&["(12)", "12.5"], "numeric:(1234.56)"),
            (&["12%", "3.5 %"], "numeric:1234.56%"),
            (&["12%", "3.5"], "text"),
            (&["0,1", "1,5e-05", "3,0"], "double precision:1234,56"),
            (&["0,5", "1e-05", "2E+10", "12E3", "7"], "double precision:1234,56"),
            (&["1,5e-05", "0,30000000000000004"], "numeric:1234,56"),
            (&["1,234567890123456789E+20", "1"], "numeric:1234,56"),
            (&["1.234,56", "2,5e+10"], "double precision:1.234,56"),
            (&["1,5e-05", "1.5e-05"], "text"),
            (&["1,5e-05", "1.5"], "text"),
            (&["1,5e-05", "007"], "text"),
            (&["12E3", "1 234"], "text"),
            (&["1,234,567,890,123"], "bigint:1,234.56"),
            (&["1,234,567,890,123,456,789"], "numeric(19,0):1,234.56"),
        ] {
            assert_eq!(of(values), expected, "{values:?}");
        }
        let evidence = state(&["01/02/2024"]).finish(true).evidence;
        assert_eq!(evidence, "dates that may be d/m/y or m/d/y");
    }

    #[test]
    fn after_a_sample_only_types_that_give_every_value_back_are_used() {
        for (values, expected) in [
            (&["1", "2"][..], "int"),
            (&["1.50", "2.25"], "numeric(3,2)"),
            (&["1.5", "2"], "numeric"),
            (&["true", "false"], "boolean"),
            (&["True"], "boolean"),
            (&["True", "false"], "text"),
            (&["t", "f"], "text"),
            (&["2024-01-31"], "date"),
            (&["2024-1-31"], "text"),
            (&["2024-01-31 10:00:00", "2024-01-31 10:00:00.5"], "timestamp"),
            (&["2024-01-31 10:00:00", "2024-01-31"], "text"),
            (&["2024-01-31T10:00:00", "2024-01-31T10:00:01.5"], "timestamp"),
            (&["2024-01-31T10:00:00", "2024-01-31T10:00:01.50"], "text"),
            (&["2024-01-31T10:00:00", "2024-01-31 10:00:00"], "text"),
            (&["2024-01-31T10:00:00.000Z", "2024-01-31T10:00:00.250Z"], "timestamptz"),
            (&["2024/01/31"], "date"),
            (&["2024-01-31 10:00:00+02"], "text"),
            (&["2024-01-31 10:00:00+00"], "timestamptz"),
            (&["10:00:00"], "time"),
            (&["10:00"], "time"),
            (&["10:00", "10:00:00"], "text"),
            (&["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"], "uuid"),
            (&["A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"], "uuid"),
            (&["A0EEBC99-9c0b-4ef8-bb6d-6bb9bd380a11"], "text"),
            (&["A0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"], "text"),
            (&["10.0.0.0/8"], "inet"),
            (&["10.0.0.1"], "inet"),
            (&["10.0.0.1", "10.0.0.0/8"], "text"),
            (&["{}"], "text"),
            (&["1e5"], "text"),
            (&["1.50", "NaN"], "numeric(3,2)"),
            (&["15", "NaN"], "numeric"),
            (&["1.50", "nan"], "text"),
            (&["NaN"], "text"),
            (&["1.5", "-0"], "text"),
            (&[" 1"], "text"),
            (&["31/01/2024"], "text"),
            (&["$1.50"], "text"),
        ] {
            assert_eq!(of_sample(values), expected, "{values:?}");
        }
        assert!(!state(&[]).finish(false).settled && state(&["x"]).finish(false).settled);
    }
}
