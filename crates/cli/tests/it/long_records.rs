//! Records longer than a chunk buffer, at every cut of a file that is read by ranges.

use crate::scene::{Files, PATIENCE, Scene};
use howdah_testkit::Server;
use std::fmt::Write;

/// Two ranges whose last records outgrow their buffers share one reserve; the later must not take it first.
#[test]
fn long_records_at_every_cut_do_not_wait_for_each_other() {
    let mut text = "id,part,amount,note\n".to_owned();
    for id in 0..300 {
        let _ = writeln!(text, "{id},1,1.5,{}", "x".repeat(90_000 + id));
    }
    let files = Files::new();
    let path = files.put("long.csv", text.as_bytes());
    let server = Server::shared(15);
    for round in 0..3 {
        let scene = Scene::new(server, &[text.as_bytes()]);
        scene.load().args(["--chunk-size", "64kB", "--jobs", "2"]).arg(&path).run(PATIENCE).expect_code(0);
        scene.assert_exact(&format!("round {round}"));
    }
}
