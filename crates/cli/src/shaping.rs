//! Options about the dialect and the table, as typed -> [`Shaping`]; and what was found without them, in
//! words.

use crate::account::short;
use crate::options::{EvolveName, FormatOptions, NamesName, ShapingOptions};
use crate::units;
use howdah_engine::model::{
    Error, ErrorKind, Evolve, Names, Nul, Plan, Relation, Result, Shaping, TableChange, Told,
};
use howdah_engine::spelling;
use std::collections::{BTreeMap, BTreeSet};

/// Files whose finding is printed; of more, `howdah plan` tells.
const FILES_LISTED: usize = 20;

/// What the options say, and what they leave to be found.
///
/// # Errors
/// `Usage` for values that are none, and for options that need the dialect to be found beside one that names
/// the format.
pub fn resolve(format: &FormatOptions, options: &ShapingOptions, nul: Nul) -> Result<Shaping> {
    let told = told(format)?;
    let shaping = Shaping {
        told,
        create: options.create,
        types: types(&options.types, &options.named_types)?,
        names: match options.names {
            Some(NamesName::Keep) => Names::Keep,
            None | Some(NamesName::Snake) => Names::Snake,
        },
        primary_key: options.primary_key.concat(),
        evolve: match options.evolve {
            None | Some(EvolveName::None) => Evolve::None,
            Some(EvolveName::Add) => Evolve::Add,
            Some(EvolveName::Widen) => Evolve::Widen,
        },
        lenient: options.lenient == Some(true),
        all_tables: options.all_tables == Some(true),
        nul,
    };
    let needs = [
        ("--create", shaping.create == Some(true)),
        ("--types", !shaping.types.is_empty()),
        ("--names", options.names.is_some()),
        ("--primary-key", !shaping.primary_key.is_empty()),
        ("--evolve", shaping.evolve != Evolve::None),
        ("--lenient", shaping.lenient),
        ("--all-tables", shaping.all_tables),
        ("--nul", !shaping.nul.is_reject()),
    ];
    match needs.iter().find(|(_, given)| *given && shaping.told.is_none()) {
        None => Ok(shaping),
        Some((name, _)) => Err(Error::new(
            ErrorKind::Usage,
            format!("{name} needs to look at the data, and the files are to be read as COPY alone would"),
        )
        .with_hint("leave out --format, --copy-options, --force-null, --force-not-null, --default and --header=match")),
    }
}

/// `None` when the options leave nothing open: they name the format, or use what only COPY itself can do.
fn told(options: &FormatOptions) -> Result<Option<Told>> {
    let only_copy = options.format.is_some()
        || options.copy_options.is_some()
        || options.force_null.is_some()
        || options.force_not_null.is_some()
        || options.default.is_some();
    let header = match options.header.as_deref() {
        Some(word) if word.eq_ignore_ascii_case("match") => return Ok(None),
        Some(word) => Some(header(word)?),
        None => None,
    };
    if only_copy {
        return Ok(None);
    }
    let quote = match options.quote.as_deref() {
        None => None,
        Some("none" | "") => Some(None),
        Some(text) => Some(Some(units::byte("--quote", text)?)),
    };
    let escape = options.escape.as_deref().map(|text| units::byte("--escape", text)).transpose()?;
    let mut nulls = options.null.iter().flatten().cloned();
    Ok(Some(Told {
        delimiter: options.delimiter.as_deref().map(|text| units::text("--delimiter", text)).transpose()?,
        quote: escaped_quote(quote, escape)?,
        escape,
        null: nulls.next(),
        also_null: nulls.collect(),
        header,
        encoding: options.encoding.clone(),
        dialect: None,
    }))
}

/// What is known of the quote when the escape is. Another escape than the backslash is the quote itself.
fn escaped_quote(quote: Option<Option<u8>>, escape: Option<u8>) -> Result<Option<Option<u8>>> {
    match (quote, escape) {
        (_, None | Some(b'\\')) => Ok(quote),
        (None, Some(escape @ (b'"' | b'\''))) => Ok(Some(Some(escape))),
        (Some(Some(quote)), Some(escape)) if quote == escape => Ok(Some(Some(quote))),
        (_, Some(escape)) => Err(Error::new(
            ErrorKind::Usage,
            format!(
                "--escape: without --format, expected a backslash or the quote, got {:?}",
                char::from(escape)
            ),
        )
        .with_hint("give --format csv, which takes any byte")),
    }
}

/// Says that options which only COPY itself can follow leave nothing to be found; `None` if the format is
/// named, which says the same.
pub fn notice(options: &FormatOptions) -> Option<String> {
    let is_match = options.header.as_deref().is_some_and(|word| word.eq_ignore_ascii_case("match"));
    let given = [
        ("--force-null", options.force_null.is_some()),
        ("--force-not-null", options.force_not_null.is_some()),
        ("--default", options.default.is_some()),
        ("--header=match", is_match),
    ];
    let given: Vec<&str> = given.iter().filter(|(_, given)| *given).map(|(name, _)| *name).collect();
    (!given.is_empty() && options.format.is_none()).then(|| {
        format!(
            "nothing is found from the data beside {}: files are read as COPY reads csv, with a comma between fields unless \
             --delimiter is given",
            given.join(", ")
        )
    })
}

fn header(word: &str) -> Result<bool> {
    use howdah_engine::{copy_options::header_word, model::Header};
    Ok(header_word(word)? != Header::None)
}

/// `a=numeric(10,2),b=text`: a comma that no `column=` follows belongs to the type or its spelling. Of the
/// named ones those that are not written.
fn types(written: &[String], named: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>> {
    let mut types = BTreeMap::new();
    for pair in written.iter().flat_map(|list| pairs(list)) {
        let Some((column, type_name)) =
            pair.split_once('=').filter(|(column, type_name)| !column.is_empty() && !type_name.is_empty())
        else {
            return Err(Error::new(ErrorKind::Usage, format!("--types: expected COLUMN=TYPE, got {pair:?}")));
        };
        let (column, type_name) = (column.trim().to_owned(), type_name.trim().to_owned());
        if types.insert(column.clone(), type_name).is_some() {
            return Err(Error::new(ErrorKind::Usage, format!("--types names the column {column} twice")));
        }
    }
    for (column, type_name) in named {
        if column.is_empty() || type_name.trim().is_empty() {
            let message = format!("types: expected a column and its type, got {column:?} and {type_name:?}");
            return Err(Error::new(ErrorKind::Usage, message));
        }
        types.entry(column.clone()).or_insert_with(|| type_name.trim().to_owned());
    }
    Ok(types)
}

fn pairs(list: &str) -> Vec<String> {
    let mut pairs: Vec<String> = Vec::new();
    for part in list.split(',') {
        match pairs.last_mut() {
            Some(last) if !part.contains('=') => {
                last.push(',');
                last.push_str(part);
            }
            _ => pairs.push(part.to_owned()),
        }
    }
    pairs
}

/// What was found and decided beyond the options, a line each: how files are written, the tables that are
/// made.
pub fn found(plan: &Plan) -> Vec<String> {
    let mut lines = Vec::new();
    for file in plan.files.iter().take(FILES_LISTED) {
        if let Some(found) = &file.found {
            lines.push(format!("found  {}: {found}", short(&file.location)));
        }
        lines.extend(file.unsure.iter().map(|unsure| format!("unsure {}: {unsure}", short(&file.location))));
    }
    let mut made = BTreeSet::new();
    for table in &plan.tables {
        if let Some(create) = table.create.as_ref().filter(|_| made.insert(&table.table.relation)) {
            let columns = create.columns.iter().map(|column| format!("{} {}", column.name, column.type_name));
            let columns: Vec<String> = columns.collect();
            lines.push(format!("table  {} ({})", table.table.relation, columns.join(", ")));
        }
    }
    let mut changed = BTreeSet::new();
    for table in &plan.tables {
        let relation = &table.table.relation;
        if changed.insert(relation) {
            lines.extend(table.changes.iter().map(|change| change_line(relation, change)));
        }
        lines.extend(table.unsure.iter().map(|unsure| format!("unsure {relation}: {unsure}")));
        for (column, reading) in table.fields.iter().zip(&table.readings) {
            if let (Some(column), Some(reading)) = (column, reading) {
                lines.push(format!("reads  {relation}.{column} as {}", spelling(reading)));
            }
        }
    }
    lines
}

/// What `--evolve` does to a column, in a line.
pub(crate) fn change_line(relation: &Relation, change: &TableChange) -> String {
    match change {
        TableChange::Add(column) => format!("adds   {relation}.{} {}", column.name, column.type_name),
        TableChange::Widen(column) => format!("widens {relation}.{} to {}", column.name, column.type_name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::FormatName;

    fn with(quote: Option<&str>, escape: &str) -> FormatOptions {
        let quote = quote.map(str::to_owned);
        FormatOptions { quote, escape: Some(escape.to_owned()), ..FormatOptions::default() }
    }

    #[test]
    fn an_escape_is_a_backslash_or_the_quote() {
        let quote = |quote, escape| told(&with(quote, escape)).map(|told| told.unwrap().quote);
        assert_eq!(quote(None, "\\").unwrap(), None);
        assert_eq!(quote(None, "'").unwrap(), Some(Some(b'\'')));
        assert_eq!(quote(Some("|"), "|").unwrap(), Some(Some(b'|')));
        assert_eq!(quote(Some("none"), "\\").unwrap(), Some(None));
        for (given, escape) in [(None, "!"), (Some("\""), "'"), (Some("none"), "\"")] {
            assert_eq!(quote(given, escape).unwrap_err().kind(), ErrorKind::Usage, "{given:?} {escape}");
        }
        let copied = FormatOptions { format: Some(FormatName::Csv), ..with(None, "!") };
        assert_eq!(told(&copied).unwrap(), None);
    }

    #[test]
    fn names_of_a_new_table_need_the_data_to_be_looked_at() {
        let format = FormatOptions { format: Some(FormatName::Csv), ..FormatOptions::default() };
        let names = ShapingOptions { names: Some(NamesName::Keep), ..ShapingOptions::default() };
        let refused = resolve(&format, &names, Nul::Reject).unwrap_err();
        assert!(refused.message().starts_with("--names needs to look at the data"), "{refused}");
        assert!(resolve(&FormatOptions::default(), &names, Nul::Reject).is_ok());
    }

    #[test]
    fn options_of_copy_alone_are_said_to_end_the_finding() {
        let default = Some("x".to_owned());
        let header = Some("match".to_owned());
        let copied = FormatOptions { default, header, ..FormatOptions::default() };
        assert!(notice(&copied).unwrap().contains("beside --default, --header=match"));
        assert_eq!(notice(&FormatOptions { format: Some(FormatName::Csv), ..copied }), None);
        assert_eq!(notice(&FormatOptions::default()), None);
    }

    #[test]
    fn a_comma_belongs_to_the_type_unless_a_column_follows() {
        let types =
            types(&["a=numeric(10,2),b=text".to_owned(), "*=numeric:1.234,56".to_owned()], &BTreeMap::new())
                .unwrap();
        let pairs: Vec<_> = types.iter().map(|(column, name)| (column.as_str(), name.as_str())).collect();
        assert_eq!(pairs, [("*", "numeric:1.234,56"), ("a", "numeric(10,2)"), ("b", "text")]);
    }

    #[test]
    fn a_type_given_twice_or_not_at_all_is_refused() {
        for wrong in ["a", "a=", "=text", "a=int,a=text", ""] {
            assert_eq!(
                types(&[wrong.to_owned()], &BTreeMap::new()).unwrap_err().kind(),
                ErrorKind::Usage,
                "{wrong}"
            );
        }
    }
}
