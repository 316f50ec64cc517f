//! What is tuned for a load is as it was behind it, whatever happens to the load.

mod ledgers;
mod moved;
mod server;
mod settle;
mod table;

use crate::scene::howdah;
use howdah_testkit::{Database, HowdahCommand};
use std::path::Path;

/// `howdah load SOURCE` into `t`, tuned so far.
pub(super) fn load(database: &Database, source: &Path, tune: &str) -> HowdahCommand {
    crate::indexes::load(database, source).args(["--tune", tune, "--chunk-size", "64kB", "--jobs", "2"])
}

/// `howdah plan SOURCE` for the same.
pub(super) fn plan(database: &Database, source: &Path, tune: &str) -> HowdahCommand {
    let to = database.conninfo();
    let plan = howdah("plan").args(["--format", "csv", "--header", "--table", "t", "--to", &to]);
    plan.arg(source).args(["--tune", tune])
}

/// Changes that somebody still holds.
pub(super) fn held(database: &Database) -> u64 {
    let counted = database.try_rows("SELECT count(*) FROM howdah.tuned WHERE undone_at IS NULL");
    counted.ok().and_then(|rows| rows[0][0].as_deref()?.parse().ok()).unwrap_or(0)
}

/// The row with this id waits until the table `gate` is empty: a load that has it lasts as long as a test
/// wants.
pub(crate) const GATE: &str = "\
    CREATE TABLE gate AS SELECT 1; \
    CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS \
        'BEGIN WHILE EXISTS (SELECT FROM gate) LOOP PERFORM pg_sleep(0.01); END LOOP; RETURN NEW; END'; \
    CREATE TRIGGER wait BEFORE INSERT ON t FOR EACH ROW WHEN (NEW.id = 1) EXECUTE FUNCTION wait()";

/// A query that counts them.
pub(super) const HELD: &str = "SELECT count(*) FROM howdah.tuned WHERE undone_at IS NULL";
