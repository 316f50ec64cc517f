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
    /// Everything that a table can have which a load might forget to put back.
    Laden,
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
    /// It lacks a column, which the load adds: the first of several files have none of it, either.
    Lean,
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
    const ALL: [Shape; 18] = [
        Shape::Plain,
        Shape::Keyed,
        Shape::Keyed,
        Shape::Watched,
        Shape::Laden,
        Shape::Laden,
        Shape::Partitioned,
        Shape::Partitioned,
        Shape::Numbered,
        Shape::Grown,
        Shape::Wide,
        Shape::Unlogged,
        Shape::Narrow,
        Shape::Lean,
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
            Shape::Keyed | Shape::Watched | Shape::Laden => Some("id"),
            Shape::Partitioned => Some("part,id"),
            Shape::Plain
            | Shape::Numbered
            | Shape::Grown
            | Shape::Wide
            | Shape::Unlogged
            | Shape::Narrow
            | Shape::Lean
            | Shape::Dated(_)
            | Shape::Absent => None,
        }
    }

    /// The load has to look at the data.
    pub(super) fn needs_finding(self) -> bool {
        self.is_evolved() || self == Shape::Absent
    }

    /// The load changes its columns.
    pub(super) fn is_evolved(self) -> bool {
        matches!(self, Shape::Narrow | Shape::Lean)
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
            Shape::Lean => &["--evolve", "add"],
            _ => &[],
        }
    }

    /// The server numbers its rows.
    pub(super) fn is_numbered(self) -> bool {
        matches!(self, Shape::Numbered | Shape::Grown)
    }

    /// Tables that a load makes, as `pg_dump` finds them in a schema.
    pub(super) fn made(self) -> Option<&'static str> {
        match self {
            Shape::Dated(_) => Some("t_2024*"),
            Shape::Absent => Some("t"),
            _ => None,
        }
    }

    /// Another table may take its place.
    pub(super) fn can_be_replaced(self) -> bool {
        !matches!(
            self,
            Shape::Partitioned
                | Shape::Laden
                | Shape::Unlogged
                | Shape::Narrow
                | Shape::Lean
                | Shape::Dated(_)
                | Shape::Absent
        )
    }

    /// Rows of another table refer to its rows: it cannot be emptied.
    pub(super) fn is_referred_to(self) -> bool {
        self == Shape::Laden
    }

    /// Run when `t` has the rows that are there before a load.
    pub(super) fn sql_behind_rows(self) -> &'static str {
        match self {
            Shape::Laden => {
                "CREATE TABLE child (id bigint); INSERT INTO child SELECT id FROM t WHERE id <= 100; \
                 ALTER TABLE child ADD CONSTRAINT child_id_fkey FOREIGN KEY (id) REFERENCES t ON DELETE CASCADE; \
                 CREATE INDEX child_id ON child (id); CREATE PUBLICATION of_t FOR TABLE t;"
            }
            Shape::Lean => "ALTER TABLE t DROP COLUMN note; UPDATE wanted SET note = NULL WHERE id < 1000;",
            _ => "",
        }
    }

    /// Foreign keys take locks on another table.
    pub(super) fn has_foreign_key(self) -> bool {
        matches!(self, Shape::Keyed | Shape::Watched | Shape::Laden)
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
            Shape::Laden => format!(
                "{}; CREATE TABLE other_parent AS SELECT part FROM parent; ALTER TABLE other_parent ADD PRIMARY KEY (part); \
                 ALTER TABLE t ADD CONSTRAINT not_yet FOREIGN KEY (part) REFERENCES other_parent NOT VALID, \
                     ADD CONSTRAINT near EXCLUDE USING btree (id WITH =) WHERE (part > 200), \
                     ADD CONSTRAINT late UNIQUE (id, part) DEFERRABLE INITIALLY DEFERRED; \
                 CREATE FUNCTION nod() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; \
                 CREATE TRIGGER off AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION nod(); ALTER TABLE t DISABLE TRIGGER off; \
                 CREATE TRIGGER always AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION nod(); \
                 ALTER TABLE t ENABLE ALWAYS TRIGGER always; \
                 CREATE INDEX t_half ON t ((amount / 2) DESC) WITH (fillfactor = 60); \
                 ALTER INDEX t_half ALTER COLUMN 1 SET STATISTICS 77; COMMENT ON TABLE t IS 'laden'; \
                 CREATE STATISTICS t_stats (dependencies) ON part, score FROM t; ALTER TABLE t CLUSTER ON t_day",
                keys.replace(COLUMNS, &COLUMNS.replace("numeric(12,2)", "money_of_day"))
                    .replace("CREATE TABLE t", "CREATE DOMAIN money_of_day AS numeric(12,2) CHECK (VALUE > -1000000000); CREATE TABLE t")
                    .replace("REFERENCES parent);", "REFERENCES parent) WITH (fillfactor = 90, autovacuum_enabled = on);")
                    .replace("PRIMARY KEY (id)", "PRIMARY KEY (id) WITH (fillfactor = 70)")
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
            Shape::Lean => format!("CREATE TABLE t ({COLUMNS}); CREATE INDEX t_id ON t (id)"),
            Shape::Dated(_) => format!(
                "CREATE TABLE t ({COLUMNS}) PARTITION BY RANGE (day); CREATE INDEX t_id ON t (id); \
                 CREATE TABLE t_old PARTITION OF t FOR VALUES FROM ('2023-01-01') TO ('2024-01-01')"
            ),
            Shape::Absent => "SELECT".to_owned(),
        };
        format!("{table}; CREATE TABLE wanted ({COLUMNS})")
    }
}
