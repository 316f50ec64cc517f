//! What cannot be done is said before a row is read, with what to do about it.

use super::{assert_nothing_left, changes, load};
use crate::rights::Stage;
use crate::scene::{Files, PATIENCE, howdah};
use howdah_testkit::{Database, MAJORS, Server, side_by_side};
use std::path::Path;

#[track_caller]
fn refused(database: &Database, source: &Path, args: &[&str], code: i32, words: &[&str]) {
    let finished = load(database, &[source]).args(args.iter().copied()).run(PATIENCE).expect_code(code);
    for word in words {
        assert!(finished.stderr.contains(word), "{args:?}: {word} in\n{}", finished.stderr);
    }
}

#[test]
fn a_key_needs_a_unique_index_of_its_own() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,code,note\n1,a,x\n");
    let database = Server::shared(15).database();
    let merge = ["--mode", "merge", "--key", "id"];
    for table in [
        "CREATE TABLE t (id int, code text, note text)",
        "CREATE TABLE t (id int, code text, note text, UNIQUE (id, code))",
        "CREATE TABLE t (id int, code text, note text); CREATE UNIQUE INDEX ON t (id) WHERE id > 0",
        "CREATE TABLE t (id int, code text, note text); CREATE UNIQUE INDEX ON t ((id + 0))",
    ] {
        database.sql(&format!("DROP TABLE IF EXISTS t; {table}"));
        refused(
            &database,
            &source,
            &merge,
            1,
            &[
                "no unique index of public.t is on (\"id\") alone",
                "hint: CREATE UNIQUE INDEX CONCURRENTLY ON \"public\".\"t\" (\"id\")",
            ],
        );
    }
    // The server makes no index of a partitioned table concurrently.
    let partitioned = "DROP TABLE t; CREATE TABLE t (id int, code text, note text) PARTITION BY LIST (id)";
    database.sql(partitioned);
    refused(&database, &source, &merge, 1, &["hint: CREATE UNIQUE INDEX ON \"public\".\"t\" (\"id\")"]);
    database.sql("DROP TABLE t; CREATE TABLE t (id int, code text, note text, UNIQUE (id) INCLUDE (note))");
    load(&database, &[&source]).args(merge).run(PATIENCE).expect_code(0);
    refused(
        &database,
        &source,
        &["--mode", "merge", "--key", "other"],
        1,
        &["no field of the files fills other"],
    );
    assert_nothing_left(&database, "refused");
}

/// ON CONFLICT would mean it as well as an index beside it.
#[test]
fn a_deferrable_key_is_not_one_to_merge_by_whatever_is_beside_it() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,code,note\n1,a,x\n2,b,x\n");
    side_by_side(MAJORS, |major| {
        for (mode, (kind, index)) in ["merge", "insert-new"].into_iter().flat_map(|mode| {
            [
                ("PRIMARY KEY", ""),
                ("PRIMARY KEY", "CREATE UNIQUE INDEX ON t (code, id)"),
                ("UNIQUE", "CREATE UNIQUE INDEX ON t (id, code)"),
            ]
            .map(|kind| (mode, kind))
        }) {
            let what = format!("PostgreSQL {major}, {mode}, {kind}, {index}");
            let database = Server::shared(major).database();
            database.sql(&format!(
                "CREATE TABLE t (id int, code text, note text, CONSTRAINT \"is one\" {kind} (id, code) DEFERRABLE); \
                 {index}; INSERT INTO t VALUES (1, 'a', 'old')"
            ));
            let helps = format!(
                "ALTER TABLE \"public\".\"t\" DROP CONSTRAINT \"is one\", ADD CONSTRAINT \"is one\" {kind} (id, code)"
            );
            let load = load(&database, &[&source]).args(["--mode", mode, "--key", "code,id"]);
            let told = load.run(PATIENCE).expect_code(1).stderr;
            assert!(told.contains("is one is DEFERRABLE"), "{what}: {told}");
            assert!(told.contains(&format!("hint: {helps} makes")), "{what}: {told}");
            let waiting = "SELECT count(*) FROM pg_class WHERE relname LIKE 'staging%'";
            assert_eq!(database.value(waiting), "0", "{what}");
            database.sql(&helps);
            load.run(PATIENCE).expect_code(0);
            assert_eq!(database.value("SELECT count(*) FROM t"), "2", "{what}");
        }
        // By other operators it is another index, which ON CONFLICT tells from it.
        let database = Server::shared(major).database();
        database.sql(
            "CREATE TABLE t (id int, code text UNIQUE DEFERRABLE, note text); CREATE UNIQUE INDEX ON t (code text_pattern_ops)",
        );
        let load = load(&database, &[&source]).args(["--mode", "merge", "--key", "code"]);
        assert_eq!(changes(&load), [2, 0, 0, 0, 0], "PostgreSQL {major}");
    });
}

/// It is unique and an exclusion constraint (PostgreSQL 18): ON CONFLICT (key) cannot go by it.
#[test]
fn a_key_without_overlaps_is_not_one_to_merge_by() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,span,note\n1,\"[1,5)\",new\n2,\"[1,5)\",new\n");
    let database = Server::shared(18).database();
    database.sql(
        "CREATE EXTENSION btree_gist; CREATE TABLE t (id int, span int4range, note text, PRIMARY KEY (id, span WITHOUT OVERLAPS)); \
         INSERT INTO t VALUES (1, '[1,5)', 'old')",
    );
    let merge = ["--mode", "merge", "--key", "id,span"];
    let helps = "CREATE UNIQUE INDEX CONCURRENTLY ON \"public\".\"t\" (\"id\", \"span\")";
    let words = [
        "its key WITHOUT OVERLAPS is none that ON CONFLICT can go by",
        &format!("hint: {helps}; its key stays in force beside it"),
    ];
    refused(&database, &source, &merge, 1, &words);
    database.sql(helps);
    assert_eq!(changes(&load(&database, &[&source]).args(merge)), [1, 1, 0, 0, 0]);
    assert_eq!(database.value("SELECT note FROM t WHERE id = 1"), "new");
    let other = files.put("a.csv", b"id,span,note\n1,\"[4,9)\",late\n");
    refused(&database, &other, &merge, 1, &["SQLSTATE 23P01"]);
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let files = Files::new();
    let source = files.put("a.csv", b"id\n1\n");
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int PRIMARY KEY)");
    for (args, words) in [
        (&["--mode", "merge"][..], "need the --key"),
        (&["--key", "id"], "--key is for"),
        (&["--keep", "last"], "--keep is for"),
        (&["--delete-missing"], "--delete-missing is for"),
        (&["--mode", "truncate", "--atomic"], "exclude each other"),
        (&["--atomic", "--ledger", "none"], "need a ledger"),
        (&["--atomic", "--indexes", "rebuild"], "hint: leave it out: --mode replace builds the indexes"),
        (&["--atomic", "--triggers", "disable"], "hint: leave it out: with --mode replace no trigger"),
        (&["--atomic", "--create-partitions", "day"], "hint: leave it out, and make the partitions"),
        (&["--lock-timeout", "0s"], "--lock-timeout: expected"),
        (&["--mode", "merge", "--key", "id,id"], "twice"),
    ] {
        refused(&database, &source, args, 2, &[words]);
    }
}

#[test]
fn tables_whose_rows_lie_in_others_are_not_merged_into() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,note\n1,x\n");
    for major in MAJORS {
        let database = Server::shared(major).database();
        database.sql(
            "CREATE TABLE t (id int PRIMARY KEY, note text); CREATE TABLE child () INHERITS (t); \
             INSERT INTO child VALUES (1, 'old'), (2, 'old')",
        );
        let merge = ["--mode", "merge", "--key", "id"];
        let words = ["rows of public.t may lie in other tables", "other tables inherit from it"];
        refused(&database, &source, &merge, 1, &words);
        refused(&database, &source, &[&merge[..], &["--delete-missing"]].concat(), 1, &words);
        let instead = "hint: --mode truncate empties the table itself, not those that inherit from it";
        refused(&database, &source, &["--mode", "replace"], 1, &["it inherits from another table", instead]);
        let truncate = load(&database, &[&source]).args(["--mode", "truncate", "--freeze"]);
        truncate.run(PATIENCE).expect_code(0);
        let rows = "SELECT string_agg(concat_ws(' ', tableoid::regclass, id, note), ', ' ORDER BY tableoid::regclass::text, id) FROM t";
        assert_eq!(database.value(rows), "child 1 old, child 2 old, t 1 x", "PostgreSQL {major}");
        database.sql(
            "DROP TABLE child; CREATE SCHEMA _timescaledb_catalog; \
             CREATE TABLE _timescaledb_catalog.hypertable (schema_name name, table_name name); \
             INSERT INTO _timescaledb_catalog.hypertable VALUES ('public', 't')",
        );
        refused(&database, &source, &merge, 1, &["it is a hypertable of TimescaleDB"]);
        refused(&database, &source, &["--mode", "replace"], 1, &["it is a hypertable of TimescaleDB"]);
        // Others of that database are not.
        database.sql("UPDATE _timescaledb_catalog.hypertable SET table_name = 'u'");
        load(&database, &[&source]).args(["--force"]).args(merge).run(PATIENCE).expect_code(0);
    }
}

#[test]
fn an_empty_source_does_not_empty_a_table_by_itself() {
    let files = Files::new();
    let source = files.put("a.csv", b"id\n");
    let database = Server::shared(18).database();
    database.sql("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1), (2)");
    let merge = ["--mode", "merge", "--key", "id", "--delete-missing"];
    refused(&database, &source, &merge, 1, &["would empty public.t", "hint: --force"]);
    assert_eq!(database.value("SELECT count(*) FROM t"), "2");
    assert_nothing_left(&database, "empty source");
    load(&database, &[&source]).args(merge).arg("--force").run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(*) FROM t"), "0");
}

#[test]
fn no_row_is_deleted_for_a_line_that_is_only_guessed_to_be_no_record() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,amount\na,1\nb,2\nc,3\nTotal,6\n");
    let database = Server::shared(15).database();
    database
        .sql("CREATE TABLE t (id text PRIMARY KEY, amount int); INSERT INTO t VALUES ('Total', 5), ('z', 0)");
    let keys = "SELECT string_agg(id, ' ' ORDER BY id COLLATE \"C\") FROM t";
    let load =
        || crate::auto::load(&database).args(["--table", "t", "--mode", "merge", "--key", "id"]).arg(&source);
    let told = load().arg("--delete-missing").run(PATIENCE).expect_code(1).stderr;
    assert!(told.contains("1 line before or behind the table that could be records"), "{told}");
    assert_eq!(database.value(keys), "Total z");
    let told = load().run(PATIENCE).expect_code(0).stderr;
    assert!(
        told.contains("1 line before or behind the table that could be a record is not loaded"),
        "{told}"
    );
    assert_eq!(database.value(keys), "Total a b c z");
    load().args(["--delete-missing", "--format", "csv", "--header"]).run(PATIENCE).expect_code(0);
    assert_eq!(database.value(keys), "Total a b c");
    load().args(["--delete-missing", "--force"]).run(PATIENCE).expect_code(0);
    assert_eq!(database.value(keys), "a b c");
}

#[test]
fn rows_that_the_table_refuses_leave_nothing_behind() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,note\n1,x\n2,bad\n");
    let database = Server::shared(13).database();
    database.sql("CREATE TABLE t (id int PRIMARY KEY, note text CHECK (note <> 'bad'))");
    for args in [&["--mode", "merge", "--key", "id"][..], &["--atomic"]] {
        refused(&database, &source, args, 1, &["violates check constraint", "(SQLSTATE 23514)"]);
        assert_eq!(database.value("SELECT count(*) FROM t"), "0");
        assert_nothing_left(&database, "refused rows");
    }
    database.sql("ALTER TABLE t DROP CONSTRAINT t_note_check");
    load(&database, &[&source]).arg("--atomic").run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(*) FROM t"), "2");
}

#[test]
fn records_kept_of_chunks_that_are_forgotten_are_forgotten_with_them() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,note\n1,x\nbad,y\n");
    for major in MAJORS {
        let database = Server::shared(major).database();
        database.sql(
            "CREATE TABLE t (id int PRIMARY KEY, note text); \
             CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''no''; END'; \
             CREATE TRIGGER no BEFORE INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION no()",
        );
        let command = load(&database, &[&source]).args(["--atomic", "--on-error", "skip"]);
        command.run(PATIENCE).expect_code(1);
        let kept = "SELECT count(*) FROM howdah.reject";
        assert_eq!(database.value(kept), "0", "PostgreSQL {major}");
        database.sql("DROP TRIGGER no ON t");
        command.run(PATIENCE).expect_code(3);
        assert_eq!(database.value(kept), "1", "PostgreSQL {major}");
    }
}

#[test]
fn a_role_needs_insert_and_a_schema_of_its_own() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,note\n1,x\n2,y\n");
    let database = Server::shared(15).database();
    let role = format!("loader_{}", database.name());
    database.sql(&format!(
        "CREATE TABLE t (id int PRIMARY KEY, note text, secret text); CREATE ROLE {role} LOGIN; \
         GRANT INSERT (id, note) ON t TO {role}; CREATE SCHEMA own AUTHORIZATION {role}"
    ));
    let to = format!("{} user={role}", database.conninfo().replace("user=postgres", ""));
    let as_role = |args: &[&str]| {
        howdah("load")
            .args(["--format", "csv", "--header", "--table", "t", "--ledger", "own", "--to", &to])
            .args(args.iter().copied())
            .arg(&source)
            .run(PATIENCE)
    };
    as_role(&["--atomic"]).expect_code(0);
    let merge = ["--mode", "merge", "--key", "id"];
    let denied = as_role(&merge).expect_code(1).stderr;
    assert!(denied.contains("(SQLSTATE 42501)") && denied.contains("hint: "), "{denied}");
    database.sql(&format!("GRANT SELECT (id, note), UPDATE (note) ON t TO {role}"));
    as_role(&merge).expect_code(0);
    assert_eq!(database.value("SELECT count(*) FROM t"), "2");
}

#[test]
fn a_key_that_is_null_is_told_of_the_table() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,code\n1,a\n,b\n");
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int UNIQUE, code text)");
    for mode in ["merge", "insert-new"] {
        let load = load(&database, &[&source]).args(["--mode", mode, "--key", "id"]);
        let told = load.run(PATIENCE).expect_code(1).stderr;
        assert!(
            told.contains("null value in column \"id\" of relation \"t\"") && !told.contains("staging_"),
            "{told}"
        );
        assert!(told.contains("hint: rows of one key are found by =, to which no NULL is equal"), "{told}");
    }
}

/// Rules rewrite INSERT and UPDATE, and not COPY.
#[test]
fn rows_do_not_come_by_statements_that_rules_rewrite() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,note\n1,x\n2,y\n");
    let (merge, insert_new) =
        (&["--mode", "merge", "--key", "id"][..], &["--mode", "insert-new", "--key", "id"][..]);
    let (atomic, deleting) = (&["--atomic"][..], &["--mode", "merge", "--key", "id", "--delete-missing"][..]);
    let append: &[&str] = &[];
    for major in MAJORS {
        let database = Server::shared(major).database();
        database.sql("CREATE TABLE other (id int, note text)");
        for (rule, refuses, takes) in [
            ("INSERT TO t DO INSTEAD NOTHING", &[merge, insert_new, atomic][..], &[append][..]),
            (
                "INSERT TO t DO INSTEAD INSERT INTO other VALUES (new.id, new.note)",
                &[merge, atomic],
                &[append],
            ),
            ("INSERT TO t DO ALSO NOTIFY came", &[merge, atomic], &[append]),
            ("UPDATE TO t DO INSTEAD NOTHING", &[merge, insert_new], &[append, atomic]),
            ("DELETE TO t DO INSTEAD NOTHING", &[deleting], &[append, merge]),
        ] {
            let make = format!(
                "DROP TABLE IF EXISTS t; CREATE TABLE t (id int PRIMARY KEY, note text); CREATE RULE r AS ON {rule}"
            );
            database.sql(&make);
            for args in refuses {
                let words = ["its rules (r) rewrite", "hint: DROP RULE"];
                refused(&database, &source, args, 1, &words);
            }
            for args in takes {
                database.sql(&make);
                let load = load(&database, &[&source]).args(args.iter().copied()).args(["--force"]);
                let told = load.run(PATIENCE).expect_code(0).stderr;
                assert_eq!(database.value("SELECT count(*) FROM t"), "2", "{rule}, {args:?}");
                // By COPY into the table itself.
                let tells = args.is_empty() && rule.starts_with("INSERT");
                assert_eq!(
                    told.contains("the rules on INSERT (r) do nothing to these rows"),
                    tells,
                    "{told}"
                );
            }
            database.sql(&format!("{make}; ALTER TABLE t DISABLE RULE r"));
            // PostgreSQL takes no ON CONFLICT even then.
            if rule.starts_with("UPDATE") {
                refused(&database, &source, merge, 1, &["its rules (r) rewrite"]);
                continue;
            }
            let load = load(&database, &[&source]).args(refuses[0].iter().copied()).args(["--force"]);
            load.run(PATIENCE).expect_code(0);
            assert_eq!(database.value("SELECT count(*) FROM t"), "2", "{rule}, disabled");
        }
        assert_eq!(database.value("SELECT count(*) FROM other"), "0");
    }
}

#[test]
fn a_new_table_that_could_not_be_given_to_the_owner_is_not_begun() {
    let files = Files::new();
    let source = files.put("a.csv", b"id\n1\n");
    for major in MAJORS {
        let database = Server::shared(major).database();
        let (owner, loader) = (format!("owner_{}", database.name()), format!("loader_{}", database.name()));
        let with = if major >= 16 { " WITH INHERIT TRUE, SET FALSE" } else { "" };
        database.sql(&format!(
            "CREATE ROLE {owner}; CREATE ROLE {loader} LOGIN; GRANT {owner} TO {loader}{with}; \
             CREATE SCHEMA s; CREATE TABLE s.t (id int PRIMARY KEY); ALTER TABLE s.t OWNER TO {owner}; \
             CREATE FUNCTION s.fire() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; \
             CREATE TRIGGER fire BEFORE DELETE ON s.t FOR EACH ROW EXECUTE FUNCTION s.fire(); \
             REVOKE EXECUTE ON FUNCTION s.fire() FROM PUBLIC; \
             GRANT ALL ON SCHEMA s TO {loader}; GRANT USAGE ON SCHEMA s TO {owner}; GRANT CREATE ON DATABASE {} TO {loader}",
            database.name()
        ));
        let to = database.conninfo().replace("user=postgres", &format!("user={loader}"));
        let replace = |verb: &str| {
            let command = howdah(verb).args(["--table", "s.t", "--mode", "replace", "--to", &to]);
            command.args(["--format", "csv", "--header"]).arg(&source)
        };
        let mut grants = vec![
            (
                format!("the owner {owner} may not CREATE in the schema s"),
                format!("GRANT CREATE ON SCHEMA s TO {owner}"),
            ),
            (
                "this role may not EXECUTE the function of the trigger fire".to_owned(),
                format!("GRANT EXECUTE ON FUNCTION s.fire() TO {loader}"),
            ),
        ];
        if major >= 16 {
            grants.push((
                format!("this role may not SET ROLE to the owner {owner}"),
                format!("GRANT {owner} TO {loader} WITH SET TRUE"),
            ));
        }
        for verb in ["plan", "load"] {
            let told = replace(verb).run(PATIENCE).expect_code(1).stderr;
            for (reason, grant) in &grants {
                assert!(told.contains(reason) && told.contains(grant), "PostgreSQL {major} {verb}: {told}");
            }
        }
        grants.iter().for_each(|(_, grant)| database.sql(grant));
        replace("load").run(PATIENCE).expect_code(0);
        let of_table = "SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = 's.t'::regclass";
        assert_eq!(database.value(of_table), owner, "PostgreSQL {major}");
    }
}

/// The row came in, under another key than that of the file.
#[test]
fn a_trigger_that_changes_the_key_is_named_among_the_reasons() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,note\nA,x\n");
    let database = Server::shared(15).database();
    database.sql(
        "CREATE TABLE t (id text PRIMARY KEY, note text); \
         CREATE FUNCTION low() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.id := lower(NEW.id); RETURN NEW; END'; \
         CREATE TRIGGER low BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION low()",
    );
    for mode in ["merge", "insert-new"] {
        let words = [
            "1 row did not come into public.t",
            "one that changes the key of a row stores it under another key",
        ];
        refused(&database, &source, &["--mode", mode, "--key", "id"], 1, &words);
        assert_eq!(database.value("SELECT count(*) FROM t"), "0");
    }
}

/// The server says so of the staging table, whose name nobody knows.
#[test]
fn places_of_records_need_a_column_that_a_table_of_1600_has_no_room_for() {
    let files = Files::new();
    let names: Vec<String> = (1..=1600).map(|no| format!("c{no}")).collect();
    let csv = format!("{}\n{}\n", names.join(","), vec!["1"; 1600].join(","));
    let source = files.put("a.csv", csv.as_bytes());
    let database = Server::shared(15).database();
    let columns: Vec<String> = names.iter().map(|name| format!("{name} smallint")).collect();
    database.sql(&format!("CREATE TABLE t ({}, UNIQUE (c1))", columns.join(", ")));
    let told =
        "the files fill 1600 columns of public.t: a staging table, where the rows are to wait, has one more";
    let merge = ["--mode", "merge", "--key", "c1"];
    refused(&database, &source, &merge, 1, &[told, "hint: load into another table, without --mode"]);
    let skip = ["--atomic", "--on-error", "skip"];
    refused(&database, &source, &skip, 1, &[told, "hint: leave out --on-error skip"]);
    let check =
        howdah("check").args(["--format", "csv", "--header", "--table", "t", "--to", &database.conninfo()]);
    let checked = check.arg(&source).run(PATIENCE).expect_code(1);
    let words = [told, "hint: howdah load itself needs none, and with --atomic stores all records or none"];
    assert!(words.iter().all(|word| checked.stderr.contains(word)), "{}", checked.stderr);
    load(&database, &[&source]).arg("--atomic").run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(*) FROM t"), "1");
    assert_nothing_left(&database, "refused");
}

#[test]
fn a_view_is_not_emptied() {
    let files = Files::new();
    let source = files.put("a.csv", b"id\n1\n");
    let database = Server::shared(15).database();
    database.sql(
        "CREATE TABLE behind (id int); CREATE VIEW t AS SELECT id FROM behind; \
         CREATE FUNCTION put() RETURNS trigger LANGUAGE plpgsql AS \
             'BEGIN INSERT INTO public.behind VALUES (NEW.id); RETURN NEW; END'; \
         CREATE TRIGGER put INSTEAD OF INSERT ON t FOR EACH ROW EXECUTE FUNCTION put()",
    );
    let words = ["public.t is a view, which --mode truncate cannot empty", "hint: name the table behind it"];
    refused(&database, &source, &["--mode", "truncate"], 1, &words);
    load(&database, &[&source]).run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(*) FROM behind"), "1");
}

#[test]
fn what_emptying_and_replacing_a_table_needs_is_told_with_the_rest() {
    for major in MAJORS {
        let stage = Stage::new(major);
        let owner = format!("owner_{}", stage.database.name());
        stage.sql(&format!(
            "GRANT CONNECT, TEMPORARY ON DATABASE {{db}} TO {{role}}; GRANT USAGE ON SCHEMA s TO {{role}}; CREATE ROLE {owner}; \
             GRANT CREATE ON SCHEMA s TO {owner}; ALTER TABLE s.t OWNER TO {owner}"
        ));
        let source = stage.files.put("t.csv", b"a,b,k\n1,x,1\n2,y,2\n");
        let told = |verb: &str, mode: &str| {
            let told = stage.verb(verb).args(["--mode", mode]).arg(&source).run(PATIENCE);
            let told = told.expect_code(1).stderr;
            let hint = told.lines().find_map(|line| line.strip_prefix("hint: ")).unwrap_or_default();
            let grant = |part: &str| {
                let grant = part.find("GRANT ").map(|at| &part[at..])?;
                Some(grant.split(", or ").next().unwrap_or_default().to_owned())
            };
            (hint.split("; ").filter_map(grant).collect::<Vec<String>>(), told)
        };
        for (mode, rights) in [("truncate", 3), ("replace", 3)] {
            let (grants, said) = told("plan", mode);
            let rights = if mode == "replace" && major >= 16 { rights + 1 } else { rights };
            assert_eq!(grants.len(), rights, "PostgreSQL {major}, {mode}: {grants:#?}\n{said}");
            grants.iter().for_each(|grant| stage.sql(grant));
            stage.verb("load").args(["--mode", mode]).arg(&source).run(PATIENCE).expect_code(0);
            stage.sql(
                "REVOKE ALL ON s.t FROM {role}; REVOKE CREATE ON DATABASE {db} FROM {role}; DROP SCHEMA howdah CASCADE",
            );
        }
        assert_eq!(
            stage
                .database
                .value("SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = 's.t'::regclass"),
            owner
        );
    }
}

/// What triggers have made of rows is told by the transaction that has written them, in a column of its own.
#[test]
fn the_right_to_see_who_has_written_a_row_is_asked_beforehand() {
    for major in MAJORS {
        let stage = Stage::new(major);
        stage.sql(
            "GRANT CONNECT, CREATE, TEMPORARY ON DATABASE {db} TO {role}; GRANT USAGE ON SCHEMA s TO {role}; DROP TABLE s.t; \
             CREATE TABLE s.t (a int PRIMARY KEY, b text, c text) PARTITION BY RANGE (a); CREATE TABLE s.leaf PARTITION OF s.t DEFAULT; \
             INSERT INTO s.t VALUES (1, 'x'), (2, 'y'); GRANT SELECT (a, b), INSERT (a, b), UPDATE (b) ON s.t TO {role}; \
             CREATE FUNCTION s.same() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
        );
        let source = stage.files.put("t.csv", b"a,b\n1,x\n2,z\n");
        let run = |verb: &str, options: &[&str]| stage.verb(verb).args(options).arg(&source).run(PATIENCE);
        let (merge, insert) = (["--mode", "merge", "--key", "a"], ["--mode", "insert-new", "--key", "a"]);
        run("plan", &merge).expect_code(0);
        for trigger in [
            "BEFORE UPDATE ON s.leaf FOR EACH ROW",
            "AFTER UPDATE ON s.t FOR EACH STATEMENT",
            "BEFORE INSERT ON s.leaf FOR EACH ROW",
        ] {
            stage.sql(&format!("CREATE TRIGGER same {trigger} EXECUTE FUNCTION s.same()"));
            for verb in ["load", "plan", "check"] {
                let told = run(verb, &merge).expect_code(1).stderr;
                let grant = format!("GRANT SELECT (\"xmin\") ON \"s\".\"t\" TO {}", stage.quoted_role());
                assert!(told.contains(&grant), "PostgreSQL {major}, {trigger}, {verb}: {told}");
            }
            run("plan", &insert).expect_code(0);
            stage.sql(if trigger.contains("s.leaf") {
                "DROP TRIGGER same ON s.leaf"
            } else {
                "DROP TRIGGER same ON s.t"
            });
        }
        stage.sql(
            "CREATE TRIGGER same BEFORE UPDATE ON s.leaf FOR EACH ROW EXECUTE FUNCTION s.same(); GRANT SELECT (xmin) ON s.t TO {role}",
        );
        run("load", &merge).expect_code(0);
        assert_eq!(stage.database.value("SELECT string_agg(a || b, ' ' ORDER BY a) FROM s.t"), "1x 2z");
    }
}
