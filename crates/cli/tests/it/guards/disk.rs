//! Disks that fill up: small file systems for WAL and for a tablespace, which only root can mount.

use super::{PLAIN, load, wait_for_words};
use crate::indexes::pause;
use crate::scene::{Files, PATIENCE, csv, howdah};
use howdah_testkit::{Server, ServerOptions, SmallDisk};
use std::path::{Path, PathBuf};
use std::process::Command;

const ROWS: u64 = 20_000;

/// A file system in memory, unmounted when dropped.
pub(super) struct Small(PathBuf);

impl Small {
    /// None where this is not allowed.
    fn mount(folder: &Path, size: &str) -> Option<Small> {
        std::fs::create_dir_all(folder).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size},mode=0777"), "howdah-test"])
            .arg(folder)
            .output();
        mounted.is_ok_and(|out| out.status.success()).then(|| Small(folder.to_owned()))
    }

    /// Leaves no room, or makes it again.
    fn fill(&self, bytes: usize) {
        std::fs::write(self.0.join("filler"), vec![1; bytes]).unwrap();
    }

    /// Leaves so much.
    pub(super) fn fill_but(&self, left_bytes: usize) {
        let told = Command::new("df").args(["-B1", "--output=avail"]).arg(&self.0).output().unwrap().stdout;
        let free_bytes: usize =
            String::from_utf8(told).unwrap().lines().last().unwrap().trim().parse().unwrap();
        self.fill(free_bytes - left_bytes);
    }

    pub(super) fn clear(&self) {
        std::fs::remove_file(self.0.join("filler")).unwrap();
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// A server whose WAL is on a disk of 256 MB.
pub(super) fn prepared() -> Option<(Small, Server)> {
    let server = Server::private(15, &ServerOptions::default().set("max_wal_size", "64MB"));
    let small = Small::mount(&server.data_dir().parent().unwrap().join("small"), "256m")?;
    server.stop_fast();
    let (wal, elsewhere) = (server.data_dir().join("pg_wal"), small.0.join("pg_wal"));
    assert!(Command::new("cp").args(["-a"]).args([&wal, &elsewhere]).status().unwrap().success());
    std::fs::remove_dir_all(&wal).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &wal).unwrap();
    server.start();
    Some((small, server))
}

#[test]
fn a_disk_that_is_nearly_full_is_waited_for_and_then_given_up() {
    // Only root can mount: nobody else can make a disk that is small enough to fill.
    let Some((small, server)) = prepared() else { return };
    let database = server.database();
    database.sql(PLAIN);
    database.sql(&pause(0.1));
    let files = Files::new();
    let source = files.put("a.csv", &csv(61, 1, ROWS));
    let load = load(&database, &source);
    small.fill(190 << 20);
    let mut running = load.spawn();
    wait_for_words(&mut running, "paused: the server's disk for WAL has");
    let stored = database.value("SELECT count(*) FROM t");
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert_eq!(database.value("SELECT count(*) FROM t"), stored, "it goes on while it says that it pauses");
    small.clear();
    let told = running.wait(PATIENCE).expect_code(0).stderr;
    assert!(told.contains("the load goes on, after a pause of"), "{told}");
    assert!(told.contains("\npaused for "), "{told}");
    assert_eq!(database.value("SELECT count(*) FROM t"), ROWS.to_string());

    small.fill(190 << 20);
    database.sql("TRUNCATE t; TRUNCATE howdah.job CASCADE; TRUNCATE howdah.chunk");
    let told = load.clone().args(["--pause-for", "1s"]).run(PATIENCE).expect_code(1).stderr;
    assert!(told.contains("are kept free: the load has paused for 1 s and gives up"), "{told}");
    small.clear();
    load.run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(DISTINCT id) FROM t"), ROWS.to_string());
    drop(server);
}

#[test]
fn an_index_build_is_broken_off_before_it_fills_the_disk_of_wal_and_begun_once_more() {
    let Some((small, server)) = prepared() else { return };
    let database = server.database();
    let slow = |ms: u32| {
        format!(
            "CREATE OR REPLACE FUNCTION slow(i bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS \
             $$ BEGIN PERFORM pg_sleep({ms} / 1000.0); RETURN i; END $$"
        )
    };
    database.sql(&format!("{PLAIN}; {}; CREATE INDEX t_slow ON t (slow(id))", slow(20)));
    let files = Files::new();
    let source = files.put("a.csv", &csv(63, 1, ROWS));
    let mut running = load(&database, &source).args(["--indexes", "rebuild"]).spawn();
    let building = "SELECT count(*) FROM pg_stat_progress_create_index WHERE relid = 't'::regclass";
    assert!(database.wait_for(building, 1, || running.is_running()), "{}", running.stderr_so_far());
    small.fill_but(20 << 20);
    wait_for_words(&mut running, "t_slow of public.t is broken off: the server's disk for WAL has ");
    let is_over = format!("SELECT 1 - ({building})");
    assert!(database.wait_for(&is_over, 1, || running.is_running()), "{}", running.stderr_so_far());
    database.sql(&slow(0));
    small.clear();
    let told = running.wait(PATIENCE).expect_code(0).stderr;
    assert!(told.contains("the load goes on, after a pause of"), "{told}");
    assert!(told.contains("the index t_slow of public.t is built, in"), "{told}");
    drop(server);
}

#[test]
fn the_disk_of_a_partitions_tablespace_is_watched_and_what_is_not_watched_is_told() {
    let Some(small) = SmallDisk::mount() else { return };
    let server = Server::private(18, &ServerOptions::default());
    let database = server.database();
    let fast = small.path().display().to_string();
    database.sql(&format!("CREATE TABLESPACE \"Fast\" LOCATION '{fast}'"));
    database.sql(&format!(
        "CREATE ROLE plain LOGIN; GRANT CREATE ON DATABASE {} TO plain; {PLAIN} PARTITION BY RANGE (id); \
         CREATE TABLE leaf PARTITION OF t DEFAULT TABLESPACE \"Fast\"; GRANT INSERT ON t TO plain",
        database.name()
    ));
    let files = Files::new();
    let source = files.put("a.csv", &csv(62, 1, 1000));
    let to = database.conninfo().replace("user=postgres", "user=plain");
    small.fill(20 << 20);
    let load = howdah("load").args(["--format", "csv", "--header", "--table", "t", "--to", &to]);
    let mut running = load.clone().arg(&source).spawn();
    wait_for_words(&mut running, "paused: the server's disk for the tablespace Fast has");
    small.relieve();
    let told = running.wait(PATIENCE).expect_code(0).stderr;
    let unwatched =
        "the server's disks for data and WAL are not watched: this role may not read data_directory";
    assert_eq!(told.matches(unwatched).count(), 1, "{told}");
    assert_eq!(database.value("SELECT count(*) FROM leaf"), "1000");
    assert!(!told.contains("the rows may not fit"), "{told}");

    // More than there is room for, which is said before the first row.
    let large = files.put("b.csv", &csv(62, 1, 1000).repeat((66 << 20) / 60_000));
    small.fill(40 << 20);
    let told = load.arg(&large).args(["--pause-for", "0s"]).run(PATIENCE).expect_code(1).stderr;
    let little =
        " MB to load, and the server's disk for the tablespace Fast has 40 MB left: the rows may not fit";
    assert!(told.contains(little), "{told}");
}

/// Of a server on another machine only its own word is known.
#[test]
fn a_disk_that_the_server_says_is_full_is_waited_for_and_then_given_up() {
    let Some(small) = SmallDisk::mount() else { return };
    let server = Server::private(18, &ServerOptions::default());
    let database = server.database();
    database.sql(&format!("CREATE TABLESPACE small LOCATION '{}'", small.path().display()));
    database.sql(&format!("{PLAIN} TABLESPACE small"));
    database.sql(&pause(0.05));
    let files = Files::new();
    let plain = csv(63, 1, 60_000);
    let source = files.put("a.csv", &plain);
    // An address that is not of this machine as far as the load can tell.
    let proxy = howdah_testkit::Proxy::before_server(&server);
    let to = database.conninfo_through(&proxy).replace("host=127.0.0.1", "host=0.0.0.0");
    let load = howdah("load").args(["--format", "csv", "--header", "--table", "t", "--to", &to]);
    let load = load.args(["--jobs", "2", "--chunk-size", "256kB"]).arg(&source);
    small.fill(1 << 20);
    let mut running = load.spawn();
    wait_for_words(&mut running, "the disks of a server on another machine are not watched");
    wait_for_words(&mut running, "paused: a disk of the server is full");
    std::thread::sleep(std::time::Duration::from_secs(1));
    small.relieve();
    let told = running.wait(PATIENCE).expect_code(0).stderr;
    assert!(told.contains("the load goes on, after a pause of"), "{told}");
    assert_eq!(database.value("SELECT count(DISTINCT id) FROM t"), "60000");

    database.sql("TRUNCATE t; TRUNCATE howdah.job CASCADE; TRUNCATE howdah.chunk");
    small.fill(1 << 20);
    let told = load.args(["--pause-for", "1s"]).run(PATIENCE).expect_code(1).stderr;
    assert!(told.contains("free or add disk space on the server"), "{told}");
    small.relieve();
}

/// The last chunk is refused soonest, and the limit is over for it first: those before it are still wanted
/// then.
#[test]
fn a_full_disk_is_waited_for_once_however_many_sessions_wait() {
    let database = Server::shared(18).database();
    let rows = 10_000;
    database.sql(&format!(
        "{PLAIN}; CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS \
         'BEGIN PERFORM pg_sleep(0.6 * (1 - NEW.id / {rows}.0)); RAISE disk_full; END'; \
         CREATE TRIGGER no_room BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION no_room()"
    ));
    let files = Files::new();
    let source = files.put("a.csv", &csv(64, 1, rows));
    let load = load(&database, &source).args(["--jobs", "6", "--pause-for", "1s"]);
    let told = load.run(PATIENCE).expect_code(1).stderr;
    assert_eq!(told.matches("paused: a disk of the server is full").count(), 1, "{told}");
    assert!(!told.contains("the load goes on"), "{told}");
}

/// Two tables on different disks: that one of them gets on says nothing of the other's.
#[test]
fn a_disk_that_is_full_for_one_table_is_waited_for_while_another_one_is_loaded() {
    let database = Server::shared(18).database();
    database.sql(
        "CREATE TABLE full_one (id bigint, part integer, amount numeric, note text); CREATE TABLE other (LIKE full_one); \
         CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE disk_full; END'; \
         CREATE TRIGGER no_room BEFORE INSERT ON full_one FOR EACH STATEMENT EXECUTE FUNCTION no_room(); \
         CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.3); RETURN NULL; END'; \
         CREATE TRIGGER slow BEFORE INSERT ON other FOR EACH STATEMENT EXECUTE FUNCTION slow()",
    );
    let files = Files::new();
    files.put("full_one.csv", &csv(65, 1, 10));
    files.put("other.csv", &csv(66, 1, 40_000));
    let load = howdah("load").args(["--format", "csv", "--header", "--to", &database.conninfo()]);
    let load = load.args(["--jobs", "2", "--chunk-size", "64kB", "--pause-for", "6s"]);
    let told = load.arg(files.path().join("{table}.csv")).run(PATIENCE).expect_code(1).stderr;
    assert_eq!(told.matches("\npaused: a disk of the server is full").count(), 1, "{told}");
    assert!(!told.contains("the load goes on"), "{told}");
}

/// What a chunk under way is refused for is said while the load pauses, which may be for hours.
#[test]
fn a_load_that_fails_while_it_pauses_does_not_wait_for_the_disk() {
    let Some(small) = SmallDisk::mount() else { return };
    let server = Server::private(18, &ServerOptions::default());
    let database = server.database();
    database.sql(&format!("CREATE TABLESPACE small LOCATION '{}'", small.path().display()));
    database.sql(&format!(
        "{PLAIN} PARTITION BY RANGE (id); CREATE TABLE leaf PARTITION OF t DEFAULT TABLESPACE small; \
         CREATE TABLE gate AS SELECT 1; \
         CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS \
             'BEGIN WHILE EXISTS (SELECT FROM gate) LOOP PERFORM pg_sleep(0.01); END LOOP; \
              RAISE EXCEPTION ''none is taken''; END'; \
         CREATE TRIGGER refuse BEFORE INSERT ON leaf FOR EACH ROW EXECUTE FUNCTION refuse()"
    ));
    let files = Files::new();
    let source = files.put("a.csv", &csv(64, 1, ROWS));
    let mut running = load(&database, &source).args(["--jobs", "2", "--pause-for", "1h"]).spawn();
    let sleeps =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'";
    assert!(database.wait_for(sleeps, 1, || running.is_running()), "{}", running.stderr_so_far());
    // Not so little that what is under way is broken off.
    small.fill(48 << 20);
    wait_for_words(&mut running, "paused: the server's disk for the tablespace small has");
    database.sql("DELETE FROM gate");
    let told = running.wait(PATIENCE).expect_code(1).stderr;
    assert!(told.contains("a trigger or function raised an error"), "{told}");
}
