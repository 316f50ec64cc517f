//! Faults before an S3 server. The requests carry no signature: a refusal is an answer with a body too.

use howdah_testkit::{Fault, HttpFailure, Proxy, S3};
use std::io::{Read, Write};
use std::net::TcpStream;

fn get(proxy: &Proxy, target: &str) -> String {
    let mut stream = TcpStream::connect(proxy.address()).unwrap();
    // In one piece, as clients send it: the proxy does not put together what comes in several.
    let request = format!("GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    // A cut may come as a reset; what arrived before it counts.
    let _ = stream.set_read_timeout(Some(std::time::Duration::from_secs(100)));
    let mut block = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut block) {
        answer.extend_from_slice(&block[..count]);
        if answer.starts_with(b"HTTP/1.1 503") {
            break;
        }
    }
    String::from_utf8(answer).unwrap()
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").unwrap().1
}

#[test]
fn every_second_get_is_cut_in_its_body() {
    let s3 = S3::start();
    s3.put("bucket", "key", b"data");
    let proxy = Proxy::before_s3(&s3);
    proxy.set(Fault::Http { every: 2, failure: HttpFailure::CutBody { after_bytes: 10 } });
    assert!(body(&get(&proxy, "/bucket/key")).len() > 10);
    assert_eq!(body(&get(&proxy, "/bucket/key")).len(), 10);
    assert!(body(&get(&proxy, "/bucket?list-type=2")).len() > 10);
    assert!(body(&get(&proxy, "/bucket/key")).len() > 10);
    assert_eq!(proxy.fired(), 1);
}

#[test]
fn an_overloaded_server_says_slow_down() {
    let s3 = S3::start();
    s3.put("bucket", "key", b"data");
    let proxy = Proxy::before_s3(&s3);
    proxy.set_times(Fault::Http { every: 1, failure: HttpFailure::SlowDown }, 1);
    assert!(get(&proxy, "/bucket/key").starts_with("HTTP/1.1 503 Slow Down"));
    assert!(get(&proxy, "/bucket/key").starts_with("HTTP/1.1 403"));
}
