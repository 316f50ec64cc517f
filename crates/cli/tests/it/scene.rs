//! A database with the table `t` to load and the table `wanted` that shows what must come out, and the files.
//!
//! Every row has an id of its own and nothing enforces it: a row stored twice or lost changes count and
//! digest. The oracle is the server's own COPY.

pub(crate) use howdah_testkit::compress::gzip;
use howdah_testkit::{Database, Finished, HowdahCommand, Server};
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// No single run takes longer, stalls and retries included, also on a machine that is twenty times slower
/// than usual: what has not come about by then hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);
/// Ends all other sessions of the database.
pub(crate) const END_SESSIONS: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
    WHERE datname = current_database() AND pid <> pg_backend_pid()";
/// Ends the sessions of the database that sleep: those that hold something for as long as a test wants.
pub(crate) const END_SLEEPERS: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
    WHERE datname = current_database() AND wait_event = 'PgSleep'";
const COLUMNS: &str = "(id bigint, part integer, amount numeric, note text)";
const HEADER: &str = "id,part,amount,note\n";

/// The command with this verb.
pub(crate) fn howdah(verb: &str) -> HowdahCommand {
    HowdahCommand::new(env!("CARGO_BIN_EXE_howdah")).arg(verb)
}

/// Runs the first command in backquotes that begins so, with the changed text of it, by a shell that knows
/// nothing of the server.
#[track_caller]
pub(crate) fn run_told(told: &str, begins: &str, change: impl Fn(&str) -> String) {
    let mut quoted = told.split('`').skip(1).step_by(2);
    let command = quoted.find(|text| text.starts_with(begins)).unwrap_or_else(|| panic!("{told}"));
    let command = change(command).replacen("howdah", env!("CARGO_BIN_EXE_howdah"), 1);
    let typed = std::process::Command::new("sh").args(["-c", &command]).env_clear().output().unwrap();
    assert!(typed.status.success(), "{command}\n{}", String::from_utf8_lossy(&typed.stderr));
}

/// A CSV file with header, about 75 bytes a row, some with quoted newlines; ids from `first` on.
pub(crate) fn csv(seed: u64, first: u64, rows: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut text = HEADER.to_owned();
    for id in first..first + rows {
        let note = match random.u8(..20) {
            0 => "\"two\nlines, and \"\"quotes\"\"\"".to_owned(),
            1 => String::new(),
            _ => format!("{:016x}{:016x}{:016x}", random.u64(..), random.u64(..), random.u64(..)),
        };
        let _ = writeln!(text, "{id},{},{}.{:02},{note}", random.u8(..), random.u32(..), random.u8(..100));
    }
    text.into_bytes()
}

/// A folder of files for one test.
pub(crate) struct Files(TempDir);

impl Files {
    pub(crate) fn new() -> Files {
        Files(howdah_testkit::scratch())
    }

    pub(crate) fn put(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

/// The database of one load.
pub(crate) struct Scene {
    pub(crate) database: Database,
}

impl Scene {
    /// An empty `t`, and `wanted` with the rows of these files.
    pub(crate) fn new(server: &Server, plain: &[&[u8]]) -> Scene {
        let database = server.database();
        database.sql(&format!("CREATE TABLE t {COLUMNS}; CREATE TABLE wanted {COLUMNS}"));
        let scene = Scene { database };
        plain.iter().for_each(|bytes| scene.want(bytes));
        scene
    }

    /// The same, but `t` has partitions with an index, into which rows are copied directly.
    pub(crate) fn partitioned(server: &Server, plain: &[&[u8]]) -> Scene {
        let scene = Scene::new(server, plain);
        scene.database.sql(&format!(
            "DROP TABLE t; CREATE TABLE t {COLUMNS} PARTITION BY LIST (part); \
             CREATE TABLE t_low PARTITION OF t FOR VALUES IN (0, 1, 2, 3, 4, 5, 6, 7) PARTITION BY HASH (id); \
             CREATE TABLE t_low_0 PARTITION OF t_low FOR VALUES WITH (MODULUS 2, REMAINDER 0); \
             CREATE TABLE t_low_1 PARTITION OF t_low FOR VALUES WITH (MODULUS 2, REMAINDER 1); \
             CREATE TABLE t_rest PARTITION OF t DEFAULT; CREATE INDEX ON t (id)"
        ));
        scene
    }

    /// The rows of one more file must come out.
    pub(crate) fn want(&self, plain: &[u8]) {
        let sql = "COPY wanted FROM STDIN (FORMAT csv, HEADER true)";
        self.database.copy_in(sql, plain.to_vec()).unwrap();
    }

    /// Each COPY into `t` takes so much longer: `BEFORE` its data is sent or `AFTER`.
    pub(crate) fn slow_down(&self, when: &str, delay: Duration) {
        self.database.sql(&format!(
            "CREATE OR REPLACE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS \
             'BEGIN PERFORM pg_sleep({}); RETURN NULL; END'; \
             DROP TRIGGER IF EXISTS pause ON t; \
             CREATE TRIGGER pause {when} INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION pause()",
            delay.as_secs_f64()
        ));
    }

    /// Every thousandth row takes so much longer. A trigger of the statement would keep rows from going to
    /// partitions directly.
    pub(crate) fn slow_rows_down(&self, when: &str, delay: Duration) {
        self.database.sql(&format!(
            "CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS \
             'BEGIN PERFORM pg_sleep({}); RETURN NEW; END'; \
             CREATE TRIGGER pause {when} INSERT ON t FOR EACH ROW WHEN (NEW.id % 1000 = 0) \
             EXECUTE FUNCTION pause()",
            delay.as_secs_f64()
        ));
    }

    /// `howdah load` into `t`, without sources, over TCP.
    pub(crate) fn load(&self) -> HowdahCommand {
        self.load_to(&self.database.conninfo())
    }

    /// The same over another way to the server.
    pub(crate) fn load_to(&self, conninfo: &str) -> HowdahCommand {
        howdah("load").args(["--format", "csv", "--header", "--table", "t", "--to", conninfo])
    }

    /// Another verb on the same database.
    pub(crate) fn verb(&self, verb: &str) -> HowdahCommand {
        howdah(verb).args(["--to", &self.database.conninfo()])
    }

    /// Chunks that are in; 0 while there is no ledger or no server.
    pub(crate) fn chunks(&self) -> u64 {
        let counted = self.database.try_rows("SELECT count(*) FROM howdah.chunk");
        counted.ok().and_then(|rows| rows[0][0].as_deref()?.parse().ok()).unwrap_or(0)
    }

    /// Waits until so many chunks are in; false when `go_on` says that it will not happen.
    pub(crate) fn wait_for_chunks(&self, chunks: u64, go_on: impl FnMut() -> bool) -> bool {
        self.database.wait_for("SELECT count(*) FROM howdah.chunk", chunks, go_on)
    }

    /// `t` holds exactly the wanted rows.
    #[track_caller]
    pub(crate) fn assert_exact(&self, what: &str) {
        let (wanted, got) = (self.database.digest("wanted"), self.database.digest("t"));
        if wanted != got {
            let lost = self
                .database
                .value("SELECT count(*) FROM (SELECT id FROM wanted EXCEPT SELECT id FROM t) lost");
            let doubled = self.database.value("SELECT count(*) - count(DISTINCT id) FROM t");
            panic!("{what}: {lost} rows lost, {doubled} doubled; wanted {wanted:?}, got {got:?}");
        }
    }

    /// The ledger agrees: one job, done, with as many rows as are wanted.
    #[track_caller]
    pub(crate) fn assert_done(&self, what: &str) {
        let rows = self.database.rows(
            "SELECT status, rows_stored = (SELECT count(*) FROM wanted), \
             (SELECT sum(rows) FROM howdah.chunk) = (SELECT count(*) FROM wanted) FROM howdah.job",
        );
        let done = [Some("done"), Some("t"), Some("t")].map(|word| word.map(str::to_owned));
        assert_eq!(rows, [done], "{what}");
    }
}

/// Starts something that comes to wait for the lock on this relation which `held` takes, and does `then`
/// under that lock.
pub(crate) fn while_waiting<T>(
    database: &Database,
    (held, relation): (&str, &str),
    then: &str,
    start: impl FnOnce() -> T,
) -> T {
    let sql = format!(
        "BEGIN; {held}; DO $$ BEGIN FOR i IN 1..60000 LOOP \
             EXIT WHEN EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = '{relation}'::regclass); \
             PERFORM pg_sleep(0.01); \
         END LOOP; END $$; {then}; COMMIT"
    );
    let holds = "SELECT count(*) FROM pg_stat_activity \
        WHERE datname = current_database() AND wait_event = 'PgSleep' AND query LIKE 'BEGIN; LOCK %'";
    std::thread::scope(|scope| {
        let holder = scope.spawn(|| database.sql(&sql));
        while database.value(holds) == "0" && !holder.is_finished() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let started = start();
        holder.join().unwrap();
        started
    })
}

/// Writes into the pipe of a load by chunks of 64 kB so slowly that its sessions wait for it most of the
/// time, however slow the server is.
pub(crate) fn write_slowly(scene: &Scene, pipe: &mut File, bytes: &[u8]) {
    let mut sent = 0;
    for part in bytes.chunks(100_000) {
        let began = Instant::now();
        pipe.write_all(part).unwrap();
        sent += part.len();
        // The last ones may wait for more.
        let stored = u64::try_from(sent / (64 << 10)).unwrap().saturating_sub(2);
        assert!(scene.wait_for_chunks(stored, || began.elapsed() < PATIENCE), "{sent} bytes are not stored");
        std::thread::sleep((began.elapsed() * 3).clamp(Duration::from_millis(150), Duration::from_secs(5)));
    }
}

/// A run that ended as a program does: no panic, and an error says so.
#[track_caller]
pub(crate) fn assert_civil(finished: &Finished, what: &str) {
    let Finished { code, signal, stderr, .. } = finished;
    assert!(!stderr.contains("panicked"), "{what}: a panic\n{stderr}");
    let known = matches!(code, Some(0 | 1 | 130)) || *signal == Some(9);
    assert!(known, "{what}: ended with {code:?}, signal {signal:?}\n{stderr}");
    assert!(*code != Some(1) || stderr.contains("error: "), "{what}: failed without an error\n{stderr}");
}

/// An operator class to which `a` and `A` are one value, which are two to their type.
pub(crate) const CASELESS_SQL: &str = "
    CREATE FUNCTION ci_1(a text, b text) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT lower(a) < lower(b)';
    CREATE OPERATOR #< (LEFTARG = text, RIGHTARG = text, FUNCTION = ci_1);
    CREATE FUNCTION ci_2(a text, b text) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT lower(a) <= lower(b)';
    CREATE OPERATOR #<= (LEFTARG = text, RIGHTARG = text, FUNCTION = ci_2);
    CREATE FUNCTION ci_3(a text, b text) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT lower(a) = lower(b)';
    CREATE OPERATOR #= (LEFTARG = text, RIGHTARG = text, FUNCTION = ci_3);
    CREATE FUNCTION ci_4(a text, b text) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT lower(a) >= lower(b)';
    CREATE OPERATOR #>= (LEFTARG = text, RIGHTARG = text, FUNCTION = ci_4);
    CREATE FUNCTION ci_5(a text, b text) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT lower(a) > lower(b)';
    CREATE OPERATOR #> (LEFTARG = text, RIGHTARG = text, FUNCTION = ci_5);
    CREATE FUNCTION ci(a text, b text) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT bttextcmp(lower(a), lower(b))';
    CREATE OPERATOR CLASS ci FOR TYPE text USING btree AS
        OPERATOR 1 #<, OPERATOR 2 #<=, OPERATOR 3 #=, OPERATOR 4 #>=, OPERATOR 5 #>, FUNCTION 1 ci(text, text);
";
