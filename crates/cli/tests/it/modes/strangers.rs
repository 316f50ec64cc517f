//! Somebody else has made a table of the name that a job will give to one of its own: the names follow from
//! the job's.

use crate::gate::{remove_gate, shut_gate_behind};
use crate::scene::{END_SESSIONS, Files, PATIENCE, csv, howdah};
use howdah_testkit::{Database, HowdahCommand, MAJORS, Server, side_by_side};
use std::path::Path;

const JOB: &str = "nightly";
const SUPERUSER: &str = "user=postgres";

/// What names of the job's tables end with, as somebody finds out who knows its name.
fn suffix(database: &Database) -> String {
    database.value(&format!("SELECT left(encode(sha256('{JOB}'), 'hex'), 16) || '_0'"))
}

/// A table that others load into, and a role that has nothing to do with it but may make tables in both
/// schemas. Whoever runs its functions is noted in `seen`.
fn prepared(major: u32) -> (Database, String) {
    let database = Server::shared(major).database();
    let mallory = format!("mallory_{}", database.name());
    database.sql(&format!(
        "CREATE TABLE t (id bigint PRIMARY KEY, part integer, amount numeric, note text); \
         INSERT INTO t VALUES (1, 1, 1, 'old'), (1000000, 1, 1, 'old'); \
         CREATE ROLE {mallory} LOGIN; GRANT CREATE ON SCHEMA public TO {mallory}"
    ));
    let first = Files::new();
    // So that there is a ledger.
    database.sql("CREATE TABLE other (LIKE t)");
    let made = howdah("load").args(["--to", &database.conninfo(), "--table", "other"]);
    made.arg(first.put("o.csv", &csv(1, 1, 3))).run(PATIENCE).expect_code(0);
    database.sql(&format!(
        "GRANT USAGE, CREATE ON SCHEMA howdah TO {mallory}; SET ROLE {mallory}; \
         CREATE TABLE public.seen (who text, what text); GRANT ALL ON public.seen TO PUBLIC; \
         CREATE FUNCTION public.see() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN INSERT INTO public.seen VALUES (current_user, TG_OP); IF TG_LEVEL = 'ROW' THEN RETURN NEW; END IF; RETURN NULL; END $$; \
         CREATE FUNCTION public.look(bigint) RETURNS bigint LANGUAGE plpgsql AS \
         $$ BEGIN INSERT INTO public.seen VALUES (current_user, 'view'); RETURN $1; END $$"
    ));
    (database, mallory)
}

fn nightly(database: &Database, user: &str, source: &Path, options: &[&str]) -> HowdahCommand {
    let to = database.conninfo().replace("user=postgres", user);
    let load = howdah("load").args(["--format", "csv", "--header", "--table", "t", "--to", &to]);
    load.args(["--job-id", JOB]).args(options.iter().copied()).arg(source)
}

/// What stands there, as its owner makes it.
fn forged(name: &str, what: &str) -> String {
    let watched = format!(
        "CREATE TRIGGER emptied BEFORE TRUNCATE ON {name} EXECUTE FUNCTION public.see(); \
         CREATE TRIGGER row BEFORE INSERT ON {name} FOR EACH ROW EXECUTE FUNCTION public.see(); \
         CREATE TRIGGER all_rows BEFORE INSERT ON {name} EXECUTE FUNCTION public.see(); GRANT ALL ON {name} TO PUBLIC"
    );
    match what {
        "borders" => format!("CREATE TABLE {name} (no integer NOT NULL, border text); {watched}"),
        "view" => format!(
            "CREATE VIEW {name} AS SELECT public.look(1) AS id, 1 AS part, 1::numeric AS amount, ''::text AS note"
        ),
        "placed" => format!(
            "CREATE TABLE {name} (id bigint NOT NULL, part integer, amount numeric, note text, place bigint); {watched}"
        ),
        _ => format!(
            "CREATE TABLE {name} (id bigint NOT NULL, part integer, amount numeric, note text); {watched}"
        ),
    }
}

#[test]
fn a_table_that_somebody_else_has_made_takes_no_rows() {
    let merge = &["--mode", "merge", "--key", "id"][..];
    let skip = &["--mode", "replace", "--on-error", "skip"][..];
    let cases = [
        ("public.howdah_new", "table", &["--mode", "replace"][..]),
        ("public.howdah_new", "view", &["--mode", "replace"]),
        ("howdah.staging", "table", &["--atomic"]),
        ("howdah.staging", "placed", merge),
        ("howdah.staging", "view", merge),
        ("howdah.staging", "placed", skip),
        ("public.howdah_new", "table", skip),
        ("public.howdah_new", "view", skip),
    ];
    side_by_side(MAJORS, |major| {
        let files = Files::new();
        let source = files.put("a.csv", &csv(7, 2, 2000));
        for (prefix, what, options) in cases {
            let (database, mallory) = prepared(major);
            let name = format!("{prefix}_{}", suffix(&database));
            database.sql(&format!("SET ROLE {mallory}; {}", forged(&name, what)));
            let oid = database.value(&format!("SELECT '{name}'::regclass::oid"));
            let before = database.digest("t");
            let case = format!("PostgreSQL {major}, {name}, {what}, {options:?}");
            let refused = nightly(&database, SUPERUSER, &source, options).run(PATIENCE).expect_code(1).stderr;
            assert_eq!(
                database.rows("SELECT DISTINCT * FROM seen"),
                Vec::<Vec<_>>::new(),
                "{case}\n{refused}"
            );
            assert!(
                refused.contains(&format!("{name} is there, and this job has not made it: "))
                    && refused.contains("drop or rename it"),
                "{case}\n{refused}"
            );
            assert_eq!(database.digest("t"), before, "{case}");
            // It is still hers, and as it was.
            assert_eq!(database.value(&format!("SELECT '{name}'::regclass::oid")), oid, "{case}");
            let kind = if what == "view" { "VIEW" } else { "TABLE" };
            database.sql(&format!("DROP {kind} {name}"));
            nightly(&database, SUPERUSER, &source, options).run(PATIENCE).expect_code(0);
            assert_eq!(
                database.value("SELECT count(DISTINCT id) FROM t WHERE id BETWEEN 2 AND 2001"),
                "2000",
                "{case}"
            );
            assert_eq!(database.value("SELECT count(*) FROM seen"), "0", "{case}");
        }
    });
}

/// It would not be built, and the new table would be without it.
#[test]
fn what_has_the_name_of_a_new_tables_index_is_not_taken_for_it() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(7, 2, 20));
    for major in MAJORS {
        let (database, mallory) = prepared(major);
        database.sql("CREATE INDEX by_part ON t (part)");
        let digest = database.value("SELECT left(md5(pg_get_indexdef('by_part'::regclass)), 12)");
        let name = format!("public.howdah_new_{}_{digest}", suffix(&database));
        database.sql(&format!("SET ROLE {mallory}; CREATE TABLE {name} (a int)"));
        let replace = nightly(&database, SUPERUSER, &source, &["--mode", "replace"]);
        let refused = replace.run(PATIENCE).expect_code(1).stderr;
        assert!(
            refused.contains("public.t cannot be replaced") && refused.contains("already exists"),
            "PostgreSQL {major}\n{refused}"
        );
        assert_eq!(database.value("SELECT count(*) FROM t"), "2", "PostgreSQL {major}");
        database.sql(&format!("DROP TABLE {name}"));
        replace.run(PATIENCE).expect_code(0);
        assert_eq!(
            database.value("SELECT count(*) FROM pg_index WHERE indrelid = 't'::regclass"),
            "2",
            "PostgreSQL {major}"
        );
    }
}

/// A merge that was killed when some of its rows waited.
fn killed(database: &Database, user: &str, source: &Path) {
    shut_gate_behind(database, 2);
    let merge = ["--mode", "merge", "--key", "id", "--chunk-size", "32kB", "--jobs", "2"];
    let mut running = nightly(database, user, source, &merge).spawn();
    let chunks = "SELECT count(*) FROM howdah.chunk WHERE job_id = 'nightly'";
    assert!(database.wait_for(chunks, 2, || running.is_running()), "{}", running.stderr_so_far());
    running.kill();
    database.sql(END_SESSIONS);
    remove_gate(database);
}

/// The rows that wait in it stay where they are.
#[test]
fn what_another_member_of_the_owner_has_left_is_gone_on_with() {
    let whole = csv(7, 1, 4000);
    for major in MAJORS {
        let files = Files::new();
        let source = files.put("a.csv", &whole);
        for (first, second) in [
            ("user={a} options='-c role={group}'", "user={b} options='-c role={group}'"),
            ("user={a}", SUPERUSER),
            (SUPERUSER, SUPERUSER),
        ] {
            let (database, _) = prepared(major);
            let [group, a, b] = ["group", "a", "b"].map(|role| format!("{role}_{}", database.name()));
            database.sql(&format!(
                "CREATE ROLE {group}; CREATE ROLE {a} LOGIN IN ROLE {group}; CREATE ROLE {b} LOGIN IN ROLE {group}; \
                 ALTER TABLE t OWNER TO {group}; GRANT USAGE, CREATE ON SCHEMA howdah TO {group}; \
                 GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA howdah TO {group}; GRANT ALL ON ALL SEQUENCES IN SCHEMA howdah TO {group}"
            ));
            let named = |user: &str| user.replace("{a}", &a).replace("{b}", &b).replace("{group}", &group);
            killed(&database, &named(first), &source);
            let staging = format!("howdah.staging_{}", suffix(&database));
            let waiting = database.value(&format!("SELECT count(*) FROM {staging}"));
            assert_ne!(waiting, "0");
            let chunks = ["--mode", "merge", "--key", "id", "--chunk-size", "32kB", "--jobs", "2", "--json"];
            let done = nightly(&database, &named(second), &source, &chunks).run(PATIENCE);
            let case = format!("PostgreSQL {major}, {first}, then {second}\n{}", done.stderr);
            assert_eq!(done.code, Some(0), "{case}");
            let told: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
            assert_eq!(told["rows_stored_before"].to_string(), waiting, "{case}\n{}", done.stdout);
            assert_eq!(database.value("SELECT count(*) FROM t"), "4001", "{case}");
            assert_eq!(database.value(&format!("SELECT to_regclass('{staging}') IS NULL")), "t", "{case}");
        }
    }
}

/// Who may write to the ledger says that the table is the job's, or that the job's is another one.
#[test]
fn a_ledger_that_others_have_changed_brings_no_rows_elsewhere() {
    for major in MAJORS {
        let files = Files::new();
        let source = files.put("a.csv", &csv(7, 1, 4000));
        let (database, mallory) = prepared(major);
        let name = format!("howdah.staging_{}", suffix(&database));
        database.sql(&format!(
            "GRANT INSERT, UPDATE, SELECT ON howdah.undo, howdah.job TO {mallory}; SET ROLE {mallory}; {}; \
             INSERT INTO howdah.undo (job_id, kind, schema_name, table_name, table_oid, name, definition, statements, ledger_oid) \
             VALUES ('{JOB}', 'staging', 'howdah', 'staging_{}', '{name}'::regclass, 'staging_{1}', 'public.t', \
                     '{{DROP TABLE {name}}}', 'howdah.undo'::regclass)",
            forged(&name, "placed"),
            suffix(&database)
        ));
        let merge = ["--mode", "merge", "--key", "id"];
        let refused = nightly(&database, SUPERUSER, &source, &merge).run(PATIENCE).expect_code(1).stderr;
        assert!(
            refused.contains(&format!("it belongs to the role \"{mallory}\"")),
            "PostgreSQL {major}\n{refused}"
        );
        assert_eq!(database.value("SELECT count(*) FROM seen"), "0", "PostgreSQL {major}\n{refused}");

        let (database, mallory) = prepared(major);
        database.sql("CREATE TABLE precious AS SELECT 1 AS id, 'mine' AS note");
        killed(&database, SUPERUSER, &source);
        database.sql(&format!(
            "GRANT INSERT, UPDATE, SELECT, DELETE ON howdah.undo, howdah.job, howdah.chunk TO {mallory}; SET ROLE {mallory}; \
             UPDATE howdah.job SET plan = replace(plan::text, '\"staging_{}\"', '\"precious\"')::jsonb; \
             UPDATE howdah.job SET plan = replace(plan::text, '{{\"name\": \"precious\", \"schema\": \"howdah\"}}', \
                 '{{\"name\": \"precious\", \"schema\": \"public\"}}')::jsonb; \
             UPDATE howdah.undo SET schema_name = 'public', table_name = 'precious', table_oid = 'public.precious'::regclass \
             WHERE job_id = '{JOB}' AND kind = 'staging'; DELETE FROM howdah.chunk",
            suffix(&database)
        ));
        let plan =
            database.value("SELECT plan->'tables'->0->'staging' FROM howdah.job WHERE job_id = 'nightly'");
        assert!(plan.contains("precious") && plan.contains("public"), "{plan}");
        let resume = howdah("resume").args(["--to", &database.conninfo(), JOB]);
        let refused = resume.run(PATIENCE).expect_code(1).stderr;
        assert_eq!(database.value("SELECT note FROM precious"), "mine", "PostgreSQL {major}\n{refused}");
    }
}
