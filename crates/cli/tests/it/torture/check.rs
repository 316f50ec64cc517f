//! What must be true when a load has been run to its end, whatever had struck it.

use super::shape::Shape;
use super::stage::Stage;
use super::world::{LOADER, World};
use std::time::{Duration, Instant};

/// What a server and a database were like before the load.
pub(super) struct Before {
    schema: String,
    settings: Vec<String>,
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
}

impl Before {
    pub(super) fn look(world: &World<'_>, stage: &Stage) -> Before {
        Before { schema: stage.schema(), settings: world.settings(&stage.database) }
    }

    /// The table equals the model, and nothing but its rows and the ledger's has changed.
    pub(super) fn compare(&self, world: &World<'_>, stage: &Stage, ledger_relations: &[String]) -> Findings {
        // Whoever was forgotten by the network has been told by now.
        world.to_server.end_forgotten();
        let mut found = rows(stage);
        found.left_behind.extend(self.traces(stage));
        let left = &mut found.left_behind;
        if world.settings(&stage.database) != self.settings {
            left.push("settings are not what they were".to_owned());
        }
        let relations = relations_of_ledger(stage);
        if relations != ledger_relations {
            left.push(format!("the ledger holds {relations:?}, and usually {ledger_relations:?}"));
        }
        left.extend(derived(stage));
        left.extend(sessions(stage));
        found
    }

    /// What restore must have put right, even before the load goes on.
    pub(super) fn traces(&self, stage: &Stage) -> Vec<String> {
        let mut left = Vec::new();
        let schema = stage.schema();
        if schema != self.schema {
            left.push(format!("the schema differs: {}", first_difference(&self.schema, &schema)));
        }
        let open = stage.ledger_count("undo WHERE undone_at IS NULL");
        if open > 0 {
            left.push(format!("{open} entries of the journal are open"));
        }
        let prepared = stage.database.value("SELECT count(*) FROM pg_prepared_xacts");
        if prepared != "0" {
            left.push(format!("{prepared} prepared transactions are left"));
        }
        left
    }
}

/// Relations of the ledger's schema, staging tables included if there are any.
pub(super) fn relations_of_ledger(stage: &Stage) -> Vec<String> {
    let schema = stage.scenario.ledger.replace('\'', "''");
    let rows = stage.database.rows(&format!(
        "SELECT relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = '{schema}' \
         ORDER BY 1"
    ));
    rows.into_iter().filter_map(|mut row| row[0].take()).collect()
}

fn rows(stage: &Stage) -> Findings {
    const COLUMNS: &str = "id, part, score, amount, day, note";
    let database = &stage.database;
    let (wanted, got) =
        (format!("(SELECT {COLUMNS} FROM model.wanted)"), format!("(SELECT {COLUMNS} FROM t)"));
    if database.digest(&wanted) == database.digest(&got) {
        return Findings::default();
    }
    let count = |sql: String| database.value(&sql).parse().unwrap();
    let lost: u64 = count(format!("SELECT count(*) FROM ({wanted} EXCEPT ALL {got}) lost"));
    // A row that came with another value counts on both sides.
    let doubled = count(format!("SELECT count(*) FROM ({got} EXCEPT ALL {wanted}) doubled"));
    Findings { lost, doubled, left_behind: Vec::new() }
}

/// What the server made of the rows: what triggers have seen, numbers of keys.
fn derived(stage: &Stage) -> Vec<String> {
    let holds = |sql: &str, what: &str| (stage.database.value(sql) != "t").then(|| what.to_owned());
    let found = match (stage.scenario.shape, stage.scenario.triggers) {
        (Shape::Watched, "keep") if stage.scenario.mode.inserts_all() => holds(
            "SELECT count(*) = (SELECT count(*) FROM t) AND count(*) = count(DISTINCT id) FROM seen",
            "the trigger has not seen each row once",
        ),
        (Shape::Numbered, _) => {
            holds("SELECT nextval('t_k_seq') > max(k) FROM t", "the sequence does not go on behind the keys")
        }
        _ => None,
    };
    let kept = format!(
        "SELECT count(*) = count(DISTINCT (file_no, record)) AND count(*) = (SELECT sum(rows_rejected) FROM {0}.file WHERE job_id = done) \
            AND count(*) = (SELECT sum(rejected) FROM {0}.chunk WHERE job_id = done) AND count(*) > 0 \
         FROM {0}.reject JOIN (SELECT job_id AS done FROM {0}.job WHERE status = 'done') d ON done = job_id GROUP BY done",
        stage.ledger
    );
    let keeps = stage.scenario.mode.done_code() == 3;
    let kept = keeps.then(|| holds(&kept, "refused records are not kept once each")).flatten();
    found.into_iter().chain(kept).collect()
}

/// Sessions of the load end soon after it.
fn sessions(stage: &Stage) -> Option<String> {
    let sql = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE usename = '{LOADER}' AND datname = current_database()"
    );
    let deadline = Instant::now() + Duration::from_secs(10);
    while stage.database.value(&sql) != "0" {
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
