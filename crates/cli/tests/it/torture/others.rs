//! What other people do to the table, the files and the server while a load is under way.

use super::flaw::Flaw;
use super::shape::{Shape, Unit};
use super::stage::Stage;
use super::world::World;
use crate::scene::PATIENCE;
use fastrand::Rng;
use howdah_testkit::Running;
use std::time::{Duration, Instant};

/// A change of the table by another session.
#[derive(Debug, Clone, Copy)]
pub(super) enum Change {
    AddColumn,
    /// To a type whose binary form is as long, so that only who looks notices.
    AlterType,
    CreateIndex,
    RenameColumn,
    AddCheck,
    DetachPartition,
    /// For a moment, with its rows.
    MovePartition,
    /// One that the load makes, or has just made.
    AddDay,
    AddMonth,
    AddTrigger,
    /// Rows lie elsewhere afterwards.
    VacuumFull,
    Reindex,
    Comment,
    SetStatistics,
    SetDefault,
    /// An option of the table beside those that a load sets.
    SetOption,
}

impl Change {
    pub(super) fn draw(stage: &Stage, random: &mut Rng) -> Change {
        use Change::{
            AddCheck, AddColumn, AddDay, AddMonth, AddTrigger, AlterType, Comment, CreateIndex,
            DetachPartition, MovePartition, Reindex, RenameColumn, SetDefault, SetOption, SetStatistics,
            VacuumFull,
        };
        let (shape, flaws) = (stage.scenario.shape, &stage.scenario.flaws);
        let of_partitions = [DetachPartition, MovePartition, AddDay, AddMonth];
        let of_columns = [AddColumn, AlterType, RenameColumn, SetDefault, SetStatistics];
        let all = [CreateIndex, AddCheck, AddTrigger, VacuumFull, Reindex, Comment, SetOption];
        let fits = |change: &Change| match change {
            DetachPartition | MovePartition => shape == Shape::Partitioned,
            AddDay => shape == Shape::Dated(Unit::Day),
            AddMonth => shape == Shape::Dated(Unit::Month),
            // A load that makes what the files have makes the column anew, and it cannot get its name back.
            RenameColumn => !shape.is_evolved(),
            // What it has there already would be gone behind that.
            Comment => shape != Shape::Laden,
            SetOption => shape != Shape::Laden && !shape.is_partitioned(),
            Reindex => !shape.is_partitioned(),
            // The constraint of that column is written otherwise from then on.
            AlterType => !flaws.iter().any(|flaw| matches!(flaw, Flaw::Check | Flaw::Excluded)),
            _ => true,
        };
        let all: Vec<Change> = all.into_iter().chain(of_columns).chain(of_partitions).filter(fits).collect();
        all[random.usize(..all.len())]
    }

    fn sql(self) -> &'static str {
        match self {
            Change::AddColumn => "ALTER TABLE t ADD COLUMN extra integer NOT NULL DEFAULT 7",
            Change::AlterType => "ALTER TABLE t ALTER score TYPE real",
            Change::CreateIndex => "CREATE INDEX of_another ON t (amount)",
            Change::RenameColumn => "ALTER TABLE t RENAME note TO remark",
            Change::AddCheck => "ALTER TABLE t ADD CONSTRAINT of_another CHECK (id > 0)",
            Change::DetachPartition => "ALTER TABLE t DETACH PARTITION t_mid",
            Change::MovePartition => {
                "ALTER TABLE t DETACH PARTITION t_mid; \
                 ALTER TABLE t ATTACH PARTITION t_mid FOR VALUES FROM (90) TO (180)"
            }
            Change::AddDay => {
                "CREATE TABLE t_2024_01_05 PARTITION OF t FOR VALUES FROM ('2024-01-05') TO ('2024-01-06')"
            }
            Change::AddMonth => {
                "CREATE TABLE t_2024_05 PARTITION OF t FOR VALUES FROM ('2024-05-01') TO ('2024-06-01')"
            }
            Change::AddTrigger => {
                "CREATE FUNCTION of_another() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; \
                 CREATE TRIGGER of_another AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION of_another()"
            }
            Change::VacuumFull => "VACUUM FULL t",
            Change::Reindex => "REINDEX TABLE t",
            Change::SetStatistics => "ALTER TABLE t ALTER score SET STATISTICS 50",
            Change::Comment => "COMMENT ON TABLE t IS 'of another'",
            Change::SetDefault => "ALTER TABLE t ALTER score SET DEFAULT 7",
            Change::SetOption => "ALTER TABLE t SET (fillfactor = 50)",
        }
    }

    /// Makes the table what it was, or is to be.
    pub(super) fn revert_sql(self) -> &'static str {
        match self {
            Change::AddColumn => "ALTER TABLE t DROP COLUMN extra",
            Change::AlterType => "ALTER TABLE t ALTER score TYPE integer",
            Change::CreateIndex => "DROP INDEX of_another",
            Change::RenameColumn => "ALTER TABLE t RENAME remark TO note",
            Change::AddCheck => "ALTER TABLE t DROP CONSTRAINT of_another",
            Change::DetachPartition => "ALTER TABLE t ATTACH PARTITION t_mid FOR VALUES FROM (90) TO (180)",
            Change::MovePartition
            | Change::AddDay
            | Change::AddMonth
            | Change::VacuumFull
            | Change::Reindex => "SELECT",
            Change::SetStatistics => "ALTER TABLE t ALTER score SET STATISTICS -1",
            Change::Comment => "COMMENT ON TABLE t IS NULL",
            Change::SetDefault => "ALTER TABLE t ALTER score DROP DEFAULT",
            Change::SetOption => "ALTER TABLE t RESET (fillfactor)",
            Change::AddTrigger => "DROP TRIGGER of_another ON t; DROP FUNCTION of_another()",
        }
    }

    /// Whether it was let in.
    pub(super) fn make(self, stage: &Stage) -> bool {
        let role = stage.scenario.role;
        if matches!(self, Change::VacuumFull) {
            // It has to be alone in its transaction.
            return stage.database.try_sql(self.sql()).is_ok();
        }
        let sql = format!("SET lock_timeout = '5s'; SET ROLE {role}; BEGIN; {}; COMMIT", self.sql());
        stage.database.try_sql(&sql).is_ok()
    }
}

/// Locks in the opposite order of a load's sessions until the server has had to choose a victim, whoever that
/// is.
pub(super) fn deadlock(world: &World<'_>, stage: &Stage, running: &mut Running, random: &mut Rng) -> bool {
    // Statistics come late before PostgreSQL 15; the log comes at once.
    let count = || world.server.log().matches("deadlock detected").count();
    let before = count();
    let deadline = Instant::now() + PATIENCE;
    while running.is_running() && Instant::now() < deadline {
        // A chunk holds its claim in the ledger and waits for the table, or holds the table and waits for a
        // parent.
        let second = if stage.scenario.shape.has_foreign_key() && random.bool() {
            "UPDATE parent SET part = part".to_owned()
        } else {
            format!("LOCK TABLE {}.chunk IN SHARE MODE", stage.ledger)
        };
        let pause = f64::from(random.u8(5..60)) / 1000.0;
        let (first, last) = ("LOCK TABLE t IN SHARE MODE".to_owned(), second);
        let (first, last) = if last.starts_with("UPDATE") { (last, first) } else { (first, last) };
        let sql = format!("BEGIN; {first}; SELECT pg_sleep({pause}); {last}; ROLLBACK");
        let _ = stage.database.try_sql(&sql);
        if count() != before {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

/// Makes the server need one segment of WAL after the other, until it fails or has had plenty.
pub(super) fn use_wal_up(stage: &Stage) {
    for _ in 0..12 {
        let sql = "SELECT pg_create_restore_point('torture'); SELECT pg_switch_wal()";
        if stage.database.try_sql(sql).is_err() {
            return;
        }
    }
}

/// A file that is no longer what it was.
pub(super) fn changed(content: &[u8]) -> Vec<u8> {
    let mut changed = content.to_vec();
    changed.truncate(content.len() * 2 / 3);
    changed
}
