//! What comes from outside has a limit: each of these fails when it is lifted.

use crate::scene::{Files, PATIENCE, gzip, howdah};
use howdah_testkit::{Finished, Server};
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpListener;

/// Refused with such words.
#[track_caller]
fn refuses(finished: &Finished, code: i32, words: &str) {
    assert_eq!(finished.code, Some(code), "{}", finished.stderr);
    assert!(finished.stderr.contains(words), "{words}\n{}", finished.stderr);
}

#[test]
fn a_compressed_file_that_comes_to_more_than_was_said_is_an_error() {
    let (database, files) = (Server::shared(15).database(), Files::new());
    database.sql("CREATE TABLE t (a text)");
    let plain = "a\n".repeat(1_000_000);
    let packed = [
        files.put("a.csv.gz", &gzip(plain.as_bytes())),
        files.put("a.csv.zst", &zstd::encode_all(plain.as_bytes(), 3).unwrap()),
    ];
    for source in &packed {
        let load = howdah("load")
            .args(["--table", "t", "--format", "csv", "--to", &database.conninfo()])
            .arg(source);
        let refused = load.clone().args(["--max-decompressed", "1MB"]).run(PATIENCE);
        refuses(&refused, 1, "decompressed, the file is larger than 1MB, which --max-decompressed allows");
        // What was meant after all goes on where it stopped.
        load.args(["--max-decompressed", "2MB"]).run(PATIENCE).expect_code(0);
    }
    assert_eq!(database.value("SELECT count(*) FROM t"), "2000000");
    // A plain file is as large as it is.
    let plain = files.put("a.csv", plain.as_bytes());
    let load =
        howdah("load").args(["--table", "t", "--format", "csv", "--to", &database.conninfo()]).arg(plain);
    load.args(["--max-decompressed", "1MB"]).run(PATIENCE).expect_code(0);
}

#[test]
fn a_bomb_ends_with_an_error_in_bounded_memory() {
    let (database, files) = (Server::shared(18).database(), Files::new());
    database.sql("CREATE TABLE t (a text)");
    // One record without an end: more than the memory that there is, in some 120 kB.
    let mib = vec![b'a'; 1 << 20];
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    for _ in 0..1280 {
        encoder.write_all(&mib).unwrap();
    }
    let bomb = files.put("bomb.csv.zst", &encoder.finish().unwrap());
    let load =
        howdah("load").args(["--table", "t", "--format", "csv", "--to", &database.conninfo()]).arg(bomb);
    let refused = load.limit_memory(1 << 30).run(PATIENCE);
    refuses(&refused, 1, "the record is longer than the ");
    assert_eq!(database.value("SELECT count(*) FROM t"), "0");
}

#[test]
fn a_record_without_an_end_is_an_error() {
    let (database, files) = (Server::shared(15).database(), Files::new());
    database.sql("CREATE TABLE t (a text)");
    let endless = files.put("a.csv", format!("\"{}", "x\n".repeat(30 << 20)).as_bytes());
    let load = howdah("load").args(["--table", "t", "--format", "csv", "--to", &database.conninfo()]);
    let refused = load.args(["--memory", "64MB"]).arg(endless).run(PATIENCE);
    refuses(&refused, 1, "the record is longer than the ");
    assert!(refused.stderr.contains("--memory"), "{}", refused.stderr);
}

#[test]
fn a_first_line_of_a_million_fields_is_an_error_in_bounded_memory() {
    let (database, files) = (Server::shared(15).database(), Files::new());
    database.sql("CREATE TABLE t (id int, note text)");
    let wide =
        files.put("a.csv", format!("{}b\n{}2\n", "a,".repeat(1 << 20), "1,".repeat(1 << 20)).as_bytes());
    let load = howdah("load").args(["--table", "t", "--to", &database.conninfo()]).arg(wide);
    let load = load.limit_memory(1 << 30);
    for options in [&["--format", "csv", "--header"][..], &[]] {
        let refused = load.clone().args(options).run(PATIENCE);
        refuses(&refused, 1, "1,048,577 fields, cut at \",\", and 65,536 are read at most");
    }
}

#[test]
fn memory_that_is_too_little_is_refused_with_what_is_enough() {
    let (database, files) = (Server::shared(18).database(), Files::new());
    database.sql("CREATE TABLE t (a text)");
    let source = files.put("a.csv", b"x\n");
    let load = howdah("load").args(["--table", "t", "--format", "csv", "--to", &database.conninfo()]);
    let load = |memory: &str| load.clone().args(["--memory", memory]).arg(&source).run(PATIENCE);
    refuses(&load("63MB"), 2, "hint: give --memory 64MB or more");
    load("64MB").expect_code(0);
}

#[test]
fn a_header_has_a_limit_of_bytes_and_a_table_one_of_columns() {
    let (database, files) = (Server::shared(18).database(), Files::new());
    let wide = (0..1601).fold(String::new(), |mut text, no| {
        let _ = write!(text, "{}c{no}", if no == 0 { "" } else { "," });
        text
    });
    let row = vec!["1"; 1601].join(",");
    let source = files.put("wide.csv", format!("{wide}\n{row}\n{row}\n").as_bytes());
    let load = howdah("load").args(["--table", "t", "--create", "--to", &database.conninfo()]).arg(&source);
    let refused = load.run(PATIENCE);
    refuses(&refused, 1, "the files have 1601 fields, and a table at most 1600 columns");
    let endless = files.put("header.csv", format!("\"{}", "x\n".repeat(40 << 20)).as_bytes());
    database.sql("CREATE TABLE u (a text)");
    let load =
        howdah("load").args(["--table", "u", "--format", "csv", "--header", "--to", &database.conninfo()]);
    let refused = load.arg(endless).run(PATIENCE);
    refuses(&refused, 1, "the header is longer than 67108864 bytes");
}

/// A store whose listing always has one page more.
fn endless_bucket() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let keys = (0..1000).fold(String::new(), |mut keys, no| {
        let _ = write!(
            keys,
            "<Contents><Key>k/{no}.csv</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>\
             <ETag>\"a{no}\"</ETag><Size>5</Size><StorageClass>STANDARD</StorageClass></Contents>"
        );
        keys
    });
    std::thread::spawn(move || {
        for (no, stream) in listener.incoming().enumerate() {
            let Ok(mut stream) = stream else { continue };
            let (mut request, mut block) = (Vec::new(), [0; 4096]);
            while !request.ends_with(b"\r\n\r\n") {
                match stream.read(&mut block) {
                    Ok(count @ 1..) => request.extend_from_slice(&block[..count]),
                    _ => break,
                }
            }
            if !String::from_utf8_lossy(&request).contains("list-type=2") {
                let _ = stream
                    .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                continue;
            }
            let page = format!(
                "<?xml version=\"1.0\"?><ListBucketResult><Name>b</Name><Prefix>k/</Prefix><KeyCount>1000</KeyCount>\
                 <MaxKeys>1000</MaxKeys><IsTruncated>true</IsTruncated>\
                 <NextContinuationToken>more{no}</NextContinuationToken>{keys}</ListBucketResult>"
            );
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                page.len()
            );
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(page.as_bytes()));
        }
    });
    port
}

#[test]
fn a_listing_without_an_end_is_given_up() {
    let port = endless_bucket();
    let environment = [
        ("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{port}")),
        ("AWS_ACCESS_KEY_ID", "a".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "b".to_owned()),
        ("AWS_REGION", "us-east-1".to_owned()),
        ("AWS_ALLOW_HTTP", "true".to_owned()),
    ];
    let to = Server::shared(15).database();
    to.sql("CREATE TABLE t (a integer)");
    let load = howdah("load").args(["--table", "t", "--format", "csv", "--to", &to.conninfo()]);
    let refused = load.envs(environment).arg("s3://bucket/k/*.csv").run(PATIENCE);
    refuses(&refused, 2, "more than 100000 objects are there");
}

#[test]
fn a_setting_of_which_no_request_can_be_made_is_told_by_its_name() {
    let usual = [("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b"), ("AWS_REGION", "us-east-1")];
    let (s3, no_server) = ("s3://b/x.csv", "host=127.0.0.1 port=1");
    for (source, name, value) in [
        (s3, "AWS_ACCESS_KEY_ID", "ak\n"),
        (s3, "AWS_SESSION_TOKEN", "a\nb"),
        (s3, "AWS_REGION", "us east\n"),
        (s3, "AWS_REGION", "us east"),
        (s3, "AWS_ENDPOINT_URL", "127.0.0.1:57490"),
        (s3, "AWS_ENDPOINT_URL", "localhost"),
        (s3, "AWS_ENDPOINT_URL", "http://"),
        (s3, "AWS_ENDPOINT_URL_S3", "http://bad host"),
        (s3, "AWS_ENDPOINT_URL", "http://127.0.0.1:99999"),
        (s3, "AWS_ENDPOINT_URL", "ftp://x"),
        ("gs://b/x.csv", "GOOGLE_BEARER_TOKEN", "a\n"),
        ("az://b/x.csv", "AZURE_STORAGE_ENDPOINT", "localhost"),
        ("s3://b kt/y", "the name of the bucket", ""),
    ] {
        for verb in ["load", "plan"] {
            let command = howdah(verb).args(["--json", "--table", "t", "--to", no_server]).envs(usual);
            let command = if name.starts_with("the ") { command } else { command.envs([(name, value)]) };
            let refused = command.arg(source).run(PATIENCE);
            refuses(&refused, 2, name);
            let document: serde_json::Value = serde_json::from_str(&refused.stdout).unwrap();
            assert_eq!(document["error"]["kind"], "usage", "{document}");
            assert!(document["error"]["hint"].is_string(), "{document}");
        }
    }
}

#[test]
fn a_job_file_and_an_option_list_have_limits() {
    let files = Files::new();
    let job = files.put("job.toml", "#\n".repeat(9 << 20).as_bytes());
    refuses(
        &howdah("load").arg("--job").arg(job).run(PATIENCE),
        2,
        "the job file is too long: expected 16777216 bytes at most",
    );
    let list = format!("(NULL '{}')", "x".repeat(65 << 10));
    let load = howdah("load").args([
        "--copy-options",
        &list,
        "--table",
        "t",
        "a.csv",
        "--to",
        "host=127.0.0.1 port=1",
    ]);
    let refused = load.run(PATIENCE);
    refuses(&refused, 2, "the COPY options cannot be read: it is too long");
}

/// The list would win in silence, and rows hold what `--null` was to make NULL.
#[test]
fn an_option_typed_beside_the_option_list_of_a_job_file_is_refused() {
    let files = Files::new();
    let source = files.put("a.csv", b"a,b\n1,NA\n");
    let job = files.put("job.toml", b"table = \"t\"\ncopy-options = \"(FORMAT csv, HEADER true)\"\n");
    let load = howdah("load").args(["--null", "NA", "--to", "host=127.0.0.1 port=1"]).arg("--job").arg(job);
    refuses(&load.arg(source).run(PATIENCE), 2, "--null cannot be given beside copy-options of the job file");
}

/// The least memory in which the command starts is found by trial.
#[test]
fn a_system_without_memory_for_threads_is_told() {
    let mut is_told = false;
    for kib in (40 << 10..72 << 10).step_by(256) {
        let plan = howdah("plan").args(["--table", "t", "--to", "host=/nowhere", "nothing.csv"]);
        let told = plan.limit_memory(kib << 10).run(PATIENCE).stderr;
        is_told |= told.contains("error: cannot start: the system has no memory");
        if told.contains("error: cannot start") {
            assert!(told.contains("hint: raise the limit that is reached, of memory (ulimit -v)"), "{told}");
        }
    }
    assert!(is_told);
}

#[test]
fn an_address_space_that_may_be_too_small_for_a_load_is_warned_of() {
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int)");
    let files = Files::new();
    let source = files.put("a.csv", b"id\n1\n");
    let load = howdah("load").args(["--table", "t", "--to", &database.conninfo()]).arg(source);
    let told = load.args(["--memory", "32GB"]).limit_memory(16 << 30).run(PATIENCE).expect_code(0).stderr;
    assert!(told.contains("this process may have 16384 MB of address space (ulimit -v)"), "{told}");
}

/// The system sends a signal first, which ended the process without a word.
#[test]
fn a_file_that_may_not_grow_is_told_as_a_disk_without_room_is() {
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int)");
    let files = Files::new();
    let source = files.put("a.csv", format!("1\n{}", "x\n".repeat(20_000)).as_bytes());
    let rejects = files.path().join("bad.csv");
    let load = howdah("load").args(["--table", "t", "--to", &database.conninfo(), "--format", "csv"]);
    let load = load.args(["--header=false", "--on-error", "skip", "--max-errors", "100%", "--reject-file"]);
    let load = load.arg(&rejects).arg(source).limit_files(16 << 10);
    let told = load.run(PATIENCE).expect_code(1).stderr;
    assert!(told.contains("File too large") && told.contains("--reject-file"), "{told}");
    assert!(!rejects.exists());
    assert_eq!(database.value("SELECT count(*) FROM t"), "1");
}
