//! Sources far away: links that break, servers that fail now and then, and answers that nothing tells from
//! one another.

use crate::scene::{Files, PATIENCE, Scene, csv, howdah};
use crate::web::{Request, Web};
use howdah_testkit::{S3, Server};
use std::time::Duration;

/// A range that is asked for again goes on where it broke, so that every byte is sent once, more or less.
#[test]
fn a_link_that_ends_every_answer_early_lets_a_file_through() {
    const CUT_BYTES: usize = 1 << 20;
    let plain = csv(91, 1, 120_000);
    let web = Web::new().cutting_at(CUT_BYTES);
    let scene = Scene::new(Server::shared(15), &[&plain]);
    let url = web.put("a.csv", &plain);
    let load = scene.load().args(["--chunk-size", "4MB", "--jobs", "2", "--retry-for", "2s"]).arg(url);
    let finished = load.run(PATIENCE).expect_code(0);
    scene.assert_exact(&finished.stderr);
    scene.assert_done(&finished.stderr);
    let requests = web.requests();
    let sent: usize = requests.iter().map(|request| request.sent).sum();
    assert!(plain.len() > 4 * CUT_BYTES && sent < plain.len() * 3 / 2, "{sent} bytes of {}", plain.len());
    let unbound = requests.iter().skip(1).find(|request| request.if_match.is_none());
    assert!(unbound.is_none(), "{unbound:?}");
}

/// Larger than a sample, so that they are read whole for the types of a new table.
fn parts(web: &Web, count: u64) -> (Vec<String>, u64) {
    const ROWS: u64 = 4_000;
    let put = |no: u64| web.put(&format!("part{no}.csv"), &csv(no, no * ROWS, ROWS));
    ((0..count).map(put).collect(), count * ROWS)
}

/// Files are scanned from their beginning on, by more than a window.
fn is_scan(request: &Request) -> bool {
    request.range.len() > 65_536 && request.range.start == 0
}

#[test]
fn a_store_that_fails_now_and_then_while_a_load_is_planned_is_asked_again() {
    let web = Web::new().refusing(|request, _| {
        // One early, and one much later.
        static FAILED: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());
        let mut failed = FAILED.lock().unwrap();
        let is_struck = ["/part1.csv", "/part5.csv"].contains(&request.path.as_str());
        let is_new = !failed.contains(&request.path);
        (is_scan(request) && is_struck && is_new).then(|| {
            failed.push(request.path.clone());
            503
        })
    });
    let (urls, rows) = parts(&web, 6);
    let database = Server::shared(15).database();
    let load = howdah("load").args(["--to", &database.conninfo(), "--create", "--table", "t"]).args(&urls);
    let finished = load.run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(*) FROM t"), rows.to_string());
    let requests = web.requests();
    let scans = requests.iter().filter(|request| is_scan(request)).count();
    // Each file for the plan and for the load, which a chunk of it is, and the two that failed.
    assert!(scans <= 14, "{scans} scans: the plan was begun again\n{}", finished.stderr);
}

#[test]
fn files_are_read_side_by_side_for_the_types_of_a_new_table() {
    let web = Web::new().delaying(Duration::from_millis(400));
    let (urls, _) = parts(&web, 12);
    let database = Server::shared(15).database();
    let plan = howdah("plan").args(["--to", &database.conninfo(), "--create", "--table", "t"]).args(&urls);
    plan.run(PATIENCE).expect_code(0);
    let scanned = web.requests().iter().filter(|request| is_scan(request)).count();
    assert_eq!(scanned, 12);
    assert!(web.large_at_once() > 3, "{} at once", web.large_at_once());
    assert!(web.looks_at_once() > 3, "{} at once", web.looks_at_once());
}

/// A border takes no request of its own, and a small file that the plan has seen is not fetched a second
/// time.
#[test]
fn nothing_is_asked_for_twice() {
    let web = Web::new();
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id bigint, part int, amount numeric, note text)");
    let load = |urls: &[String]| {
        let to = ["--to", &database.conninfo(), "--table", "t", "--chunk-size", "1MB"];
        let began = web.requests().len();
        howdah("load").args(to).args(urls).run(PATIENCE).expect_code(0);
        web.requests()[began..].to_vec()
    };
    let large = csv(1, 1, 80_000);
    let chunks = large.len().div_ceil(1 << 20);
    let asked = load(&[web.put("large.csv", &large)]);
    // Its size, three windows of the sample, and a chunk each.
    assert!(
        chunks > 4 && asked.len() <= 4 + chunks,
        "{} requests for {chunks} chunks: {asked:?}",
        asked.len()
    );
    let small: Vec<String> =
        (0..5).map(|no| web.put(&format!("{no}.csv"), &csv(no, no * 100, 100))).collect();
    let packed = web.put("packed.csv.gz", &crate::scene::gzip(&csv(9, 9_000, 100)));
    let asked = load(&[small, vec![packed]].concat());
    // Its size and all of it.
    assert_eq!(asked.len(), 12, "{asked:?}");
    assert_eq!(database.value("SELECT count(*) FROM t"), "80600");
}

/// Every night the same URL gives other rows.
#[test]
fn a_url_that_says_nothing_of_its_version_is_loaded_each_time() {
    let web = Web::new().without_tags();
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, name text)");
    let (first, second) = ("id,name\n1,fir\n2,oak\n", "id,name\n3,elm\n4,ash\n");
    let load = |options: &[&str], body: &str| {
        let url = web.put("export.csv", body.as_bytes());
        howdah("load").args(["--to", &database.conninfo(), "--table", "t"]).args(options).arg(url)
    };
    let ids = || database.value("SELECT string_agg(id::text, ',' ORDER BY id) FROM t");
    load(&[], first).run(PATIENCE).expect_code(0);
    load(&[], second).run(PATIENCE).expect_code(0);
    assert_eq!(ids(), "1,2,3,4");
    for mode in ["truncate", "replace"] {
        for (body, wanted) in [(first, "1,2"), (second, "3,4")] {
            load(&["--mode", mode], body).run(PATIENCE).expect_code(0);
            assert_eq!(ids(), wanted, "{mode}");
        }
    }
    // Who names the job says that it is the same.
    load(&["--job-id", "nightly"], first).run(PATIENCE).expect_code(0);
    let done = load(&["--job-id", "nightly"], first).run(PATIENCE).expect_code(1).stderr;
    assert!(done.contains("this job finished"), "{done}");
    let job = database.value("SELECT job_id FROM howdah.job WHERE job_id <> 'nightly' LIMIT 1");
    let resume = howdah("resume").args(["--to", &database.conninfo(), &job]);
    let done = resume.run(PATIENCE).expect_code(1).stderr;
    assert!(done.contains("this job finished"), "{done}");
    assert_eq!(ids(), "1,2,3,4");
}

/// What writers leave beside their files is skipped on disk and in buckets.
#[test]
fn hidden_files_are_not_loaded_from_anywhere() {
    let (files, s3) = (Files::new(), S3::start());
    for name in ["a.csv", ".a.csv.tmp", ".a.csv", ".old/a.csv", "b/.a.csv"] {
        let path = files.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "a\n1\n").unwrap();
        s3.put("hidden", &format!("out/{name}"), b"a\n1\n");
    }
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (a integer)");
    let folder = files.path().to_str().unwrap();
    for root in [folder, "s3://hidden/out"] {
        for pattern in ["", "/", "/*", "/*.csv", "/**", "/**/*.csv", "/{table}.csv", "/?a.csv", "/.a.csv"] {
            let location = format!("{root}{pattern}");
            let plan = howdah("plan").args(["--json", "--table", "t", "--to", &database.conninfo()]);
            let planned = plan.envs(s3.env()).arg(&location).run(PATIENCE);
            if pattern == "/?a.csv" {
                planned.expect_code(1);
                continue;
            }
            let told: serde_json::Value = serde_json::from_str(&planned.expect_code(0).stdout).unwrap();
            assert_eq!(told["files"].as_array().unwrap().len(), 1, "{location}: {}", told["files"]);
        }
    }
}
