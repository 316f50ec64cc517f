//! Names that a column should not have, because they must be quoted or cannot be used at all.

/// Keywords that PostgreSQL 13 to 18 take for a column's name in quotes only: RESERVED_KEYWORD and
/// TYPE_FUNC_NAME_KEYWORD in `src/include/parser/kwlist.h` of any of these. Sorted.
const KEYWORDS: [&str; 101] = [
    "all",
    "analyse",
    "analyze",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "asymmetric",
    "authorization",
    "binary",
    "both",
    "case",
    "cast",
    "check",
    "collate",
    "collation",
    "column",
    "concurrently",
    "constraint",
    "create",
    "cross",
    "current_catalog",
    "current_date",
    "current_role",
    "current_schema",
    "current_time",
    "current_timestamp",
    "current_user",
    "default",
    "deferrable",
    "desc",
    "distinct",
    "do",
    "else",
    "end",
    "except",
    "false",
    "fetch",
    "for",
    "foreign",
    "freeze",
    "from",
    "full",
    "grant",
    "group",
    "having",
    "ilike",
    "in",
    "initially",
    "inner",
    "intersect",
    "into",
    "is",
    "isnull",
    "join",
    "lateral",
    "leading",
    "left",
    "like",
    "limit",
    "localtime",
    "localtimestamp",
    "natural",
    "not",
    "notnull",
    "null",
    "offset",
    "on",
    "only",
    "or",
    "order",
    "outer",
    "overlaps",
    "placing",
    "primary",
    "references",
    "returning",
    "right",
    "select",
    "session_user",
    "similar",
    "some",
    "symmetric",
    "system_user",
    "table",
    "tablesample",
    "then",
    "to",
    "trailing",
    "true",
    "union",
    "unique",
    "user",
    "using",
    "variadic",
    "verbose",
    "when",
    "where",
    "window",
    "with",
];

/// Columns that every table has or once had.
const SYSTEM_COLUMNS: [&str; 7] = ["cmax", "cmin", "ctid", "oid", "tableoid", "xmax", "xmin"];

/// The name, in lower case, is one of those.
pub(super) fn is_taken(name: &str) -> bool {
    KEYWORDS.binary_search(&name).is_ok() || SYSTEM_COLUMNS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_sorted_so_that_all_are_found() {
        assert!(KEYWORDS.is_sorted() && KEYWORDS.iter().all(|word| is_taken(word)));
        assert!(is_taken("select") && is_taken("ctid") && !is_taken("name") && !is_taken("value"));
    }
}
