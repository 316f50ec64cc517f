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

    fn quoted_role(&self) -> String {
        format!("\"{}\"", self.role.replace('"', "\"\""))
    }

    /// `{db}` and `{role}` are put in, quoted.
    pub(crate) fn sql(&self, sql: &str) {
        let db = format!("\"{}\"", self.database.name());
        self.database.sql(&sql.replace("{db}", &db).replace("{role}", &self.quoted_role()));
    }

    /// A verb with the table and its server, as the role.
    pub(crate) fn verb(&self, verb: &str) -> HowdahCommand {
        let user = format!("user='{}'", self.role);
        let to = self.database.conninfo().replace("user=postgres", &user);
        howdah(verb).args(["--format", "csv", "--header", "--table", "s.t", "--to", &to])
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
        stage.lacks(csv, ledger, "GRANT USAGE ON SCHEMA \"s\" TO {role}");
        // Both at once: nobody likes to be sent twice.
        let finished = stage.load(csv, ledger).expect_code(1);
        assert!(
            finished.stderr.contains("it lacks INSERT, USAGE on sequence s.t_k_seq"),
            "{}",
            finished.stderr
        );
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
        let grant = "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA \"of others\" TO {role}";
        stage.lacks("a,b\n1,x\n", ledger, grant);
        stage.load("a,b\n1,x\n", ledger).expect_code(0);
        assert_eq!(stage.database.value("SELECT count(*) FROM s.t"), "2", "PostgreSQL {major}");
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
    let hint = refused.lines().find_map(|line| line.strip_prefix("hint: its owner can run ")).unwrap();
    let jobs = "SELECT count(*) || ' ' || count(*) FILTER (WHERE status = 'running') FROM howdah.job";
    assert_eq!(stage.database.value(jobs), "2 0", "{refused}");
    stage.database.sql(hint.split("; or name").next().unwrap());
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
        assert!(refused.contains("target_session_attrs=read-write"), "{verb}\n{refused}");
        assert!(!refused.contains("trying again") && !refused.contains("SQLSTATE"), "{verb}\n{refused}");
    }
    howdah("plan").args(["--to", &to]).arg(&source).run(PATIENCE).expect_code(0);
    // Of several hosts another one may become the primary.
    let several = to.replace("host=127.0.0.1", "host=127.0.0.1,127.0.0.1");
    let load = howdah("load").args(["--to", &several, "--retry-for", "1s"]).arg(&source);
    let waited = load.run(PATIENCE).expect_code(1).stderr;
    assert!(waited.contains("trying again in") && waited.contains("25006"), "{waited}");
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
}
