//! The ledger is gone when what a load has dropped is to be put back.

use crate::scene::{Files, PATIENCE, Scene, csv};
use howdah_testkit::Server;
use std::time::Duration;

/// The journal goes with the ledger; the load that has written it knows all the same what it has dropped.
#[test]
fn what_was_dropped_is_told_where_somebody_drops_the_ledger_meanwhile() {
    let plain = csv(57, 1, 20_000);
    let files = Files::new();
    let scene = Scene::new(Server::shared(18), &[&plain]);
    scene.database.sql("ALTER TABLE t ADD PRIMARY KEY (id); CREATE INDEX t_part ON t (part)");
    scene.slow_down("BEFORE", Duration::from_millis(100));
    let load = scene.load().args(["--indexes", "rebuild", "--chunk-size", "64kB", "--jobs", "1"]);
    let mut running = load.arg(files.put("a.csv", &plain)).spawn();
    assert!(scene.wait_for_chunks(2, || running.is_running()), "{}", running.stderr_so_far());
    scene.database.sql("DROP SCHEMA howdah CASCADE");
    let told = running.wait(PATIENCE).expect_code(1).stderr;
    let all =
        ["the index t_part of public.t", "the index t_pkey of public.t", "the constraint t_pkey of public.t"];
    assert!(all.iter().all(|name| told.contains(name)), "{told}");
    let by_hand =
        told.split("run what is still missing of this by hand: ").nth(1).and_then(|rest| rest.lines().next());
    scene.database.sql(by_hand.unwrap_or_else(|| panic!("{told}")));
    let indexes = "SELECT count(*) FROM pg_index WHERE indrelid = 't'::regclass AND indisvalid";
    assert_eq!(scene.database.value(indexes), "2", "{told}");
}
