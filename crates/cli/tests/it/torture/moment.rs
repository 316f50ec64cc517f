//! When a fault strikes: where something happens that it can spoil.
//!
//! What there was before the run is no sign of it: counts are taken before it starts, and sessions of others
//! are known.

use super::mode::Arrival;
use super::shape::Shape;
use super::stage::{Stage, Verb};
use crate::scene::PATIENCE;
use fastrand::Rng;
use howdah_testkit::Running;
use std::time::{Duration, Instant};

/// When it strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    /// So long after the start.
    Started(Duration),
    /// The plan is made, and nothing else.
    Planned,
    /// So many chunks have come in.
    Chunks(u64),
    /// So many of the dropped things have come back.
    PutBack(u64),
    /// A session is at such a statement, or has just ended it.
    Query(&'static str),
}

impl Moment {
    /// In nine of ten runs something has happened by then.
    pub(super) fn draw(verb: Verb, stage: &Stage, random: &mut Rng) -> Moment {
        let knobs = &stage.scenario.knobs;
        // Of some 75 bytes a row.
        let chunks = (stage.scenario.rows * 3 / 40 / knobs.chunk_kb).max(1);
        let left = chunks.saturating_sub(stage.ledger_count("chunk")).max(1);
        let rebuilds = knobs.indexes == "rebuild";
        let queries = queries(verb, stage);
        let query = Moment::Query(queries[random.usize(..queries.len())]);
        match random.u8(..20) {
            0 | 1 => Moment::Started(Duration::from_millis(random.u64(..500))),
            _ if verb == Verb::Restore => query,
            2..5 if rebuilds && verb != Verb::Check => Moment::PutBack(random.u64(1..4)),
            2..9 => query,
            9 => Moment::Chunks(left),
            _ if stage.scenario.mode.arrival.is_frozen() => query,
            _ => Moment::Chunks(random.u64(1..=left)),
        }
    }

    /// For figures of many loads.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Moment::Started(_) => "started",
            Moment::Planned => "planned",
            Moment::Chunks(_) => "chunks",
            Moment::PutBack(_) => "put back",
            Moment::Query(like) => like,
        }
    }

    /// Rows of the ledger that tell of it, and how many more of them it takes.
    fn counted(self) -> Option<(&'static str, u64)> {
        match self {
            Moment::Started(_) | Moment::Query(_) => None,
            Moment::Planned => Some(("job, generate_series(1, runs)", 1)),
            Moment::Chunks(more) => Some(("chunk", more)),
            Moment::PutBack(more) => Some(("undo WHERE undone_at IS NOT NULL", more)),
        }
    }
}

/// Statements of a run, as LIKE finds them in `pg_stat_activity`.
fn queries(verb: Verb, stage: &Stage) -> Vec<&'static str> {
    let scenario = &stage.scenario;
    let (shape, arrival, knobs) = (scenario.shape, scenario.mode.arrival, &scenario.knobs);
    if verb == Verb::Check {
        return vec!["COPY %", "%staging%"];
    }
    let mut all = vec![];
    if knobs.indexes == "rebuild" {
        all.extend(["%CREATE %INDEX %", "%ADD CONSTRAINT %"]);
        all.extend(shape.has_foreign_key().then_some("%VALIDATE CONSTRAINT %"));
    }
    if knobs.triggers == "disable" && shape == Shape::Watched {
        all.push("%ENABLE TRIGGER %");
    }
    match knobs.tune {
        Some("server") => all.push("%ALTER SYSTEM %"),
        Some("table") => all.push("%ALTER TABLE %SET (%"),
        _ => {}
    }
    if verb == Verb::Restore {
        all.push("%undone_at%");
        return all;
    }
    match arrival {
        Arrival::Merge { deletes, .. } => {
            all.extend(["INSERT INTO %.\"t\" %", "UPDATE %\"t\" AS t SET %"]);
            all.extend(deletes.then_some("DELETE FROM %\"t\"%"));
        }
        Arrival::InsertNew { .. } => all.push("INSERT INTO %.\"t\" %"),
        Arrival::Replace => {
            all.extend(["%RENAME TO %", "%RENAME TO %", "INSERT INTO %; COMMIT", "%CREATE %INDEX %"]);
        }
        Arrival::Truncate { .. } => all.push("%TRUNCATE %"),
        Arrival::Append | Arrival::Make { .. } => {}
    }
    if arrival == Arrival::Append && scenario.mode.atomic {
        all.push("INSERT INTO %.\"t\" %");
    }
    all.extend(shape.is_dated().then_some("%ATTACH PARTITION %"));
    match knobs.after {
        Some("analyze") => all.push("ANALYZE %"),
        Some("vacuum") => all.push("VACUUM %"),
        _ => {}
    }
    all.extend(["COPY %", "%UPDATE %.job SET status %"]);
    if arrival.is_frozen() {
        all.extend(["COPY %"; 3]);
    }
    all
}

/// Waits for a moment of a run that has yet to start.
pub(super) struct Watch<'a> {
    stage: &'a Stage,
    pub(super) moment: Moment,
    /// What is counted before.
    count: u64,
    /// Sessions that are there before.
    others: String,
}

impl Watch<'_> {
    pub(super) fn begin(stage: &Stage, moment: Moment) -> Watch<'_> {
        let count = moment.counted().map_or(0, |(from, _)| stage.ledger_count(from));
        let others = stage.database.value("SELECT string_agg(pid::text, ', ') FROM pg_stat_activity");
        Watch { stage, moment, count, others }
    }

    /// Whether the run was still under way when it came.
    pub(super) fn wait(&self, running: &mut Running, random: &mut Rng) -> bool {
        if let Moment::Started(delay) = self.moment {
            std::thread::sleep(delay);
            return running.is_running();
        }
        let deadline = Instant::now() + PATIENCE;
        while !self.has_come() && running.is_running() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        match self.moment {
            Moment::Query(_) => std::thread::sleep(Duration::from_millis(random.u64(..3))),
            Moment::Planned => {}
            _ => std::thread::sleep(Duration::from_millis(random.u64(..25))),
        }
        running.is_running()
    }

    fn has_come(&self) -> bool {
        match (self.moment, self.moment.counted()) {
            (Moment::Query(like), _) => self.is_at(like),
            (_, Some((from, more))) => self.stage.ledger_count(from) >= self.count + more,
            (_, None) => true,
        }
    }

    /// The server looks for a tenth of a second: most statements are over before a new session could look
    /// once.
    fn is_at(&self, like: &str) -> bool {
        let (role, others, like) = (self.stage.scenario.role, &self.others, like.replace('\'', "''"));
        let found = format!(
            "EXISTS (SELECT FROM pg_stat_activity WHERE usename = '{role}' AND datname = current_database() \
             AND query LIKE '{like}' AND pid NOT IN ({others}))"
        );
        let sql = format!(
            "DO $$BEGIN FOR look IN 1..100 LOOP PERFORM pg_stat_clear_snapshot(); IF {found} THEN RETURN; END IF; \
             PERFORM pg_sleep(0.001); END LOOP; RAISE 'not yet'; END$$"
        );
        self.stage.database.try_sql(&sql).is_ok()
    }
}
