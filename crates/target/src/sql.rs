//! Quoting for SQL text. Every name and literal that howdah puts into a statement goes through here,
//! because COPY and DDL take no parameters. Rules: PostgreSQL documentation, "Lexical Structure".

use howdah_model::Relation;

/// The name as an identifier, always quoted so that case and key words do not matter.
pub fn quote_ident(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The text as a string literal. A backslash or control character makes it an `E''` literal, which
/// means the same whatever `standard_conforming_strings` says.
pub fn quote_literal(text: &str) -> String {
    let plain = |c: char| c != '\\' && !c.is_ascii_control();
    if text.chars().all(plain) {
        return format!("'{}'", text.replace('\'', "''"));
    }
    let mut out = String::from("E'");
    for c in text.chars() {
        match c {
            '\'' => out.push_str("''"),
            '\\' => out.push_str("\\\\"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            c if c.is_ascii_control() => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

/// In the transaction in which tables of howdah's own and their indexes are made: they go where the role's
/// other tables go, and to the database's own tablespace, which takes no right, where it may make nothing
/// there. Temporary tables need none of this: the server leaves out tablespaces that a role may not use.
pub(crate) const OWN_TABLESPACE_SQL: &str = "\
    SELECT pg_catalog.set_config('default_tablespace', '', true) FROM pg_catalog.pg_tablespace t \
    WHERE t.spcname = pg_catalog.current_setting('default_tablespace') \
      AND NOT pg_catalog.has_tablespace_privilege(t.oid, 'CREATE')";

/// `"schema"."name"`.
pub fn quote_relation(relation: &Relation) -> String {
    format!("{}.{}", quote_ident(&relation.schema), quote_ident(&relation.name))
}

/// `"a", "b"`.
pub(crate) fn quote_columns(columns: &[String]) -> String {
    columns.iter().map(|column| quote_ident(column)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_quotes_and_case() {
        assert_eq!(quote_ident("a\"B c"), "\"a\"\"B c\"");
    }

    #[test]
    fn literals_survive_quotes_backslashes_and_control_characters() {
        assert_eq!(quote_literal("it's"), "'it''s'");
        assert_eq!(quote_literal("\\N"), "E'\\\\N'");
        assert_eq!(quote_literal("\t'\u{1}"), "E'\\t''\\x01'");
    }
}
