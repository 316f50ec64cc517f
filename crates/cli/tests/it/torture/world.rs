//! What stands around the loads of one server: disks that can be full, proxies, objects, and a clock that
//! jumps.

use howdah_testkit::{Clock, Database, Fault, Proxy, S3, Server, ServerOptions, SmallDisk};
use std::time::Duration;

/// The role that loads: it owns the tables, and is no superuser.
pub(super) const LOADER: &str = "loader";
/// Another one that is a superuser, and so may change settings of the server.
pub(super) const CHIEF: &str = "chief";
/// Each way through the proxy takes so long, or loads would be over before anything strikes.
const DELAY: Duration = Duration::from_millis(5);

/// What can be had on a machine only where it allows so.
pub(super) struct Means {
    pub(super) data_disk: Option<SmallDisk>,
    pub(super) wal_disk: Option<SmallDisk>,
    pub(super) clock: Option<Clock>,
}

impl Means {
    pub(super) fn find() -> Means {
        Means { data_disk: SmallDisk::mount(), wal_disk: SmallDisk::mount(), clock: Clock::new() }
    }
}

/// One server and its surroundings.
pub(super) struct World<'a> {
    pub(super) server: &'a Server,
    pub(super) s3: &'a S3,
    pub(super) means: &'a Means,
    pub(super) to_server: Proxy,
    pub(super) to_s3: Proxy,
}

/// A server for a campaign; it reads the clock and keeps WAL on the small disk, where there are such.
pub(super) fn server(major: u32, means: &Means) -> Server {
    let mut options = ServerOptions::default()
        .set("max_connections", "24")
        .set("max_prepared_transactions", "20")
        .set("deadlock_timeout", "50ms")
        // Or WAL of hours would pile up in memory.
        .set("max_wal_size", "64MB")
        .set("min_wal_size", "32MB");
    options.environment = means.clock.iter().flat_map(Clock::env).collect();
    let server = Server::private(major, &options);
    if let Some(disk) = &means.wal_disk {
        server.keep_wal_in(&disk.path());
    }
    let admin = server.database();
    admin.sql(&format!("CREATE ROLE {LOADER} LOGIN; CREATE ROLE {CHIEF} LOGIN SUPERUSER"));
    if let Some(disk) = &means.data_disk {
        admin.sql(&format!("CREATE TABLESPACE small LOCATION '{}'", disk.path().display()));
        admin.sql(&format!("GRANT CREATE ON TABLESPACE small TO {LOADER}"));
    }
    drop(admin);
    server
}

impl<'a> World<'a> {
    pub(super) fn new(server: &'a Server, s3: &'a S3, means: &'a Means) -> World<'a> {
        let world =
            World { server, s3, means, to_server: Proxy::before_server(server), to_s3: Proxy::before_s3(s3) };
        world.heal();
        world
    }

    /// Where tables are kept; empty for the usual place.
    pub(super) fn tablespace(&self) -> &'static str {
        if self.means.data_disk.is_some() { "small" } else { "" }
    }

    /// Keeps all of the database there: the ledger, the catalogs, and what goes with a table that takes
    /// another one's place.
    pub(super) fn take_to_small_disk(&self, database: &Database) {
        let tablespace = self.tablespace();
        if !tablespace.is_empty() {
            let sql = format!("ALTER DATABASE {} SET TABLESPACE {tablespace}", database.name());
            self.server.database().sql(&sql);
        }
    }

    /// The environment of a process that reads the clock.
    pub(super) fn clock_env(&self) -> Vec<(String, String)> {
        self.means.clock.iter().flat_map(Clock::env).collect()
    }

    /// Nothing is broken any more; the way to the server is only slow.
    pub(super) fn heal(&self) {
        for disk in [&self.means.data_disk, &self.means.wal_disk].into_iter().flatten() {
            disk.relieve();
        }
        if let Some(clock) = &self.means.clock {
            clock.jump(0);
        }
        self.to_s3.set(Fault::Pass);
        self.to_server.set(Fault::Delay(DELAY));
        self.server.revive();
    }

    /// All settings, of the server, of databases and of roles.
    pub(super) fn settings(&self, database: &Database) -> Vec<String> {
        let sql = "SELECT name || '=' || setting FROM pg_settings \
                 WHERE name NOT LIKE 'transaction%' AND name NOT IN ('application_name', 'client_encoding') \
             UNION ALL SELECT concat_ws(' ', setdatabase, setrole, setconfig) FROM pg_db_role_setting \
                 WHERE setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database())) \
             ORDER BY 1";
        let rows = database.rows(sql).into_iter().filter_map(|mut row| row[0].take());
        let written = std::fs::read_to_string(self.server.data_dir().join("postgresql.auto.conf"));
        rows.chain(written.ok()).collect()
    }
}
