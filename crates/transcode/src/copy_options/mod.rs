//! Reads the option list of a COPY statement, as in `(FORMAT csv, HEADER true, DELIMITER E'\t')`, for people
//! who have one.
//!
//! The grammar is that of COPY FROM (<https://www.postgresql.org/docs/current/sql-copy.html>): names are
//! case-insensitive, values are words, numbers, string constants of any spelling, `*`, or a list of columns.
//! Options that would change what a load promises are refused with the reason.

mod scan;

use howdah_model::{ColumnChoice, Error, ErrorKind, Format, FormatKind, Header, Result};
use scan::{Scanner, Token, syntax};
use std::collections::BTreeSet;

/// Longer texts are no option lists.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// The value of one option.
#[derive(Debug)]
enum Value {
    Absent,
    /// A word, number or string constant.
    One(String),
    /// `*`
    All,
    List(Vec<String>),
}

/// The dialect that these options describe.
///
/// # Errors
/// `Usage` when the text is no option list or an option has no such value, `Unsupported` for FORMAT binary
/// and for options that howdah has its own answer to.
pub fn parse(text: &str) -> Result<Format> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(syntax("it is too long"));
    }
    let options = read_list(text)?;
    let mut format = match find(&options, "format") {
        None => Format::text(),
        Some(value) => match one("format", value)?.to_lowercase().as_str() {
            "text" => Format::text(),
            "csv" => Format::csv(),
            "binary" => {
                return Err(Error::new(ErrorKind::Unsupported, "FORMAT binary is not loaded")
                    .with_hint("binary files have no lines to split at; load them with psql's \\copy"));
            }
            other => return Err(value_error("FORMAT", "text or csv", other)),
        },
    };
    for (name, value) in &options {
        apply(&mut format, name, value)?;
    }
    let quoting = ["quote", "escape"].into_iter().find(|name| find(&options, name).is_some());
    if let Some(name) = quoting.filter(|_| format.kind == FormatKind::Text) {
        let message = format!("COPY's option {} requires the csv format", name.to_uppercase());
        return Err(Error::new(ErrorKind::Usage, message));
    }
    if find(&options, "quote").is_some() && find(&options, "escape").is_none() {
        format.escape = format.quote;
    }
    check(&format)?;
    Ok(format)
}

fn find<'a>(options: &'a [(String, Value)], name: &str) -> Option<&'a Value> {
    options.iter().find(|(other, _)| other == name).map(|(_, value)| value)
}

fn read_list(text: &str) -> Result<Vec<(String, Value)>> {
    let mut scanner = Scanner::new(text);
    let mut token = scanner.next()?;
    if token == Some(Token::Word("with".to_owned())) {
        token = scanner.next()?;
    }
    if token != Some(Token::Mark('(')) {
        return Err(syntax("expected an opening parenthesis"));
    }
    let mut options = Vec::new();
    let mut names = BTreeSet::new();
    loop {
        let Some(Token::Word(name)) = scanner.next()? else {
            return Err(syntax("expected the name of an option"));
        };
        let (value, end) = read_value(&mut scanner)?;
        if !names.insert(name.clone()) {
            return Err(syntax(&format!("option {} is given twice", name.to_uppercase())));
        }
        options.push((name, value));
        match end {
            Token::Mark(',') => {}
            _ => break,
        }
    }
    match scanner.next()? {
        None => Ok(options),
        Some(_) => Err(syntax("there is more after the closing parenthesis")),
    }
}

/// A value and the mark after it: `,` or `)`.
fn read_value(scanner: &mut Scanner<'_>) -> Result<(Value, Token)> {
    let value = match scanner.next()? {
        Some(end @ Token::Mark(',' | ')')) => return Ok((Value::Absent, end)),
        Some(Token::Mark('*')) => Value::All,
        Some(Token::Mark('(')) => Value::List(read_columns(scanner)?),
        Some(Token::Word(text) | Token::Text(text) | Token::Quoted(text)) => Value::One(text),
        Some(Token::Mark(_)) | None => return Err(syntax("an option has no end")),
    };
    match scanner.next()? {
        Some(end @ Token::Mark(',' | ')')) => Ok((value, end)),
        _ => Err(syntax("expected a comma or a closing parenthesis")),
    }
}

fn read_columns(scanner: &mut Scanner<'_>) -> Result<Vec<String>> {
    let mut columns = Vec::new();
    loop {
        match scanner.next()? {
            Some(Token::Word(name) | Token::Quoted(name)) => columns.push(name),
            _ => return Err(syntax("expected the name of a column")),
        }
        match scanner.next()? {
            Some(Token::Mark(',')) => {}
            Some(Token::Mark(')')) => return Ok(columns),
            _ => return Err(syntax("a list of columns does not end")),
        }
    }
}

fn apply(format: &mut Format, name: &str, value: &Value) -> Result<()> {
    match name {
        "format" => {}
        "delimiter" => format.delimiter = byte("DELIMITER", &one(name, value)?)?,
        "quote" => format.quote = byte("QUOTE", &one(name, value)?)?,
        "escape" => format.escape = byte("ESCAPE", &one(name, value)?)?,
        "null" => format.null = one(name, value)?,
        "default" => format.default = Some(one(name, value)?),
        "encoding" => format.encoding = Some(one(name, value)?),
        "header" => format.header = header(value)?,
        "force_null" => format.force_null = choice(name, value)?,
        "force_not_null" => format.force_not_null = choice(name, value)?,
        "freeze" if is_false(value) => {}
        "freeze" => {
            return Err(refused(
                "FREEZE",
                "it needs a table made in the same transaction, and a load has many",
                "--freeze does that for tables that the load makes or empties",
            ));
        }
        "on_error" if matches!(value, Value::One(word) if word.eq_ignore_ascii_case("stop")) => {}
        "on_error" | "reject_limit" | "log_verbosity" => {
            return Err(refused(
                &name.to_uppercase(),
                "rows it skips would be missing from the account of read = stored",
                "--on-error skip keeps such records and goes on, --max-errors says how many it bears",
            ));
        }
        "force_quote" | "force_array" => {
            return Err(Error::new(
                ErrorKind::Usage,
                format!("{} is an option of COPY TO", name.to_uppercase()),
            ));
        }
        _ => return Err(syntax(&format!("there is no option {}", name.to_uppercase()))),
    }
    Ok(())
}

fn is_false(value: &Value) -> bool {
    matches!(value, Value::One(word) if matches!(word.to_lowercase().as_str(), "false" | "off" | "0"))
}

/// HEADER's value as COPY reads it.
pub fn header_word(word: &str) -> Result<Header> {
    match word.to_lowercase().as_str() {
        "true" | "on" | "1" => Ok(Header::Names),
        "false" | "off" | "0" => Ok(Header::None),
        "match" => Ok(Header::Match),
        other => Err(value_error("HEADER", "true, false or match", other)),
    }
}

fn header(value: &Value) -> Result<Header> {
    match value {
        Value::Absent => Ok(Header::Names),
        Value::One(word) => header_word(word),
        Value::All | Value::List(_) => Err(value_error("HEADER", "true, false or match", "a list")),
    }
}

fn one(name: &str, value: &Value) -> Result<String> {
    match value {
        Value::One(text) => Ok(text.clone()),
        Value::Absent | Value::All | Value::List(_) => {
            Err(syntax(&format!("option {} takes one value", name.to_uppercase())))
        }
    }
}

fn choice(name: &str, value: &Value) -> Result<ColumnChoice> {
    match value {
        Value::All => Ok(ColumnChoice::All),
        Value::List(columns) => Ok(ColumnChoice::Named(columns.clone())),
        Value::Absent | Value::One(_) => {
            Err(syntax(&format!("option {} takes a list of columns or *", name.to_uppercase())))
        }
    }
}

/// One byte, as COPY demands of delimiter, quote and escape.
///
/// # Errors
/// `Usage` for anything else.
pub fn byte(name: &str, text: &str) -> Result<u8> {
    match text.as_bytes() {
        [byte] => Ok(*byte),
        other => Err(Error::new(
            ErrorKind::Usage,
            format!("{name} must be a single one-byte character, got {} bytes", other.len()),
        )),
    }
}

/// The rules COPY has for options that go together (`ProcessCopyOptions` in `commands/copy.c`).
///
/// # Errors
/// `Usage` naming the rule that is broken.
pub fn check(format: &Format) -> Result<()> {
    let csv = format.kind == FormatKind::Csv;
    let line_end = |byte: u8| byte == b'\n' || byte == b'\r';
    let spellings = [Some(&format.null), format.default.as_ref()];
    let rules = [
        (line_end(format.delimiter), "DELIMITER cannot be newline or carriage return"),
        (
            !csv && b"\\.abcdefghijklmnopqrstuvwxyz0123456789".contains(&format.delimiter),
            "DELIMITER of the text format cannot be a backslash, dot, digit or lower-case letter",
        ),
        (csv && format.delimiter == format.quote, "DELIMITER and QUOTE must be different"),
        (
            csv && (line_end(format.quote) || line_end(format.escape)),
            "QUOTE and ESCAPE cannot be newline or carriage return",
        ),
        (
            spellings.iter().flatten().any(|text| text.bytes().any(line_end)),
            "NULL and DEFAULT cannot use newline or carriage return",
        ),
        (
            spellings.iter().flatten().any(|text| text.as_bytes().contains(&format.delimiter)),
            "DELIMITER must not appear in NULL or DEFAULT",
        ),
        (
            csv && spellings.iter().flatten().any(|text| text.as_bytes().contains(&format.quote)),
            "QUOTE must not appear in NULL or DEFAULT",
        ),
        (format.default.as_ref() == Some(&format.null), "NULL and DEFAULT must be different"),
        (
            !csv && (format.force_null != ColumnChoice::None || format.force_not_null != ColumnChoice::None),
            "FORCE_NULL and FORCE_NOT_NULL require the csv format",
        ),
    ];
    match rules.iter().find(|(broken, _)| *broken) {
        None => Ok(()),
        Some((_, rule)) => Err(Error::new(ErrorKind::Usage, (*rule).to_owned())),
    }
}

fn value_error(name: &str, expected: &str, got: &str) -> Error {
    Error::new(ErrorKind::Usage, format!("{name}: expected {expected}, got {got:?}"))
}

fn refused(name: &str, reason: &str, hint: &str) -> Error {
    let message = format!("COPY's option {name} is not taken: {reason}");
    Error::new(ErrorKind::Unsupported, message).with_hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_scripts_options_are_understood() {
        let format = parse("(FORMAT csv, HEADER true, DELIMITER E'\\t')").unwrap();
        assert_eq!(format, Format { delimiter: b'\t', header: Header::Names, ..Format::csv() });
    }

    #[test]
    fn every_spelling_of_a_value_is_understood() {
        let format = parse(
            "with ( format 'CSV', null $$N/A$$, quote '''', escape E'\\\\', force_null (a, \"B c\"), \
             Force_Not_Null *, encoding \"latin1\", header, default '\\D')",
        )
        .unwrap();
        assert_eq!(format.null, "N/A");
        assert_eq!((format.quote, format.escape), (b'\'', b'\\'));
        assert_eq!(format.force_null, ColumnChoice::Named(vec!["a".to_owned(), "B c".to_owned()]));
        assert_eq!(format.force_not_null, ColumnChoice::All);
        assert_eq!(format.encoding.as_deref(), Some("latin1"));
        assert_eq!(format.header, Header::Names);
        assert_eq!(format.default.as_deref(), Some("\\D"));
    }

    #[test]
    fn the_escape_follows_the_quote_unless_told() {
        assert_eq!(parse("(FORMAT csv, QUOTE '~')").unwrap().escape, b'~');
    }

    #[test]
    fn nonsense_is_refused_and_nothing_panics() {
        for text in [
            "",
            "(",
            ")",
            "()",
            "(format)",
            "(format csv",
            "(format csv) x",
            "(delimiter 'ab')",
            "(null E'\\",
            "($",
            "(header maybe)",
            "(format csv, format csv)",
            "(force_null ())",
            "(delimiter E'\\xff')",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn options_that_break_a_promise_are_refused() {
        for (text, instead) in [
            ("(FREEZE)", "--freeze"),
            ("(ON_ERROR ignore)", "--on-error skip"),
            ("(REJECT_LIMIT 3)", "--max-errors"),
            ("(LOG_VERBOSITY verbose)", "--on-error skip"),
            ("(FORMAT binary)", "\\copy"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{text}");
            assert!(error.hint().is_some_and(|hint| hint.contains(instead)), "{text}: {error:?}");
        }
        assert!(parse("(FREEZE false, ON_ERROR stop)").is_ok());
    }

    #[test]
    fn copys_own_rules_hold() {
        for text in [
            "(FORMAT csv, DELIMITER '\"')",
            "(DELIMITER 'a')",
            "(FORMAT csv, NULL ',')",
            "(FORMAT csv, NULL '\"')",
            "(NULL E'\\n')",
            "(FORCE_NULL (a))",
            "(FORMAT text, QUOTE 'x')",
            "(ESCAPE 'x')",
            "(FORMAT csv, NULL 'x', DEFAULT 'x')",
        ] {
            assert_eq!(parse(text).unwrap_err().kind(), ErrorKind::Usage, "{text}");
        }
    }
}
