//! What other roles have written into a ledger, or passed off as one, is not run with the rights of whoever
//! runs a load.

use crate::scene::{Files, PATIENCE, howdah};
use howdah_testkit::{Database, Finished, HowdahCommand, MAJORS, Running, Server};
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

/// A database with the tables `t` and `other_t` of a superuser, and a role that may make schemas.
pub(crate) struct Stage {
    pub(crate) database: Database,
    pub(crate) stranger: String,
    pub(crate) files: Files,
}

impl Stage {
    pub(crate) fn new(major: u32) -> Stage {
        let database = Server::shared(major).database();
        let stranger = format!("stranger_{}", database.name());
        database.sql(&format!(
            "CREATE ROLE {stranger} LOGIN; GRANT CREATE ON DATABASE {} TO {stranger}; \
             CREATE SCHEMA of_stranger AUTHORIZATION {stranger}; \
             CREATE TABLE t (a integer, b text); CREATE TABLE other_t (a integer PRIMARY KEY, b text); \
             GRANT INSERT ON t TO {stranger}",
            database.name()
        ));
        Stage { database, stranger, files: Files::new() }
    }

    pub(crate) fn as_stranger(&self, sql: &str) {
        self.database.sql(&format!("SET ROLE {}; {sql}; RESET ROLE", self.stranger));
    }

    pub(crate) fn verb(&self, verb: &str, user: &str) -> HowdahCommand {
        let to = self.database.conninfo().replace("user=postgres", &format!("user={user}"));
        howdah(verb).args(["--to", &to])
    }

    fn file(&self, number: u32) -> PathBuf {
        self.files.put(&format!("{number}.csv"), format!("a,b\n{number},x\n").as_bytes())
    }

    pub(crate) fn load_as(&self, user: &str, number: u32, options: &[&str]) -> Finished {
        let load = self.verb("load", user).args(["--format", "csv", "--header", "--table", "t"]);
        load.args(options).arg(self.file(number)).run(PATIENCE)
    }

    fn load(&self, number: u32, options: &[&str]) -> Finished {
        self.load_as("postgres", number, options)
    }

    /// A role that loads by the grants of a superuser, with more rights than it needs.
    pub(crate) fn share_ledger(&self) {
        self.load(1, &[]).expect_code(0);
        self.grant_ledger();
    }

    pub(crate) fn grant_ledger(&self) {
        self.database.sql(&format!(
            "GRANT USAGE ON SCHEMA howdah TO {0}; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA howdah TO {0}",
            self.stranger
        ));
    }

    /// The grants stay, and reach nobody.
    pub(crate) fn shut_ledger(&self) {
        self.database.sql(&format!("REVOKE ALL ON SCHEMA howdah FROM {}", self.stranger));
    }

    /// A check that has begun, and goes on until its pipe is closed.
    pub(crate) fn begin_check(&self) -> (Running, File) {
        let pipe = self.files.path().join("pipe");
        let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let check = self.verb("check", "postgres").args(["--table", "t", "--format", "csv"]);
        let mut running = check.args(["--chunk-size", "64kB"]).arg(&pipe).spawn();
        let mut pipe = File::options().write(true).open(&pipe).unwrap();
        pipe.write_all("1,x\n".repeat(500_000).as_bytes()).unwrap();
        let begun = "SELECT count(*) FROM howdah.job WHERE status <> 'done'";
        assert!(self.database.wait_for(begun, 1, || running.is_running()), "{}", running.stderr_so_far());
        (running, pipe)
    }

    #[track_caller]
    fn expect_nothing_called(&self, what: &str) {
        let called = self.database.value("SELECT count(*) FROM public.called");
        assert_eq!(called, "0", "{what}");
        let is_superuser =
            format!("SELECT rolsuper OR rolcreatedb FROM pg_roles WHERE rolname = '{}'", self.stranger);
        assert_eq!(self.database.value(&is_superuser), "f", "{what}");
    }

    /// Functions that note who has called them, if it is anybody else.
    fn make_functions(&self) {
        self.database.sql("CREATE TABLE public.called (by text); GRANT INSERT ON public.called TO PUBLIC");
        let note = format!(
            "IF current_user <> '{}' THEN INSERT INTO public.called VALUES (current_user); END IF;",
            self.stranger
        );
        for (name, arguments, result, kind, end) in [
            ("fired", "", "trigger", "VOLATILE", "RETURN NEW"),
            ("number", "", "integer", "VOLATILE", "RETURN 1"),
            ("seen", "", "boolean", "VOLATILE", "RETURN true"),
            ("folded", "integer", "boolean", "IMMUTABLE", "RETURN true"),
        ] {
            // What is called while a statement is planned may be read-only.
            self.as_stranger(&format!(
                "CREATE FUNCTION of_stranger.{name}({arguments}) RETURNS {result} LANGUAGE plpgsql {kind} AS \
                 $f$ BEGIN {note} {end}; END $f$"
            ));
        }
        self.as_stranger("GRANT USAGE ON SCHEMA of_stranger TO PUBLIC");
    }
}

/// Before a row of it is read, by whichever verb.
#[test]
fn a_view_that_looks_like_a_ledger_is_not_read() {
    for major in MAJORS {
        let stage = Stage::new(major);
        stage.make_functions();
        stage.as_stranger(
            "CREATE SCHEMA howdah; CREATE VIEW howdah.migration AS SELECT of_stranger.number() + 14 AS version; \
             GRANT USAGE ON SCHEMA howdah TO PUBLIC; GRANT SELECT ON ALL TABLES IN SCHEMA howdah TO PUBLIC",
        );
        for verb in ["status", "resume", "restore", "plan", "check", "load"] {
            let command = stage.verb(verb, "postgres");
            let command = match verb {
                "status" => command,
                "resume" => command.args(["job", "--ledger", "howdah"]),
                "restore" => command.args(["--ledger", "howdah"]),
                _ => command.args(["--table", "t"]).arg(stage.file(1)),
            };
            let told = command.run(PATIENCE).expect_code(1).stderr;
            let what = format!("they are: \"migration\", of \"{}\", is no table", stage.stranger);
            assert!(told.contains(&what), "PostgreSQL {major}, {verb}: {told}");
            stage.expect_nothing_called(&format!("PostgreSQL {major}, {verb}"));
        }
    }
}

/// Tables of another role are read and written where they are what howdah makes, and not where more comes
/// with them.
#[test]
fn code_that_comes_with_the_tables_of_another_role_is_not_called() {
    for major in [13, 15, 18] {
        let stage = Stage::new(major);
        stage.make_functions();
        stage.load_as(&stage.stranger, 1, &[]).expect_code(0);
        stage.as_stranger(
            "GRANT USAGE ON SCHEMA howdah TO PUBLIC; \
             GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA howdah TO PUBLIC",
        );
        let plain = stage.load(2, &[]).expect_code(0).stderr;
        assert!(plain.contains("the ledger in schema \"howdah\" belongs to"), "PostgreSQL {major}: {plain}");
        for (number, (make, unmake, what)) in (3..).zip([
            (
                "CREATE TRIGGER fire BEFORE INSERT ON howdah.job FOR EACH ROW EXECUTE FUNCTION of_stranger.fired()",
                "DROP TRIGGER fire ON howdah.job",
                "has a trigger",
            ),
            (
                "CREATE RULE tell AS ON INSERT TO howdah.chunk DO ALSO SELECT of_stranger.number()",
                "DROP RULE tell ON howdah.chunk",
                "has a rule",
            ),
            (
                "CREATE POLICY see ON howdah.job USING (of_stranger.seen()); ALTER TABLE howdah.job ENABLE ROW LEVEL SECURITY",
                "DROP POLICY see ON howdah.job; ALTER TABLE howdah.job DISABLE ROW LEVEL SECURITY",
                "has row-level security",
            ),
            (
                "ALTER TABLE howdah.job ALTER COLUMN runs SET DEFAULT of_stranger.number()",
                "ALTER TABLE howdah.job ALTER COLUMN runs SET DEFAULT 1",
                "has a default of its own",
            ),
            (
                // A function of the server that runs whatever it is given.
                "ALTER TABLE howdah.job ALTER COLUMN verified \
                 SET DEFAULT left(query_to_xml('SELECT of_stranger.number()', false, false, '')::text, 0)",
                "ALTER TABLE howdah.job ALTER COLUMN verified DROP DEFAULT",
                "has a default of its own",
            ),
            (
                "ALTER TABLE howdah.file ADD CONSTRAINT own CHECK (of_stranger.folded(file_no))",
                "ALTER TABLE howdah.file DROP CONSTRAINT own",
                "has a check of its own",
            ),
            (
                "CREATE INDEX own ON howdah.job (job_id) WHERE of_stranger.folded(1)",
                "DROP INDEX howdah.own",
                "has an index of its own",
            ),
            (
                "ALTER TABLE howdah.tuned ALTER COLUMN name TYPE varchar",
                "ALTER TABLE howdah.tuned ALTER COLUMN name TYPE text",
                "has a column of another type",
            ),
            (
                "CREATE TABLE howdah.child () INHERITS (howdah.undo)",
                "DROP TABLE howdah.child",
                "inherits",
            ),
        ]) {
            stage.as_stranger(make);
            for told in [
                stage.verb("status", "postgres").run(PATIENCE).expect_code(1).stderr,
                stage.load(number, &[]).expect_code(1).stderr,
            ] {
                assert!(told.contains(what), "PostgreSQL {major}, {make}: {told}");
            }
            stage.expect_nothing_called(make);
            stage.as_stranger(unmake);
        }
        stage.load(100, &[]).expect_code(0);
    }
}

/// Others may put triggers on the tables of a superuser, where that was granted.
#[test]
fn triggers_of_others_on_the_tables_of_a_ledger_do_not_fire() {
    let stage = Stage::new(15);
    stage.make_functions();
    stage.share_ledger();
    stage.database.sql(&format!("GRANT TRIGGER ON ALL TABLES IN SCHEMA howdah TO {}", stage.stranger));
    stage.load(2, &[]).expect_code(0);
    stage.as_stranger(
        "CREATE TRIGGER fire BEFORE INSERT ON howdah.job FOR EACH ROW EXECUTE FUNCTION of_stranger.fired()",
    );
    let told = stage.load(3, &[]).expect_code(1).stderr;
    assert!(told.contains("\"job\", of \"postgres\", has a trigger"), "{told}");
    stage.expect_nothing_called("the trigger of another role");
}

/// When a row goes that it refers to, a trigger of the referring table runs; older servers run it with the
/// rights of whoever deletes.
#[test]
fn a_foreign_key_of_others_on_the_tables_of_a_ledger_has_no_code_run() {
    for major in [13, 15, 18] {
        let stage = Stage::new(major);
        stage.make_functions();
        stage.load(1, &[]).expect_code(0);
        stage.database.sql(&format!(
            "GRANT USAGE ON SCHEMA howdah TO {0}; GRANT SELECT, REFERENCES ON ALL TABLES IN SCHEMA howdah TO {0}",
            stage.stranger
        ));
        let refer = "CREATE TABLE of_stranger.refers (job_id text REFERENCES howdah.job ON DELETE CASCADE ON UPDATE CASCADE); \
                     CREATE TRIGGER fire AFTER DELETE OR UPDATE ON of_stranger.refers \
                         FOR EACH ROW EXECUTE FUNCTION of_stranger.fired()";
        let what = "\"job\", of \"postgres\", is what a foreign key of of_stranger.refers refers to";
        // While a check is at work, which deletes its job in the end.
        let (running, pipe) = stage.begin_check();
        stage.as_stranger(refer);
        stage.as_stranger(
            "INSERT INTO of_stranger.refers SELECT job_id FROM howdah.job WHERE status <> 'done'",
        );
        assert_eq!(
            stage.database.value("SELECT count(*) FROM of_stranger.refers"),
            "1",
            "PostgreSQL {major}"
        );
        drop(pipe);
        let told = running.wait(PATIENCE).expect_code(1).stderr;
        assert!(told.contains(what), "PostgreSQL {major}: {told}");
        stage.expect_nothing_called(&format!("PostgreSQL {major}, at the end of a check"));
        // What that has left is not cleared away either.
        for told in [
            stage.verb("status", "postgres").run(PATIENCE).expect_code(1).stderr,
            stage.load(2, &[]).expect_code(1).stderr,
            stage
                .verb("restore", "postgres")
                .args(["--ledger", "howdah"])
                .run(PATIENCE)
                .expect_code(1)
                .stderr,
        ] {
            assert!(told.contains(what) && told.contains("DROP CONSTRAINT"), "PostgreSQL {major}: {told}");
        }
        stage.expect_nothing_called(&format!("PostgreSQL {major}"));
        stage.database.sql("DROP TABLE of_stranger.refers");
        let told = stage.load(2, &[]).expect_code(0).stderr;
        assert!(told.contains("may have written that it is a check"), "PostgreSQL {major}: {told}");
        stage
            .database
            .sql(&format!("REVOKE REFERENCES ON ALL TABLES IN SCHEMA howdah FROM {}", stage.stranger));
        stage.load(3, &[]).expect_code(0);
        let left = stage.database.value("SELECT count(*) FROM howdah.job WHERE status <> 'done'");
        assert_eq!(left, "0", "PostgreSQL {major}");
    }
}

/// What would make the stranger a superuser, if a superuser ran it.
fn grab(stage: &Stage) -> String {
    format!("ARRAY['ALTER ROLE {} SUPERUSER']", stage.stranger)
}

impl Stage {
    /// An entry of this job that puts back a trigger of a table of the stranger.
    fn forge_trigger(&self, job_id: &str) {
        self.forge(job_id, "trigger", "of_stranger", "own", "CREATE TRIGGER");
    }

    fn forge(&self, job_id: &str, kind: &str, schema: &str, table: &str, definition: &str) {
        self.as_stranger(&format!(
            "INSERT INTO howdah.undo (job_id, kind, schema_name, table_name, table_oid, name, definition, statements, ledger_oid) \
             SELECT '{job_id}', '{kind}', '{schema}', '{table}', '{schema}.{table}'::regclass, 'fire', '{definition}', {}, \
                    'howdah.undo'::regclass",
            grab(self)
        ));
    }

    fn make_disabled_trigger(&self) {
        self.as_stranger(
            "CREATE TABLE of_stranger.own (a integer); \
             CREATE TRIGGER fire BEFORE INSERT ON of_stranger.own FOR EACH ROW EXECUTE FUNCTION of_stranger.fired(); \
             ALTER TABLE of_stranger.own DISABLE TRIGGER fire",
        );
    }
}

/// Whoever may write the journal, by being granted that or as the owner of the ledger.
#[test]
fn a_load_does_not_run_what_others_may_have_written_into_the_journal() {
    for major in [13, 15, 18] {
        for owns in [false, true] {
            let stage = Stage::new(major);
            stage.make_functions();
            stage.make_disabled_trigger();
            match owns {
                true => {
                    stage.load_as(&stage.stranger, 1, &[]).expect_code(0);
                }
                false => stage.share_ledger(),
            }
            let whose = format!("PostgreSQL {major}, owned: {owns}");
            stage.database.sql("CREATE INDEX t_a ON t (a)");
            stage.forge_trigger("forged");
            stage.forge_trigger("nightly");
            let told = stage.load(2, &[]).expect_code(0).stderr;
            let what =
                format!("\"{}\" may write the journal of the ledger in schema \"howdah\"", stage.stranger);
            assert_eq!(told.matches(&what).count(), 1, "{whose}: {told}");
            assert!(told.contains("`howdah restore forged --to "), "{whose}: {told}");
            assert!(told.contains(" --ledger howdah` puts it back"), "{whose}: {told}");
            stage.expect_nothing_called(&whose);
            // Nor of the load's own job, whose rows do not come while that may be missing.
            let refused = stage.load(3, &["--job-id", "nightly"]).expect_code(1).stderr;
            assert!(
                refused.contains("has changed the trigger fire of of_stranger.own and not"),
                "{whose}: {refused}"
            );
            assert_eq!(stage.database.value("SELECT count(*) FROM t WHERE a = 3"), "0", "{whose}: {refused}");
            stage.expect_nothing_called(&whose);
            stage.database.sql("UPDATE howdah.undo SET undone_at = now() WHERE job_id = 'nightly'");
            // What it has dropped itself it builds again.
            let own = stage.load(3, &["--job-id", "nightly", "--indexes", "rebuild"]).expect_code(0).stderr;
            assert!(own.contains("dropped from public.t"), "{whose}: {own}");
            assert_eq!(stage.database.value("SELECT to_regclass('t_a') IS NOT NULL"), "t", "{whose}: {own}");
            stage.expect_nothing_called(&whose);
            // A job that is done.
            stage.load(3, &["--job-id", "nightly", "--indexes", "rebuild"]).expect_code(1);
            stage.expect_nothing_called(&whose);
            // What a load needs to tell bad rows is missed, and not made up for.
            stage.forge("needed", "constraint", "public", "other_t", "PRIMARY KEY (a)");
            let skip = stage.verb("load", "postgres").args(["--table", "other_t", "--on-error", "skip"]);
            let refused = skip.arg(stage.file(4)).run(PATIENCE).expect_code(1).stderr;
            assert!(refused.contains(&what) && refused.contains("by job needed"), "{whose}: {refused}");
            stage.expect_nothing_called(&whose);
            let refused = stage.verb("restore", "postgres").run(PATIENCE).expect_code(1).stderr;
            let by = if owns { "belongs to" } else { "may be written by" };
            assert!(refused.contains(&format!("{by} \"{}\"", stage.stranger)), "{whose}: {refused}");
            assert!(refused.contains("add --ledger howdah"), "{whose}: {refused}");
            stage.expect_nothing_called(&whose);
        }
    }
}

/// Members of one group, and the owner of the database, put back what each other has left.
#[test]
fn those_who_are_no_strangers_are_put_back_for() {
    for major in [13, 18] {
        let stage = Stage::new(major);
        let (one, group) =
            (format!("one_{}", stage.database.name()), format!("group_{}", stage.database.name()));
        stage.database.sql(&format!(
            "CREATE ROLE {group} NOLOGIN; CREATE ROLE {one} LOGIN; GRANT {group} TO {one}, {}; ALTER TABLE t OWNER TO {group}; \
             CREATE SCHEMA howdah AUTHORIZATION {group}; GRANT ALL ON SCHEMA howdah, public TO {group}; \
             CREATE FUNCTION public.fired() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; \
             CREATE TRIGGER fire BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION public.fired()",
            stage.stranger
        ));
        let as_group = |user: &str, number: u32| {
            stage.load_as(&format!("{user} options='-c role={group}'"), number, &[])
        };
        as_group(&stage.stranger, 1).expect_code(0);
        stage.database.sql(&format!(
            "SET ROLE {group}; ALTER TABLE t DISABLE TRIGGER fire; \
             INSERT INTO howdah.undo (job_id, kind, schema_name, table_name, table_oid, name, definition, statements, ledger_oid) \
             SELECT 'killed', 'trigger', 'public', 't', 't'::regclass, 'fire', 'O', \
                    ARRAY['ALTER TABLE public.t ENABLE TRIGGER fire'], 'howdah.undo'::regclass; RESET ROLE"
        ));
        let told = as_group(&one, 2).expect_code(0).stderr;
        assert!(!told.contains("may write the journal"), "PostgreSQL {major}: {told}");
        let enabled = "SELECT tgenabled FROM pg_trigger WHERE tgname = 'fire' AND tgrelid = 't'::regclass";
        assert_eq!(stage.database.value(enabled), "O", "PostgreSQL {major}: {told}");
    }
}

/// Whoever may write the jobs of a ledger would choose where bad records are written, with the rights of
/// whoever goes on with a job.
#[test]
fn what_others_may_have_told_a_job_is_not_done_by_who_goes_on_with_it() {
    let stage = Stage::new(15);
    let bad = stage.files.put("bad.csv", b"a,b\n1,x\nevil,y\n");
    let begin =
        stage.verb("load", "postgres").args(["--table", "t", "--on-error", "skip", "--job-id", "job"]);
    let named = stage.files.path().join("named.csv");
    let named = named.to_str().unwrap();
    begin.args(["--max-errors", "1", "--reject-file", named]).arg(&bad).run(PATIENCE).expect_code(3);
    std::fs::remove_file(named).unwrap();
    // As if it had been killed at its end.
    let open = "DELETE FROM howdah.chunk; DELETE FROM howdah.reject; TRUNCATE t; UPDATE howdah.job SET status = 'failed'";
    stage.database.sql(open);
    let resume = |options: &[&str]| stage.verb("resume", "postgres").arg("job").args(options).run(PATIENCE);
    resume(&[]).expect_code(3);
    assert!(std::fs::exists(named).unwrap(), "its own ledger says so");
    stage.database.sql(open);
    stage.database.sql(&format!(
        "GRANT USAGE ON SCHEMA howdah TO {0}; GRANT SELECT, UPDATE (plan) ON howdah.job TO {0}",
        stage.stranger
    ));
    let place = stage.files.path().join("profile");
    stage.as_stranger(&format!(
        "UPDATE howdah.job SET plan = jsonb_set(plan, '{{job,reject_file}}', to_jsonb('{}'::text))",
        place.display()
    ));
    let refused = resume(&[]).expect_code(1).stderr;
    let what = format!("may be written by \"{}\"", stage.stranger);
    assert!(refused.contains(&what) && refused.contains("add --ledger howdah"), "{refused}");
    let told = resume(&["--ledger", "howdah"]).expect_code(3).stderr;
    assert!(told.contains("only the ledger says that they go there"), "{told}");
    assert!(!std::fs::exists(&place).unwrap(), "{told}");
    stage.database.sql(open);
    let other = stage.files.path().join("other.csv");
    resume(&["--ledger", "howdah", "--reject-file", other.to_str().unwrap()]).expect_code(3);
    assert!(std::fs::exists(&other).unwrap() && !std::fs::exists(&place).unwrap());
    // Nor who loads what it has rejected.
    let rejects = stage.verb("plan", "postgres").args(["--rejects", "job"]).arg(&other);
    let refused = rejects.run(PATIENCE).expect_code(1).stderr;
    assert!(refused.contains(&what) && refused.contains("add --ledger howdah"), "{refused}");
    rejects.args(["--ledger", "howdah"]).run(PATIENCE).expect_code(0);
}

/// Of memberships those count by which one role acts as the other, and no role that logs in is trusted for
/// having others as members.
#[test]
fn memberships_by_which_nobody_acts_as_another_make_nobody_trusted() {
    for (major, grant, is_trusted) in [
        (13, "GRANT stranger TO loader", false),
        (13, "GRANT loader TO stranger", true),
        (18, "GRANT stranger TO loader", false),
        // As whoever makes a role becomes a member of it.
        (18, "GRANT stranger TO loader WITH ADMIN TRUE, INHERIT FALSE, SET FALSE", false),
        (18, "GRANT loader TO stranger WITH INHERIT FALSE, SET FALSE", false),
        (18, "GRANT loader TO stranger WITH INHERIT FALSE, SET TRUE", true),
        // It could grant itself the rest.
        (18, "GRANT loader TO stranger WITH ADMIN TRUE, INHERIT FALSE, SET FALSE", true),
    ] {
        let stage = Stage::new(major);
        stage.make_functions();
        let loader = format!("loader_{}", stage.database.name());
        let grant = grant.replace("stranger", &stage.stranger).replace("loader", &loader);
        stage.database.sql(&format!("CREATE ROLE {loader} LOGIN; GRANT INSERT ON t TO {loader}; {grant}"));
        stage.load_as(&stage.stranger, 1, &[]).expect_code(0);
        stage.as_stranger(
            "GRANT USAGE ON SCHEMA howdah TO PUBLIC; \
             GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA howdah TO PUBLIC; \
             CREATE TRIGGER fire BEFORE INSERT ON howdah.job FOR EACH ROW EXECUTE FUNCTION of_stranger.fired()",
        );
        let loaded = stage.load_as(&loader, 2, &[]);
        let told = loaded.expect_code(i32::from(!is_trusted)).stderr;
        assert_eq!(!told.contains("has a trigger"), is_trusted, "PostgreSQL {major}, {grant}: {told}");
        if !is_trusted {
            stage.expect_nothing_called(&grant);
        }
    }
}

/// As the hint says, for a trigger that the owner of a shared ledger has made himself.
#[test]
fn a_ledger_with_a_trigger_is_written_when_it_belongs_to_a_group_of_its_loaders() {
    for major in [13, 18] {
        let stage = Stage::new(major);
        stage.make_functions();
        let (loader, group) =
            (format!("loader_{}", stage.database.name()), format!("group_{}", stage.database.name()));
        stage.database.sql(&format!(
            "CREATE ROLE {group} NOLOGIN; CREATE ROLE {loader} LOGIN; GRANT {group} TO {loader}, {}; GRANT INSERT ON t TO {loader}",
            stage.stranger
        ));
        stage.load_as(&stage.stranger, 1, &[]).expect_code(0);
        stage.as_stranger(&format!(
            "CREATE TRIGGER fire BEFORE INSERT ON howdah.job FOR EACH ROW EXECUTE FUNCTION of_stranger.fired(); \
             GRANT USAGE ON SCHEMA howdah TO {loader}; GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA howdah TO {loader}"
        ));
        let refused = stage.load_as(&loader, 2, &[]).expect_code(1).stderr;
        assert!(
            refused.contains("ALTER SCHEMA \"howdah\" OWNER TO")
                && refused.contains("does not know what is loaded by this one"),
            "PostgreSQL {major}: {refused}"
        );
        let tables = stage.database.value(
            "SELECT string_agg(format('ALTER TABLE howdah.%I OWNER TO owner', tablename), '; ') FROM pg_tables WHERE schemaname = 'howdah'",
        );
        stage.database.sql(&format!(
            "ALTER SCHEMA howdah OWNER TO {group}; {}; ALTER FUNCTION of_stranger.fired() OWNER TO {group}",
            tables.replace("TO owner", &format!("TO {group}"))
        ));
        let told = stage.load_as(&loader, 2, &[]).expect_code(0).stderr;
        assert!(!told.contains("the ledger in schema"), "PostgreSQL {major}: {told}");
        assert_eq!(
            stage.database.value("SELECT count(*) FROM public.called"),
            "1",
            "PostgreSQL {major}: {told}"
        );
    }
}
