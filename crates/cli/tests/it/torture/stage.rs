//! A database with a scenario's table in it, its files, and the command that loads them.

use super::data;
use super::mode::Mode;
use super::scenario::Scenario;
use super::world::{LOADER, World};
use crate::scene::{Files, howdah};
use fastrand::Rng;
use howdah_testkit::{Database, HowdahCommand};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// What a load of this scenario needs, and what it must come to.
pub(super) struct Stage {
    pub(super) scenario: Scenario,
    pub(super) database: Database,
    pub(super) bucket: String,
    /// The bytes of each file.
    pub(super) contents: Vec<Vec<u8>>,
    /// When each file was written, if they are files.
    made_at: Vec<SystemTime>,
    files: Files,
    /// The ledger's schema, quoted.
    pub(super) ledger: String,
}

impl Stage {
    pub(super) fn set(world: &World<'_>, scenario: Scenario, seed: u64, random: &mut Rng) -> Stage {
        let database = world.server.database();
        // Indexes in a tablespace of their own are not carried over to another table.
        let tablespace = if matches!(scenario.mode, Mode::Replace { .. }) { "" } else { world.tablespace() };
        database.sql(&format!(
            "GRANT ALL ON DATABASE {0} TO {LOADER}; GRANT ALL ON SCHEMA public TO {LOADER}; \
             ALTER DATABASE {0} SET default_tablespace = '{1}'",
            database.name(),
            tablespace
        ));
        let records = scenario.records(random);
        database.sql(&format!("SET ROLE {LOADER}; {}", scenario.shape.sql()));
        for records in &records {
            let copy = "COPY model.wanted FROM STDIN (FORMAT csv, HEADER true, ENCODING 'UTF8')";
            database.copy_in(copy, data::model(records)).unwrap();
        }
        database.sql(&format!("SET ROLE {LOADER}; {}", scenario.mode.prepare_sql()));
        let (files, bucket) = (Files::new(), format!("torture-{}-{seed}", world.server.major()));
        let contents: Vec<Vec<u8>> = records
            .iter()
            .zip(&scenario.files)
            .map(|(records, codec)| data::file(records, scenario.format, scenario.charset, *codec))
            .collect();
        let ledger = format!("\"{}\"", scenario.ledger.replace('"', "\"\""));
        let mut stage = Stage { scenario, database, bucket, contents, made_at: Vec::new(), files, ledger };
        (0..stage.contents.len()).for_each(|no| stage.put(world, no, &stage.contents[no]));
        if !stage.scenario.in_bucket {
            let made_at = |no| stage.path(no).metadata().unwrap().modified().unwrap();
            stage.made_at = (0..stage.contents.len()).map(made_at).collect();
        }
        stage
    }

    /// Writes a file or an object.
    pub(super) fn put(&self, world: &World<'_>, no: usize, bytes: &[u8]) {
        let name = self.scenario.file_name(no);
        if self.scenario.in_bucket {
            world.s3.put(&self.bucket, &name, bytes);
        } else {
            self.files.put(&name, bytes);
        }
    }

    /// Makes a file what it was, its time of change included.
    pub(super) fn put_back(&self, world: &World<'_>, no: usize) {
        self.put(world, no, &self.contents[no]);
        if !self.scenario.in_bucket {
            let file = File::options().append(true).open(self.path(no)).unwrap();
            file.set_modified(self.made_at[no]).unwrap();
        }
    }

    fn path(&self, no: usize) -> PathBuf {
        self.files.path().join(self.scenario.file_name(no))
    }

    /// How the command reaches the database: as an ordinary role, through the proxy.
    fn to(&self, world: &World<'_>) -> String {
        self.database.conninfo_through(&world.to_server).replace("user=postgres", &format!("user={LOADER}"))
    }

    /// `howdah load` of all files.
    pub(super) fn load(&self, world: &World<'_>) -> HowdahCommand {
        self.command("load", &self.scenario, world)
    }

    /// The same without `--verify`.
    pub(super) fn load_unverified(&self, world: &World<'_>) -> HowdahCommand {
        self.command("load", &Scenario { verify: None, ..self.scenario.clone() }, world)
    }

    /// `howdah check` of all files, with the options of the load.
    pub(super) fn check(&self, world: &World<'_>) -> HowdahCommand {
        self.command("check", &self.scenario, world)
    }

    fn command(&self, name: &str, scenario: &Scenario, world: &World<'_>) -> HowdahCommand {
        let command = howdah(name).args(["--table", "t", "--to", &self.to(world)]);
        let command = command
            .args(scenario.arguments())
            .envs(world.s3.env_through(&world.to_s3))
            .envs(world.clock_env());
        (0..self.contents.len()).fold(command, |command, no| {
            if self.scenario.in_bucket {
                command.arg(format!("s3://{}/{}", self.bucket, self.scenario.file_name(no)))
            } else {
                command.arg(self.path(no))
            }
        })
    }

    /// `howdah restore`.
    pub(super) fn restore(&self, world: &World<'_>) -> HowdahCommand {
        howdah("restore").args(["--to", &self.to(world), "--ledger", self.scenario.ledger])
    }

    /// `howdah resume` of the one job there is; `None` before it is in the ledger.
    pub(super) fn resume(&self, world: &World<'_>) -> Option<HowdahCommand> {
        let jobs = self.database.try_rows(&format!("SELECT job_id FROM {}.job", self.ledger)).ok()?;
        let job = jobs.first()?[0].clone()?;
        let resume = howdah("resume").args([&job, "--to", &self.to(world), "--ledger", self.scenario.ledger]);
        Some(resume.envs(world.s3.env_through(&world.to_s3)))
    }

    /// A count out of the ledger; 0 while there is none, or no server.
    pub(super) fn ledger_count(&self, from: &str) -> u64 {
        let counted = self.database.try_rows(&format!("SELECT count(*) FROM {}.{from}", self.ledger));
        counted.ok().and_then(|rows| rows[0][0].as_deref()?.parse().ok()).unwrap_or(0)
    }

    /// What `pg_dump --schema-only` says of everything but the ledger.
    pub(super) fn schema(&self) -> String {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/servers/psql/bin/pg_dump");
        let out = Command::new(program)
            .args(["--schema-only", "--exclude-schema", &self.ledger, "--dbname", &self.database.conninfo()])
            .output()
            .unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let text = String::from_utf8(out.stdout).unwrap();
        // The key that guards against hostile servers is another one each time.
        let lines =
            text.lines().filter(|line| !line.starts_with("\\restrict") && !line.starts_with("\\unrestrict"));
        lines.collect::<Vec<_>>().join("\n")
    }
}
