//! Names that try to be something else: of tables, columns, files, objects, jobs, ledgers, roles, sequences.

use crate::scene::{Files, PATIENCE, howdah};
use howdah_testkit::{MAJORS, S3, Server};

/// Each is a name, as it is.
const NASTY: [&str; 6] = [
    "\"; drop table x; --",
    "'); drop table x; --",
    "two\nlines\tand \\ a %s",
    "$$ E'\\'' {table} ${1}",
    "naïve 漢字 🐘",
    "SELECT",
];

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn literal(name: &str) -> String {
    format!("E'{}'", name.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// A field of csv.
fn field(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[test]
fn nasty_names_of_tables_columns_files_jobs_and_ledgers_load_normally() {
    // The worst on all servers, the others by turns.
    let turns = MAJORS.into_iter().cycle().zip(NASTY).chain([(15, NASTY[0]), (18, NASTY[0])]);
    for (major, name) in turns {
        let (database, files) = (Server::shared(major).database(), Files::new());
        let table = quoted(name);
        // Keys, indexes, triggers and sequences bear the name too, and go through the journal and back.
        database.sql(&format!(
            "CREATE TABLE x (a integer); CREATE SCHEMA {table}; \
             CREATE TABLE {table}.{table} (id bigserial, {table} text, \"other\" integer, \
                 CONSTRAINT \"{0} k\" PRIMARY KEY (id)); \
             CREATE INDEX \"{0} i\" ON {table}.{table} ({table}); \
             CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; \
             CREATE TRIGGER {table} BEFORE INSERT ON {table}.{table} FOR EACH ROW EXECUTE FUNCTION see()",
            name.replace('"', "\"\"")
        ));
        let before = crate::indexes::schema(&database);
        let csv = format!("id,{},other\n5,{},1\n6,plain,2\n", field(name), field(name));
        let source = files.put(&format!("{}.csv", name.replace(['/', '{', '}'], "-")), csv.as_bytes());
        let written = format!("{table}.{table}");
        let load = howdah("load").args(["--table", &written, "--to", &database.conninfo(), "--job-id", name]);
        let load = load.args(["--indexes", "rebuild", "--triggers", "disable", "--after", "vacuum"]);
        let load = load.args(["--format", "csv", "--header"]).arg(&source);
        let what = format!("PostgreSQL {major}, {name:?}");
        let planned = howdah("plan").args(["--table", &written, "--to", &database.conninfo(), "--header"]);
        let planned = planned.arg(&source);
        planned.run(PATIENCE).expect_code(0);
        load.clone().run(PATIENCE).expect_code(0);
        let found = database.value(&format!("SELECT {table} FROM {written} WHERE id = 5"));
        assert_eq!(found, name, "{what}");
        assert_eq!(database.value("SELECT count(*) FROM x"), "0", "{what}");
        assert_eq!(crate::indexes::schema(&database), before, "{what}");
        let status = howdah("status").args([name, "--to", &database.conninfo()]).run(PATIENCE).expect_code(0);
        assert!(status.stdout.contains("done"), "{what}\n{}", status.stdout);
        // A line each, whatever is in the name: what tells of the job, and of its one file, and the list.
        assert_eq!(status.stdout.lines().count(), 4, "{what}\n{}", status.stdout);
        let list = howdah("status").args(["--to", &database.conninfo()]).run(PATIENCE).expect_code(0).stdout;
        assert_eq!(list.lines().count(), 2, "{what}\n{list}");
        assert_eq!(
            database.value(&format!("SELECT count(*) FROM howdah.job WHERE job_id = {}", literal(name))),
            "1"
        );
        // A ledger, and a table that is made, under the name. What comes again in its column would be no
        // name.
        let csv = format!("id,{},other\n5,plain,1\n6,plain,2\n", field(name));
        let source = files.put("made.csv", csv.as_bytes());
        let load = howdah("load").args(["--create", "--names", "keep", "--ledger", &format!("{name} l")]);
        let made = format!("{table}.{}", quoted(&format!("{name} 2")));
        load.args(["--table", &made, "--to", &database.conninfo()]).arg(&source).run(PATIENCE).expect_code(0);
        assert_eq!(database.value(&format!("SELECT count({table}) FROM {made}")), "2", "{what}");
    }
}

/// The server would say that bytes are broken.
#[test]
fn a_name_with_a_nul_is_refused_as_what_it_is() {
    let files = Files::new();
    let source = files.put("a.csv", b"id\n1\n");
    let database = Server::shared(18).database();
    database.sql("CREATE TABLE t (id int)");
    for (name, line) in [
        ("job-id", r#"job-id = "a\u0000b""#),
        ("ledger", r#"ledger = "a\u0000b""#),
        ("columns", r#"columns = ["\u0000"]"#),
        ("key", "mode = \"merge\"\nkey = [\"id\\u0000\"]"),
        ("table", r#"table = "t\u0000""#),
    ] {
        let job = files.put("job.toml", line.as_bytes());
        let load = howdah("load").args(["--to", &database.conninfo(), "--header=true", "--job"]).arg(&job);
        let load = if name == "table" { load } else { load.args(["--table", "t"]) };
        let told = load.arg(&source).run(PATIENCE).expect_code(2).stderr;
        assert!(told.contains(&format!("error: {name}: expected text")), "{told}");
        assert_eq!(database.value("SELECT count(*) FROM pg_namespace WHERE nspname = 'howdah'"), "0");
    }
}

#[test]
fn nasty_keys_of_objects_are_read() {
    let s3 = S3::start();
    let database = Server::shared(18).database();
    database.sql("CREATE TABLE t (a integer)");
    // What reads object stores cannot address keys with control characters, and says so.
    let addressable = |name: &str| name.replace(['{', '}', '\n', '\t'], "-");
    for (no, name) in NASTY.iter().enumerate() {
        let key = format!("folder/{}.csv", addressable(name));
        s3.put("odd.names", &key, format!("a\n{no}\n").as_bytes());
    }
    let load =
        howdah("load").args(["--table", "t", "--to", &database.conninfo(), "--format", "csv", "--header"]);
    let load = load.envs(s3.env()).arg("s3://odd.names/folder/*.csv");
    load.run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT string_agg(a::text, '' ORDER BY a) FROM t"), "012345");
    s3.put("odd.names", "other/a\nb.csv", b"a\n1\n");
    let load =
        howdah("load").args(["--table", "t", "--to", &database.conninfo(), "--format", "csv", "--header"]);
    let refused = load.envs(s3.env()).arg("s3://odd.names/other/*.csv").run(PATIENCE).expect_code(1);
    let told = r#"the key "other/a\nb.csv" cannot be addressed"#;
    assert!(refused.stderr.contains(told), "{}", refused.stderr);
}

/// The next load of the same command meets the table that the first has made.
#[test]
fn a_key_and_names_for_a_new_table_are_said_to_be_for_none_where_it_is_there() {
    let files = Files::new();
    let source = files.put("t.csv", b"Id,Note\n1,a\n");
    let database = Server::shared(15).database();
    let plan = |options: &[&str]| {
        let plan = howdah("plan").args(["--json", "--to", &database.conninfo(), "--table", "t"]);
        let done = plan.args(options).arg(&source).run(PATIENCE).expect_code(0);
        let document: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
        document["warnings"].to_string()
    };
    database.sql("CREATE TABLE t (id int, note text)");
    let told = plan(&["--primary-key", "id", "--names", "keep"]);
    assert!(
        told.contains(
            "--primary-key is for a table that the load makes: public.t is there, and has no primary key"
        ),
        "{told}"
    );
    assert!(told.contains("--names is for a table that the load makes: public.t is there"), "{told}");
    database.sql("ALTER TABLE t ADD PRIMARY KEY (note)");
    assert!(plan(&["--primary-key", "id"]).contains("has the primary key (note)"));
    database.sql("ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (id, note)");
    assert_eq!(plan(&["--primary-key", "note,id", "--names", "snake"]), "[]");
    database.sql("DROP TABLE t");
    assert_eq!(plan(&["--create", "--primary-key", "Id", "--names", "keep"]), "[]");
    let load = howdah("load").args(["-q", "--to", &database.conninfo(), "--table", "t", "--create"]);
    load.args(["--primary-key", "Id", "--names", "keep"]).arg(&source).run(PATIENCE).expect_code(0);
    assert_eq!(plan(&["--primary-key", "Id", "--names", "keep", "--force"]), "[]");
}

/// Its schema has a name like any other.
#[test]
fn a_temporary_table_of_another_session_is_refused_in_the_plan() {
    let files = Files::new();
    let source = files.put("a.csv", b"1\n");
    for major in MAJORS {
        let database = Server::shared(major).database();
        let other = database.connect();
        other.try_rows("CREATE TEMPORARY TABLE t (a integer)").unwrap();
        let table = other
            .try_rows("SELECT relnamespace::regnamespace || '.t' FROM pg_class WHERE oid = 't'::regclass");
        let table = table.unwrap()[0][0].clone().unwrap();
        let plan = howdah("plan").args(["--to", &database.conninfo(), "--table", &table]).arg(&source);
        let told = plan.run(PATIENCE).expect_code(1).stderr;
        let wanted = format!("{table} is a temporary table of another session, which alone can write it");
        assert!(told.contains(&wanted) && told.contains("hint: "), "PostgreSQL {major}: {told}");
    }
}

/// The server cuts them, and two of them would be one table.
#[test]
fn names_of_tables_that_are_too_long_are_refused() {
    let (database, files) = (Server::shared(15).database(), Files::new());
    let (long, cut) = ("a".repeat(61), "a".repeat(61) + "_2");
    for year in ["_2023", "_2024"] {
        files.put(&format!("{long}{year}.csv"), b"id\n1\n");
    }
    let load = |table: &str| {
        let load = howdah("load").args(["--to", &database.conninfo(), "--create", "--header"]);
        load.args(["--table", table])
    };
    let both = || load("{table}").arg(files.path().join("{table}.csv"));
    let one = || load(&format!("{long}_2024")).arg(files.path().join(format!("{long}_2024.csv")));
    let expect_refused = || {
        for command in [both(), one()] {
            let refused = command.run(PATIENCE).expect_code(1).stderr;
            assert!(
                refused.contains("66 bytes, expected 63 at most") && refused.contains("hint: name the table"),
                "{refused}"
            );
        }
    };
    expect_refused();
    assert_eq!(database.value("SELECT count(*) FROM pg_class WHERE relname LIKE 'aaa%'"), "0");
    database.sql(&format!("CREATE TABLE {cut} (id int)"));
    expect_refused();
    assert_eq!(database.value(&format!("SELECT count(*) FROM {cut}")), "0");
    load(&cut).arg(files.path().join(format!("{long}_2024.csv"))).run(PATIENCE).expect_code(0);
    assert_eq!(database.value(&format!("SELECT count(*) FROM {cut}")), "1");
}
