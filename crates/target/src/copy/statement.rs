//! The COPY statement for a format, with every option spelt out, so that neither server defaults nor
//! `client_encoding` decide what bytes mean. HEADER is never among them: splitting cuts headers off.
//! Options the server's version lacks are refused here, before anything is sent.
//! Source: PostgreSQL documentation, COPY; release notes of 16 (DEFAULT) and 17 (`FORCE_NULL *`).

use crate::sql::{quote_columns, quote_ident, quote_literal, quote_relation};
use howdah_model::{ColumnChoice, Error, ErrorKind, Format, FormatKind, Relation, Result, TablePlan};

/// The first version with the DEFAULT option.
const DEFAULT_SINCE: u32 = 160_000;

/// `COPY "s"."t" ("a", "b") FROM STDIN WITH (...)` for bytes that go as the file has them.
///
/// # Errors
/// Usage, for options that do not go together or that this server does not have; Columns, for
/// FORCE_NULL and FORCE_NOT_NULL of columns that are not loaded, or no columns at all.
pub fn statement(
    relation: &Relation,
    columns: &[String],
    format: &Format,
    server_version: u32,
) -> Result<String> {
    let mut options = match format.kind {
        FormatKind::Text => vec!["FORMAT text".to_owned()],
        FormatKind::Csv => vec!["FORMAT csv".to_owned()],
    };
    options.push(format!("DELIMITER {}", one_byte("DELIMITER", format.delimiter)?));
    options.push(format!("NULL {}", quote_literal(&format.null)));
    if format.kind == FormatKind::Csv {
        options.push(format!("QUOTE {}", one_byte("QUOTE", format.quote)?));
        options.push(format!("ESCAPE {}", one_byte("ESCAPE", format.escape)?));
    }
    for (name, choice) in [("FORCE_NULL", &format.force_null), ("FORCE_NOT_NULL", &format.force_not_null)] {
        options.extend(force_option(name, choice, format.kind, columns)?);
    }
    options.extend(default_option(format.default.as_deref(), server_version)?);
    options.push(format!("ENCODING {}", quote_literal(format.encoding.as_deref().unwrap_or("UTF8"))));
    with_options(relation, columns, &options)
}

/// `COPY "s"."t" ("a", "b") FROM STDIN WITH (FORMAT binary)`.
///
/// # Errors
/// Columns, for no columns at all.
pub fn binary_statement(relation: &Relation, columns: &[String]) -> Result<String> {
    with_options(relation, columns, &["FORMAT binary".to_owned()])
}

/// The same statement with one more column behind its last, which is `last`; `None` if it is not a statement
/// of such columns.
pub fn with_column(copy_sql: &str, last: &str, column: &str) -> Option<String> {
    let (before, behind) = copy_sql.split_once(&format!("{}) FROM STDIN WITH (", quote_ident(last)))?;
    Some(format!("{before}{}, {}) FROM STDIN WITH ({behind}", quote_ident(last), quote_ident(column)))
}

/// The same statement for a leaf partition of the relation; `None` if it is not a statement for the relation.
pub(crate) fn into_leaf(copy_sql: &str, relation: &Relation, leaf: &Relation) -> Option<String> {
    let rest = copy_sql.strip_prefix("COPY ")?.strip_prefix(&quote_relation(relation))?;
    Some(format!("COPY {}{rest}", quote_relation(leaf)))
}

/// The same statement, writing frozen rows: for a table that the same transaction has made or emptied
/// (PostgreSQL documentation, COPY, `FREEZE`). `None` if it is not a COPY statement with options.
pub(crate) fn freezing(copy_sql: &str) -> Option<String> {
    Some(format!("{}, FREEZE)", copy_sql.strip_suffix(')')?))
}

/// Has the statements of the plan copy into another relation of the same columns.
pub(crate) fn aim(table: &mut TablePlan, from: &Relation, to: &Relation) -> Result<()> {
    let aimed = |sql: &str| {
        into_leaf(sql, from, to).ok_or_else(|| {
            Error::new(ErrorKind::Internal, format!("a COPY statement of the plan is not one for {from}"))
        })
    };
    table.copy_sql = aimed(&table.copy_sql)?;
    table.text_sql = table.text_sql.as_deref().map(aimed).transpose()?;
    if let Some(binary) = &mut table.binary {
        binary.copy_sql = aimed(&binary.copy_sql)?;
    }
    Ok(())
}

fn with_options(relation: &Relation, columns: &[String], options: &[String]) -> Result<String> {
    if columns.is_empty() {
        return Err(Error::new(ErrorKind::Columns, format!("no column of {relation} is to be loaded")));
    }
    Ok(format!(
        "COPY {} ({}) FROM STDIN WITH ({})",
        quote_relation(relation),
        quote_columns(columns),
        options.join(", ")
    ))
}

fn one_byte(option: &str, byte: u8) -> Result<String> {
    if byte == 0 || !byte.is_ascii() {
        let message = format!("COPY {option} must be a single one-byte character, got byte 0x{byte:02x}");
        return Err(Error::new(ErrorKind::Usage, message));
    }
    Ok(quote_literal(&char::from(byte).to_string()))
}

/// `*` exists only from version 17 on; naming the columns means the same everywhere.
fn force_option(
    name: &str,
    choice: &ColumnChoice,
    kind: FormatKind,
    columns: &[String],
) -> Result<Option<String>> {
    let named = match choice {
        ColumnChoice::None => return Ok(None),
        ColumnChoice::All => columns,
        ColumnChoice::Named(named) if named.is_empty() => return Ok(None),
        ColumnChoice::Named(named) => named,
    };
    if kind != FormatKind::Csv {
        return Err(Error::new(ErrorKind::Usage, format!("COPY {name} is available only with FORMAT csv")));
    }
    if let Some(unknown) = named.iter().find(|column| !columns.contains(column)) {
        let message = format!("{name} names column {}, which is not loaded", quote_ident(unknown));
        return Err(Error::new(ErrorKind::Columns, message));
    }
    Ok(Some(format!("{name} ({})", quote_columns(named))))
}

fn default_option(default: Option<&str>, server_version: u32) -> Result<Option<String>> {
    let Some(default) = default else { return Ok(None) };
    if server_version < DEFAULT_SINCE {
        let major = server_version / 10_000;
        let message = format!("COPY's DEFAULT option needs PostgreSQL 16 or newer; this server is {major}");
        return Err(Error::new(ErrorKind::Usage, message)
            .with_hint("leave the column out of the file, and it gets its default"));
    }
    Ok(Some(format!("DEFAULT {}", quote_literal(default))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relation() -> Relation {
        Relation { schema: "s".to_owned(), name: "t\"x".to_owned() }
    }

    fn columns() -> Vec<String> {
        vec!["a".to_owned(), "B c".to_owned()]
    }

    #[test]
    fn every_option_is_spelt_out_and_quoted() {
        let format = Format {
            delimiter: b'\t',
            quote: b'\'',
            escape: b'\\',
            null: "it's".to_owned(),
            encoding: Some("LATIN1".to_owned()),
            force_null: ColumnChoice::All,
            force_not_null: ColumnChoice::Named(vec!["B c".to_owned()]),
            default: Some("\\D".to_owned()),
            ..Format::csv()
        };
        assert_eq!(
            statement(&relation(), &columns(), &format, 160_000).unwrap(),
            "COPY \"s\".\"t\"\"x\" (\"a\", \"B c\") FROM STDIN WITH (FORMAT csv, DELIMITER E'\\t', NULL 'it''s', \
             QUOTE '''', ESCAPE E'\\\\', FORCE_NULL (\"a\", \"B c\"), FORCE_NOT_NULL (\"B c\"), \
             DEFAULT E'\\\\D', ENCODING 'LATIN1')"
        );
        assert_eq!(
            statement(&relation(), &columns(), &Format::text(), 130_000).unwrap(),
            "COPY \"s\".\"t\"\"x\" (\"a\", \"B c\") FROM STDIN WITH (FORMAT text, DELIMITER E'\\t', NULL E'\\\\N', \
             ENCODING 'UTF8')"
        );
    }

    #[test]
    fn what_the_server_does_not_have_is_refused_before_anything_is_sent() {
        let default = Format { default: Some("\\D".to_owned()), ..Format::csv() };
        let error = statement(&relation(), &columns(), &default, 150_018).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        let force = Format { force_null: ColumnChoice::Named(vec!["z".to_owned()]), ..Format::csv() };
        assert_eq!(
            statement(&relation(), &columns(), &force, 180_000).unwrap_err().kind(),
            ErrorKind::Columns
        );
        let text = Format { force_null: ColumnChoice::All, ..Format::text() };
        assert_eq!(statement(&relation(), &columns(), &text, 180_000).unwrap_err().kind(), ErrorKind::Usage);
        let wide = Format { delimiter: 0xe9, ..Format::csv() };
        assert_eq!(statement(&relation(), &columns(), &wide, 180_000).unwrap_err().kind(), ErrorKind::Usage);
        assert_eq!(
            statement(&relation(), &[], &Format::csv(), 180_000).unwrap_err().kind(),
            ErrorKind::Columns
        );
    }
}
