//! A database with a scenario's table in it, its files, and the command that loads them.

use super::beside::Beside;
use super::data;
use super::faults::Run;
use super::flaw::Flaw;
use super::knobs::Knobs;
use super::mended::{self, Mended};
use super::mode::Arrival;
use super::scenario::{Records, Scenario};
use super::way::{INPUT, Way};
use super::world::World;
use crate::scene::{Files, howdah};
use fastrand::Rng;
use howdah_testkit::{Database, HowdahCommand};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

/// What a command does with the files and the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Load,
    Check,
    /// The same load, as the ledger knows it.
    Resume,
    /// What a load has changed beside its rows is put back.
    Restore,
}

/// Records that are left out.
#[derive(Debug, Default)]
pub(super) struct Refused {
    pub(super) records: u64,
    /// So many of them are left out.
    pub(super) count: u64,
    /// So many of these does a check tell.
    pub(super) told: u64,
    /// The same by file: its name, its records, those left out.
    pub(super) files: Vec<(String, u64, u64)>,
    /// Names of files and numbers of records, from 1.
    pub(super) surely: BTreeMap<(String, u64), Bad>,
    /// Of two equal ones either may be.
    pub(super) perhaps: BTreeMap<(String, u64), Bad>,
}

/// A record that is left out.
#[derive(Debug)]
pub(super) struct Bad {
    pub(super) flaw: Flaw,
    /// As its file has it, with its line ending.
    pub(super) bytes: Vec<u8>,
}

impl Refused {
    fn of(files: &[Records], scenario: &Scenario) -> Refused {
        let mut refused = Refused::default();
        for file in files {
            let before = refused.count;
            for (no, record) in (1..).zip(&file.records) {
                let place = (file.name.clone(), no);
                // Of several records of a key, those that do not count are no bad ones.
                let Some(flaw) = record.flaw else { continue };
                refused.count += u64::from(!record.is_stored);
                refused.told += u64::from(!record.is_stored && !flaw.is_hidden(&scenario.flaws));
                let bad = Bad { flaw, bytes: scenario.written.record(record) };
                if flaw == Flaw::Repeat {
                    refused.perhaps.insert(place, bad);
                } else if !record.is_stored {
                    refused.surely.insert(place, bad);
                }
            }
            let records = file.records.len() as u64;
            refused.records += records;
            refused.files.push((file.name.clone(), records, refused.count - before));
        }
        refused
    }

    /// The record that is left out for sure, or perhaps.
    pub(super) fn find(&self, place: &(String, u64)) -> Option<&Bad> {
        self.surely.get(place).or_else(|| self.perhaps.get(place))
    }
}

/// Settings and languages that people have by themselves.
const WAYS_OF_PEOPLE: [&[(&str, &str)]; 6] = [
    &[],
    &[("PGTZ", "Asia/Tokyo"), ("PGDATESTYLE", "SQL, DMY"), ("LC_ALL", "C")],
    &[("TZ", "America/New_York"), ("LANG", "de_DE.UTF-8"), ("LC_ALL", "tr_TR.UTF-8")],
    &[("PGOPTIONS", "-c datestyle=German -c synchronous_commit=off -c standard_conforming_strings=off")],
    &[(
        "PGOPTIONS",
        "-c statement_timeout=400 -c lock_timeout=200 -c idle_in_transaction_session_timeout=400 \
         -c quote_all_identifiers=on -c bytea_output=escape -c extra_float_digits=-3 -c client_min_messages=debug1",
    )],
    &[(
        "PGOPTIONS",
        "-c default_transaction_isolation=serializable -c transform_null_equals=on -c array_nulls=off \
         -c intervalstyle=sql_standard -c work_mem=64kB -c enable_hashjoin=off -c plan_cache_mode=force_generic_plan \
         -c standard_conforming_strings=off",
    )],
];

/// All rows are seen and changed, and those with negative ids let in by nobody.
const GUARD_SQL: &str = "ALTER TABLE t ENABLE ROW LEVEL SECURITY; ALTER TABLE t FORCE ROW LEVEL SECURITY; \
    CREATE POLICY guard ON t USING (true) WITH CHECK (id >= 0);";

/// Makes a schema with the table in it and the model beside it.
fn furnish(database: &Database, scenario: &Scenario, place: &str, files: &[&Records]) {
    let Scenario { role, shape, mode, flaws, .. } = scenario;
    let within = format!("SET ROLE {role}; SET search_path TO {place}");
    database.sql(&format!("CREATE SCHEMA IF NOT EXISTS {place}; GRANT ALL ON SCHEMA {place} TO {role}"));
    database.sql(&format!("{within}; {}", shape.sql()));
    for file in files.iter().filter(|file| file.place == place) {
        let copy = format!("COPY {place}.wanted FROM STDIN (FORMAT csv, HEADER true, ENCODING 'UTF8')");
        database.copy_in(&copy, data::model(&file.records)).unwrap();
    }
    let flaws: String = flaws.iter().map(|flaw| flaw.sql()).collect();
    let guard = if scenario.guarded { GUARD_SQL } else { "" };
    let behind = shape.sql_behind_rows(place);
    database.sql(&format!("{within}; {} {behind}; {flaws} {guard}", mode.arrival.prepare_sql()));
}

/// What a load of this scenario needs, and what it must come to.
pub(super) struct Stage {
    pub(super) scenario: Scenario,
    pub(super) database: Database,
    pub(super) bucket: String,
    /// The name and the bytes of each file.
    pub(super) contents: Vec<(String, Vec<u8>)>,
    pub(super) refused: Refused,
    pub(super) mended: Mended,
    /// Names of the files of a second load.
    beside: Vec<String>,
    /// When each file was written, if they are files.
    made_at: Vec<SystemTime>,
    files: Files,
    /// The ledger's schema, quoted.
    pub(super) ledger: String,
    /// Commands so far.
    commands: AtomicUsize,
}

impl Stage {
    pub(super) fn set(world: &World<'_>, scenario: Scenario, seed: u64, random: &mut Rng) -> Stage {
        let database = world.server.database_in(scenario.server_encoding);
        let files = scenario.records(random);
        let beside = Beside::records(&scenario, scenario.stuff(), random);
        // Indexes in a tablespace of their own are not carried over to another table: the whole database is
        // there instead.
        let is_whole = scenario.mode.arrival == Arrival::Replace || random.u8(..4) == 0;
        let tablespace = if is_whole { "" } else { world.tablespace() };
        database.sql(&format!(
            "GRANT ALL ON DATABASE {0} TO {1}; ALTER DATABASE {0} SET default_tablespace = '{tablespace}'",
            database.name(),
            scenario.role
        ));
        if is_whole {
            world.take_to_small_disk(&database);
        }
        let all: Vec<&Records> = files.iter().chain(&beside).collect();
        scenario.places.iter().for_each(|place| furnish(&database, &scenario, place, &all));
        let content = |file: &Records| (file.name.clone(), scenario.written.file(&file.records, file.codec));
        let mut stage = Stage {
            refused: Refused::of(&files, &scenario),
            mended: mended::of(&files),
            contents: files.iter().map(content).collect(),
            beside: beside.iter().map(|file| file.name.clone()).collect(),
            made_at: Vec::new(),
            files: Files::new(),
            bucket: format!("torture-{}-{seed}", world.server.major()),
            ledger: format!("\"{}\"", scenario.knobs.ledger.replace('"', "\"\"")),
            scenario,
            database,
            commands: AtomicUsize::new(0),
        };
        (0..stage.contents.len()).for_each(|no| stage.put(world, no, &stage.contents[no].1));
        for file in &beside {
            let bytes = stage.scenario.written.file(&file.records, file.codec);
            stage.put_named(world, stage.scenario.way.of_beside(), &file.name, &bytes);
        }
        if stage.scenario.way == Way::Folder {
            let made_at = |no| stage.path(no).metadata().unwrap().modified().unwrap();
            stage.made_at = (0..stage.contents.len()).map(made_at).collect();
        }
        stage
    }

    /// Writes a file or an object.
    pub(super) fn put(&self, world: &World<'_>, no: usize, bytes: &[u8]) {
        self.put_named(world, self.scenario.way, &self.contents[no].0, bytes);
    }

    /// What can be read but once is brought to each run by itself.
    fn put_named(&self, world: &World<'_>, way: Way, name: &str, bytes: &[u8]) {
        match way {
            Way::Bucket => world.s3.put(&self.bucket, name, bytes),
            Way::Folder => drop(self.files.put(name, bytes)),
            Way::Input | Way::Pipes => {}
        }
    }

    /// Makes a file what it was, its time of change included.
    pub(super) fn put_back(&self, world: &World<'_>, no: usize) {
        self.put(world, no, &self.contents[no].1);
        if self.scenario.way == Way::Folder {
            let file = File::options().append(true).open(self.path(no)).unwrap();
            file.set_modified(self.made_at[no]).unwrap();
        }
    }

    fn path(&self, no: usize) -> PathBuf {
        self.files.path().join(&self.contents[no].0)
    }

    /// The exit code of `howdah check`.
    pub(super) fn check_code(&self) -> i32 {
        if self.refused.told > 0 { 3 } else { 0 }
    }

    /// The exit code of a load with nothing left to do.
    pub(super) fn done_code(&self) -> i32 {
        if self.refused.count > 0 { 3 } else { 0 }
    }

    /// How the command reaches the database: as an ordinary role, through the proxy.
    fn to(&self, world: &World<'_>) -> String {
        self.database
            .conninfo_through(&world.to_server)
            .replace("user=postgres", &format!("user={}", self.scenario.role))
    }

    /// `howdah load` of all files.
    pub(super) fn load(&self, world: &World<'_>) -> HowdahCommand {
        self.command("load", &self.scenario, &self.scenario.sources(), world)
    }

    /// `howdah load` of the files of a second load, if there is one.
    pub(super) fn load_beside(&self, world: &World<'_>) -> Option<HowdahCommand> {
        let Some(Beside::Other(knobs)) = &self.scenario.beside else { return None };
        let scenario = Scenario { knobs: *knobs.clone(), ..self.scenario.clone() };
        Some(self.command("load", &scenario, &self.beside, world))
    }

    /// The same without `--verify`.
    pub(super) fn load_unverified(&self, world: &World<'_>) -> HowdahCommand {
        let knobs = Knobs { verify: None, ..self.scenario.knobs.clone() };
        let scenario = Scenario { knobs, ..self.scenario.clone() };
        self.command("load", &scenario, &scenario.sources(), world)
    }

    /// `howdah check` of all files, with the options of the load but for those of rows that are stored.
    pub(super) fn check(&self, world: &World<'_>) -> HowdahCommand {
        let (indexes, triggers) = ("auto", "keep");
        let knobs =
            Knobs { verify: None, after: None, tune: None, indexes, triggers, ..self.scenario.knobs.clone() };
        let scenario = Scenario { knobs, ..self.scenario.clone() };
        self.command("check", &scenario, &scenario.sources(), world).arg("--json")
    }

    fn command(
        &self,
        name: &str,
        scenario: &Scenario,
        sources: &[String],
        world: &World<'_>,
    ) -> HowdahCommand {
        let mut options = scenario.arguments();
        options.retain(|word| name != "check" || word != "--freeze");
        let command = howdah(name).args(["--to", &self.to(world)]).args(options);
        let command = command.envs(self.environment(world));
        // Two loads would write the same file.
        let is_written = scenario.knobs.reject_file && name == "load" && sources != self.beside;
        let reject_file = is_written.then(|| format!("--reject-file={}", self.reject_file().display()));
        let command = command.args(reject_file);
        let way = if sources == self.beside { scenario.way.of_beside() } else { scenario.way };
        let is_named = name == "load" && way.is_once();
        let command = command.args(if is_named { way.arguments() } else { &[] });
        sources.iter().enumerate().fold(command, |command, (no, name)| {
            let path = self.files.path().join(name);
            match way {
                Way::Folder => command.arg(path),
                Way::Bucket => command.arg(format!("s3://{}/{name}", self.bucket)),
                Way::Input => command.arg(INPUT).stdin(&*self.contents[no].1),
                Way::Pipes => command.arg(&path).fifo(path, &*self.contents[no].1),
            }
        })
    }

    /// What a command finds around itself. Each is given by somebody else than the one before: a job goes on
    /// as it began.
    fn environment(&self, world: &World<'_>) -> Vec<(String, String)> {
        let no = self.commands.fetch_add(1, Ordering::Relaxed);
        let ways = WAYS_OF_PEOPLE[no % WAYS_OF_PEOPLE.len()].iter();
        let ways = ways.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        ways.chain(world.s3.env_through(&world.to_s3)).chain(world.clock_env()).collect()
    }

    /// Where a load writes what it has left out.
    pub(super) fn reject_file(&self) -> PathBuf {
        self.files.path().join(super::reject_file::NAME)
    }

    /// `howdah load` of what a job has rejected, mended by now.
    pub(super) fn load_mended(&self, world: &World<'_>, job: &str, path: &Path) -> HowdahCommand {
        let Knobs { ledger, patient, .. } = self.scenario.knobs;
        let retry_for = if patient { "5min" } else { "0s" };
        let load = howdah("load").args(["--rejects", job, "--to", &self.to(world), "--ledger", ledger]);
        load.args(["--retry-for", retry_for]).arg(path).envs(world.clock_env())
    }

    /// `howdah status` of a job.
    pub(super) fn status(&self, world: &World<'_>, job: &str) -> HowdahCommand {
        howdah("status").args([job, "--to", &self.to(world), "--ledger", self.scenario.knobs.ledger])
    }

    /// `howdah restore`.
    pub(super) fn restore(&self, world: &World<'_>) -> HowdahCommand {
        howdah("restore").args(["--to", &self.to(world), "--ledger", self.scenario.knobs.ledger])
    }

    /// The condition that a job is the one of the files, and not of the second load.
    pub(super) fn is_of_files(&self) -> String {
        format!(
            "job_id NOT IN (SELECT job_id FROM {}.file WHERE location LIKE '%{}.part%')",
            self.ledger,
            super::beside::NAME
        )
    }

    /// `howdah resume` of the job; `None` before it is in the ledger, and where nobody would bring its bytes.
    pub(super) fn resume(&self, world: &World<'_>) -> Option<HowdahCommand> {
        if self.scenario.way.is_once() {
            return None;
        }
        let jobs = format!("SELECT job_id FROM {}.job WHERE {}", self.ledger, self.is_of_files());
        let jobs = self.database.try_rows(&jobs).ok()?;
        let job = jobs.first()?[0].clone()?;
        let resume =
            howdah("resume").args([&job, "--to", &self.to(world), "--ledger", self.scenario.knobs.ledger]);
        Some(resume.envs(self.environment(world)))
    }

    /// The command with this verb, and the exit code of a run with nothing left to do. A job that is not in
    /// the ledger yet cannot be resumed, nor one that reads from pipes: it is loaded.
    pub(super) fn run(&self, verb: Verb, world: &World<'_>) -> Run {
        let (verb, command, done_code) = match verb {
            Verb::Load => (verb, self.load(world), self.done_code()),
            Verb::Check => (verb, self.check(world), self.check_code()),
            Verb::Restore => (verb, self.restore(world), 0),
            Verb::Resume => match self.resume(world) {
                Some(resume) => (verb, resume, self.done_code()),
                None => (Verb::Load, self.load(world), self.done_code()),
            },
        };
        Run { command, verb, done_code }
    }

    /// Sessions of the load.
    pub(super) fn sessions(&self) -> u64 {
        let sql = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE usename = '{}' AND datname = current_database()",
            self.scenario.role
        );
        self.database.value(&sql).parse().unwrap()
    }

    /// A count out of the ledger; 0 while there is none, or no server.
    pub(super) fn ledger_count(&self, from: &str) -> u64 {
        let counted = self.database.try_rows(&format!("SELECT count(*) FROM {}.{from}", self.ledger));
        counted.ok().and_then(|rows| rows[0][0].as_deref()?.parse().ok()).unwrap_or(0)
    }

    /// Indexes and constraints that nobody may rely on.
    pub(super) fn invalid(&self) -> Vec<String> {
        let ledger = self.scenario.knobs.ledger.replace('\'', "''");
        let rows = self.database.rows(&format!(
            "SELECT indexrelid::regclass::text FROM pg_index JOIN pg_class c ON c.oid = indexrelid \
                 WHERE NOT (indisvalid AND indisready AND indislive) AND relnamespace::regnamespace::text <> quote_ident('{ledger}') \
             UNION ALL SELECT format('%s of %s', conname, conrelid::regclass) FROM pg_constraint WHERE NOT convalidated \
             ORDER BY 1"
        ));
        rows.into_iter().filter_map(|mut row| row[0].take()).collect()
    }

    /// The last value of the sequence that numbers the rows, where one does.
    pub(super) fn last_number(&self, place: &str) -> Option<i64> {
        if !self.scenario.shape.is_numbered() {
            return None;
        }
        let sql = format!(
            "SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence('{place}.t', 'k')::regclass), 0)"
        );
        self.database.value(&sql).parse().ok()
    }

    /// What `pg_dump --schema-only` says of everything but the ledger and tables that the load makes.
    pub(super) fn schema(&self) -> String {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/servers/psql/bin/pg_dump");
        let mut command = Command::new(program);
        command.args([
            "--schema-only",
            "--exclude-schema",
            &self.ledger,
            "--dbname",
            &self.database.conninfo(),
        ]);
        let made = self.scenario.shape.made();
        for place in self.scenario.places.iter().filter(|_| made.is_some()) {
            command.arg(format!("--exclude-table={place}.{}", made.unwrap_or_default()));
        }
        let out = command.output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let text = String::from_utf8(out.stdout).unwrap();
        let is_evolved = self.scenario.shape.is_evolved();
        let lines = text.lines().filter(|line| {
            // The key that guards against hostile servers is another one each time.
            let is_key = line.starts_with("\\restrict") || line.starts_with("\\unrestrict");
            // Columns come, or get the types that the load has found.
            let is_column = is_evolved && line.starts_with("    ");
            !is_key && !is_column
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}
