//! Object stores that fail. The faulty HTTP server plays one bucket with one object.

use crate::faulty_server::{Behaviour, Framing, Server};
use crate::{drain, kind, names, noise, range, sources};
use howdah_model::ErrorKind;
use howdah_source::{Object, Sources};

async fn open(server: &Server) -> howdah_model::Result<Object> {
    sources(&[("AWS_ENDPOINT_URL", &server.url), ("AWS_SKIP_SIGNATURE", "true")])
        .open("s3://b/f.csv", None)
        .await
}

#[tokio::test]
async fn an_unavailable_store_is_transient_and_asked_once() {
    let server = Server::start(Behaviour::of(noise(100))).await;
    let object = open(&server).await.unwrap();
    server.take_requests();
    for status in [429, 500, 503] {
        server.change(|behaviour| behaviour.status = Some(status));
        assert_eq!(kind(range(&object, 0, 10).await), ErrorKind::SourceTransient);
        assert_eq!(kind(object.stream(0).await), ErrorKind::SourceTransient);
        assert_eq!(kind(open(&server).await), ErrorKind::SourceTransient);
        assert_eq!(server.take_requests().len(), 3);
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_is_transient_and_goes_on_where_it_broke() {
    let content = noise(200_000);
    let server = Server::start(Behaviour::of(content.clone())).await;
    let object = open(&server).await.unwrap();
    server.take_requests();
    server.change(|behaviour| behaviour.cut_at = Some(70_000));
    let mut got = Vec::new();
    while let Err(error) = drain(object.stream(got.len() as u64).await.unwrap(), &mut got).await {
        assert_eq!(error.kind(), ErrorKind::SourceTransient, "{error}");
    }
    assert!(got == content);
    let requests = server.take_requests();
    assert_eq!(requests.len(), 3);
    assert!(requests.iter().all(|request| request.contains("if-match: \"v1\"\r\n")), "{requests:?}");
    server.change(|behaviour| behaviour.cut_at = Some(9));
    assert_eq!(kind(range(&object, 0, 10).await), ErrorKind::SourceTransient);
}

#[tokio::test]
async fn a_range_that_breaks_off_goes_on_behind_what_has_come() {
    let content = noise(200_000);
    let server = Server::start(Behaviour { cut_at: Some(70_000), ..Behaviour::of(content.clone()) }).await;
    let object = open(&server).await.unwrap();
    server.take_requests();
    let (mut out, mut filled) = (vec![0; 190_000], 0);
    while let Err(error) = object.read_on(10_000, &mut out, &mut filled).await {
        assert_eq!(error.kind(), ErrorKind::SourceTransient, "{error}");
    }
    assert!(filled == out.len() && out == content[10_000..]);
    let requests = server.take_requests();
    assert_eq!(requests.len(), 3);
    assert!(requests.iter().all(|request| request.contains("if-match: \"v1\"\r\n")), "{requests:?}");
    assert!(requests[2].contains("bytes=150000-"), "{requests:?}");
    let (mut out, mut filled) = (vec![0; 190_000], 0);
    assert_eq!(kind(object.read_on(0, &mut out, &mut filled).await), ErrorKind::SourceTransient);
    server.change(|behaviour| behaviour.etag = Some("\"v2\""));
    assert_eq!(kind(object.read_on(0, &mut out, &mut filled).await), ErrorKind::SourceChanged);
}

#[tokio::test]
async fn another_version_is_refused_though_the_store_does_not_know_if_match() {
    let server = Server::start(Behaviour { honours_if_match: false, ..Behaviour::of(noise(100)) }).await;
    let object = open(&server).await.unwrap();
    server.change(|behaviour| behaviour.etag = Some("\"v2\""));
    assert_eq!(kind(range(&object, 0, 10).await), ErrorKind::SourceChanged);
    assert_eq!(kind(object.stream(0).await), ErrorKind::SourceChanged);
    assert_eq!(kind(object.stream(50).await), ErrorKind::SourceChanged);
}

#[tokio::test]
async fn a_store_that_ignores_ranges_is_refused_not_misread() {
    let server = Server::start(Behaviour { ranges: false, ..Behaviour::of(noise(100)) }).await;
    let object = open(&server).await.unwrap();
    assert_eq!(kind(range(&object, 10, 10).await), ErrorKind::SourceIo);
}

#[tokio::test]
async fn google_and_azure_are_read_the_same_way() {
    let server = Server::start(Behaviour::of(noise(100))).await;
    let google = [("GOOGLE_BASE_URL", server.url.as_str()), ("GOOGLE_SKIP_SIGNATURE", "true")];
    let azure = [
        ("AZURE_STORAGE_ACCOUNT_NAME", "a"),
        ("AZURE_STORAGE_ENDPOINT", server.url.as_str()),
        ("AZURE_SKIP_SIGNATURE", "true"),
    ];
    for (location, variables) in [("gs://b/f.csv", &google[..]), ("az://c/f.csv", &azure[..])] {
        let object = sources(variables).open(location, Some("v1")).await.unwrap();
        assert_eq!(object.location(), location);
        assert_eq!(range(&object, 10, 10).await.unwrap(), noise(100)[10..20], "{location}");
    }
    server.change(|behaviour| behaviour.status = Some(403));
    let error = sources(&azure).open("az://c/f.csv", None).await.unwrap_err();
    assert!(error.hint().unwrap().contains("AZURE_STORAGE_KEY"), "{error}");
    assert_eq!(kind(sources(&[]).open("az://c/f.csv", None).await), ErrorKind::Usage);
}

/// A HEAD has no body, which alone says why.
#[tokio::test]
async fn what_the_store_has_against_a_request_is_said() {
    let server = Server::start(Behaviour::of(noise(100))).await;
    for (status, code, words, way_out) in [
        (400, "ExpiredToken", "the credentials have expired", "aws sso login"),
        (403, "InvalidObjectState", "the object is archived", "restore it"),
        (403, "RequestTimeTooSkewed", "the clock of this machine is wrong", "set the clock"),
        (403, "AccessDenied", "access is denied, or there is no such object", "AWS_PROFILE"),
        (403, "AccessDenied", "access is denied, or there is no such object", "check the key"),
        (403, "SignatureDoesNotMatch", "the secret key is not the right one", "AWS_SECRET_ACCESS_KEY"),
        (403, "InvalidAccessKeyId", "the store does not know the access key", "AWS_ACCESS_KEY_ID"),
        (400, "AuthorizationHeaderMalformed", "the server refused the request", "AWS_REGION"),
    ] {
        server.change(|behaviour| (behaviour.status, behaviour.code) = (Some(status), Some(code)));
        let error = open(&server).await.unwrap_err();
        assert!(error.message().contains(words) && error.message().contains(code), "{error}");
        assert!(error.hint().unwrap().contains(way_out), "{code}: {:?}", error.hint());
    }
    server.change(|behaviour| (behaviour.status, behaviour.code) = (Some(403), Some("AccessDenied")));
    let listing =
        sources(&[("AWS_ENDPOINT_URL", &server.url), ("AWS_SKIP_SIGNATURE", "true")]).list("s3://b/t/").await;
    let error = listing.unwrap_err();
    assert!(error.message().starts_with("listing the bucket is denied: HTTP status 403"), "{error}");
    assert!(error.hint().unwrap().contains("s3:ListBucket"), "{error}");
    // Of a listing too, by the name that was written.
    server.change(|behaviour| (behaviour.status, behaviour.code) = (Some(404), Some("NoSuchBucket")));
    let sources = sources(&[("AWS_ENDPOINT_URL", &server.url), ("AWS_SKIP_SIGNATURE", "true")]);
    let error = sources.list("s3://b/f.csv").await.unwrap_err().to_string();
    assert!(error.starts_with("file s3://b/f.csv: there is no such bucket"), "{error}");
    server.change(|behaviour| (behaviour.status, behaviour.code) = (Some(400), Some("InvalidArgument")));
    assert_eq!(open(&server).await.unwrap_err().hint(), None);
    server.change(|behaviour| (behaviour.status, behaviour.code) = (Some(400), None));
    assert!(open(&server).await.unwrap_err().hint().unwrap().contains("AWS_REGION"));
}

/// A signature is good for one host, and the token of a session for nobody else.
#[tokio::test]
async fn a_redirect_of_a_store_is_not_followed() {
    let target = Server::start(Behaviour::of(noise(10))).await;
    let from = Behaviour { redirect: Some(format!("{}/b/f.csv", target.url)), ..Behaviour::of(Vec::new()) };
    let server = Server::start(from).await;
    let variables = [
        ("AWS_ENDPOINT_URL", server.url.as_str()),
        ("AWS_ACCESS_KEY_ID", "k"),
        ("AWS_SECRET_ACCESS_KEY", "s"),
        ("AWS_SESSION_TOKEN", "geheim"),
    ];
    let error = sources(&variables).open("s3://b/f.csv", None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SourceIo);
    assert!(
        error.message().contains("HTTP status 302") && error.hint().unwrap().contains("AWS_REGION"),
        "{error}"
    );
    assert!(target.take_requests().is_empty());
}

#[tokio::test]
async fn the_region_of_a_bucket_is_told_as_the_store_names_it() {
    let server = Server::start(Behaviour::of(Vec::new())).await;
    for (status, header) in
        [(301, "x-amz-bucket-region: eu-west-1\r\n"), (400, "x-amz-bucket-region: eu-west-1\r\n")]
    {
        server.change(|behaviour| (behaviour.status, behaviour.extra_header) = (Some(status), header));
        let error = open(&server).await.unwrap_err();
        assert!(error.message().starts_with("the bucket is in the region eu-west-1: HTTP status"), "{error}");
        assert!(error.hint().unwrap().starts_with("set AWS_REGION=eu-west-1"), "{error}");
    }
    // Every answer names it; a denial is one for all that.
    server.change(|behaviour| behaviour.status = Some(403));
    let error = open(&server).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SourceDenied);
    assert!(!error.message().contains("eu-west-1"), "{error}");
}

#[tokio::test]
async fn what_google_stores_compressed_is_asked_for_as_it_is() {
    let server = Server::start(Behaviour::of(noise(10))).await;
    let variables = [("GOOGLE_BASE_URL", server.url.as_str()), ("GOOGLE_SKIP_SIGNATURE", "true")];
    let object = sources(&variables).open("gs://b/f.csv", None).await.unwrap();
    range(&object, 0, 5).await.unwrap();
    let requests = server.take_requests();
    assert!(requests.iter().all(|request| request.contains("accept-encoding: gzip\r\n")), "{requests:?}");
    open(&server).await.unwrap();
    assert!(!server.take_requests()[0].contains("accept-encoding: gzip"));
}

#[tokio::test]
async fn a_header_that_an_answer_lacks_is_named() {
    let server = Server::start(Behaviour { framing: Framing::Chunked, ..Behaviour::of(noise(10)) }).await;
    let error = open(&server).await.unwrap_err();
    assert!(error.message().contains("Content-Length"), "{error}");
}

/// What the library asks to list `s3://b/t/`.
const LISTING: &str = "/b?list-type=2&prefix=t%2F";

fn listing(entries: &str) -> String {
    format!("<ListBucketResult>{entries}</ListBucketResult>")
}

/// One key of a listing.
fn entry(key: &str, size: u32) -> String {
    format!(
        "<Contents><Key>{key}</Key><Size>{size}</Size><ETag>&quot;v1&quot;</ETag>\
         <LastModified>2030-01-01T00:00:00.000Z</LastModified></Contents>"
    )
}

#[tokio::test]
async fn folder_markers_are_no_objects_but_empty_files_are() {
    let entries =
        [entry("t/", 0), entry("t/empty.csv", 0), entry("t/folder/", 0), entry("t/full.csv", 9)].concat();
    let mut behaviour = Behaviour { status: Some(404), ..Behaviour::of(Vec::new()) };
    behaviour.texts.insert(LISTING, listing(&entries));
    behaviour.texts.insert("/b/t/empty.csv", String::new());
    let server = Server::start(behaviour).await;
    let sources = sources(&[("AWS_ENDPOINT_URL", &server.url), ("AWS_SKIP_SIGNATURE", "true")]);
    let objects = sources.list("s3://b/t/").await.unwrap();
    assert_eq!(names(&objects), ["empty.csv", "full.csv"]);
}

/// The library drops a `/` at either end of what it lists, and what is left may be another object's key.
#[tokio::test]
async fn no_object_is_taken_for_another_by_a_slash() {
    let mut behaviour = Behaviour { status: Some(404), ..Behaviour::of(Vec::new()) };
    behaviour.texts.insert("/b?list-type=2", listing(&[entry("/a.csv", 9), entry("a.csv", 8)].concat()));
    behaviour.texts.insert("/b?list-type=2&prefix=%2F&max-keys=1", listing(&entry("/a.csv", 9)));
    behaviour.texts.insert(LISTING, listing(&[entry("t/a.csv", 9), entry("t/a.csv/", 8)].concat()));
    let server = Server::start(behaviour).await;
    let sources = sources(&[("AWS_ENDPOINT_URL", &server.url), ("AWS_SKIP_SIGNATURE", "true")]);
    for location in ["s3://b/", "s3://b/**/*.csv", "s3://b//", "s3://b//t/", "s3://b//*.csv", "s3://b//a.csv"]
    {
        let error = sources.list(location).await.unwrap_err();
        assert!(error.message().contains("begin with /"), "{location}: {error}");
    }
    let error = sources.list("s3://b/t/").await.unwrap_err();
    assert!(error.message().contains("a / at their end"), "{error}");
    for (key, way_out) in [("t//a.csv", "give a presigned URL"), ("t/../a.csv", "copy"), ("./a.csv", "copy")]
    {
        let error = sources.list(&format!("s3://b/{key}")).await.unwrap_err();
        assert!(error.message().contains("cannot be addressed"), "{error}");
        assert!(error.hint().unwrap().starts_with(way_out), "{error}");
    }
}

/// Which stores do not say why, and some of which list `a.csv` under `/`.
#[tokio::test]
async fn a_whole_bucket_is_listed_where_the_store_knows_no_slash_before_a_key() {
    const BEFORE: &str = "/b?list-type=2&prefix=%2F&max-keys=1";
    let mut behaviour = Behaviour::of(noise(9));
    behaviour.texts.insert("/b?list-type=2", listing(&entry("a.csv", 9)));
    behaviour.texts.insert(BEFORE, listing(&entry("a.csv", 9)));
    let server = Server::start(behaviour).await;
    let sources = sources(&[("AWS_ENDPOINT_URL", &server.url), ("AWS_SKIP_SIGNATURE", "true")]);
    assert_eq!(names(&sources.list("s3://b/").await.unwrap()), ["a.csv"]);
    // As stores say that know ListObjects alone: others follow, and which matters not.
    let truncated = listing(&format!("<IsTruncated>true</IsTruncated>{}", entry("/a.csv", 8)));
    server.change(|behaviour| behaviour.texts.extend([(BEFORE, truncated)]));
    let error = sources.list("s3://b/").await.unwrap_err();
    assert!(error.message().contains("begin with /"), "{error}");
    server.change(|behaviour| behaviour.texts.extend([(BEFORE, listing(&entry("/a.csv", 8)))]));
    let error = sources.list("s3://b/").await.unwrap_err();
    assert!(error.message().contains("begin with /"), "{error}");
    for (status, code) in [(400, "InvalidArgument"), (404, "NoSuchKey"), (403, "AccessDenied")] {
        server.change(|behaviour| {
            behaviour.texts.remove(BEFORE);
            (behaviour.status, behaviour.code) = (Some(status), Some(code));
        });
        assert_eq!(names(&sources.list("s3://b/").await.unwrap()), ["a.csv"], "{code}");
    }
    server.change(|behaviour| (behaviour.status, behaviour.code) = (Some(503), Some("SlowDown")));
    assert_eq!(kind(sources.list("s3://b/").await), ErrorKind::SourceTransient);
}

#[tokio::test]
async fn an_object_beside_a_folder_of_its_name_is_one() {
    let mut behaviour = Behaviour::of(b"id\n1\n".to_vec());
    behaviour.texts.insert(LISTING, listing(&[entry("t/a.csv", 5), entry("t/a.csv/", 0)].concat()));
    let server = Server::start(behaviour).await;
    let sources = sources(&[("AWS_ENDPOINT_URL", &server.url), ("AWS_SKIP_SIGNATURE", "true")]);
    assert_eq!(sources.list("s3://b/t/").await.unwrap().len(), 1);
}

#[tokio::test]
async fn more_objects_than_a_job_may_have_are_an_error() {
    let entries: String = (0..100_001).map(|number| entry(&format!("t/{number}"), 1)).collect();
    let mut behaviour = Behaviour { status: Some(404), ..Behaviour::of(Vec::new()) };
    behaviour.texts.insert(LISTING, listing(&entries));
    let server = Server::start(behaviour).await;
    let sources = sources(&[("AWS_ENDPOINT_URL", &server.url), ("AWS_SKIP_SIGNATURE", "true")]);
    let error = sources.list("s3://b/t/").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.hint().unwrap().contains("narrower"), "{error}");
}

/// Rows of the objects behind it would be missing, and nobody told.
#[tokio::test]
async fn a_listing_that_breaks_off_runs_in_circles_or_is_none_is_refused() {
    const NEXT: &str = "/b?continuation-token=x&list-type=2&prefix=t%2F";
    let server = Server::start(Behaviour { status: Some(404), ..Behaviour::of(Vec::new()) }).await;
    let sources = sources(&[("AWS_ENDPOINT_URL", &server.url), ("AWS_SKIP_SIGNATURE", "true")]);
    let one = entry("t/a.csv", 9);
    let goes_on =
        format!("<IsTruncated>true</IsTruncated><NextContinuationToken>x</NextContinuationToken>{one}");
    let named_by = |bytes| {
        let token = "t".repeat(bytes);
        listing(&format!(
            "<IsTruncated>true</IsTruncated><NextContinuationToken>{token}</NextContinuationToken>{one}"
        ))
    };
    let longer = format!("{}{}", listing(&one), " ".repeat(64 << 20));
    for (first, next, said) in [
        (listing(&format!("<IsTruncated>true</IsTruncated>{one}")), "", "more objects"),
        (
            listing(&format!("<IsTruncated>true</IsTruncated><NextMarker>t/a.csv</NextMarker>{one}")),
            "",
            "more objects",
        ),
        (listing(&goes_on), &*listing(&goes_on), "does not end"),
        (listing(&goes_on), "<html>Please log in</html>", "no listing"),
        (listing(&goes_on), "<ListBucketResult><Contents>", "no listing"),
        (longer, "", "no page"),
        (named_by(8193), "", "by 8193 bytes"),
        (named_by(70_000), "", "by 70000 bytes"),
    ] {
        server.change(|behaviour| behaviour.texts.extend([(LISTING, first), (NEXT, next.to_owned())]));
        let error = sources.list("s3://b/t/").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SourceIo, "{said}: {error}");
        assert!(error.message().contains(said) && error.hint().is_some() != (said == "no page"), "{error}");
        assert!(error.to_string().contains("s3://b/t/"), "{error}");
    }
    let last = listing(&entry("t/b.csv", 9));
    server.change(|behaviour| behaviour.texts.extend([(LISTING, listing(&goes_on)), (NEXT, last)]));
    assert_eq!(names(&sources.list("s3://b/t/").await.unwrap()), ["a.csv", "b.csv"]);
}

/// Asks for an object; gives the request as the store saw it.
async fn asked_with(server: &Server, metadata: &str) -> String {
    let variables = [("AWS_ENDPOINT_URL", server.url.as_str()), ("AWS_METADATA_ENDPOINT", metadata)];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    Sources::with_environment(variables).open("s3://b/f.csv", None).await.unwrap();
    server.take_requests().remove(0)
}

/// The metadata of a machine with a role.
async fn machine() -> Server {
    let role =
        r#"{"AccessKeyId":"ROLE","SecretAccessKey":"s","Token":"t","Expiration":"2099-01-01T00:00:00Z"}"#;
    let mut metadata = Behaviour { status: Some(404), ..Behaviour::of(Vec::new()) };
    metadata.texts.insert("/latest/api/token", "t".to_owned());
    metadata.texts.insert("/latest/meta-data/iam/security-credentials/", "role".to_owned());
    metadata.texts.insert("/latest/meta-data/iam/security-credentials/role", role.to_owned());
    Server::start(metadata).await
}

#[tokio::test]
async fn the_role_of_the_machine_signs_where_nothing_else_is_set() {
    let metadata = machine().await;
    let server = Server::start(Behaviour::of(noise(10))).await;
    let request = asked_with(&server, &metadata.url).await;
    assert!(request.contains("Credential=ROLE/"), "{request}");
}

/// Tells the child where the metadata is.
const CHILD: &str = "HOWDAH_TEST_METADATA";

/// A proxy is read from the environment of the process, so a child plays the user.
#[tokio::test(flavor = "multi_thread")]
async fn the_machine_is_asked_for_its_role_past_the_proxy() {
    if let Ok(metadata) = std::env::var(CHILD) {
        let variables = [
            ("AWS_ENDPOINT_URL", "http://store.example"),
            ("AWS_METADATA_ENDPOINT", &metadata),
            // Of the library's own client, which is not used.
            ("AWS_CONNECT_TIMEOUT", "1 second"),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Sources::with_environment(variables).open("s3://b/f.csv", None).await.unwrap();
        return;
    }
    let (metadata, proxy) = (machine().await, Server::start(Behaviour::of(noise(10))).await);
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "s3_faults::the_machine_is_asked_for_its_role_past_the_proxy"])
        .env(CHILD, &metadata.url)
        .env("http_proxy", &proxy.url)
        .env_remove("no_proxy")
        .env_remove("NO_PROXY")
        .output()
        .unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
    let requests = proxy.take_requests();
    let is_signed = |request: &String| {
        request.contains(" http://store.example/b/f.csv ") && request.contains("Credential=ROLE/")
    };
    assert!(!requests.is_empty() && requests.iter().all(is_signed), "{requests:?}");
}

#[tokio::test]
async fn a_machine_without_a_role_reads_unsigned() {
    let metadata = Server::start(Behaviour { status: Some(404), ..Behaviour::of(Vec::new()) }).await;
    let server = Server::start(Behaviour::of(noise(10))).await;
    let request = asked_with(&server, &metadata.url).await;
    assert!(!request.to_ascii_lowercase().contains("authorization"), "{request}");
    assert_eq!(metadata.take_requests().len(), 1);
}

/// Each store is asked by sources of its own, and so is the agent.
#[tokio::test]
async fn the_role_of_a_container_signs() {
    let told =
        r#"{"AccessKeyId":"TASK","SecretAccessKey":"s","Token":"t","Expiration":"2099-01-01T00:00:00Z"}"#;
    let mut agent = Behaviour { status: Some(403), ..Behaviour::of(Vec::new()) };
    agent.texts.insert("/v1/credentials", told.to_owned());
    let agent = Server::start(agent).await;
    let server = Server::start(Behaviour::of(noise(10))).await;
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    let uri = format!("{}/v1/credentials", agent.url);
    let asked = async |extra: &[(&str, &str)]| {
        let endpoint = ("AWS_ENDPOINT_URL", server.url.as_str());
        let variables = [&[endpoint, ("AWS_CONTAINER_CREDENTIALS_FULL_URI", &uri)], extra].concat();
        sources(&variables).open("s3://b/f.csv", None).await
    };
    let in_file = [("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", token.to_str().unwrap())];
    for (extra, expected) in [
        (&in_file[..], Some("authorization: of-file\r\n")),
        (&[("AWS_CONTAINER_AUTHORIZATION_TOKEN", "of-text")], Some("authorization: of-text\r\n")),
        (&[], None),
    ] {
        // As tokens of pods are, and as `echo` writes them.
        std::fs::write(&token, "of-file\n").unwrap();
        asked(extra).await.unwrap();
        let request = server.take_requests().remove(0).to_lowercase();
        assert!(
            request.contains("credential=task/") && request.contains("x-amz-security-token: t\r\n"),
            "{request}"
        );
        let request = agent.take_requests().remove(0).to_lowercase();
        match expected {
            Some(expected) => assert!(request.contains(expected), "{request}"),
            None => assert!(!request.contains("authorization"), "{request}"),
        }
    }
    std::fs::write(&token, "\n").unwrap();
    let empty = asked(&in_file).await.unwrap_err();
    assert!(empty.kind() == ErrorKind::SourceDenied && empty.message().ends_with("is empty"), "{empty}");
    std::fs::remove_file(&token).unwrap();
    let missing = asked(&in_file).await.unwrap_err();
    assert!(missing.message().contains("cannot be read: No such file"), "{missing}");
    assert!(missing.hint().unwrap().contains("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"), "{missing}");
    agent.change(|behaviour| behaviour.texts.clear());
    let refused = asked(&[]).await.unwrap_err();
    assert!(refused.message().contains("credentials were refused: HTTP status 403"), "{refused}");
}

#[tokio::test]
async fn a_web_identity_without_its_token_is_told() {
    let variables =
        [("AWS_WEB_IDENTITY_TOKEN_FILE", "/no/such/token"), ("AWS_ROLE_ARN", "arn:aws:iam::1:role/r")];
    let error = sources(&variables).open("s3://b/f.csv", None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SourceDenied);
    assert!(error.hint().unwrap().contains("AWS_WEB_IDENTITY_TOKEN_FILE"), "{error}");
}
