//! Rows that wait are sorted and joined in more temporary files than the role has.

use super::{assert_nothing_left, load};
use crate::scene::{Files, PATIENCE, howdah};
use howdah_testkit::{MAJORS, Server, side_by_side};
use std::fmt::Write as _;

/// Sorting the keys of these takes several times the memory and the files of [`LIMITS`].
const ROWS: u64 = 60_000;
const LIMITS: &str = "\
    DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET maintenance_work_mem = ''1MB''', current_database()); \
                EXECUTE format('ALTER DATABASE %I SET work_mem = ''64kB''', current_database()); \
                EXECUTE format('ALTER DATABASE %I SET temp_file_limit = ''1MB''', current_database()); END $$";

#[test]
fn a_limit_of_temporary_files_ends_no_merge_of_who_may_lift_it_and_is_told_to_others() {
    let files = Files::new();
    let mut csv = "code,note\n".to_owned();
    for id in 0..ROWS {
        // Far from any order.
        let code = id.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let _ = writeln!(csv, "{code:064x},{id}");
    }
    // The last record repeats the key of the first.
    let twice = format!("{csv}{:064x},again\n", 0);
    let (once, twice) = (files.put("once.csv", csv.as_bytes()), files.put("twice.csv", twice.as_bytes()));
    side_by_side(MAJORS, |major| {
        let database = Server::shared(major).database();
        let (name, role) = (database.name(), format!("limited_{}", database.name()));
        database.sql(&format!(
            "CREATE TABLE t (code text PRIMARY KEY, note text); CREATE ROLE {role} LOGIN; \
             GRANT CREATE ON DATABASE {name} TO {role}; GRANT SELECT, INSERT, UPDATE ON t TO {role}; {LIMITS}"
        ));
        let merge = ["--mode", "merge", "--key", "code"];
        let count = || database.value("SELECT count(*) FROM t");
        load(&database, &[&once]).args(merge).args(["--verify", "checksum"]).run(PATIENCE).expect_code(0);
        assert_eq!(count(), ROWS.to_string(), "{major}");
        let told = load(&database, &[&twice]).args(merge).run(PATIENCE).expect_code(1).stderr;
        assert!(told.contains("it has the same key (code) as record 1 of "), "{major}: {told}");
        load(&database, &[&twice]).args(merge).args(["--keep", "last"]).run(PATIENCE).expect_code(0);
        assert_eq!(database.value("SELECT count(*) FROM t WHERE note = 'again'"), "1", "{major}");
        assert_nothing_left(&database, "limited");
        database.sql("TRUNCATE t");

        let to = database.conninfo().replace("user=postgres", &format!("user={role}"));
        let as_role = || {
            let load = howdah("load").args(["--format", "csv", "--header", "--table", "t", "--to", &to]);
            load.args(merge).args(["--ledger", "of_the_role"]).arg(&once).run(PATIENCE)
        };
        let told = as_role().expect_code(1).stderr;
        let alter = format!("ALTER ROLE \"{role}\" IN DATABASE \"{name}\" SET temp_file_limit = -1");
        let hint = format!("hint: a superuser can run {alter}, then run the same command again");
        assert!(told.contains("53400") && told.contains(&hint), "{major}: {told}");
        database.sql(&alter);
        as_role().expect_code(0);
        assert_eq!(count(), ROWS.to_string(), "{major}");
        database.sql(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
    });
}
