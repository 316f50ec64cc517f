//! The shape of a table in the target database, as its catalog tells it.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The full name of a relation, unquoted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Relation {
    /// The schema's name.
    pub schema: String,
    /// The relation's own name.
    pub name: String,
}

impl fmt::Display for Relation {
    /// For people: `schema.name`, unquoted. Never put this into SQL.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.schema, self.name)
    }
}

/// What can stand behind a name that takes COPY.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RelationKind {
    /// An ordinary table.
    Table,
    /// A partitioned table.
    Partitioned,
    /// A foreign table.
    Foreign,
    /// A view; COPY needs an INSTEAD OF INSERT trigger.
    View,
}

/// One column, in attribute order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Its name, unquoted.
    pub name: String,
    /// `attnum`, which no other column of the table gets, whatever its name; 0 if it is not known yet.
    #[serde(default)]
    pub attnum: i16,
    /// `format_type(atttypid, atttypmod)`.
    pub type_name: String,
    /// `atttypid`.
    pub type_oid: u32,
    /// NOT NULL.
    pub not_null: bool,
    /// It has a default expression, its own or its domain's, is an identity column, or a trigger may fill it.
    pub has_default: bool,
    /// GENERATED ALWAYS AS (expression): COPY must not name it.
    pub generated: bool,
    /// GENERATED ... AS IDENTITY.
    pub identity: bool,
}

/// A relation that rows are copied into.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// Its name.
    pub relation: Relation,
    /// Its OID when it was read.
    pub oid: u32,
    /// What it is.
    pub kind: RelationKind,
    /// Its live columns in attribute order.
    pub columns: Vec<Column>,
}

/// A table that is to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewTable {
    /// Its columns in order.
    pub columns: Vec<NewColumn>,
    /// The columns of its primary key; none makes none.
    pub primary_key: Vec<String>,
}

/// One column of a table that is to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewColumn {
    /// Its name, unquoted.
    pub name: String,
    /// Its type as SQL writes it.
    pub type_name: String,
    /// What the type was chosen by.
    pub evidence: String,
    /// The values seen were not all: a later one may widen the type.
    pub may_widen: bool,
    /// An empty field of csv is NULL to it in quotes, too, as to COPY's FORCE_NULL: no value of its type is
    /// empty.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub empty_is_null: bool,
}

/// What is done to a table that exists before rows come (`--evolve`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TableChange {
    /// A column is added.
    Add(NewColumn),
    /// A column gets a wider type.
    Widen(NewColumn),
}
