//! A role with the least that a load needs, and what is said of each right that is missing.

use crate::scene::{Files, PATIENCE, howdah};
use howdah_testkit::{Database, Finished, HowdahCommand, MAJORS, Server, ServerOptions};

/// A database to which nobody has a right, with a table `s.t (a, b, k)`.
pub(crate) struct Stage {
    pub(crate) database: Database,
    role: String,
    pub(crate) files: Files,
}

impl Stage {
    pub(crate) fn new(major: u32) -> Stage {
        let database = Server::shared(major).database();
        let role = format!("Least \"{}\"", database.name());
        let stage = Stage { database, role, files: Files::new() };
        stage.database.sql(&format!(
            "REVOKE ALL ON DATABASE {} FROM PUBLIC; REVOKE ALL ON SCHEMA public FROM PUBLIC; \
             CREATE ROLE {} LOGIN; CREATE SCHEMA s; CREATE TABLE s.t (a integer, b text, k bigserial)",
            stage.database.name(),
            stage.quoted_role()
        ));
        stage
    }

    pub(crate) fn quoted_role(&self) -> String {
        format!("\"{}\"", self.role.replace('"', "\"\""))
    }

    /// `{db}` and `{role}` are put in, quoted.
    pub(crate) fn sql(&self, sql: &str) {
        let db = format!("\"{}\"", self.database.name());
        self.database.sql(&sql.replace("{db}", &db).replace("{role}", &self.quoted_role()));
    }

    /// A verb with the table and its server, as the role.
    pub(crate) fn verb(&self, verb: &str) -> HowdahCommand {
        howdah(verb).args(["--format", "csv", "--header", "--table", "s.t", "--to", &self.to()])
    }

    fn to(&self) -> String {
        self.database.conninfo().replace("user=postgres", &format!("user='{}'", self.role))
    }

    fn load(&self, csv: &str, ledger: &str) -> Finished {
        let load = self.verb("load");
        load.args(["--ledger", ledger]).arg(self.files.put("t.csv", csv.as_bytes())).run(PATIENCE)
    }

    /// Refused, with a hint that holds the statement; which is then run.
    #[track_caller]
    fn lacks(&self, csv: &str, ledger: &str, grant: &str) {
        let finished = self.load(csv, ledger).expect_code(1);
        let db = format!("\"{}\"", self.database.name());
        let grant = grant.replace("{db}", &db).replace("{role}", &self.quoted_role());
        let hint = finished.stderr.lines().find(|line| line.starts_with("hint: ")).unwrap_or_default();
        assert!(hint.contains(&grant) && finished.stderr.contains("42501"), "{grant}\n{}", finished.stderr);
        self.database.sql(&grant);
    }
}

#[test]
fn each_right_that_is_missing_is_named_with_the_grant_to_run() {
    for major in MAJORS {
        let stage = Stage::new(major);
        let (csv, ledger) = ("a,b\n1,x\n2,y\n", "ledger of \"t\"");
        stage.lacks(csv, ledger, "GRANT CONNECT ON DATABASE {db} TO {role}");
        // All at once: nobody likes to be sent twice.
        let refused = stage.load(csv, ledger).expect_code(1).stderr;
        let what = "it lacks USAGE on schema s, INSERT, USAGE on sequence s.t_k_seq; it may not make the ledger's schema";
        assert!(refused.contains(what), "{refused}");
        let role = stage.quoted_role();
        for grant in ["USAGE ON SCHEMA \"s\"", "INSERT ON \"s\".\"t\"", "USAGE ON SEQUENCE \"s\".\"t_k_seq\""]
        {
            assert!(refused.contains(&format!("GRANT {grant} TO {role}")), "{refused}");
        }
        stage.lacks(csv, ledger, "GRANT USAGE ON SCHEMA \"s\" TO {role}");
        stage.lacks(csv, ledger, "GRANT INSERT ON \"s\".\"t\" TO {role}");
        stage.lacks(csv, ledger, "GRANT USAGE ON SEQUENCE \"s\".\"t_k_seq\" TO {role}");
        stage.lacks(csv, ledger, "GRANT CREATE ON DATABASE {db} TO {role}");
        let done = stage.load(csv, ledger).expect_code(0);
        assert!(!done.stderr.contains("denied"), "PostgreSQL {major}\n{}", done.stderr);
        stage.sql("REVOKE CREATE ON DATABASE {db} FROM {role}");
        stage.load("a,b\n3,z\n", ledger).expect_code(0);
        assert_eq!(stage.database.value("SELECT sum(a)::text || count(DISTINCT k) FROM s.t"), "63");
    }
}

#[test]
fn a_closed_schema_is_told_of_files_that_are_in_too() {
    let stage = Stage::new(15);
    stage.sql(
        "GRANT CONNECT, CREATE ON DATABASE {db} TO {role}; GRANT USAGE ON SCHEMA s TO {role}; \
         GRANT SELECT, INSERT ON s.t TO {role}; GRANT USAGE ON SEQUENCE s.t_k_seq TO {role}",
    );
    let in_by_now = stage.files.put("in.csv", b"a,b\n1,x\n");
    let more = stage.files.put("more.csv", b"a,b\n2,y\n");
    stage.verb("load").arg(&in_by_now).run(PATIENCE).expect_code(0);
    stage.sql("REVOKE USAGE ON SCHEMA s FROM {role}");
    let load = stage.verb("load").args(["--known", "skip"]).arg(&in_by_now).arg(&more);
    let refused = load.run(PATIENCE).expect_code(1).stderr;
    assert!(refused.contains("it lacks USAGE on schema s"), "{refused}");
}

#[test]
fn a_table_that_could_not_be_made_is_taken_as_somebody_else_makes_it() {
    let stage = Stage::new(15);
    stage.sql("GRANT CONNECT, CREATE ON DATABASE {db} TO {role}; GRANT USAGE ON SCHEMA s TO {role}");
    let source = stage.files.put("new.csv", b"k,day\n007,13/02/2024\n008,14/02/2024\n");
    let load = || {
        let load = howdah("load").args(["--create", "--table", "s.made", "--to", &stage.to()]);
        load.arg(&source).run(PATIENCE)
    };
    let refused = load().expect_code(1).stderr;
    let grant = format!("GRANT CREATE ON SCHEMA \"s\" TO {}", stage.quoted_role());
    assert!(
        refused.contains("may not load into s.made: it lacks CREATE on schema s (SQLSTATE 42501)"),
        "{refused}"
    );
    assert!(refused.contains(&grant), "{refused}");
    let plan = howdah("plan").args(["--create", "--table", "s.made", "--to", &stage.to()]);
    assert_eq!(plan.arg(&source).run(PATIENCE).expect_code(1).stderr, refused);
    assert_eq!(stage.database.value("SELECT count(*) FROM pg_namespace WHERE nspname = 'howdah'"), "0");
    stage.sql(
        "CREATE TABLE s.made (id integer GENERATED BY DEFAULT AS IDENTITY, k integer, day text); \
         GRANT INSERT ON s.made TO {role}",
    );
    load().expect_code(0);
    assert_eq!(
        stage.database.value("SELECT string_agg(made::text, ' ' ORDER BY k) FROM s.made"),
        "(1,7,13/02/2024) (2,8,14/02/2024)"
    );
}

#[test]
fn rights_on_columns_are_enough_for_their_columns() {
    for major in MAJORS {
        let stage = Stage::new(major);
        stage.sql(
            "GRANT CONNECT, CREATE ON DATABASE {db} TO {role}; GRANT USAGE ON SCHEMA s TO {role}; \
             GRANT INSERT (a) ON s.t TO {role}; GRANT USAGE ON SEQUENCE s.t_k_seq TO {role}",
        );
        stage.load("a\n1\n", "l").expect_code(0);
        let refused = stage.load("a,b,k\n1,x,7\n", "l").expect_code(1);
        assert!(
            refused.stderr.contains("may not load into s.t: it lacks INSERT on b, k"),
            "{}",
            refused.stderr
        );
        stage.lacks("a,b,k\n1,x,7\n", "l", "GRANT INSERT (\"b\", \"k\") ON \"s\".\"t\" TO {role}");
        stage.load("a,b,k\n1,x,7\n", "l").expect_code(0);
        assert_eq!(stage.database.value("SELECT count(*) FROM s.t"), "2", "PostgreSQL {major}");
    }
}

#[test]
fn the_ledger_of_another_role_is_used_by_grant() {
    for major in MAJORS {
        let stage = Stage::new(major);
        stage.sql(
            "GRANT CONNECT ON DATABASE {db} TO {role}; GRANT USAGE ON SCHEMA s TO {role}; \
             GRANT INSERT ON s.t TO {role}; GRANT USAGE ON SEQUENCE s.t_k_seq TO {role}",
        );
        let to = stage.database.conninfo();
        let source = stage.files.put("first.csv", b"a,b\n0,x\n");
        let load = howdah("load").args(["--format", "csv", "--header", "--table", "s.t", "--to", &to]);
        load.args(["--ledger", "of others"]).arg(source).run(PATIENCE).expect_code(0);
        let ledger = "of others";
        stage.lacks("a,b\n1,x\n", ledger, "GRANT USAGE ON SCHEMA \"of others\" TO {role}");
        stage.lacks("a,b\n1,x\n", ledger, "GRANT SELECT, INSERT, UPDATE, DELETE ON \"of others\".migration, \
            \"of others\".job, \"of others\".file, \"of others\".chunk, \"of others\".chunk_part, \"of others\".step TO {role}");
        stage.load("a,b\n1,x\n", ledger).expect_code(0);
        assert_eq!(stage.database.value("SELECT count(*) FROM s.t"), "2", "PostgreSQL {major}");
        // Told before a row comes.
        stage.sql("REVOKE ALL ON \"of others\".step FROM {role}");
        let refused = stage.load("a,b\n1,other\n", ledger).expect_code(1).stderr;
        assert!(refused.contains("permission denied for table step"), "{refused}");
        assert_eq!(stage.database.value("SELECT count(*) FROM s.t"), "2", "PostgreSQL {major}");
    }
}

/// Whoever shares a ledger loads, checks and skips bad records there, and does not read those of others.
#[test]
fn the_grants_of_a_shared_ledger_show_no_rejected_records() {
    for major in [13, 18] {
        let stage = Stage::new(major);
        let (to, role) = (stage.database.conninfo(), stage.quoted_role());
        stage.sql(
            "GRANT CONNECT, TEMPORARY ON DATABASE {db} TO {role}; GRANT USAGE ON SCHEMA s TO {role}; \
             GRANT INSERT, SELECT ON s.t TO {role}; GRANT USAGE ON SEQUENCE s.t_k_seq TO {role}",
        );
        let bad = stage.files.put("first.csv", b"a,b\n1,x\ns3cret,y\n");
        let skip = ["--on-error", "skip", "--max-errors", "100%"];
        let load = howdah("load").args(["--format", "csv", "--header", "--table", "s.t", "--to", &to]);
        load.args(skip).arg(&bad).run(PATIENCE).expect_code(3);
        // What a load needs that makes tables there, twice: the schema hides its tables.
        for _ in 0..2 {
            let check = stage.verb("check").arg(&bad).run(PATIENCE);
            let hint = check.stderr.lines().find_map(|line| line.split_once(", its owner can run "));
            let Some((_, grants)) = hint else { break };
            stage.database.sql(grants.split("; or, only if").next().unwrap());
        }
        stage.verb("check").arg(&bad).run(PATIENCE).expect_code(3);
        let more = stage.files.put("second.csv", b"a,b\n3,x\nother,y\n");
        stage.verb("load").args(skip).arg(&more).run(PATIENCE).expect_code(3);
        let third = stage.files.put("third.csv", b"a,b\n5,x\nother,y\n");
        stage
            .verb("load")
            .args(skip)
            .args(["--job-id", "third", "--atomic"])
            .arg(&third)
            .run(PATIENCE)
            .expect_code(3);
        let mended = stage.files.put("mended.csv", b"a,b\n6,y\n");
        let reload = howdah("load").args(["--to", &stage.to(), "--rejects", "third"]);
        reload.arg(mended).run(PATIENCE).expect_code(0);
        let read = format!("SET ROLE {role}; SELECT bytes FROM howdah.reject");
        let denied = stage.database.try_rows(&read).unwrap_err();
        let denied = denied.as_db_error().map(|error| error.code().code().to_owned());
        assert_eq!(denied.as_deref(), Some("42501"), "PostgreSQL {major}");
        // What reads them says so before a row comes.
        let fourth = stage.files.put("fourth.csv", b"a,b\n7,x\nother,y\n");
        let kept = stage.files.path().join("kept.csv");
        let kept = ["--reject-file", kept.to_str().unwrap()];
        for (verb, more) in [("load", &kept[..]), ("check", &kept), ("load", &["--verify", "checksum"])] {
            let skip = if verb == "load" { &skip[..] } else { &[] };
            let refused =
                stage.verb(verb).args(skip).args(more).arg(&fourth).run(PATIENCE).expect_code(1).stderr;
            assert!(
                refused.contains("may not read the rejected records in \"howdah\".reject"),
                "{verb}: {refused}"
            );
            let grant = format!("GRANT SELECT ON \"howdah\".reject TO {role}");
            assert!(refused.contains(&grant), "{verb}: {refused}");
        }
        assert_eq!(stage.database.value("SELECT string_agg(a::text, ' ' ORDER BY a) FROM s.t"), "1 3 5 6");
        stage.sql("GRANT SELECT ON howdah.reject TO {role}");
        stage.verb("load").args(skip).args(kept).arg(&fourth).run(PATIENCE).expect_code(3);
    }
}

/// The role puts its tables where it may make none: COPY makes none.
#[test]
fn a_tablespace_in_which_the_role_may_make_nothing_gets_nothing() {
    for major in MAJORS {
        let stage = Stage::new(major);
        let space = format!("space_{}", stage.database.name());
        stage.sql("ALTER DATABASE {db} SET allow_in_place_tablespaces = on");
        stage.sql(&format!("CREATE TABLESPACE {space} LOCATION ''"));
        stage.sql(&format!(
            "GRANT CONNECT, CREATE, TEMPORARY ON DATABASE {{db}} TO {{role}}; GRANT USAGE ON SCHEMA s TO {{role}}; \
             DROP TABLE s.t; CREATE UNLOGGED TABLE s.t (a integer PRIMARY KEY, b text, k integer); \
             GRANT SELECT, INSERT, UPDATE ON s.t TO {{role}}; \
             ALTER ROLE {{role}} SET default_tablespace = {space}; ALTER ROLE {{role}} SET temp_tablespaces = {space}"
        ));
        stage.load("a,b\n1,x\n", "l").expect_code(0);
        let source = stage.files.put("more.csv", b"a,b\n2,y\n");
        let run = |verb: &str, arguments: &[&str]| {
            stage.verb(verb).args(arguments).args(["--ledger", "l"]).arg(&source).run(PATIENCE).expect_code(0)
        };
        run("check", &[]);
        run("load", &["--mode", "merge", "--key", "a"]);
        assert_eq!(stage.database.value("SELECT count(*) FROM s.t"), "2", "PostgreSQL {major}");
        let there = "SELECT count(*) FROM pg_class c JOIN pg_tablespace t ON t.oid = c.reltablespace WHERE t.spcname LIKE 'space%'";
        assert_eq!(stage.database.value(there), "0", "PostgreSQL {major}");
        stage.sql(&format!("GRANT CREATE ON TABLESPACE {space} TO {{role}}"));
        stage.load("a,b\n3,x\n", "other").expect_code(0);
        assert_ne!(stage.database.value(there), "0", "PostgreSQL {major}");
    }
}

#[test]
fn a_schema_that_is_there_and_takes_no_ledger_is_told_with_its_own_grant() {
    let stage = Stage::new(15);
    stage.sql(
        "GRANT CONNECT ON DATABASE {db} TO {role}; GRANT USAGE ON SCHEMA s TO {role}; CREATE SCHEMA l; \
         GRANT USAGE ON SCHEMA l TO {role}; GRANT INSERT ON s.t TO {role}; GRANT USAGE ON SEQUENCE s.t_k_seq TO {role}",
    );
    let told = stage.load("a,b\n1,x\n", "l").expect_code(1).stderr;
    assert!(told.contains("the ledger's tables in schema \"l\" cannot be created: "), "{told}");
    stage.lacks("a,b\n1,x\n", "l", "GRANT USAGE, CREATE ON SCHEMA \"l\" TO {role}");
    stage.load("a,b\n1,x\n", "l").expect_code(0);
}

/// What else is wrong is told behind the rights that are missing, not in their place.
#[test]
fn a_schema_that_is_no_ledger_hides_no_right_that_is_missing() {
    let stage = Stage::new(15);
    stage.sql(
        "GRANT CONNECT ON DATABASE {db} TO {role}; GRANT USAGE ON SCHEMA s TO {role}; CREATE SCHEMA howdah; \
         CREATE TABLE howdah.migration (id integer); GRANT USAGE ON SCHEMA howdah TO {role}; \
         GRANT SELECT ON howdah.migration TO {role}",
    );
    let source = stage.files.put("t.csv", b"a,b\n1,x\n");
    let told = stage.verb("check").arg(source).run(PATIENCE).expect_code(1).stderr;
    assert!(told.contains("it lacks INSERT, "), "{told}");
    assert!(told.contains("is not a complete ledger"), "{told}");
}

/// A closed ledger does not hide what is missing on the table.
#[test]
fn a_closed_ledger_is_told_with_the_rights_that_the_table_wants() {
    let stage = Stage::new(15);
    stage.sql("GRANT CONNECT ON DATABASE {db} TO {role}; GRANT USAGE ON SCHEMA s TO {role}");
    let source = stage.files.put("t.csv", b"a,b\n1,x\n");
    let load = howdah("load").args(["--format", "csv", "--header", "--table", "s.t"]);
    load.args(["--to", &stage.database.conninfo()]).arg(&source).run(PATIENCE).expect_code(0);
    let other = stage.files.put("other.csv", b"a,b\n2,x\n");
    let refused = |verb: &str, file: &str| stage.verb(verb).arg(file).run(PATIENCE).expect_code(1).stderr;
    for verb in ["plan", "load"] {
        for file in [&source, &other] {
            let told = refused(verb, file.to_str().unwrap());
            let all = [
                "it lacks INSERT, ",
                "the ledger in schema \"howdah\" may not be used",
                "GRANT INSERT ON \"s\".\"t\"",
            ];
            assert!(all.iter().all(|part| told.contains(part)), "{verb}: {told}");
        }
    }
    stage.sql("GRANT INSERT ON s.t TO {role}; GRANT USAGE ON SEQUENCE s.t_k_seq TO {role}");
    for verb in ["plan", "load"] {
        let told = refused(verb, source.to_str().unwrap());
        assert!(told.contains("the ledger in schema \"howdah\" may not be used"), "{verb}: {told}");
    }
    assert_eq!(stage.database.value("SELECT count(*) FROM s.t"), "1");
}

/// Whoever owns a ledger can have code run by whoever uses it: said where that role has no say over the table
/// anyway.
#[test]
fn the_ledger_of_a_role_without_a_say_over_the_table_is_told() {
    for major in [13, 15, 18] {
        let stage = Stage::new(major);
        let other = format!("other_{}", stage.database.name());
        stage.sql(&format!(
            "CREATE ROLE {other} LOGIN; GRANT CONNECT, CREATE ON DATABASE {{db}} TO {other}; \
             GRANT CONNECT ON DATABASE {{db}} TO {{role}}; GRANT USAGE ON SCHEMA s TO {{role}}, {other}; \
             GRANT INSERT ON s.t TO {{role}}, {other}; GRANT USAGE ON SEQUENCE s.t_k_seq TO {{role}}, {other}"
        ));
        let as_user = |user: &str, number: u32| {
            let to = stage.database.conninfo().replace("user=postgres", &format!("user='{user}'"));
            let source = stage.files.put(&format!("{number}.csv"), format!("a,b\n{number},x\n").as_bytes());
            let load = howdah("load").args(["--format", "csv", "--header", "--table", "s.t", "--to", &to]);
            load.arg(source).run(PATIENCE).expect_code(0).stderr
        };
        let told = format!("the ledger in schema \"howdah\" belongs to \"{other}\"");
        assert!(!as_user(&other, 1).contains(&told), "its own");
        stage.sql(
            "GRANT USAGE ON SCHEMA howdah TO {role}; \
             GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA howdah TO {role}",
        );
        for (user, number) in [(stage.role.as_str(), 2), ("postgres", 3)] {
            let stderr = as_user(user, number);
            assert!(stderr.contains(&told), "PostgreSQL {major}, {user}: {stderr}");
        }
        stage.sql(&format!("GRANT {other} TO {{role}}"));
        // The owner could have done that, or had it done.
        assert!(as_user(&stage.role, 4).contains(&told), "PostgreSQL {major}, a member of a login");
        stage.sql(&format!("ALTER ROLE {other} NOLOGIN"));
        assert!(!as_user(&stage.role, 5).contains(&told), "PostgreSQL {major}, a member");
        stage.sql(&format!("REVOKE {other} FROM {{role}}; GRANT {{role}} TO {other}"));
        assert!(!as_user(&stage.role, 6).contains(&told), "PostgreSQL {major}, its own member");
        stage.sql(&format!("REVOKE {{role}} FROM {other}; ALTER TABLE s.t OWNER TO {other}"));
        assert!(!as_user(&stage.role, 7).contains(&told), "PostgreSQL {major}, the owner of the table");
        stage.sql(&format!("ALTER TABLE s.t OWNER TO postgres; ALTER DATABASE {{db}} OWNER TO {other}"));
        assert!(!as_user(&stage.role, 8).contains(&told), "PostgreSQL {major}, the owner of the database");
        // Foreign keys are looked at as the owner of the tables.
        stage.sql(&format!(
            "ALTER DATABASE {{db}} OWNER TO postgres; ALTER SCHEMA howdah OWNER TO postgres; GRANT USAGE ON SCHEMA howdah TO {other}"
        ));
        assert!(as_user(&stage.role, 9).contains(&told), "PostgreSQL {major}, its tables");
        assert_eq!(stage.database.value("SELECT count(*) FROM s.t"), "9", "PostgreSQL {major}");
    }
}

/// What its journal says is run with the rights of whoever restores, if it is a superuser.
#[test]
fn the_ledger_of_another_role_is_restored_from_where_it_is_named() {
    for major in [15, 18] {
        let stage = Stage::new(major);
        let other = format!("other_{}", stage.database.name());
        stage.sql(&format!(
            "CREATE ROLE {other} LOGIN; GRANT CONNECT, CREATE ON DATABASE {{db}} TO {other}; \
             GRANT CONNECT ON DATABASE {{db}} TO {{role}}; GRANT USAGE ON SCHEMA s TO {other}; ALTER TABLE s.t OWNER TO {other}"
        ));
        let of = |user: &str| stage.database.conninfo().replace("user=postgres", &format!("user='{user}'"));
        let source = stage.files.put("t.csv", b"a,b\n1,x\n");
        let load =
            howdah("load").args(["--format", "csv", "--header", "--table", "s.t", "--to", &of(&other)]);
        load.arg(source).run(PATIENCE).expect_code(0);
        stage.sql(
            "GRANT USAGE ON SCHEMA howdah TO {role}; GRANT SELECT ON ALL TABLES IN SCHEMA howdah TO {role}",
        );
        let restore = |user: &str| howdah("restore").args(["--to", &of(user)]);
        restore(&other).run(PATIENCE).expect_code(0);
        for user in ["postgres", &stage.role] {
            let told = restore(user).run(PATIENCE).expect_code(1).stderr;
            let belongs = format!("the ledger in schema \"howdah\" belongs to \"{other}\", ");
            let hint = "hint: give the --ledger of the load; if that was this one and you trust its owner, add --ledger howdah\n";
            assert!(told.contains(&belongs) && told.contains(hint), "PostgreSQL {major}, {user}: {told}");
            restore(user).args(["--ledger", "howdah"]).run(PATIENCE).expect_code(0);
        }
        stage.sql(&format!("ALTER ROLE {other} NOLOGIN; GRANT {other} TO {{role}}"));
        restore(&stage.role).run(PATIENCE).expect_code(0);
        restore("postgres").run(PATIENCE).expect_code(1);
        stage.sql(&format!("ALTER DATABASE {{db}} OWNER TO {other}"));
        restore("postgres").run(PATIENCE).expect_code(0);
    }
}

/// What a check makes it must be able to take away: that is asked before it makes anything.
#[test]
fn a_check_that_could_not_take_away_what_it_makes_makes_nothing() {
    let stage = Stage::new(15);
    stage.sql(
        "GRANT CONNECT ON DATABASE {db} TO {role}; GRANT USAGE ON SCHEMA s TO {role}; \
         GRANT INSERT, SELECT ON s.t TO {role}; GRANT USAGE ON SEQUENCE s.t_k_seq TO {role}",
    );
    let to = stage.database.conninfo();
    let source = stage.files.put("first.csv", b"a,b\n0,x\n");
    let load = howdah("load").args(["--format", "csv", "--header", "--table", "s.t", "--to", &to]);
    load.arg(&source).run(PATIENCE).expect_code(0);
    stage.sql("GRANT USAGE ON SCHEMA howdah TO {role}");
    stage.sql("GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA howdah TO {role}");
    stage.verb("load").arg(stage.files.put("second.csv", b"a,b\n1,x\n")).run(PATIENCE).expect_code(0);
    let refused = stage.verb("check").arg(&source).run(PATIENCE).expect_code(1).stderr;
    let (_, grants) = refused.lines().find_map(|line| line.split_once(", its owner can run ")).unwrap();
    let jobs = "SELECT count(*) || ' ' || count(*) FILTER (WHERE status = 'running') FROM howdah.job";
    assert_eq!(stage.database.value(jobs), "2 0", "{refused}");
    stage.database.sql(grants.split("; or, only if").next().unwrap());
    stage.verb("check").arg(&source).run(PATIENCE).expect_code(0);
}

#[test]
fn a_server_that_takes_no_rows_is_refused_at_once_with_the_way_out() {
    let files = Files::new();
    let source = files.put("a.csv", b"id\n1\n");
    let database = Server::shared(18).database();
    let name = database.name();
    database.sql(&format!(
        "CREATE TABLE a (id int); ALTER DATABASE \"{name}\" SET default_transaction_read_only TO on"
    ));
    let to = database.conninfo();
    for verb in ["load", "check"] {
        let refused = howdah(verb).args(["--to", &to]).arg(&source).run(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains("are read-only (default_transaction_read_only is on"), "{verb}\n{refused}");
        assert!(refused.contains("-c default_transaction_read_only=off"), "{verb}\n{refused}");
        assert!(!refused.contains("trying again") && !refused.contains("SQLSTATE"), "{verb}\n{refused}");
    }
    howdah("plan").args(["--to", &to]).arg(&source).run(PATIENCE).expect_code(0);
    let off = format!("{to} options='-c default_transaction_read_only=off'");
    howdah("load").args(["--to", &off, "--ledger", "none"]).arg(&source).run(PATIENCE).expect_code(0);
    // Of several hosts another one may become the primary.
    let several = to.replace("host=127.0.0.1", "host=127.0.0.1,127.0.0.1");
    let load = howdah("load").args(["--to", &several, "--retry-for", "1s"]).arg(&source);
    let waited = load.run(PATIENCE).expect_code(1).stderr;
    let hint = "hint: no host of the list takes writes";
    assert!(waited.contains("trying again in") && waited.contains(hint), "{waited}");
}

#[test]
fn a_hot_standby_is_refused_at_once() {
    let options = ServerOptions::default().replicated();
    let primary = Server::private(15, &options);
    let database = primary.database();
    database.sql("CREATE TABLE a (id int)");
    let standby = primary.standby(&options);
    let files = Files::new();
    let to = format!("{} dbname={}", standby.conninfo(), database.name());
    let load = howdah("load").args(["--to", &to, "--table", "a"]).arg(files.put("a.csv", b"id\n1\n"));
    let refused = load.run(PATIENCE).expect_code(1).stderr;
    assert!(refused.contains("is a hot standby and takes no rows"), "{refused}");
    assert!(!refused.contains("trying again"), "{refused}");
    // Before anything is planned, which needs the table.
    for verb in ["load", "plan", "check"] {
        let command = howdah(verb).args(["--to", &to, "--table", "missing"]).arg(files.path().join("a.csv"));
        let refused = command.run(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains("is a hot standby and takes no rows"), "{verb}: {refused}");
        assert!(refused.contains("hint: name the server that takes writes"), "{verb}: {refused}");
    }
    let restore = howdah("restore").args(["--to", &to]).run(PATIENCE).expect_code(1).stderr;
    assert!(
        restore.contains("is a hot standby and takes no rows") && !restore.contains("again"),
        "{restore}"
    );
    // Of several hosts the primary is looked for, wherever it stands.
    let port = |server: &Server| {
        server.conninfo().split_once("port=").unwrap().1.split(' ').next().unwrap().to_owned()
    };
    let both = to.replace(&port(&standby), &format!("{},{}", port(&standby), port(&primary)));
    let both = both.replace("host=127.0.0.1", "host=127.0.0.1,127.0.0.1");
    let load = howdah("load").args(["--to", &both, "--table", "a"]).arg(files.put("a.csv", b"id\n1\n"));
    let told = load.run(PATIENCE).expect_code(0).stderr;
    assert!(!told.contains("trying again"), "{told}");
    assert_eq!(database.value("SELECT count(*) FROM a"), "1");
    // Unless a standby is asked for, which never takes a row.
    let asked_for = [
        ("prefer-standby", 1, "is a hot standby and takes no rows"),
        ("standby", 2, "target_session_attrs=standby asks for a server that takes no rows"),
        ("read-only", 2, "target_session_attrs=read-only asks for a server that takes no rows"),
    ];
    for (attrs, code, words) in asked_for {
        let to = format!("{both} target_session_attrs={attrs}");
        let load = howdah("load").args(["--to", &to, "--table", "a"]).arg(files.put("b.csv", b"id\n2\n"));
        let refused = load.run(PATIENCE).expect_code(code).stderr;
        assert!(refused.contains(words) && !refused.contains("trying again"), "{attrs}: {refused}");
        assert!(
            refused.contains("hint: rows come into the primary alone: give target_session_attrs=read-write"),
            "{refused}"
        );
    }
    let restore = howdah("restore").args(["--to", &format!("{both} target_session_attrs=prefer-standby")]);
    let refused = restore.run(PATIENCE).expect_code(1).stderr;
    assert!(
        refused.contains("give target_session_attrs=read-write") && !refused.contains("again"),
        "{refused}"
    );
    // Where none is there, the primary will do.
    let no_standby = both.replace(&format!("port={}", port(&standby)), "port=1");
    let to = format!("{no_standby} target_session_attrs=prefer-standby");
    let load = howdah("load").args(["--to", &to, "--table", "a"]).arg(files.put("b.csv", b"id\n2\n"));
    load.run(PATIENCE).expect_code(0);
    primary.stop_fast();
    let plan = howdah("plan").args(["--to", &both, "--table", "a"]).arg(files.put("a.csv", b"id\n1\n"));
    plan.run(PATIENCE).expect_code(0);
}

#[test]
fn a_role_that_may_have_too_few_sessions_is_told_at_once() {
    let stage = Stage::new(15);
    stage.sql("GRANT CONNECT, CREATE ON DATABASE {db} TO {role}; GRANT USAGE ON SCHEMA s TO {role}; GRANT INSERT ON s.t TO {role}; GRANT USAGE ON SEQUENCE s.t_k_seq TO {role}; ALTER ROLE {role} CONNECTION LIMIT 1");
    let told = stage.load("a,b\n1,x\n", "ledger").expect_code(1).stderr;
    let role = stage.quoted_role();
    assert!(told.contains(&format!("the CONNECTION LIMIT of ROLE {role} is 1")), "{told}");
    assert!(told.contains(&format!("hint: ALTER ROLE {role} CONNECTION LIMIT 3")), "{told}");
    stage.sql("ALTER ROLE {role} CONNECTION LIMIT 2; ALTER DATABASE {db} CONNECTION LIMIT 1");
    let told = stage.load("a,b\n1,x\n", "ledger").expect_code(1).stderr;
    assert!(told.contains("the CONNECTION LIMIT of DATABASE"), "{told}");
    stage.sql("ALTER DATABASE {db} CONNECTION LIMIT 2");
    let load = stage.verb("load").args(["--ledger", "ledger", "--jobs", "1"]);
    load.arg(stage.files.put("t.csv", b"a,b\n1,x\n")).run(PATIENCE).expect_code(0);
    stage.sql("ALTER ROLE {role} SET default_transaction_read_only = on");
    let told = stage.load("a,b\n2,y\n", "ledger").expect_code(1).stderr;
    assert!(told.contains("hint: options='-c default_transaction_read_only=off'"), "{told}");
    let to = format!("{} options='-c default_transaction_read_only=off'", stage.to());
    let load = howdah("load").args([
        "--format", "csv", "--header", "--table", "s.t", "--to", &to, "--ledger", "ledger", "--jobs", "1",
    ]);
    load.arg(stage.files.put("t.csv", b"a,b\n2,y\n")).run(PATIENCE).expect_code(0);
}

/// Before a row is read, and by a check and a plan as well.
#[test]
fn rights_that_a_mode_needs_are_asked_beforehand() {
    for major in MAJORS {
        let stage = Stage::new(major);
        stage.sql(
            "GRANT CONNECT, CREATE, TEMPORARY ON DATABASE {db} TO {role}; GRANT USAGE ON SCHEMA s TO {role}; \
             ALTER TABLE s.t ADD UNIQUE (a); GRANT INSERT ON s.t TO {role}; GRANT USAGE ON SEQUENCE s.t_k_seq TO {role}",
        );
        let source = stage.files.put("t.csv", b"a,b\n1,x\n2,y\n");
        let merge = ["--mode", "merge", "--key", "a", "--delete-missing"];
        let refused = |verb: &str, options: &[&str], grant: &str| {
            let told = stage.verb(verb).args(options).arg(&source).run(PATIENCE).expect_code(1).stderr;
            let grant = grant.replace("{role}", &stage.quoted_role());
            assert!(told.contains(&grant), "PostgreSQL {major}, {verb} {options:?}: {grant}\n{told}");
        };
        let all = "hint: the owner can run GRANT SELECT (\"a\", \"b\") ON \"s\".\"t\" TO {role}; \
                   GRANT UPDATE (\"b\") ON \"s\".\"t\" TO {role}; GRANT DELETE ON \"s\".\"t\" TO {role}";
        for verb in ["load", "plan", "check"] {
            refused(verb, &merge, all);
            refused(
                verb,
                &["--mode", "insert-new", "--key", "a"],
                "GRANT SELECT (\"a\") ON \"s\".\"t\" TO {role}",
            );
        }
        stage.sql("GRANT SELECT (a) ON s.t TO {role}");
        refused("load", &merge, "GRANT SELECT (\"b\") ON \"s\".\"t\" TO {role}");
        stage
            .verb("load")
            .args(["--mode", "insert-new", "--key", "a"])
            .arg(&source)
            .run(PATIENCE)
            .expect_code(0);
        stage.sql("GRANT SELECT (b), UPDATE (b) ON s.t TO {role}");
        stage.verb("load").args(["--mode", "merge", "--key", "a"]).arg(&source).run(PATIENCE).expect_code(0);
        stage.sql("GRANT DELETE ON s.t TO {role}");
        stage.verb("load").args(merge).arg(&source).run(PATIENCE).expect_code(0);
    }
}
