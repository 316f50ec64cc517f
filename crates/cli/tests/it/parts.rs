//! Jobs of many files: parts without rows, and what a plan keeps of each.

use crate::memory::run_and_watch;
use crate::scene::{Files, PATIENCE, howdah};
use howdah_testkit::Server;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

/// Names that are numbers as the values are: only the other file tells that the first record is no row.
#[test]
fn a_part_that_holds_only_the_header_of_the_others_stores_no_row() {
    let files = Files::new();
    files.put("p1.csv", b"region,2022,2023,2024\nnorth,1,2,3\nsouth,4,5,6\n");
    files.put("p2.csv", b"region,2022,2023,2024\n");
    files.put("p3.csv", b"\"region\",2022,2023,2024\neast,7,8,9\n");
    files.put("p4.csv.gz", &crate::scene::gzip(b"region,2022,2023,2024\n"));
    let location = files.path().join("p*");
    let create = "CREATE TABLE sales (region text, \"2022\" int, \"2023\" int, \"2024\" int)";
    for (create, options) in [(create, &[][..]), ("", &["--create", "--names", "keep"])] {
        let database = Server::shared(15).database();
        database.sql(create);
        let load = howdah("load").args(["--to", &database.conninfo(), "--table", "sales"]).args(options);
        load.arg(&location).run(PATIENCE).expect_code(0);
        let rows = database.value("SELECT string_agg(region || \"2024\", ',' ORDER BY region) FROM sales");
        assert_eq!(rows, "east9,north3,south6", "{options:?}");
    }
}

/// A pipe is looked at twice by what was kept of it.
#[test]
fn a_pipe_that_holds_only_the_header_of_a_file_stores_no_row() {
    let files = Files::new();
    let part = files.put("p1.csv", b"region,2022,2023\nnorth,1,2\n");
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE sales (region text, \"2022\" int, \"2023\" int)");
    let load = howdah("load").args(["--to", &database.conninfo(), "--table", "sales"]).arg(part).arg("-");
    load.stdin(&b"region,2022,2023\n"[..]).run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(*) FROM sales"), "1");
}

/// What people look at is kept of some files: a job may have a hundred thousand.
#[test]
fn planning_keeps_no_sample_of_each_of_many_files() {
    let mut text = "id,name\n".to_owned();
    for id in 0..30 {
        let _ = writeln!(text, "{id},{}", "name ".repeat(1_600));
    }
    let files = Files::new();
    let first = files.put("first.csv", text.as_bytes());
    let folder = |count: usize| {
        let folder = files.path().join(count.to_string());
        std::fs::create_dir(&folder).unwrap();
        for no in 0..count {
            std::fs::hard_link(&first, folder.join(format!("{no}.csv"))).unwrap();
        }
        folder
    };
    let database = Server::shared(15).database();
    let plan = |location: &Path| {
        let plan = howdah("plan").args(["--to", &database.conninfo(), "--create", "--table", "t", "--quiet"]);
        let (finished, peak_bytes) = run_and_watch(&plan.arg(location));
        finished.expect_code(0);
        peak_bytes
    };
    // Two runs with the same files differ by up to 10 MB.
    let (some, many) = (plan(&folder(100)), plan(&folder(700)));
    let a_file = many.saturating_sub(some) / 600;
    assert!(a_file < 40 << 10, "{a_file} bytes a file: {some} for 100, {many} for 700");
}

fn fifos<const N: usize>(files: &Files) -> [std::path::PathBuf; N] {
    std::array::from_fn(|no| {
        let fifo = files.path().join(format!("{no}.csv"));
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        fifo
    })
}

/// As `tee` writes: nobody gets on while one of the pipes is full.
#[test]
fn pipes_that_one_writer_fills_in_turn_are_read_side_by_side() {
    const PIPES: usize = 20;
    let files = Files::new();
    let fifos: [_; PIPES] = fifos(&files);
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, name text)");
    let to = ["--to", &database.conninfo(), "--table", "t", "--format", "csv", "--jobs", "2"];
    let running = howdah("load").args(to).args(&fifos).spawn();
    let writer = std::thread::spawn(move || {
        let mut pipes = fifos.map(|fifo| std::fs::File::options().write(true).open(fifo).unwrap());
        for turn in 0..40 {
            let mut block = String::new();
            for row in 0..2_000 {
                let _ = writeln!(block, "{row},in turn {turn}");
            }
            // A load that has given up closes its pipes.
            if pipes.iter_mut().any(|pipe| pipe.write_all(block.as_bytes()).is_err()) {
                return;
            }
        }
    });
    running.wait(PATIENCE).expect_code(0);
    writer.join().unwrap();
    assert_eq!(database.value("SELECT count(*) FROM t"), (PIPES * 40 * 2_000).to_string());
}

/// One writer after the other, in a script: nothing but the second pipe's reader can say what is waited for.
#[test]
fn a_pipe_that_nobody_writes_to_is_said_to_be_waited_for() {
    let files = Files::new();
    let [first, second] = fifos(&files);
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int)");
    let to = ["--to", &database.conninfo(), "--table", "t", "--format", "csv"];
    let running = howdah("load").args(to).args([&first, &second]).spawn();
    let open = |path: &Path| std::fs::File::options().write(true).open(path).unwrap();
    let mut writer = open(&first);
    writer.write_all(b"1\n").unwrap();
    let told = format!("waiting for the writer of {}", second.display());
    let began = std::time::Instant::now();
    while !running.stderr_so_far().contains(&told) {
        assert!(began.elapsed() < PATIENCE, "{}", running.stderr_so_far());
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    drop(writer);
    open(&second).write_all(b"2\n").unwrap();
    running.wait(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(*) FROM t"), "2");
}

/// What splits and checks a file of a wide table is large: it is made when a thread comes to the file.
#[test]
fn a_load_holds_little_of_each_file_that_waits() {
    const COLUMNS: usize = 400;
    let columns = |each: &str| vec![each; COLUMNS].join(",");
    let row = columns("1") + "\n";
    let files = Files::new();
    let folder = |count: usize| {
        let folder = files.path().join(count.to_string());
        std::fs::create_dir(&folder).unwrap();
        for no in 0..count {
            std::fs::write(folder.join(format!("{no}.csv")), &row).unwrap();
        }
        folder
    };
    let load = |count: usize| {
        let database = Server::shared(15).database();
        let named: Vec<String> = (0..COLUMNS).map(|no| format!("c{no} int")).collect();
        database.sql(&format!("CREATE TABLE t ({})", named.join(", ")));
        let load = howdah("load").args(["--to", &database.conninfo(), "--table", "t", "--format", "csv"]);
        let load = load.args(["--on-error", "skip", "--encode", "binary", "--quiet"]);
        let (finished, peak_bytes) = run_and_watch(&load.arg(folder(count)));
        finished.expect_code(0);
        assert_eq!(database.value("SELECT count(*) FROM t"), count.to_string());
        peak_bytes
    };
    let (some, many) = (load(100), load(1_000));
    let a_file = many.saturating_sub(some) / 900;
    assert!(a_file < 48 << 10, "{a_file} bytes a file: {some} for 100, {many} for 1000");
}
