//! `--evolve widen`: values that a column would refuse, or store in part alone, though they look like its
//! own.

use crate::auto::{load, shape};
use crate::scene::{Files, PATIENCE};
use howdah_testkit::Server;

/// As SAS, Fortran and R write whole numbers, which integers do not take.
#[test]
fn a_point_with_nothing_behind_it_makes_integers_numeric() {
    let mut late = "id,n\n".to_owned();
    (0..20_000).for_each(|id| late.push_str(&format!("{id},{}\n", if id == 15_000 { "5." } else { "7" })));
    let files = Files::new();
    let (early, late) =
        (files.put("early.csv", b"id,n\n1,7\n15000,5.\n"), files.put("late.csv", late.as_bytes()));
    let database = Server::shared(15).database();
    for source in [&early, &late] {
        database.sql("DROP TABLE IF EXISTS t; CREATE TABLE t (id int, n int)");
        let load = load(&database).args(["--table", "t", "--evolve", "widen", "--chunk-size", "64kB"]);
        load.arg(source).run(PATIENCE).expect_code(0);
        assert_eq!(shape(&database, "t"), "id integer, n numeric");
        assert_eq!(database.value("SELECT n FROM t WHERE id = 15000"), "5");
    }
}

#[test]
fn a_column_of_times_does_not_leave_out_the_days_of_its_values() {
    let mut late = "id,n\n".to_owned();
    (0..20_000).for_each(|id| {
        late.push_str(&format!("{id},{}10:00:00\n", if id == 15_000 { "2024-01-02 " } else { "" }));
    });
    let files = Files::new();
    let (early, late) = (
        files.put("early.csv", b"id,n\n1,10:00:00\n15000,2024-01-02 10:00:00\n"),
        files.put("late.csv", late.as_bytes()),
    );
    let days = files.put("days.csv", b"id,n\n1,2024-01-02 10:00:00\n15000,2024-01-02 10:00:00\n");
    let zones = files.put("zones.csv", b"id,n\n15000,2024-01-02 10:00:00+01:00\n");
    let database = Server::shared(15).database();
    let into_times = || database.sql("DROP TABLE IF EXISTS t; CREATE TABLE t (id int, n time)");
    for (source, stored) in [
        (&early, "2024-01-02 10:00:00"),
        (&late, "2024-01-02 10:00:00"),
        (&days, "2024-01-02 10:00:00"),
        (&zones, "2024-01-02 10:00:00+01:00"),
    ] {
        into_times();
        let load = load(&database).args(["--table", "t", "--evolve", "widen", "--chunk-size", "64kB"]);
        load.arg(source).run(PATIENCE).expect_code(0);
        assert_eq!(shape(&database, "t"), "id integer, n text");
        assert_eq!(database.value("SELECT n FROM t WHERE id = 15000"), stored);
    }
    // Without it the server's own COPY stores as much, and that is told.
    into_times();
    let told =
        load(&database).args(["--table", "t", "--force"]).arg(&days).run(PATIENCE).expect_code(0).stderr;
    assert!(told.contains("n is of a type that leaves out the days of the values"), "{told}");
    assert_eq!(database.value("SELECT DISTINCT n FROM t"), "10:00:00");
}
