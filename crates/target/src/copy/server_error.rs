//! What the server says about a COPY, made fit for howdah: an [`Error`] with the SQLSTATE, the column, and
//! the line of the sent data. The server's words for bad input quote the input, and so does, of any SQLSTATE,
//! what it says while it reads a value or a function runs (`relation "x" does not exist`); quoted parts that
//! are not names known to be names are cut out, and so is text written by triggers. DETAIL never leaves.
//! Source: the error contexts of PostgreSQL's copyfromparse.c and their translations.

use crate::error::{SESSION_HINT, has_no_locks_left, kind_of_sqlstate, server_error};
use howdah_model::{Error, ErrorKind, Place, Relation, sqlstate};
use tokio_postgres::error::{DbError, ErrorPosition};

/// Quotation marks of PostgreSQL's message catalogues.
const QUOTES: &[char] =
    &['"', '\u{ab}', '\u{bb}', '\u{201e}', '\u{201c}', '\u{201d}', '\u{2018}', '\u{2019}'];

/// Where the server reports text that a procedural language's user wrote.
const USER_TEXT_ROUTINES: &[&str] = &[
    "exec_stmt_raise",
    "PLy_elog_impl",
    "PLy_output",
    "do_plperl_return_next",
    "plperl_call_perl_func",
    "plperl_call_perl_trigger_func",
    "throw_tcl_error",
];

/// Classes of what functions report: PL/pgSQL (RAISE), external routines, which are those in all other
/// languages, and their calls.
const FUNCTION_CLASSES: [&str; 3] = ["P0", "38", "39"];

/// Where the server finds that no partition takes a row.
const NO_PARTITION_ROUTINE: &str = "ExecFindPartition";
/// Where the server finds that a foreign table takes no rows, when the first comes. Some minor versions have
/// `...RelNew`.
const NO_ROWS_ROUTINE: &str = "CheckValidResultRel";

/// Where the server finds that a policy does not let a row in: 42501, as for a right that is missing.
const POLICY_ROUTINE: &str = "ExecWithCheckOptions";

/// What goes with it.
pub(crate) const POLICY_SQLSTATE: &str = sqlstate::INSUFFICIENT_PRIVILEGE;

/// How the server says that bytes are no character of the encoding that it was told.
const NO_EQUIVALENT: &str = "has no equivalent in encoding";
const NO_EQUIVALENT_IN_UTF8: &str = "has no equivalent in encoding \"UTF8\"";

/// Tables of it are there as long as the session is.
pub(crate) const TEMPORARY_SCHEMA: &str = "pg_temp";

/// What replaces a cut.
const CUT: &str = "\"...\"";

/// An error of COPY and the line of the sent data it is about.
#[derive(Debug, Clone)]
pub(crate) struct CopyError {
    pub(crate) error: Error,
    /// From 1; physical lines, as COPY counts them, newlines inside quotes included.
    pub(crate) line: Option<u64>,
    /// It is about a value that is an empty string, and not NULL.
    pub(crate) is_of_empty: bool,
}

/// Reads the server's error. `columns` are the columns that were being loaded into `relation`, which its user
/// knows by the name of `shown`.
pub(crate) fn copy_error(
    db: &DbError,
    relation: &Relation,
    shown: &Relation,
    columns: &[String],
) -> CopyError {
    if let Some(error) = missing(db, relation, shown) {
        return CopyError { error, line: None, is_of_empty: false };
    }
    let spot = db.where_().and_then(|context| find_spot(context, relation, columns));
    let column = db.column().map(str::to_owned).or_else(|| spot.as_ref()?.column.clone());
    let names = columns.iter().chain([&relation.name, &relation.schema]).map(String::as_str);
    let reads_value = spot.as_ref().is_some_and(|spot| spot.column.is_some());
    let message = match reads_value {
        true => message_of_input(db, names),
        false => safe_message(db, names),
    };
    let message = if relation == shown { message } else { message.replace(&relation.name, &shown.name) };
    let mut error = server_error(db, &message).at(Place { column, ..Place::default() });
    if is_of_policy(db) {
        error = error.with_kind(ErrorKind::Record);
    }
    if db.message().contains(NO_DAY) {
        error = error.with_hint(
            "MySQL writes 0000-00-00 for no day: --null 0000-00-00 reads it as NULL (--null '0000-00-00 00:00:00' with a time), with \
             --null '' beside it where fields are empty, too; that takes no --format",
        );
    }
    if has_no_locks_left(db) {
        error = error.with_hint(
            "the server has too few locks for so many partitions and indexes: raise its max_locks_per_transaction, which takes a restart; as \
             long as no chunk is in, a small --chunk-size (64kB) also helps, as the rows of a chunk then go to fewer of them",
        );
    }
    if db.routine() == Some(NO_PARTITION_ROUTINE) {
        error = error.with_hint(
            "make a partition that takes it, or one for all that no other takes (CREATE TABLE ... PARTITION OF ... \
             DEFAULT); --create-partitions makes those of days or months of which no other \
             covers a part",
        );
    }
    if db.routine().is_some_and(|routine| routine.starts_with(NO_ROWS_ROUTINE)) {
        error = error.with_hint(
            "a partition that is a foreign table and takes no INSERT: load its rows where they are kept, or detach the partition; \
             howdah plan names it",
        );
    }
    let is_of_empty = spot.as_ref().is_some_and(|spot| spot.is_empty);
    CopyError { error: with_advice(error), line: spot.map(|spot| spot.line), is_of_empty }
}

/// How messages about such a value begin to quote it.
const NO_DAY: &str = "\"0000-00-00";

/// What the statement names was there when the load was planned: the table, or columns of it.
pub(crate) fn missing(db: &DbError, relation: &Relation, shown: &Relation) -> Option<Error> {
    let of_column = db.code().code() == sqlstate::UNDEFINED_COLUMN && db.where_().is_none();
    match is_gone(db) {
        true => Some(gone(db, relation, shown)),
        false => of_column.then(|| changed(db, relation, shown)),
    }
}

/// The same of a statement that names other tables, too, and of one that locks or empties a table before rows
/// come.
pub(crate) fn missing_beside_others(db: &DbError, relation: &Relation) -> Option<Error> {
    let of_another = db.code().code() == sqlstate::UNDEFINED_TABLE && !names(db.message(), relation);
    let error = missing(db, relation, relation).filter(|_| !of_another)?;
    Some(error.with_kind(ErrorKind::Table))
}

/// The message names this relation, with its schema, and not one whose name goes on behind that.
fn names(message: &str, relation: &Relation) -> bool {
    let name = format!("{}.{}", relation.schema, relation.name);
    let goes_on = |rest: &str| rest.starts_with(|next: char| next.is_alphanumeric() || "_$".contains(next));
    message.match_indices(&name).any(|(at, _)| !goes_on(&message[at + name.len()..]))
}

/// The server has looked for the table that the statement names. Functions and values that look for one say
/// where they are.
fn is_gone(db: &DbError) -> bool {
    let is_unknown = [sqlstate::UNDEFINED_TABLE, sqlstate::INVALID_SCHEMA_NAME].contains(&db.code().code());
    is_unknown && db.where_().is_none()
}

fn gone(db: &DbError, relation: &Relation, shown: &Relation) -> Error {
    let message = format!(
        "{relation} is not there any more: it was dropped, renamed or moved to another schema while the load was at work"
    );
    let error = server_error(db, &message);
    if relation.schema == TEMPORARY_SCHEMA {
        return error.with_hint(SESSION_HINT);
    }
    // Of a partition or a staging table others know what is to be done.
    if relation != shown {
        return error;
    }
    error.with_hint(
        "if it was renamed or moved, give it its name and schema back, and the same command goes on; if it was dropped, the rows that were in \
         went with it: make it anew, and the same command with --force loads everything from the beginning",
    )
}

/// The columns that the statement names were there when the load was planned.
fn changed(db: &DbError, relation: &Relation, shown: &Relation) -> Error {
    let told = db.message().replace(&relation.name, &shown.name);
    let message = format!("{shown} was changed while the load was at work: the server says: {told}");
    server_error(db, &message).with_hint(
        "if the column was renamed, give it its name back, and the same command goes on; if it was dropped, the rows that are in have lost it: \
         add it again and take those rows out, and the same command with --force loads everything from the beginning",
    )
}

/// A policy of the table refuses the row: the role lacks no right.
pub(crate) fn is_of_policy(db: &DbError) -> bool {
    db.routine() == Some(POLICY_ROUTINE) && db.code().code() == POLICY_SQLSTATE
}

/// What the server has told a function about a row, as [`copy_error`]: the SQLSTATE, the message and the
/// first line of the context. `names` are known to be no values.
pub(crate) fn told_error<'a>(
    sqlstate: &str,
    message: &str,
    context: &str,
    names: impl Iterator<Item = &'a str>,
    column: Option<&str>,
) -> Error {
    let known: Vec<&str> = names.collect();
    // Only the server itself writes at a statement, or where PL/pgSQL does anything else than to raise.
    let is_own =
        !context.contains("RAISE") && ["INSERT INTO", "PL/pgSQL"].iter().any(|by| context.contains(by));
    let message =
        message_without_values(if is_own { sqlstate } else { sqlstate::RAISE_EXCEPTION }, message, &known);
    let place = Place { column: column.map(str::to_owned), ..Place::default() };
    with_advice(
        Error::new(kind_of_sqlstate(sqlstate), message).with_sqlstate(sqlstate).at(place).met_at_row(),
    )
}

fn with_advice(error: Error) -> Error {
    match error.sqlstate() {
        // What is known of the very error says more.
        _ if error.hint().is_some() => error,
        Some(sqlstate::FOREIGN_KEY_VIOLATION) => error.with_hint(
            "load the rows that these refer to before them; where both are in these files: --atomic checks all rows together, \
             and a load without it each chunk alone",
        ),
        Some(sqlstate::UNTRANSLATABLE_CHARACTER) if error.message().contains(NO_EQUIVALENT_IN_UTF8) => {
            error.with_hint(
                "the file is in another encoding: --encoding says which one (WIN866, macintosh ...), and what is in a code page of DOS \
                 that has no name there (cp850, cp437) is converted first: iconv -f CP850 -t UTF-8",
            )
        }
        // Of a value, but for one that comes in binary: text of a file that has no equivalent is in no column
        // yet.
        Some(sqlstate::UNTRANSLATABLE_CHARACTER)
            if error.place().column.is_some() && !error.message().contains(NO_EQUIVALENT) =>
        {
            error.with_hint(
                "jsonb holds no \\u0000, nor characters that the encoding of the database lacks: --on-error skip keeps such records in \
                 the ledger, and a column of type json or text takes them as they are",
            )
        }
        Some(sqlstate::UNTRANSLATABLE_CHARACTER) => error.with_hint(
            "the encoding of the database lacks a character of the record: --on-error skip leaves such records out, and a database of UTF8 \
             holds them",
        ),
        Some(sqlstate::CHARACTER_NOT_IN_REPERTOIRE) => error.with_hint(
            "--encoding says how the file is written; without --format, --lenient puts U+FFFD in the place of what is no character, and \
             --nul strip drops NUL, which COPY text may write as \\0",
        ),
        Some(sqlstate::BAD_COPY_FILE_FORMAT) => error.with_hint(
            "--on-error skip --reject-file FILE loads the other records and keeps such ones to be mended; without --format, --lenient mends \
             records of too few or too many fields",
        ),
        Some(sqlstate::UNIQUE_VIOLATION) => error.with_hint(
            "--mode insert-new --key COLUMNS passes over rows whose key is there, --mode merge --key COLUMNS updates them, and \
             --on-error skip leaves such records out",
        ),
        Some(sqlstate::STRING_DATA_RIGHT_TRUNCATION) => error.with_hint(
            "without --format, --evolve widen gives the column a type that holds them; --on-error skip leaves such records out",
        ),
        Some(sqlstate::DIVISION_BY_ZERO) => error.with_hint(
            "COPY divides nothing: a default, a generated column, a check or a trigger of the table does; mend that, or the values that it \
             divides by",
        ),
        Some(sqlstate::CHECK_VIOLATION) => error.with_hint(SKIP_HINT),
        Some(sqlstate::NOT_NULL_VIOLATION) => error.with_hint(
            "--on-error skip --reject-file FILE loads the other records and keeps such ones to be mended; --force-not-null COLUMN takes an \
             empty field of text for an empty string",
        ),
        // Of a value: what else is wrong with data may be what a function does with it.
        Some(other) if other.starts_with("22") && error.place().column.is_some() => error.with_hint(SKIP_HINT),
        _ => error,
    }
}

const SKIP_HINT: &str = "--on-error skip --reject-file FILE loads the other records and keeps such ones to be mended; `howdah check` tells of \
                         all of them before";

/// What the server says about a statement that reads rows, safe to show. `names` are known to be no values.
pub(crate) fn safe_message<'a>(db: &'a DbError, names: impl Iterator<Item = &'a str>) -> String {
    let sqlstate = sqlstate_of_text(db);
    // What it has found wrong in the statement itself, in which no values stand; a column of it is not there,
    // where no function has looked for one.
    let is_of_statement = matches!(db.position(), Some(ErrorPosition::Original(_)))
        || sqlstate == sqlstate::UNDEFINED_COLUMN && db.where_().is_none();
    if sqlstate.starts_with("42") && is_of_statement {
        return db.message().to_owned();
    }
    message_without_values(sqlstate, db.message(), &known_names(db, names))
}

/// What the server says while it reads a value: whatever it has looked for and not found is the value.
fn message_of_input<'a>(db: &'a DbError, names: impl Iterator<Item = &'a str>) -> String {
    input_without_values(sqlstate_of_text(db), db.message(), &known_names(db, names))
}

fn known_names<'a>(db: &'a DbError, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let told = [db.table(), db.schema(), db.constraint(), db.datatype(), db.column()];
    names.chain(told.into_iter().flatten()).collect()
}

/// Text that a function has raised.
pub(crate) fn is_raised(db: &DbError) -> bool {
    is_of_function(sqlstate_of_text(db))
}

fn is_of_function(sqlstate: &str) -> bool {
    FUNCTION_CLASSES.iter().any(|class| sqlstate.starts_with(class))
}

/// RAISE can dress any text up as any SQLSTATE; its source routine gives it away. Other languages' routines
/// are not all known, but functions in them say where they are.
fn sqlstate_of_text(db: &DbError) -> &str {
    let sqlstate = db.code().code();
    // Functions report as an internal error what names no SQLSTATE.
    let written_by_user = db.routine().is_some_and(|name| USER_TEXT_ROUTINES.contains(&name))
        || sqlstate == sqlstate::INTERNAL_ERROR && db.where_().is_some_and(names_function);
    if written_by_user { sqlstate::RAISE_EXCEPTION } else { sqlstate }
}

/// The context tells of more than a COPY. In doubt it does.
fn names_function(context: &str) -> bool {
    context.lines().any(|line| !line.starts_with("COPY "))
}

/// The message about the reading of a value, safe to show.
pub(crate) fn input_without_values(sqlstate: &str, message: &str, known: &[&str]) -> String {
    if is_of_function(sqlstate) {
        return message_without_values(sqlstate, message, known);
    }
    cut_name(cut_hex(&cut_quoted(message, known)), sqlstate)
}

/// Names that are not found are quoted, but for those of functions and operators and those with too many
/// points.
fn cut_name(message: String, sqlstate: &str) -> String {
    let is_of_name = ["0A", "42"].iter().any(|class| sqlstate.starts_with(class));
    match message.find(": ").or_else(|| message.find('\u{ff1a}')).filter(|_| is_of_name) {
        Some(colon) => format!("{}: {CUT}", message[..colon].trim_end()),
        None if sqlstate == sqlstate::UNDEFINED_FUNCTION => {
            "a function does not exist that was called for a row; its name may be a value and is not shown"
                .to_owned()
        }
        None => message,
    }
}

/// The message, safe to show.
pub(crate) fn message_without_values(sqlstate: &str, message: &str, known: &[&str]) -> String {
    match sqlstate.get(..2) {
        // Nobody knows what is in it.
        _ if is_of_function(sqlstate) => {
            "a trigger or function raised an error; its text may hold row values and is not shown".to_owned()
        }
        // Integrity violations quote names only (the values are in DETAIL); the rest is about
        // transactions, resources, privileges and operators, never about a field.
        Some("23" | "25" | "40" | "53" | "57") => message.to_owned(),
        Some("42") if sqlstate == POLICY_SQLSTATE => message.to_owned(),
        // What a function, or the input of a type like `regclass`, has looked for and not found may be a
        // value.
        Some("42" | "0A") => cut_name(cut_hex(&cut_quoted(message, known)), sqlstate),
        _ => cut_hex(&cut_quoted(message, known)),
    }
}

/// Cuts from the first quotation that is not a known name to the last quotation mark: a value may hold
/// quotation marks itself, so what looks like text between two quotations need not be. Behind a colon stands
/// a value, which may begin like a name.
fn cut_quoted(message: &str, known: &[&str]) -> String {
    let is_name = |text: &str| known.contains(&text.trim()) || is_encoding_name(text);
    let colon = message.find([':', '\u{ff1a}']).unwrap_or(message.len());
    let mut from = 0;
    while let Some(open) = message[from..].find(QUOTES).map(|at| from + at) {
        let inner = open + message[open..].chars().next().map_or(1, char::len_utf8);
        let close = message[inner..].find(QUOTES).map(|at| inner + at);
        match close.filter(|close| open < colon && is_name(&message[inner..*close])) {
            Some(close) => from = close + message[close..].chars().next().map_or(1, char::len_utf8),
            None => {
                let last = message.rfind(QUOTES).filter(|last| *last >= inner);
                let rest = last.map_or("", |last| message[last..].trim_start_matches(QUOTES));
                return format!("{}{CUT}{rest}", &message[..open]);
            }
        }
    }
    message.to_owned()
}

/// Names of encodings, which byte sequence errors quote.
fn is_encoding_name(text: &str) -> bool {
    const FAMILIES: &[&str] = &[
        "UTF8",
        "SQL_ASCII",
        "LATIN",
        "ISO_8859",
        "WIN",
        "KOI8",
        "EUC_",
        "SJIS",
        "SHIFT_JIS",
        "BIG5",
        "GBK",
        "UHC",
        "GB18030",
        "JOHAB",
        "MULE_INTERNAL",
    ];
    let plain = text.len() <= 16 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    plain && FAMILIES.iter().any(|family| text.starts_with(family))
}

/// Cuts the bytes of invalid sequences (`0xe9 0x61`).
fn cut_hex(message: &str) -> String {
    let words = message.split(' ').map(|word| match word.strip_prefix("0x") {
        Some(digits) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit()) => "0x..",
        _ => word,
    });
    let mut kept: Vec<&str> = words.collect();
    kept.dedup_by(|a, b| *a == "0x.." && a == b);
    kept.join(" ")
}

/// The line of what is sent to COPY that a context names.
pub(crate) fn line_of(context: &str, relation: &Relation) -> Option<u64> {
    find_spot(context, relation, &[]).map(|spot| spot.line)
}

/// What a context says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    pub(crate) line: u64,
    pub(crate) column: Option<String>,
    /// What it shows of the input is an empty string.
    is_empty: bool,
}

/// Finds `COPY t, line 3, column b: "..."` in a context, in whatever language the server speaks: the part
/// that names COPY and the table, then the first number, then a column of ours. `None` if in doubt.
pub(crate) fn find_spot(context: &str, relation: &Relation, columns: &[String]) -> Option<Spot> {
    context.lines().find_map(|text| {
        let after = after_copy_and_name(text, &relation.name)?;
        let is_empty = shows_nothing(after);
        // What stands behind the colon or in quotation marks is the value: numbers and names in it mean
        // nothing.
        let after = &after[..after.find([':', '\u{ff1a}']).unwrap_or(after.len())];
        let after = &after[..after.find(QUOTES).unwrap_or(after.len())];
        let start = after.find(|c: char| c.is_ascii_digit())?;
        let rest = &after[start..];
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let column = named_column(&rest[end..], columns);
        Some(Spot { line: rest[..end].parse().ok()?, column, is_empty })
    })
}

/// Ends in a colon and quotation marks with nothing between.
fn shows_nothing(context: &str) -> bool {
    let Some(colon) = context.find([':', '\u{ff1a}']) else { return false };
    let value = context[colon..].chars().skip(1).filter(|c| !matches!(c, ' ' | '\u{a0}'));
    value.clone().count() == 2 && value.clone().all(|c| QUOTES.contains(&c))
}

/// What follows both the word COPY and the table's name. Japanese and Korean put the name first.
fn after_copy_and_name<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    if let Some(after) = text.strip_prefix("COPY ").and_then(|rest| rest.strip_prefix(name)) {
        return Some(after);
    }
    let after_name = text.strip_prefix(name)?;
    ["\u{306e}COPY", " \u{bcf5}\u{c0ac}"].iter().find_map(|word| after_name.strip_prefix(word))
}

/// The column of ours that stands in the text as a word of its own; of several the last, and of those
/// that end together the longest: the word for "column" comes before the name, and may itself be a name.
fn named_column(text: &str, columns: &[String]) -> Option<String> {
    let is_edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
    let end_in_text = |column: &String| {
        let found = text.match_indices(column.as_str()).filter(|(at, found)| {
            is_edge(text[..*at].chars().next_back()) && is_edge(text[at + found.len()..].chars().next())
        });
        found.map(|(at, found)| at + found.len()).last()
    };
    let named = columns.iter().filter(|column| !column.is_empty());
    let named = named.filter_map(|column| Some((end_in_text(column)?, column.len(), column)));
    named.max().map(|(_, _, column)| column.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spot(context: &str) -> Option<(u64, Option<String>)> {
        let relation = Relation { schema: "s".to_owned(), name: "t2".to_owned() };
        let columns = ["a1", "b", "long name", "column", "name", "input"].map(str::to_owned);
        find_spot(context, &relation, &columns).map(|spot| (spot.line, spot.column))
    }

    #[test]
    fn line_and_column_are_found_in_any_language() {
        let at = |line, column: &str| Some((line, Some(column.to_owned())));
        assert_eq!(spot("COPY t2, line 3, column b: \"7\""), at(3, "b"));
        assert_eq!(spot("COPY t2, line 12, column long name: \"7\""), at(12, "long name"));
        assert_eq!(spot("COPY t2, line 3, column column: \"7\""), at(3, "column"));
        assert_eq!(spot("COPY t2, line 3, column b: null input"), at(3, "b"));
        assert_eq!(spot("COPY t2, \u{884c} 3, \u{5217} b: \"7\""), at(3, "b"));
        assert_eq!(spot("COPY t2, Zeile 3, Spalte a1: \u{bb}7\u{ab}"), at(3, "a1"));
        assert_eq!(spot("COPY t2, ligne 3, colonne b : \u{ab} 7 \u{bb}"), at(3, "b"));
        assert_eq!(spot("t2\u{306e}COPY\u{3001}\u{884c} 3\u{3001}\u{5217} b: \"7\""), at(3, "b"));
        assert_eq!(spot("t2 \u{bcf5}\u{c0ac}, 3\u{bc88}\u{c9f8} \u{c904}, b \u{c5f4}: \"7\""), at(3, "b"));
        assert_eq!(spot("COPY t2, line 9: \"b,5\""), Some((9, None)));
        assert_eq!(spot("COPY t2, line 9"), Some((9, None)));
    }

    #[test]
    fn a_relation_is_known_by_its_whole_name() {
        let relation = Relation { schema: "s".to_owned(), name: "t2".to_owned() };
        assert!(names("relation \"s.t2\" does not exist", &relation));
        assert!(names("Relation \u{bb}s.t2\u{ab} existiert nicht", &relation));
        assert!(!names("relation \"s.t2_a_idx\" does not exist", &relation));
        assert!(!names("relation \"howdah.staging_0123_0\" does not exist", &relation));
    }

    #[test]
    fn an_empty_string_is_known_from_the_context() {
        let relation = Relation { schema: "s".to_owned(), name: "t2".to_owned() };
        let is_empty = |context: &str| find_spot(context, &relation, &["b".to_owned()]).unwrap().is_empty;
        assert!(is_empty("COPY t2, line 3, column b: \"\""));
        assert!(is_empty("COPY t2, ligne 3, colonne b : \u{ab}  \u{bb}"));
        for context in
            ["COPY t2, line 3, column b: \"x\"", "COPY t2, line 3", "COPY t2, line 3, column b: \"\"\""]
        {
            assert!(!is_empty(context), "{context}");
        }
    }

    #[test]
    fn whatever_is_said_while_a_value_is_read_is_cut() {
        let clean = |sqlstate, message| input_without_values(sqlstate, message, &["b", "posint"]);
        for (sqlstate, message, expected) in [
            ("42P01", "relation \"nosuch\" does not exist", "relation \"...\" does not exist"),
            ("42704", "role \"nobody9\" does not exist", "role \"...\" does not exist"),
            ("42601", "syntax error in tsquery: \"(a\"", "syntax error in tsquery: \"...\""),
            ("42883", "operator does not exist: @@@", "operator does not exist: \"...\""),
            (
                "42601",
                "improper relation name (too many dotted names): a.b.c.d",
                "improper relation name (too many dotted names): \"...\"",
            ),
            ("23502", "null value in column \"b\" violates it", "null value in column \"b\" violates it"),
            (
                "23514",
                "value for domain posint violates \"posint\"",
                "value for domain posint violates \"posint\"",
            ),
            (
                "57014",
                "canceling statement due to statement timeout",
                "canceling statement due to statement timeout",
            ),
        ] {
            assert_eq!(clean(sqlstate, message), expected);
        }
        assert!(!clean("P0001", "bad row secret").contains("secret"));
    }

    #[test]
    fn a_context_of_a_function_is_told_from_that_of_a_copy() {
        assert!(!names_function("COPY t2, line 3, column b: \"7\""));
        for context in ["PL/Tcl function \"f\"", "f() LINE 1\nCOPY t2, line 3", "COPY t2, line 3: \"a\nb\""] {
            assert!(names_function(context), "{context}");
        }
    }

    #[test]
    fn a_context_that_is_not_understood_gives_no_line() {
        for context in
            ["", "COPY other, line 3", "PL/pgSQL function f() line 3 at RAISE", "COPY t2: \"line 4\""]
        {
            assert_eq!(spot(context), None, "{context}");
        }
        let nested = "JSON data, line 1: {\"COPY t2, line 7\nCOPY t2, line 3, column b: \"x\"";
        assert_eq!(spot(nested), Some((3, Some("b".to_owned()))));
    }

    #[test]
    fn values_are_cut_from_messages_and_names_are_not() {
        let clean = |sqlstate, message| message_without_values(sqlstate, message, &["b", "mood"]);
        assert_eq!(
            clean("22P02", "invalid input syntax for type integer: \"sec\"ret\""),
            "invalid input syntax for type integer: \"...\""
        );
        assert_eq!(
            clean("22003", "value \"99999\" is out of range for type integer"),
            "value \"...\" is out of range for type integer"
        );
        assert_eq!(
            clean("22021", "invalid byte sequence for encoding \"UTF8\": 0xe9 0x61 0x62"),
            "invalid byte sequence for encoding \"UTF8\": 0x.."
        );
        assert_eq!(clean("22P04", "missing data for column \"b\""), "missing data for column \"b\"");
        assert_eq!(
            clean("22P02", "ung\u{fc}ltige Eingabesyntax f\u{fc}r Typ integer: \u{bb}secret\u{ab}"),
            "ung\u{fc}ltige Eingabesyntax f\u{fc}r Typ integer: \"...\""
        );
        assert_eq!(
            clean("23505", "duplicate key value violates unique constraint \"t_pkey\""),
            "duplicate key value violates unique constraint \"t_pkey\""
        );
        for (sqlstate, message, expected) in [
            ("42P01", "relation \"secret\" does not exist", "relation \"...\" does not exist"),
            ("42P01", "relation \"mood\" does not exist", "relation \"mood\" does not exist"),
            ("42601", "syntax error at or near \"secret\"", "syntax error at or near \"...\""),
            ("42883", "operator does not exist: secret", "operator does not exist: \"...\""),
            ("58P01", "could not open file \"secret\"", "could not open file \"...\""),
            ("3D000", "database \"secret\" does not exist", "database \"...\" does not exist"),
            ("42501", "permission denied for table other", "permission denied for table other"),
        ] {
            assert_eq!(clean(sqlstate, message), expected);
        }
        assert!(!clean("42883", "function secret(integer) does not exist").contains("secret"));
        for sqlstate in ["P0001", "38000", "38001", "39P01"] {
            assert!(!clean(sqlstate, "bad row secret").contains("secret"));
        }
        assert!(!clean("22P02", "unterminated \"secret").contains("secret"));
        assert!(!clean("22P02", "invalid \"b\": \"secret \"b\" secret\" in \"b\"").contains("secret"));
        for value in ["b\" secret", "UTF8\" secret \"b", "mood"] {
            let message = format!("invalid input syntax for type integer: \"{value}\"");
            let shown = message_without_values("22P02", &message, &["b", "mood"]);
            assert_eq!(shown, "invalid input syntax for type integer: \"...\"");
        }
    }
}
