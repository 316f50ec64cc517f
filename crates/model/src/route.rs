//! How rows of a partitioned table find their leaf partition, as far as the client can tell.

use crate::binary::BinaryType;
use crate::table::Relation;
use serde::{Deserialize, Serialize};

/// By default, a leaf that gets fewer rows of a chunk is left to the server, to which each COPY is a
/// statement to begin, with round trips of its own.
pub const LEAF_ROWS_MIN: u64 = 100;

/// The tree of a partitioned table. Rows whose leaf is not certain go to the table itself, and the server
/// routes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoutePlan {
    /// The partitions that rows are copied into directly.
    pub leaves: Vec<Leaf>,
    /// The partitioned table.
    pub root: PartitionedTable,
    /// The session's TimeZone.
    pub time_zone: String,
    /// Chunk buffers in which the rows of one chunk are laid out by leaf.
    pub buffers: u32,
    /// Fewer rows of a chunk get no COPY of their own.
    pub leaf_rows_min: u64,
}

/// A partition that holds rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leaf {
    /// Its name.
    pub relation: Relation,
    /// Its OID when it was read.
    pub oid: u32,
}

/// A table that is partitioned, on any level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionedTable {
    /// How its partitions are told apart.
    pub strategy: Strategy,
    /// The partition key.
    pub keys: Vec<PartitionKey>,
    /// Its partitions but for the default one.
    pub partitions: Vec<Partition>,
    /// Where rows go that belong to no other partition; without one the server says no.
    pub default: Option<Destination>,
}

/// `pg_partitioned_table.partstrat`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// PARTITION BY HASH
    Hash,
    /// PARTITION BY LIST
    List,
    /// PARTITION BY RANGE
    Range,
}

/// One column of a partition key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionKey {
    /// Which field of the rows that are sent it is.
    pub field_no: u32,
    /// How its values are written.
    pub binary: BinaryType,
    /// What its operator class compares and hashes.
    pub kind: KeyKind,
    /// `atttypmod`: a value that it would change is known to the server alone. -1 is none.
    pub typmod: i32,
}

/// How the values of a key are compared and hashed: those operator classes of PostgreSQL that the client
/// knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyKind {
    /// `int2`, `int4`, `date`: hashed as 32 bits.
    Int4,
    /// `oid`: 32 bits without a sign.
    Oid,
    /// `int8`, `time`, `timestamp`, `timestamptz`: hashed as 64 bits.
    Int8,
    /// `boolean`
    Bool,
    /// `real`, `double precision`
    Float,
    /// `numeric`
    Numeric,
    /// `text`, `varchar`, `name`, `bytea`, `uuid` and enums: the bytes as they are.
    Bytes,
    /// `char(n)`: without the blanks at its end.
    Padded,
}

/// One partition and what it takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partition {
    /// FOR VALUES
    pub bound: Bound,
    /// Where its rows go.
    pub to: Destination,
}

/// Where the rows of a partition go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Destination {
    /// Index into [`RoutePlan::leaves`].
    Leaf(u32),
    /// It is partitioned further.
    Partitioned(Box<PartitionedTable>),
    /// To the table that was named: only the server may or can tell.
    Server,
}

/// The bound of a partition, as PostgreSQL's CREATE TABLE describes it. Values are text in the ISO spelling;
/// `None` is NULL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// WITH (MODULUS, REMAINDER)
    Hash {
        /// The divisor of the hash value.
        modulus: u32,
        /// What is left.
        remainder: u32,
    },
    /// IN
    List(Vec<Option<String>>),
    /// FROM, which belongs to it, TO, which does not.
    Range {
        /// One edge for each column of the key.
        from: Vec<Edge>,
        /// The same.
        to: Vec<Edge>,
    },
}

/// Where a range begins or ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Edge {
    /// MINVALUE
    Min,
    /// A value.
    Value(String),
    /// MAXVALUE
    Max,
}
