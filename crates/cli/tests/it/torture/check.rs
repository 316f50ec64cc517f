//! What must be true when a load has been run to its end, whatever had struck it.

use super::account;
use super::mode::Arrival;
use super::reject_file;
use super::shape::Shape;
use super::stage::Stage;
use super::world::World;
use std::time::{Duration, Instant};

/// What a server and a database were like before the load.
pub(super) struct Before {
    schema: String,
    settings: Vec<String>,
    invalid: Vec<String>,
    /// Of the sequence of each table, where it has one.
    numbers: Vec<Option<i64>>,
}

/// What is wrong. Nothing is, ever.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) lost: u64,
    pub(super) doubled: u64,
    pub(super) left_behind: Vec<String>,
}

impl Findings {
    pub(super) fn is_clean(&self) -> bool {
        self.lost == 0 && self.doubled == 0 && self.left_behind.is_empty()
    }

    pub(super) fn add(&mut self, other: Findings) {
        self.lost += other.lost;
        self.doubled += other.doubled;
        self.left_behind.extend(other.left_behind);
    }
}

impl Before {
    pub(super) fn look(world: &World<'_>, stage: &Stage) -> Before {
        Before {
            schema: stage.schema(),
            settings: world.settings(&stage.database),
            invalid: stage.invalid(),
            numbers: stage.scenario.places.iter().map(|place| stage.last_number(place)).collect(),
        }
    }

    /// The table equals the model, and nothing but its rows and the ledger's has changed.
    pub(super) fn compare(&self, world: &World<'_>, stage: &Stage, ledger_relations: &[String]) -> Findings {
        let mut found = self.compare_tables(world, stage);
        let left = &mut found.left_behind;
        let mut relations = relations_of_ledger(stage);
        if stage.scenario.shape == Shape::Unlogged {
            relations.retain(|name| !name.starts_with("unlogged_mark"));
        }
        if relations != ledger_relations {
            left.push(format!("the ledger holds {relations:?}, and usually {ledger_relations:?}"));
        }
        left.extend(account::check(stage));
        left.extend(reject_file::check(world, stage));
        found
    }

    /// The same but for what the ledger says of the load.
    pub(super) fn compare_tables(&self, world: &World<'_>, stage: &Stage) -> Findings {
        // Whoever was forgotten by the network has been told by now.
        world.to_server.end_forgotten();
        let mut found = Findings::default();
        for (place, number) in stage.scenario.places.iter().zip(&self.numbers) {
            let (lost, doubled) = lost_and_doubled(stage, place);
            found.lost += lost;
            found.doubled += doubled;
            found.left_behind.extend(derived(stage, place));
            found.left_behind.extend(relatives(stage, place));
            found.left_behind.extend(number.and_then(|before| numbers(stage, place, before)));
        }
        found.left_behind.extend(self.traces(world, stage));
        found.left_behind.extend(wait_for_sessions(stage));
        found
    }

    /// What restore must have put right, even before the load goes on.
    pub(super) fn traces(&self, world: &World<'_>, stage: &Stage) -> Vec<String> {
        let mut left: Vec<String> = self.settings_that_differ(world, stage).into_iter().collect();
        let schema = stage.schema();
        if schema != self.schema {
            left.push(format!("the schema differs: {}", first_difference(&self.schema, &schema)));
        }
        let invalid = stage.invalid();
        if invalid != self.invalid {
            left.push(format!("invalid are {invalid:?}, and were {:?}", self.invalid));
            left.extend(how_indexes_came_back(stage));
        }
        for journal in ["undo", "tuned"] {
            let open = stage.ledger_count(&format!("{journal} WHERE undone_at IS NULL"));
            if open > 0 {
                left.push(format!("{open} entries of the journal {journal} are open"));
            }
        }
        let prepared = stage.database.value("SELECT count(*) FROM pg_prepared_xacts");
        if prepared != "0" {
            left.push(format!("{prepared} prepared transactions are left"));
        }
        left
    }

    /// Sessions that begin just behind a reload may still have what was there before it.
    fn settings_that_differ(&self, world: &World<'_>, stage: &Stage) -> Option<String> {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let settings = world.settings(&stage.database);
            if settings == self.settings {
                return None;
            }
            if Instant::now() > deadline {
                let differs = first_difference(&self.settings.join("\n"), &settings.join("\n"));
                return Some(format!("settings are not what they were: {differs}"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// The indexes of partitioned tables and what they are parts of, and what the journal says of them.
fn how_indexes_came_back(stage: &Stage) -> Vec<String> {
    let ledger = &stage.ledger;
    let sql = format!(
        "SELECT format('%s, valid: %s, part of %s', i.indexrelid::regclass, i.indisvalid, h.inhparent::regclass) \
         FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid LEFT JOIN pg_inherits h ON h.inhrelid = i.indexrelid \
         WHERE c.relkind = 'I' OR h.inhparent IS NOT NULL UNION ALL \
         SELECT format('journal %s of %s: %s %s of %s, %s, undone at %s', number, job_id, kind, name, table_name, definition, undone_at) \
         FROM {ledger}.undo ORDER BY 1"
    );
    stage.database.rows(&sql).into_iter().filter_map(|mut row| row[0].take()).collect()
}

/// Relations of the ledger's schema, staging tables included if there are any.
pub(super) fn relations_of_ledger(stage: &Stage) -> Vec<String> {
    let schema = stage.scenario.knobs.ledger.replace('\'', "''");
    let rows = stage.database.rows(&format!(
        "SELECT relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = '{schema}' \
         ORDER BY 1"
    ));
    rows.into_iter().filter_map(|mut row| row[0].take()).collect()
}

fn lost_and_doubled(stage: &Stage, place: &str) -> (u64, u64) {
    // A table that the load has made may have narrower types.
    const COLUMNS: &str = "id::bigint, part::integer, score::integer, amount::numeric(12,2), day::date, note";
    let database = &stage.database;
    let wanted = format!("(SELECT {COLUMNS} FROM {place}.wanted)");
    let got = format!("(SELECT {COLUMNS} FROM {place}.t)");
    if database.digest(&wanted) == database.digest(&got) {
        return (0, 0);
    }
    let count = |sql: String| database.value(&sql).parse().unwrap();
    let lost: u64 = count(format!("SELECT count(*) FROM ({wanted} EXCEPT ALL {got}) lost"));
    // A row that came with another value counts on both sides.
    let doubled = count(format!("SELECT count(*) FROM ({got} EXCEPT ALL {wanted}) doubled"));
    (lost, doubled)
}

const REST_SQL: &str = "\
    SELECT (SELECT indisvalid FROM pg_index WHERE indexrelid = 't_id'::regclass) \
       AND (SELECT count(*) FROM ONLY t_rest_rest) = (SELECT count(*) FROM wanted WHERE NOT (id BETWEEN 0 AND 2999) \
           AND (part NOT IN (0, 1, 2, 3, 77, 100, 101, 102)) IS NOT FALSE)";

/// Whether the columns that no file has are what they must be.
fn filled_sql(stage: &Stage) -> String {
    // Policies may hide the largest value from the role.
    let id = match stage.scenario.guarded {
        true => "",
        false => "AND nextval(pg_get_serial_sequence('t', 'id')) > max(id)",
    };
    format!(
        "SELECT count(*) = count(DISTINCT k) AND count(*) = count(DISTINCT other) AND bool_and(mark = 'new' AND other < -999999) \
             AND bool_and(path = concat('C:', chr(92), 'new', chr(92), 'table')) \
             AND bool_and(size IS NOT DISTINCT FROM length(note)) AND nextval('t_k_seq') > max(k) \
             AND nextval('own') > max(-other) {id} FROM t"
    )
}

/// What the server made of the rows: what triggers have seen, numbers of keys, partitions, types.
fn derived(stage: &Stage, place: &str) -> Option<String> {
    let holds = |sql: &str, what: &str| {
        let sql = format!("SET search_path TO {place}; {sql}");
        (stage.database.value(&sql) != "t").then(|| format!("{place}: {what}"))
    };
    match (stage.scenario.shape, stage.scenario.knobs.triggers) {
        // What a new table is filled with, no trigger sees.
        (Shape::Watched, _) if stage.scenario.mode.arrival == Arrival::Replace => None,
        (Shape::Watched, "keep") => holds(
            "SELECT count(*) = count(DISTINCT id) AND count(*) FILTER (WHERE id >= 1000) = (SELECT count(*) FROM t WHERE id >= 1000) \
                 AND NOT EXISTS (SELECT id FROM t EXCEPT SELECT id FROM seen) FROM seen",
            "the trigger has not seen each row once",
        ),
        (Shape::Watched, _) => holds(
            "SELECT count(*) = 500 AND min(id) = 1 AND max(id) = 500 FROM seen",
            "a trigger that was to be silent has seen a row",
        ),
        (Shape::Numbered, _) => {
            holds("SELECT nextval('t_k_seq') > max(k) FROM t", "the sequence does not go on behind the keys")
        }
        (Shape::Grown, _) => holds(
            "SELECT nextval(pg_get_serial_sequence('t', 'k')) > max(k) AND bool_and(twice = id * 2) FROM t",
            "the sequence does not go on behind the keys, or a generated value is missing",
        ),
        (Shape::Filled, _) => holds(
            &filled_sql(stage),
            "numbers that came twice, a sequence that does not go on behind the keys, or other values than the defaults",
        ),
        (Shape::Rest, _) => {
            holds(REST_SQL, "rows in other partitions, or an index that not all of them have")
        }
        (Shape::Dated(unit), _) => {
            let wanted = format!(
                "SELECT ARRAY(SELECT DISTINCT to_char(day, '{}') FROM wanted WHERE day >= '2024-01-01' ORDER BY 1) \
                      = ARRAY(SELECT relname::text FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid \
                                WHERE inhparent = 't'::regclass AND relname <> 't_old' ORDER BY 1) \
                    AND (SELECT indisvalid FROM pg_index WHERE indexrelid = 't_id'::regclass) \
                    AND (SELECT count(reloptions) = 0 FROM pg_class JOIN pg_inherits ON inhrelid = oid)",
                unit.name_of_partition()
            );
            holds(&wanted, "other partitions, options of them, or an index that not all of them have")
        }
        (Shape::Lean, _) => holds(
            "SELECT array_agg(format('%s %s', attname, atttypid::regtype) ORDER BY attnum) FILTER (WHERE attnum > 5) \
                 = '{note text}' FROM pg_attribute WHERE attrelid = 't'::regclass AND NOT attisdropped",
            "other columns than those of the files",
        ),
        (Shape::Absent, _) => {
            let id = stage.scenario.knobs.id_type.unwrap_or("integer");
            let wanted = format!(
                "SELECT array_agg(format('%s %s', attname, atttypid::regtype) ORDER BY attnum) \
                     = '{{id {id},part integer,score integer,amount numeric,day date,note text}}' \
                     AND (SELECT reloptions IS NULL FROM pg_class WHERE oid = 't'::regclass) \
                     AND (SELECT count(*) = {} FROM pg_index WHERE indrelid = 't'::regclass AND indisprimary AND indisvalid) \
                 FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 0 AND NOT attisdropped",
                u8::from(stage.scenario.knobs.keyed)
            );
            holds(&wanted, "other types, options or keys")
        }
        _ => None,
    }
}

/// Tables that a foreign key joins with it: rows that are referred to stay, and those that refer to a row go
/// with it alone.
fn relatives(stage: &Stage, place: &str) -> Vec<String> {
    let holds = |sql: &str, what: &str| {
        let sql = format!("SET search_path TO {place}; {sql}");
        (stage.database.value(&sql) != "t").then(|| format!("{place}: {what}"))
    };
    let shape = stage.scenario.shape;
    let parent = shape.has_foreign_key().then(|| {
        let all =
            "SELECT count(*) = 256 AND sum(part) = 32640 AND min(part) = 0 AND max(part) = 255 FROM parent";
        holds(all, "rows that others refer to are not what they were")
    });
    let child = (shape == Shape::Laden).then(|| {
        let left = "SELECT array_agg(id ORDER BY id) IS NOT DISTINCT FROM \
            (SELECT array_agg(id ORDER BY id) FROM wanted WHERE id <= 100) FROM child";
        holds(left, "rows that refer to others are not those whose rows are there")
    });
    [parent, child].into_iter().flatten().flatten().collect()
}

/// Numbers go on: a run that fails uses some up, and no run more than some for each row.
fn numbers(stage: &Stage, place: &str, before: i64) -> Option<String> {
    const RUNS_MAX: i64 = 10;
    let now = stage.last_number(place)?;
    let most = before + (i64::try_from(stage.scenario.rows).ok()? + 1000) * RUNS_MAX;
    (now < before || now > most).then(|| format!("{place}: the sequence was at {before} and is at {now}"))
}

/// Sessions of the load end soon after it.
pub(super) fn wait_for_sessions(stage: &Stage) -> Option<String> {
    let deadline = Instant::now() + Duration::from_secs(100);
    while stage.sessions() > 0 {
        if Instant::now() > deadline {
            return Some("sessions of a load that has ended".to_owned());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    None
}

fn first_difference(before: &str, after: &str) -> String {
    let missing = before.lines().find(|line| !after.lines().any(|other| other == *line));
    let added = after.lines().find(|line| !before.lines().any(|other| other == *line));
    format!("missing {missing:?}, added {added:?}")
}
