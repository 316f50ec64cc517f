//! Keeps the columns of a new table wide enough for what comes.
//!
//! A table made from a sample has the narrowest types that hold the sample, and only such as give back every
//! value's own text. Each chunk's values are looked at before the chunk is sent; where one does not fit, the
//! column gets the type that holds all values seen so far, in place, and the load goes on. What is stored
//! already does not change: it passes through its text, which is the file's.

use crate::Context;
use crate::feed::Asker;
use crate::misfits::Misfits;
use crate::scarce::broken_off;
use howdah_model::{Arrival, Event, Reading, Relation, Result, counted};
use howdah_target::define::{self, Became, Wider};
use howdah_target::sql::quote_ident;
use howdah_transcode::infer::{
    ColumnState, Inferred, Watch, are_held_by_numeric, are_plain_numbers, are_wall_times, digits_as_read,
    misfit,
};
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// A column whose type was chosen from a sample, or may be given a wider one.
#[derive(Debug, Clone)]
pub struct Open {
    /// The table.
    pub relation: Relation,
    /// The column.
    pub name: String,
    /// Its type in the table.
    pub type_name: String,
    /// What the values are: in a column that this job made, those of the sample and of all chunks so far; in
    /// one that others made, those of the chunks of this run.
    pub state: ColumnState,
    /// This job made the column, and all that is in it was written as the state knows.
    pub made: bool,
    /// Its values are in other people's spelling, and come as PostgreSQL reads them.
    pub read: bool,
}

/// All such columns of one load.
#[derive(Debug, Default)]
pub(crate) struct Widener {
    tables: BTreeMap<Relation, Mutex<Columns>>,
    fixed: bool,
}

/// The open columns of a table by name.
type Columns = BTreeMap<String, Open>;

/// No column of such a load is altered while its rows come: a staging table has the types that the table had
/// when it was made, and no other session gets at a table while its frozen rows come.
pub(crate) fn is_fixed(arrival: &Arrival) -> bool {
    arrival.is_staged() && !arrival.check || arrival.freeze
}

/// Tells field number and value of all that is not NULL in a chunk.
pub(crate) type Values<'a> = &'a dyn Fn(&mut dyn FnMut(usize, &[u8]));

/// The columns of one kind of file that are looked at, and the values of one chunk.
pub(crate) struct Watches {
    columns: Vec<Option<(String, Watch)>>,
}

impl Watches {
    /// Takes in the value of field `no`.
    #[inline]
    pub(crate) fn observe(&mut self, no: usize, value: &[u8]) {
        if let Some(Some((_, watch))) = self.columns.get_mut(no) {
            watch.observe(value);
        }
    }
}

impl Widener {
    /// Watches over these columns.
    pub(crate) fn new(open: Vec<Open>, arrival: &Arrival) -> Widener {
        let mut tables: BTreeMap<Relation, Columns> = BTreeMap::new();
        for column in open {
            tables.entry(column.relation.clone()).or_default().insert(column.name.clone(), column);
        }
        let tables = tables.into_iter().map(|(name, columns)| (name, Mutex::new(columns))).collect();
        Widener { tables, fixed: is_fixed(arrival) }
    }

    /// Columns stay as they are: what does not fit is told by [`Widener::misfit`], and [`Widener::settle`] is
    /// not for it.
    pub(crate) fn is_fixed(&self) -> bool {
        self.fixed
    }

    /// Watches for one chunk of records with these fields; `None` when no column of the table is open.
    pub(crate) fn watches(&self, relation: &Relation, fields: &[Option<String>]) -> Option<Watches> {
        let open = self.tables.get(relation)?.lock();
        let watch = |field: &Option<String>| {
            let column = open.get(field.as_ref()?).filter(|column| column.type_name != "text")?;
            let chosen = if column.made { &column.state } else { &ColumnState::default() };
            Some((column.name.clone(), Watch::new(&chosen.finish(false))))
        };
        let columns: Vec<_> = fields.iter().map(watch).collect();
        columns.iter().any(Option::is_some).then_some(Watches { columns })
    }

    /// Makes the table wide enough for what the watches saw; `values` tells the chunk's values once more.
    /// Called before the chunk is sent, from a thread that may block; sessions that hold the table end their
    /// chunk meanwhile, since none waits for this one.
    ///
    /// # Errors
    /// Those of the session and of ALTER TABLE.
    pub(crate) fn settle(
        &self,
        asker: &Asker<'_>,
        relation: &Relation,
        watches: Watches,
        values: Values<'_>,
    ) -> Result<()> {
        let Some(table) = self.tables.get(relation) else { return Ok(()) };
        let context = asker.context();
        let mut open = table.lock();
        let seen = of_others(&open, &watches);
        let changes = changes(asker, relation, &mut open, watches, values)?;
        if changes.is_empty() {
            join(&mut open, &seen);
            return Ok(());
        }
        let alter = || async {
            let session = context.connection.open().await?;
            let widening =
                define::evolve(&session, relation, asker.lock_timeout_ms(), &[], &changes, &from_present);
            // It may write the whole table anew.
            let done = context.connection.attend_unless_scarce(&session, widening).await?;
            done.map_err(|scarce| {
                broken_off(format!("making columns of {relation} wider was broken off: {scarce}"))
            })
        };
        let names: Vec<&str> = changes.iter().map(|change| change.name.as_str()).collect();
        let what = format!("making {} of {relation} wider", names.join(", "));
        context.listener.on_event(&Event::Phase { what: Some(what) });
        let became = asker.wait_patiently(alter);
        context.listener.on_event(&Event::Phase { what: None });
        for Became { name, type_name, is_changed } in became? {
            let Some(column) = open.get_mut(&name) else { continue };
            if is_changed {
                let is_mixed =
                    type_name == "text" && !column.made && !gives_back(&column.type_name, &column.state);
                let mixed = if is_mixed { MIXED } else { "" };
                let message =
                    format!("column {name} of {relation} became {type_name}: a value did not fit{mixed}");
                context.tell(message);
            }
            column.type_name = type_name;
        }
        join(&mut open, &seen);
        Ok(())
    }

    /// A column that would have to be wider for these values. Where bad records do not end the load
    /// (`skips`), only one for which the server would store other values than these: what it refuses is left
    /// out with its record.
    ///
    /// # Errors
    /// Those of the session.
    pub(crate) fn misfit(
        &self,
        asker: &Asker<'_>,
        relation: &Relation,
        watches: Watches,
        values: Values<'_>,
        skips: bool,
    ) -> Result<Option<Misfit>> {
        let Some(table) = self.tables.get(relation) else { return Ok(None) };
        let mut open = table.lock().clone();
        let wider = changes(asker, relation, &mut open, watches, values)?;
        let is_left_out = |wider: &Wider| {
            skips
                && takes_only_its_values(&wider.from)
                && open.get(&wider.name).is_some_and(|column| !column.made)
        };
        let wider = wider.into_iter().find(|wider| !is_left_out(wider));
        Ok(wider.and_then(|Wider { name, type_name: wanted, .. }| {
            let has = open.get(&name)?.type_name.clone();
            Some(Misfit { name, has, wanted })
        }))
    }
}

/// What a value of the type is not the server refuses: it rounds and cuts nothing to make it one.
fn takes_only_its_values(type_name: &str) -> bool {
    matches!(short(type_name), "smallint" | "integer" | "bigint" | "boolean" | "uuid")
}

/// A column that does not hold some value, its type, and one that would.
pub(crate) struct Misfit {
    /// Of the column.
    pub name: String,
    /// Its type.
    pub has: String,
    /// The type that would.
    pub wanted: String,
}

/// What else there is to say of a column of text that began as another type.
const MIXED: &str = "; what came there before is spelled as PostgreSQL writes it (7 for 007), and what follows as in the files";

/// What a chunk holds of columns that others made.
fn of_others(open: &Columns, watches: &Watches) -> Vec<(String, ColumnState)> {
    let watched = watches.columns.iter().flatten();
    let others = watched.filter(|(name, _)| open.get(name).is_some_and(|column| !column.made));
    others.map(|(name, watch)| (name.clone(), watch.state().clone())).collect()
}

fn join(open: &mut Columns, seen: &[(String, ColumnState)]) {
    for (name, state) in seen {
        if let Some(column) = open.get_mut(name) {
            column.state.join(state);
        }
    }
}

/// What the columns of a table must become for the sake of these values, which those that this job made
/// remember.
fn changes(
    asker: &Asker<'_>,
    relation: &Relation,
    open: &mut Columns,
    watches: Watches,
    values: Values<'_>,
) -> Result<Vec<Wider>> {
    let (mut changes, mut others) = (Vec::new(), BTreeMap::new());
    for (no, (name, watch)) in
        watches.columns.into_iter().enumerate().filter_map(|(no, watched)| Some((no, watched?)))
    {
        let Some(column) = open.get_mut(&name) else { continue };
        if !column.made {
            let is_limited = characters(&column.type_name).is_some();
            // Counts since 1970 come with their zone, and only so.
            if column.read && drops_zone_or_day(&column.type_name, watch.state()) {
                continue;
            }
            if is_limited || needed(&column.type_name, watch.state()).is_some() {
                others.insert(no, (name, Misfits::new(&column.type_name)));
            }
            continue;
        }
        let before = column.state.finish(false);
        column.state.join(watch.state());
        let Inferred { type_name, .. } = column.state.finish(false);
        if !holds(&column.type_name, &type_name) {
            let (from, text_sql) = (column.type_name.clone(), text_of_any(&before, &column.type_name, &name));
            changes.push(Wider { name, from, type_name, text_sql });
        }
    }
    if !others.is_empty() {
        values(&mut |no, value| {
            if let Some((_, misfits)) = others.get_mut(&no) {
                misfits.observe(value);
            }
        });
        let context = asker.context();
        let asking = || wider_others(context, relation, &others);
        changes.extend(asker.wait_patiently(asking)?);
    }
    // What is read is of the column's kind; text would hold neither what the files have nor what others have
    // stored.
    changes.retain(|change| {
        change.type_name != "text" || !open.get(&change.name).is_some_and(|column| column.read)
    });
    Ok(changes)
}

/// What columns that others made must become for the sake of these values.
async fn wider_others(
    context: &Context,
    relation: &Relation,
    others: &BTreeMap<usize, (String, Misfits)>,
) -> Result<Vec<Wider>> {
    let session = context.connection.open().await?;
    let mut changes = Vec::new();
    for (name, misfits) in others.values() {
        let asking = misfits.needed(&session, relation, name);
        if let Some(Inferred { type_name, .. }) = context.connection.attend(&session, asking).await? {
            let (from, text_sql) = (misfits.has().to_owned(), text_sql(misfits.has(), name));
            changes.push(Wider { name: name.clone(), from, type_name, text_sql });
        }
    }
    Ok(changes)
}

/// What a column must become that has another type by now than its new one was chosen for, since another
/// load, or somebody, has changed it: what is stored there was stored by others.
pub(crate) fn from_present(change: &Wider, has: &str) -> Option<Wider> {
    if same_type(&change.from, has) {
        return Some(change.clone());
    }
    let type_name = wider(has, &change.type_name).filter(|_| is_inferred(has))?;
    let (name, from, text_sql) = (change.name.clone(), has.to_owned(), text_sql(has, &change.name));
    Some(Wider { name, from, type_name, text_sql })
}

/// Any characters are a value of the type, as far as it has room for them.
pub(crate) fn holds_text(type_name: &str) -> bool {
    short(type_name) == "text" || characters(type_name).is_some()
}

/// The type is one that inference gives, or alike: what it means is known here.
pub(crate) fn is_inferred(type_name: &str) -> bool {
    let known = [
        "boolean",
        "date",
        "time",
        "timestamp",
        "timestamptz",
        "uuid",
        "inet",
        "json",
        "jsonb",
        "numeric",
        "text",
    ];
    let name = short(type_name);
    known.contains(&name)
        || digits(name).is_some()
        || name == "double precision"
        || characters(name).is_some()
}

/// What a column which others made must become to hold these values, too; `None` if it holds them as it is.
/// Whether the type gives back every value's own text does not matter there.
pub(crate) fn needed(has: &str, state: &ColumnState) -> Option<Inferred> {
    // The numbers 0 and 1 are truth values to a column that has these.
    let is_truth = short(has) == "boolean" && state.kinds() > 0 && misfit(state, has).is_none();
    if state.is_empty() || is_truth || characters(has).is_some() {
        return None;
    }
    let takes_exponents = has.starts_with("numeric") || matches!(has, "double precision" | "real");
    let inferred = if takes_exponents { state.of_numbers().finish(true) } else { state.finish(true) };
    if holds_numbers(has, state, &inferred.type_name) {
        return None;
    }
    let type_name = wider(has, &inferred.type_name)?;
    // Their digits are too many for integers, and a new column would keep them as they are written.
    if type_name == "text" && is_number(has) && misfit(state, has).is_some() && are_plain_numbers(state) {
        return Some(any_number(inferred));
    }
    Some(Inferred { type_name, ..inferred })
}

/// The same where the values are read in a spelling, as far as their digits tell: a column may hold all
/// numbers of its largest length or only some.
pub(crate) fn needed_as_read(has: &str, state: &ColumnState, reading: &Reading) -> Option<Inferred> {
    let is_day = matches!(reading, Reading::Date(_) | Reading::MonthName);
    if is_day && short(has) == "date" && are_wall_times(state) {
        return Some(told_by("timestamp", "days with a time of day".to_owned()));
    }
    let (before, decimals) = digits_as_read(state, reading)?;
    let (whole, has_decimals) = digits(short(has))?;
    let is_integer = !has.starts_with("numeric");
    if before < whole + u32::from(!is_integer) && decimals <= has_decimals {
        return None;
    }
    let type_name = match before {
        ..=9 if is_integer && decimals == 0 => "integer",
        ..=18 if is_integer && decimals == 0 => "bigint",
        _ => "numeric",
    };
    let evidence = format!(
        "numbers of up to {} before the decimal sign and {decimals} behind it",
        counted(before, "digit")
    );
    Some(told_by(type_name, evidence))
}

/// A type that is no guess.
fn told_by(type_name: &str, evidence: String) -> Inferred {
    Inferred { type_name: type_name.to_owned(), reading: None, evidence, settled: true, text_template: None }
}

/// The column gives these values back as they were written, as far as that is known.
fn gives_back(has: &str, state: &ColumnState) -> bool {
    let Inferred { type_name, text_template, .. } = state.finish(false);
    let (has, spelled) = (short(has), short(&type_name));
    let are_numbers = is_exact_number(has) && is_exact_number(spelled);
    let decimals = |name: &str| digits(name).map(|(_, decimals)| decimals);
    let is_alike = has == spelled || are_numbers && (has == "numeric" || decimals(has) == decimals(spelled));
    // What becomes of addresses is what queries show.
    let shown = if has == "inet" { "host({})" } else { "{}::text" };
    state.is_empty() || has == "json" || is_alike && text_template.as_deref() == Some(shown)
}

/// What a column of numbers becomes for numbers that are beyond it: only strings of digits that are no
/// numbers would need text.
pub(crate) fn any_number(inferred: Inferred) -> Inferred {
    let evidence = "numbers of more digits than the column takes".to_owned();
    Inferred { type_name: "numeric".to_owned(), evidence, ..inferred }
}

/// The numbers themselves fit, though the type that a new column would get for them is a wider one.
fn holds_numbers(has: &str, state: &ColumnState, wanted: &str) -> bool {
    match digits(short(has)) {
        None => false,
        Some((before, decimals)) if has.starts_with("numeric") => {
            are_held_by_numeric(state, before, decimals)
        }
        Some(_) => {
            let are_whole = matches!(short(wanted), "integer" | "bigint");
            are_whole && misfit(state, has).is_none()
        }
    }
}

/// How many characters a column of strings takes, where that is limited.
pub(crate) fn characters(type_name: &str) -> Option<usize> {
    let rest = type_name.strip_prefix("character varying").or_else(|| type_name.strip_prefix("character"))?;
    rest.strip_prefix('(')?.strip_suffix(')')?.parse().ok()
}

/// How many of them a value has. Blanks at the end that are too many are cut off by the server without a
/// word, as the standard wants it.
pub(crate) fn count_characters(value: &[u8]) -> usize {
    let end = value.iter().rposition(|&byte| byte != b' ').map_or(0, |at| at + 1);
    // Each has one byte that does not continue another.
    value[..end].iter().filter(|&&byte| byte & 0xc0 != 0x80).count()
}

/// What such a column becomes for longer values. The server need not rewrite the table for that.
pub(crate) fn without_limit(limit: usize) -> Inferred {
    told_by("text", format!("strings of more than {}", counted(limit, "character")))
}

/// The SQL that gives the text of what is stored, where the usual one would rewrite the table for nothing.
pub(crate) fn text_sql(has: &str, name: &str) -> Option<String> {
    characters(has).map(|_| quote_ident(name))
}

/// The SQL that gives the values of this job as they were written, and those of others, which need not fit
/// that spelling, as PostgreSQL writes them. `None`: nothing gives them as they were written.
fn text_of_any(before: &Inferred, has: &str, name: &str) -> Option<String> {
    let column = quote_ident(name);
    let (text, plain) = (before.text_sql(&column)?, format!("{column}::text"));
    if text == plain {
        return Some(text);
    }
    let is_same = format!("({text})::{has} = {column}");
    // Others may have stored years that no spelling of this job has, and whose text would be no date in it.
    // (Quoted: the numbers are of the type that the server's version gives a year.)
    let is_same = match short(has) {
        "date" | "timestamp" | "timestamptz" => {
            format!("CASE WHEN extract(year FROM {column}) BETWEEN '1' AND '9999' THEN {is_same} END")
        }
        _ => is_same,
    };
    Some(format!("CASE WHEN {is_same} THEN {text} ELSE {plain} END"))
}

/// The type that a column which others made must get to hold values of type `wanted`, too; `None` if it holds
/// them as it is. Whatever is stored must stay what it is: a double gives no long integer back.
fn wider(has: &str, wanted: &str) -> Option<String> {
    let (has, wanted) = (short(has), short(wanted));
    // A number with an exponent is a number, and who made a jsonb knows what it does with keys that come
    // twice.
    let takes = matches!((has, wanted), ("numeric", "double precision") | ("jsonb", "json"));
    if holds(has, wanted) || takes {
        return None;
    }
    let exact = match wanted {
        // It would hold the integers, and round what comes later.
        "double precision" => false,
        // Only who stored them knows in which zone they were wall times.
        "timestamptz" => !matches!(has, "timestamp" | "date"),
        _ => true,
    };
    Some(if exact && holds(wanted, has) {
        wanted.to_owned()
    } else if is_number(has) && is_number(wanted) {
        "numeric".to_owned()
    } else {
        "text".to_owned()
    })
}

/// The column takes such values and drops the zone or the day that they are of, without which they are other
/// ones.
pub(crate) fn drops_zone_or_day(has: &str, state: &ColumnState) -> bool {
    drops_zone(has, state) || drops_day(has, state)
}

/// The column takes such values and drops their offsets from UTC.
pub(crate) fn drops_zone(has: &str, state: &ColumnState) -> bool {
    matches!(short(has), "timestamp" | "date") && state.finish(true).type_name == "timestamptz"
}

/// The column takes such values and drops their times of day.
pub(crate) fn drops_time_of_day(has: &str, state: &ColumnState) -> bool {
    short(has) == "date" && state.finish(true).type_name == "timestamp"
}

/// The column takes such values and drops their days.
pub(crate) fn drops_day(has: &str, state: &ColumnState) -> bool {
    short(has) == "time" && matches!(state.finish(true).type_name.as_str(), "timestamp" | "timestamptz")
}

/// The column takes such numbers and rounds them.
pub(crate) fn drops_decimals(has: &str, state: &ColumnState) -> bool {
    let decimals = digits(has).filter(|_| has.starts_with("numeric")).map(|(_, decimals)| decimals);
    let are_held = |decimals: u32| are_held_by_numeric(state, u32::MAX, decimals);
    decimals.is_some_and(|decimals| are_held(u32::MAX) && !are_held(decimals))
}

/// The type is one of numbers.
pub(crate) fn is_number(type_name: &str) -> bool {
    let name = short(type_name);
    matches!(name, "numeric" | "double precision") || digits(name).is_some()
}

/// The same, of types that give back what they hold.
pub(crate) fn is_exact_number(type_name: &str) -> bool {
    is_number(type_name) && type_name != "double precision"
}

/// A column of type `has` holds whatever one of type `wanted` does. Both are names that inference gives.
pub(crate) fn holds(has: &str, wanted: &str) -> bool {
    let (has, wanted) = (short(has), short(wanted));
    if has == wanted || has == "text" {
        return true;
    }
    match (digits(has), digits(wanted)) {
        (Some((whole, decimals)), Some((wanted_whole, wanted_decimals))) => {
            // A point with nothing behind it is none that an integer may be written with.
            let takes_points = has.starts_with("numeric") || !wanted.starts_with("numeric");
            whole >= wanted_whole && decimals == wanted_decimals && takes_points
        }
        // Unconstrained numeric.
        (None, Some(_)) => matches!(has, "numeric" | "double precision"),
        _ => matches!(
            (has, wanted),
            ("double precision", "numeric")
                | ("json", "jsonb")
                | ("timestamp" | "timestamptz", "date")
                | ("timestamptz", "timestamp")
        ),
    }
}

/// The two are names of one type.
pub(crate) fn same_type(one: &str, other: &str) -> bool {
    short(one) == short(other)
}

/// The catalog's long names, as inference writes them.
fn short(type_name: &str) -> &str {
    match type_name {
        "timestamp without time zone" => "timestamp",
        "timestamp with time zone" => "timestamptz",
        "time without time zone" => "time",
        "int" => "integer",
        other => other,
    }
}

/// Digits before and after the point of a number type with limits; integers have none after it.
fn digits(type_name: &str) -> Option<(u32, u32)> {
    match type_name {
        "smallint" => Some((5, 0)),
        "integer" => Some((10, 0)),
        "bigint" => Some((19, 0)),
        _ => {
            let inside = type_name.strip_prefix("numeric(")?.strip_suffix(')')?;
            let (precision, scale) = inside.split_once(',').unwrap_or((inside, "0"));
            let (precision, scale) = (precision.trim().parse::<u32>().ok()?, scale.trim().parse().ok()?);
            Some((precision.checked_sub(scale)?, scale))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_transcode::infer::{Among, reading_for};

    #[test]
    fn a_type_holds_itself_and_narrower_ones_of_its_kind() {
        for (has, wanted, expected) in [
            ("text", "date", true),
            ("date", "text", false),
            ("bigint", "int", true),
            ("integer", "int", true),
            ("integer", "bigint", false),
            ("numeric(8,2)", "numeric(7,2)", true),
            ("numeric(8,2)", "numeric(8,3)", false),
            ("numeric(8,2)", "integer", false),
            ("integer", "numeric(1,0)", false),
            ("numeric(3,0)", "numeric(1,0)", true),
            ("numeric", "integer", true),
            ("date", "timestamp", false),
            ("timestamp", "date", true),
            ("double precision", "int", true),
            ("json", "jsonb", true),
            ("jsonb", "json", false),
        ] {
            assert_eq!(holds(has, wanted), expected, "{has} {wanted}");
        }
    }

    #[test]
    fn a_column_that_holds_the_numbers_is_not_widened_for_the_type_that_a_new_one_would_get() {
        for (has, values, expected) in [
            ("smallint", &["1", "32767"][..], None),
            ("smallint", &["1", "32768"], Some("integer")),
            ("integer", &["2147483648"], Some("bigint")),
            ("smallint", &["1.5"], Some("numeric")),
            ("integer", &["7", "1."], Some("numeric")),
            ("bigint", &["1."], Some("numeric")),
            ("numeric(5,0)", &["7", "1."], None),
            ("time without time zone", &["2024-01-01 10:00:00"], Some("text")),
            ("time without time zone", &["10:00:00"], None),
            ("numeric(5,2)", &["1.25", "2.5", "999"], None),
            ("numeric(5,2)", &["1000"], Some("numeric")),
            ("numeric(5,2)", &["1.255"], Some("numeric")),
            ("numeric(5,2)", &["1e2"], Some("numeric")),
            ("integer", &["7", "99999999999999999999"], Some("numeric")),
            ("bigint", &["9223372036854775808"], Some("numeric")),
            ("bigint", &["9223372036854775808", "x"], Some("text")),
            ("bigint", &["007"], Some("text")),
            ("numeric", &["7", "1.5"], None),
        ] {
            let mut state = ColumnState::default();
            values.iter().for_each(|value| state.observe(value.as_bytes()));
            let found = needed(has, &state).map(|inferred| inferred.type_name);
            assert_eq!(found.as_deref(), expected, "{has} {values:?}");
        }
    }

    #[test]
    fn numbers_in_another_spelling_widen_their_column_by_their_digits() {
        for (has, values, expected) in [
            ("numeric(8,2)", &["1,234.56", "1,234.5"][..], None),
            ("numeric(8,2)", &["123,456.78"], None),
            ("numeric(8,2)", &["1,234.567"], Some("numeric")),
            ("numeric(8,2)", &["1,234,567.00"], Some("numeric")),
            ("smallint", &["1,234,567"], Some("integer")),
            ("integer", &["123,456,789"], None),
            ("integer", &["5,000,000,000"], Some("bigint")),
            ("bigint", &["1,234,567,890,123,456,789"], Some("numeric")),
            ("numeric", &["1,234,567.891"], None),
            ("double precision", &["1,234,567.891"], None),
            ("date", &["31/01/2024", "30/01/2024 10:05"], Some("timestamp")),
            ("date", &["31 Jan 2024 10:05"], Some("timestamp")),
            ("date", &["31/01/2024"], None),
            ("timestamp", &["31/01/2024 10:05"], None),
        ] {
            let mut state = ColumnState::default();
            values.iter().for_each(|value| state.observe(value.as_bytes()));
            let reading = reading_for(&state, &Among::default(), has).unwrap();
            let found = needed_as_read(has, &state, &reading).map(|inferred| inferred.type_name);
            assert_eq!(found.as_deref(), expected, "{has} {values:?}");
        }
    }

    #[test]
    fn it_is_known_which_values_a_column_writes_otherwise() {
        for (has, value, expected) in [
            ("integer", "7", true),
            ("smallint", "7", true),
            ("integer", "007", false),
            ("numeric(8,2)", "1.50", true),
            ("numeric(8,2)", "1.5", false),
            ("numeric(8,2)", "7", false),
            ("numeric", "1.5", true),
            ("double precision", "1.50", false),
            ("boolean", "true", true),
            ("boolean", "TRUE", false),
            ("boolean", "1", false),
            ("timestamp without time zone", "2024-01-31 10:00:00", true),
            ("timestamp without time zone", "2024-01-31 10:00", false),
            ("timestamp without time zone", "2024-01-31", false),
            ("inet", "10.0.0.1", true),
            ("jsonb", "{}", false),
            ("json", "{ }", true),
        ] {
            let mut state = ColumnState::default();
            assert!(gives_back(has, &state));
            state.observe(value.as_bytes());
            assert_eq!(gives_back(has, &state), expected, "{has} {value}");
        }
    }

    #[test]
    fn characters_are_counted_as_the_server_counts_them() {
        assert_eq!(characters("character varying(3)"), Some(3));
        assert_eq!(characters("character(12)"), Some(12));
        assert_eq!(characters("character varying"), None);
        assert_eq!(characters("text"), None);
        assert_eq!(count_characters("äöü  ".as_bytes()), 3);
        assert_eq!(count_characters(b" a b"), 4);
    }

    #[test]
    fn what_others_stored_stays_what_it_is() {
        for (has, wanted, expected) in [
            ("bigint", "double precision", Some("numeric")),
            ("integer", "double precision", Some("numeric")),
            ("numeric(8,2)", "double precision", Some("numeric")),
            ("numeric", "double precision", None),
            ("smallint", "int", Some("integer")),
            ("integer", "numeric(10,2)", Some("numeric")),
            ("date", "timestamp", Some("timestamp")),
            ("timestamp without time zone", "timestamptz", Some("text")),
            ("date", "timestamptz", Some("text")),
            ("timestamptz", "timestamp", None),
            ("date", "int", Some("text")),
            ("boolean", "numeric(3,2)", Some("text")),
            ("text", "date", None),
            ("jsonb", "json", None),
            ("json", "jsonb", None),
            ("json", "int", Some("text")),
        ] {
            assert_eq!(wider(has, wanted).as_deref(), expected, "{has} {wanted}");
        }
    }
}
