//! Values that are too long for an index: a check names the records that a load would leave out.

use super::{assert_forgotten, check, places, report, state};
use crate::scene::{Files, PATIENCE, howdah};
use howdah_testkit::{Database, MAJORS, Server};
use std::fmt::Write as _;
use std::path::Path;

/// Letters that cannot be compressed to much less.
fn letters(seed: u64, length: usize) -> String {
    let mut random = fastrand::Rng::with_seed(seed);
    std::iter::repeat_with(|| random.alphanumeric()).take(length).collect()
}

/// Records of `a,s`: short values, long ones that compress well, and from number 4 on such as do not.
fn records() -> String {
    let mut text = "a,s\n1,short\n".to_owned();
    let values =
        ["x".repeat(100_000), letters(1, 2000), letters(2, 4000), letters(3, 9000), letters(4, 30_000)];
    (2..).zip(values).for_each(|(no, value)| _ = writeln!(text, "{no},{value}"));
    text + "7,\n8,last\n"
}

/// What is made beside table `t (a int, s text)`.
const INDEXES: [&str; 10] = [
    "CREATE INDEX i ON t (s)",
    "CREATE INDEX i ON t (a) INCLUDE (s)",
    "CREATE UNIQUE INDEX i ON t (lower(s), a)",
    "CREATE INDEX i ON t (s) WHERE a <> 5",
    "CREATE INDEX i ON t (left(s, 1000), md5(s))",
    "CREATE INDEX i ON t USING hash (s)",
    "CREATE INDEX i ON t USING gin (string_to_array(s, ','))",
    "CREATE INDEX i ON t USING spgist (s)",
    "ALTER TABLE t ALTER s SET STORAGE EXTERNAL; CREATE INDEX i ON t (s)",
    "ALTER TABLE t ADD n bigserial, ADD g text GENERATED ALWAYS AS (s || 'g') STORED; CREATE INDEX i ON t (n, g)",
];

fn rejected(database: &Database, source: &Path) -> String {
    let load = howdah("load").args(["--to", &database.conninfo(), "--table", "t"]);
    let done = load.args(["--on-error", "skip", "--indexes", "keep"]).arg(source).run(PATIENCE);
    assert!(matches!(done.code, Some(0 | 3)), "{done:?}");
    database.value("SELECT coalesce(string_agg(record::text, ' ' ORDER BY record), '') FROM howdah.reject")
}

#[test]
fn records_that_are_too_long_for_an_index_are_named() {
    let files = Files::new();
    let source = files.put("a.csv", records().as_bytes());
    for major in MAJORS {
        for index in INDEXES {
            let database = Server::shared(major).database();
            database.sql(&format!("CREATE TABLE t (a int, s text); {index}"));
            let before = state(&database);
            let done = check(&database, &[&source]).run(PATIENCE);
            let told = super::told(&done);
            let found = places(&told);
            assert!(found.iter().all(|(sqlstate, ..)| sqlstate == "54000"), "{index}: {told:#}");
            assert!(found.iter().all(|(.., constraint, _)| constraint.as_deref() == Some("i")), "{told:#}");
            assert_eq!(told["not_checked"].as_array().unwrap().len(), 0, "{index}: {told:#}");
            assert_eq!(state(&database), before, "{index}");
            assert_forgotten(&database);
            let named: Vec<String> =
                found.into_iter().map(|(.., record)| record.unwrap().to_string()).collect();
            assert_eq!(
                named.join(" "),
                rejected(&database, &source),
                "PostgreSQL {major}, {index}: {told:#}"
            );
            assert_eq!(done.code, Some(if named.is_empty() { 0 } else { 3 }), "{told:#}");
        }
    }
}

/// Of a key, of a partitioned table, and of a table that is to be made.
#[test]
fn keys_that_are_too_long_are_named_whatever_the_table_is() {
    let files = Files::new();
    let source = files.put("a.csv", records().replace("7,\n", "").as_bytes());
    for major in MAJORS {
        let kinds = [
            ("CREATE TABLE t (a int, s text PRIMARY KEY)", &[][..]),
            (
                "CREATE TABLE t (a int, s text, UNIQUE (a, s)) PARTITION BY RANGE (a); \
                 CREATE TABLE t_low PARTITION OF t FOR VALUES FROM (0) TO (5); CREATE TABLE t_rest PARTITION OF t DEFAULT",
                &[],
            ),
            ("SELECT", &["--create", "--primary-key", "s"]),
        ];
        for (create, options) in kinds {
            let database = Server::shared(major).database();
            database.sql(create);
            let told = report(&check(&database, &[&source]).args(options), 3);
            let found: Vec<_> =
                places(&told).into_iter().map(|(sqlstate, .., record)| (sqlstate, record.unwrap())).collect();
            let expected = [4, 5, 6].map(|record| ("54000".to_owned(), record));
            assert_eq!(found, expected, "PostgreSQL {major}, {create}: {told:#}");
        }
    }
}

/// Only for rows that go there.
#[test]
fn indexes_that_a_partition_has_of_its_own_are_looked_at() {
    let files = Files::new();
    let source = files.put("a.csv", records().as_bytes());
    for major in MAJORS {
        let database = Server::shared(major).database();
        database.sql(
            "CREATE TABLE t (a int, s text) PARTITION BY RANGE (a); \
             CREATE TABLE t_low PARTITION OF t FOR VALUES FROM (0) TO (6); CREATE TABLE t_rest PARTITION OF t DEFAULT; \
             CREATE INDEX own ON t_low (s)",
        );
        let told = report(&check(&database, &[&source]), 3);
        let found: Vec<u64> = places(&told).into_iter().map(|(.., record)| record.unwrap()).collect();
        assert_eq!(found, [4, 5], "PostgreSQL {major}: {told:#}");
        assert_eq!(rejected(&database, &source), "4 5", "PostgreSQL {major}");
    }
}

/// It reads the table no further than its columns, and makes nothing but temporary tables.
#[test]
fn who_may_not_make_temporary_tables_is_told_what_is_not_checked() {
    let files = Files::new();
    let source = files.put("a.csv", records().as_bytes());
    let database = Server::shared(15).database();
    let (name, role) = (database.name(), format!("entries_{}", database.name()));
    database.sql(&format!(
        "CREATE TABLE t (a int, s text); CREATE INDEX i ON t (s); CREATE ROLE {role} LOGIN; \
         REVOKE TEMPORARY ON DATABASE {name} FROM PUBLIC; GRANT SELECT, INSERT ON t TO {role}; \
         GRANT CREATE ON DATABASE {name} TO {role}"
    ));
    let to = database.conninfo().replace("user=postgres", &format!("user={role}"));
    let run = howdah("check").args(["--json", "--table", "t", "--to", &to]).arg(&source);
    let told = report(&run, 0);
    let not = told["not_checked"].to_string();
    assert!(
        not.contains("i (its entry in index i would be too long)") && not.contains("temporary"),
        "{told:#}"
    );
    assert!(told["warnings"].to_string().contains("is not checked"), "{told:#}");
    database.sql(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
}
