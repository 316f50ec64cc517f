//! Indexes, keys and foreign keys that a load drops come back as they were, whatever happens to the load.

mod auto;
mod beside;
mod dropped;
pub(crate) mod dumped;
mod early;
mod identical;
mod kept;
pub(crate) mod kills;
mod ledger_gone;
mod meaning;
mod needs;
mod not_null;
mod partitioned;
mod refused;
mod rights;

pub(super) use kills::{CHUNKS, pause, wait_for};

use crate::scene::howdah;
use howdah_testkit::{Database, HowdahCommand};
use std::path::Path;
use std::process::Command;

/// A table with three indexes, one of them a primary key, for files of `scene::csv`.
pub(crate) const PLAIN_SCHEMA: &str = "\
    CREATE TABLE t (id bigint PRIMARY KEY, part integer, amount numeric, note text); \
    CREATE INDEX t_part ON t (part); CREATE INDEX t_note ON t (note)";

/// The same, its strings compared by the C library, as most databases do.
pub(crate) const COMPARED_BY_LIBC: &str = "\
    CREATE COLLATION by_libc (provider = libc, locale = 'C.UTF-8'); \
    ALTER TABLE t ALTER COLUMN note TYPE text COLLATE by_libc";

/// `howdah load SOURCE` into `t`.
pub(super) fn load(database: &Database, source: &Path) -> HowdahCommand {
    let to = database.conninfo();
    howdah("load").args(["--format", "csv", "--header", "--table", "t", "--to", &to]).arg(source)
}

/// `howdah restore`.
pub(super) fn restore(database: &Database) -> HowdahCommand {
    howdah("restore").args(["--to", &database.conninfo()])
}

/// What `pg_dump --schema-only` says of everything but the ledger.
pub(crate) fn schema(database: &Database) -> String {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/servers/psql/bin/pg_dump");
    let out = Command::new(program)
        .args(["--schema-only", "--exclude-schema=howdah", "--dbname", &database.conninfo()])
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    // The key that guards against hostile servers is another one each time.
    let text = String::from_utf8(out.stdout).unwrap();
    text.lines().filter(|line| !line.starts_with("\\restrict") && !line.starts_with("\\unrestrict")).fold(
        String::new(),
        |mut all, line| {
            all.push_str(line);
            all.push('\n');
            all
        },
    )
}

/// Entries of the journal that are open.
pub(super) fn open_entries(database: &Database) -> u64 {
    let counted = database.try_rows("SELECT count(*) FROM howdah.undo WHERE undone_at IS NULL");
    counted.ok().and_then(|rows| rows[0][0].as_deref()?.parse().ok()).unwrap_or(0)
}
