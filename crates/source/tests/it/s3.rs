//! Buckets of a real S3 server.

use crate::s3_server::{BUCKET, KEY_ID, S3Server, SECRET};
use crate::{assert_holds, kind, names, noise, range, sources, stream};
use howdah_model::{ErrorKind, Result};
use howdah_source::Sources;

async fn listed(sources: &Sources, key: &str) -> Result<Vec<String>> {
    let objects = sources.list(&format!("s3://{BUCKET}/{key}")).await?;
    Ok(names(&objects).into_iter().map(str::to_owned).collect())
}

#[tokio::test]
async fn an_object_reads_the_same_by_ranges_and_as_a_stream() {
    let server = S3Server::start().await;
    let sources = sources(&server.variables());
    for bytes in [0, 1, (1 << 20) + 17] {
        let content = noise(bytes);
        server.put("a folder/ä+%20.csv", &content).await;
        let object = sources.list(&format!("s3://{BUCKET}/a folder/ä+%20.csv")).await.unwrap().remove(0);
        assert!(object.ranged() && object.rereadable() && !object.local());
        assert_holds(&object, &content).await;
        let again = sources.open(object.location(), object.version()).await.unwrap();
        assert_holds(&again, &content).await;
    }
}

/// What reads like SQL or like a shell is a name. The library cannot write a key with a control character; a
/// presigned URL can.
#[tokio::test]
async fn odd_keys_are_read_or_it_is_said_how() {
    let server = S3Server::start().await;
    let sources = sources(&server.variables());
    let key = "\"; drop table x; --/$(reboot) `id` 'a'&?#\\.csv";
    server.put(key, b"1\n").await;
    let object = sources.list(&format!("s3://{BUCKET}/{key}")).await.unwrap().remove(0);
    assert_holds(&object, b"1\n").await;
    assert_eq!(listed(&sources, "\"; drop*/*.csv").await.unwrap(), [key.rsplit('/').next().unwrap()]);
    server.put_beside("new\nline/a\tb.csv", b"2\n");
    for unnameable in ["new\nline/a\tb.csv", "new\nline/", "new*/*.csv"] {
        let error = listed(&sources, unnameable).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SourceIo, "{error}");
        assert!(error.message().contains(r#"the key "new\nline/"#), "{error}");
        assert!(error.hint().is_some_and(|hint| hint.starts_with("give a presigned URL")), "{error}");
    }
}

#[tokio::test]
async fn keys_prefixes_and_globs_find_what_they_name() {
    let server = S3Server::start().await;
    let sources = sources(&server.variables());
    for key in ["t/a1.csv", "t/a2.csv", "t/b1.csv", "t/x/a3.csv", "t-old/a4.csv", "[ab].csv", "a.csv"] {
        server.put(key, b"x").await;
    }
    assert_eq!(listed(&sources, "t/a1.csv").await.unwrap(), ["a1.csv"]);
    assert_eq!(listed(&sources, "t/").await.unwrap(), ["a1.csv", "a2.csv", "b1.csv", "a3.csv"]);
    assert_eq!(listed(&sources, "t").await.unwrap(), ["a1.csv", "a2.csv", "b1.csv", "a3.csv"]);
    assert_eq!(listed(&sources, "t/a").await.unwrap(), ["a1.csv", "a2.csv"]);
    assert_eq!(listed(&sources, "t/a*.csv").await.unwrap(), ["a1.csv", "a2.csv"]);
    assert_eq!(listed(&sources, "t/**/a?.csv").await.unwrap(), ["a1.csv", "a2.csv", "a3.csv"]);
    assert_eq!(listed(&sources, "[ab].csv").await.unwrap(), ["[ab].csv"]);
    assert_eq!(listed(&sources, "").await.unwrap().len(), 7);
    for nothing in ["none", "t/none*", "t/a1.csv/"] {
        assert_eq!(kind(listed(&sources, nothing).await), ErrorKind::SourceNotFound, "{nothing}");
    }
    assert_eq!(kind(sources.open(&format!("s3://{BUCKET}/t"), None).await), ErrorKind::SourceNotFound);
    for unnameable in ["/a.csv", "t//a1.csv"] {
        assert_eq!(kind(listed(&sources, unnameable).await), ErrorKind::SourceIo, "{unnameable}");
    }
    assert_eq!(kind(sources.list("s3://no-such-bucket/t").await), ErrorKind::SourceNotFound);
}

#[tokio::test]
async fn the_placeholder_tells_what_it_stood_for() {
    let server = S3Server::start().await;
    for key in ["in/title/1.tsv.gz", "in/name/1.tsv.gz", "in/name/1.log", "other/x/1.tsv.gz"] {
        server.put(key, b"x").await;
    }
    let location = format!("s3://{BUCKET}/in/{{table}}/*.tsv.gz");
    let objects = sources(&server.variables()).list(&location).await.unwrap();
    let tables: Vec<_> = objects.iter().map(|object| object.placeholder().unwrap()).collect();
    assert_eq!(tables, ["name", "title"]);
}

#[tokio::test]
async fn more_keys_than_one_answer_holds_are_all_found() {
    let server = S3Server::start().await;
    for number in 0..1005 {
        server.put(&format!("many/{number:04}"), b"x").await;
    }
    assert_eq!(listed(&sources(&server.variables()), "many/*").await.unwrap().len(), 1005);
}

#[tokio::test]
async fn an_object_that_was_overwritten_is_refused() {
    let server = S3Server::start().await;
    let sources = sources(&server.variables());
    server.put("f", &noise(100)).await;
    let object = sources.list(&format!("s3://{BUCKET}/f")).await.unwrap().remove(0);
    server.put("f", &noise(101)).await;
    let error = range(&object, 0, 10).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SourceChanged, "{error}");
    assert!(error.hint().is_some());
    assert_eq!(kind(object.stream(10).await), ErrorKind::SourceChanged);
    assert_eq!(kind(sources.open(object.location(), object.version()).await), ErrorKind::SourceChanged);
    sources.open(object.location(), None).await.unwrap();
}

#[tokio::test]
async fn a_presigned_url_is_read_by_get_alone() {
    let server = S3Server::start().await;
    let content = noise(10_000);
    server.put("f.csv", &content).await;
    let url = server.signed(reqwest::Method::GET, "f.csv").await;
    let object = sources(&[]).list(&url).await.unwrap().remove(0);
    assert_eq!(object.location(), format!("{}/{BUCKET}/f.csv?***", server.url));
    assert!(object.ranged());
    assert_holds(&object, &content).await;
    server.put("f.csv", &noise(10_001)).await;
    assert_eq!(kind(range(&object, 0, 10).await), ErrorKind::SourceChanged);
}

#[tokio::test]
async fn a_denial_says_what_to_set() {
    let server = S3Server::start().await;
    server.put("f", b"x").await;
    let location = format!("s3://{BUCKET}/f");
    let mut wrong = server.variables();
    wrong.push(("AWS_SECRET_ACCESS_KEY", "wrong"));
    let error = sources(&wrong).list(&location).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SourceDenied, "{error}");
    assert!(error.message().contains("SignatureDoesNotMatch"), "{error}");
    assert!(error.hint().unwrap().starts_with("set AWS_SECRET_ACCESS_KEY"));
    wrong.push(("AWS_ACCESS_KEY_ID", "nobody"));
    let error = sources(&wrong).list(&location).await.unwrap_err();
    assert!(error.message().starts_with("the store does not know the access key"), "{error}");
    let nobody = sources(&[("AWS_ENDPOINT_URL_S3", &server.url)]);
    let error = nobody.list(&location).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SourceDenied, "{error}");
    assert!(error.hint().unwrap().starts_with("no AWS credentials were found"));
}

#[tokio::test]
async fn credentials_region_and_endpoint_come_from_profile_files() {
    let server = S3Server::start().await;
    server.put("f", &noise(10)).await;
    let folder = tempfile::tempdir().unwrap();
    let (config, credentials) = (folder.path().join("config"), folder.path().join("credentials"));
    std::fs::write(&config, format!("[profile p]\nregion = us-east-1\nendpoint_url = {}\n", server.url))
        .unwrap();
    let keys = format!("[p]\naws_access_key_id = {KEY_ID}\naws_secret_access_key = {SECRET}\n");
    std::fs::write(&credentials, keys).unwrap();
    let sources = sources(&[
        ("AWS_PROFILE", "p"),
        ("AWS_CONFIG_FILE", config.to_str().unwrap()),
        ("AWS_SHARED_CREDENTIALS_FILE", credentials.to_str().unwrap()),
    ]);
    let object = sources.list(&format!("s3://{BUCKET}/f")).await.unwrap().remove(0);
    assert_eq!(stream(&object, 0).await.unwrap(), noise(10));
}

/// Tells the child the server's address.
const CHILD: &str = "HOWDAH_TEST_S3_PROXY";

/// No resolver knows a host for each bucket of a test, but a proxy is told every host; it is read from the
/// environment of the process, so a child plays the user.
#[tokio::test(flavor = "multi_thread")]
async fn the_bucket_may_stand_in_the_host() {
    const HOST: &str = "store.example";
    let endpoint = format!("http://{HOST}");
    if let Ok(url) = std::env::var(CHILD) {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("config");
        std::fs::write(&config, "[default]\ns3 =\n  addressing_style = virtual\n").unwrap();
        let config = config.to_str().unwrap();
        for (name, value) in [("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "true"), ("AWS_CONFIG_FILE", config)] {
            let mut variables = vec![("AWS_ENDPOINT_URL_S3", endpoint.as_str()), (name, value)];
            variables.extend([("AWS_ACCESS_KEY_ID", KEY_ID), ("AWS_SECRET_ACCESS_KEY", SECRET)]);
            let sources = sources(&variables);
            assert_eq!(listed(&sources, "t/*.csv").await.unwrap(), ["a.csv"], "{url}");
            let object = sources.open(&format!("s3://{BUCKET}/t/a.csv"), None).await.unwrap();
            assert_eq!(stream(&object, 0).await.unwrap(), noise(1000));
        }
        return;
    }
    let server = S3Server::start_with("http", &["--virtual-domain", HOST]).await;
    server.put_beside("t/a.csv", &noise(1000));
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "s3::the_bucket_may_stand_in_the_host"])
        .env(CHILD, &server.url)
        .env("http_proxy", &server.url)
        .output()
        .unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
}
