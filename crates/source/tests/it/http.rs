//! Files behind http URLs, on a server that fails in every way.

use crate::faulty_server::{Behaviour, Framing, Server};
use crate::{assert_holds, drain, kind, noise, range, sources, stream};
use howdah_model::ErrorKind;
use howdah_source::Object;

async fn open(server: &Server) -> howdah_model::Result<Object> {
    Ok(sources(&[]).list(&format!("{}/f.csv", server.url)).await?.remove(0))
}

#[tokio::test]
async fn a_url_reads_the_same_with_and_without_ranges() {
    for ranges in [true, false] {
        for bytes in [0, 1, 100_000] {
            let content = noise(bytes);
            let server = Server::start(Behaviour { ranges, ..Behaviour::of(content.clone()) }).await;
            let object = open(&server).await.unwrap();
            assert_eq!(object.ranged(), ranges && bytes > 0);
            assert!(object.rereadable() && !object.local());
            assert_eq!(object.version(), Some("v1"));
            assert_holds(&object, &content).await;
        }
    }
}

#[tokio::test]
async fn every_read_is_one_get_bound_to_the_version() {
    let server = Server::start(Behaviour::of(noise(1000))).await;
    let object = open(&server).await.unwrap();
    let first = server.take_requests();
    assert!(first.len() == 1 && first[0].starts_with("GET "), "{first:?}");
    range(&object, 10, 20).await.unwrap();
    stream(&object, 10).await.unwrap();
    let requests = server.take_requests();
    assert_eq!(requests.len(), 2);
    for request in requests {
        assert!(request.contains("if-match: \"v1\"\r\n"), "{request}");
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_is_transient_and_goes_on_where_it_broke() {
    let content = noise(50_000);
    for framing in [Framing::Length, Framing::Chunked] {
        for ranges in [true, false] {
            let server = Server::start(Behaviour { ranges, framing, ..Behaviour::of(content.clone()) }).await;
            let object = open(&server).await.unwrap();
            server.change(|behaviour| behaviour.cut_at = Some(20_000));
            let mut got = Vec::new();
            let error = drain(object.stream(0).await.unwrap(), &mut got).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::SourceTransient, "{error}");
            server.change(|behaviour| behaviour.cut_at = None);
            drain(object.stream(got.len() as u64).await.unwrap(), &mut got).await.unwrap();
            assert!(got == content);
            if ranges {
                server.change(|behaviour| behaviour.cut_at = Some(5));
                assert_eq!(kind(range(&object, 0, 100).await), ErrorKind::SourceTransient);
            }
        }
    }
}

#[tokio::test]
async fn another_version_is_refused_whether_or_not_the_server_knows_if_match() {
    for honours_if_match in [true, false] {
        for ranges in [true, false] {
            let server =
                Server::start(Behaviour { honours_if_match, ranges, ..Behaviour::of(noise(100)) }).await;
            let object = open(&server).await.unwrap();
            server.change(|behaviour| behaviour.etag = Some("\"v2\""));
            assert_eq!(kind(stream(&object, 10).await), ErrorKind::SourceChanged);
            if ranges {
                assert_eq!(kind(range(&object, 0, 10).await), ErrorKind::SourceChanged);
            }
            let again = sources(&[]).open(object.location(), object.version()).await;
            assert_eq!(kind(again), ErrorKind::SourceChanged);
        }
    }
}

#[tokio::test]
async fn without_a_tag_time_and_size_are_compared() {
    let plain = Behaviour { etag: None, ..Behaviour::of(noise(100)) };
    let server = Server::start(plain).await;
    let object = open(&server).await.unwrap();
    assert_eq!(object.version(), Some("Tue, 01 Jan 2030 00:00:00 GMT, 100 bytes"));
    assert_holds(&object, &noise(100)).await;
    server.change(|behaviour| behaviour.body.push(0));
    assert_eq!(kind(stream(&object, 0).await), ErrorKind::SourceChanged);
    assert_eq!(kind(range(&object, 0, 10).await), ErrorKind::SourceChanged);
    server.change(|behaviour| behaviour.last_modified = None);
    // Another file may be as long.
    let nameless = open(&server).await.unwrap();
    assert_eq!((nameless.version(), nameless.stored_bytes(), nameless.ranged()), (None, Some(101), false));
}

#[tokio::test]
async fn an_empty_tag_is_none() {
    for etag in ["\"\"", "W/\"\""] {
        let server = Server::start(Behaviour { etag: Some(etag), ..Behaviour::of(noise(100)) }).await;
        let object = open(&server).await.unwrap();
        assert_eq!(object.version(), Some("Tue, 01 Jan 2030 00:00:00 GMT, 100 bytes"));
        assert!(!server.take_requests()[0].contains("if-match"));
        stream(&object, 10).await.unwrap();
        server.change(|behaviour| behaviour.last_modified = Some("Wed, 02 Jan 2030 00:00:00 GMT"));
        assert_eq!(kind(stream(&object, 10).await), ErrorKind::SourceChanged);
    }
}

/// A body in chunks tells none, and a range may leave it out.
#[tokio::test]
async fn a_size_is_compared_where_both_answers_tell_it() {
    let content = noise(1000);
    for etag in [None, Some("\"v1\"")] {
        let server = Server::start(Behaviour { etag, ..Behaviour::of(content.clone()) }).await;
        let object = open(&server).await.unwrap();
        server.change(|behaviour| {
            behaviour.framing = Framing::Chunked;
            behaviour.tells_size = false;
        });
        assert_holds(&object, &content).await;
        server.change(|behaviour| {
            behaviour.tells_size = true;
            behaviour.body.push(b'x');
        });
        let told = range(&object, 0, 10).await.unwrap_err();
        assert_eq!(told.kind(), ErrorKind::SourceChanged, "{told}");
        assert!(told.to_string().contains("1000 bytes, got"), "{told}");

        let silent = Behaviour { etag, tells_size: false, ..Behaviour::of(content.clone()) };
        let server = Server::start(silent).await;
        assert_eq!(stream(&open(&server).await.unwrap(), 10).await.unwrap(), content[10..]);
    }
}

#[tokio::test]
async fn a_range_that_is_answered_by_the_whole_of_unknown_length_is_asked_for_again() {
    for etag in [Some("\"v1\""), None] {
        let server = Server::start(Behaviour { etag, ..Behaviour::of(noise(100)) }).await;
        let object = open(&server).await.unwrap();
        server.change(|behaviour| (behaviour.framing, behaviour.ranges) = (Framing::Chunked, false));
        assert_eq!(kind(range(&object, 10, 10).await), ErrorKind::SourceTransient);
        server.change(|behaviour| (behaviour.framing, behaviour.ranges) = (Framing::Length, true));
        assert_eq!(range(&object, 10, 10).await.unwrap(), noise(100)[10..20]);
    }
}

/// What lies around the range is dropped; what lacks a part of it may come whole the next time.
#[tokio::test]
async fn another_range_than_was_asked_for_is_never_taken_for_it() {
    let server = Server::start(Behaviour::of(noise(100))).await;
    let variables = [("AWS_ENDPOINT_URL", server.url.as_str()), ("AWS_SKIP_SIGNATURE", "true")];
    let stored = sources(&variables).open("s3://b/f.csv", None).await.unwrap();
    for framing in [Framing::Length, Framing::Chunked] {
        server.change(|behaviour| (behaviour.framing, behaviour.only_range) = (framing, None));
        let object = open(&server).await.unwrap();
        for other in [(0, 10), (11, 20), (10, 19), (15, 25), (30, 40)] {
            server.change(|behaviour| behaviour.only_range = Some(other));
            assert_eq!(kind(range(&object, 10, 10).await), ErrorKind::SourceTransient, "{other:?}");
            range(&stored, 10, 10).await.unwrap_err();
        }
        server.change(|behaviour| behaviour.only_range = Some((4, 20)));
        assert_eq!(range(&object, 10, 10).await.unwrap(), noise(100)[10..20]);
        server.change(|behaviour| behaviour.only_range = Some((4, 100)));
        assert_eq!(stream(&object, 10).await.unwrap(), noise(100)[10..]);
    }
}

/// RFC 9110, 15.3.7: a part of what was asked for is an answer.
#[tokio::test]
async fn a_range_that_is_answered_in_part_is_gone_on_with() {
    for framing in [Framing::Length, Framing::Chunked] {
        let behaviour = Behaviour { framing, range_bytes_max: 3, ..Behaviour::of(noise(100)) };
        let server = Server::start(behaviour).await;
        let object = open(&server).await.unwrap();
        assert_eq!(range(&object, 10, 10).await.unwrap(), noise(100)[10..20]);
        // Of a stream the rest is a new request's, as after a break.
        let mut stream = object.stream(10).await.unwrap();
        assert_eq!(stream.next().await.unwrap().unwrap(), noise(100)[10..13]);
        assert_eq!(kind(stream.next().await), ErrorKind::SourceTransient);
    }
}

/// What is not shown of a URL may choose the file, and time and size be those of another one.
#[tokio::test]
async fn of_a_url_that_is_not_shown_as_a_whole_only_a_tag_is_a_version() {
    for (etag, query, version) in [
        (Some("\"v1\""), "code=DE", Some("v1")),
        (Some("W/\"v1\""), "code=DE", Some("W/v1")),
        (None, "land=DE", Some("Tue, 01 Jan 2030 00:00:00 GMT, 100 bytes")),
        (None, "code=DE", None),
        (None, "land=DE&sig=f00", None),
        (None, "from=https%3A%2F%2Fh%2Fx%3Fsig%3Df00", None),
    ] {
        let server = Server::start(Behaviour { etag, ..Behaviour::of(noise(100)) }).await;
        let listed = sources(&[]).list(&format!("{}/f.csv?{query}", server.url)).await.unwrap();
        let object = &listed[0];
        assert_eq!((object.version(), object.ranged()), (version, version.is_some()), "{query}");
        assert!(object.tells_changes());
        // As long as it is read, it is the same file.
        assert_eq!(stream(object, 10).await.unwrap(), noise(100)[10..]);
        server.change(|behaviour| behaviour.body.push(0));
        server.change(|behaviour| behaviour.etag = etag.map(|_| "\"v2\""));
        assert_eq!(kind(stream(object, 10).await), ErrorKind::SourceChanged, "{query}");
    }
}

#[tokio::test]
async fn a_weak_tag_is_compared_but_not_sent() {
    let server = Server::start(Behaviour { etag: Some("W/\"v1\""), ..Behaviour::of(noise(100)) }).await;
    let object = open(&server).await.unwrap();
    assert_holds(&object, &noise(100)).await;
    server.change(|behaviour| behaviour.etag = Some("W/\"v2\""));
    assert_eq!(kind(range(&object, 0, 10).await), ErrorKind::SourceChanged);
}

#[tokio::test]
async fn an_unavailable_server_is_transient_and_asked_once() {
    let server = Server::start(Behaviour { unavailable_every: Some(2), ..Behaviour::of(noise(100)) }).await;
    let object = open(&server).await.unwrap();
    assert_eq!(kind(range(&object, 0, 10).await), ErrorKind::SourceTransient);
    assert_eq!(server.take_requests().len(), 2);
    range(&object, 0, 10).await.unwrap();
    assert_eq!(kind(object.stream(0).await), ErrorKind::SourceTransient);
}

#[tokio::test]
async fn statuses_tell_what_the_user_can_do() {
    let server = Server::start(Behaviour::of(Vec::new())).await;
    for (status, expected) in [
        (401, ErrorKind::SourceDenied),
        (403, ErrorKind::SourceDenied),
        (404, ErrorKind::SourceNotFound),
        (410, ErrorKind::SourceNotFound),
        (418, ErrorKind::SourceIo),
        (429, ErrorKind::SourceTransient),
        (500, ErrorKind::SourceTransient),
    ] {
        server.change(|behaviour| behaviour.status = Some(status));
        let error = open(&server).await.unwrap_err();
        assert_eq!(error.kind(), expected, "{status}");
        assert_eq!(error.hint().is_some(), expected == ErrorKind::SourceDenied);
    }
}

#[tokio::test]
async fn redirects_are_followed_but_not_in_circles() {
    let target = Server::start(Behaviour::of(noise(100))).await;
    let from = Behaviour { redirect: Some(format!("{}/real.csv", target.url)), ..Behaviour::of(Vec::new()) };
    let server = Server::start(from).await;
    let object = open(&server).await.unwrap();
    assert_eq!(object.location(), format!("{}/f.csv", server.url));
    assert_holds(&object, &noise(100)).await;
    server.take_requests();
    server.change(|behaviour| behaviour.redirect = Some("/again".to_owned()));
    let error = open(&server).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SourceIo, "{error}");
    assert!(error.message().contains("redirects"), "{error}");
    assert_eq!(server.take_requests().len(), 6);
}

#[tokio::test]
async fn the_host_that_a_redirect_leads_to_learns_nothing_of_the_url_before() {
    let target = Server::start(Behaviour::of(noise(10))).await;
    let from = Behaviour { redirect: Some(format!("{}/real.csv", target.url)), ..Behaviour::of(Vec::new()) };
    let server = Server::start(from).await;
    let with_user = server.url.replace("http://", "http://me:geheim@");
    sources(&[]).list(&format!("{with_user}/f.csv?token=geheim")).await.unwrap();
    let request = target.take_requests().remove(0).to_lowercase();
    assert!(!request.contains("referer") && !request.contains("geheim"), "{request}");
    assert!(!request.contains("authorization"), "{request}");
}

/// Nor does it when it redirects further, to itself or back.
#[tokio::test]
async fn a_host_behind_two_redirects_does_not_learn_the_password_of_the_first() {
    for back in [false, true] {
        let other = Server::start(Behaviour::of(Vec::new())).await;
        let from = Behaviour { redirect: Some(format!("{}/1", other.url)), ..Behaviour::of(Vec::new()) };
        let server = Server::start(from).await;
        let to = if back { &server } else { &other };
        let to = format!("{}/2", to.url);
        other.change(|behaviour| behaviour.redirect = Some(to));
        let with_user = server.url.replace("http://", "http://me:geheim@");
        let error = sources(&[]).list(&format!("{with_user}/f.csv")).await.err().unwrap();
        assert!(error.message().contains("redirects"), "{error}");
        let authorized = |server: &Server| {
            let requests = server.take_requests();
            let is = |request: &String| request.to_lowercase().contains("authorization");
            requests.iter().map(is).collect::<Vec<_>>()
        };
        let (first, others) = (authorized(&server), authorized(&other));
        assert!(first[0] && !first[1..].contains(&true), "{back}: {first:?}");
        assert!(others.len() > 1 && !others.contains(&true), "{back}: {others:?}");
    }
}

#[tokio::test]
async fn a_host_that_redirects_to_itself_is_told_the_password_again() {
    let server =
        Server::start(Behaviour { redirect: Some("/2".to_owned()), ..Behaviour::of(Vec::new()) }).await;
    let with_user = server.url.replace("http://", "http://me:geheim@");
    sources(&[]).list(&format!("{with_user}/f.csv")).await.err().unwrap();
    let requests = server.take_requests();
    assert_eq!(requests.len(), 6);
    assert!(requests.iter().all(|request| request.to_lowercase().contains("authorization")), "{requests:?}");
}

#[tokio::test]
async fn stored_bytes_are_not_decoded() {
    let gzip = [&[0x1f, 0x8b, 8, 0][..], &noise(500)].concat();
    let headers = "content-encoding: gzip\r\ncontent-type: text/csv\r\n";
    let server = Server::start(Behaviour { extra_header: headers, ..Behaviour::of(gzip.clone()) }).await;
    assert_holds(&open(&server).await.unwrap(), &gzip).await;
    let variables = [("AWS_ENDPOINT_URL", server.url.as_str()), ("AWS_SKIP_SIGNATURE", "true")];
    assert_holds(&sources(&variables).open("s3://b/f.csv", None).await.unwrap(), &gzip).await;
}

#[tokio::test]
async fn an_encoding_that_is_not_read_is_named() {
    let headers = "content-encoding: br\r\n";
    let server = Server::start(Behaviour { extra_header: headers, ..Behaviour::of(noise(100)) }).await;
    let error = open(&server).await.unwrap_err();
    assert!(error.kind() == ErrorKind::SourceIo && error.message().contains(" br,"), "{error}");
    let variables = [("AWS_ENDPOINT_URL", server.url.as_str()), ("AWS_SKIP_SIGNATURE", "true")];
    let object = sources(&variables).open("s3://b/f.csv", None).await.unwrap();
    for error in [range(&object, 0, 10).await.unwrap_err(), stream(&object, 0).await.unwrap_err()] {
        assert!(error.message().contains(" br,"), "{error}");
    }
    // Whoever wrote it thought of something else.
    server.change(|behaviour| behaviour.extra_header = "content-encoding: utf-8\r\n");
    assert_holds(&open(&server).await.unwrap(), &noise(100)).await;
}

#[tokio::test]
async fn a_body_whose_end_nothing_tells_is_refused() {
    let behaviour = Behaviour { framing: Framing::UntilClose, ranges: false, ..Behaviour::of(noise(10)) };
    let server = Server::start(behaviour).await;
    assert_eq!(kind(open(&server).await), ErrorKind::SourceIo);
}

#[tokio::test]
async fn a_chunked_body_of_unknown_size_is_streamed() {
    let content = noise(70_000);
    let behaviour = Behaviour { framing: Framing::Chunked, ranges: false, ..Behaviour::of(content.clone()) };
    let server = Server::start(behaviour).await;
    let object = open(&server).await.unwrap();
    assert_eq!((object.stored_bytes(), object.ranged(), object.version()), (None, false, Some("v1")));
    assert!(stream(&object, 0).await.unwrap() == content);
    assert!(stream(&object, 69_999).await.unwrap() == content[69_999..]);
}

#[tokio::test]
async fn secrets_of_a_url_are_sent_but_never_shown() {
    let server = Server::start(Behaviour::of(noise(10))).await;
    let with_user = server.url.replace("http://", "http://me:geheim@");
    let sources = sources(&[]);
    let object = sources.list(&format!("{with_user}/f?X-Amz-Signature=f00&part=1")).await.unwrap().remove(0);
    let request = server.take_requests().remove(0);
    assert!(request.starts_with("GET /f?X-Amz-Signature=f00&part=1 "), "{request}");
    assert!(request.to_lowercase().contains("authorization: basic bwu6z2vozwlt"), "{request}");
    let shown = format!("{}/f?part=1&***", server.url.replace("http://", "http://***@"));
    assert_eq!(object.location(), shown);
    server.change(|behaviour| behaviour.status = Some(403));
    let error = range(&object, 0, 1).await.unwrap_err();
    assert!(!format!("{error} {error:?} {object:?}").contains("f00"));
    server.change(|behaviour| behaviour.status = None);
    let again = sources.open(&shown, object.version()).await.unwrap();
    assert_holds(&again, &noise(10)).await;
    assert_eq!(kind(crate::sources(&[]).open(&shown, None).await), ErrorKind::SourceDenied);
}

/// A proxy is read from the environment of the process, so a child plays the user.
#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_that_is_down_is_told_as_that() {
    const CHILD: &str = "HOWDAH_TEST_PROXY";
    if let Ok(proxy) = std::env::var(CHILD) {
        let told = sources(&[]).list("http://server.example/f.csv").await.unwrap_err();
        let expected =
            format!("no connection to the server at server.example:80 (by the proxy at {proxy}): ");
        assert!(told.message().starts_with(&expected), "{told}");
        assert!(told.hint().unwrap().contains("NO_PROXY"), "{told:?}");
        let store = [("AWS_ENDPOINT_URL", "http://server.example"), ("AWS_SKIP_SIGNATURE", "true")];
        let told = sources(&store).open("s3://b/f.csv", None).await.unwrap_err();
        assert!(told.message().starts_with(&expected), "{told}");
        return;
    }
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "http::a_proxy_that_is_down_is_told_as_that"])
        .env(CHILD, closed.to_string())
        .env("http_proxy", format!("http://user:secret@{closed}"))
        .env_remove("no_proxy")
        .env_remove("NO_PROXY")
        .output()
        .unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
}
