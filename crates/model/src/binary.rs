//! The types that the client can write in COPY's binary format.

use serde::{Deserialize, Serialize};

/// How the values of a column are written in the binary format. Types whose receive functions read the same
/// bytes share one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BinaryType {
    /// `boolean`
    Bool,
    /// `smallint`
    Int2,
    /// `integer`
    Int4,
    /// `bigint`
    Int8,
    /// `oid`
    Oid,
    /// `real`
    Float4,
    /// `double precision`
    Float8,
    /// `numeric`
    Numeric,
    /// The characters as they are: `text`, `varchar`, `char(n)`, `citext`, `json` and enums.
    Text,
    /// `name`
    Name,
    /// `"char"`
    Char,
    /// `bytea`
    Bytea,
    /// `jsonb`
    Jsonb,
    /// `uuid`
    Uuid,
    /// `date`
    Date,
    /// `time`
    Time,
    /// `timetz`
    TimeTz,
    /// `timestamp`
    Timestamp,
    /// `timestamptz`
    TimestampTz,
    /// `interval`
    Interval,
    /// `inet`
    Inet,
    /// `cidr`
    Cidr,
    /// `macaddr`
    Macaddr,
    /// `macaddr8`
    Macaddr8,
    /// `bit(n)` and `varbit`
    Bit,
    /// An array.
    Array {
        /// `pg_type.oid` of the elements.
        element_oid: u32,
        /// The elements.
        element: Box<BinaryType>,
    },
    /// A range.
    Range {
        /// Its bounds.
        bound: Box<BinaryType>,
    },
    /// pgvector's `vector`
    Vector,
    /// PostGIS's `geometry` and `geography`
    Geometry,
}

impl BinaryType {
    /// The type of this `pg_type.oid`, if it is built in, no array and no range. The numbers are those of
    /// PostgreSQL's `pg_type.dat`, which never change.
    pub fn built_in(oid: u32) -> Option<BinaryType> {
        Some(match oid {
            16 => BinaryType::Bool,
            17 => BinaryType::Bytea,
            18 => BinaryType::Char,
            19 => BinaryType::Name,
            20 => BinaryType::Int8,
            21 => BinaryType::Int2,
            23 => BinaryType::Int4,
            // text, json, bpchar, varchar
            25 | 114 | 1042 | 1043 => BinaryType::Text,
            26 => BinaryType::Oid,
            650 => BinaryType::Cidr,
            700 => BinaryType::Float4,
            701 => BinaryType::Float8,
            774 => BinaryType::Macaddr8,
            829 => BinaryType::Macaddr,
            869 => BinaryType::Inet,
            1082 => BinaryType::Date,
            1083 => BinaryType::Time,
            1114 => BinaryType::Timestamp,
            1184 => BinaryType::TimestampTz,
            1186 => BinaryType::Interval,
            1266 => BinaryType::TimeTz,
            1560 | 1562 => BinaryType::Bit,
            1700 => BinaryType::Numeric,
            2950 => BinaryType::Uuid,
            3802 => BinaryType::Jsonb,
            _ => return None,
        })
    }
}
