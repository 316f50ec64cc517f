//! Nothing that a load writes, anywhere, holds a secret.

use crate::scene::{Files, PATIENCE, howdah};
use howdah_testkit::{Database, Finished, HowdahCommand, MAJORS, S3, Server, ServerOptions, side_by_side};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};

const PASSWORD: &str = "Pass'w0rd-4711";
const WRONG: &str = "Wr0ng-0815";
/// In the URL of an object, as those who sign it hand it out.
const SIGNATURE: &str = "f00dfeedcafe4242";
const TOKEN: &str = "T0ken-AQoDYXdzEJr";
/// See `testkit/src/s3.rs`.
const AWS_SECRET: &str = "howdah-test-secret";
const SECRETS: [&str; 6] = [PASSWORD, "Pass%27w0rd-4711", WRONG, SIGNATURE, TOKEN, AWS_SECRET];

struct Stage {
    server: Server,
    database: Database,
    files: Files,
}

impl Stage {
    /// A server that wants a password of the role `keeper`, and logs every statement.
    fn new(major: u32) -> Stage {
        let options = ServerOptions {
            hba: vec!["host all keeper 127.0.0.1/32 scram-sha-256".to_owned()],
            ..ServerOptions::default()
        };
        let options = options.set("log_statement", "all").set("password_encryption", "scram-sha-256");
        let server = Server::private(major, &options);
        let database = server.database();
        let password = PASSWORD.replace('\'', "''");
        database.sql(&format!("SET log_statement = 'none'; CREATE ROLE keeper LOGIN PASSWORD '{password}'"));
        database.sql(&format!(
            "CREATE TABLE t (a integer, b text); GRANT INSERT ON t TO keeper; \
             GRANT CREATE ON DATABASE {} TO keeper",
            database.name()
        ));
        Stage { server, database, files: Files::new() }
    }

    fn conninfo(&self) -> String {
        self.database.conninfo().replace("user=postgres", "user=keeper")
    }

    fn load(&self) -> HowdahCommand {
        howdah("load").args(["--table", "t", "--format", "csv", "--header", "--retry-for", "0s"])
    }

    /// A password in the environment.
    fn load_with_password(&self) -> HowdahCommand {
        self.load().args(["--to", &self.conninfo()]).envs([("PGPASSWORD", PASSWORD)])
    }

    /// Ledger, plans, and all the server has written down.
    fn kept(&self) -> String {
        let program =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/servers/psql/bin/pg_dump");
        let dump = Command::new(program).args(["--dbname", &self.database.conninfo()]).output().unwrap();
        assert!(dump.status.success());
        String::from_utf8(dump.stdout).unwrap() + &self.server.log()
    }
}

#[track_caller]
fn assert_clean(text: &str, what: &str) {
    for secret in SECRETS {
        if let Some(at) = text.find(secret) {
            let around = &text.as_bytes()[at.saturating_sub(200)..at + secret.len()];
            panic!("{what} shows {secret}: ...{}", String::from_utf8_lossy(around));
        }
    }
}

#[track_caller]
fn assert_quiet(finished: &Finished, what: &str) {
    assert_clean(&finished.stdout, what);
    assert_clean(&finished.stderr, what);
}

/// Serves one file to everybody, over and over, whatever the URL's parameters.
fn web_server(body: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut request = [0; 8192];
            let read = stream.read(&mut request).unwrap_or(0);
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            let body = if request[..read].starts_with(b"HEAD") { &body[..0] } else { body };
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
        }
    });
    port
}

#[test]
fn loads_plans_ledgers_logs_and_processes_show_no_secret() {
    for major in [13, 18] {
        let stage = Stage::new(major);
        let s3 = S3::start();
        s3.put("bucket", "a.csv", b"a,b\n1,x\n");
        let port = web_server(b"a,b\n2,y\n");
        let signed = format!(
            "http://{SIGNATURE}:{TOKEN}@127.0.0.1:{port}/b.csv?X-Amz-Signature={SIGNATURE}&sig={SIGNATURE}&X-Amz-Security-Token={TOKEN}\
             &X-Goog-Signature={SIGNATURE}&url=https%3A%2F%2Fu%3A{TOKEN}%40h%2Fc.csv%3Fsig%3D{SIGNATURE}"
        );
        let sources = ["s3://bucket/a.csv", signed.as_str()];
        let load = stage.load_with_password().envs(s3.env()).args(sources);
        let plan =
            howdah("plan").args(["--table", "t", "--format", "csv", "--header", "--to", &stage.conninfo()]);
        let plan = plan.envs([("PGPASSWORD", PASSWORD)]).envs(s3.env()).args(sources);
        for command in [plan.clone(), plan.arg("--json"), load.clone(), load.arg("--json").arg("--force")] {
            assert_quiet(&command.run(PATIENCE).expect_code(0), "a load or a plan");
        }
        let status =
            howdah("status").args(["--json", "--to", &stage.conninfo()]).envs([("PGPASSWORD", PASSWORD)]);
        let told = status.run(PATIENCE).expect_code(0);
        assert!(told.stdout.contains("b.csv"), "{}", told.stdout);
        assert_quiet(&told, "status");
        assert_clean(&stage.kept(), "the ledger or the server's log");
    }
}

#[test]
fn a_running_load_shows_no_secret_to_ps_and_to_other_sessions() {
    let stage = Stage::new(15);
    stage.database.sql(
        "CREATE TABLE gate AS SELECT 1; \
         CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS \
             'BEGIN WHILE EXISTS (SELECT FROM public.gate) LOOP PERFORM pg_sleep(0.01); END LOOP; RETURN NULL; END'; \
         CREATE TRIGGER pause AFTER INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION pause()",
    );
    let source = stage.files.put("a.csv", b"a,b\n1,x\n");
    let mut running = stage.load_with_password().arg(source).spawn();
    let sql = "SELECT string_agg(concat_ws(' ', application_name, query), ' ') FROM pg_stat_activity \
               WHERE usename = 'keeper' AND query LIKE '%COPY%'";
    let seen = loop {
        assert!(running.is_running(), "{}", running.stderr_so_far());
        if let Some(seen) = stage.database.rows(sql).swap_remove(0).swap_remove(0) {
            break seen;
        }
    };
    let of_process = |name: &str| std::fs::read(format!("/proc/{}/{name}", running.pid())).unwrap();
    assert_clean(&seen, "pg_stat_activity");
    assert_clean(&String::from_utf8_lossy(&of_process("cmdline")), "the command line");
    assert_clean(&String::from_utf8_lossy(&of_process("comm")), "the process's name");
    stage.database.sql("DELETE FROM gate");
    running.wait(PATIENCE).expect_code(0);
}

/// What is not shown of a URL may be all that tells it from another one.
#[test]
fn urls_that_only_differ_in_what_is_not_kept_are_not_taken_for_one() {
    let stage = Stage::new(18);
    let port = web_server(b"a,b\n2,y\n");
    let url = |year: u32| format!("http://127.0.0.1:{port}/b.csv?session={year}");
    let refused =
        stage.load_with_password().arg(url(2023)).arg(url(2024)).run(PATIENCE).expect_code(2).stderr;
    assert!(refused.contains("may be secret") && refused.contains("--job-id"), "{refused}");
    stage.load_with_password().arg(url(2023)).arg(url(2023)).run(PATIENCE).expect_code(0);
    assert_eq!(stage.database.value("SELECT count(*) FROM t"), "1");
}

#[test]
fn errors_show_no_secret() {
    let stage = Stage::new(18);
    let source = stage.files.put("a.csv", b"a,b\n1,x\n");
    let (port, name) = (stage.server.port(), stage.database.name());
    let with = |to: &str| stage.load().args(["--to", to]).arg(&source);
    let job = stage
        .files
        .put("job.toml", format!("to = \"postgresql://keeper:{WRONG}@h/d\nsources = []").as_bytes());
    let other_job = stage
        .files
        .put("other.toml", format!("to = \"postgresql://keeper:{WRONG}@h/d\"\ntoo = 1").as_bytes());
    let signed = format!("http://127.0.0.1:1/b.csv?X-Amz-Signature={SIGNATURE}&X-Amz-Security-Token={TOKEN}");
    let s3 = S3::start();
    let refused_key = s3.env().into_iter().map(|(name, value)| match name.as_str() {
        "AWS_SECRET_ACCESS_KEY" => (name, TOKEN.to_owned()),
        _ => (name, value),
    });
    s3.put("bucket", "a.csv", b"a,b\n1,x\n");
    let commands = [
        ("a wrong password", with(&stage.conninfo()).envs([("PGPASSWORD", WRONG)])),
        ("a wrong password in an URL", with(&format!("postgresql://keeper:{WRONG}@127.0.0.1:{port}/{name}"))),
        ("no such host", with(&format!("postgresql://keeper:{WRONG}@no-such-host.invalid/{name}"))),
        ("nobody listens", with(&format!("postgresql://keeper:{WRONG}@127.0.0.1:1/{name}"))),
        (
            "no such database",
            with(&format!(
                "host=127.0.0.1 port={port} user=keeper dbname=none password='{}'",
                PASSWORD.replace('\'', "\\'")
            )),
        ),
        ("a bad port", with(&format!("postgresql://keeper:{WRONG}@127.0.0.1:port/{name}"))),
        ("a / in a password", with(&format!("postgresql://keeper:{WRONG}/x@127.0.0.1:{port}/{name}"))),
        ("a / behind digits", with(&format!("postgresql://keeper:12/{WRONG}@127.0.0.1:{port}/{name}"))),
        ("an @ in a password", with(&format!("postgresql://keeper:x@{WRONG}@127.0.0.1:{port}/{name}"))),
        ("an @ and a /", with(&format!("postgresql://keeper:x@y/{WRONG}@127.0.0.1:{port}/{name}"))),
        ("no host", with(&format!("postgresql://keeper:{WRONG}"))),
        ("a wrong scheme", with(&format!("postgresq://keeper:{WRONG}=@127.0.0.1:{port}/{name}"))),
        ("a space in a password", with(&format!("host=h password=x {WRONG}=y"))),
        ("a bad URL", with(&format!("postgresql://keeper:{WRONG}@[::1/{name}"))),
        ("a bad parameter", with(&format!("postgresql://h/{name}?password={WRONG}&sslmode=perhaps"))),
        ("an unfinished quote", with(&format!("host=h password='{WRONG}"))),
        ("a missing sign", with(&format!("host=h password {WRONG}"))),
        ("an unknown word", with(&format!("host=h passwort={WRONG}"))),
        ("a job file that is no TOML", howdah("load").arg("--job").arg(job)),
        ("a job file with an unknown key", howdah("load").arg("--job").arg(other_job)),
        ("a signed URL", stage.load_with_password().arg(signed)),
        ("a user in an URL", stage.load_with_password().arg(format!("https://u:{TOKEN}@127.0.0.1:1/x.csv"))),
        (
            "a password of a proxy",
            stage
                .load_with_password()
                .envs([("HTTP_PROXY", format!("http://u:{TOKEN}@127.0.0.1:1"))])
                .arg("http://h.invalid/x.csv"),
        ),
        ("a refused key", stage.load_with_password().envs(refused_key).arg("s3://bucket/a.csv")),
    ];
    for (what, command) in commands {
        let finished = command.clone().run(PATIENCE);
        assert!(
            finished.code != Some(0) && finished.stderr.contains("error: "),
            "{what}\n{}",
            finished.stderr
        );
        assert_quiet(&finished, what);
        assert_quiet(&command.arg("--json").run(PATIENCE), what);
    }
    assert_clean(&stage.kept(), "the ledger or the server's log");
}

/// It was passed over, and the file asked for without it.
#[test]
fn a_proxy_that_cannot_be_used_is_refused_and_not_shown() {
    let stage = Stage::new(15);
    let url = format!("http://127.0.0.1:{}/a.csv", web_server(b"a,b\n1,x\n"));
    let proxy = ("HTTP_PROXY", format!("http://u:{TOKEN}@127.0.0.1:port"));
    let refused = stage.load_with_password().envs([proxy]).arg(&url).run(PATIENCE).expect_code(2);
    assert!(refused.stderr.contains("HTTP_PROXY names no proxy that can be used"), "{}", refused.stderr);
    assert_quiet(&refused, "a proxy without a port");
    stage.load_with_password().arg(&url).run(PATIENCE).expect_code(0);
}

#[test]
fn a_password_on_the_command_line_is_warned_of() {
    let stage = Stage::new(15);
    let source = stage.files.put("a.csv", b"a,b\n1,x\n");
    let url = stage.conninfo() + &format!(" password='{}'", PASSWORD.replace('\'', "\\'"));
    let told = stage.load().args(["--to", &url]).arg(&source).run(PATIENCE).expect_code(0).stderr;
    assert!(told.contains("visible to everybody on this machine") && told.contains("PGPASSFILE"), "{told}");
    let told = stage.load_with_password().arg("--force").arg(&source).run(PATIENCE).expect_code(0).stderr;
    assert!(!told.contains("visible to everybody"), "{told}");
}

#[test]
fn a_password_is_asked_for_where_one_is_wanted_and_not_shown() {
    let stage = Stage::new(18);
    let source = stage.files.put("a.csv", b"a,b\n1,x\n");
    let program = env!("CARGO_BIN_EXE_howdah");
    // `script` gives the command a terminal.
    let at_terminal = |more: &str, typed: &str| {
        let line = format!(
            "{program} load {more} --table t --format csv --header --force --retry-for 0s --to '{}' {}",
            stage.conninfo(),
            source.display()
        );
        let mut script = Command::new("script");
        script.args(["--quiet", "--return", "--command", &line, "/dev/null"]).env_remove("PGPASSWORD");
        let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let mut seen = Vec::new();
        let mut block = [0; 4096];
        while let Ok(count @ 1..) = stdout.read(&mut block) {
            let asked = |seen: &[u8]| String::from_utf8_lossy(seen).matches("Password for ").count();
            let before = asked(&seen);
            seen.extend_from_slice(&block[..count]);
            if asked(&seen) > before {
                stdin.write_all(format!("{typed}\n").as_bytes()).unwrap();
            }
        }
        let code = child.wait().unwrap().code();
        (code, String::from_utf8_lossy(&seen).into_owned())
    };
    for more in ["", "-W"] {
        let (code, seen) = at_terminal(more, PASSWORD);
        assert_eq!(code, Some(0), "{seen}");
        assert!(seen.contains("Password for postgresql://keeper@127.0.0.1"), "{seen}");
        assert_clean(&seen, "the terminal");
    }
    let (code, seen) = at_terminal("", WRONG);
    assert!(code == Some(1) && seen.contains("28P01"), "{seen}");
    assert_clean(&seen, "the terminal");
    let (code, seen) = at_terminal("--no-password", PASSWORD);
    assert!(code == Some(1) && !seen.contains("Password for "), "{seen}");
    // Nobody is there.
    let alone = HowdahCommand::new("setsid").args(["--wait", program, "load", "-W", "--table", "t", "--to"]);
    let refused = alone.arg(stage.conninfo()).arg(&source).run(PATIENCE).expect_code(2).stderr;
    assert!(refused.contains("no terminal to ask for a password"), "{refused}");
    assert_eq!(stage.database.value("SELECT count(*) FROM t"), "2");
}

#[test]
fn what_a_value_names_and_the_server_does_not_find_is_not_told() {
    let files = Files::new();
    for major in MAJORS {
        let database = Server::shared(major).database();
        for (type_name, value) in [
            ("regclass", "nosuch"),
            ("regclass", "nosuch.a.b.c"),
            ("regtype", "nosuch"),
            ("regrole", "nosuch"),
            ("regoper", "nosuch"),
            ("tsvector", "nosuch:0"),
            ("tsquery", "(nosuch"),
        ] {
            database.sql(&format!("DROP TABLE IF EXISTS v; CREATE TABLE v (id int, told {type_name})"));
            let source = files.put("v.csv", format!("id,told\n1,{value}\n").as_bytes());
            let load =
                howdah("load").args(["--to", &database.conninfo(), "--format", "csv", "--header", "-t", "v"]);
            let told = load.arg(&source).run(PATIENCE).expect_code(1).stderr;
            assert!(
                told.contains("column told: ") && !told.contains("nosuch"),
                "PostgreSQL {major}, {type_name}: {told}"
            );
        }
    }
}

#[test]
fn what_a_function_has_looked_for_and_not_found_is_not_shown() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,note\n1,secret\n");
    let fires = |body: &str| {
        format!(
            "CREATE FUNCTION fire() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN {body}; RETURN NEW; END$$; \
             CREATE TRIGGER fire BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION fire()"
        )
    };
    for (sqlstate, sql) in [
        ("42P01", fires("EXECUTE pg_catalog.format('SELECT FROM %I', NEW.note)")),
        ("42883", fires("EXECUTE pg_catalog.format('SELECT %I()', NEW.note)")),
        ("42601", fires("EXECUTE NEW.note")),
        ("58P01", fires("PERFORM pg_catalog.pg_read_file(NEW.note)")),
        ("42P01", "ALTER TABLE t ADD CHECK (note::regclass IS NOT NULL)".to_owned()),
        ("42704", "ALTER TABLE t ADD CHECK (note::regtype IS NOT NULL)".to_owned()),
    ] {
        for mode in [&[][..], &["--atomic"], &["--mode", "merge", "--key", "id"], &["--on-error", "skip"]] {
            let database = Server::shared(15).database();
            database.sql(&format!("CREATE TABLE t (id int PRIMARY KEY, note text); {sql}"));
            let to = database.conninfo();
            let told =
                howdah("load").args(["--table", "t", "--to", &to]).args(mode).arg(&source).run(PATIENCE);
            // No record is to blame for what the system refuses.
            let is_skipped = mode == ["--on-error", "skip"] && sqlstate != "58P01";
            assert_eq!(told.code, Some(if is_skipped { 3 } else { 1 }), "{sql} {mode:?}: {}", told.stderr);
            assert!(!told.stderr.contains("secret"), "{sql} {mode:?}: {}", told.stderr);
            assert!(told.stderr.contains(sqlstate), "{sql} {mode:?}: {}", told.stderr);
        }
    }
}

/// Nor how it is told: each language reports errors in its own way, and PL/pgSQL under any SQLSTATE.
#[test]
fn what_a_function_says_is_not_shown_whatever_its_language() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,note\n1,good\n2,secret\n");
    let plpgsql = |sqlstate: &str| {
        let raise =
            format!("IF note <> 'good' THEN RAISE 'has %', note USING ERRCODE = '{sqlstate}'; END IF");
        (sqlstate.to_owned(), "plpgsql", format!("BEGIN {raise}; RETURN true; END"))
    };
    let tcl = "if {$1 eq \"good\"} {return 1}; error \"has $1\"";
    let functions =
        [("38000".to_owned(), "pltcl", tcl.to_owned()), plpgsql("38000"), plpgsql("22023"), plpgsql("XX000")];
    let tables = [
        "CREATE TABLE t (id int PRIMARY KEY, note text CHECK (is_good(note)))",
        "CREATE DOMAIN word AS text CHECK (is_good(VALUE)); CREATE TABLE t (id int PRIMARY KEY, note word)",
        "CREATE TABLE t (id int PRIMARY KEY, note text, made bool GENERATED ALWAYS AS (is_good(note)) STORED)",
    ];
    let modes = [&["--on-error", "skip"][..], &[], &["--mode", "merge", "--key", "id"]];
    side_by_side([13, 18], |major| {
        for ((sqlstate, language, body), (no, table)) in functions
            .iter()
            .flat_map(|function| tables.iter().enumerate().map(move |table| (function, table)))
        {
            // Who checks a value makes no difference to the others.
            for mode in &modes[..if no == 0 { 3 } else { 1 }] {
                let database = Server::shared(major).database();
                if *language != "plpgsql" && !database.has_extension(language) {
                    continue;
                }
                database.sql(&format!(
                    "CREATE FUNCTION is_good(note text) RETURNS bool IMMUTABLE STRICT LANGUAGE {language} AS $${body}$$; {table}"
                ));
                let what = format!("PostgreSQL {major}, {language}, {sqlstate}, {table}, {mode:?}");
                let load = howdah("load").args(["--table", "t", "--json", "--to", &database.conninfo()]);
                let told = load.args(*mode).arg(&source).run(PATIENCE);
                let kept = "SELECT coalesce((SELECT j::text FROM howdah.job j), '') \
                    || coalesce((SELECT sqlstate || message FROM howdah.reject), '')";
                let told = format!("{}{}{}", told.stderr, told.stdout, database.value(kept));
                assert!(!told.contains("secret"), "{what}: {told}");
                assert!(told.contains(sqlstate), "{what}: {told}");
            }
        }
    });
}

/// Whoever reads the log of statements with their parameters.
#[test]
fn values_that_the_server_is_asked_about_do_not_come_into_its_log() {
    let files = Files::new();
    side_by_side([13, 18], |major| {
        for is_superuser in [true, false] {
            let database = Server::shared(major).database();
            let name = database.name();
            let mut text = "id,day\n".to_owned();
            (1..=20_000).for_each(|id| {
                text += &if id % 100 == 7 {
                    format!("{id},s3cret-{name}\n")
                } else {
                    format!("{id},2024-01-02\n")
                }
            });
            let source = files.put(&format!("{major}_{is_superuser}.csv"), text.as_bytes());
            database.sql(&format!(
                "CREATE ROLE asks_{name} LOGIN {}; GRANT CREATE ON DATABASE {name} TO asks_{name}; \
                 CREATE TABLE t (id int, day date); CREATE TABLE w (id int, day date); \
                 ALTER TABLE t OWNER TO asks_{name}; ALTER TABLE w OWNER TO asks_{name}; \
                 ALTER DATABASE {name} SET log_statement = 'all'; ALTER DATABASE {name} SET log_min_duration_statement = 0; \
                 ALTER DATABASE {name} SET log_parameter_max_length_on_error = -1",
                if is_superuser { "SUPERUSER" } else { "" }
            ));
            let to = database.conninfo().replace("user=postgres", &format!("user=asks_{name}"));
            let load = |table: &str| howdah("load").args(["--to", &to, "--table", table]).arg(&source);
            let skips = [
                "--on-error",
                "skip",
                "--max-errors",
                "100%",
                "--chunk-size",
                "64kB",
                "--format",
                "csv",
                "--header",
            ];
            load("t").args(skips).run(PATIENCE).expect_code(3);
            assert_eq!(database.value("SELECT count(*) FROM howdah.reject"), "200");
            load("w").args(["--evolve", "widen"]).run(PATIENCE).expect_code(0);
            assert_eq!(database.value("SELECT pg_typeof(day) FROM w LIMIT 1"), "text");
            let log = Server::shared(major).log();
            let secret = format!("s3cret-{name}");
            let told = log.lines().filter(|line| line.contains("$1 = ") && line.contains(&secret));
            let told: Vec<String> = told.take(3).map(|line| line.chars().take(300).collect()).collect();
            assert!(told.is_empty(), "PostgreSQL {major}, superuser: {is_superuser}: {told:#?}");
        }
    });
}
