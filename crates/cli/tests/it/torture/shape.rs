//! The tables that are loaded: plain, with keys, with triggers, partitioned, numbered, wide, or yet to be made.

use fastrand::Rng;

/// What `t` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// No key, no index.
    Plain,
    /// A primary key, indexes, a foreign key and a check.
    Keyed,
    /// That, and a trigger that writes down each row that it sees.
    Watched,
    /// Partitions of partitions, with an index and a key.
    Partitioned,
    /// A key that the server numbers, which no file has.
    Numbered,
    /// That as an identity column, a generated column, and one that has been dropped.
    Grown,
    /// Values that are stored out of line.
    Wide,
    /// A crash of the server empties it.
    Unlogged,
    /// Types that the load has to widen.
    Narrow,
    /// Partitions of time, which the load makes.
    Dated(Unit),
    /// There is none: the load makes it.
    Absent,
}

/// What a partition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Day,
    Month,
}

impl Unit {
    /// As `to_char` makes it of a day.
    pub(super) fn name_of_partition(self) -> &'static str {
        match self {
            Unit::Day => "\"t_\"YYYY_MM_DD",
            Unit::Month => "\"t_\"YYYY_MM",
        }
    }
}

const COLUMNS: &str = "id bigint, part integer, score integer, amount numeric(12,2), day date, note text";

impl Shape {
    const ALL: [Shape; 15] = [
        Shape::Plain,
        Shape::Keyed,
        Shape::Keyed,
        Shape::Watched,
        Shape::Partitioned,
        Shape::Partitioned,
        Shape::Numbered,
        Shape::Grown,
        Shape::Wide,
        Shape::Unlogged,
        Shape::Narrow,
        Shape::Dated(Unit::Day),
        Shape::Dated(Unit::Month),
        Shape::Absent,
        Shape::Absent,
    ];

    pub(super) fn draw(random: &mut Rng) -> Shape {
        Shape::ALL[random.usize(..Shape::ALL.len())]
    }

    /// Columns with a unique index that every file has.
    pub(super) fn key(self) -> Option<&'static str> {
        match self {
            Shape::Keyed | Shape::Watched => Some("id"),
            Shape::Partitioned => Some("part,id"),
            Shape::Plain
            | Shape::Numbered
            | Shape::Grown
            | Shape::Wide
            | Shape::Unlogged
            | Shape::Narrow
            | Shape::Dated(_)
            | Shape::Absent => None,
        }
    }

    /// The load has to look at the data.
    pub(super) fn needs_finding(self) -> bool {
        matches!(self, Shape::Narrow | Shape::Absent)
    }

    pub(super) fn is_dated(self) -> bool {
        matches!(self, Shape::Dated(_))
    }

    /// Of so many days is each row one; `None` where it need not have any.
    pub(super) fn days(self) -> Option<u16> {
        match self {
            Shape::Dated(Unit::Day) => Some(12),
            Shape::Dated(Unit::Month) => Some(366),
            _ => None,
        }
    }

    /// Options of the command.
    pub(super) fn arguments(self) -> &'static [&'static str] {
        match self {
            Shape::Dated(Unit::Day) => &["--create-partitions", "day"],
            Shape::Dated(Unit::Month) => &["--create-partitions", "month"],
            Shape::Narrow => &["--evolve", "widen"],
            _ => &[],
        }
    }

    /// Tables that a load makes or alters, as `pg_dump` finds them in a schema.
    pub(super) fn made(self) -> Option<&'static str> {
        match self {
            Shape::Dated(_) => Some("t_2024*"),
            Shape::Absent | Shape::Narrow => Some("t"),
            _ => None,
        }
    }

    /// Another table may take its place.
    pub(super) fn can_be_replaced(self) -> bool {
        !matches!(
            self,
            Shape::Partitioned | Shape::Unlogged | Shape::Narrow | Shape::Dated(_) | Shape::Absent
        )
    }

    /// Foreign keys take locks on another table.
    pub(super) fn has_foreign_key(self) -> bool {
        matches!(self, Shape::Keyed | Shape::Watched)
    }

    /// Makes `t`, and `wanted` for the rows that it must come to hold.
    pub(super) fn sql(self) -> String {
        let keys = format!(
            "CREATE TABLE parent (part integer PRIMARY KEY); \
             INSERT INTO parent SELECT generate_series(0, 255); \
             CREATE TABLE t ({COLUMNS}, PRIMARY KEY (id), CHECK (part >= 0), \
                 CONSTRAINT t_part_fkey FOREIGN KEY (part) REFERENCES parent); \
             CREATE INDEX t_day ON t (day, part); CREATE UNIQUE INDEX t_both ON t (part, id) WHERE part > 3; \
             COMMENT ON INDEX t_day IS 'kept'; CREATE COLLATION by_libc (provider = libc, locale = 'C.UTF-8'); \
             CREATE INDEX t_note ON t (left(note, 100) COLLATE by_libc)"
        );
        let table = match self {
            Shape::Plain => format!("CREATE TABLE t ({COLUMNS})"),
            Shape::Keyed => keys,
            Shape::Watched => format!(
                "{keys}; CREATE TABLE seen (id bigint); \
                 CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS \
                     'BEGIN INSERT INTO seen VALUES (NEW.id); RETURN NULL; END'; \
                 CREATE TRIGGER see AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION see()"
            ),
            Shape::Partitioned => format!(
                "CREATE TABLE t ({COLUMNS}, PRIMARY KEY (part, id)) PARTITION BY RANGE (part); \
                 CREATE TABLE t_low PARTITION OF t FOR VALUES FROM (MINVALUE) TO (90) PARTITION BY HASH (id); \
                 CREATE TABLE t_low_0 PARTITION OF t_low FOR VALUES WITH (MODULUS 2, REMAINDER 0); \
                 CREATE TABLE t_low_1 PARTITION OF t_low FOR VALUES WITH (MODULUS 2, REMAINDER 1); \
                 CREATE TABLE t_mid PARTITION OF t FOR VALUES FROM (90) TO (180); \
                 CREATE TABLE t_high PARTITION OF t FOR VALUES FROM (180) TO (MAXVALUE); CREATE INDEX t_day ON t (day)"
            ),
            Shape::Numbered => format!("CREATE TABLE t (k bigserial PRIMARY KEY, {COLUMNS})"),
            Shape::Grown => format!(
                "CREATE TABLE t (gone text, k bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, {COLUMNS}, \
                     twice bigint GENERATED ALWAYS AS (id * 2) STORED); \
                 ALTER TABLE t DROP COLUMN gone"
            ),
            Shape::Wide => format!("CREATE TABLE t ({COLUMNS}); CREATE INDEX t_id ON t (id)"),
            Shape::Unlogged => format!("CREATE UNLOGGED TABLE t ({COLUMNS}); CREATE INDEX t_id ON t (id)"),
            Shape::Narrow => {
                "CREATE TABLE t (id bigint, part smallint, score smallint, amount numeric(5,2), \
                     day date, note varchar(6)); \
                 CREATE INDEX t_note ON t (note)"
                    .to_owned()
            }
            Shape::Dated(_) => format!(
                "CREATE TABLE t ({COLUMNS}) PARTITION BY RANGE (day); CREATE INDEX t_id ON t (id); \
                 CREATE TABLE t_old PARTITION OF t FOR VALUES FROM ('2023-01-01') TO ('2024-01-01')"
            ),
            Shape::Absent => "SELECT".to_owned(),
        };
        format!("{table}; CREATE TABLE wanted ({COLUMNS})")
    }
}
