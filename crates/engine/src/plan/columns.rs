//! Which column each field of a file fills.
//!
//! With a header the names decide; without one, or with `--columns`, the position does, as in COPY. Every
//! name that fits nothing is reported in one message.

use super::finding::Found;
use super::head::Head;
use super::{nameless, new_table, null_words};
use crate::widen::is_inferred;
use howdah_model::{
    Column, ColumnChoice, Error, ErrorKind, Evolve, Format, Header, Job, OnError, Plan, Reading, Result,
    Table, TablePlan, counted, plural,
};
use howdah_transcode::encode::FieldTarget;
use howdah_transcode::infer::{self, ColumnState};
use std::borrow::Cow;

/// The choice, and what should be known about it.
pub(super) struct Columns {
    /// For each field the column it fills; `None` leaves it out.
    pub(super) fields: Vec<Option<String>>,
    pub(super) notes: Vec<String>,
    /// What cannot be told apart, with the option that settles it.
    pub(super) unsure: Vec<String>,
    /// What does not fit, said all at once.
    problems: Vec<Problem>,
}

/// What the header says of the fields.
#[derive(Default)]
struct Named<'a> {
    names: Option<&'a [String]>,
    /// Something speaks against the first record being a header.
    is_doubtful: bool,
    /// Fields without a name and without a value anywhere.
    hollow: Vec<usize>,
}

/// Something that does not fit, and what to do about it.
struct Problem {
    message: String,
    hint: Cow<'static, str>,
}

impl Columns {
    /// Matches a file's header, if it has one, to the table; without one, its fields by position.
    pub(super) fn of(job: &Job, table: &Table, head: &Head) -> Result<Columns> {
        let mut matched = Columns::matched(job, table, head)?;
        if let Some(found) = &head.found {
            matched.look_for_null_words(job, table, found);
            matched.look_at_values(job, table, &found.columns.states);
        }
        matched.settle()
    }

    /// The same, whatever the values are.
    pub(super) fn matched(job: &Job, table: &Table, head: &Head) -> Result<Columns> {
        let names = head.names.as_deref();
        let Some(found) = &head.found else {
            return Columns::choose(job, table, &Named { names, ..Named::default() }, job.format.header);
        };
        if found.finding.lacks_names && job.columns.is_none() {
            return Err(lacks_names(found.finding.cuts_decimals));
        }
        let header = if names.is_some() { Header::Names } else { Header::None };
        let named =
            Named { names, is_doubtful: found.finding.is_header_unsure(), hollow: nameless::hollow(found) };
        let chosen = Columns::choose(job, table, &named, header)?;
        // A file without a record fits every table.
        if found.finding.width == 0 { Ok(chosen) } else { fit_width(chosen, table, found) }
    }

    /// Columns for each field of a new table.
    pub(super) fn of_new(fields: Vec<String>, notes: Vec<String>) -> Columns {
        Columns {
            fields: fields.into_iter().map(Some).collect(),
            notes,
            unsure: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Leaves out fields that are none.
    pub(super) fn leave_out(&mut self, is_none: impl Fn(usize) -> bool) {
        for (no, field) in self.fields.iter_mut().enumerate() {
            if is_none(no) {
                *field = None;
            }
        }
    }

    /// Columns of which all that was seen is a word for "no value", as far as their types have no such value.
    fn look_for_null_words(&mut self, job: &Job, table: &Table, found: &Found) {
        let mut problems = Vec::new();
        for (no, field) in self.fields.iter().enumerate() {
            let column = table.columns.iter().find(|column| Some(&column.name) == field.as_ref());
            let Some(column) = column.filter(|column| !is_told(job, &column.name)) else { continue };
            if let Some(word) = null_words::only(&found.columns, no, &column.type_name) {
                let (name, type_name) = (&column.name, &column.type_name);
                let message = format!(
                    "column {name} is {type_name}, and its field holds nothing but {word:?} where it was looked at, which is no value of that type"
                );
                problems.push(Problem { message, hint: format!("--null '{word}' reads it as NULL").into() });
            }
        }
        problems.into_iter().for_each(|problem| self.tell_of_refused(job, problem));
    }

    /// Values that no column of this type can hold, and columns that need a value and get none.
    fn look_at_values(&mut self, job: &Job, table: &Table, states: &[ColumnState]) {
        let mut problems = Vec::new();
        for (field, state) in self.fields.iter().zip(states) {
            let column = table.columns.iter().find(|column| Some(&column.name) == field.as_ref());
            let Some(column) = column else { continue };
            // Values that are read in a spelling that was told are not judged as they stand.
            if is_told(job, &column.name) {
                continue;
            }
            if let Some(why) = infer::misfit(state, &column.type_name) {
                let message = format!("column {} is {}, and {why}", column.name, column.type_name);
                let problem = Problem { message, hint: misfit_hint(job, column, state).into() };
                if infer::may_be_misread(state, &column.type_name) {
                    self.problems.push(problem);
                } else {
                    problems.push(problem);
                }
            }
        }
        problems.into_iter().for_each(|problem| self.tell_of_refused(job, problem));
        let filled = |column: &Column| self.fields.iter().flatten().any(|name| *name == column.name);
        let needy: Vec<&str> = table
            .columns
            .iter()
            .filter(|column| column.not_null && !column.has_default && !column.generated && !filled(column))
            .map(|column| column.name.as_str())
            .collect();
        if !needy.is_empty() {
            self.problems.push(Problem {
                message: format!(
                    "no field fills columns that are NOT NULL without a default: {}",
                    needy.join(", ")
                ),
                hint: "map a field to a column with --map 'FIELD=COLUMN', or give the column a default"
                    .into(),
            });
        }
    }

    /// What the server refuses ends no load that goes on without bad records: neither other records nor other
    /// files are kept out for its sake.
    fn tell_of_refused(&mut self, job: &Job, problem: Problem) {
        match job.bad_records.on_error {
            OnError::Stop => self.problems.push(problem),
            OnError::Skip => {
                let Problem { message, hint } = problem;
                self.unsure.push(format!("{message}: such records are left out; {hint}"));
            }
        }
    }

    /// All that does not fit is one error.
    fn settle(self) -> Result<Columns> {
        let Some(first) = self.problems.first() else { return Ok(self) };
        let messages: Vec<&str> = self.problems.iter().map(|problem| problem.message.as_str()).collect();
        Err(columns_error(messages.join("; ")).with_hint(first.hint.clone()))
    }

    fn choose(job: &Job, table: &Table, named: &Named, header: Header) -> Result<Columns> {
        check_map_is_used(job, header)?;
        match (&job.columns, named.names, header) {
            (Some(columns), names, header) => by_position(columns, table, names, header),
            (None, Some(names), Header::Names) => by_name(job, table, names, named),
            (None, names, header) => {
                let columns: Vec<String> = table
                    .columns
                    .iter()
                    .filter(|column| !column.generated)
                    .map(|column| column.name.clone())
                    .collect();
                by_position(&columns, table, names, header)
            }
        }
    }
}

/// The error of a header that does not name each field.
pub(super) fn lacks_names(cuts_decimals: bool) -> Error {
    let message =
        "the header has fewer names than records have fields, and which fields have none is not known";
    let hint = "name the columns that the fields fill with --columns, in the order of the file";
    match cuts_decimals {
        false => columns_error(message.to_owned()).with_hint(hint),
        true => columns_error(format!(
            "{message}: the comma may be the delimiter and that of fractions, too"
        ))
        .with_hint(format!(
            "have the file written with quotes around such numbers or with another delimiter; if each record is one number, \
             give a --delimiter that none has; if the fields are right, {hint}"
        )),
    }
}

/// By position, as many columns as the file has fields, those behind them aside that hold nothing. Where that
/// leaves out exactly the columns that give themselves a value, these are left to it.
fn fit_width(chosen: Columns, table: &Table, found: &Found) -> Result<Columns> {
    let (columns, width) = (chosen.fields.len(), found.finding.width);
    if columns == width {
        return Ok(chosen);
    }
    if columns < width && nameless::are_hollow_from(found, columns) {
        let Columns { mut fields, mut notes, .. } = chosen;
        fields.resize(width, None);
        notes.push("left out are fields behind the last column that have no value in the file".to_owned());
        return Ok(Columns { fields, notes, unsure: chosen.unsure, problems: chosen.problems });
    }
    let identity = |name: &String| table.columns.iter().any(|column| column.name == *name && column.identity);
    let without: Vec<Option<String>> =
        chosen.fields.iter().filter(|field| !field.as_ref().is_some_and(identity)).cloned().collect();
    if without.len() == width {
        let mut notes = chosen.notes.clone();
        notes.push("identity columns number the rows themselves".to_owned());
        return Ok(Columns { fields: without, notes, ..chosen });
    }
    Err(columns_error(format!(
        "the file's records have {}, and {columns} {} of {} {} to be filled",
        counted(width, "field"),
        plural(columns, "column", "columns"),
        table.relation,
        plural(columns, "is", "are")
    ))
    .with_hint(match columns {
        1 => "if each record is one value, give a --delimiter that none of them has; else name the columns that the fields fill with --columns",
        _ => "name the columns that the fields fill with --columns, in the order of the file",
    }))
}

/// Only a header whose names choose the columns has fields to rename.
fn check_map_is_used(job: &Job, header: Header) -> Result<()> {
    if job.map.is_empty() || job.columns.is_none() && header == Header::Names {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Usage,
        "--map renames the fields of a header, and no header chooses the columns",
    )
    .with_hint("give --header, and neither --columns nor --header=match"))
}

fn by_position(
    columns: &[String],
    table: &Table,
    names: Option<&[String]>,
    header: Header,
) -> Result<Columns> {
    for name in columns {
        match table.columns.iter().find(|column| column.name == *name) {
            None => return Err(no_such_column(table, std::slice::from_ref(name))),
            Some(column) if column.generated => {
                return Err(columns_error(format!(
                    "column {name} of {} is generated and takes no value",
                    table.relation
                )));
            }
            Some(_) => {}
        }
    }
    if let Some(names) = names.filter(|names| header == Header::Match && *names != columns) {
        // A first record that is no header holds values.
        let others: Vec<usize> =
            (0..names.len()).filter(|no| names.get(*no) != columns.get(*no)).map(|no| no + 1).collect();
        return Err(columns_error(format!(
            "the header does not match the columns of {}: expected {}, got {} fields{}",
            table.relation,
            some_of(columns),
            names.len(),
            if others.is_empty() {
                String::new()
            } else {
                format!(" with other names in {}", positions(&others))
            }
        ))
        .with_hint("`--header` instead of `--header=match` maps the names of the header to the columns"));
    }
    let mut notes = Vec::new();
    note_missing(table, columns, &mut notes);
    Ok(Columns {
        fields: columns.iter().cloned().map(Some).collect(),
        notes,
        unsure: named_otherwise(columns, table, names).into_iter().collect(),
        problems: Vec::new(),
    })
}

/// Fields that a header names like other columns of the table than those they are told to fill.
fn named_otherwise(columns: &[String], table: &Table, names: Option<&[String]>) -> Option<String> {
    let pairs = names?.iter().zip(columns);
    let others =
        pairs.filter(|(name, column)| find_column(table, name).is_some_and(|named| named.name != **column));
    let others: Vec<String> = others.map(|(name, column)| format!("{name} fills {column}")).collect();
    let what = "by --columns fields fill other columns than the header names";
    (!others.is_empty()).then(|| format!("{what}: {}", some_of(&others)))
}

/// The beginning of a note; an earlier run's plan has it already.
const LEFT_OUT: &str = "left out is field";

/// Fields whose values the server computes itself, table by table: who has sent them may miss them.
pub(crate) fn computed(plan: &Plan) -> impl Iterator<Item = String> {
    plan.tables.iter().flat_map(|TablePlan { table, notes, .. }| {
        let computed = notes.iter().filter(|note| note.starts_with(LEFT_OUT));
        computed.map(move |note| format!("{}: {note}", table.relation))
    })
}

fn by_name(job: &Job, table: &Table, names: &[String], named: &Named) -> Result<Columns> {
    let mut fields = Vec::new();
    let mut extra = Vec::new();
    let mut notes = Vec::new();
    for (no, name) in names.iter().enumerate() {
        let wanted = job.map.get(name).unwrap_or(name);
        match find_column(table, wanted) {
            Some(column) if column.generated => {
                notes.push(format!("{LEFT_OUT} {name}: column {} is generated", column.name));
                fields.push(None);
            }
            Some(column) => fields.push(Some(column.name.clone())),
            None => {
                extra.push(no);
                fields.push(None);
            }
        }
    }
    check_map(job, names)?;
    let twice = check_twice(&fields);
    if (twice.is_err() || !extra.is_empty())
        && let Some(fields) = as_made(job, table, names)
    {
        return Ok(Columns { fields, notes, unsure: Vec::new(), problems: Vec::new() });
    }
    twice?;
    let mut problems = Vec::new();
    if fields.iter().all(Option::is_none) {
        return Err(no_field_fits(table, names.len()));
    }
    if extra.iter().any(|no| named.hollow.contains(no)) {
        extra.retain(|no| !named.hollow.contains(no));
        notes.push("left out are fields that have no name in the header and no value in the file".to_owned());
    }
    // What is perhaps no header may hold values of a row.
    let shown = |no: &usize| match names[*no].as_str() {
        "" => format!("field {}, which has no name", no + 1),
        _ if named.is_doubtful => format!("field {}", no + 1),
        name => name.to_owned(),
    };
    let extra: Vec<String> = extra.iter().map(shown).collect();
    if !extra.is_empty() && !job.ignore_extra {
        let hint = match job.shaping.told {
            // A new column's type is found from the data, as are types that hold more.
            Some(_) => format!(
                "{NO_COLUMN_HINT}; --evolve add adds the columns, --evolve widen those and wider types"
            )
            .into(),
            None => NO_COLUMN_HINT.into(),
        };
        problems.push(Problem { message: no_column_message(table, &extra), hint });
    }
    if !extra.is_empty() {
        notes.push(format!("fields left out (--ignore-extra): {}", extra.join(", ")));
    }
    let taken: Vec<String> = fields.iter().flatten().cloned().collect();
    note_missing(table, &taken, &mut notes);
    Ok(Columns { fields, notes, unsure: Vec::new(), problems })
}

/// The names that a table made for such a header would have, if this table has them all: it was made for one.
fn as_made(job: &Job, table: &Table, names: &[String]) -> Option<Vec<Option<String>>> {
    let made = new_table::made_names(job, names);
    let has = |name: &String| table.columns.iter().any(|column| column.name == *name && !column.generated);
    made.iter().all(has).then(|| made.into_iter().map(Some).collect())
}

/// By the exact name, else by the only name that differs in case alone, else by the only one that differs in
/// case, accents, spaces and punctuation.
pub(super) fn find_column<'a>(table: &'a Table, name: &str) -> Option<&'a Column> {
    let only = |alike: &dyn Fn(&str) -> bool| {
        let mut columns = table.columns.iter().filter(|column| alike(&column.name));
        columns.next().filter(|_| columns.next().is_none())
    };
    let lower = name.to_lowercase();
    let folded = infer::fold(name);
    only(&|column| column == name)
        .or_else(|| only(&|column| column.to_lowercase() == lower))
        .or_else(|| only(&|column| !folded.is_empty() && infer::fold(column) == folded))
}

fn check_map(job: &Job, names: &[String]) -> Result<()> {
    let unused: Vec<&str> = job.map.keys().filter(|name| !names.contains(name)).map(String::as_str).collect();
    if unused.is_empty() {
        return Ok(());
    }
    Err(columns_error(format!("--map names fields that the header does not have: {}", unused.join(", "))))
}

fn check_twice(fields: &[Option<String>]) -> Result<()> {
    for (no, field) in fields.iter().enumerate() {
        if field.is_some() && fields[..no].contains(field) {
            let name = field.as_deref().unwrap_or_default();
            return Err(columns_error(format!("two fields of the header fill column {name}"))
                .with_hint("rename one of them with --map 'FIELD=COLUMN'"));
        }
    }
    Ok(())
}

fn note_missing(table: &Table, taken: &[String], notes: &mut Vec<String>) {
    let missing: Vec<&str> = table
        .columns
        .iter()
        .filter(|column| !column.generated && !taken.contains(&column.name))
        .map(|column| column.name.as_str())
        .collect();
    if !missing.is_empty() {
        notes.push(format!("columns that get their default: {}", missing.join(", ")));
    }
}

/// What `--types` says of this column.
pub(super) fn told<'a>(job: &'a Job, column: &str) -> Option<&'a String> {
    job.shaping.types.get(column).or_else(|| job.shaping.types.get("*"))
}

/// How it says that its values are spelled.
pub(super) fn told_reading(job: &Job, column: &str) -> Option<Reading> {
    infer::parse_type(told(job, column)?).ok()?.1
}

/// It says how its values are spelled.
pub(super) fn is_told(job: &Job, column: &str) -> bool {
    told_reading(job, column).is_some()
}

/// What helps where the values do not fit.
fn misfit_hint(job: &Job, column: &Column, state: &ColumnState) -> &'static str {
    let widens = is_inferred(&column.type_name) && job.shaping.evolve != Evolve::Widen;
    match widens {
        // A wider column would hold the numbers as text.
        true if infer::is_number_open(state) => NUMBER_HINT,
        // A wider column would take points between groups for decimal points.
        true if is_integer(column) && infer::has_open_points(state) => POINT_HINT,
        true => WIDEN_HINT,
        false => MISFIT_HINT,
    }
}

fn is_integer(column: &Column) -> bool {
    matches!(column.type_name.as_str(), "smallint" | "integer" | "bigint")
}

fn is_of_time(column: &Column) -> bool {
    column.type_name.starts_with("date") || column.type_name.starts_with("timestamp")
}

/// Some values could be read as something else than they are.
pub(super) fn doubtful(column: &Column, why: &str) -> Error {
    let hint = if is_of_time(column) { MISFIT_HINT } else { NUMBER_HINT };
    columns_error(format!("column {} is {}, and {why}", column.name, column.type_name)).with_hint(hint)
}

const NUMBER_HINT: &str = "--types COLUMN=numeric:1,234.56 or COLUMN=numeric:1.234,56 says what comma and point mean (with a currency: '$1,234.56')";
const POINT_HINT: &str = "--types COLUMN=numeric:1.234,56 reads points as those between groups of digits; if they are decimal points, --evolve widen gives the column a type that holds them";
const WIDEN_HINT: &str = "--evolve widen gives the column a type that holds them";
const MISFIT_HINT: &str =
    "give the column another type, or say with --types COLUMN=TYPE:SPELLING how they are written";
const NO_COLUMN_HINT: &str =
    "map a field to a column with --map 'FIELD=COLUMN', or leave such fields out with --ignore-extra";

fn no_column_message(table: &Table, names: &[String]) -> String {
    let known: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
    format!("{} has no column for: {} (its columns are {})", table.relation, some_of(names), some_of(&known))
}

/// Not one name fits: most likely the first record is data, so that it is not shown.
fn no_field_fits(table: &Table, fields: usize) -> Error {
    let known: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
    columns_error(format!(
        "none of the {fields} fields of the header is a column of {} (its columns are {})",
        table.relation,
        some_of(&known)
    ))
    .with_hint("if the first record is data, say --header=false; else map a field to a column with --map 'FIELD=COLUMN'")
}

/// `field 3`, `fields 3, 4`.
fn positions(fields: &[usize]) -> String {
    let shown: Vec<String> = fields.iter().map(ToString::to_string).collect();
    format!("field{} {}", if fields.len() == 1 { "" } else { "s" }, some_of(&shown))
}

/// So many names make a message; a file may have thousands.
const NAMES_SHOWN: usize = 40;
/// So many characters of each: no column has a longer name, but a field may.
const NAME_CHARS_SHOWN: usize = 63;

/// As many of these as a message holds.
pub(super) fn some_of(names: &[impl AsRef<str>]) -> String {
    let name = |name: &dyn AsRef<str>| name.as_ref().chars().take(NAME_CHARS_SHOWN).collect::<String>();
    let shown: Vec<String> = names.iter().take(NAMES_SHOWN).map(|one| name(one)).collect();
    match names.len().saturating_sub(NAMES_SHOWN) {
        0 => shown.join(", "),
        others => format!("{} and {others} others", shown.join(", ")),
    }
}

fn no_such_column(table: &Table, names: &[String]) -> Error {
    columns_error(no_column_message(table, names)).with_hint(NO_COLUMN_HINT)
}

fn columns_error(message: String) -> Error {
    Error::new(ErrorKind::Columns, message)
}

/// What the rewriter needs to know of each field.
pub(crate) fn field_targets(table: &TablePlan, format: &Format) -> Vec<FieldTarget> {
    let chosen = |choice: &ColumnChoice, column: &Option<String>| match (choice, column) {
        (ColumnChoice::All, _) => true,
        (ColumnChoice::Named(names), Some(column)) => names.contains(column),
        (ColumnChoice::Named(_), None) | (ColumnChoice::None, _) => false,
    };
    table
        .fields
        .iter()
        .map(|column| FieldTarget {
            name: column.clone().unwrap_or_default(),
            keep: column.is_some(),
            force_null: chosen(&format.force_null, column),
            force_not_null: chosen(&format.force_not_null, column),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_model::{Relation, RelationKind};

    fn table(columns: &[(&str, bool)]) -> Table {
        let columns = columns
            .iter()
            .map(|(name, generated)| Column {
                name: (*name).to_owned(),
                attnum: 0,
                type_name: "text".to_owned(),
                type_oid: 25,
                not_null: false,
                has_default: false,
                generated: *generated,
                identity: false,
            })
            .collect();
        let relation = Relation { schema: "public".to_owned(), name: "t".to_owned() };
        Table { relation, oid: 1, kind: RelationKind::Table, columns }
    }

    fn job(header: Header) -> Job {
        Job::new(Vec::new(), None, Format { header, ..Format::csv() })
    }

    fn choose(job: &Job, table: &Table, names: Option<&[String]>) -> Result<Columns> {
        Columns::choose(job, table, &Named { names, ..Named::default() }, job.format.header)?.settle()
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn header_names_choose_columns_in_any_order_and_case() {
        let header = names(&["B", "a"]);
        let chosen =
            choose(&job(Header::Names), &table(&[("a", false), ("b", false), ("c", false)]), Some(&header));
        let chosen = chosen.unwrap();
        assert_eq!(chosen.fields, [Some("b".to_owned()), Some("a".to_owned())]);
        assert_eq!(chosen.notes, ["columns that get their default: c"]);
    }

    #[test]
    fn extra_fields_are_named_in_one_error_unless_ignored() {
        let header = names(&["x", "a", "y"]);
        let mut job = job(Header::Names);
        let refused = choose(&job, &table(&[("a", false)]), Some(&header)).err().unwrap();
        assert!(refused.message().contains("x, y"), "{refused}");
        job.ignore_extra = true;
        let chosen = choose(&job, &table(&[("a", false)]), Some(&header)).unwrap();
        assert_eq!(chosen.fields, [None, Some("a".to_owned()), None]);
    }

    #[test]
    fn generated_columns_are_left_out() {
        let shape = table(&[("a", false), ("g", true)]);
        let header = names(&["a", "g"]);
        assert_eq!(choose(&job(Header::Names), &shape, Some(&header)).unwrap().fields[1], None);
        assert_eq!(choose(&job(Header::None), &shape, None).unwrap().fields, [Some("a".to_owned())]);
    }

    #[test]
    fn a_map_that_would_go_unused_is_refused() {
        let shape = table(&[("a", false)]);
        let header = names(&["x"]);
        let mut job = job(Header::Names);
        job.map.insert("x".to_owned(), "a".to_owned());
        assert!(choose(&job, &shape, Some(&header)).is_ok());
        let by_columns = Job { columns: Some(names(&["a"])), ..job.clone() };
        assert!(choose(&by_columns, &shape, Some(&header)).is_err());
        job.format.header = Header::None;
        assert_eq!(choose(&job, &shape, None).err().unwrap().kind(), ErrorKind::Usage);
    }

    #[test]
    fn two_fields_for_one_column_are_refused() {
        let header = names(&["a", "A"]);
        assert!(choose(&job(Header::Names), &table(&[("a", false)]), Some(&header)).is_err());
    }
}
