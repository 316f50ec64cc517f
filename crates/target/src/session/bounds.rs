//! The bound of a partition, as `pg_get_expr(relpartbound)` prints it: `DEFAULT`,
//! `FOR VALUES IN ('a', NULL)`, `FOR VALUES FROM ('2024-01-01', MINVALUE) TO (...)`,
//! `FOR VALUES WITH (modulus 4, remainder 0)`.
//!
//! Source: `get_rule_expr` for `PartitionBoundSpec`, `get_const_expr` and `simple_quote_literal` in
//! PostgreSQL's `ruleutils.c`.

use howdah_model::route::{Bound, Edge};

/// Bounds are printed in spellings that mean the same to everybody.
pub(crate) const BEGIN_SQL: &str = "\
    BEGIN TRANSACTION READ ONLY; SET LOCAL datestyle TO 'ISO, YMD'; SET LOCAL timezone TO 'UTC'; \
    SET LOCAL extra_float_digits TO 1; SET LOCAL bytea_output TO 'hex'";

/// What a partition takes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BoundOf {
    /// What no other does.
    Default,
    /// These values.
    Values(Bound),
}

/// One item of a list.
#[derive(Debug, PartialEq, Eq)]
enum Item {
    /// A word or number that stands without quotes.
    Bare(String),
    Quoted(String),
}

impl Item {
    fn edge(self) -> Edge {
        match self {
            Item::Bare(word) if word == "MINVALUE" => Edge::Min,
            Item::Bare(word) if word == "MAXVALUE" => Edge::Max,
            Item::Bare(text) | Item::Quoted(text) => Edge::Value(text),
        }
    }

    fn value(self) -> Option<String> {
        match self {
            Item::Bare(word) if word == "NULL" => None,
            Item::Bare(text) | Item::Quoted(text) => Some(text),
        }
    }
}

/// Reads a bound; `None` for what is not one.
pub(crate) fn parse(bound: &str) -> Option<BoundOf> {
    if bound == "DEFAULT" {
        return Some(BoundOf::Default);
    }
    let rest = bound.strip_prefix("FOR VALUES ")?;
    let (bound, rest) = if let Some(rest) = rest.strip_prefix("IN ") {
        let (items, rest) = list(rest)?;
        (Bound::List(items.into_iter().map(Item::value).collect()), rest)
    } else if let Some(rest) = rest.strip_prefix("FROM ") {
        let (from, rest) = list(rest)?;
        let (to, rest) = list(rest.strip_prefix(" TO ")?)?;
        let edges = |items: Vec<Item>| items.into_iter().map(Item::edge).collect();
        (Bound::Range { from: edges(from), to: edges(to) }, rest)
    } else {
        let numbers = rest.strip_prefix("WITH (modulus ")?.strip_suffix(')')?;
        let (modulus, remainder) = numbers.split_once(", remainder ")?;
        (Bound::Hash { modulus: modulus.parse().ok()?, remainder: remainder.parse().ok()? }, "")
    };
    rest.is_empty().then_some(BoundOf::Values(bound))
}

/// `(item, item)` and what stands behind it.
fn list(text: &str) -> Option<(Vec<Item>, &str)> {
    let mut rest = text.strip_prefix('(')?;
    let mut items = Vec::new();
    loop {
        let (item, behind) = item(rest)?;
        items.push(item);
        rest = match behind.strip_prefix(", ") {
            Some(next) => next,
            None => return Some((items, behind.strip_prefix(')')?)),
        };
    }
}

fn item(text: &str) -> Option<(Item, &str)> {
    let (quoted, escapes) = match text.strip_prefix("E'") {
        Some(quoted) => (Some(quoted), true),
        None => (text.strip_prefix('\''), false),
    };
    let Some(quoted) = quoted else {
        let end = text.find([',', ')'])?;
        let (word, rest) = text.split_at(end);
        return (!word.is_empty()).then(|| (Item::Bare(word.to_owned()), rest));
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        let rest = quoted.get(at + character.len_utf8()..)?;
        match character {
            '\'' if !rest.starts_with('\'') => return Some((Item::Quoted(value), rest)),
            // Quotes and backslashes are doubled.
            '\'' => drop(characters.next()),
            '\\' if escapes => drop(characters.next()),
            _ => {}
        }
        value.push(character);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_read_as_the_server_prints_them() {
        let values = |bound| Some(BoundOf::Values(bound));
        assert_eq!(parse("DEFAULT"), Some(BoundOf::Default));
        assert_eq!(
            parse("FOR VALUES WITH (modulus 4, remainder 0)"),
            values(Bound::Hash { modulus: 4, remainder: 0 })
        );
        assert_eq!(
            parse("FOR VALUES IN ('it''s, (ä)', E'b\\\\s', NULL, 'NULL', 7)"),
            values(Bound::List(vec![
                Some("it's, (ä)".to_owned()),
                Some("b\\s".to_owned()),
                None,
                Some("NULL".to_owned()),
                Some("7".to_owned())
            ]))
        );
        assert_eq!(
            parse("FOR VALUES FROM ('2024-01-01', MINVALUE) TO ('-5', MAXVALUE)"),
            values(Bound::Range {
                from: vec![Edge::Value("2024-01-01".to_owned()), Edge::Min],
                to: vec![Edge::Value("-5".to_owned()), Edge::Max]
            })
        );
    }

    #[test]
    fn what_is_no_bound_is_none() {
        for bound in ["", "FOR VALUES", "FOR VALUES IN ('a'", "FOR VALUES IN (1) x", "FOR VALUES FROM (1)"] {
            assert_eq!(parse(bound), None, "{bound}");
        }
    }
}
