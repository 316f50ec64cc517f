//! A ledger that has come from another server by a dump says what was set there, and nothing of this one.

use super::server::{auto_conf, prepared};
use super::{held, load};
use crate::gate::{remove_gate, shut_gate_behind};
use crate::indexes::dumped::dumped_into;
use crate::indexes::{CHUNKS, restore, wait_for};
use crate::scene::{END_SESSIONS, PATIENCE, csv};
use howdah_testkit::{Server, ServerOptions};

#[test]
fn a_server_that_no_load_has_tuned_stays_as_it_is_where_a_ledger_comes_from_another() {
    for major in [13, 18] {
        let (server, database, files, source) = prepared(major);
        database.sql("ALTER SYSTEM SET checkpoint_timeout = '7min'");
        database.sql("SELECT pg_reload_conf()");
        shut_gate_behind(&database, 1);
        let mut running = load(&database, &source, "server").spawn();
        assert!(wait_for(&database, &mut running, CHUNKS, 1), "{}", running.stderr_so_far());
        let set = auto_conf(&server);
        running.kill();
        database.sql(END_SESSIONS);
        remove_gate(&database);
        assert!(held(&database) > 0 && set.iter().any(|line| line.starts_with("checkpoint_timeout")));

        // Its owner has chosen what the load has set there.
        let other = Server::private(major, &ServerOptions::default());
        let [restored, settled, resumed] = [(); 3].map(|()| other.database());
        for line in &set {
            restored.sql(&format!("ALTER SYSTEM SET {line}"));
        }
        restored.sql("SELECT pg_reload_conf()");
        let before = auto_conf(&other);
        [&restored, &settled, &resumed].iter().for_each(|copy| dumped_into(&database, copy));
        let told = "of the server stays as it is: it was set in another database";
        let done = restore(&restored).run(PATIENCE).expect_code(0).stderr;
        assert!(done.contains(told), "{done}");
        assert_eq!((auto_conf(&other), held(&restored)), (before.clone(), 0), "PostgreSQL {major}\n{done}");
        let more = files.put("more.csv", &csv(47, 90_000, 10));
        let done = load(&settled, &more, "table").run(PATIENCE).expect_code(0).stderr;
        assert!(done.contains(told), "{done}");
        assert_eq!((auto_conf(&other), held(&settled)), (before, 0), "PostgreSQL {major}\n{done}");

        // The job itself sets what it finds there, and puts that back.
        for name in ["checkpoint_timeout", "max_wal_size", "bgwriter_delay"] {
            resumed.sql(&format!("ALTER SYSTEM RESET {name}"));
        }
        resumed.sql("ALTER SYSTEM SET checkpoint_timeout = '9min'");
        resumed.sql("SELECT pg_reload_conf()");
        let before = auto_conf(&other);
        let done = load(&resumed, &source, "server").run(PATIENCE).expect_code(0).stderr;
        assert!(done.contains("set for the whole server while rows come"), "{done}");
        assert_eq!((auto_conf(&other), held(&resumed)), (before, 0), "PostgreSQL {major}\n{done}");
        restore(&database).run(PATIENCE).expect_code(0);
    }
}
